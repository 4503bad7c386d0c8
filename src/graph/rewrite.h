/* rewrite.h: new graphs from old ones. What is made shares nothing with what it was made from. */
#ifndef HWNAS_GRAPH_REWRITE_H
#define HWNAS_GRAPH_REWRITE_H

#include "graph/graph.h"

HWNAS_CHECKED hwnas_status hwnas_graph_copy(hwnas_graph **out, const hwnas_graph *graph);

/* For each tensor the one that it is the same as: itself, or x for x + 0, where 0 comes of `zero`.
 * Yours to free(). */
int *hwnas_graph_same(const hwnas_graph *graph);

#endif
