/* layer.c: what a layer computes, and how its values lie. */
#include "inherit/layer.h"

#include "graph/op.h"

/* Examples for a layer: six for each of its weights, within bounds. */
enum { MIN_ROWS = 2048, MAX_ROWS = 12288, ROWS_PER_INPUT = 6 };

static bool is_weight(const hwnas_graph *graph, int tensor)
{
    return graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT;
}

int hwnas_layer_bias(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *y = hwnas_node_output(graph, node);
    for (int i = 0; i < 2; i++) {
        const hwnas_tensor *t = hwnas_node_input(graph, node, i);
        if (is_weight(graph, node->inputs[i]) && !is_weight(graph, node->inputs[!i]) &&
            y->rank > 0 && hwnas_tensor_count(t) == y->dims[y->rank - 1] && t->rank > 0 &&
            t->dims[t->rank - 1] == y->dims[y->rank - 1] &&
            hwnas_same_shape(hwnas_node_input(graph, node, !i), y))
            return i;
    }
    return -1;
}

hwnas_layer_kind hwnas_layer_kind_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const bool has_weights = node->n_inputs > 1 && is_weight(graph, node->inputs[1]) &&
                             !is_weight(graph, node->inputs[0]);
    switch (node->op->id) {
    case HWNAS_OP_CONV: {
        const int64_t groups = hwnas_node_attr(node, "groups")->ints[0];
        const bool is_depthwise = groups == hwnas_node_input(graph, node, 0)->dims[1] &&
                                  groups == hwnas_node_output(graph, node)->dims[1];
        return !has_weights   ? HWNAS_LAYER_NONE
               : groups == 1  ? HWNAS_LAYER_CONV
               : is_depthwise ? HWNAS_LAYER_DEPTHWISE
                              : HWNAS_LAYER_NONE;
    }
    case HWNAS_OP_LINEAR:
        return has_weights ? HWNAS_LAYER_LINEAR : HWNAS_LAYER_NONE;
    case HWNAS_OP_MATMUL:
        return has_weights && hwnas_node_input(graph, node, 1)->rank == 2 ? HWNAS_LAYER_MATMUL
                                                                          : HWNAS_LAYER_NONE;
    case HWNAS_OP_ADD:
        return hwnas_layer_bias(graph, node) >= 0 ? HWNAS_LAYER_BIAS : HWNAS_LAYER_NONE;
    default:
        return HWNAS_LAYER_NONE;
    }
}

hwnas_layer_layout hwnas_layer_layout_of(const hwnas_graph *graph, const hwnas_node *node,
                                         hwnas_layer_kind kind, int64_t n_chunks)
{
    const hwnas_tensor *y = hwnas_node_output(graph, node);
    const bool is_image = kind == HWNAS_LAYER_CONV || kind == HWNAS_LAYER_DEPTHWISE;
    hwnas_layer_layout l = {.channel_dim = is_image ? 1 : y->rank - 1, .is_last = !is_image};
    l.n_channels = y->dims[l.channel_dim];
    l.n_samples = n_chunks * y->dims[0];
    l.n_positions = hwnas_tensor_count(y) / y->dims[0] / l.n_channels;
    return l;
}

hwnas_row_plan hwnas_layer_plan(const hwnas_layer_layout *l, int64_t n_inputs)
{
    int64_t wanted = ROWS_PER_INPUT * n_inputs;
    wanted = wanted < MIN_ROWS ? MIN_ROWS : wanted > MAX_ROWS ? MAX_ROWS : wanted;
    hwnas_row_plan p = {.per_sample = (wanted + l->n_samples - 1) / l->n_samples};
    if (p.per_sample > l->n_positions)
        p.per_sample = l->n_positions;
    p.n = p.per_sample * l->n_samples;
    p.n_positions = l->n_positions;
    return p;
}

void hwnas_layer_row(int64_t *sample, int64_t *position, int64_t row, const hwnas_layer_layout *l,
                     const hwnas_row_plan *p)
{
    *sample = row / p->per_sample;
    *position =
        (row % p->per_sample * l->n_positions / p->per_sample + *sample * 7) % l->n_positions;
}

float hwnas_layer_value(const float *values, const hwnas_layer_layout *l, int64_t sample,
                        int64_t position, int64_t channel)
{
    return values[(sample * l->n_channels * l->n_positions) +
                  (l->is_last ? position * l->n_channels + channel
                              : channel * l->n_positions + position)];
}

int64_t hwnas_layer_inputs(const hwnas_graph *graph, const hwnas_node *node, hwnas_layer_kind kind)
{
    const hwnas_tensor *w = hwnas_node_input(graph, node, 1);
    return kind == HWNAS_LAYER_BIAS     ? 0
           : kind == HWNAS_LAYER_MATMUL ? w->dims[0]
                                        : hwnas_tensor_count(w) / w->dims[0];
}
