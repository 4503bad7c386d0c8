#include "graph/loss.h"

#include "graph/op.h"

static const hwnas_node *producer_of(const hwnas_graph *graph, int tensor)
{
    const int node = graph->tensors[tensor].producer;
    return node < 0 ? NULL : &graph->nodes[node];
}

static bool is_last_softmax(const hwnas_graph *graph, const hwnas_node *node)
{
    if (!hwnas_node_is(node, HWNAS_OP_SOFTMAX))
        return false;
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    return axis == -1 || axis == hwnas_node_output(graph, node)->rank - 1;
}

hwnas_loss hwnas_graph_loss(const hwnas_graph *graph, size_t i)
{
    const hwnas_tensor *out = &graph->tensors[graph->outputs[i]];
    const hwnas_node *node = producer_of(graph, graph->outputs[i]);
    const bool has_classes = out->rank >= 2 && out->dims[out->rank - 1] >= 2;
    if (!node || !has_classes)
        return HWNAS_LOSS_SQUARES;
    if (is_last_softmax(graph, node) || hwnas_node_is(node, HWNAS_OP_MATMUL))
        return HWNAS_LOSS_CROSS_ENTROPY;
    return out->rank == 2 && node->op->class != HWNAS_CLASS_ACTIVATION &&
                   !hwnas_node_is(node, HWNAS_OP_SOFTMAX)
               ? HWNAS_LOSS_CROSS_ENTROPY
               : HWNAS_LOSS_SQUARES;
}

int hwnas_graph_loss_input(const hwnas_graph *graph, size_t i)
{
    const hwnas_node *node = producer_of(graph, graph->outputs[i]);
    return hwnas_graph_loss(graph, i) == HWNAS_LOSS_CROSS_ENTROPY && is_last_softmax(graph, node)
               ? node->inputs[0]
               : graph->outputs[i];
}

const char *hwnas_loss_name(hwnas_loss loss)
{
    static const char *const names[HWNAS_N_LOSSES] = {
        [HWNAS_LOSS_SQUARES] = "squares",
        [HWNAS_LOSS_CROSS_ENTROPY] = "cross-entropy",
    };
    return names[loss];
}
