/* leaky_relu: x, times alpha where it is negative. Maas et al. 2013. */
#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "alpha", .kind = HWNAS_ATTR_NUMBER, .fallback = 0.01, .low = 0, .high = 1e3,
     .onnx = "alpha", .help = "slope below zero"},
    {0},
};

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const float alpha = (float)node->attrs[0].number;
    const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = inputs[0][i] > 0 ? inputs[0][i] : alpha * inputs[0][i];
}

const hwnas_op hwnas_op_leaky_relu = {
    .id = HWNAS_OP_LEAKY_RELU,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "leaky_relu",
    .onnx = "LeakyRelu",
    .help = "x, times alpha where it is negative",
    .attrs = attrs,
    .is_epilogue = true,
    .has_int8_kernel = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .keeps_zeros = true,
    .infer = hwnas_infer_same,
    .compute = compute,
};
