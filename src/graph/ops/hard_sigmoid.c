/* hard_sigmoid: max(0, min(1, alpha x + beta)). The default slope is PyTorch's 1/6; ONNX's
 * is 0.2. */
#include <math.h>

#include "graph/ops/elementwise.h"

static const double onnx_alpha = 0.2;

static const hwnas_attr_row attrs[] = {
    {.name = "alpha", .kind = HWNAS_ATTR_NUMBER, .fallback = 1.0 / 6, .low = 0, .high = 1e3,
     .onnx = "alpha", .onnx_fallback = &onnx_alpha, .help = "slope"},
    {.name = "beta", .kind = HWNAS_ATTR_NUMBER, .fallback = 0.5, .low = -1e3, .high = 1e3,
     .onnx = "beta", .help = "value at zero"},
    {0},
};

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    float alpha = (float)hwnas_node_attr(node, "alpha")->number;
    float beta = (float)hwnas_node_attr(node, "beta")->number;
    int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = hwnas_greater(0, hwnas_lesser(1, alpha * inputs[0][i] + beta));
}

const hwnas_op hwnas_op_hard_sigmoid = {
    .id = HWNAS_OP_HARD_SIGMOID,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "hard_sigmoid",
    .onnx = "HardSigmoid",
    .help = "max(0, min(1, alpha x + beta))",
    .attrs = attrs,
    .is_epilogue = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .infer = hwnas_infer_same,
    .compute = compute,
};
