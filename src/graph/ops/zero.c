/* zero: zeros of its input's shape, or of every stride-th row and column of it; the operator "none"
 * of cell spaces. Its weight is a constant of zeros, so that others can say it as a product: of all
 * values with one zero (Mul), or of each stride-th with a zero for its channel (depthwise Conv). */
#include <string.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "stride", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = 1, .high = 1 << 20,
     .help = "step down and to the right"},
    {0},
};

static hwnas_status make_weights(hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const bool is_strided = node->attrs[0].ints[0] > 1;
    if (is_strided && in->rank != 4)
        return hwnas_fail(
            HWNAS_E_INPUT, NULL,
            "'zero' with a 'stride' needs an image (batch x channels x height x width), not %s",
            hwnas_tensor_shape(in).s);
    const int64_t dims[] = {is_strided ? in->dims[1] : 1, 1, 1, 1};
    return hwnas_node_add_weight(graph, node, "zeros", is_strided ? 4 : 1, dims, HWNAS_INIT_ZERO,
                                 false);
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const int64_t stride = node->attrs[0].ints[0];
    TRY(hwnas_infer_same(graph, node, out));
    for (int i = 2; i < 4 && stride > 1; i++)
        out->dims[i] = (out->dims[i] - 1) / stride + 1;
    return HWNAS_OK;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    (void)inputs;
    memset(output, 0, (size_t)hwnas_tensor_bytes(hwnas_node_output(graph, node)));
}

const hwnas_op hwnas_op_zero = {
    .id = HWNAS_OP_ZERO,
    .name = "zero",
    .onnx = "Mul", /* by a constant zero; src/onnx/ tells it from `mul`, and says a stride */
    .help = "zeros of the input's shape",
    .attrs = attrs,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_weights = 1,
    .max_weights = 1,
    .make_weights = make_weights,
    .infer = infer,
    .compute = compute,
};
