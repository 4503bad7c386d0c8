/* outline.h: of a study's trials what fronts and counts need. Most of a large study is never shown.
 */
#ifndef HWNAS_STORE_OUTLINE_H
#define HWNAS_STORE_OUTLINE_H

#include "store/store.h"

typedef struct hwnas_outline_wish {
    size_t n_metrics;
    const char *const *metrics; /* values that are to be read */
    /* Is given what the detail of the trial at `index` has of them, as hwnas_event says; only of
     * those that have something. (optional) */
    void (*see_detail)(void *context, size_t index, double run_seconds, double estimate);
    void *context;
} hwnas_outline_wish;

/* All trials by number, as hwnas_store_trials() gives them, but without detail, digest and seconds;
 * with code and message only of those that failed; with values only of the metrics that are wished,
 * estimates and those of a part of the samples. */
HWNAS_CHECKED hwnas_status hwnas_store_outlines(hwnas_trial **out, size_t *n, hwnas_store *store,
                                                const hwnas_outline_wish *wish);
/* Makes these whole: code, digest, detail, message, seconds and all values as they are in the
 * store. HWNAS_E_INPUT: one is not there. */
HWNAS_CHECKED hwnas_status hwnas_store_fill(hwnas_trial *const *trials, size_t n,
                                            hwnas_store *store);

#endif
