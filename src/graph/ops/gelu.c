/* gelu: x P(X <= x) for a normal X, or its approximation by tanh (Hendrycks and Gimpel 2016). */
#include <math.h>

#include "graph/ops/elementwise.h"

static const char *const approximations[] = {"none", "tanh", NULL};

static const hwnas_attr_row attrs[] = {
    {.name = "tanh", .kind = HWNAS_ATTR_BOOL, .fallback = 0, .low = 0, .high = 1,
     .onnx = "approximate", .onnx_words = approximations,
     .help = "the approximation by tanh, as GPT-2 has it"},
    {0},
};

static float exact(float x)
{
    return (float)(0.5 * x * (1 + erf(x / sqrt(2))));
}

static float by_tanh(float x)
{
    const double y = x;
    return (float)(0.5 * y * (1 + tanh(sqrt(2 / M_PI) * (y + 0.044715 * y * y * y))));
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_each(graph, node, inputs, output, node->attrs->ints[0] ? by_tanh : exact);
}

const hwnas_op hwnas_op_gelu = {
    .id = HWNAS_OP_GELU,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "gelu",
    .onnx = "Gelu",
    .onnx_since = 20, /* before, it is written in several operators: src/onnx/onnx_forms.c */
    .help = "x times the normal distribution at x",
    .attrs = attrs,
    .is_epilogue = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .keeps_zeros = true,
    .infer = hwnas_infer_floats,
    .compute = compute,
};
