/* threads.h: which steps run with all threads, and which with one. */
#ifndef HWNAS_DEVICE_ONEDNN_THREADS_H
#define HWNAS_DEVICE_ONEDNN_THREADS_H

#include "graph/graph.h"

/* Whether the `n` nodes that run as one step have work enough for several threads: the first needs
 * some microseconds to have the others begin, and to wait for them. */
bool hwnas_onednn_is_worth_threads(const hwnas_graph *graph, const int *nodes, size_t n);

#endif
