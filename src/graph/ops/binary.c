/* binary.c: functions of two elements that have no arguments: comparisons, logic and extremes. They
 * are what ONNX files bring; those that networks of the space language are made of have files of
 * their own. */
#include <math.h>

#include "graph/ops/elementwise.h"

static float equal(float a, float b)
{
    return a == b;
}

static float greater(float a, float b)
{
    return a > b;
}

static float greater_or_equal(float a, float b)
{
    return a >= b;
}

static float less(float a, float b)
{
    return a < b;
}

static float less_or_equal(float a, float b)
{
    return a <= b;
}

static float both(float a, float b)
{
    return a != 0 && b != 0;
}

static float either(float a, float b)
{
    return a != 0 || b != 0;
}

static float one_of(float a, float b)
{
    return (a != 0) != (b != 0);
}

static float slope(float x, float factor)
{
    return x < 0 ? x * factor : x;
}

static hwnas_status infer_truth(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    out->dtype = HWNAS_BOOL;
    return hwnas_infer_broadcast(graph, node, out);
}

#define BINARY(NAME, ID, ONNX, FUNCTION, INFER, COMMUTES, HELP, ...)                               \
    static void compute_##NAME(const hwnas_graph *graph, const hwnas_node *node,                   \
                               const float *const *inputs, float *output)                          \
    {                                                                                              \
        hwnas_compute_broadcast(graph, node, inputs, output, FUNCTION);                            \
    }                                                                                              \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = hwnas_no_attrs,                                                                   \
        .is_internal = true,                                                                       \
        .commutes = COMMUTES,                                                                      \
        .min_inputs = 2,                                                                           \
        .max_inputs = 2,                                                                           \
        .infer = INFER,                                                                            \
        .compute = compute_##NAME,                                                                 \
        ##__VA_ARGS__,                                                                             \
    };

BINARY(and, AND, "And", both, infer_truth, true, "whether both are true")
BINARY(equal, EQUAL, "Equal", equal, infer_truth, true, "whether a = b")
BINARY(greater, GREATER, "Greater", greater, infer_truth, false, "whether a > b")
BINARY(greater_or_equal, GREATER_OR_EQUAL, "GreaterOrEqual", greater_or_equal, infer_truth, false,
       "whether a >= b")
BINARY(less, LESS, "Less", less, infer_truth, false, "whether a < b")
BINARY(less_or_equal, LESS_OR_EQUAL, "LessOrEqual", less_or_equal, infer_truth, false,
       "whether a <= b")
BINARY(max, MAX, "Max", fmaxf, hwnas_infer_broadcast, true, "the greater of two")
BINARY(min, MIN, "Min", fminf, hwnas_infer_broadcast, true, "the lesser of two")
BINARY(or, OR, "Or", either, infer_truth, true, "whether one or both are true")
BINARY(prelu, PRELU, "PRelu", slope, hwnas_infer_broadcast, false,
       "x, times a learned factor where negative", .class = HWNAS_CLASS_ACTIVATION)
BINARY(xor, XOR, "Xor", one_of, infer_truth, true, "whether one alone is true")
