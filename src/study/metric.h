/* metric.h: what a trial can be judged by: a table of metrics, and limits on them.
 *
 * Inside the program values are SI (seconds, bytes, counts); a metric's row says how people read
 * it. */
#ifndef HWNAS_STUDY_METRIC_H
#define HWNAS_STUDY_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Where a metric's value comes from. */
typedef enum hwnas_metric_source {
    HWNAS_FROM_PREDICTOR,
    HWNAS_FROM_GRAPH,
    HWNAS_FROM_DEVICE,
} hwnas_metric_source;

typedef struct hwnas_metric {
    const char *name; /* as written in a job */
    hwnas_metric_source source;
    bool is_maximised;
    const char *si;    /* unit inside the program and in the store */
    const char *unit;  /* as shown */
    double scale;      /* shown value = value / scale */
    const char *title; /* column of a table */
    int decimals;
    const char *help;
} hwnas_metric;

extern const hwnas_metric hwnas_metrics[]; /* ends with a NULL name */

/* HWNAS_E_INPUT with "did you mean" when there is none. "latency" means latency.p50. */
HWNAS_CHECKED hwnas_status hwnas_metric_find(const hwnas_metric **out, const char *name,
                                             const hwnas_place *place);

/* "latency.p50 <= 10 ms" */
typedef struct hwnas_limit {
    const hwnas_metric *metric;
    bool is_upper;  /* <= and <; otherwise >= and > */
    bool is_strict; /* < and > */
    double value;   /* SI */
    char text[96];  /* as written */
} hwnas_limit;

/* A limit without unit is read in the unit that the metric is shown in. */
HWNAS_CHECKED hwnas_status hwnas_limit_parse(hwnas_limit *out, const char *text,
                                             const hwnas_place *place);
/* 0 when [low, high] lies within the limit, else the relative excess of the worse end. */
double hwnas_limit_violation(const hwnas_limit *limit, double low, double high);

#endif
