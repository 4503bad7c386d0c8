/* fold.c: the graph as it is deployed. A BatchNorm of inference is one factor and one offset for
 * each channel, which the convolution or linear layer before it can carry; dropout does nothing; a
 * sum with zeros is the other summand, what no output needs is left out, and what is computed of
 * nothing but weights is a weight.
 *
 *     y = (conv(x, w) + b) * factor + offset
 *       = conv(x, w * factor) + b * factor + offset */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/quantize_graph.h"
#include "graph/rewrite.h"
#include "graph/rounding.h"

typedef hwnas_rewrite rewrite;

/* A weight of the new graph with values to be written; NULL with the failure in `status`. */
static float *new_weight(hwnas_status *status, int *out, rewrite *r, const hwnas_node *node,
                         const char *suffix, int rank, const int64_t *dims)
{
    const char *name = hwnas_arena_printf(r->to->arena, "%s.%s", node->name, suffix);
    *status = hwnas_graph_add_weight(out, r->to, name, rank, dims, HWNAS_INIT_SMALL, true);
    if (*status != HWNAS_OK)
        return NULL;
    hwnas_tensor *tensor = &r->to->tensors[*out];
    float *data = hwnas_arena_alloc(r->to->arena, (size_t)hwnas_tensor_bytes(tensor));
    tensor->data = data;
    return data;
}

/* The values of a kernel [outputs, ...], or of the transposed one of a product of matrices. */
static hwnas_status fill_kernel(float *out, const hwnas_tensor *kernel, bool is_transposed)
{
    const int64_t n_in = kernel->dims[0], n_out = kernel->dims[1];
    void *values;
    if (!is_transposed) {
        hwnas_tensor_fill(kernel, out);
        return HWNAS_OK;
    }
    TRY(hwnas_try_alloc(&values, (size_t)hwnas_tensor_bytes(kernel), kernel->name));
    hwnas_tensor_fill(kernel, values);
    for (int64_t i = 0; i < n_in; i++)
        for (int64_t o = 0; o < n_out; o++)
            out[o * n_in + i] = ((const float *)values)[i * n_out + o];
    free(values);
    return HWNAS_OK;
}

/* Adds `layer` with the BatchNorm that follows it in its weights, of which the first dimension is
 * that of its outputs. */
static hwnas_status fold_norm(rewrite *r, const hwnas_node *layer, const hwnas_node *norm)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *kernel = hwnas_node_input(r->from, layer, 1);
    const bool is_linear = hwnas_matmul_is_linear(r->from, layer);
    int64_t dims[HWNAS_MAX_RANK] = {0};
    for (int i = 0; i < kernel->rank; i++)
        dims[i] = kernel->dims[is_linear ? kernel->rank - 1 - i : i];
    const int64_t channels = dims[0], per_channel = hwnas_tensor_count(kernel) / channels;
    int inputs[3] = {r->place[layer->inputs[0]]};

    float *w = new_weight(&status, &inputs[1], r, layer, "folded_weight", kernel->rank, dims);
    float *b = w ? new_weight(&status, &inputs[2], r, layer, "folded_bias", 1, &channels) : NULL;
    if (!b)
        return status;
    TRY(fill_kernel(w, kernel, is_linear));
    if (layer->n_inputs > 2)
        hwnas_tensor_fill(hwnas_node_input(r->from, layer, 2), b);

    double *factors = hwnas_alloc(2 * (size_t)channels * sizeof *factors);
    double *offsets = factors + channels;
    hwnas_batch_norm_values(factors, offsets, r->from, norm);
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < per_channel; i++)
            w[c * per_channel + i] = (float)(w[c * per_channel + i] * factors[c]);
        b[c] = (float)(b[c] * factors[c] + offsets[c]);
    }
    free(factors);
    hwnas_node folded = *layer;
    if (is_linear) {
        folded.op = hwnas_ops[HWNAS_OP_LINEAR];
        folded.attrs = NULL;
    }
    return hwnas_rewrite_add_node(r, &folded, 3, inputs, layer->output);
}

static bool is_constant(const rewrite *r, const hwnas_node *node)
{
    if (hwnas_is_int8_kernel(r->from, node) || hwnas_is_rounded_kernel(r->from, node))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const int place = r->place[node->inputs[i]];
        if (place >= 0 ? r->to->tensors[place].kind != HWNAS_TENSOR_WEIGHT
                       : r->from->tensors[node->inputs[i]].kind != HWNAS_TENSOR_WEIGHT)
            return false;
    }
    return true;
}

static bool all_weights(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = node->n_data_inputs; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return true;
}

/* Where dimension `axis` of a reshaped tensor was before, or -1: it was joined or cut. */
static int axis_before(const hwnas_tensor *in, const hwnas_tensor *out, int axis)
{
    int64_t before = 1, wanted = 1;
    for (int i = 0; i < axis; i++)
        wanted *= out->dims[i];
    for (int i = 0; i < in->rank; before *= in->dims[i++])
        if (before == wanted && in->dims[i] == out->dims[axis])
            return i;
    return -1;
}

bool hwnas_matmul_is_linear(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_MATMUL)
        return false;
    const hwnas_tensor *kernel = hwnas_node_input(graph, node, 1);
    return kernel->kind == HWNAS_TENSOR_WEIGHT && kernel->rank == 2 &&
           hwnas_node_input(graph, node, 0)->rank == 2;
}

