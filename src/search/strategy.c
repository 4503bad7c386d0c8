/* strategy.c: the table of strategies. */
#include "search/strategy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/str.h"
#include "search/proposing.h"

const hwnas_strategy_ops *hwnas_strategies[HWNAS_MAX_ROWS] = {
    &hwnas_strategy_bayesian,
    &hwnas_strategy_nsga2,
    &hwnas_strategy_regularized_evolution,
    &hwnas_strategy_local_search,
    &hwnas_strategy_successive_halving,
    &hwnas_strategy_exhaustive,
    &hwnas_strategy_random,
};

hwnas_status hwnas_register_strategy(const hwnas_strategy_ops *strategy)
{
    if (strategy && strategy->abi == HWNAS_STRATEGY_ABI && strategy->name &&
        !strcmp(strategy->name, "auto"))
        return hwnas_registry_taken("strategy", "auto");
    HWNAS_REGISTER("strategy", HWNAS_STRATEGY_ABI, hwnas_strategies, strategy);
    return HWNAS_OK;
}

const char *hwnas_strategy_checksum(void)
{
    return HWNAS_PROPOSING;
}

/* The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): streams of PCG with neighbouring
 * numbers are correlated, so trial numbers are scattered first. */
static uint64_t scatter(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

hwnas_rng hwnas_strategy_rng(const hwnas_strategy_config *config, uint64_t trial)
{
    return hwnas_rng_new(config->seed, scatter(trial));
}

bool hwnas_score_is_better(const hwnas_score *a, const hwnas_score *b, int n_objectives)
{
    if (a->violation != b->violation)
        return a->violation < b->violation;
    return hwnas_dominates(a->objectives, b->objectives, n_objectives);
}

static hwnas_status unknown(const char *name)
{
    const char *names[HWNAS_MAX_ROWS + 1] = {"auto"};
    hwnas_str list = {0};
    hwnas_str_add(&list, "auto");
    for (int i = 0; hwnas_strategies[i]; i++) {
        names[i + 1] = hwnas_strategies[i]->name;
        hwnas_str_addf(&list, ", %s", names[i + 1]);
    }
    const char *near = hwnas_nearest(name, names);
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, NULL, "there is no strategy '%s'", name);
    status = near ? hwnas_hint(status, "did you mean '%s'? There are: %s", near, list.s)
                  : hwnas_hint(status, "there are: %s", list.s);
    hwnas_str_done(&list);
    return status;
}

/* What can be refused before the first trial. */
static hwnas_status check(const hwnas_strategy_ops *ops, const hwnas_strategy_config *config)
{
    if (ops->max_objectives && config->n_objectives > ops->max_objectives)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "the strategy '%s' has one objective, not %d", ops->name,
                                     config->n_objectives),
                          "bayesian, nsga2 and local-search find the front of several; or turn all "
                          "but one into constraints");
    uint64_t least = ops->min_trials ? ops->min_trials(config) : 0;
    if (config->max_trials && config->max_trials < least)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "a budget of %llu trials is too small for '%s': it needs %llu",
                                     (unsigned long long)config->max_trials, ops->name,
                                     (unsigned long long)least),
                          "'auto' chooses a strategy for the budget");
    return HWNAS_OK;
}

hwnas_status hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                const hwnas_strategy_config *config)
{
    assert(config->n_objectives >= 1 && config->n_objectives <= HWNAS_MAX_OBJECTIVES);
    char *why = NULL;
    if (!strcmp(name, "auto"))
        name = hwnas_strategy_choose(&why, config);
    free(why);
    for (int i = 0; hwnas_strategies[i]; i++) {
        if (strcmp(hwnas_strategies[i]->name, name))
            continue;
        TRY(check(hwnas_strategies[i], config));
        return hwnas_strategies[i]->create(out, config);
    }
    return unknown(name);
}

void hwnas_strategy_free(hwnas_strategy *strategy)
{
    if (strategy)
        strategy->ops->free(strategy);
}
