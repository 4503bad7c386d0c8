/* evaluation.h: what came of running a network on data; evaluation.c makes it, evaluation_report.c
 * tells it. */
#ifndef HWNAS_API_EVALUATION_H
#define HWNAS_API_EVALUATION_H

#include "api/api.h"
#include "data/score.h"

enum { HWNAS_MAX_EVALUATION_VALUES = 16, HWNAS_VALUE_NAME_SIZE = 32 };

struct hwnas_evaluation {
    char *model, *original, *data, *labels; /* original, labels: NULL: none */
    char device[128];
    hwnas_precision precision;
    int batch;
    hwnas_task task;
    int64_t n, n_samples, not_finite;
    double seconds;
    size_t n_values;
    hwnas_metric_value values[HWNAS_MAX_EVALUATION_VALUES];
    char names[HWNAS_MAX_EVALUATION_VALUES][HWNAS_VALUE_NAME_SIZE];
};

/* As hwnas_evaluation_report(); takes the evaluation, which ends with the report. */
hwnas_report *hwnas_api_report_of_evaluation(hwnas_evaluation *evaluation);

#endif
