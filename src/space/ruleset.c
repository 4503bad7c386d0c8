#include "space/ruleset.h"

#include <stdlib.h>
#include <string.h>

/* Looks at expressions that finding the genes of all rules may take, and genes of all rules. */
enum { MAX_WORK = 1 << 24, MAX_LINKS = 1 << 22 };

static void add_rule(hwnas_ruleset *rules, const hwnas_rule *rule)
{
    rules->rules[rules->n++] = *rule;
}

/* What the rule looks at while nothing is known; false: too much. */
static bool find_genes(hwnas_rule *rule, hwnas_partial *partial, size_t *n_links,
                       hwnas_arena *arena)
{
    const size_t n = partial->space->n_genes;
    memset(partial->is_seen, 0, n);
    partial->arena = hwnas_arena_new();
    rule->truth = hwnas_partial_truth(partial, rule->expr, rule->position);
    hwnas_arena_free(partial->arena);
    if (rule->truth != HWNAS_OPEN)
        return partial->work < MAX_WORK;
    for (size_t g = 0; g < n; g++)
        rule->n_genes += partial->is_seen[g];
    *n_links += rule->n_genes;
    if (*n_links > MAX_LINKS || partial->work > MAX_WORK)
        return false;
    rule->genes = hwnas_arena_alloc(arena, rule->n_genes * sizeof *rule->genes);
    size_t k = 0;
    for (size_t g = 0; g < n; g++)
        if (partial->is_seen[g])
            rule->genes[k++] = (uint32_t)g;
    return true;
}

static void link_genes(hwnas_ruleset *rules, hwnas_arena *arena)
{
    const size_t n = rules->space->n_genes;
    rules->n_touching = hwnas_arena_alloc(arena, (n + 1) * sizeof *rules->n_touching);
    rules->touching = hwnas_arena_alloc(arena, (n + 1) * sizeof *rules->touching);
    for (size_t r = 0; r < rules->n; r++)
        for (size_t i = 0; i < rules->rules[r].n_genes; i++)
            rules->n_touching[rules->rules[r].genes[i]]++;
    for (size_t g = 0; g < n; g++)
        rules->touching[g] =
            hwnas_arena_alloc(arena, (rules->n_touching[g] + 1) * sizeof **rules->touching);
    memset(rules->n_touching, 0, n * sizeof *rules->n_touching);
    for (size_t r = 0; r < rules->n; r++)
        for (size_t i = 0; i < rules->rules[r].n_genes; i++) {
            const size_t g = rules->rules[r].genes[i];
            rules->touching[g][rules->n_touching[g]++] = (uint32_t)r;
        }
}

hwnas_ruleset *hwnas_ruleset_new(const hwnas_space *space, const bool *mask, hwnas_arena *arena)
{
    const size_t n = space->n_genes;
    hwnas_ruleset *rules = hwnas_arena_alloc(arena, sizeof *rules);
    rules->space = space;
    rules->rules = hwnas_arena_alloc(arena, (space->n_constraints + n + 1) * sizeof *rules->rules);
    rules->condition = hwnas_arena_alloc(arena, (n + 1) * sizeof *rules->condition);
    for (size_t i = 0; i < space->n_constraints; i++)
        if (!mask || mask[i])
            add_rule(rules, &(hwnas_rule){.expr = space->constraints[i]});
    for (size_t g = 0; g < n; g++) {
        const hwnas_expr *when = space->choices[space->genes[g].choice].when;
        rules->condition[g] = when ? rules->n : HWNAS_NO_RULE;
        if (when)
            add_rule(rules, &(hwnas_rule){.expr = when,
                                          .is_condition = true,
                                          .gene = g,
                                          .position = space->genes[g].position});
    }
    hwnas_partial partial = {.space = space,
                             .genes = hwnas_alloc(n * sizeof(uint16_t)),
                             .is_known = hwnas_alloc(n),
                             .is_seen = hwnas_alloc(n)};
    bool is_small = true;
    for (size_t r = 0; r < rules->n && is_small; r++)
        is_small = find_genes(&rules->rules[r], &partial, &rules->n_links, arena);
    if (is_small)
        link_genes(rules, arena);
    free((void *)partial.genes);
    free((void *)partial.is_known);
    free(partial.is_seen);
    hwnas_partial_done(&partial);
    return is_small ? rules : NULL;
}

/* ---- Order ---- */

typedef struct ordering {
    const hwnas_ruleset *rules;
    bool *is_placed;  /* by gene */
    size_t *n_left;   /* by rule: genes of it, and the one that it decides on, not placed yet */
    size_t *n_before; /* by gene: genes that its condition looks at, not placed yet */
} ordering;

static size_t n_members(const hwnas_rule *rule)
{
    return rule->truth == HWNAS_OPEN ? rule->n_genes + rule->is_condition : 0;
}

/* How good it is to place the gene next: first what ends rules, then what goes on with those that
 * are begun. */
static double merit_of_rule(const ordering *o, size_t r)
{
    const size_t n = n_members(&o->rules->rules[r]);
    if (!n)
        return 0;
    if (o->n_left[r] == 1)
        return 4;
    const double placed = (double)(n - o->n_left[r]) / (double)n;
    return o->n_left[r] == n ? -1 : placed;
}

static double merit(const ordering *o, size_t g)
{
    double sum = 0;
    for (size_t i = 0; i < o->rules->n_touching[g]; i++)
        sum += merit_of_rule(o, o->rules->touching[g][i]);
    if (o->rules->condition[g] != HWNAS_NO_RULE)
        sum += merit_of_rule(o, o->rules->condition[g]);
    return sum;
}

static void place(ordering *o, size_t g)
{
    o->is_placed[g] = true;
    for (size_t i = 0; i < o->rules->n_touching[g]; i++) {
        const size_t r = o->rules->touching[g][i];
        o->n_left[r]--;
        if (o->rules->rules[r].is_condition)
            o->n_before[o->rules->rules[r].gene]--;
    }
    const size_t own = o->rules->condition[g];
    if (own != HWNAS_NO_RULE && o->n_left[own])
        o->n_left[own]--;
}

static size_t best_next(const ordering *o)
{
    size_t best = SIZE_MAX;
    double best_merit = 0;
    for (size_t g = 0; g < o->rules->space->n_genes; g++) {
        if (o->is_placed[g] || o->n_before[g])
            continue;
        const double m = merit(o, g);
        if (best == SIZE_MAX || m > best_merit) {
            best = g;
            best_merit = m;
        }
    }
    return best;
}

uint32_t *hwnas_ruleset_order(const hwnas_ruleset *rules, bool is_of_file, hwnas_arena *arena)
{
    const size_t n = rules->space->n_genes;
    uint32_t *order = hwnas_arena_alloc(arena, (n + 1) * sizeof *order);
    for (size_t g = 0; g < n; g++)
        order[g] = (uint32_t)g;
    if (is_of_file)
        return order;
    ordering o = {.rules = rules,
                  .is_placed = hwnas_alloc(n),
                  .n_left = hwnas_alloc(rules->n * sizeof *o.n_left),
                  .n_before = hwnas_alloc(n * sizeof *o.n_before)};
    for (size_t r = 0; r < rules->n; r++) {
        o.n_left[r] = n_members(&rules->rules[r]);
        if (rules->rules[r].is_condition)
            o.n_before[rules->rules[r].gene] = rules->rules[r].n_genes;
    }
    for (size_t k = 0; k < n; k++) {
        order[k] = (uint32_t)best_next(&o);
        place(&o, order[k]);
    }
    free(o.is_placed);
    free(o.n_left);
    free(o.n_before);
    return order;
}
