#include "space/backtrack.h"

#include <stdlib.h>
#include <string.h>

/* Effort of one call, in looks at expressions and genes; failures before the first new beginning.
 */
enum { MAX_WORK = 1 << 22, FIRST_FAILURES = 32 };

/* A gene that has a value. */
typedef struct choice_point {
    size_t gene;
    size_t n, at;     /* values to try, and those that were */
    uint16_t *values; /* heap */
    size_t n_changes; /* of truths, before this one */
} choice_point;

typedef struct change {
    size_t rule;
    hwnas_truth before;
} change;

typedef struct walk {
    const hwnas_ruleset *rules;
    const hwnas_wish *wish;
    hwnas_rng *rng;
    hwnas_partial partial;
    uint16_t *genes;
    bool *is_known;
    hwnas_truth *truths; /* by rule */
    double *weights;     /* by rule: its failures */
    size_t depth;
    choice_point *points;
    size_t n_changes, change_capacity;
    change *changes;
} walk;

static bool counts(const walk *w, size_t gene)
{
    const size_t r = w->rules->condition[gene];
    return r == HWNAS_NO_RULE || w->truths[r] == HWNAS_TRUE;
}

static bool is_ready(const walk *w, size_t gene)
{
    const size_t r = w->rules->condition[gene];
    return !w->is_known[gene] && (r == HWNAS_NO_RULE || w->truths[r] != HWNAS_OPEN);
}

/* The gene of which most failures are known, for each of its values; SIZE_MAX: none is left. */
static size_t next_gene(walk *w)
{
    size_t best = SIZE_MAX;
    double best_merit = 0;
    for (size_t g = 0; g < w->rules->space->n_genes; g++) {
        double sum = 0;
        w->partial.work++;
        if (!is_ready(w, g))
            continue;
        for (size_t i = 0; i < w->rules->n_touching[g]; i++)
            if (w->truths[w->rules->touching[g][i]] == HWNAS_OPEN)
                sum += w->weights[w->rules->touching[g][i]];
        const double merit = sum / (double)w->rules->space->genes[g].n_values;
        if (best == SIZE_MAX || merit > best_merit) {
            best = g;
            best_merit = merit;
        }
    }
    return best;
}

static void shuffle(uint16_t *values, size_t n, hwnas_rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = hwnas_rng_below(rng, (uint32_t)i);
        const uint16_t other = values[j];
        values[j] = values[i - 1];
        values[i - 1] = other;
    }
}

/* The values that a gene may have, in the order in which they are tried. */
static void list_values(walk *w, choice_point *p)
{
    const hwnas_wish *wish = w->wish;
    const size_t n = counts(w, p->gene) ? w->rules->space->genes[p->gene].n_values : 1;
    const bool is_fixed = wish && wish->is_fixed && wish->gene == p->gene;
    p->values = hwnas_alloc((n + 1) * sizeof *p->values);
    if (is_fixed) {
        if (counts(w, p->gene))
            p->values[p->n++] = wish->value;
        return;
    }
    for (size_t v = 0; v < n; v++)
        if (n == 1 || !wish || !wish->other || v == wish->near[p->gene] ||
            v == wish->other[p->gene])
            p->values[p->n++] = (uint16_t)v;
    shuffle(p->values, p->n, w->rng);
    for (size_t i = 0; wish && wish->near && !wish->other && i < p->n; i++)
        if (p->values[i] == wish->near[p->gene]) {
            p->values[i] = p->values[0];
            p->values[0] = wish->near[p->gene];
        }
}

