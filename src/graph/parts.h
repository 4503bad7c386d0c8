/* parts.h: a graph cut into the parts that a device is likely to run as one: groups of fusion.h.
 *
 * The cut follows from the graph alone and nothing is compiled for it, so that a network can be
 * looked up in a table of latencies as fast as it is built. It is the same for a graph and for what
 * hwnas_graph_fold() makes of it. */
#ifndef HWNAS_GRAPH_PARTS_H
#define HWNAS_GRAPH_PARTS_H

#include "graph/graph.h"

/* Two parts of equal signature have the same operators with the same attributes, on tensors of the
 * same shapes and types, and their inputs come from the same kinds of operators. */
typedef struct hwnas_part {
    uint64_t signature; /* by XXH3; the same in every process and on every machine */
    uint64_t kind;      /* the same of the operators alone: 3 x 3 convolution with relu, ... */
    double macs;
    double read_bytes, written_bytes, weight_bytes; /* as fp32 */
} hwnas_part;

typedef struct hwnas_parts {
    size_t n, capacity;
    hwnas_part *parts; /* attentions first, then all others in the order of their first nodes */
    size_t n_nodes, n_folded, node_capacity;
    int *of_node;   /* by node: its part, or -1: it costs nothing and a device leaves it out */
    int *of_folded; /* by node of hwnas_graph_fold(graph), of which there are n_folded: its part */
} hwnas_parts;

/* Cuts a graph. `out` may have parts of another, whose memory is used again; zeroed at first. */
void hwnas_graph_cut(hwnas_parts *out, const hwnas_graph *graph);
void hwnas_parts_done(hwnas_parts *parts);

#endif
