/* limits_kept.h: whether a network keeps the limits on its latency when it and the model are
 * measured again, and which may take its place. The model was measured before the search: where
 * the machine has become faster since, a multiple of that is too much. */
#ifndef HWNAS_API_LIMITS_KEPT_H
#define HWNAS_API_LIMITS_KEPT_H

#include "report/optimized_text.h"

/* By how much, relative, the best's median latency is above what `constraints`, as the user wrote
 * them, allow beside the original's median; 0: nothing. NULL allows all. */
HWNAS_CHECKED hwnas_status hwnas_limit_excess(double *out, const char *constraints,
                                              const hwnas_optimized *found);

/* A network of a study's front. */
typedef struct hwnas_front_row {
    int64_t number;             /* of the trial */
    hwnas_estimate_95 accuracy; /* %, on the samples of the search */
    double median;              /* of its latency, seconds */
} hwnas_front_row;

/* The front of a study, by its goals, of those networks whose median latency was, with its whole
 * interval, `most` seconds at most; the most accurate first. `out` is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_front_below(hwnas_front_row **out, size_t *n, const char *study,
                                             double most);

#endif
