/* weight: a learned tensor in the place of the current one: a table of positions, a class token. */
#include <string.h>

#include "graph/ops/elementwise.h"

enum { SHAPE, EXPAND };

static const hwnas_attr_row attrs[] = {
    [SHAPE] = {.name = "shape", .kind = HWNAS_ATTR_INTS, .is_required = true, .low = 1,
               .high = 1 << 30, .help = "dimensions beside the batch"},
    [EXPAND] = {.name = "expand", .kind = HWNAS_ATTR_BOOL, .fallback = 0, .low = 0, .high = 1,
                .help = "one copy for each item of the batch, as 'concat' needs it"},
    {0},
};

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_attr *shape = &node->attrs[SHAPE];
    const int64_t batch = hwnas_node_input(graph, node, 0)->dims[0];
    int64_t dims[HWNAS_MAX_RANK] = {1};
    if (shape->n == HWNAS_MAX_RANK)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "a tensor has at most %d dimensions, batch included",
                          HWNAS_MAX_RANK);
    memcpy(dims + 1, shape->ints, (size_t)shape->n * sizeof *dims);
    TRY(hwnas_graph_add_weight(out, graph,
                               hwnas_arena_printf(graph->arena, "%s.weight", node->name),
                               shape->n + 1, dims, HWNAS_INIT_SMALL, true));
    if (!node->attrs[EXPAND].ints[0] || batch == 1)
        return HWNAS_OK;
    hwnas_attr to = {.is_set = true, .n = shape->n + 1};
    memcpy(to.ints, dims, sizeof dims);
    to.ints[0] = batch;
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_EXPAND], node->name, &to, 1, out,
                                false);
}

const hwnas_op hwnas_op_weight = {
    .id = HWNAS_OP_WEIGHT,
    .name = "weight",
    .help = "a learned tensor in the place of the current one",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .takes_integers = true,
    .build = build,
};
