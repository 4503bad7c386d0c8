/* softmax: e^x over its sum along one axis. */
#include <math.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = -1, .low = -HWNAS_MAX_RANK,
     .high = HWNAS_MAX_RANK - 1, .onnx = "axis",
     .help = "dimension that sums to 1; -1 is the last"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    int axis;
    TRY(hwnas_find_axis(&axis, node, hwnas_node_input(graph, node, 0)->rank));
    return hwnas_infer_same(graph, node, out);
}

/* `n` values that lie `step` apart. The greatest is taken off first, so that none overflows. */
static void compute_line(float *to, const float *from, int64_t n, int64_t step)
{
    double sum = 0, greatest = from[0];
    for (int64_t i = 1; i < n; i++)
        greatest = fmax(greatest, from[i * step]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(from[i * step] - greatest);
    for (int64_t i = 0; i < n; i++)
        to[i * step] = (float)(exp(from[i * step] - greatest) / sum);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t axis = node->attrs[0].ints[0] + (node->attrs[0].ints[0] < 0 ? in->rank : 0);
    const int64_t n = in->dims[axis], count = hwnas_tensor_count(in);
    int64_t step = 1;
    for (int i = in->rank - 1; i > axis; i--)
        step *= in->dims[i];
    for (int64_t at = 0; at < count; at += n * step)
        for (int64_t i = at; i < at + step; i++)
            compute_line(output + i, inputs[0] + i, n, step);
}

const hwnas_op hwnas_op_softmax = {
    .id = HWNAS_OP_SOFTMAX,
    .name = "softmax",
    .onnx = "Softmax",
    .onnx_since = 13, /* before, all dimensions from `axis` on were one */
    .help = "e^x over its sum along `axis`",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .compute = compute,
};
