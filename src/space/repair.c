#include "space/repair.h"

#include <stdlib.h>
#include <string.h>

#include "space/among.h"
#include "space/backtrack.h"
#include "space/diagram.h"

#define FAR UINT32_MAX

struct hwnas_repair {
    hwnas_arch *near;
    const hwnas_diagram *diagram;
    uint32_t *above, *below; /* by node: the fewest changes of the genes above it and below it */
    uint32_t *parents;       /* on a way with so few changes */
    uint16_t *values;
};

static uint32_t cost(const hwnas_repair *r, uint32_t node, size_t level, size_t value)
{
    return r->diagram->nodes[node].is_active && value != r->near->genes[r->diagram->order[level]];
}

/* The value with the fewest changes on all ways down from a node. */
static size_t best_value(const hwnas_repair *r, uint32_t node, size_t level, uint32_t *changes)
{
    const hwnas_diagram *d = r->diagram;
    const size_t width = hwnas_diagram_width(d, node, level);
    size_t best = 0;
    *changes = FAR;
    for (size_t v = 0; v < width; v++) {
        const uint32_t child = hwnas_diagram_child(d, node, v);
        if (child == HWNAS_DEAD || r->below[child] == FAR)
            continue;
        const uint32_t all = cost(r, node, level, v) + r->below[child];
        if (all < *changes || (all == *changes && !cost(r, node, level, v))) {
            *changes = all;
            best = v;
        }
    }
    return best;
}

static void measure_below(hwnas_repair *r)
{
    const hwnas_diagram *d = r->diagram;
    for (size_t level = d->space->n_genes; level-- > 0;)
        for (uint32_t node = d->levels[level]; node < d->levels[level + 1]; node++)
            best_value(r, node, level, &r->below[node]);
}

static void measure_above(hwnas_repair *r)
{
    const hwnas_diagram *d = r->diagram;
    for (size_t level = 0; level < d->space->n_genes; level++)
        for (uint32_t node = d->levels[level]; node < d->levels[level + 1]; node++)
            for (size_t v = 0; r->above[node] != FAR && v < hwnas_diagram_width(d, node, level);
                 v++) {
                const uint32_t child = hwnas_diagram_child(d, node, v);
                const uint32_t all = r->above[node] + cost(r, node, level, v);
                if (child == HWNAS_DEAD || all >= r->above[child])
                    continue;
                r->above[child] = all;
                r->parents[child] = node;
                r->values[child] = (uint16_t)v;
            }
}

hwnas_repair *hwnas_repair_new(const hwnas_arch *near)
{
    hwnas_repair *r = hwnas_alloc(sizeof *r);
    const hwnas_ruleset *rules = near->space->rules;
    r->near = hwnas_arch_copy(near);
    r->diagram = rules && !near->space->among ? rules->diagram : NULL;
    if (!r->diagram || !hwnas_diagram_has_any(r->diagram))
        return r;
    const size_t n = r->diagram->levels[near->space->n_genes + 1];
    r->above = hwnas_alloc(n * sizeof *r->above);
    r->below = hwnas_alloc(n * sizeof *r->below);
    r->parents = hwnas_alloc(n * sizeof *r->parents);
    r->values = hwnas_alloc(n * sizeof *r->values);
    memset(r->above, 0xff, n * sizeof *r->above);
    r->above[0] = 0;
    measure_below(r);
    measure_above(r);
    return r;
}

void hwnas_repair_free(hwnas_repair *r)
{
    if (!r)
        return;
    hwnas_arch_free(r->near);
    free(r->above);
    free(r->below);
    free(r->parents);
    free(r->values);
    free(r);
}

static void go_down(uint16_t *genes, const hwnas_repair *r, uint32_t node, size_t level)
{
    for (uint32_t changes; level < r->diagram->space->n_genes; level++) {
        const size_t v = best_value(r, node, level, &changes);
        genes[r->diagram->order[level]] = (uint16_t)v;
        node = hwnas_diagram_child(r->diagram, node, v);
    }
}

static void go_up(uint16_t *genes, const hwnas_repair *r, uint32_t node, size_t level)
{
    while (level-- > 0) {
        genes[r->diagram->order[level]] = r->values[node];
        node = r->parents[node];
    }
}

static bool find_way(hwnas_arch *out, const hwnas_repair *r, size_t gene, size_t value)
{
    const hwnas_diagram *d = r->diagram;
    uint32_t best = HWNAS_DEAD, fewest = FAR;
    size_t level = 0;
    while (d->order[level] != gene)
        level++;
    for (uint32_t node = d->levels[level]; node < d->levels[level + 1]; node++) {
        if (!d->nodes[node].is_active || r->above[node] == FAR)
            continue;
        const uint32_t child = hwnas_diagram_child(d, node, value);
        if (child == HWNAS_DEAD || r->below[child] == FAR ||
            r->above[node] + r->below[child] >= fewest)
            continue;
        fewest = r->above[node] + r->below[child];
        best = node;
    }
    if (best == HWNAS_DEAD)
        return false;
    go_up(out->genes, r, best, level);
    out->genes[gene] = (uint16_t)value;
    go_down(out->genes, r, hwnas_diagram_child(d, best, value), level + 1);
    return true;
}

static bool find_among(hwnas_arch *out, const hwnas_repair *r, size_t gene, size_t value)
{
    const hwnas_among *among = out->space->among;
    const size_t at = hwnas_among_nearest(among, r->near->genes, gene, (uint16_t)value, NULL, NULL);
    if (at < among->n)
        memcpy(out->genes, hwnas_among_at(among, at), among->n_genes * sizeof *out->genes);
    return at < among->n;
}

bool hwnas_repair_find(hwnas_arch *out, const hwnas_repair *r, size_t gene, size_t value)
{
    const hwnas_space *space = out->space;
    const bool is_fixed = gene != SIZE_MAX;
    if (!space->has_rules) {
        hwnas_arch_assign(out, r->near);
        if (is_fixed)
            out->genes[gene] = (uint16_t)value;
        return true;
    }
    if (space->among)
        return find_among(out, r, gene, value);
    if (!space->rules || space->rules->is_empty)
        return false;
    if (r->diagram && is_fixed)
        return find_way(out, r, gene, value);
    if (r->diagram) {
        go_down(out->genes, r, 0, 0);
        return true;
    }
    hwnas_rng rng = hwnas_rng_new(hwnas_arch_hash(r->near), (uint64_t)gene << 16 | value);
    const hwnas_wish wish = {
        .near = r->near->genes, .is_fixed = is_fixed, .gene = gene, .value = (uint16_t)value};
    return hwnas_backtrack(out->genes, space->rules, &wish, &rng) == HWNAS_FOUND;
}

bool hwnas_arch_is_stuck(const hwnas_arch *arch, size_t gene)
{
    const size_t n = arch->space->genes[gene].n_values;
    if ((!arch->space->n_constraints && !arch->space->among) || n < 2 ||
        !hwnas_arch_is_active(arch, gene))
        return false;
    hwnas_arch *other = hwnas_arch_copy(arch);
    bool is_stuck = true;
    for (size_t v = 0; v < n && is_stuck; v++) {
        if (v == arch->genes[gene])
            continue;
        hwnas_arch_assign(other, arch);
        other->genes[gene] = (uint16_t)v;
        is_stuck = !hwnas_arch_settle(other);
    }
    hwnas_arch_free(other);
    return is_stuck;
}
