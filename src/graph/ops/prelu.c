/* prelu: x, times a factor of its own for each channel where it is negative (He et al. 2015). A
 * layer learns the factors; in an ONNX file the second input can be anything that broadcasts. */
#include "graph/ops/elementwise.h"

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t dims[] = {in->dims[1], 1, 1};
    int inputs[] = {node->inputs[0], -1};
    if (in->rank != 2 && in->rank != 4)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "'prelu' needs an image or features, not %s",
                                     hwnas_tensor_shape(in).s),
                          "'leaky_relu' works on sequences too");
    TRY(hwnas_graph_add_weight(&inputs[1], graph,
                               hwnas_arena_printf(graph->arena, "%s.weight", node->name),
                               in->rank == 4 ? 3 : 1, dims, HWNAS_INIT_SMALL, true));
    return hwnas_graph_add_node(out, graph, node->op, node->name, NULL, 2, inputs, false);
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    if (node->n_inputs < 2)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'prelu' has no factor");
    return hwnas_infer_broadcast(graph, node, out);
}

static float slope(float x, float factor)
{
    return x < 0 ? x * factor : x;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_broadcast(graph, node, inputs, output, slope);
}

const hwnas_op hwnas_op_prelu = {
    .id = HWNAS_OP_PRELU,
    .class = HWNAS_CLASS_ACTIVATION,
    .name = "prelu",
    .onnx = "PRelu",
    .help = "x, times a learned factor where negative",
    .attrs = hwnas_no_attrs,
    .min_inputs = 1,
    .max_inputs = 2,
    .build = build,
    .infer = infer,
    .compute = compute,
};