/* Where the outputs of a layer that can carry a norm are; -1: it cannot. */
static int axis_of_outputs(const hwnas_graph *graph, const hwnas_node *node)
{
    if (!all_weights(graph, node))
        return -1;
    return node->op->id == HWNAS_OP_CONV || node->op->id == HWNAS_OP_LINEAR ||
                   hwnas_matmul_is_linear(graph, node)
               ? 1
               : -1;
}

/* The layer of which `norm` scales and shifts the outputs, perhaps behind reshapes and transposes
 * as those of volumes have; NULL: there is none. */
static const hwnas_node *layer_before(const hwnas_graph *graph, const hwnas_uses *uses,
                                      const int *same, int norm)
{
    int reader = norm, axis = 1;
    while (axis >= 0) {
        const int tensor = same[graph->nodes[reader].inputs[0]];
        const int producer = graph->tensors[tensor].producer;
        const hwnas_node *node = producer < 0 ? NULL : &graph->nodes[producer];
        if (!node || hwnas_lone_reader(&uses[tensor]) != reader)
            return NULL;
        if (axis_of_outputs(graph, node) == axis)
            return node;
        if (node->op->id == HWNAS_OP_TRANSPOSE)
            axis = (int)node->attrs[0].ints[axis];
        else if (node->op->id == HWNAS_OP_RESHAPE)
            axis =
                axis_before(hwnas_node_input(graph, node, 0), hwnas_node_output(graph, node), axis);
        else
            return NULL;
        reader = producer;
    }
    return NULL;
}

bool hwnas_graph_is_folded(const hwnas_graph *graph, const hwnas_uses *uses, const int *same,
                           int node)
{
    const hwnas_node *norm = &graph->nodes[node];
    return norm->op->id == HWNAS_OP_BATCH_NORM && all_weights(graph, norm) &&
           layer_before(graph, uses, same, node);
}

/* The BatchNorm that alone reads `node` and goes into a layer, or NULL. */
static const hwnas_node *norm_after(const hwnas_graph *graph, const hwnas_node *node,
                                    const hwnas_uses *uses, const int *same)
{
    const int reader = hwnas_lone_reader(&uses[node->output]);
    return reader >= 0 && hwnas_graph_is_folded(graph, uses, same, reader) ? &graph->nodes[reader]
                                                                           : NULL;
}

/* The BatchNorm that goes into `layer`, or NULL. */
static const hwnas_node *norm_of(const hwnas_graph *graph, const hwnas_node *layer,
                                 const hwnas_uses *uses, const int *same)
{
    const hwnas_node *norm = NULL, *at = layer;
    while (at && !norm) {
        const int reader = hwnas_lone_reader(&uses[at->output]);
        norm = norm_after(graph, at, uses, same);
        at = reader < 0 ? NULL : &graph->nodes[reader];
        if (at && at->op->id != HWNAS_OP_RESHAPE && at->op->id != HWNAS_OP_TRANSPOSE)
            at = NULL;
    }
    return norm;
}

/* Another tensor, which may be a weight that nobody has copied yet, instead of `tensor`. */
static hwnas_status take_place(rewrite *r, int tensor, int other)
{
    if (r->place[other] < 0 && r->from->tensors[other].kind == HWNAS_TENSOR_WEIGHT)
        TRY(hwnas_rewrite_copy_weight(r, other));
    r->place[tensor] = r->place[other];
    return HWNAS_OK;
}

static hwnas_status fold_nodes(rewrite *r)
{
    hwnas_status status = HWNAS_OK;
    int *same = hwnas_graph_same(r->from);
    bool *is_live = hwnas_graph_live_nodes(r->from, same);
    hwnas_uses *uses = hwnas_graph_uses(r->from, same, is_live);
    for (size_t i = 0; i < r->from->n_nodes; i++) {
        const hwnas_node *node = &r->from->nodes[i];
        const bool may_carry = axis_of_outputs(r->from, node) >= 0;
        const hwnas_node *norm = may_carry ? norm_of(r->from, node, uses, same) : NULL;
        const hwnas_node *behind = norm_after(r->from, node, uses, same);
        if (r->place[node->output] >= 0)
            continue; /* this BatchNorm went into its layer */
        if (same[node->output] != node->output)
            TRY_OUT(take_place(r, node->output, same[node->output]));
        else if (!is_live[i])
            continue;
        else if (node->op->id == HWNAS_OP_DROPOUT)
            TRY_OUT(take_place(r, node->output, node->inputs[0]));
        else if (is_constant(r, node))
            TRY_OUT(hwnas_rewrite_fold(r, node));
        else if (norm)
            TRY_OUT(fold_norm(r, node, norm));
        else
            TRY_OUT(hwnas_rewrite_copy_node(r, node));
        /* A layer of constants became one itself, and so does what is behind it. */
        const bool is_weight =
            behind && r->to->tensors[r->place[node->output]].kind == HWNAS_TENSOR_WEIGHT;
        if (behind && !is_weight && r->place[behind->output] < 0) {
            r->place[behind->output] = r->place[node->output];
            hwnas_rewrite_keep_name(r, behind->output);
        }
    }
out:
    free(uses);
    free(is_live);
    free(same);
    return status;
}

hwnas_status hwnas_graph_fold(hwnas_graph **out, const hwnas_graph *graph)
{
    return hwnas_graph_remake(out, graph, fold_nodes, NULL);
}
