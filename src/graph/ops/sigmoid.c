/* sigmoid: 1 / (1 + e^-x). */
#include <math.h>

#include "graph/ops/elementwise.h"

static float sigmoid(float x)
{
    return (float)(1 / (1 + exp(-(double)x)));
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_each(graph, node, inputs, output, sigmoid);
}

const hwnas_op hwnas_op_sigmoid = {
    .id = HWNAS_OP_SIGMOID,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "sigmoid",
    .onnx = "Sigmoid",
    .help = "1 / (1 + e^-x)",
    .attrs = hwnas_no_attrs,
    .is_epilogue = true,
    .has_int8_kernel = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = hwnas_infer_same,
    .compute = compute,
};
