/* strategy.c: the table of strategies. */
#include "search/strategy.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

const hwnas_strategy_ops *const hwnas_strategies[] = {
    &hwnas_strategy_nsga2,
    &hwnas_strategy_random,
    NULL,
};

enum { N_STRATEGIES = sizeof hwnas_strategies / sizeof *hwnas_strategies - 1 };

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

static hwnas_status unknown(const char *name)
{
    const char *names[N_STRATEGIES + 1] = {NULL};
    hwnas_str list = {0};
    for (int i = 0; i < N_STRATEGIES; i++) {
        names[i] = hwnas_strategies[i]->name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = hwnas_nearest(name, names);
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, NULL, "there is no strategy '%s'", name);
    status = near ? hwnas_hint(status, "did you mean '%s'? There are: %s", near, list.s)
                  : hwnas_hint(status, "there are: %s", list.s);
    hwnas_str_done(&list);
    return status;
}

hwnas_status hwnas_strategy_new(hwnas_strategy **out, const char *name,
                                const hwnas_strategy_config *config)
{
    assert(config->n_objectives >= 1 && config->n_objectives <= HWNAS_MAX_OBJECTIVES);
    for (int i = 0; i < N_STRATEGIES; i++)
        if (!strcmp(hwnas_strategies[i]->name, name))
            return hwnas_strategies[i]->create(out, config);
    return unknown(name);
}

void hwnas_strategy_free(hwnas_strategy *strategy)
{
    if (strategy)
        strategy->ops->free(strategy);
}
