/* halves.c: a processor with instructions for bfloat16 reads floats and rounds them on the way; one
 * without multiplies rounded floats, which gives the same. */
#include "device/onednn/halves.h"

#include "device/onednn/onednn.h"
#include "graph/op.h"
#include "graph/rounding.h"

enum { X, KERNEL, BIAS }; /* inputs of a product */

static bool is_native(void)
{
    return hwnas_onednn_is_native(HWNAS_BF16);
}

bool hwnas_onednn_multiplies_halves(const hwnas_onednn_source *source, const hwnas_node *node)
{
    const hwnas_graph *graph = source->graph;
    const bool is_conv = node->op->id == HWNAS_OP_CONV;
    if (!is_conv && node->op->id != HWNAS_OP_LINEAR && node->op->id != HWNAS_OP_MATMUL)
        return false;
    const int x = hwnas_before_rounding(graph, node->inputs[X]);
    const int kernel = hwnas_before_rounding(graph, node->inputs[KERNEL]);
    if (x < 0 || kernel < 0 || graph->tensors[x].kind == HWNAS_TENSOR_WEIGHT ||
        graph->tensors[kernel].kind != HWNAS_TENSOR_WEIGHT || source->kept[x] != dnnl_f32)
        return false;
    if (node->n_inputs > BIAS && hwnas_node_input(graph, node, BIAS)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    return is_conv ? hwnas_node_output(graph, node)->rank == 4
                   : graph->tensors[kernel].rank == 2 && graph->tensors[x].rank >= 2;
}

bool hwnas_onednn_rounds_for_groups(const hwnas_onednn_source *source, const hwnas_node *node,
                                    const bool *is_refused)
{
    const hwnas_graph *graph = source->graph;
    if (!hwnas_rounds(node) || !is_refused || hwnas_graph_is_output(graph, node->output) ||
        !(is_native() || hwnas_node_input(graph, node, 0)->kind == HWNAS_TENSOR_WEIGHT))
        return false;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *reader = &graph->nodes[i];
        for (int k = 0; k < reader->n_inputs; k++)
            if (reader->inputs[k] == node->output &&
                (k > KERNEL || is_refused[i] || !hwnas_onednn_multiplies_halves(source, reader)))
                return false;
    }
    return true;
}

void hwnas_onednn_read_halves(hwnas_onednn_group *g, const hwnas_fusion *f)
{
    const hwnas_graph *graph = f->graph;
    const hwnas_node *root = &graph->nodes[g->chain.nodes[0]];
    g->is_product_of_halves = true;
    g->dequantizes[g->n_dequantizes++] = hwnas_node_input(graph, root, KERNEL)->producer;
    if (!is_native())
        return;
    g->dequantizes[g->n_dequantizes++] = hwnas_node_input(graph, root, X)->producer;
    g->reads[X] = hwnas_before_rounding(graph, root->inputs[X]);
}
