/* silu: x sigmoid(x), also called Swish (Ramachandran, Zoph and Le 2017). */
#include "graph/ops/elementwise.h"

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    int inputs[] = {node->inputs[0], -1};
    TRY(hwnas_graph_add_node(&inputs[1], graph, hwnas_ops[HWNAS_OP_SIGMOID],
                             hwnas_arena_printf(graph->arena, "%s.gate", node->name), NULL, 1,
                             inputs, false));
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_MUL], node->name, NULL, 2, inputs,
                                false);
}

const hwnas_op hwnas_op_silu = {
    .id = HWNAS_OP_SILU,
    .name = "silu",
    .help = "x times its sigmoid, also called Swish",
    .attrs = hwnas_no_attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
