/* mean: over some of the dimensions. */
#include "graph/ops/reduce.h"

static const hwnas_attr_row attrs[] = {HWNAS_REDUCE_ATTRS(true), {0}};

static double add(double so_far, double value)
{
    return so_far + value;
}

static double divide(double all, double n)
{
    return all / n;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_reduce_compute(graph, node, inputs, output, 0, add, divide);
}

const hwnas_op hwnas_op_mean = {
    .id = HWNAS_OP_MEAN,
    .name = "mean",
    .onnx = "ReduceMean",
    .help = "mean over some of the dimensions",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .settle = hwnas_reduce_settle,
    .infer = hwnas_reduce_infer,
    .compute = compute,
};
