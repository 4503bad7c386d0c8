/* layouts.c: images, and what has to be plain. */
#include "device/onednn/layouts.h"

#include "device/onednn/onednn_int8.h"
#include "graph/rounding.h"

typedef hwnas_onednn_finder finder;

bool hwnas_onednn_joins_channels(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_CONCAT || hwnas_node_output(graph, node)->rank != 4)
        return false;
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    return axis == 1 || axis == -3;
}

bool hwnas_onednn_moves_image(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_onednn_joins_channels(graph, node) ||
           ((node->op->id == HWNAS_OP_SLICE || node->op->id == HWNAS_OP_ZERO) &&
            hwnas_node_output(graph, node)->rank == 4);
}

/* Makes images of images, and is fast when channels are last. */
static bool is_image_op(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_node_output(graph, node)->rank == 4 &&
           (node->op->is_spatial || node->op->class == HWNAS_CLASS_QUANTIZATION ||
            hwnas_onednn_is_elementwise(node) || hwnas_onednn_moves_image(graph, node));
}

/* Images begin with a convolution, a pool or a quantisation, and go on through what works on values
 * alone. */
bool hwnas_onednn_begins_image(const finder *f, const hwnas_node *node)
{
    const hwnas_graph *graph = f->source->graph;
    const hwnas_onednn_layout *layouts = f->layouts;
    if (!is_image_op(graph, node) ||
        !(!hwnas_node_is_whole(graph, node) || hwnas_onednn_changes_type(f->source, node)))
        return false;
    if (!hwnas_onednn_is_elementwise(node) && !hwnas_onednn_moves_image(graph, node) &&
        node->op->id != HWNAS_OP_DEQUANTIZE_LINEAR)
        return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (layouts[node->inputs[i]] == HWNAS_ONEDNN_IMAGE &&
            (hwnas_onednn_moves_image(graph, node) ||
             hwnas_same_shape(hwnas_node_input(graph, node, i), hwnas_node_output(graph, node))))
            return true;
    return false;
}

/* Whether a node takes images. Most reorder what they read if need be; a slice of an image stays
 * one. */
static bool reads_images(const finder *f, size_t n)
{
    const hwnas_graph *graph = f->source->graph;
    const hwnas_node *node = &graph->nodes[n];
    const hwnas_onednn_layout layout = f->layouts[node->output];
    return !f->is_own[n] && is_image_op(graph, node) && layout != HWNAS_ONEDNN_FREE &&
           (layout == HWNAS_ONEDNN_IMAGE || node->op->id != HWNAS_OP_SLICE);
}

void hwnas_onednn_choose_images(const finder *f)
{
    const hwnas_graph *graph = f->source->graph;
    hwnas_onednn_layout *layouts = f->layouts;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        if (!f->is_own[i] && hwnas_onednn_begins_image(f, node))
            layouts[node->output] = HWNAS_ONEDNN_IMAGE;
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        layouts[graph->outputs[i]] = HWNAS_ONEDNN_PLAIN;
    for (size_t i = graph->n_nodes; i-- > 0;) { /* what is plain makes all slices before it so */
        const hwnas_node *node = &graph->nodes[i];
        const bool is_skipped = hwnas_rounds(node) && !f->is_own[i]; /* its readers do it */
        for (int k = 0; k < node->n_inputs && !is_skipped && !reads_images(f, i); k++)
            if (layouts[node->inputs[k]] == HWNAS_ONEDNN_IMAGE)
                layouts[node->inputs[k]] = HWNAS_ONEDNN_PLAIN;
    }
    /* What moves values of images that have become plain makes no image. */
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        if (hwnas_onednn_moves_image(graph, node) && layouts[node->output] == HWNAS_ONEDNN_IMAGE &&
            !hwnas_onednn_begins_image(f, node))
            layouts[node->output] = HWNAS_ONEDNN_PLAIN;
    }
}

static bool is_transposed(const hwnas_graph *graph, int tensor)
{
    const int producer = graph->tensors[tensor].producer;
    return producer >= 0 && graph->nodes[producer].op->id == HWNAS_OP_TRANSPOSE;
}

static void set_plain(const finder *f, int tensor)
{
    const int bytes = hwnas_onednn_behind(f->source, tensor);
    if (f->layouts[tensor] == HWNAS_ONEDNN_FREE)
        f->layouts[tensor] = HWNAS_ONEDNN_PLAIN;
    if (bytes >= 0 && f->layouts[bytes] == HWNAS_ONEDNN_FREE)
        f->layouts[bytes] = HWNAS_ONEDNN_PLAIN;
}

/* What our steps and groups read and write is plain unless it is an image. So is what was
 * transposed, but for products: oneDNN would leave the values where they are and exchange strides,
 * with which all its other operators are slow. */
void hwnas_onednn_choose_plain(const finder *f, const int *group_of)
{
    const hwnas_graph *graph = f->source->graph;
    for (size_t i = 0; i < graph->n_outputs; i++)
        f->layouts[graph->outputs[i]] = HWNAS_ONEDNN_PLAIN; /* without groups as well */
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        const bool is_ours = f->is_own[i] || group_of[i] >= 0 || node->op->id == HWNAS_OP_SLICE ||
                             node->op->id == HWNAS_OP_ZERO;
        for (int k = 0; k < node->n_inputs; k++)
            if (is_ours ||
                (node->op->id != HWNAS_OP_MATMUL && is_transposed(graph, node->inputs[k])))
                set_plain(f, node->inputs[k]);
        if (is_ours)
            set_plain(f, node->output);
    }
}
