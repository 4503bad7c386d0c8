/* local_search.c: hill climbing by first improvement (White, Nolen and Savani, "Exploring the Loss
 * Landscape in Neural Architecture Search", UAI 2021), with several objectives as Pareto local
 * search (Paquete, Chiarandini and Stuetzle 2004): the climb is the set of networks that no other
 * of it dominates, and each of their neighbours is tried. When all are, a new climb begins.
 *
 * What a trial is to the climb is decided when it is told, so that it follows from the order of
 * the tells alone. That a member is explored is only noted, to save looking again: no draw depends
 * on whether the note is there, as a search that is continued begins without notes. */
#include "search/neighbours.h"
#include "search/seen.h"
#include "search/strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    hwnas_arch *arch;
    hwnas_score score;
    uint64_t trial;
    bool is_explored; /* each neighbour has been proposed */
} member;

typedef struct local_search {
    hwnas_strategy base;
    hwnas_strategy_config config;
    hwnas_seen seen;
    size_t n, capacity;
    member *members; /* of the present climb, by age */
} local_search;

static hwnas_status create(hwnas_strategy **out, const hwnas_strategy_config *config)
{
    local_search *search = hwnas_alloc(sizeof *search);
    search->base.ops = &hwnas_strategy_local_search;
    search->config = *config;
    hwnas_seen_init(&search->seen, config->space);
    *out = &search->base;
    return HWNAS_OK;
}

static void clear(local_search *search)
{
    for (size_t i = 0; i < search->n; i++)
        hwnas_arch_free(search->members[i].arch);
    search->n = 0;
}

static void destroy(hwnas_strategy *strategy)
{
    local_search *search = (local_search *)strategy;
    clear(search);
    free(search->members);
    hwnas_seen_done(&search->seen);
    free(search);
}

/* A neighbour that was not proposed, drawn at random; false, and nothing is drawn, when there is
 * none. */
static bool draw_neighbour(const local_search *search, const hwnas_arch *of, hwnas_arch *out,
                           hwnas_rng *rng)
{
    hwnas_neighbours all;
    size_t n_new = 0;
    hwnas_neighbours_of(&all, of);
    for (size_t i = 0; i < all.n; i++)
        if (!hwnas_seen_has(&search->seen, all.archs[i])) {
            hwnas_arch *new = all.archs[i];
            all.archs[i] = all.archs[n_new];
            all.archs[n_new++] = new;
        }
    if (n_new)
        hwnas_arch_assign(out, all.archs[hwnas_rng_below(rng, (uint32_t)n_new)]);
    hwnas_neighbours_done(&all);
    return n_new > 0;
}

/* A step from a member drawn at random among those that are not explored. */
static bool draw_step(local_search *search, hwnas_arch *out, hwnas_rng *rng)
{
    size_t *order = hwnas_alloc((search->n + 1) * sizeof *order);
    bool found = false;
    for (size_t i = 0; i < search->n; i++) {
        size_t j = hwnas_rng_below(rng, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < search->n && !found; i++) {
        member *m = &search->members[order[i]];
        found = !m->is_explored && draw_neighbour(search, m->arch, out, rng);
        m->is_explored = !found;
    }
    free(order);
    return found;
}

static hwnas_status ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    local_search *search = (local_search *)strategy;
    hwnas_rng rng = hwnas_strategy_rng(&search->config, trial);
    if (!draw_step(search, out, &rng))
        TRY(hwnas_seen_sample_new(&search->seen, out, &rng));
    hwnas_seen_add(&search->seen, out);
    return HWNAS_OK;
}

static bool is_neighbour(const local_search *search, const hwnas_arch *arch)
{
    bool found = false;
    for (size_t i = 0; i < search->n && !found; i++) {
        hwnas_neighbours all;
        hwnas_neighbours_of(&all, search->members[i].arch);
        for (size_t k = 0; k < all.n && !found; k++)
            found = hwnas_arch_equal(all.archs[k], arch);
        hwnas_neighbours_done(&all);
    }
    return found;
}

/* The climb has nowhere to go, and this trial is not a part of it. */
static bool begins_anew(local_search *search, const hwnas_arch *arch)
{
    hwnas_arch *step = hwnas_arch_new(search->config.space);
    hwnas_rng rng = hwnas_rng_new(0, 0); /* any: whether there is a step, not which */
    bool goes_on = draw_step(search, step, &rng);
    hwnas_arch_free(step);
    return !goes_on && !is_neighbour(search, arch);
}

static void join(local_search *search, uint64_t trial, const hwnas_arch *arch,
                 const hwnas_score *score)
{
    int m = search->config.n_objectives;
    size_t n = 0;
    for (size_t i = 0; i < search->n; i++) {
        const hwnas_score *old = &search->members[i].score;
        bool is_equal = old->violation == score->violation &&
                        !memcmp(old->objectives, score->objectives, (size_t)m * sizeof(double));
        if (is_equal || hwnas_score_is_better(old, score, m))
            return;
    }
    for (size_t i = 0; i < search->n; i++) {
        if (hwnas_score_is_better(score, &search->members[i].score, m))
            hwnas_arch_free(search->members[i].arch);
        else
            search->members[n++] = search->members[i];
    }
    search->n = n;
    HWNAS_GROW(search->members, search->n, search->capacity);
    search->members[search->n++] =
        (member){.arch = hwnas_arch_copy(arch), .score = *score, .trial = trial};
}

/* Of a trial that is told again; false: it is none of the climb. */
static bool forget(local_search *search, uint64_t trial)
{
    for (size_t i = 0; i < search->n; i++)
        if (search->members[i].trial == trial) {
            hwnas_arch_free(search->members[i].arch);
            search->n--;
            memmove(&search->members[i], &search->members[i + 1],
                    (search->n - i) * sizeof *search->members);
            return true;
        }
    return false;
}

static hwnas_status tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                         const hwnas_score *score)
{
    local_search *search = (local_search *)strategy;
    hwnas_seen_add(&search->seen, arch);
    const bool is_again = forget(search, trial);
    if (isinf(score->violation))
        return HWNAS_OK;
    if (!is_again && search->n && begins_anew(search, arch))
        clear(search);
    join(search, trial, arch, score);
    return HWNAS_OK;
}

static void note(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch)
{
    (void)trial;
    hwnas_seen_add(&((local_search *)strategy)->seen, arch);
}

const hwnas_strategy_ops hwnas_strategy_local_search = {
    .abi = HWNAS_STRATEGY_ABI,
    .name = "local-search",
    .help = "tries the neighbours of the best, and begins anew when none is better",
    .seeks_feasible = true,
    .create = create,
    .ask = ask,
    .tell = tell,
    .free = destroy,
    .note = note,
};
