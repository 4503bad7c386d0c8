/* mul: multiplies two tensors element by element. */
#include "graph/ops/elementwise.h"

static float mul(float a, float b)
{
    return a * b;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output, mul);
}

const hwnas_op hwnas_op_mul = {
    .id = HWNAS_OP_MUL,
    .class = HWNAS_CLASS_ARITHMETIC,
    .name = "mul",
    .onnx = "Mul",
    .help = "multiplies two tensors element by element; a dimension of 1 is repeated",
    .attrs = hwnas_no_attrs,
    .has_int8_kernel = true,
    .min_inputs = 2,
    .max_inputs = 2,
    .keeps_zeros = true,
    .commutes = true,
    .joins = true,
    .infer = hwnas_infer_broadcast,
    .compute = compute,
};
