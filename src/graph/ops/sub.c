/* sub: difference of two tensors, element by element. */
#include "graph/ops/elementwise.h"

static float sub_of(float a, float b)
{
    return a - b;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output, sub_of);
}

const hwnas_op hwnas_op_sub = {
    .id = HWNAS_OP_SUB,
    .class = HWNAS_CLASS_ARITHMETIC,
    .name = "sub",
    .onnx = "Sub",
    .help = "difference of two tensors; a dimension of 1 is repeated",
    .attrs = hwnas_no_attrs,
    .min_inputs = 2,
    .max_inputs = 2,
    .joins = true,
    .infer = hwnas_infer_broadcast,
    .compute = compute,
};
