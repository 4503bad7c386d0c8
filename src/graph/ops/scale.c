/* scale: times a constant. */
#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "by", .kind = HWNAS_ATTR_NUMBER, .is_required = true, .fallback = 1, .low = -1e30,
     .high = 1e30, .help = "the factor"},
    {0},
};

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const float factor = (float)node->attrs->number;
    int inputs[] = {node->inputs[0], -1};
    TRY(hwnas_graph_add_constant(&inputs[1], graph,
                                 hwnas_arena_printf(graph->arena, "%s.by", node->name), 0, NULL,
                                 &factor));
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_MUL], node->name, NULL, 2, inputs,
                                false);
}

const hwnas_op hwnas_op_scale = {
    .id = HWNAS_OP_SCALE,
    .name = "scale",
    .help = "times a constant",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
