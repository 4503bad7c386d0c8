/* transfer_table.h: a table of latencies on other devices, carried over to a device that measures a
 * few of its networks. */
#ifndef HWNAS_LATENCY_TRANSFER_TABLE_H
#define HWNAS_LATENCY_TRANSFER_TABLE_H

#include <signal.h>

#include "latency/transfer.h"
#include "measure/measure.h"
#include "space/space.h"

typedef struct hwnas_transfer_how {
    const char *device; /* any; `replay:FILE#COLUMN` looks latencies up */
    int threads, batch; /* threads 0: all cores */
    hwnas_precision precision;
    const char *from; /* what other devices took (latency/transfer_source.h) */
    const char *out;  /* the CSV to be written; NULL: none */
    size_t n;         /* networks to measure */
    uint64_t seed;
    const volatile sig_atomic_t *stop;
    void (*progress)(void *context, size_t n_measured); /* NULL: none */
    void *context;
} hwnas_transfer_how;

typedef struct hwnas_transfer_result {
    size_t n_rows, n_sources, n;
    struct hwnas_transfer_row {
        char *code;
        double measured, left_out; /* seconds; estimated from the others, / measured - 1 */
        bool is_unstable;
    } * rows;            /* the measured ones, in their order */
    double error, width; /* medians of |left_out|, and of the intervals' halves as shares */
} hwnas_transfer_result;

/* The file is written whole or not at all: the columns that name the network, then latency_ms,
 * low_ms and high_ms (of 90 %) and is_measured, a row for each of the table. Milliseconds a row,
 * and the measurements. Let go of the result with hwnas_transfer_result_done(). */
HWNAS_CHECKED hwnas_status hwnas_transfer_table(hwnas_transfer_result *out,
                                                const hwnas_space *space,
                                                const hwnas_transfer_how *options);
void hwnas_transfer_result_done(hwnas_transfer_result *result);

#endif
