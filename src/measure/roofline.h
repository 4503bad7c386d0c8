/* roofline.h: what a device can do at most: how fast it computes, and how fast it moves values.
 *
 * Measured through the device itself, by the protocol of every latency: products of matrices of a
 * good size for its arithmetic, sums of arrays for its caches and memory. Williams, Waterman,
 * Patterson 2009: no part of a network is faster than either allows. */
#ifndef HWNAS_MEASURE_ROOFLINE_H
#define HWNAS_MEASURE_ROOFLINE_H

#include <jansson.h>

#include "measure/measure.h"

/* Something a second: a median with its 95 % interval. */
typedef struct hwnas_rate {
    double p50, low, high;
} hwnas_rate;

enum { HWNAS_N_BANDWIDTHS = 6 };

typedef struct hwnas_roofline {
    hwnas_precision precision;
    int threads;
    hwnas_rate flops; /* operations a second, two for each multiply-add */
    /* Of products in lower types beside those in `precision`: profile/limits.h; p50 0: none. */
    hwnas_rate s8_flops, bf16_flops;
    /* Bytes a second where so many bytes are read and written in turns; the last is memory, with
     * arrays that are together four times the last cache: read in turns, they leave nothing in it.
     */
    struct {
        double bytes;
        hwnas_rate rate;
    } bandwidths[HWNAS_N_BANDWIDTHS];
    double call_seconds; /* of the smallest piece of work; no part of the above */
    double cache_bytes;  /* the last cache's size; 0: unknown */
    bool is_unstable;    /* the machine was disturbed while one of these was measured */
} hwnas_roofline;

/* Bytes a second that a piece of work can get whose data are so many bytes. */
double hwnas_roofline_bandwidth(const hwnas_roofline *roofline, double bytes);
/* The memory's. */
const hwnas_rate *hwnas_roofline_memory(const hwnas_roofline *roofline);

json_t *hwnas_roofline_json(const hwnas_roofline *roofline); /* a new reference; docs/json.md */
/* Of that what it says of computing and of memory, its last bandwidth, and whether it was
 * disturbed; what is missing is NaN. */
void hwnas_roofline_of_json(hwnas_roofline *out, const json_t *json);

/* Measures, which takes seconds; or, unless `refresh`, looks up what was measured earlier on such a
 * processor with such a library, from $XDG_CACHE_HOME/hwnas. The runner is one of `device`; of
 * `options` only stop, progress and context count. */
HWNAS_CHECKED hwnas_status hwnas_roofline_get(hwnas_roofline *out, hwnas_runner *runner,
                                              const char *device, hwnas_precision precision,
                                              bool refresh, const hwnas_measure_options *options);

/* The same in tenths of a second, for who asks whether something is slower by far: what is known of
 * the above, or few samples of smaller arrays, which a cache may hold. */
HWNAS_CHECKED hwnas_status hwnas_roofline_rough(hwnas_roofline *out, hwnas_runner *runner,
                                                const char *device, hwnas_precision precision,
                                                const hwnas_measure_options *options);

#endif
