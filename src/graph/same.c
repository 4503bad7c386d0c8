/* same.c: tensors that are the same as others whatever the weights are: x + 0 is x. What the
 * operator "none" leaves of a cell need be neither measured nor told apart. */
#include <stdlib.h>

#include "graph/op.h"
#include "graph/rewrite.h"

/* Zeros, or made of nothing but zeros by an operator that keeps them; a bias would not. */
static bool gives_zeros(const hwnas_node *node, const bool *is_zero)
{
    if (node->op->id == HWNAS_OP_ZERO)
        return true;
    if (!node->op->keeps_zeros || node->n_inputs - node->n_data_inputs > 1)
        return false;
    for (int i = 0; i < node->n_data_inputs; i++)
        if (!is_zero[node->inputs[i]])
            return false;
    return true;
}

int *hwnas_graph_same(const hwnas_graph *graph)
{
    bool *is_zero = hwnas_alloc((graph->n_tensors + 1) * sizeof *is_zero);
    int *same = hwnas_alloc((graph->n_tensors + 1) * sizeof *same);
    for (size_t t = 0; t < graph->n_tensors; t++)
        same[t] = (int)t;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        is_zero[node->output] = gives_zeros(node, is_zero);
        if (is_zero[node->output] || node->op->id != HWNAS_OP_ADD)
            continue; /* 0 + 0 stays: which 0 it is would depend on the order */
        for (int i = 0; i < 2; i++) {
            const int other = node->inputs[1 - i];
            if (is_zero[node->inputs[i]] &&
                hwnas_same_shape(&graph->tensors[other], &graph->tensors[node->output]))
                same[node->output] = same[other];
        }
    }
    free(is_zero);
    return same;
}