/* Gives the gene a value; false: a constraint fails. */
static bool assign(walk *w, size_t gene, uint16_t value)
{
    w->genes[gene] = value;
    w->is_known[gene] = true;
    for (size_t i = 0; i < w->rules->n_touching[gene]; i++) {
        const size_t r = w->rules->touching[gene][i];
        const hwnas_rule *rule = &w->rules->rules[r];
        if (w->truths[r] != HWNAS_OPEN)
            continue;
        const hwnas_truth truth = hwnas_partial_truth(&w->partial, rule->expr, rule->position);
        if (truth == HWNAS_OPEN)
            continue;
        HWNAS_GROW(w->changes, w->n_changes, w->change_capacity);
        w->changes[w->n_changes++] = (change){.rule = r, .before = w->truths[r]};
        w->truths[r] = truth;
        if (truth == HWNAS_FALSE && !rule->is_condition) {
            w->weights[r]++;
            return false;
        }
    }
    return true;
}

static void undo(walk *w, const choice_point *p)
{
    while (w->n_changes > p->n_changes) {
        w->n_changes--;
        w->truths[w->changes[w->n_changes].rule] = w->changes[w->n_changes].before;
    }
    w->is_known[p->gene] = false;
}

static void push(walk *w, size_t gene)
{
    choice_point *p = &w->points[w->depth++];
    *p = (choice_point){.gene = gene, .n_changes = w->n_changes};
    list_values(w, p);
}

static void pop(walk *w)
{
    choice_point *p = &w->points[--w->depth];
    undo(w, p);
    free(p->values);
}

static void renew_scratch(walk *w)
{
    hwnas_arena_free(w->partial.arena);
    w->partial.arena = hwnas_arena_new();
}

/* Until all genes have a value, nothing is left to try, or there were so many failures. */
static hwnas_finding descend(walk *w, size_t max_failures)
{
    size_t n_failures = 0;
    size_t gene = next_gene(w);
    while (gene != SIZE_MAX) {
        push(w, gene);
        for (bool fits = false; !fits;) {
            choice_point *p = &w->points[w->depth - 1];
            undo(w, p);
            if (n_failures > max_failures || w->partial.work > MAX_WORK)
                return HWNAS_GIVEN_UP;
            if (p->at == p->n) {
                pop(w);
                if (w->depth == 0)
                    return HWNAS_NONE;
                continue;
            }
            fits = assign(w, p->gene, p->values[p->at]);
            p->at++;
            n_failures += !fits;
            if (n_failures % 64 == 0)
                renew_scratch(w);
        }
        gene = next_gene(w);
    }
    return HWNAS_FOUND;
}

hwnas_finding hwnas_backtrack(uint16_t *genes, const hwnas_ruleset *rules, const hwnas_wish *wish,
                              hwnas_rng *rng)
{
    const size_t n = rules->space->n_genes;
    hwnas_finding finding = HWNAS_GIVEN_UP;
    walk w = {.rules = rules,
              .wish = wish,
              .rng = rng,
              .genes = hwnas_alloc(n * sizeof *w.genes),
              .is_known = hwnas_alloc(n),
              .truths = hwnas_alloc(rules->n * sizeof *w.truths),
              .weights = hwnas_alloc(rules->n * sizeof *w.weights),
              .points = hwnas_alloc((n + 1) * sizeof *w.points)};
    w.partial = (hwnas_partial){.space = rules->space, .genes = w.genes, .is_known = w.is_known};
    for (size_t r = 0; r < rules->n; r++) {
        w.truths[r] = rules->rules[r].truth;
        w.weights[r] = 1;
        if (w.truths[r] == HWNAS_FALSE && !rules->rules[r].is_condition)
            finding = HWNAS_NONE;
    }
    for (size_t failures = FIRST_FAILURES; finding == HWNAS_GIVEN_UP && w.partial.work < MAX_WORK;
         failures += failures / 2) {
        renew_scratch(&w);
        finding = descend(&w, failures);
        if (finding == HWNAS_FOUND)
            memcpy(genes, w.genes, n * sizeof *genes);
        while (w.depth > 0)
            pop(&w);
    }
    free(w.genes);
    free(w.is_known);
    free(w.truths);
    free(w.weights);
    free(w.points);
    free(w.changes);
    hwnas_arena_free(w.partial.arena);
    hwnas_partial_done(&w.partial);
    return finding;
}
