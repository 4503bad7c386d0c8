/* tanh: the hyperbolic tangent. */
#include <math.h>

#include "graph/ops/elementwise.h"

static float tanh_of(float x)
{
    return tanhf(x);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_each(graph, node, inputs, output, tanh_of);
}

const hwnas_op hwnas_op_tanh = {
    .id = HWNAS_OP_TANH,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "tanh",
    .onnx = "Tanh",
    .help = "hyperbolic tangent",
    .attrs = hwnas_no_attrs,
    .is_epilogue = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = hwnas_infer_same,
    .compute = compute,
};
