/* transpose: dimensions in another order. */
#include <string.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "order", .kind = HWNAS_ATTR_INTS, .is_required = true, .low = 0,
     .high = HWNAS_MAX_RANK - 1, .onnx = "perm",
     .help = "which dimension comes where, as [0, 2, 1]; 0 is the batch"},
    {0},
};

/* ONNX: no order is the reverse. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    hwnas_attr *order = node->attrs;
    const int rank = hwnas_node_input(graph, node, 0)->rank;
    for (; order->n < rank && (order->n == 0 || order->ints[0] == rank - 1); order->n++)
        order->ints[order->n] = rank - 1 - order->n;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *order = node->attrs;
    unsigned seen = 0;
    for (int i = 0; i < order->n; i++)
        seen |= order->ints[i] >= 0 && order->ints[i] < in->rank ? 1u << order->ints[i] : 0;
    if (order->n != in->rank || seen != (1u << in->rank) - 1)
        return hwnas_fail(
            HWNAS_E_INPUT, NULL,
            "'order' of 'transpose' must name each of the dimensions 0 to %d of %s once",
            in->rank - 1, hwnas_tensor_shape(in).s);
    out->rank = in->rank;
    for (int i = 0; i < in->rank; i++)
        out->dims[i] = in->dims[order->ints[i]];
    return HWNAS_OK;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    int64_t step_in[HWNAS_MAX_RANK], step[HWNAS_MAX_RANK], index[HWNAS_MAX_RANK] = {0};
    int64_t width = 1, from = 0;
    for (int i = in->rank - 1; i >= 0; width *= in->dims[i--])
        step_in[i] = width;
    for (int i = 0; i < out->rank; i++)
        step[i] = step_in[node->attrs->ints[i]];
    for (int64_t at = 0, n = hwnas_tensor_count(out); at < n; at++) {
        output[at] = inputs[0][from];
        for (int i = out->rank - 1; i >= 0; i--) {
            from += step[i];
            if (++index[i] < out->dims[i])
                break;
            from -= step[i] * out->dims[i];
            index[i] = 0;
        }
    }
}

const hwnas_op hwnas_op_transpose = {
    .id = HWNAS_OP_TRANSPOSE,
    .name = "transpose",
    .onnx = "Transpose",
    .help = "dimensions in another order",
    .attrs = attrs,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .takes_integers = true,
    .settle = settle,
    .infer = infer,
    .compute = compute,
};
