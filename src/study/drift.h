/* drift.h: what networks take, measured in turns on a machine that drifts.
 *
 * The j-th timing, of network i, is in logarithms
 *
 *     y_j = a_i + l(t_j) + e_j,     e_j ~ N(0, v),     cov(l(s), l(t)) = q v exp(-|s - t| / T).
 *
 * e is what differs from run to run, and l the level of the machine, which slows all networks
 * together and is forgotten after a time T (an Ornstein-Uhlenbeck process; Uhlenbeck and Ornstein,
 * Physical Review 36, 1930). What a network takes is a_i: its time at the machine's mean level.
 * Timings of one minute share its level, so that they say less about the mean than their number and
 * spread suggest; that is what makes intervals from a spread alone too narrow.
 *
 * For given q and T the a_i are estimated by generalised least squares, with a flat prior on them
 * and on log v: with C the correlation of the timings, X which network each is of, and L L' = C,
 *
 *     G = X' C^-1 X,   a = G^-1 X' C^-1 y,   S = |L^-1 (y - X a)|^2,   cov(a) = S / (n - p) G^-1,
 *
 * with n - p degrees of freedom, and the likelihood of q and T, the a_i and v integrated out, is
 * |C|^-1/2 |G|^-1/2 S^-(n-p)/2 (Berger, De Oliveira and Sanso, Journal of the American Statistical
 * Association 96, 2001, eq. 3). q and T are known poorly, so they are not chosen: each of a grid
 * counts by its likelihood. Value and interval are the quantiles of that mixture of Student's
 * distributions. A level that hardly changes in all the time of the timings cannot be told from
 * what the networks take: T is at most a third of that time, and beyond that the a_i are times at
 * the level that the machine had meanwhile. */
#ifndef HWNAS_STUDY_DRIFT_H
#define HWNAS_STUDY_DRIFT_H

#include <stddef.h>

#include "trial/metric.h"

typedef struct hwnas_drift_timing {
    int network;        /* from 0 */
    double when;        /* in any unit: only ratios of differences count */
    double log_seconds; /* finite */
} hwnas_drift_timing;

/* Of the first `n_wanted` networks of `n_networks` their latencies, in seconds, with 95 %
 * intervals. Each network has a timing, and there are more timings than networks, at two times at
 * least. Safe for concurrent use. */
void hwnas_drift_conclude(hwnas_reading *out, int n_wanted, const hwnas_drift_timing *timings,
                          size_t n, int n_networks);

#endif
