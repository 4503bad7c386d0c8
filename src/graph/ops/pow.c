/* pow: the first tensor to the power of the second, element by element. */
#include <math.h>

#include "graph/ops/elementwise.h"

static float pow_of(float a, float b)
{
    return powf(a, b);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output, pow_of);
}

const hwnas_op hwnas_op_pow = {
    .id = HWNAS_OP_POW,
    .name = "pow",
    .onnx = "Pow",
    .help = "power of two tensors; a dimension of 1 is repeated",
    .attrs = hwnas_no_attrs,
    .min_inputs = 2,
    .max_inputs = 2,
    .joins = true,
    .infer = hwnas_infer_broadcast,
    .compute = compute,
};
