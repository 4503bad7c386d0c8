/* binary.c: functions of two elements that have no arguments: those that join branches in the space
 * language, then comparisons, logic and extremes, which ONNX files alone bring. */
#include <math.h>

#include "graph/ops/elementwise.h"

static float add(float a, float b)
{
    return a + b;
}

static float sub(float a, float b)
{
    return a - b;
}

static float mul(float a, float b)
{
    return a * b;
}

static float quotient(float a, float b)
{
    return a / b;
}

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

static hwnas_status infer_truth(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    out->dtype = HWNAS_BOOL;
    return hwnas_infer_broadcast(graph, node, out);
}

#define PAIR(NAME, ID, ONNX, FUNCTION, INFER, COMMUTES, HELP, ...)                                 \
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
        .commutes = COMMUTES,                                                                      \
        .min_inputs = 2,                                                                           \
        .max_inputs = 2,                                                                           \
        .is_elementwise = true,                                                                    \
        .infer = INFER,                                                                            \
        .compute = compute_##NAME,                                                                 \
        ##__VA_ARGS__,                                                                             \
    };
#define JOIN(NAME, ID, ONNX, FUNCTION, COMMUTES, HELP, ...)                                        \
    PAIR(NAME, ID, ONNX, FUNCTION, hwnas_infer_broadcast, COMMUTES,                                \
         HELP "; a dimension of 1 is repeated", .joins = true, ##__VA_ARGS__)
#define BINARY(NAME, ID, ONNX, FUNCTION, INFER, COMMUTES, HELP, ...)                               \
    PAIR(NAME, ID, ONNX, FUNCTION, INFER, COMMUTES, HELP, .is_internal = true, ##__VA_ARGS__)

JOIN(add, ADD, "Add", add, true, "adds two tensors", .class = HWNAS_CLASS_ARITHMETIC,
     .has_int8_kernel = true, .is_common = true, .keeps_zeros = true)
JOIN(div, DIV, "Div", quotient, false, "quotient of two tensors", .class = HWNAS_CLASS_ARITHMETIC)
JOIN(mul, MUL, "Mul", mul, true, "multiplies two tensors element by element",
     .class = HWNAS_CLASS_ARITHMETIC, .has_int8_kernel = true, .keeps_zeros = true)
JOIN(pow, POW, "Pow", powf, false, "power of two tensors")
JOIN(sub, SUB, "Sub", sub, false, "difference of two tensors", .class = HWNAS_CLASS_ARITHMETIC)

BINARY(and, AND, "And", both, infer_truth, true, "whether both are true")
BINARY(equal, EQUAL, "Equal", equal, infer_truth, true, "whether a = b")
BINARY(greater, GREATER, "Greater", greater, infer_truth, false, "whether a > b")
BINARY(greater_or_equal, GREATER_OR_EQUAL, "GreaterOrEqual", greater_or_equal, infer_truth, false,
       "whether a >= b")
BINARY(less, LESS, "Less", less, infer_truth, false, "whether a < b")
BINARY(less_or_equal, LESS_OR_EQUAL, "LessOrEqual", less_or_equal, infer_truth, false,
       "whether a <= b")
BINARY(max, MAX, "Max", hwnas_greater, hwnas_infer_broadcast, true, "the greater of two")
BINARY(min, MIN, "Min", hwnas_lesser, hwnas_infer_broadcast, true, "the lesser of two")
BINARY(or, OR, "Or", either, infer_truth, true, "whether one or both are true")
BINARY(xor, XOR, "Xor", one_of, infer_truth, true, "whether one alone is true")
