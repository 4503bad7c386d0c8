/* mod: remainder, with the sign of the divisor as Python has it or, with `fmod`, of the dividend as
 * C has it. */
#include <math.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "fmod", .kind = HWNAS_ATTR_BOOL, .fallback = 0, .low = 0, .high = 1, .onnx = "fmod",
     .help = "the sign of the dividend"},
    {0},
};

static float floored(float a, float b)
{
    return a - b * floorf(a / b);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output,
                            node->attrs->ints[0] ? fmodf : floored);
}

const hwnas_op hwnas_op_mod = {
    .id = HWNAS_OP_MOD,
    .name = "mod",
    .onnx = "Mod",
    .help = "remainder of a division",
    .attrs = attrs,
    .is_internal = true,
    .min_inputs = 2,
    .max_inputs = 2,
    .is_elementwise = true,
    .infer = hwnas_infer_broadcast,
    .compute = compute,
};
