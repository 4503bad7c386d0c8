#include "predict/int8_loss.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/quantize_graph.h"

enum { CONVOLUTIONS, DEPTHWISE, ATTENTION };

const hwnas_int8_family hwnas_int8_families[] = {
    [CONVOLUTIONS] = {"convolutions", 25, 0.370, 0.677},
    [DEPTHWISE] = {"depthwise convolutions", 21, 0.678, 0.344},
    [ATTENTION] = {"attention", 14, 1.714, 0.861},
    {0},
};

static bool is_depthwise(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_CONV)
        return false;
    const int64_t groups = hwnas_node_find_attr(node, "groups")->ints[0];
    return groups > 1 && groups == hwnas_node_input(graph, node, 0)->dims[1];
}

const hwnas_int8_family *hwnas_int8_family_of(const hwnas_graph *graph)
{
    if (hwnas_graph_has_attention(graph))
        return &hwnas_int8_families[ATTENTION];
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (is_depthwise(graph, &graph->nodes[i]))
            return &hwnas_int8_families[DEPTHWISE];
    return &hwnas_int8_families[CONVOLUTIONS];
}

double hwnas_int8_loss_sd(const hwnas_int8_family *family)
{
    return family->sd * sqrt(1 + 1.0 / family->n);
}
