/* warm.h: trials of another study, taken over at the beginning of one. */
#ifndef HWNAS_STUDY_WARM_H
#define HWNAS_STUDY_WARM_H

#include "study/evaluate.h"

typedef struct hwnas_warm_start {
    size_t n;
    hwnas_trial *trials; /* finished, in the order in which they were; values are named as in the
                            job, and measured ones are there only for devices that are the same */
} hwnas_warm_start;

/* Reads the study `job->warm_start`. One of another space is HWNAS_E_INPUT. `walked`: the space
 * with settings. */
HWNAS_CHECKED hwnas_status hwnas_warm_start_load(hwnas_warm_start *out, const hwnas_job *job,
                                                 const hwnas_space *walked,
                                                 const hwnas_evaluator *evaluator);
void hwnas_warm_start_done(hwnas_warm_start *warm);

/* Networks of the front of the study `job->warm_start`, evenly from one end to the other, at most
 * `most`; each is yours to free. Where they were measured on another device, they are what is worth
 * measuring first on this one. Returns how many; none of a study that cannot be read. */
int hwnas_warm_start_best(hwnas_arch **out, int most, const hwnas_job *job,
                          const hwnas_space *walked);

#endif
