/* trust.h: whether the model predicts what it proposes: the rank of the last trials, foretold from
 * those before them.
 *
 * A front can be found without a model, by evolution or local search. Where the model does not
 * rank its own proposals, these take over, objective by objective. */
#ifndef HWNAS_SEARCH_TRUST_H
#define HWNAS_SEARCH_TRUST_H

#include "search/surrogate.h"

typedef struct hwnas_trust {
    size_t n_checked;                   /* trials at the last check; 0: none yet */
    double ranks[HWNAS_MAX_OBJECTIVES]; /* Kendall's tau of foretold and told, by objective; NaN:
                                           not known */
    double share; /* of the proposals that go without the model, from 0 to 1 */
} hwnas_trust;

/* Checks where there are enough trials since the last time; what it then says is a function of the
 * trials alone, in the order of their tells. */
HWNAS_CHECKED hwnas_status hwnas_trust_update(hwnas_trust *trust,
                                              const hwnas_strategy_config *config,
                                              const hwnas_told *told, size_t n);

/* Some of the trials are not what they were: the next call checks anew. */
void hwnas_trust_forget(hwnas_trust *trust);

#endif
