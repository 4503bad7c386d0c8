/* suggest.h: which networks to train, when there is money for a few only.
 *
 * Among a pool of random networks that differ, those are picked whose results would say most about
 * the others: one after another the one that most reduces the variance, averaged over the pool, of
 * a Gaussian process (Cohn, "Neural network exploration using optimal experiment design", NIPS
 * 1994; by kernel, Seo et al., "Gaussian process regression: active data selection and test point
 * rejection", IJCNN 2000). The process sees an architecture's choices and figures: logarithms of
 * its multiply-accumulates, parameters and activation memory, and proxies if asked. Nothing is
 * learned: the variance does not depend on results. */
#ifndef HWNAS_PREDICT_SUGGEST_H
#define HWNAS_PREDICT_SUGGEST_H

#include "space/arch.h"

typedef struct hwnas_suggest_options {
    size_t n;          /* networks to pick */
    size_t pool;       /* to pick from; 0: 500, and at least 4 n */
    uint64_t seed;     /* of the pool */
    const char *proxy; /* (optional) one more figure, "synflow" */
    size_t n_known;    /* networks with results already: not picked, and what they say counts */
    const hwnas_arch *const *known;
    /* (optional) By how much a network misses limits, 0: it meets them. Those that miss one are
     * picked only where too few meet them, the nearest ones first. */
    double (*violation)(void *context, const hwnas_arch *arch);
    void *context;
} hwnas_suggest_options;

/* `out` has room for options->n; the architectures are yours. HWNAS_E_INPUT when the space has not
 * so many different networks. */
HWNAS_CHECKED hwnas_status hwnas_suggest(hwnas_arch **out, const hwnas_space *space,
                                         const hwnas_suggest_options *options);

#endif
