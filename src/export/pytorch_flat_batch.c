/* pytorch_flat_batch.c: where the batch is in a tensor, so that a module goes with any. */
#include "export/pytorch_flat.h"

#include <string.h>

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

/* ---- Where it is ---- */

/* The dimension that is the batch, or has it as a factor; -1: none. `outer`: how many blocks of
 * values there are around the batch. */
static int find_in(const hwnas_tensor *t, int64_t outer, int64_t batch)
{
    int64_t before = 1;
    for (int d = 0; d < t->rank && before <= outer; before *= t->dims[d++])
        if (outer % before == 0 && t->dims[d] % (outer / before * batch) == 0)
            return d;
    return -1;
}

static int64_t blocks_before(const hwnas_tensor *t, int dim)
{
    int64_t n = 1;
    for (int d = 0; d < dim; d++)
        n *= t->dims[d];
    return n;
}

/* Where dimension `dim` of a node's input is in its output; -1: nowhere. */
static int follow(const hwnas_graph *graph, const hwnas_node *node, int input, int dim)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, input);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const char *text = hwnas_flat_rows[node->op->id].text;
    int to = out->rank >= in->rank ? dim + out->rank - in->rank : dim;
    if (hwnas_node_is(node, HWNAS_OP_TRANSPOSE)) {
        const hwnas_attr *order = hwnas_node_attr(node, "order");
        for (to = 0; order->ints[to] != dim; to++)
            ;
    } else if (hwnas_node_is(node, HWNAS_OP_GATHER) && out->rank < in->rank) {
        const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
        to -= (axis < 0 ? axis + in->rank : axis) < dim;
    } else if (out->rank < in->rank && text && strchr(text, '@')) { /* of a reduction */
        const hwnas_attr *axes = hwnas_node_attr(node, "axes");
        for (int i = 0; i < axes->n; i++)
            to -= (axes->ints[i] < 0 ? axes->ints[i] + in->rank : axes->ints[i]) < dim;
    }
    return to < out->rank && out->dims[to] == in->dims[dim] ? to : -1;
}

/* 0: that cannot be said. */
static int64_t outer_of(const hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_graph *graph = f->graph;
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *in = hwnas_node_input(graph, node, i);
        const int64_t outer = f->outer[node->inputs[i]];
        const int dim = outer ? find_in(in, outer, f->batch) : -1;
        if (dim < 0)
            continue;
        if (hwnas_node_is(node, HWNAS_OP_RESHAPE) || hwnas_node_is(node, HWNAS_OP_FLATTEN))
            return outer;
        const int to = follow(graph, node, i, dim);
        if (to >= 0)
            return blocks_before(hwnas_node_output(graph, node), to) *
                   (outer / blocks_before(in, dim));
    }
    return 0;
}

void hwnas_flat_find_batch(hwnas_flat *f)
{
    const hwnas_graph *graph = f->graph;
    const hwnas_tensor *x = graph->n_inputs ? &graph->tensors[graph->inputs[0]] : NULL;
    f->is_of_inputs = hwnas_arena_alloc(f->s.arena, graph->n_tensors * sizeof *f->is_of_inputs);
    f->outer = hwnas_arena_alloc(f->s.arena, graph->n_tensors * sizeof *f->outer);
    f->batch = x && x->rank ? x->dims[0] : 1;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *input = &graph->tensors[graph->inputs[i]];
        f->is_of_inputs[graph->inputs[i]] = true;
        f->outer[graph->inputs[i]] = input->rank && input->dims[0] == f->batch;
    }
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_inputs; i++)
            f->is_of_inputs[node->output] |= f->is_of_inputs[node->inputs[i]];
        f->outer[node->output] = outer_of(f, node);
    }
}

int hwnas_flat_batch_dim(hwnas_flat *f, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_flat_input(f, node, 0);
    const hwnas_tensor *out = hwnas_node_output(f->graph, node);
    const int64_t outer = f->outer[node->inputs[0]];
    if (f->batch > 1 && outer) /* of 1 each dimension may have it as a factor */
        return find_in(out, outer, f->batch);
    return in->rank && out->rank && in->dims[0] == out->dims[0] && in->dims[0] == f->batch ? 0 : -1;
}

/* ---- Constants beside it ---- */

/* A constant that is the same for each item of a batch: a class token. */
static bool is_repeated(const hwnas_flat *f, int tensor)
{
    const hwnas_tensor *t = &f->graph->tensors[tensor];
    if (f->is_of_inputs[tensor] || t->rank < 2)
        return false;
    if (t->producer >= 0) {
        const hwnas_node *node = &f->graph->nodes[t->producer];
        const hwnas_tensor *from = hwnas_node_input(f->graph, node, 0);
        return hwnas_node_is(node, HWNAS_OP_EXPAND) && (from->rank < t->rank || from->dims[0] == 1);
    }
    const int64_t n = hwnas_tensor_count(t) / t->dims[0];
    bool is_same = t->dims[0] == 1 || t->data;
    for (int64_t i = 1; i < t->dims[0] && is_same; i++)
        is_same = !memcmp(t->data + i * n, t->data, (size_t)n * sizeof *t->data);
    return is_same;
}

void hwnas_flat_give_batch(hwnas_flat *f, const hwnas_node *node, const hwnas_wire **args)
{
    int like = 0;
    while (like < node->n_inputs && !f->is_of_inputs[node->inputs[like]])
        like++;
    for (int i = 0; i < node->n_inputs && like < node->n_inputs; i++) {
        const hwnas_tensor *t = hwnas_flat_input(f, node, i);
        if (!is_repeated(f, node->inputs[i]))
            continue;
        const char *dims = "";
        for (int d = 1; d < t->rank; d++)
            dims = TEXT("%s, -1", dims);
        args[like] = hwnas_wire_as_variable(&f->s, args[like]);
        const hwnas_wire *both[] = {args[i], args[like]};
        const char *text = TEXT("%s.expand($1.shape[0]%s)", t->dims[0] > 1 ? "$0[:1]" : "$0", dims);
        args[i] = hwnas_wire_as_variable(&f->s, hwnas_flat_form(f, text, true, 2, both));
    }
}
