/* optimized_text.h: a model and what was made of it, side by side. */
#ifndef HWNAS_REPORT_OPTIMIZED_TEXT_H
#define HWNAS_REPORT_OPTIMIZED_TEXT_H

#include <jansson.h>

#include "base/str.h"
#include "data/score.h"
#include "graph/graph.h"

typedef struct hwnas_optimized_row {
    hwnas_estimate_95 latency;  /* p50, seconds; the interval of all rounds together */
    hwnas_estimate_95 searched; /* %, on samples that the search judged by */
    hwnas_estimate_95 tested;   /* %, on samples that nothing has seen before */
    hwnas_costs costs;
    hwnas_precision precision; /* that it is computed in */
} hwnas_optimized_row;

typedef struct hwnas_optimized {
    char *model, *code; /* heap */
    int64_t n_test;
    hwnas_optimized_row original, best;
} hwnas_optimized;

void hwnas_optimized_free(hwnas_optimized *optimized); /* accepts NULL */
void hwnas_optimized_text(hwnas_str *out, const hwnas_optimized *optimized);
json_t *hwnas_optimized_json(const hwnas_optimized *optimized);

#endif
