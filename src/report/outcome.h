/* outcome.h: what a search came to, as a status. */
#ifndef HWNAS_REPORT_OUTCOME_H
#define HWNAS_REPORT_OUTCOME_H

#include "study/summary.h"

/* HWNAS_OK with a winner. HWNAS_E_INTERRUPTED says how to go on with the study of the job; without
 * a winner the status says why there is none, and which network is the closest. */
HWNAS_CHECKED hwnas_status hwnas_summary_conclude(const hwnas_summary *summary,
                                                  const hwnas_job *job);

#endif
