/* relu: max(x, 0). */
#include "graph/ops/elementwise.h"

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = inputs[0][i] > 0 ? inputs[0][i] : 0;
}

const hwnas_op hwnas_op_relu = {
    .id = HWNAS_OP_RELU,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "relu",
    .onnx = "Relu",
    .help = "max(x, 0)",
    .attrs = hwnas_no_attrs,
    .is_epilogue = true,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = hwnas_infer_same,
    .compute = compute,
};
