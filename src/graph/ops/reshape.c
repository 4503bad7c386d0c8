/* reshape: the same values in another shape. In a node `shape` is the whole one, batch included. */
#include <string.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "shape", .kind = HWNAS_ATTR_INTS, .is_required = true, .low = -1, .high = 1 << 30,
     .onnx = "shape", .onnx_input = 1, .help = "dimensions beside the batch; -1: what is left"},
    {0},
};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "allowzero", .value = 0, .fallback = 0},
    {0},
};

/* Puts numbers where the shape says 0, as in the input, or -1, whatever is left. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    hwnas_attr *shape = node->attrs;
    int64_t known = 1, *open = NULL;
    for (int i = 0; i < shape->n; i++) {
        if (shape->ints[i] == 0 && i < in->rank)
            shape->ints[i] = in->dims[i];
        if (shape->ints[i] == -1 && !open)
            open = &shape->ints[i];
        else if (__builtin_mul_overflow(known, shape->ints[i], &known))
            return;
    }
    if (open && known > 0 && hwnas_tensor_count(in) % known == 0)
        *open = hwnas_tensor_count(in) / known;
}

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    hwnas_attr shape = *node->attrs;
    if (shape.n == HWNAS_MAX_RANK)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a tensor has at most %d dimensions, batch included",
                          HWNAS_MAX_RANK);
    memmove(shape.ints + 1, shape.ints, (size_t)shape.n++ * sizeof *shape.ints);
    shape.ints[0] = in->dims[0];
    return hwnas_graph_add_node(out, graph, node->op, node->name, &shape, 1, node->inputs, false);
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *shape = node->attrs;
    int64_t count = 1;
    bool fits = true;
    out->rank = shape->n;
    memcpy(out->dims, shape->ints, sizeof out->dims);
    for (int i = 0; i < shape->n; i++)
        fits = fits && shape->ints[i] > 0 && !__builtin_mul_overflow(count, shape->ints[i], &count);
    if (fits && count == hwnas_tensor_count(in))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                 "the %lld values of the shape %s do not fit into %s",
                                 (long long)hwnas_tensor_count(in), hwnas_tensor_shape(in).s,
                                 hwnas_tensor_shape(out).s),
                      "where one choice must divide another, as heads the hidden size, say so: "
                      "constraints: [hidden %% heads == 0]");
}

const hwnas_op hwnas_op_reshape = {
    .id = HWNAS_OP_RESHAPE,
    .name = "reshape",
    .onnx = "Reshape",
    .help = "the same values in another shape",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .takes_integers = true,
    .build = build,
    .settle = settle,
    .infer = infer,
    .compute = hwnas_compute_copy,
};
