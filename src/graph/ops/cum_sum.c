/* cum_sum: along an axis, the sum of all values so far. */
#include "graph/ops/elementwise.h"

enum { AXIS, EXCLUSIVE, REVERSE };

static const hwnas_attr_row attrs[] = {
    [AXIS] = {.name = "axis", .kind = HWNAS_ATTR_INT, .low = -HWNAS_MAX_RANK,
              .high = HWNAS_MAX_RANK - 1, .onnx = "axis", .onnx_input = 1,
              .help = "dimension that is summed along"},
    [EXCLUSIVE] = {.name = "exclusive", .kind = HWNAS_ATTR_BOOL, .high = 1, .onnx = "exclusive",
                   .help = "without the value itself"},
    [REVERSE] = {.name = "reverse", .kind = HWNAS_ATTR_BOOL, .high = 1, .onnx = "reverse",
                 .help = "from the end"},
    {0},
};

static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    hwnas_settle_axis(node->attrs->ints, hwnas_node_input(graph, node, 0)->rank);
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    int axis;
    TRY(hwnas_find_axis(&axis, node, hwnas_node_input(graph, node, 0)->rank));
    return hwnas_infer_same(graph, node, out);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t n = in->dims[node->attrs[AXIS].ints[0]], count = hwnas_tensor_count(in);
    int64_t step = 1;
    for (int i = in->rank - 1; i > node->attrs[AXIS].ints[0]; i--)
        step *= in->dims[i];
    for (int64_t line = 0; line < count / n; line++) {
        const int64_t first = line / step * step * n + line % step;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = first + (node->attrs[REVERSE].ints[0] ? n - 1 - i : i) * step;
            const double before = sum;
            sum += inputs[0][at];
            output[at] = (float)(node->attrs[EXCLUSIVE].ints[0] ? before : sum);
        }
    }
}

const hwnas_op hwnas_op_cum_sum = {
    .id = HWNAS_OP_CUM_SUM,
    .name = "cum_sum",
    .onnx = "CumSum",
    .help = "sums of all values so far along an axis",
    .attrs = attrs,
    .is_internal = true,
    .takes_integers = true,
    .keeps_zeros = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .settle = settle,
    .infer = infer,
    .compute = compute,
};
