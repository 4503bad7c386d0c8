/* near_best.h: which of the networks that are about as accurate as the best one is taken. */
#ifndef HWNAS_API_NEAR_BEST_H
#define HWNAS_API_NEAR_BEST_H

#include "api/optimization.h"

/* Of a front's networks that may be as good as its first one, by that one's interval, the fastest
 * whose accuracy is less than the best one's by no more than half a standard error of the
 * difference (a stricter form of the 1 SE rule of Breiman, Friedman, Olshen and Stone,
 * "Classification and Regression Trees", 1984, section 3.4.3). The best of many on the samples of
 * the search was lucky there, so all are compared on those that recover weights as well, sample by
 * sample. Takes it, and tells of it. n is not 0. Some seconds for each of these networks. */
HWNAS_CHECKED hwnas_status hwnas_near_best(size_t *out, hwnas_optimization *o,
                                           const hwnas_front_row *front, size_t n);

#endif
