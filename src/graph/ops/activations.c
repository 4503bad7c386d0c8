/* activations.c: activations with parameters that ONNX files bring. */
#include <math.h>

#include "graph/ops/elementwise.h"

/* `x`, and the two parameters. */
typedef double function(double x, double a, double b);

static void compute_bent(const hwnas_graph *graph, const hwnas_node *node,
                         const float *const *inputs, float *output, function *activation)
{
    const double a = node->attrs[0].number, b = node->op->attrs[1].name ? node->attrs[1].number : 0;
    const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = (float)activation(inputs[0][i], a, b);
}

/* Clevert et al. 2016 */
static double elu(double x, double alpha, double unused)
{
    (void)unused;
    return x < 0 ? alpha * expm1(x) : x;
}

/* Klambauer et al. 2017 */
static double selu(double x, double alpha, double gamma)
{
    return gamma * (x > 0 ? x : alpha * expm1(x));
}

/* Barron 2017 */
static double celu(double x, double alpha, double unused)
{
    (void)unused;
    return fmax(0, x) + fmin(0, alpha * expm1(x / alpha));
}

static double thresholded_relu(double x, double alpha, double unused)
{
    (void)unused;
    return x > alpha ? x : 0;
}

static double shrink(double x, double bias, double lambda)
{
    return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
}

#define PARAMETER(NAME, ONNX, FALLBACK, HELP)                                                      \
    {                                                                                              \
        .name = NAME, .kind = HWNAS_ATTR_NUMBER, .fallback = FALLBACK, .low = -INFINITY,           \
        .high = INFINITY, .onnx = ONNX, .help = HELP                                               \
    }

#define BENT(NAME, ID, CLASS, ONNX, HELP, ...)                                                     \
    static void compute_##NAME(const hwnas_graph *graph, const hwnas_node *node,                   \
                               const float *const *inputs, float *output)                          \
    {                                                                                              \
        compute_bent(graph, node, inputs, output, NAME);                                           \
    }                                                                                              \
    static const hwnas_attr_row attrs_##NAME[] = {__VA_ARGS__, {0}};                               \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .class = HWNAS_CLASS_##CLASS,                                                              \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = attrs_##NAME,                                                                     \
        .is_internal = true,                                                                       \
        .keeps_zeros = true,                                                                       \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .is_elementwise = true,                                                                    \
        .infer = hwnas_infer_same,                                                                 \
        .compute = compute_##NAME,                                                                 \
    };

BENT(elu, ELU, ACTIVATION, "Elu", "x, alpha (e^x - 1) where negative",
     PARAMETER("alpha", "alpha", 1, "its limit"))
BENT(selu, SELU, ACTIVATION, "Selu", "elu, scaled to keep mean and variance",
     PARAMETER("alpha", "alpha", 1.67326319217681884765625, "its limit"),
     PARAMETER("gamma", "gamma", 1.05070102214813232421875, "scale of all"))
BENT(celu, CELU, ACTIVATION, "Celu", "elu with a continuous slope",
     PARAMETER("alpha", "alpha", 1, "its limit"))
BENT(thresholded_relu, THRESHOLDED_RELU, OTHER, "ThresholdedRelu",
     "x where it is more than alpha, else 0", PARAMETER("alpha", "alpha", 1, "the threshold"))
BENT(shrink, SHRINK, OTHER, "Shrink", "x nearer to 0, and 0 near it",
     PARAMETER("bias", "bias", 0, "how much nearer"),
     PARAMETER("lambda", "lambd", 0.5, "what is near"))
