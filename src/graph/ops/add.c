/* add: adds two tensors. */
#include "graph/ops/elementwise.h"

static float add(float a, float b)
{
    return a + b;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output, add);
}

const hwnas_op hwnas_op_add = {
    .id = HWNAS_OP_ADD,
    .class = HWNAS_CLASS_ARITHMETIC,
    .name = "add",
    .onnx = "Add",
    .help = "adds two tensors; a dimension of 1 is repeated",
    .attrs = hwnas_no_attrs,
    .has_int8_kernel = true,
    .is_common = true,
    .min_inputs = 2,
    .max_inputs = 2,
    .keeps_zeros = true,
    .commutes = true,
    .joins = true,
    .infer = hwnas_infer_broadcast,
    .compute = compute,
};
