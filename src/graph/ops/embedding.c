/* embedding: a learned vector for each whole number: `gather` from a table of its own. */
#include "graph/ops/elementwise.h"

enum { ENTRIES, OUT };

static const hwnas_attr_row attrs[] = {
    [ENTRIES] = {.name = "entries", .kind = HWNAS_ATTR_INT, .is_required = true, .low = 1,
                 .high = 1 << 24, .help = "how many numbers there are, such as words"},
    [OUT] = {.name = "out", .kind = HWNAS_ATTR_INT, .is_required = true, .low = 1, .high = 1 << 30,
             .help = "length of each vector"},
    {0},
};

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t dims[] = {node->attrs[ENTRIES].ints[0], node->attrs[OUT].ints[0]};
    int inputs[2];
    TRY(hwnas_graph_add_weight(&inputs[0], graph,
                               hwnas_arena_printf(graph->arena, "%s.weight", node->name), 2, dims,
                               HWNAS_INIT_FAN_IN, true));
    inputs[1] = node->inputs[0];
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_GATHER], node->name, NULL, 2, inputs,
                                false);
}

const hwnas_op hwnas_op_embedding = {
    .id = HWNAS_OP_EMBEDDING,
    .name = "embedding",
    .help = "a learned vector for each whole number",
    .attrs = attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .takes_integers = true,
    .build = build,
};
