/* strategy.c: a strategy `climb`: from a few random networks it goes on from the best one, a change
 * at a time, and begins anew where it finds nothing that was not tried. */
#include <stdlib.h>

#include "parts.h"

enum { RANDOM_FIRST = 8, TRIES = 32 };

typedef struct climb {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_seen seen;
    hwnas_arch *best; /* NULL: nothing is known yet */
    hwnas_score best_score;
    uint64_t best_trial;
} climb;

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    climb *c = calloc(1, sizeof *c);
    if (!c)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for a strategy");
    c->base.ops = &climb_strategy;
    c->config = *config;
    hwnas_seen_init(&c->seen, config->space);
    *out = &c->base;
    return HWNAS_OK;
}

/* What a trial proposes follows from the seed, its number and what was told: so a search that was
 * killed goes on as it would have. */
static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    climb *c = (climb *)strategy;
    hwnas_rng rng = hwnas_strategy_rng(&c->config, trial);
    bool is_new = false;
    for (int i = 0; i < TRIES && !is_new && c->best && trial >= RANDOM_FIRST; i++) {
        hwnas_arch_assign(out, c->best);
        hwnas_arch_mutate(out, i < TRIES / 2 ? 0 : 0.3, &rng);
        is_new = !hwnas_seen_has(&c->seen, out);
    }
    if (!is_new) {
        const hwnas_status status = hwnas_seen_sample_new(&c->seen, out, &rng);
        if (status != HWNAS_OK)
            return status; /* HWNAS_E_EXHAUSTED ends the search */
    }
    hwnas_seen_add(&c->seen, out);
    return HWNAS_OK;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    climb *c = (climb *)strategy;
    hwnas_seen_add(&c->seen, arch);
    /* An estimate is told again as it was measured. */
    if (c->best && c->best_trial != trial &&
        !hwnas_score_is_better(score, &c->best_score, c->config.n_objectives))
        return HWNAS_OK;
    if (!c->best)
        c->best = hwnas_arch_copy(arch);
    hwnas_arch_assign(c->best, arch);
    c->best_score = *score;
    c->best_trial = trial;
    return HWNAS_OK;
}

static void destroy(hwnas_strategy *strategy)
{
    climb *c = (climb *)strategy;
    hwnas_seen_done(&c->seen);
    hwnas_arch_free(c->best);
    free(c);
}

const hwnas_strategy_ops climb_strategy = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "climb",
    .help = "an example: on from the best network",
    .seeks_feasible = true,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
};
