/* is_inf: whether x is infinite. */
#include <math.h>

#include "graph/ops/elementwise.h"

enum { NEGATIVE, POSITIVE };

static const double both = 1;

static const hwnas_attr_row attrs[] = {
    [NEGATIVE] = {.name = "negative", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .high = 1,
                  .onnx = "detect_negative", .onnx_fallback = &both,
                  .help = "minus infinity counts"},
    [POSITIVE] = {.name = "positive", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .high = 1,
                  .onnx = "detect_positive", .onnx_fallback = &both,
                  .help = "plus infinity counts"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    out->dtype = HWNAS_BOOL;
    return hwnas_infer_same(graph, node, out);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    for (int64_t i = 0, n = hwnas_tensor_count(hwnas_node_output(graph, node)); i < n; i++)
        output[i] =
            isinf(inputs[0][i]) && node->attrs[inputs[0][i] > 0 ? POSITIVE : NEGATIVE].ints[0];
}

const hwnas_op hwnas_op_is_inf = {
    .id = HWNAS_OP_IS_INF,
    .name = "is_inf",
    .onnx = "IsInf",
    .help = "whether x is infinite",
    .attrs = attrs,
    .is_internal = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .infer = infer,
    .compute = compute,
};
