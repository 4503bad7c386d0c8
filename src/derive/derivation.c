/* derivation.c: a network out of the parts of an original that are kept. */
#include <stdlib.h>
#include <string.h>

#include "derive/base_model.h"
#include "derive/resolution.h"
#include "graph/rewrite.h"

/* Weights of at most so many values are always copied: factors, indices, and other constants that
 * say what a node does. */
enum { MAX_SMALL = 1024 };

void hwnas_derivation_begin(hwnas_derivation *out, const hwnas_original *original)
{
    const hwnas_graph *graph = original->graph;
    const size_t n_sets = (size_t)original->coupling->n_sets;
    *out = (hwnas_derivation){.original = original,
                              .ranking = original->ranking,
                              .is_kept = hwnas_alloc(n_sets + 1),
                              .replaced_by =
                                  hwnas_alloc((graph->n_tensors + 1) * sizeof *out->replaced_by),
                              .kernel = hwnas_alloc((graph->n_nodes + 1) * sizeof *out->kernel),
                              .op = hwnas_alloc((graph->n_nodes + 1) * sizeof *out->op)};
    memset(out->is_kept, true, n_sets);
    for (size_t t = 0; t < graph->n_tensors; t++)
        out->replaced_by[t] = (int)t;
    for (size_t n = 0; n < graph->n_nodes; n++)
        out->op[n] = graph->nodes[n].op->id;
}

void hwnas_derivation_end(hwnas_derivation *derivation)
{
    free(derivation->is_kept);
    free(derivation->replaced_by);
    free(derivation->kernel);
    free(derivation->op);
}

/* ---- Indices that are kept ---- */

typedef struct indices {
    int64_t n;
    int64_t *at; /* heap; in their order */
} indices;

int64_t *hwnas_derivation_kept(int64_t *n, const hwnas_derivation *d, int tensor, int dim)
{
    const int64_t size = d->original->graph->tensors[tensor].dims[dim];
    const int *sets = hwnas_coupling_sets(d->original->coupling, tensor, dim);
    int64_t *at = hwnas_alloc((size_t)size * sizeof *at);
    *n = 0;
    for (int64_t i = 0; i < size; i++)
        if (sets[i] == HWNAS_SET_FIXED || d->is_kept[sets[i]])
            at[(*n)++] = i;
    return at;
}

static indices find_kept(const hwnas_derivation *d, int tensor, int dim)
{
    indices p;
    p.at = hwnas_derivation_kept(&p.n, d, tensor, dim);
    return p;
}

/* How many of the first `n` indices of a dimension are kept. */
static int64_t count_kept(const hwnas_derivation *d, int tensor, int dim, int64_t n)
{
    const int *sets = hwnas_coupling_sets(d->original->coupling, tensor, dim);
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++)
        n_kept += sets[i] == HWNAS_SET_FIXED || d->is_kept[sets[i]];
    return n_kept;
}

static int64_t count_all(const hwnas_derivation *d, int tensor, int dim)
{
    return count_kept(d, tensor, dim, d->original->graph->tensors[tensor].dims[dim]);
}

/* ---- Weights ---- */

/* Copies the kept indices of dimension `dim` and those behind it. */
static void copy_kept(float **to, const float *from, const hwnas_tensor *t, const indices *kept,
                      int dim)
{
    int64_t step = 1;
    for (int d = dim + 1; d < t->rank; d++)
        step *= t->dims[d];
    for (int64_t i = 0; i < kept[dim].n; i++) {
        const float *at = from + kept[dim].at[i] * step;
        if (dim + 1 == t->rank)
            *(*to)++ = *at;
        else
            copy_kept(to, at, t, kept, dim + 1);
    }
}

static hwnas_status copy_values(hwnas_graph *graph, int made, const hwnas_tensor *from,
                                const indices *kept)
{
    hwnas_tensor *to = &graph->tensors[made];
    float *values, *copy = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(to));
    float *end = copy;
    TRY(hwnas_try_alloc((void **)&values, (size_t)hwnas_tensor_bytes(from), from->name));
    hwnas_tensor_fill(from, values);
    if (from->rank)
        copy_kept(&end, values, from, kept, 0);
    else
        *copy = *values;
    free(values);
    to->data = copy;
    return HWNAS_OK;
}

/* `kernel`: of a convolution's weights what is left of the window, around its middle; 0: all.
 * `name`: the weight's, or another where several nodes make other weights of it. */
static hwnas_status add_weight(int *out, hwnas_rewrite *r, int tensor, int kernel, const char *name)
{
    const hwnas_derivation *d = r->context;
    const hwnas_tensor *from = &r->from->tensors[tensor];
    hwnas_status status = HWNAS_OK;
    indices kept[HWNAS_MAX_RANK] = {{0}};
    int64_t dims[HWNAS_MAX_RANK];
    for (int i = 0; i < from->rank; i++) {
        kept[i] = find_kept(d, tensor, i);
        if (kernel && i >= 2) {
            for (int64_t k = 0; k < kernel; k++)
                kept[i].at[k] = (from->dims[i] - kernel) / 2 + k;
            kept[i].n = kernel;
        }
        dims[i] = kept[i].n;
    }
    TRY_OUT(
        hwnas_graph_add_weight(out, r->to, name, from->rank, dims, from->init, from->is_parameter));
    r->to->tensors[*out].dtype = from->dtype;
    if (d->with_weights || hwnas_tensor_count(&r->to->tensors[*out]) <= MAX_SMALL)
        TRY_OUT(copy_values(r->to, *out, from, kept));
out:
    for (int i = 0; i < from->rank; i++)
        free(kept[i].at);
    return status;
}

