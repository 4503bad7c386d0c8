#include "graph/rounding.h"

#include <stdlib.h>

#include "graph/op.h"
#include "graph/rewrite.h"

enum { KERNEL = 1 }; /* input of a product */

bool hwnas_rounds(const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_CAST && node->attrs->ints[0] == HWNAS_BFLOAT16;
}

bool hwnas_graph_rounds(const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (hwnas_rounds(&graph->nodes[i]))
            return true;
    return false;
}

int hwnas_before_rounding(const hwnas_graph *graph, int tensor)
{
    const int producer = graph->tensors[tensor].producer;
    return producer >= 0 && hwnas_rounds(&graph->nodes[producer])
               ? graph->nodes[producer].inputs[0]
               : -1;
}

bool hwnas_is_rounded_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    if (!hwnas_rounds(node) || hwnas_node_input(graph, node, 0)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    bool is_read = false;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *reader = &graph->nodes[i];
        for (int k = 0; k < reader->n_inputs; k++) {
            if (reader->inputs[k] != node->output)
                continue;
            if (k != KERNEL || reader->op->class != HWNAS_CLASS_PRODUCT)
                return false;
            is_read = true;
        }
    }
    return is_read && !hwnas_graph_is_output(graph, node->output);
}

/* ---- Making them ---- */

typedef struct rounder {
    const bool *is_rounded;
    int *rounded; /* by tensor of the graph before: its cast; -1: there is none yet */
} rounder;

/* The cast of a tensor, which those that want it share. */
static hwnas_status get(int *out, hwnas_rewrite *r, int tensor)
{
    const rounder *made = r->context;
    const hwnas_attr to = hwnas_attr_int(HWNAS_BFLOAT16);
    if (made->rounded[tensor] < 0) {
        const char *name =
            hwnas_arena_printf(r->to->arena, "%s/bfloat16", r->from->tensors[tensor].name);
        TRY(hwnas_graph_add_node(&made->rounded[tensor], r->to, hwnas_ops[HWNAS_OP_CAST], name, &to,
                                 1, &r->place[tensor], false));
    }
    *out = made->rounded[tensor];
    return HWNAS_OK;
}

static hwnas_status round_nodes(hwnas_rewrite *r)
{
    const rounder *made = r->context;
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        int inputs[HWNAS_MAX_NODE_INPUTS];
        for (int i = 0; i < node->n_inputs; i++) {
            if (r->place[node->inputs[i]] < 0)
                TRY(hwnas_rewrite_copy_weight(r, node->inputs[i]));
            inputs[i] = r->place[node->inputs[i]];
            if (made->is_rounded[n] && i <= KERNEL)
                TRY(get(&inputs[i], r, node->inputs[i]));
        }
        TRY(hwnas_rewrite_add_node(r, node, node->n_inputs, inputs, node->output));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_graph_round_products(hwnas_graph **out, const hwnas_graph *graph,
                                        const bool *is_rounded)
{
    rounder made = {is_rounded, hwnas_alloc((graph->n_tensors + 1) * sizeof *made.rounded)};
    for (size_t i = 0; i < graph->n_tensors; i++)
        made.rounded[i] = -1;
    const hwnas_status status = hwnas_graph_remake(out, graph, round_nodes, &made);
    free(made.rounded);
    return status;
}
