/* coupling.c: sets of atoms as a disjoint-set forest, and groups of sets that are alike. */
#include "derive/coupling.h"

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

enum { MAX_ATOMS = 1 << 28 };

/* ---- Atoms ---- */

int hwnas_coupler_atom(const hwnas_coupler *c, int tensor, int dim)
{
    const hwnas_tensor *t = &c->graph->tensors[tensor];
    int atom = c->first[tensor];
    for (int i = 0; i < dim; i++)
        atom += (int)t->dims[i];
    return atom;
}

int hwnas_coupler_find(hwnas_coupler *c, int atom)
{
    int *parent = c->parent;
    while (parent[atom] != atom)
        atom = parent[atom] = parent[parent[atom]];
    return atom;
}

/* The lesser one is the root, so what is with atom 0 has it as its root. */
void hwnas_coupler_join(hwnas_coupler *c, int atom, int other)
{
    atom = hwnas_coupler_find(c, atom);
    other = hwnas_coupler_find(c, other);
    if (atom < other)
        c->parent[other] = atom;
    else
        c->parent[atom] = other;
}

static hwnas_status number_atoms(int *n, int *first, const hwnas_graph *graph)
{
    int64_t next = 1;
    for (size_t t = 0; t < graph->n_tensors; t++) {
        first[t] = (int)next;
        for (int d = 0; d < graph->tensors[t].rank; d++)
            if ((next += graph->tensors[t].dims[d]) > MAX_ATOMS)
                return hwnas_fail(HWNAS_E_INPUT, NULL,
                                  "the network's tensors are too long, at %s: %s",
                                  graph->tensors[t].name, hwnas_tensor_shape(&graph->tensors[t]).s);
    }
    *n = (int)next;
    return HWNAS_OK;
}

static void fix_tensor(hwnas_coupler *c, int tensor)
{
    const hwnas_tensor *t = &c->graph->tensors[tensor];
    int64_t n = 0;
    for (int d = 0; d < t->rank; d++)
        n += t->dims[d];
    for (int64_t i = 0; i < n; i++)
        hwnas_coupler_join(c, c->first[tensor] + (int)i, 0);
}

/* Applies the rules until no reshape is to be read otherwise. */
static void join_all(hwnas_coupler *c, int n_atoms)
{
    const hwnas_graph *graph = c->graph;
    do {
        c->is_changed = false;
        for (int i = 0; i < n_atoms; i++)
            c->parent[i] = i;
        for (size_t i = 0; i < graph->n_inputs; i++)
            fix_tensor(c, graph->inputs[i]);
        for (size_t i = 0; i < graph->n_outputs; i++)
            fix_tensor(c, graph->outputs[i]);
        /* Twice: what a later node fixes decides how a reshape before it may be read. */
        for (int round = 0; round < 2; round++) {
            c->may_change = round == 1;
            for (size_t n = 0; n < graph->n_nodes && !c->is_changed; n++)
                hwnas_coupler_apply(c, (int)n);
        }
    } while (c->is_changed);
}

/* ---- Sets and groups ---- */

/* What is known of a set while groups are formed. */
typedef struct set_facts {
    uint64_t dims; /* hash of the dimensions of weights that it lies in */
    int node, dim; /* of the first node with weights that makes it; -1: none does */
    int first;     /* where in it */
    int64_t n_made;
    int set;
    int last_node; /* of those that were looked at: with a weight that it lies in */
} set_facts;

static void number_sets(hwnas_coupling *out, hwnas_coupler *c, int n_atoms)
{
    for (int i = 0; i < n_atoms; i++) {
        const int root = hwnas_coupler_find(c, i); /* not behind its set */
        out->set_of[i] = root == 0   ? HWNAS_SET_FIXED
                         : root == i ? out->n_sets++
                                     : out->set_of[root];
    }
}

const int *hwnas_coupling_sets(const hwnas_coupling *coupling, int tensor, int dim)
{
    const hwnas_tensor *t = &coupling->graph->tensors[tensor];
    const int *sets = coupling->set_of + coupling->first[tensor];
    for (int i = 0; i < dim; i++)
        sets += t->dims[i];
    return sets;
}

static void note_weights(set_facts *facts, const hwnas_coupling *c)
{
    const uint64_t prime = UINT64_C(0x100000001b3); /* FNV-1a's */
    for (size_t t = 0; t < c->graph->n_tensors; t++) {
        const hwnas_tensor *tensor = &c->graph->tensors[t];
        for (int d = 0; d < tensor->rank && tensor->kind == HWNAS_TENSOR_WEIGHT; d++) {
            const int *sets = hwnas_coupling_sets(c, (int)t, d);
            for (int64_t i = 0; i < tensor->dims[d]; i++)
                if (sets[i] != HWNAS_SET_FIXED)
                    facts[sets[i]].dims =
                        (facts[sets[i]].dims ^ (t * HWNAS_MAX_RANK + (size_t)d + 1)) * prime;
        }
    }
}

