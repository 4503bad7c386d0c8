/* flatten: all dimensions from `axis` on become one. */
#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = 1, .high = HWNAS_MAX_RANK,
     .onnx = "axis", .help = "first dimension that is merged"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    if (axis > in->rank)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'flatten' from axis %lld needs more than the shape %s", (long long)axis,
                          hwnas_tensor_shape(in).s);
    out->rank = 2;
    out->dims[0] = out->dims[1] = 1;
    for (int i = 0; i < in->rank; i++)
        out->dims[i >= axis] *= in->dims[i];
    return HWNAS_OK;
}

const hwnas_op hwnas_op_flatten = {
    .id = HWNAS_OP_FLATTEN,
    .name = "flatten",
    .onnx = "Flatten",
    .help = "merges the dimensions from `axis` on into one",
    .attrs = attrs,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = infer,
    .compute = hwnas_compute_copy,
};