/* ---- Nodes ---- */

/* Attributes that say a number of channels or an index of one. */
static void fit_attrs(hwnas_attr *attrs, const hwnas_derivation *d, const hwnas_node *node,
                      int kernel)
{
    enum { BEGIN, END, AXIS };          /* of slice */
    enum { PAD = 3, DILATION, GROUPS }; /* of conv */
    const hwnas_graph *graph = d->original->graph;
    const int x = node->inputs[0], y = node->output;
    switch (node->op->id) {
    case HWNAS_OP_CONV:
        if (attrs[GROUPS].ints[0] == graph->tensors[x].dims[1])
            attrs[GROUPS].ints[0] = count_all(d, x, 1);
        for (int i = 0; i < 4 && kernel; i++) {
            const int64_t window = hwnas_node_input(graph, node, 1)->dims[2 + i % 2];
            attrs[PAD].ints[i] -= (window - kernel) / 2 * attrs[DILATION].ints[i % 2];
        }
        break;
    case HWNAS_OP_RESHAPE:
    case HWNAS_OP_EXPAND:
        for (int i = 0; i < attrs[0].n; i++)
            attrs[0].ints[i] = count_all(d, y, i);
        break;
    case HWNAS_OP_SLICE:
        if (hwnas_node_attr(node, "step")->ints[0] == 1) {
            const int axis = (int)attrs[AXIS].ints[0];
            attrs[END].ints[0] = count_kept(d, x, axis, attrs[END].ints[0]);
            attrs[BEGIN].ints[0] = count_kept(d, x, axis, attrs[BEGIN].ints[0]);
        }
        break;
    default:
        break;
    }
}

/* The weights of a convolution whose window is cut, its own: others may read them whole. */
static hwnas_status add_window(int *out, hwnas_rewrite *r, int n, int tensor)
{
    const hwnas_derivation *d = r->context;
    const char *name = r->from->tensors[tensor].name;
    int n_readers = 0;
    for (size_t i = 0; i < r->from->n_nodes; i++)
        for (int k = 0; k < r->from->nodes[i].n_inputs; k++)
            n_readers += r->from->nodes[i].inputs[k] == tensor;
    if (n_readers > 1)
        name = hwnas_arena_printf(r->to->arena, "%s of %s", name, r->from->nodes[n].name);
    return add_weight(out, r, tensor, d->kernel[n], name);
}

static hwnas_status add_node(hwnas_rewrite *r, int n)
{
    enum { MAX_ATTRS = 16 };
    const hwnas_derivation *d = r->context;
    const hwnas_node *node = &r->from->nodes[n];
    hwnas_attr attrs[MAX_ATTRS] = {{0}};
    int inputs[HWNAS_MAX_NODE_INPUTS], n_attrs = 0;
    for (; node->op->attrs[n_attrs].name; n_attrs++)
        attrs[n_attrs] = node->attrs[n_attrs];
    fit_attrs(attrs, d, node, d->kernel[n]);
    for (int i = 0; i < node->n_inputs; i++) {
        const int tensor = d->replaced_by[node->inputs[i]];
        const bool is_window = d->kernel[n] && i == 1;
        int made = r->place[tensor];
        if (is_window)
            TRY(add_window(&made, r, n, tensor));
        else if (made < 0)
            TRY(add_weight(&made, r, tensor, 0, r->from->tensors[tensor].name));
        if (!is_window)
            r->place[tensor] = made;
        inputs[i] = made;
    }
    const bool is_other = d->op[n] != node->op->id;
    TRY(hwnas_graph_add_node(&r->place[node->output], r->to, hwnas_ops[d->op[n]], node->name,
                             is_other ? NULL : attrs, node->n_inputs, inputs, false));
    hwnas_rewrite_keep_name(r, node->output);
    return HWNAS_OK;
}

static hwnas_status make_nodes(hwnas_rewrite *r)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_derivation *d = r->context;
    bool *is_live = hwnas_graph_live_nodes(r->from, d->replaced_by);
    if (d->image[0])
        TRY_OUT(hwnas_resolution_add(r, d->image));
    for (size_t n = 0; n < r->from->n_nodes; n++)
        if (is_live[n])
            TRY_OUT(add_node(r, (int)n));
    for (size_t i = 0; i < r->from->n_outputs; i++)
        r->place[r->from->outputs[i]] = r->place[d->replaced_by[r->from->outputs[i]]];
out:
    free(is_live);
    return status;
}

hwnas_status hwnas_derivation_build(hwnas_graph **out, const hwnas_derivation *derivation)
{
    hwnas_graph *graph = NULL;
    hwnas_status status =
        hwnas_graph_remake(&graph, derivation->original->graph, make_nodes, (void *)derivation);
    status = hwnas_resolution_check(status, derivation, graph);
    if (status == HWNAS_OK)
        *out = graph;
    else
        hwnas_graph_free(graph);
    return status;
}
