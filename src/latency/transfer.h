/* transfer.h: latencies on a device that measured few networks of a table, from what other devices
 * measured of all of them.
 *
 * The logarithm of a latency is a Gaussian process over the networks. Its covariance is that of the
 * other devices' logarithms (each brought to mean 0 and deviation 1), of facts about the networks,
 * and of their choices. Level, scale and what each of the other devices counts for are learned from
 * the measured networks; the interval is as wide as it takes to hold 90 % of the networks when each
 * of the other devices is left out in turn and carried over by the same networks. */
#ifndef HWNAS_LATENCY_TRANSFER_H
#define HWNAS_LATENCY_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/status.h"
#include "graph/graph.h"

enum { HWNAS_TRANSFER_LEAST = 3, HWNAS_TRANSFER_MOST = 100 }; /* networks that are measured */

typedef struct hwnas_transfer hwnas_transfer;

/* What a network costs, as a device may be proportional to it or to its logarithm. */
enum { HWNAS_TRANSFER_FACTS = 3 };
void hwnas_transfer_facts(double out[HWNAS_TRANSFER_FACTS], const hwnas_graph *graph);

/* Row by row: logarithms of latencies of n_sources devices, facts, and genes; copied. At least one
 * source and one row. */
hwnas_transfer *hwnas_transfer_new(size_t n_rows, size_t n_sources, const double *logs,
                                   size_t n_facts, const double *facts, size_t n_genes,
                                   const uint16_t *genes);
void hwnas_transfer_free(hwnas_transfer *t); /* accepts NULL */

/* The n rows (at most those there are) that tell most of the others, best first: greedily, those of
 * the largest variance given the ones before, among some hundreds that are drawn. Returns how many.
 */
size_t hwnas_transfer_choose(size_t *rows, const hwnas_transfer *t, size_t n, hwnas_rng *rng);

/* Learns from `seconds` that were measured of n rows, at least HWNAS_TRANSFER_LEAST; what was
 * learned before is forgotten. HWNAS_E_INPUT: a time is not above 0. */
HWNAS_CHECKED hwnas_status hwnas_transfer_fit(hwnas_transfer *t, size_t n, const size_t *rows,
                                              const double *seconds);

typedef struct hwnas_transferred {
    double seconds, low, high; /* the middle, and the 90 % interval */
} hwnas_transferred;
hwnas_transferred hwnas_transfer_estimate(const hwnas_transfer *t, size_t row);

/* The measured row number i, estimated from the others: estimate / measured - 1. */
double hwnas_transfer_left_out(const hwnas_transfer *t, size_t i);

#endif
