/* rewrite.h: new graphs from old ones. What is made shares nothing with what it was made from. */
#ifndef HWNAS_GRAPH_REWRITE_H
#define HWNAS_GRAPH_REWRITE_H

#include "graph/graph.h"

HWNAS_CHECKED hwnas_status hwnas_graph_copy(hwnas_graph **out, const hwnas_graph *graph);

#endif
