/* mean: over some of the dimensions. */
#include <stdlib.h>
#include <string.h>

#include "graph/ops/elementwise.h"

enum { AXES, KEEP };

static const double one = 1;

static const hwnas_attr_row attrs[] = {
    [AXES] = {.name = "axes", .kind = HWNAS_ATTR_INTS, .is_required = true, .low = -HWNAS_MAX_RANK,
              .high = HWNAS_MAX_RANK - 1, .onnx = "axes", .is_required_by_onnx = true,
              .help = "dimensions that the mean is over; 1 is the channels or the positions"},
    [KEEP] = {.name = "keep", .kind = HWNAS_ATTR_BOOL, .fallback = 0, .low = 0, .high = 1,
              .onnx = "keepdims", .onnx_fallback = &one, .help = "leave them, with length 1"},
    {0},
};

/* Counted from the beginning, in order, each once; so that equal means are equal. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    const int rank = hwnas_node_input(graph, node, 0)->rank;
    hwnas_attr *axes = &node->attrs[AXES];
    unsigned set = 0;
    for (int i = 0; i < axes->n; i++) {
        const int64_t axis = axes->ints[i] + (axes->ints[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
            return;
        set |= 1u << axis;
    }
    axes->n = 0;
    for (int i = 0; i < rank; i++)
        if (set >> i & 1)
            axes->ints[axes->n++] = i;
}

static bool is_reduced(const hwnas_node *node, int axis)
{
    for (int i = 0; i < node->attrs[AXES].n; i++)
        if (node->attrs[AXES].ints[i] == axis)
            return true;
    return false;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *axes = &node->attrs[AXES];
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] < 0 || axes->ints[i] >= in->rank)
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "an axis of 'mean' is %lld, its input has %d dimensions",
                              (long long)axes->ints[i], in->rank);
    for (int i = 0; i < in->rank; i++) {
        if (!is_reduced(node, i))
            out->dims[out->rank++] = in->dims[i];
        else if (node->attrs[KEEP].ints[0])
            out->dims[out->rank++] = 1;
    }
    return HWNAS_OK;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    hwnas_tensor kept = *in; /* the output with its reduced dimensions left in */
    for (int i = 0; i < in->rank; i++)
        kept.dims[i] = is_reduced(node, i) ? 1 : in->dims[i];
    const int64_t n_in = hwnas_tensor_count(in), n_out = hwnas_tensor_count(&kept);
    double *sums = hwnas_alloc((size_t)n_out * sizeof *sums);
    hwnas_walk to = hwnas_walk_new(&kept, in);
    for (int64_t at = 0; at < n_in; at++, hwnas_walk_next(&to))
        sums[to.at] += inputs[0][at];
    for (int64_t at = 0; at < n_out; at++)
        output[at] = (float)(sums[at] * (double)n_out / (double)n_in);
    free(sums);
}

const hwnas_op hwnas_op_mean = {
    .name = "mean",
    .onnx = "ReduceMean",
    .help = "mean over some of the dimensions",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .settle = settle,
    .infer = infer,
    .compute = compute,
};
