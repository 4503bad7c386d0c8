/* vary.c: random architectures, changed and crossed ones, and all of them one after the other. */
#include <stdlib.h>
#include <string.h>

#include "space/among.h"
#include "space/arch.h"
#include "space/backtrack.h"
#include "space/diagram.h"
#include "space/repair.h"

enum {
    TRIES = 64, /* values at random, before the rules decide on each */
    TRIES_WITHOUT_DIAGRAM = 256,
    REPAIRS = 16, /* changes that need others, in one mutation */
};

/* Below it random values are not tried: most would be in vain. */
static const double LEAST_ACCEPTANCE = 0.125;

static void take(hwnas_arch *arch, size_t at)
{
    memcpy(arch->genes, hwnas_among_at(arch->space->among, at),
           arch->space->n_genes * sizeof *arch->genes);
}

/* ---- Sampling ---- */

static void sample_plain(hwnas_arch *arch, hwnas_rng *rng)
{
    for (size_t i = 0; i < arch->space->n_genes; i++)
        arch->genes[i] = (uint16_t)hwnas_rng_below(rng, (uint32_t)arch->space->genes[i].n_values);
}

static const hwnas_diagram *diagram_of(const hwnas_space *space)
{
    return space->rules ? space->rules->diagram : NULL;
}

static int tries_of(const hwnas_space *space)
{
    const hwnas_diagram *diagram = diagram_of(space);
    if (!diagram)
        return TRIES_WITHOUT_DIAGRAM;
    return diagram->acceptance >= LEAST_ACCEPTANCE ? TRIES : 0;
}

/* By the rules; where there is a diagram, with the same chances as by trying again. */
static bool sample_by_rules(hwnas_arch *arch, hwnas_rng *rng)
{
    const hwnas_ruleset *rules = arch->space->rules;
    if (!rules || rules->is_empty)
        return false;
    if (!rules->diagram)
        return hwnas_backtrack(arch->genes, rules, NULL, rng) == HWNAS_FOUND;
    hwnas_diagram_draw(arch->genes, rules->diagram, rules->diagram->mass, rng);
    return true;
}

bool hwnas_arch_sample(hwnas_arch *arch, hwnas_rng *rng)
{
    const hwnas_space *space = arch->space;
    if (!space->has_rules) {
        sample_plain(arch, rng);
        return true;
    }
    if (space->among) {
        take(arch, hwnas_rng_below(rng, (uint32_t)space->among->n));
        return true;
    }
    hwnas_arch *drawn = hwnas_arch_new(space);
    bool found = false;
    const int n = tries_of(space);
    for (int i = 0; i < n && !found; i++) {
        sample_plain(drawn, rng);
        found = hwnas_arch_settle(drawn);
    }
    found = found || sample_by_rules(drawn, rng);
    if (found)
        hwnas_arch_assign(arch, drawn);
    hwnas_arch_free(drawn);
    return found;
}

bool hwnas_arch_sample_evenly(hwnas_arch *arch, hwnas_rng *rng)
{
    const hwnas_diagram *diagram = diagram_of(arch->space);
    if (!diagram || !hwnas_diagram_has_any(diagram) || arch->space->among)
        return hwnas_arch_sample(arch, rng);
    hwnas_diagram_draw(arch->genes, diagram, diagram->share, rng);
    return true;
}

/* ---- Mutation ---- */

/* Another value for gene i, uniform over the others. */
static void change(hwnas_arch *arch, size_t i, hwnas_rng *rng)
{
    uint32_t n = (uint32_t)arch->space->genes[i].n_values;
    arch->genes[i] = (uint16_t)((arch->genes[i] + 1 + hwnas_rng_below(rng, n - 1)) % n);
}

static void mutate(hwnas_arch *arch, double rate, hwnas_rng *rng)
{
    const hwnas_space *space = arch->space;
    bool changed = false;
    size_t n_free = 0;
    for (size_t i = 0; i < space->n_genes; i++) {
        if (space->genes[i].n_values < 2)
            continue;
        n_free++;
        if (hwnas_rng_double(rng) < rate) {
            change(arch, i, rng);
            changed = true;
        }
    }
    if (changed || n_free == 0)
        return;
    size_t nth = hwnas_rng_below(rng, (uint32_t)n_free);
    for (size_t i = 0; i < space->n_genes; i++)
        if (space->genes[i].n_values > 1 && nth-- == 0)
            change(arch, i, rng);
}

/* A mutation that met no constraint, by the first of its changes that can only be made together
 * with others. */
