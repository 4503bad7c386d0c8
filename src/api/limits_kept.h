/* limits_kept.h: whether a network keeps the limits on its latency when it and the model are
 * measured again, and which one may take its place. The model was measured before the search: where
 * the machine has become faster since, a multiple of that is too much. */
#ifndef HWNAS_API_LIMITS_KEPT_H
#define HWNAS_API_LIMITS_KEPT_H

#include "report/optimized_text.h"

/* By how much, relative, the best's median latency is above what `constraints`, as the user wrote
 * them, allow beside the original's median; 0: nothing. NULL allows all. */
HWNAS_CHECKED hwnas_status hwnas_limit_excess(double *out, const char *constraints,
                                              const hwnas_optimized *found);

/* The best trial of a study by its goals among those whose median latency was, with its whole
 * interval, `most` seconds at most, and that median. `number` -1: there is none. */
HWNAS_CHECKED hwnas_status hwnas_best_below(int64_t *number, double *median, const char *study,
                                            double most);

#endif
