/* unary.c: functions of each element by itself that have no arguments: layers of the space language,
 * then what ONNX files alone bring. */
#include <math.h>

#include "graph/ops/elementwise.h"

/* Of slope 1/6. Howard et al. 2019, "Searching for MobileNetV3", section 5.2. */
static float hard_swish(float x)
{
    return x * fmaxf(0, fminf(6, x + 3)) / 6;
}

static float relu(float x)
{
    return hwnas_greater(x, 0);
}

static float sigmoid(float x)
{
    return (float)(1 / (1 + exp(-(double)x)));
}

static float sign(float x)
{
    return isnan(x) ? x : (float)((x > 0) - (x < 0));
}

static float softplus(float x)
{
    return x > 30 ? x : (float)log1p(exp(x));
}

static float mish(float x)
{
    return (float)(x * tanh(softplus(x)));
}

static float softsign(float x)
{
    return x / (1 + fabsf(x));
}

static float negate(float x)
{
    return -x;
}

static float reciprocal(float x)
{
    return 1 / x;
}

static float invert(float x)
{
    return x == 0;
}

static float is_nan(float x)
{
    return isnan(x);
}

static hwnas_status infer_truth(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    out->dtype = HWNAS_BOOL;
    return hwnas_infer_same(graph, node, out);
}

#define LAYER(NAME, ID, ONNX, FUNCTION, INFER, HELP, ...)                                          \
    static void compute_##NAME(const hwnas_graph *graph, const hwnas_node *node,                   \
                               const float *const *inputs, float *output)                          \
    {                                                                                              \
        hwnas_compute_each(graph, node, inputs, output, FUNCTION);                                 \
    }                                                                                              \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = hwnas_no_attrs,                                                                   \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .is_elementwise = true,                                                                    \
        .infer = INFER,                                                                            \
        .compute = compute_##NAME,                                                                 \
        ##__VA_ARGS__,                                                                             \
    };
#define UNARY(NAME, ID, ONNX, FUNCTION, INFER, HELP, ...)                                          \
    LAYER(NAME, ID, ONNX, FUNCTION, INFER, HELP, .is_internal = true, ##__VA_ARGS__)

LAYER(erf, ERF, "Erf", erff, hwnas_infer_same, "the error function", .onnx_since = 9,
      .keeps_zeros = true)
LAYER(hard_swish, HARD_SWISH, "HardSwish", hard_swish, hwnas_infer_same,
      "x * max(0, min(1, x / 6 + 1/2))", .class = HWNAS_CLASS_ACTIVATION, .is_epilogue = true,
      .keeps_zeros = true)
LAYER(relu, RELU, "Relu", relu, hwnas_infer_same, "max(x, 0)", .class = HWNAS_CLASS_ACTIVATION,
      .is_epilogue = true, .is_common = true, .keeps_zeros = true)
LAYER(sigmoid, SIGMOID, "Sigmoid", sigmoid, hwnas_infer_same, "1 / (1 + e^-x)",
      .class = HWNAS_CLASS_ACTIVATION, .is_epilogue = true, .has_int8_kernel = true)
LAYER(tanh, TANH, "Tanh", tanhf, hwnas_infer_same, "hyperbolic tangent",
      .class = HWNAS_CLASS_ACTIVATION, .is_epilogue = true, .keeps_zeros = true)

UNARY(abs, ABS, "Abs", fabsf, hwnas_infer_same, "absolute value")
UNARY(acos, ACOS, "Acos", acosf, hwnas_infer_same, "inverse cosine")
UNARY(acosh, ACOSH, "Acosh", acoshf, hwnas_infer_same, "inverse hyperbolic cosine")
UNARY(asin, ASIN, "Asin", asinf, hwnas_infer_same, "inverse sine")
UNARY(asinh, ASINH, "Asinh", asinhf, hwnas_infer_same, "inverse hyperbolic sine")
UNARY(atan, ATAN, "Atan", atanf, hwnas_infer_same, "inverse tangent")
UNARY(atanh, ATANH, "Atanh", atanhf, hwnas_infer_same, "inverse hyperbolic tangent")
UNARY(ceil, CEIL, "Ceil", ceilf, hwnas_infer_same, "the next whole number")
UNARY(cos, COS, "Cos", cosf, hwnas_infer_same, "cosine")
UNARY(cosh, COSH, "Cosh", coshf, hwnas_infer_same, "hyperbolic cosine")
UNARY(exp, EXP, "Exp", expf, hwnas_infer_same, "e to the power of x")
UNARY(floor, FLOOR, "Floor", floorf, hwnas_infer_same, "the whole number before")
UNARY(is_nan, IS_NAN, "IsNaN", is_nan, infer_truth, "whether x is not a number")
UNARY(log, LOG, "Log", logf, hwnas_infer_same, "natural logarithm")
UNARY(mish, MISH, "Mish", mish, hwnas_infer_floats, "x tanh(log(1 + e^x))",
      .class = HWNAS_CLASS_ACTIVATION)
UNARY(neg, NEG, "Neg", negate, hwnas_infer_same, "-x")
UNARY(not, NOT, "Not", invert, infer_truth, "1 where x is 0")
UNARY(reciprocal, RECIPROCAL, "Reciprocal", reciprocal, hwnas_infer_same, "1 / x")
UNARY(round, ROUND, "Round", rintf, hwnas_infer_same, "the nearest whole number, halves to even")
UNARY(sign, SIGN, "Sign", sign, hwnas_infer_same, "-1, 0 or 1")
UNARY(sin, SIN, "Sin", sinf, hwnas_infer_same, "sine")
UNARY(sinh, SINH, "Sinh", sinhf, hwnas_infer_same, "hyperbolic sine")
UNARY(softplus, SOFTPLUS, "Softplus", softplus, hwnas_infer_same, "log(1 + e^x)",
      .class = HWNAS_CLASS_ACTIVATION)
UNARY(softsign, SOFTSIGN, "Softsign", softsign, hwnas_infer_same, "x / (1 + |x|)",
      .class = HWNAS_CLASS_ACTIVATION)
UNARY(sqrt, SQRT, "Sqrt", sqrtf, hwnas_infer_same, "square root")
UNARY(tan, TAN, "Tan", tanf, hwnas_infer_same, "tangent")
