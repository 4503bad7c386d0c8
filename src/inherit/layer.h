/* layer.h: layers that are linear in their weights, as rows of examples. */
#ifndef HWNAS_INHERIT_LAYER_H
#define HWNAS_INHERIT_LAYER_H

#include "graph/graph.h"

typedef enum hwnas_layer_kind {
    HWNAS_LAYER_NONE,
    HWNAS_LAYER_CONV,      /* channels at dimension 1, a position is a point of the image */
    HWNAS_LAYER_DEPTHWISE, /* the same, each channel by itself */
    HWNAS_LAYER_LINEAR,    /* batch x outputs */
    HWNAS_LAYER_MATMUL,    /* ... x outputs, with inputs x outputs as weights */
    HWNAS_LAYER_BIAS,      /* a sum with one value for each of the last dimension */
} hwnas_layer_kind;

hwnas_layer_kind hwnas_layer_kind_of(const hwnas_graph *graph, const hwnas_node *node);
/* Which of an add's inputs is a bias; -1: none. */
int hwnas_layer_bias(const hwnas_graph *graph, const hwnas_node *node);
/* Weights of an output. */
int64_t hwnas_layer_inputs(const hwnas_graph *graph, const hwnas_node *node, hwnas_layer_kind kind);

/* How a layer's values lie: [samples][channels][positions], or the channels last. */
typedef struct hwnas_layer_layout {
    int channel_dim;
    int64_t n_samples, n_channels, n_positions;
    bool is_last;
} hwnas_layer_layout;

hwnas_layer_layout hwnas_layer_layout_of(const hwnas_graph *graph, const hwnas_node *node,
                                         hwnas_layer_kind kind, int64_t n_chunks);
float hwnas_layer_value(const float *values, const hwnas_layer_layout *l, int64_t sample,
                        int64_t position, int64_t channel);

/* Row number r is a position of a sample; positions are spread by a stride that is prime to their
 * number.
 */
typedef struct hwnas_row_plan {
    int64_t n, per_sample, n_positions;
} hwnas_row_plan;

/* As many rows as `n_inputs` weights of an output need. */
hwnas_row_plan hwnas_layer_plan(const hwnas_layer_layout *l, int64_t n_inputs);
void hwnas_layer_row(int64_t *sample, int64_t *position, int64_t row, const hwnas_layer_layout *l,
                     const hwnas_row_plan *p);

#endif