/* Sets that lie in a node's weights are made by it, others only pass through. */
static void note_makers(set_facts *facts, const hwnas_coupling *c, int n)
{
    const hwnas_node *node = &c->graph->nodes[n];
    const hwnas_tensor *output = hwnas_node_output(c->graph, node);
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *t = hwnas_node_input(c->graph, node, i);
        for (int d = 0; d < t->rank && t->kind == HWNAS_TENSOR_WEIGHT; d++) {
            const int *sets = hwnas_coupling_sets(c, node->inputs[i], d);
            for (int64_t k = 0; k < t->dims[d]; k++)
                if (sets[k] != HWNAS_SET_FIXED)
                    facts[sets[k]].last_node = n;
        }
    }
    for (int d = 0; d < output->rank; d++) {
        const int *sets = hwnas_coupling_sets(c, node->output, d);
        for (int i = 0; i < output->dims[d]; i++) {
            set_facts *f = sets[i] == HWNAS_SET_FIXED ? NULL : &facts[sets[i]];
            if (f && f->node < 0 && f->last_node == n) {
                f->node = n;
                f->dim = d;
                f->first = i;
            }
            if (f && f->node == n && f->dim == d)
                f->n_made++;
        }
    }
}

static int by_likeness(const void *a, const void *b)
{
    const set_facts *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->dim != y->dim)
        return x->dim < y->dim ? -1 : 1;
    if (x->n_made != y->n_made)
        return x->n_made < y->n_made ? -1 : 1;
    if (x->dims != y->dims)
        return x->dims < y->dims ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

static bool are_alike(const set_facts *a, const set_facts *b)
{
    return a->node == b->node && a->dim == b->dim && a->n_made == b->n_made && a->dims == b->dims;
}

/* By node, and within one by the first channel. */
static int by_first_index(const void *a, const void *b)
{
    const hwnas_channel_group *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->sets[0] < y->sets[0] ? -1 : 1;
}

static void form_groups(hwnas_coupling *out, set_facts *facts)
{
    int *sets = hwnas_alloc(((size_t)out->n_sets + 1) * sizeof *sets);
    size_t capacity = 0;
    qsort(facts, (size_t)out->n_sets, sizeof *facts, by_likeness);
    for (int i = 0; i < out->n_sets; i++)
        sets[i] = facts[i].set;
    for (int begin = 0, end; begin < out->n_sets; begin = end) {
        for (end = begin + 1; end < out->n_sets && are_alike(&facts[begin], &facts[end]);)
            end++;
        if (facts[begin].node < 0 || end - begin < 2)
            continue;
        HWNAS_GROW(out->groups, out->n_groups, capacity);
        out->groups[out->n_groups++] =
            (hwnas_channel_group){.node = facts[begin].node,
                                  .dim = facts[begin].dim,
                                  .n_made = facts[begin].n_made * (end - begin),
                                  .n_sets = end - begin,
                                  .sets = hwnas_arena_copy(out->arena, sets + begin,
                                                           (size_t)(end - begin) * sizeof *sets)};
    }
    free(sets);
    if (out->n_groups)
        qsort(out->groups, out->n_groups, sizeof *out->groups, by_first_index);
}

hwnas_status hwnas_coupling_find(hwnas_coupling **out, const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_OK;
    int n_atoms = 0;
    hwnas_coupling *made = hwnas_alloc(sizeof *made);
    hwnas_coupler c = {.graph = graph};
    set_facts *facts = NULL;
    made->graph = graph;
    made->arena = hwnas_arena_new();
    made->first = c.first = hwnas_alloc((graph->n_tensors + 1) * sizeof *made->first);
    TRY_OUT(number_atoms(&n_atoms, made->first, graph));
    TRY_OUT(hwnas_try_alloc((void **)&c.parent, (size_t)n_atoms * sizeof *c.parent, "channels"));
    c.factor = hwnas_alloc((graph->n_nodes + 1) * sizeof *c.factor);
    join_all(&c, n_atoms);
    TRY_OUT(hwnas_try_alloc((void **)&made->set_of, (size_t)n_atoms * sizeof *made->set_of,
                            "channels"));
    number_sets(made, &c, n_atoms);
    TRY_OUT(hwnas_try_alloc((void **)&facts, ((size_t)made->n_sets + 1) * sizeof *facts,
                            "sets of channels"));
    for (int i = 0; i < made->n_sets; i++)
        facts[i] = (set_facts){.node = -1, .last_node = -1, .set = i};
    note_weights(facts, made);
    for (size_t n = 0; n < graph->n_nodes; n++)
        note_makers(facts, made, (int)n);
    form_groups(made, facts);
    *out = made;
    made = NULL;
out:
    hwnas_coupling_free(made);
    free(c.parent);
    free(c.factor);
    free(facts);
    return status;
}

void hwnas_coupling_free(hwnas_coupling *coupling)
{
    if (!coupling)
        return;
    hwnas_arena_free(coupling->arena);
    free(coupling->first);
    free(coupling->set_of);
    free(coupling->groups);
    free(coupling);
}
