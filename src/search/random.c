/* random.c: uniform over the encodings, none twice. The yardstick for every other strategy. */
#include "search/seen.h"
#include "search/strategy.h"

#include <stdlib.h>

typedef struct random_search {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_seen seen;
} random_search;

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    random_search *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_random;
    search->config = *config;
    hwnas_seen_init(&search->seen, config->space);
    *out = &search->base;
    return HWNAS_OK;
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    random_search *search = (random_search *)strategy;
    hwnas_rng rng = hwnas_strategy_rng(&search->config, trial);
    TRY(hwnas_seen_sample_new(&search->seen, out, &rng));
    hwnas_seen_add(&search->seen, out);
    return HWNAS_OK;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    random_search *search = (random_search *)strategy;
    (void)trial;
    (void)score;
    hwnas_seen_add(&search->seen, arch);
    return HWNAS_OK;
}

static void destroy(hwnas_strategy *strategy)
{
    random_search *search = (random_search *)strategy;
    hwnas_seen_done(&search->seen);
    free(search);
}

static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    (void)trial;
    hwnas_seen_add(&((random_search *)strategy)->seen, arch);
}

const hwnas_strategy_ops hwnas_strategy_random = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "random",
    .help = "uniform sampling without repeats",
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
    .note = note,
};
