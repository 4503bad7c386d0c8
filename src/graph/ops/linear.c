/* linear: x W^T + b, with W as outputs x inputs. Of sequences ONNX's Gemm knows nothing: there it
 * is a `matmul` with the weights as inputs x outputs, and an `add`. */
#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "out", .kind = HWNAS_ATTR_INT, .is_required = true, .fallback = 1, .low = 1,
     .high = 1 << 30, .help = "output features"},
    {.name = "bias", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .low = 0, .high = 1,
     .help = "add a learned bias"},
    {0},
};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "transA", .value = 0, .fallback = 0},
    {.name = "transB", .value = 1, .fallback = 0},
    {.name = "alpha", .kind = HWNAS_ATTR_NUMBER, .value = 1, .fallback = 1},
    {.name = "beta", .kind = HWNAS_ATTR_NUMBER, .value = 1, .fallback = 1},
    {0},
};

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const bool has_bias = hwnas_node_attr(node, "bias")->ints[0];
    const int64_t dims[] = {in->dims[in->rank - 1], hwnas_node_attr(node, "out")->ints[0]};
    int inputs[] = {node->inputs[0], -1};
    if (in->rank != 3)
        return HWNAS_OK;
    const char *name = has_bias ? hwnas_arena_printf(graph->arena, "%s.matmul", node->name)
                                : node->name;
    TRY(hwnas_graph_add_weight(&inputs[1], graph,
                               hwnas_arena_printf(graph->arena, "%s.kernel", node->name), 2, dims,
                               HWNAS_INIT_FAN_FIRST, true));
    TRY(hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_MATMUL], name, NULL, 2, inputs, false));
    if (!has_bias)
        return HWNAS_OK;
    inputs[0] = *out;
    TRY(hwnas_graph_add_weight(&inputs[1], graph,
                               hwnas_arena_printf(graph->arena, "%s.bias", node->name), 1, dims + 1,
                               HWNAS_INIT_SMALL, true));
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_ADD], node->name, NULL, 2, inputs,
                                false);
}

static hwnas_status make_weights(hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    int64_t dims[] = {hwnas_node_attr(node, "out")->ints[0], in->dims[in->rank - 1]};
    TRY(hwnas_node_add_weight(graph, node, "weight", 2, dims, HWNAS_INIT_FAN_IN, true));
    if (hwnas_node_attr(node, "bias")->ints[0])
        TRY(hwnas_node_add_weight(graph, node, "bias", 1, dims, HWNAS_INIT_SMALL, true));
    return HWNAS_OK;
}

static void read_weights(const hwnas_graph *graph, hwnas_node *node)
{
    node->attrs[0].ints[0] = hwnas_node_input(graph, node, 1)->dims[0];
    node->attrs[1].ints[0] = node->n_inputs > 2;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    if (in->rank != 2 || weight->rank != 2 || weight->dims[1] != in->dims[1])
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL,
                       "'linear' needs batch x features or batch x length x features, not %s",
                       hwnas_tensor_shape(in).s),
            "put 'flatten' before it");
    TRY(hwnas_check_bias(graph, node));
    out->rank = 2;
    out->dims[0] = in->dims[0];
    out->dims[1] = weight->dims[0];
    return hwnas_check_macs(node, out, weight->dims[1]);
}

static int64_t macs(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_tensor_count(hwnas_node_output(graph, node)) *
           hwnas_node_input(graph, node, 1)->dims[1];
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    int64_t batch = hwnas_node_output(graph, node)->dims[0];
    int64_t n_out = weight->dims[0], n_in = weight->dims[1];
    for (int64_t b = 0; b < batch; b++)
        for (int64_t o = 0; o < n_out; o++) {
            double sum = node->n_inputs > 2 ? inputs[2][o] : 0;
            for (int64_t i = 0; i < n_in; i++)
                sum += (double)inputs[0][b * n_in + i] * inputs[1][o * n_in + i];
            output[b * n_out + o] = (float)sum;
        }
}

const hwnas_op hwnas_op_linear = {
    .id = HWNAS_OP_LINEAR,
    .class = HWNAS_CLASS_PRODUCT,
    .name = "linear",
    .onnx = "Gemm",
    .help = "fully connected layer",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .min_weights = 1,
    .max_weights = 2,
    .build = build,
    .make_weights = make_weights,
    .read_weights = read_weights,
    .infer = infer,
    .macs = macs,
    .compute = compute,
};
