/* rounding.h: products of bfloat16.
 *
 * A product whose two operands are cast to bfloat16 is what processors compute with instructions
 * for such floats: products of rounded values are exact in fp32, in which they are added up. So a
 * layer in bf16 is told by two casts in a network of fp32, as one in bytes is by quantizations, and
 * every device and file has its values. */
#ifndef HWNAS_GRAPH_ROUNDING_H
#define HWNAS_GRAPH_ROUNDING_H

#include "graph/graph.h"

/* Whether a node is a cast to bfloat16. */
bool hwnas_rounds(const hwnas_node *node);
/* Whether any does. */
bool hwnas_graph_rounds(const hwnas_graph *graph);
/* The tensor that `tensor` is rounded from; -1: it is not. */
int hwnas_before_rounding(const hwnas_graph *graph, int tensor);
/* Whether a node rounds a weight, and products alone read that, as their kernel. */
bool hwnas_is_rounded_kernel(const hwnas_graph *graph, const hwnas_node *node);

/* A copy of the graph in which nodes (by number) that are products with weights have both operands
 * rounded. Names stay. */
HWNAS_CHECKED hwnas_status hwnas_graph_round_products(hwnas_graph **out, const hwnas_graph *graph,
                                                      const bool *is_rounded);

#endif
