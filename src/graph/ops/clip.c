/* clip: max(low, min(high, x)). The default is the ReLU6 of MobileNet; ONNX's bounds nothing. */
#include <float.h>
#include <math.h>

#include "graph/ops/elementwise.h"

static const double onnx_low = -FLT_MAX, onnx_high = FLT_MAX;

static const hwnas_attr_row attrs[] = {
    {.name = "low", .kind = HWNAS_ATTR_NUMBER, .fallback = 0, .low = -INFINITY, .high = INFINITY,
     .onnx = "min", .onnx_input = 1, .onnx_fallback = &onnx_low, .help = "the least value"},
    {.name = "high", .kind = HWNAS_ATTR_NUMBER, .fallback = 6, .low = -INFINITY, .high = INFINITY,
     .onnx = "max", .onnx_input = 2, .onnx_fallback = &onnx_high, .help = "the greatest value"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const double low = node->attrs[0].number, high = node->attrs[1].number;
    if (!(low <= high))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'low' of 'clip' is %g, above 'high', which is %g",
                          low, high);
    return hwnas_infer_same(graph, node, out);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const float low = (float)node->attrs[0].number, high = (float)node->attrs[1].number;
    const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = hwnas_greater(low, hwnas_lesser(high, inputs[0][i]));
}

const hwnas_op hwnas_op_clip = {
    .id = HWNAS_OP_CLIP,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "clip",
    .onnx = "Clip",
    .help = "max(low, min(high, x)); 0 to 6 is ReLU6",
    .attrs = attrs,
    .is_epilogue = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .infer = infer,
    .compute = compute,
};
