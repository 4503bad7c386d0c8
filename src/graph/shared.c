#include "graph/shared.h"

#include <stdlib.h>
#include <string.h>

#include "graph/shared_priv.h"

enum {
    N_BASES = 8,      /* random networks around which each value is tried */
    N_RANDOM = 200,   /* more of them, whose weights are noted */
    N_TRIES = 500,    /* to find a largest network that meets the constraints */
};
#define STREAM 0x7368617265 /* "share" */

/* ---- Which values are parts of others ---- */

/* Whether all that the one has is part of the other. */
static bool is_within(const hwnas_shared_sizes *a, const hwnas_shared_sizes *b)
{
    for (size_t i = 0; i < a->n; i++)
        for (int d = 0; d < 4; d++)
            if (a->dims[i][d] > (i < b->n ? b->dims[i][d] : 0))
                return false;
    return true;
}

static hwnas_status measure(hwnas_shared_sizes *out, hwnas_shared *s, const hwnas_arch *arch)
{
    return hwnas_shared_watch(NULL, NULL, out, s, arch, 1, true);
}

typedef struct comparison {
    hwnas_shared *shared;
    const hwnas_gene *gene;
    bool *seen, *within; /* by two values: were they compared, is the first part of the second */
} comparison;

/* Around one network, with each value of a gene. */
static hwnas_status compare_values(comparison *c, const hwnas_arch *base, size_t g)
{
    hwnas_status status = HWNAS_OK;
    const size_t n = c->gene->n_values;
    hwnas_arch *arch = hwnas_arch_copy(base);
    hwnas_shared_sizes *sizes = hwnas_alloc(n * sizeof *sizes);
    bool *is_there = hwnas_alloc(n * sizeof *is_there);
    for (size_t v = 0; v < n; v++) {
        hwnas_arch_assign(arch, base);
        arch->genes[g] = (uint16_t)v;
        if (!hwnas_gene_keeps(c->gene, v) || !hwnas_arch_settle(arch) || arch->genes[g] != v ||
            !hwnas_arch_is_active(arch, g))
            continue;
        TRY_OUT(measure(&sizes[v], c->shared, arch));
        is_there[v] = true;
    }
    for (size_t v = 0; v < n; v++)
        for (size_t w = 0; w < n; w++)
            if (is_there[v] && is_there[w]) {
                const bool within = is_within(&sizes[v], &sizes[w]);
                c->within[v * n + w] = within && (c->within[v * n + w] || !c->seen[v * n + w]);
                c->seen[v * n + w] = true;
            }
out:
    for (size_t v = 0; v < n; v++)
        free(sizes[v].dims);
    free(sizes);
    free(is_there);
    hwnas_arch_free(arch);
    return status;
}

/* Sorts the values that may be chosen; they stay alternatives unless each is part of the next. */
static void order_values(hwnas_shared *s, const comparison *c, size_t g)
{
    const size_t n = c->gene->n_values;
    uint16_t *order = hwnas_arena_alloc(s->arena, n * sizeof *order);
    size_t n_kept = 0;
    for (size_t v = 0; v < n; v++)
        if (hwnas_gene_keeps(c->gene, v))
            order[n_kept++] = (uint16_t)v;
    for (size_t i = 1; i < n_kept; i++)
        for (size_t k = i; k > 0 && c->within[order[k] * n + order[k - 1]]; k--) {
            const uint16_t swapped = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swapped;
        }
    for (size_t i = 0; i + 1 < n_kept; i++)
        for (size_t k = i + 1; k < n_kept; k++)
            if (!c->within[order[i] * n + order[k]] || c->within[order[k] * n + order[i]])
                return;
    s->order[g] = order;
    s->n_ordered[g] = n_kept;
}

static hwnas_status find_order(hwnas_shared *s, hwnas_arch *const *bases, size_t g)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_gene *gene = &s->space->genes[g];
    const size_t n = gene->n_values;
    comparison c = {s, gene, hwnas_alloc(n * n), hwnas_alloc(n * n)};
    for (size_t i = 0; i < N_BASES; i++)
        TRY_OUT(compare_values(&c, bases[i], g));
    order_values(s, &c, g);
out:
    free(c.seen);
    free(c.within);
    return status;
}

/* ---- The largest network ---- */

static hwnas_status find_largest(hwnas_shared *s, hwnas_rng *rng)
{
    const hwnas_space *space = s->space;
    hwnas_arch *arch = hwnas_arch_new(space);
    for (int i = 0; i < N_TRIES; i++) {
        if (!hwnas_arch_sample(arch, rng))
            break;
        bool is_largest = true;
        for (size_t g = 0; g < space->n_genes; g++)
            if (s->n_ordered[g])
                arch->genes[g] = s->order[g][s->n_ordered[g] - 1];
        is_largest = hwnas_arch_settle(arch);
        for (size_t g = 0; g < space->n_genes; g++)
            is_largest = is_largest && (!s->n_ordered[g] || !hwnas_arch_is_active(arch, g) ||
                                        arch->genes[g] == s->order[g][s->n_ordered[g] - 1]);
        if (is_largest) {
            s->largest = arch;
            return HWNAS_OK;
        }
    }
    hwnas_arch_free(arch);
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED,
                                 space->n_constraints ? &space->constraints[0]->place : NULL,
                                 "no network has all of the greatest values, of which the others "
                                 "would be slices: the constraints forbid it"),
                      "leave the constraints out of the space, and limit the search instead: "
                      "constraints of a job");
}

