/* metric.h: what a trial can be judged by: a table of metrics, and the units people write them in.
 *
 * Inside the program values are SI (seconds, bytes, counts); a metric's row says how people read
 * it. */
#ifndef HWNAS_TRIAL_METRIC_H
#define HWNAS_TRIAL_METRIC_H

#include <stdbool.h>
#include <stddef.h>

#include "graph/graph.h"
#include "measure/measure.h"

/* Where a metric's value comes from. */
typedef enum hwnas_metric_source {
    HWNAS_FROM_PREDICTOR,
    HWNAS_FROM_GRAPH,
    HWNAS_FROM_DEVICE,
} hwnas_metric_source;

/* What it counts. Several metrics may count one thing: quantiles of it, or what follows from it. */
typedef enum hwnas_quantity {
    HWNAS_ACCURACY,
    HWNAS_LATENCY, /* of a batch; a quantile of it */
    HWNAS_ENERGY,  /* of a batch */
    HWNAS_HELD_BYTES,
    HWNAS_MACS,
    HWNAS_PARAMS,
    HWNAS_PEAK_BYTES,
    HWNAS_CACHE_BYTES, /* of keys and values, which a step of a decoder reads */
} hwnas_quantity;

/* What it makes of the quantity, which is that of a batch. */
typedef enum hwnas_per {
    HWNAS_OF_BATCH,         /* it is as it is */
    HWNAS_PER_ITEM,         /* divided by the batch */
    HWNAS_ITEMS_PER_SECOND, /* the batch divided by it */
    HWNAS_PRICE_OF_MILLION, /* of so many seconds for a million items, at a price an hour */
} hwnas_per;

typedef struct hwnas_metric {
    const char *name; /* as written in a job */
    hwnas_metric_source source;
    hwnas_quantity of;
    double quantile; /* of a latency; 0: of something else */
    hwnas_per per;
    const char *phase; /* of the space, that it is of and no other; NULL: of any network */
    bool is_usual; /* a table shows it though nobody asked */
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

/* The first metric of a quantity, which is meant when nothing more is said: of latency the median.
 */
const hwnas_metric *hwnas_metric_of(hwnas_quantity quantity);

/* The same with the unit, scale and decimals in which people read values of which `most` is the
 * largest: us, uJ and KiB where the metric's own unit is more than any of them. */
hwnas_metric hwnas_metric_shown(const hwnas_metric *metric, double most);
/* The same of values that are compared, from `least` to `most`: with decimals that tell them apart.
 */
hwnas_metric hwnas_metric_shown_among(const hwnas_metric *metric, double least, double most);
/* Those decimals alone, of values in the metric's own unit (not SI). */
int hwnas_metric_decimals_among(const hwnas_metric *metric, double least, double most);

/* A phase of a space has a name of so many bytes, the end included: "decode". */
enum { HWNAS_PHASE_NAME = 13 };

/* HWNAS_E_INPUT with "did you mean" when there is none. "latency" means the first "latency.*";
 * "decode.latency" that of a phase of a space, whose name goes to `phase`, else "". */
HWNAS_CHECKED hwnas_status hwnas_metric_find(const hwnas_metric **out, char phase[HWNAS_PHASE_NAME],
                                             const char *name, const hwnas_place *place);
/* The metric of a stored value, "latency.p50", "decode.latency.p50" or "latency.p50 on pi"; NULL:
 * of another version. */
const hwnas_metric *hwnas_metric_of_value(const char *name);

/* A value with its interval; NaN for `low` and `high` where there is none. */
typedef struct hwnas_reading {
    double value, low, high;
} hwnas_reading;

/* What a metric makes of its quantity. `price`: of the device an hour; NaN where it is not given,
 * and then so is the value of a metric that needs one. */
hwnas_reading hwnas_metric_read(const hwnas_metric *metric, hwnas_reading quantity, int batch,
                                double price);
/* Steps to the next metric of the device, from *metric on (NULL: from the first), that a
 * measurement of a batch, of a network in a phase ("": in none), has a value of. false: there is no
 * more. */
bool hwnas_metric_next_measured(const hwnas_metric **metric, hwnas_reading *reading,
                                const hwnas_measurement *m, const char *phase, int batch,
                                double price);
/* A network in that phase ("": in none) has the metric. */
bool hwnas_metric_is_in(const hwnas_metric *metric, const char *phase);
/* Adds the quantiles that metrics are made of to those that a measurement is to have. */
void hwnas_metric_ask_for_tails(hwnas_measure_options *out);
/* The value that a metric of the graph has; `batch` is the one that was counted for. */
double hwnas_metric_count(const hwnas_metric *metric, const hwnas_costs *costs, int batch);

/* The values of `metric` are the quantity that `other` is a reading of, so that one that says it
 * says the other. */
bool hwnas_metric_gives(const hwnas_metric *metric, const hwnas_metric *other);
/* So few samples as a turn has are enough for it, and it is not the same each time. */
bool hwnas_metric_is_levelled(const hwnas_metric *metric);

/* The factor from a unit as written ("ms", "M") to SI; "" is the unit that the metric is shown in.
 */
HWNAS_CHECKED hwnas_status hwnas_metric_unit(double *out, const hwnas_metric *metric,
                                             const char *unit, const hwnas_place *place);

#endif
