/* dot.h: a network as a picture, in the language of Graphviz. */
#ifndef HWNAS_REPORT_DOT_H
#define HWNAS_REPORT_DOT_H

#include "base/str.h"
#include "graph/graph.h"

/* A box for each layer, with its operator, output shape and parameters; a frame around those of one
 * use of a template; inputs and outputs are round. Appends to `out`. */
void hwnas_graph_dot(hwnas_str *out, const hwnas_graph *graph);

#endif
