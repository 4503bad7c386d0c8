/* choose.c: what "auto" stands for. */
#include <inttypes.h>

#include "base/str.h"
#include "search/strategy.h"

/* Below this many trials a model has nothing to learn from. */
enum { FEW_TRIALS = 16 };

/* What a proposal of `bayesian` may take, and the number of trials from which that counts: a search
 * whose trials are cheaper than advice is better off with more of them. */
#define ADVICE_SECONDS 0.01
enum { MANY_TRIALS = 5000 };

const char *hwnas_strategy_choose(char **why, const hwnas_strategy_config *config)
{
    uint64_t budget = config->max_trials;
    uint64_t size = hwnas_space_count_up_to(config->space, budget ? budget : FEW_TRIALS);
    /* A front of several objectives has whole evaluations alone, and more of them are made without
     * rungs: docs/training.md has what that is worth. */
    if (config->n_rungs > 1 && config->n_objectives == 1 &&
        (!budget || budget >= hwnas_strategy_successive_halving.min_trials(config))) {
        *why = hwnas_printf("there are %d ways to evaluate a network, from cheap to dear",
                            config->n_rungs);
        return "successive-halving";
    }
    if (size) {
        *why = hwnas_printf("the space has no more than %" PRIu64 " networks: all are tried", size);
        return "exhaustive";
    }
    if (budget && budget < FEW_TRIALS) {
        *why = hwnas_printf("%" PRIu64 " trials are too few for a model to learn from", budget);
        return "random";
    }
    bool is_cheap = config->trial_seconds > 0 && config->trial_seconds < ADVICE_SECONDS;
    if (is_cheap && (!budget || budget > MANY_TRIALS)) {
        *why = hwnas_strdup("a trial takes less time than a model's advice on it");
        return "nsga2";
    }
    *why = budget ? hwnas_printf("a model makes most of %" PRIu64 " trials", budget)
                  : hwnas_strdup("a model makes most of each trial");
    return "bayesian";
}
