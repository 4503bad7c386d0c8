/* warm.h: trials of another study, taken over at the beginning of one. */
#ifndef HWNAS_STUDY_WARM_H
#define HWNAS_STUDY_WARM_H

#include "study/evaluate.h"

/* The other study as it is. */
typedef struct hwnas_warm_study {
    json_t *identity; /* strings of `job` are borrowed from it */
    hwnas_job job;    /* goals, devices and settings */
    size_t n;
    hwnas_trial *trials;         /* in the order in which they finished */
    int same[HWNAS_MAX_DEVICES]; /* the device of it that measures as ours does; -1: none */
} hwnas_warm_study;

/* Reads the study `job->warm_start`. One of another space is HWNAS_E_INPUT. `walked`: the space
 * with settings. */
HWNAS_CHECKED hwnas_status hwnas_warm_study_read(hwnas_warm_study *out, const hwnas_job *job,
                                                 const hwnas_space *walked,
                                                 const hwnas_evaluator *evaluator);
void hwnas_warm_study_done(hwnas_warm_study *study);
/* It succeeded, and was measured as the job says. */
bool hwnas_warm_is_whole(const hwnas_trial *trial);

typedef struct hwnas_warm_start {
    size_t n;
    hwnas_trial *trials; /* finished, in the order in which they were; values are named as in the
                            job, and measured ones are there only for devices that are the same */
} hwnas_warm_start;

/* Failures are those of hwnas_warm_study_read(). */
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
