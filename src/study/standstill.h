/* standstill.h: when a search has stopped improving. */
#ifndef HWNAS_STUDY_STANDSTILL_H
#define HWNAS_STUDY_STANDSTILL_H

#include "study/scores.h"

/* So many trials count as the latest: a quarter of all, and 50 at least. */
size_t hwnas_standstill_window(size_t n);

/* How much the front (rung 0) of the first n scores improved in the last `window` of them, as a
 * part of what it is worth now.
 *
 * With up to three objectives the worth is the hypervolume between the front and the worst value of
 * each objective among the feasible trials; with more it is 1 - R2 (Hansen and Jaszkiewicz 1998;
 * Brockhoff, Wagner, Trautmann, "On the Properties of the R2 Indicator", GECCO 2012) for 128 random
 * weights, with objectives scaled to [0, 1]. While nothing is feasible it is how far the least
 * violation fell. 1 when n is below twice the window. */
double hwnas_improvement(const hwnas_scores *scores, size_t n, size_t window);

#endif
