/* relu6: max(0, min(6, x)), the activation of MobileNetV2 (Sandler et al. 2018). */
#include "graph/ops/elementwise.h"

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_CLIP], node->name, NULL, 1,
                                node->inputs, false);
}

const hwnas_op hwnas_op_relu6 = {
    .id = HWNAS_OP_RELU6,
    .name = "relu6",
    .help = "max(0, min(6, x))",
    .attrs = hwnas_no_attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
