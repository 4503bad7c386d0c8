/* exhaustive.c: every encoding of a small space, in lexical order. */
#include "search/seen.h"
#include "search/strategy.h"

#include <stdlib.h>

/* Of a larger space nobody awaits the end, and a part in lexical order says nothing of the rest. */
#define MAX_SPACE ((uint64_t)1000000)

typedef struct exhaustive {
    hwnas_strategy base;
    hwnas_seen seen;
    hwnas_arch *next; /* NULL after the last */
} exhaustive;

static uint64_t min_trials(const hwnas_strategy_config *config)
{
    return hwnas_space_count_up_to(config->space, MAX_SPACE);
}

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    if (!hwnas_space_count_up_to(config->space, MAX_SPACE))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "the space '%s' is too large for 'exhaustive': more than %llu "
                                     "networks",
                                     config->space->name, (unsigned long long)MAX_SPACE),
                          "'auto' chooses a strategy for the space");
    exhaustive *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_exhaustive;
    search->next = hwnas_arch_first(config->space);
    hwnas_seen_init(&search->seen, config->space);
    *out = &search->base;
    return HWNAS_OK;
}

static void destroy(hwnas_strategy *strategy)
{
    exhaustive *search = (exhaustive *)strategy;
    hwnas_arch_free(search->next);
    hwnas_seen_done(&search->seen);
    free(search);
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    exhaustive *search = (exhaustive *)strategy;
    (void)trial;
    while (search->next && hwnas_seen_has(&search->seen, search->next))
        if (!hwnas_arch_next(search->next)) {
            hwnas_arch_free(search->next);
            search->next = NULL;
        }
    if (!search->next)
        return hwnas_seen_all(&search->seen);
    hwnas_arch_assign(out, search->next);
    hwnas_seen_add(&search->seen, out);
    return HWNAS_OK;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    exhaustive *search = (exhaustive *)strategy;
    (void)trial;
    (void)score;
    hwnas_seen_add(&search->seen, arch);
    return HWNAS_OK;
}

static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    (void)trial;
    hwnas_seen_add(&((exhaustive *)strategy)->seen, arch);
}

const hwnas_strategy_ops hwnas_strategy_exhaustive = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "exhaustive",
    .help = "every network of a small space",
    .min_trials = min_trials,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
    .note = note,
};
