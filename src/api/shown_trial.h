/* shown_trial.h: a trial as hwnas/study.h shows it. */
#ifndef HWNAS_API_SHOWN_TRIAL_H
#define HWNAS_API_SHOWN_TRIAL_H

#include <hwnas/study.h>
#include <jansson.h>

#include "study/job.h"
#include "trial/trial.h"

/* Its values borrow the names of metrics and their units. */
typedef struct hwnas_shown_trial {
    hwnas_study_trial trial;
    char *code;
    hwnas_metric_value *values;
    json_t *detail; /* of the mixes, whose texts are borrowed from it */
    hwnas_study_mix *mixes;
} hwnas_shown_trial;

/* As `trial` is; what was in `out` is not freed. */
void hwnas_shown_trial_set(hwnas_shown_trial *out, const hwnas_trial *trial, const hwnas_job *job);
void hwnas_shown_trial_done(hwnas_shown_trial *shown);

#endif
