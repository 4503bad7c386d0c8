/* expand: dimensions of 1 repeated. In a node `shape` is the whole shape. */
#include <string.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "shape", .kind = HWNAS_ATTR_INTS, .is_required = true, .low = 1, .high = 1 << 30,
     .onnx = "shape", .onnx_input = 1, .help = "the whole shape, batch included"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    hwnas_tensor to = {.rank = node->attrs->n};
    memcpy(to.dims, node->attrs->ints, sizeof to.dims);
    if (hwnas_broadcast_shape(out, in, &to))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'expand' cannot make %s of %s",
                      hwnas_tensor_shape(&to).s, hwnas_tensor_shape(in).s);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_walk walk = hwnas_walk_new(hwnas_node_input(graph, node, 0),
                                     hwnas_node_output(graph, node));
    for (int64_t at = 0, n = hwnas_tensor_count(hwnas_node_output(graph, node)); at < n; at++) {
        output[at] = inputs[0][walk.at];
        hwnas_walk_next(&walk);
    }
}

const hwnas_op hwnas_op_expand = {
    .id = HWNAS_OP_EXPAND,
    .name = "expand",
    .onnx = "Expand",
    .onnx_since = 8,
    .help = "dimensions of 1 repeated",
    .attrs = attrs,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .takes_integers = true,
    .infer = infer,
    .compute = compute,
};