static bool repair(hwnas_arch *arch, const hwnas_arch *raw, hwnas_repair **repairs)
{
    const hwnas_arch *parent = arch;
    for (size_t g = 0; g < raw->space->n_genes; g++) {
        if (raw->genes[g] == parent->genes[g] || !hwnas_arch_is_stuck(parent, g))
            continue;
        if (!*repairs)
            *repairs = hwnas_repair_new(parent);
        return hwnas_repair_find(arch, *repairs, g, raw->genes[g]);
    }
    return false;
}

void hwnas_arch_mutate(hwnas_arch *arch, double rate, hwnas_rng *rng)
{
    if (!arch->space->has_rules) {
        mutate(arch, rate, rng);
        return;
    }
    /* A change of genes that do not count is none. */
    hwnas_arch *raw = hwnas_arch_copy(arch), *child = hwnas_arch_copy(arch);
    hwnas_repair *repairs = NULL;
    int n_repairs = 0;
    bool is_done = false;
    for (int i = 0; i < TRIES_WITHOUT_DIAGRAM && !is_done; i++) {
        hwnas_arch_assign(raw, arch);
        mutate(raw, rate, rng);
        hwnas_arch_assign(child, raw);
        if (hwnas_arch_settle(child)) {
            is_done = !hwnas_arch_equal(child, arch);
            if (is_done)
                hwnas_arch_assign(arch, child);
        } else if (n_repairs++ < REPAIRS) {
            is_done = repair(arch, raw, &repairs);
        }
    }
    hwnas_repair_free(repairs);
    hwnas_arch_free(raw);
    hwnas_arch_free(child);
}

/* ---- Crossover ---- */

/* The nearest to what is in `child`, beside the parents: in a list few architectures lie between
 * two others. */
static void cross_among(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b)
{
    const hwnas_among *among = child->space->among;
    const size_t at = hwnas_among_nearest(among, child->genes, SIZE_MAX, 0, a->genes, b->genes);
    if (at < among->n)
        take(child, at);
    else
        hwnas_arch_assign(child, a);
}

static void cross_by_rules(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b,
                           hwnas_rng *rng)
{
    const hwnas_ruleset *rules = child->space->rules;
    const hwnas_wish wish = {.near = a->genes, .other = b->genes};
    if (rules && rules->diagram)
        hwnas_diagram_cross(child->genes, rules->diagram, a->genes, b->genes, rng);
    else if (!rules || hwnas_backtrack(child->genes, rules, &wish, rng) != HWNAS_FOUND)
        hwnas_arch_assign(child, a);
}

void hwnas_arch_cross(hwnas_arch *child, const hwnas_arch *a, const hwnas_arch *b, hwnas_rng *rng)
{
    const int tries = child->space->among ? 1 : TRIES;
    for (int i = 0; i < tries; i++) {
        for (size_t g = 0; g < child->space->n_genes; g++)
            child->genes[g] = hwnas_rng_below(rng, 2) ? a->genes[g] : b->genes[g];
        if (hwnas_arch_settle(child))
            return;
    }
    if (child->space->among)
        cross_among(child, a, b);
    else
        cross_by_rules(child, a, b, rng);
}

/* ---- One after the other ---- */

static bool next(hwnas_arch *arch)
{
    for (size_t i = arch->space->n_genes; i-- > 0;) {
        if (++arch->genes[i] < arch->space->genes[i].n_values)
            return true;
        arch->genes[i] = 0;
    }
    return false;
}

bool hwnas_arch_next(hwnas_arch *arch)
{
    const hwnas_diagram *diagram = diagram_of(arch->space);
    const hwnas_among *among = arch->space->among;
    if (!arch->space->has_rules)
        return next(arch);
    if (among) {
        const size_t at = hwnas_among_after(among, arch->genes);
        if (at < among->n)
            take(arch, at);
        return at < among->n;
    }
    return diagram && hwnas_diagram_has_any(diagram) && hwnas_diagram_next(arch->genes, diagram);
}

hwnas_arch *hwnas_arch_first(const hwnas_space *space)
{
    const hwnas_ruleset *rules = space->rules;
    hwnas_arch *arch = hwnas_arch_new(space);
    if (space->among) {
        take(arch, 0);
        return arch;
    }
    if (hwnas_arch_settle(arch))
        return arch;
    if (rules && rules->diagram && hwnas_diagram_first(arch->genes, rules->diagram))
        return arch;
    if (rules && rules->example) {
        memcpy(arch->genes, rules->example, space->n_genes * sizeof *arch->genes);
        return arch;
    }
    hwnas_arch_free(arch);
    return NULL;
}
