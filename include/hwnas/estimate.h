/* estimate.h: predictors, which estimate the accuracy of a network without training it. */
#ifndef HWNAS_PUBLIC_ESTIMATE_H
#define HWNAS_PUBLIC_ESTIMATE_H

#include <hwnas/network.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hwnas_predictor hwnas_predictor;

typedef struct hwnas_estimate {
    /* In the predictor's unit. sd 0: exact as published; NaN: none is claimed. */
    double mean, sd;
    bool is_trained; /* the result of a training made for the asking, no estimate */
    bool is_outside; /* the network has values, or a size, that the predictor has not learned from */
} hwnas_estimate;

/* `name`: a file, the name of a predictor that ships, "table:FILE#COLUMN", or another kind and what
 * it takes (docs/predictors.md). One fitted on another space is HWNAS_E_INPUT, unless it was fitted
 * for any. The space is borrowed. Milliseconds; a large table up to a second. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_open(hwnas_predictor **out, const char *name,
                                                          const hwnas_space *space);
HWNAS_API void hwnas_predictor_close(hwnas_predictor *predictor);

/* The column that it estimates, "val_top1_pct", and its unit, "%"; "": none is known. */
HWNAS_API const char *hwnas_predictor_target(const hwnas_predictor *predictor);
HWNAS_API const char *hwnas_predictor_unit(const hwnas_predictor *predictor);

/* Whether its scores take so long, as those that train, that they look at the flag below. */
HWNAS_API bool hwnas_predictor_heeds_stop(const hwnas_predictor *predictor);
/* Once `stop` is nonzero, set in a signal handler or another thread, such a score ends with
 * HWNAS_E_INTERRUPTED. Borrowed as long as the predictor is open. */
HWNAS_API void hwnas_predictor_stop_on(hwnas_predictor *predictor,
                                       const volatile sig_atomic_t *stop);

/* Scores n networks: out[i] is of codes[i]. All or none. Many at a time are cheaper than one by
 * one; a predictor that trains, or runs a proxy, takes its time. HWNAS_E_NOT_FOUND: a table has no
 * row. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_score_codes(hwnas_estimate *out,
                                                                 hwnas_predictor *predictor,
                                                                 const char *const *codes,
                                                                 size_t n);

#ifdef __cplusplus
}
#endif
#endif
