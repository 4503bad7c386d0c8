/* metric.h: what a trial can be judged by: a table of metrics, and the units people write them in.
 *
 * Inside the program values are SI (seconds, bytes, counts); a metric's row says how people read
 * it. */
#ifndef HWNAS_TRIAL_METRIC_H
#define HWNAS_TRIAL_METRIC_H

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
    const char *unit;  /* as shown; "": none */
    double scale;      /* shown value = value / scale */
    const char *title; /* column of a table */
    int decimals;
    const char *help;
} hwnas_metric;

extern const hwnas_metric hwnas_metrics[]; /* ends with a NULL name */
/* The accuracy of a job whose predictor is a proxy: its score has no unit. */
extern const hwnas_metric hwnas_score_metric;

/* HWNAS_E_INPUT with "did you mean" when there is none. "latency" means latency.p50. */
HWNAS_CHECKED hwnas_status hwnas_metric_find(const hwnas_metric **out, const char *name,
                                             const hwnas_place *place);
/* The metric of a stored value, "latency.p50" or "latency.p50 on pi"; NULL: of another version. */
const hwnas_metric *hwnas_metric_of_value(const char *name);

/* The factor from a unit as written ("ms", "M") to SI; "" is the unit that the metric is shown in.
 */
HWNAS_CHECKED hwnas_status hwnas_metric_unit(double *out, const hwnas_metric *metric,
                                             const char *unit, const hwnas_place *place);

#endif
