/* hard_swish: x times its hard_sigmoid of slope 1/6. Howard et al. 2019, "Searching for
 * MobileNetV3", section 5.2. */
#include <math.h>

#include "graph/ops/elementwise.h"

static float hard_swish(float x)
{
    return x * fmaxf(0, fminf(6, x + 3)) / 6;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_each(graph, node, inputs, output, hard_swish);
}

const hwnas_op hwnas_op_hard_swish = {
    .id = HWNAS_OP_HARD_SWISH,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "hard_swish",
    .onnx = "HardSwish",
    .help = "x * max(0, min(1, x / 6 + 1/2))",
    .attrs = hwnas_no_attrs,
    .is_epilogue = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = hwnas_infer_same,
    .compute = compute,
};
