/* other_limits.h: what a study's trials say of limits that it was not searched with. */
#ifndef HWNAS_STUDY_OTHER_LIMITS_H
#define HWNAS_STUDY_OTHER_LIMITS_H

#include "study/summary.h"

/* Puts `constraints` into the place of the job's limits, as of a flag --constraints. HWNAS_E_INPUT:
 * they cannot be read, or exclude each other. */
HWNAS_CHECKED hwnas_status hwnas_other_limits_read(hwnas_job *job, const json_t *identity,
                                                   const char *constraints);
/* Judges all finished trials anew by the summary's limits, and counts what is not known. A trial
 * that may meet them and lacks a value that says so has a violation of infinity. */
void hwnas_other_limits_judge(hwnas_summary *summary);
/* Such a trial: neither feasible nor not. False without other limits. */
bool hwnas_other_limits_leave_open(const hwnas_summary *summary, const hwnas_trial *trial);

#endif
