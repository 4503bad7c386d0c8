/* serving.h: from what was measured to what a machine can promise. Requests come at random, are
 * gathered into batches, wait for a free copy of the network, and are computed.
 *
 * The promise is conservative: the three terms are added, each at the percentile that is asked for.
 * docs/cpu-or-gpu.md gives the formulas with their papers and a simulation against them. */
#ifndef HWNAS_PROFILE_SERVING_H
#define HWNAS_PROFILE_SERVING_H

#include <stdbool.h>

/* One machine under one setting, as measured. */
typedef struct hwnas_service {
    int batch;               /* requests that are computed together */
    int streams;             /* batches that are computed at the same time */
    double items_per_second; /* of all streams, when work never runs out */
    double seconds;          /* that a batch takes, at the percentile */
    double percentile;       /* 0.5 to 1 */
    double fill;             /* what hwnas_serving_fill() says */
} hwnas_service;

/* How many mean gaps between requests one waits until its batch is full, at the percentile. */
double hwnas_serving_fill(int batch, double percentile);

/* Seconds of a request; infinite where the machine cannot keep up. */
typedef struct hwnas_response {
    double fill, wait, service, total;
} hwnas_response;

/* `rate`: requests a second that reach this machine. */
hwnas_response hwnas_serving_response(const hwnas_service *service, double rate);

/* The highest rate at which a request takes at most `target` seconds (INFINITY: no target) and the
 * machine is busy for at most `utilisation` of its time; 0 when there is none. */
double hwnas_serving_rate(const hwnas_service *service, double target, double utilisation);

enum { HWNAS_SERVING_MACHINES = 1000000000 }; /* nobody has more */

/* The fewest machines that share `load` requests a second so that each keeps the target; 0 when no
 * number does: batches fill too slowly on each. One more than HWNAS_SERVING_MACHINES stands for all
 * numbers above. */
long hwnas_serving_machines(const hwnas_service *service, double load, double target,
                            double utilisation);

#endif
