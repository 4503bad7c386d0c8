/* explainer.h: an explanation (study/explain.h) in the making: what its files share. */
#ifndef HWNAS_STUDY_EXPLAINER_H
#define HWNAS_STUDY_EXPLAINER_H

#include <math.h>

#include "study/evaluate.h"
#include "study/explain.h"
#include "study/response.h"

typedef struct hwnas_explainer {
    hwnas_explanation *out;
    const hwnas_summary *summary;
    hwnas_job job; /* of the study: goals, predictor */
    hwnas_space *space;
    const hwnas_space *walked;
    hwnas_evaluator *evaluator;
    hwnas_store *store; /* of the study, for its tables of latencies; borrowed */
    hwnas_arch *arch;   /* of the trial, with settings */
    hwnas_response *responses[HWNAS_EXPLAINED];
    /* The network's own value over what is estimated of it, by goal: from its parts, and from its
     * choices. NaN: one of them is not known. */
    double part_levels[HWNAS_EXPLAINED], levels[HWNAS_EXPLAINED];
} hwnas_explainer;

/* NaN: none. */
static inline double hwnas_explained_value(const hwnas_trial *trial, const char *name)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, name);
    return v ? v->value : NAN;
}

/* ---- explain_limits.c ---- */

/* Finds the relaxations, by the trials and the neighbours. */
void hwnas_explain_limits(hwnas_explainer *e);

/* ---- explain_measure.c ---- */

/* Measures the neighbours that are there. What was measured in turns is left over what the network
 * took in them, as values and readings (1: the same), for the caller to put at a level. Only what
 * kept all of them from being measured is a failure. */
HWNAS_CHECKED hwnas_status hwnas_explain_measure(hwnas_explainer *e,
                                                 const hwnas_explain_measuring *measuring);

#endif
