/* reduce.c: one value of many, and the kinds of it that ONNX files bring. */
#include "graph/ops/reduce.h"

#include <math.h>
#include <stdlib.h>

const double hwnas_reduce_keeps = 1;

/* Counted from the beginning, in order, each once; so that equal nodes are equal. */
void hwnas_reduce_settle(const hwnas_graph *graph, hwnas_node *node)
{
    const int rank = hwnas_node_input(graph, node, 0)->rank;
    hwnas_attr *axes = &node->attrs[HWNAS_REDUCE_AXES];
    unsigned set = axes->n ? 0 : (1u << rank) - 1;
    for (int i = 0; i < axes->n; i++) {
        const int64_t axis = axes->ints[i] + (axes->ints[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
            return;
        set |= 1u << axis;
    }
    axes->n = 0;
    for (int i = 0; i < rank; i++)
        if (set >> i & 1)
            axes->ints[axes->n++] = i;
}

static bool is_reduced(const hwnas_node *node, int axis)
{
    const hwnas_attr *axes = &node->attrs[HWNAS_REDUCE_AXES];
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] == axis)
            return true;
    return false;
}

hwnas_status hwnas_reduce_infer(const hwnas_graph *graph, const hwnas_node *node,
                                hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *axes = &node->attrs[HWNAS_REDUCE_AXES];
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] < 0 || axes->ints[i] >= in->rank)
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "an axis of '%s' is %lld, its input has %d dimensions",
                              node->op->name, (long long)axes->ints[i], in->rank);
    for (int i = 0; i < in->rank; i++) {
        if (!is_reduced(node, i))
            out->dims[out->rank++] = in->dims[i];
        else if (node->attrs[HWNAS_REDUCE_KEEP].ints[0])
            out->dims[out->rank++] = 1;
    }
    return HWNAS_OK;
}

void hwnas_reduce_compute(const hwnas_graph *graph, const hwnas_node *node,
                          const float *const *inputs, float *output, double start,
                          hwnas_reduce_step *step, hwnas_reduce_end *end)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    hwnas_tensor kept = *in; /* the output with its reduced dimensions left in */
    for (int i = 0; i < in->rank; i++)
        kept.dims[i] = is_reduced(node, i) ? 1 : in->dims[i];
    const int64_t n_in = hwnas_tensor_count(in), n_out = hwnas_tensor_count(&kept);
    double *all = hwnas_alloc((size_t)n_out * sizeof *all);
    for (int64_t at = 0; at < n_out; at++)
        all[at] = start;
    hwnas_walk to = hwnas_walk_new(&kept, in);
    for (int64_t at = 0; at < n_in; at++, hwnas_walk_next(&to))
        all[to.at] = step(all[to.at], inputs[0][at]);
    for (int64_t at = 0; at < n_out; at++)
        output[at] = (float)end(all[at], (double)(n_in / n_out));
    free(all);
}

/* ---- kinds ---- */

static double add(double so_far, double value)
{
    return so_far + value;
}

static double add_absolute(double so_far, double value)
{
    return so_far + fabs(value);
}

static double add_square(double so_far, double value)
{
    return so_far + value * value;
}

/* What is kept is the logarithm of the sum: the sum itself is infinite from e^710 on. */
static double add_exponential(double so_far, double value)
{
    const double high = fmax(so_far, value), low = fmin(so_far, value);
    if (isnan(so_far) || isnan(value))
        return so_far + value;
    return isinf(high) ? high : high + log1p(exp(low - high));
}

static double multiply(double so_far, double value)
{
    return so_far * value;
}

static double as_it_is(double all, double n)
{
    (void)n;
    return all;
}

static double root(double all, double n)
{
    (void)n;
    return sqrt(all);
}

static double logarithm(double all, double n)
{
    (void)n;
    return log(all);
}

static const hwnas_attr_row attrs[] = {HWNAS_REDUCE_ATTRS(false), {0}};

#define REDUCE(NAME, ID, ONNX, START, STEP, END, HELP)                                             \
    static void compute_##NAME(const hwnas_graph *graph, const hwnas_node *node,                   \
                               const float *const *inputs, float *output)                          \
    {                                                                                              \
        hwnas_reduce_compute(graph, node, inputs, output, START, STEP, END);                       \
    }                                                                                              \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = attrs,                                                                            \
        .is_internal = true,                                                                       \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .settle = hwnas_reduce_settle,                                                             \
        .infer = hwnas_reduce_infer,                                                               \
        .compute = compute_##NAME,                                                                 \
    };

REDUCE(reduce_l1, REDUCE_L1, "ReduceL1", 0, add_absolute, as_it_is, "sum of absolute values")
REDUCE(reduce_l2, REDUCE_L2, "ReduceL2", 0, add_square, root, "root of the sum of squares")
REDUCE(reduce_log_sum, REDUCE_LOG_SUM, "ReduceLogSum", 0, add, logarithm, "logarithm of the sum")
REDUCE(reduce_log_sum_exp, REDUCE_LOG_SUM_EXP, "ReduceLogSumExp", -INFINITY, add_exponential,
       as_it_is, "logarithm of the sum of exponentials")
REDUCE(reduce_max, REDUCE_MAX, "ReduceMax", -INFINITY, fmax, as_it_is, "the greatest")
REDUCE(reduce_min, REDUCE_MIN, "ReduceMin", INFINITY, fmin, as_it_is, "the least")
REDUCE(reduce_prod, REDUCE_PROD, "ReduceProd", 1, multiply, as_it_is, "product")
REDUCE(reduce_sum, REDUCE_SUM, "ReduceSum", 0, add, as_it_is, "sum")
REDUCE(reduce_sum_square, REDUCE_SUM_SQUARE, "ReduceSumSquare", 0, add_square, as_it_is,
       "sum of squares")
