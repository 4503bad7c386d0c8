/* calibrate.h: spends minutes on a table of latencies on purpose, on the networks of a space that
 * teach it most. */
#ifndef HWNAS_LATENCY_CALIBRATE_H
#define HWNAS_LATENCY_CALIBRATE_H

#include "space/arch.h"
#include "latency/latencies.h"

typedef struct hwnas_calibration {
    char key[512];                           /* of the table */
    size_t n_measured, n_unstable, n_failed; /* networks */
    double seconds;
    hwnas_latency_state table; /* as it is then */
    /* Random networks among those measured, estimated before they were; of |estimate / measured -
     * 1| the median, and the shares within 5 and 10 %. */
    size_t n_held_out;
    double error, within_5, within_10, coverage;
} hwnas_calibration;

typedef struct hwnas_calibrate_options {
    const char *device;
    int threads, batch; /* threads 0: all cores */
    hwnas_precision precision;
    double seconds; /* to be spent */
    uint64_t seed;
    const volatile sig_atomic_t *stop;
    void (*progress)(void *context, const hwnas_calibration *now); /* NULL: none */
    void *context;
} hwnas_calibrate_options;

/* Goes on with what the table knows already. That a network cannot be measured is no end; that none
 * of the first ones can is. After HWNAS_E_INTERRUPTED `out` is what was done until then. */
HWNAS_CHECKED hwnas_status hwnas_calibrate(hwnas_calibration *out, hwnas_latencies *latencies,
                                           const hwnas_space *space,
                                           const hwnas_calibrate_options *options);

#endif
