/* rewrite.h: new graphs from old ones. What is made shares nothing with what it was made from, if
 * nothing else is said. */
#ifndef HWNAS_GRAPH_REWRITE_H
#define HWNAS_GRAPH_REWRITE_H

#include "graph/graph.h"

/* Operators in the place of the several that they were written as: normalisations, activations,
 * softmax (fuse.c lists them). For what files bring. `out` stays as it is where there are none. */
HWNAS_CHECKED hwnas_status hwnas_graph_fuse(hwnas_graph **out, const hwnas_graph *graph);

/* Takes out, in place, nodes whose output has become a weight, and weights that nobody reads. */
void hwnas_graph_tidy(hwnas_graph *graph);

/* ---- For those who rewrite ---- */

typedef struct hwnas_rewrite {
    const hwnas_graph *from;
    hwnas_graph *to;
    int *place; /* of each tensor of `from`: its index in `to`, or -1 while it has none */
    void *context;
    bool borrows; /* values of weights stay those of `from`, which is to outlive `to` */
} hwnas_rewrite;

/* Inputs are taken over, `make_nodes` adds the rest, and outputs are found by their places. */
HWNAS_CHECKED hwnas_status hwnas_graph_remake(hwnas_graph **out, const hwnas_graph *graph,
                                              hwnas_status (*make_nodes)(hwnas_rewrite *r),
                                              void *context);
/* Adds a copy of a weight, which takes its place. */
HWNAS_CHECKED hwnas_status hwnas_rewrite_copy_weight(hwnas_rewrite *r, int tensor);
HWNAS_CHECKED hwnas_status hwnas_rewrite_copy_node(hwnas_rewrite *r, const hwnas_node *node);
/* Adds a copy of `node` with other inputs; its output takes the place of `output`. */
HWNAS_CHECKED hwnas_status hwnas_rewrite_add_node(hwnas_rewrite *r, const hwnas_node *node,
                                                  int n_inputs, const int *inputs, int output);

/* Computes a node that reads weights alone; its output becomes a weight. */
HWNAS_CHECKED hwnas_status hwnas_rewrite_fold(hwnas_rewrite *r, const hwnas_node *node);
/* The new tensor gets the name of the one whose place it has; else it has its node's. */
void hwnas_rewrite_keep_name(hwnas_rewrite *r, int tensor);

/* For each tensor the one that it is the same as: itself, or x for x + 0, where 0 comes of `zero`.
 * Yours to free(). */
int *hwnas_graph_same(const hwnas_graph *graph);
/* Which nodes an output needs; yours to free(). */
bool *hwnas_graph_live_nodes(const hwnas_graph *graph, const int *same);

/* Who reads a tensor. */
typedef struct hwnas_uses {
    int n_inputs;   /* of nodes, that it is: a node may read it twice */
    int n_readers;  /* nodes */
    int readers[2]; /* the first two of them, in the order of the graph */
    bool is_output; /* of the graph */
} hwnas_uses;

/* By tensor; yours to free(). `same` as above (NULL: each is itself): uses are counted for the one
 * that a tensor is the same as. `is_live` by node (NULL: all): others read nothing. */
hwnas_uses *hwnas_graph_uses(const hwnas_graph *graph, const int *same, const bool *is_live);

/* The node that alone reads a tensor, perhaps twice; -1: none, several, or it is an output. */
static inline int hwnas_lone_reader(const hwnas_uses *uses)
{
    return uses->n_readers == 1 && !uses->is_output ? uses->readers[0] : -1;
}

/* Whether a node is a product of rows with a weight, which is a linear layer where a BatchNorm goes
 * into it: PyTorch writes nn.Linear without a bias so. */
bool hwnas_matmul_is_linear(const hwnas_graph *graph, const hwnas_node *node);

/* Whether a node is a BatchNorm that goes into the convolution or linear layer before it, perhaps
 * behind reshapes and transposes. */
bool hwnas_graph_is_folded(const hwnas_graph *graph, const hwnas_uses *uses, const int *same,
                           int node);

#endif
