/* tied_linear: x E^T with the table E of the network's first embedding, which language models share
 * with their output layer (Press and Wolf 2017). */
#include <string.h>

#include "graph/ops/elementwise.h"

/* The table of the first embedding with vectors of this length, or -1. */
static int find_table(const hwnas_graph *graph, int64_t width)
{
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const hwnas_tensor *table = &graph->tensors[node->inputs[0]];
        if (node->op->id == HWNAS_OP_GATHER && table->kind == HWNAS_TENSOR_WEIGHT &&
            table->rank == 2 && table->dims[1] == width)
            return node->inputs[0];
    }
    return -1;
}

static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t width = in->dims[in->rank - 1];
    const hwnas_attr order = {.is_set = true, .n = 2, .ints = {1, 0}};
    int table = find_table(graph, width), inputs[] = {node->inputs[0], -1};
    if (table < 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "there is no embedding of length %lld to share a table with",
                                     (long long)width),
                          "an 'embedding' before it must have out: %lld", (long long)width);
    TRY(hwnas_graph_add_node(&inputs[1], graph, hwnas_ops[HWNAS_OP_TRANSPOSE],
                             hwnas_arena_printf(graph->arena, "%s.table", node->name), &order, 1,
                             &table, false));
    return hwnas_graph_add_node(out, graph, hwnas_ops[HWNAS_OP_MATMUL], node->name, NULL, 2, inputs,
                                false);
}

const hwnas_op hwnas_op_tied_linear = {
    .id = HWNAS_OP_TIED_LINEAR,
    .name = "tied_linear",
    .help = "fully connected layer whose weights are the first embedding's table",
    .attrs = hwnas_no_attrs,
    .min_inputs = 1,
    .max_inputs = 1,
    .build = build,
};
