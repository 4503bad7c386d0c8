/* erf: the error function. */
#include <math.h>

#include "graph/ops/elementwise.h"

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_each(graph, node, inputs, output, erff);
}

const hwnas_op hwnas_op_erf = {
    .id = HWNAS_OP_ERF,
    .name = "erf",
    .onnx = "Erf",
    .onnx_since = 9,
    .help = "the error function",
    .attrs = hwnas_no_attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = hwnas_infer_same,
    .compute = compute,
};
