/* div: quotient of two tensors, element by element. */
#include "graph/ops/elementwise.h"

static float div_of(float a, float b)
{
    return a / b;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output, div_of);
}

const hwnas_op hwnas_op_div = {
    .id = HWNAS_OP_DIV,
    .class = HWNAS_CLASS_ARITHMETIC,
    .name = "div",
    .onnx = "Div",
    .help = "quotient of two tensors; a dimension of 1 is repeated",
    .attrs = hwnas_no_attrs,
    .min_inputs = 2,
    .max_inputs = 2,
    .joins = true,
    .infer = hwnas_infer_broadcast,
    .compute = compute,
};
