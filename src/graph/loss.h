/* loss.h: what a training step makes small when nothing but the network is known. */
#ifndef HWNAS_GRAPH_LOSS_H
#define HWNAS_GRAPH_LOSS_H

#include "graph/graph.h"

typedef enum hwnas_loss {
    HWNAS_LOSS_SQUARES,       /* mean squared error */
    HWNAS_LOSS_CROSS_ENTROPY, /* of a softmax over the last dimension against a class */
    HWNAS_N_LOSSES
} hwnas_loss;

/* Of the graph's output number i: cross-entropy where it is a softmax over its last dimension, a
 * product of a matrix, or a row of two or more features that no activation function has bounded;
 * else squares. */
hwnas_loss hwnas_graph_loss(const hwnas_graph *graph, size_t i);
/* The tensor that the loss reads: that output, or what goes into its softmax. */
int hwnas_graph_loss_input(const hwnas_graph *graph, size_t i);

/* "squares", "cross-entropy" */
const char *hwnas_loss_name(hwnas_loss loss);

#endif