/* Each value once beside the largest of the others, and networks at random: what they need. */
static hwnas_status note_weights(hwnas_shared *s, hwnas_rng *rng)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_copy(s->largest);
    TRY_OUT(measure(NULL, s, arch));
    for (size_t g = 0; g < s->space->n_genes; g++)
        for (size_t v = 0; v < s->space->genes[g].n_values; v++) {
            hwnas_arch_assign(arch, s->largest);
            arch->genes[g] = (uint16_t)v;
            if (hwnas_gene_keeps(&s->space->genes[g], v) && hwnas_arch_settle(arch))
                TRY_OUT(measure(NULL, s, arch));
        }
    for (int i = 0; i < N_RANDOM && hwnas_arch_sample(arch, rng); i++)
        TRY_OUT(measure(NULL, s, arch));
out:
    hwnas_arch_free(arch);
    return status;
}

/* ---- Spaces ---- */

/* Nothing of the input may be chosen: samples have one shape. */
static hwnas_status check_inputs(const hwnas_space *space, hwnas_arch *const *bases)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *first = NULL, *other = NULL;
    TRY(hwnas_graph_build(&first, bases[0], 1));
    if (first->n_inputs != 1 || first->n_outputs != 1) {
        status = hwnas_fail(HWNAS_E_UNSUPPORTED, &space->inputs[0].place,
                            "networks share weights with one input and one output, this has %zu "
                            "and %zu",
                            first->n_inputs, first->n_outputs);
        goto out;
    }
    for (size_t i = 1; i < N_BASES; i++) {
        TRY_OUT(hwnas_graph_build(&other, bases[i], 1));
        if (!hwnas_same_shape(&first->tensors[first->inputs[0]],
                              &other->tensors[other->inputs[0]])) {
            status = hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &space->inputs[0].place,
                                           "the input's shape is chosen, and samples have one"),
                                "a space of one size: base: SPACE, choices: {NAME: {values: "
                                "[VALUE]}}");
            goto out;
        }
        hwnas_graph_free(other);
        other = NULL;
    }
out:
    hwnas_graph_free(first);
    hwnas_graph_free(other);
    return status;
}

static hwnas_status check_space(const hwnas_space *space)
{
    const hwnas_place place = {.file = space->path};
    if (space->model_path)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &space->model_place,
                                     "the networks of a trained model have its weights already"),
                          "accuracy: samples:FILE judges them");
    if (!space->n_genes)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &place,
                                     "the space has one network, which shares with none"),
                          "'hwnas train' trains it");
    return HWNAS_OK;
}

hwnas_status hwnas_shared_new(hwnas_shared **out, const hwnas_space *space)
{
    hwnas_status status = HWNAS_OK;
    hwnas_rng rng = hwnas_rng_new(0, STREAM);
    hwnas_arch *bases[N_BASES] = {NULL};
    TRY(check_space(space));
    hwnas_shared *s = hwnas_alloc(sizeof *s);
    s->arena = hwnas_arena_new();
    s->space = space;
    s->n_ordered = hwnas_arena_alloc(s->arena, space->n_genes * sizeof *s->n_ordered);
    s->order = hwnas_arena_alloc(s->arena, space->n_genes * sizeof *s->order);
    hwnas_shared_set_labels(s);
    for (size_t i = 0; i < N_BASES; i++) {
        bases[i] = hwnas_arch_new(space);
        if (!hwnas_arch_sample(bases[i], &rng)) {
            status = hwnas_space_none_found(space);
            goto out;
        }
    }
    TRY_OUT(check_inputs(space, bases));
    for (size_t g = 0; g < space->n_genes; g++)
        TRY_OUT(find_order(s, bases, g));
    TRY_OUT(find_largest(s, &rng));
    TRY_OUT(note_weights(s, &rng));
    *out = s;
    s = NULL;
out:
    for (size_t i = 0; i < N_BASES; i++)
        hwnas_arch_free(bases[i]);
    hwnas_shared_free(s);
    return status;
}

void hwnas_shared_free(hwnas_shared *shared)
{
    if (!shared)
        return;
    hwnas_arch_free(shared->largest);
    hwnas_arena_free(shared->arena);
    free(shared);
}

/* ---- Networks ---- */

hwnas_status hwnas_shared_build(hwnas_graph **out, int **weights, const hwnas_shared *shared,
                                const hwnas_arch *arch, int batch)
{
    return hwnas_shared_watch(out, weights, NULL, (hwnas_shared *)shared, arch, batch, false);
}

int64_t hwnas_shared_begin(const hwnas_shared_weight *weight, int i, int64_t n)
{
    return i < 2 ? 0 : (weight->dims[i] - n) / 2;
}
