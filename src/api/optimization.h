/* optimization.h: one call of hwnas_optimize() on its way; which network of its search is the
 * result. */
#ifndef HWNAS_API_OPTIMIZATION_H
#define HWNAS_API_OPTIMIZATION_H

#include <hwnas/optimize.h>

#include "api/limits_kept.h"
#include "inherit/samples.h"
#include "predict/predict.h"
#include "report/optimized_text.h"

typedef struct hwnas_optimization {
    hwnas_optimize_options options;
    const char *model;
    char *prefix, *space_path, *study_path, *accuracy, *constraints;
    char *precisions; /* "f32,s8"; NULL: as nothing is said of them */
    hwnas_space *space;
    hwnas_predictor *predictor;
    hwnas_samples *samples; /* the predictor's */
    hwnas_arch *first, *best;
    hwnas_front_row taken; /* what the study says of the best */
    hwnas_report *search;
    hwnas_optimized *found;
    bool is_resumed;   /* its limits are the study's, in numbers */
    bool is_new_space; /* made by this call, and of no use before there is a study */
} hwnas_optimization;

/* Median latencies of the model and of `best` (NULL: the model alone), measured in turns, so that
 * whatever the machine does happens to both; into `found`. */
HWNAS_CHECKED hwnas_status hwnas_optimization_time(hwnas_optimization *o, const hwnas_graph *best);

/* As a search counts them: multiply-accumulates of a sample, memory of a batch. */
void hwnas_optimization_costs(hwnas_costs *out, const hwnas_optimization *o,
                              const hwnas_graph *graph);

/* Makes a trial of the study the best; -1: its winner. */
HWNAS_CHECKED hwnas_status hwnas_optimization_take(hwnas_optimization *o, int64_t number);

/* Takes the winner of the search, or one that is as good (near_best.h); where it does not keep its
 * limit beside the model, one of those that were faster in the search by what it is over.
 * HWNAS_E_INFEASIBLE: none keeps it. */
HWNAS_CHECKED hwnas_status hwnas_optimization_choose(hwnas_optimization *o);

/* The accuracy of what was chosen, also on what nobody has seen. */
HWNAS_CHECKED hwnas_status hwnas_optimization_score(hwnas_optimization *o);

#endif
