/* cast: to another type. All are kept as floats, so a cast rounds, and that to whole numbers cuts
 * off. */
#include <math.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "to", .kind = HWNAS_ATTR_INT, .fallback = 0, .low = 0, .high = HWNAS_N_DTYPES - 1,
     .help = "the type"}, /* src/onnx/: its number there */
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    out->dtype = (hwnas_dtype)node->attrs->ints[0];
    return hwnas_infer_same(graph, node, out);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    for (int64_t i = 0, n = hwnas_tensor_count(out); i < n; i++)
        output[i] = hwnas_as_dtype(inputs[0][i], out->dtype);
}

const hwnas_op hwnas_op_cast = {
    .id = HWNAS_OP_CAST,
    .name = "cast",
    .onnx = "Cast",
    .help = "the same values in another type",
    .attrs = attrs,
    .is_internal = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .compute = compute,
};
