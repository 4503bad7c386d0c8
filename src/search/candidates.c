#include "search/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/neighbours.h"
#include "search/strategy.h"

enum { RANDOM_STREAM = 1002 };

/* Random networks come from one sequence, which grows with each trial from this length. */
enum { FIRST_RANDOM = 512 };

#define SMALL_SPACE 50000

const hwnas_effort *hwnas_effort_for(const hwnas_seen *seen)
{
    static const hwnas_effort small = {4e7, 48, 64, 1000000, HWNAS_MAX_CLIMBERS, 48};
    static const hwnas_effort large = {1.5e7, 24, 8, 4096, 2, 16};
    return seen->space_size && seen->space_size <= SMALL_SPACE ? &small : &large;
}

void hwnas_candidates_done(hwnas_candidates *candidates)
{
    free(candidates->encodings);
    memset(candidates, 0, sizeof *candidates);
}

static void add(hwnas_candidates *c, const hwnas_arch *arch)
{
    if (c->n >= c->limit || hwnas_seen_has(c->seen, arch))
        return;
    hwnas_codebook_entry *entry = hwnas_codebook_get(c->book, arch);
    if (entry->mark == c->mark)
        return;
    entry->mark = c->mark;
    if (!entry->can_be_built || hwnas_duplicates_has(c->duplicates, &entry->encoding))
        return;
    HWNAS_GROW(c->encodings, c->n, c->capacity);
    c->encodings[c->n++] = &entry->encoding;
}

void hwnas_candidates_add_all(hwnas_candidates *c)
{
    hwnas_arch *arch = hwnas_arch_first(c->seen->space);
    do
        add(c, arch);
    while (hwnas_arch_next(arch));
    hwnas_arch_free(arch);
}

void hwnas_candidates_add_neighbours(hwnas_candidates *c, const hwnas_encoding *const *parents,
                                     size_t n, size_t max_of_each, hwnas_rng *rng)
{
    size_t *order = hwnas_alloc((n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        size_t j = hwnas_rng_below(rng, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < n && c->n < c->limit; i++) {
        hwnas_neighbours all;
        hwnas_neighbours_of(&all, parents[order[i]]->arch);
        if (all.n > max_of_each)
            hwnas_neighbours_shuffle(&all, rng);
        for (size_t k = 0; k < all.n && k < max_of_each; k++)
            add(c, all.archs[k]);
        hwnas_neighbours_done(&all);
    }
    free(order);
}

void hwnas_candidates_add_distant(hwnas_candidates *c, const hwnas_encoding *const *parents,
                                  size_t n, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(c->seen->space);
    for (int i = 0; i < hwnas_effort_for(c->seen)->n_distant; i++) {
        const hwnas_arch *a = parents[hwnas_rng_below(rng, (uint32_t)n)]->arch;
        const hwnas_arch *b = parents[hwnas_rng_below(rng, (uint32_t)n)]->arch;
        hwnas_arch_assign(arch, a);
        if (a == b || i % 2)
            hwnas_arch_mutate(arch, 0, rng);
        else
            hwnas_arch_cross(arch, a, b, rng);
        hwnas_arch_mutate(arch, 0, rng);
        add(c, arch);
    }
    hwnas_arch_free(arch);
}

void hwnas_candidates_add_random(hwnas_candidates *c, uint64_t seed, uint64_t trial, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(c->seen->space);
    const hwnas_effort *effort = hwnas_effort_for(c->seen);
    double length = FIRST_RANDOM + effort->more_random * (double)trial;
    uint32_t n = (uint32_t)fmin(effort->max_random, length);
    for (size_t tries = 0; tries < c->limit && c->n < c->limit; tries++) {
        hwnas_rng of_one = hwnas_strategy_rng(
            &(hwnas_strategy_config){.seed = seed + RANDOM_STREAM}, hwnas_rng_below(rng, n));
        if (hwnas_arch_sample(arch, &of_one))
            add(c, arch);
    }
    hwnas_arch_free(arch);
}
