/* encoding.h: an architecture as what a model of the search compares: genes, layers, costs.
 *
 * All of it is free: the network is built, never run. Two encodings of one network have the same
 * layers and costs, and differ in their genes alone. */
#ifndef HWNAS_SEARCH_ENCODING_H
#define HWNAS_SEARCH_ENCODING_H

#include "graph/graph.h"
#include "space/arch.h"

/* A kind of layer (an operator with its attributes and the shape that it makes), and how often. */
typedef struct hwnas_layer_count {
    uint64_t kind; /* hash */
    double count;
} hwnas_layer_count;

enum { HWNAS_N_ENCODED_COSTS = 2 };

typedef struct hwnas_encoding {
    hwnas_arch *arch; /* owned */
    hwnas_digest digest;
    size_t n_layers, capacity;
    hwnas_layer_count *layers;           /* sorted by kind, each once; owned */
    double costs[HWNAS_N_ENCODED_COSTS]; /* logarithms of MACs and parameters */
} hwnas_encoding;

/* Layers that no output needs, or that make nothing but zeros, do not count. The failure of a
 * network that cannot be built. */
HWNAS_CHECKED hwnas_status hwnas_encode(hwnas_encoding *out, const hwnas_arch *arch);
void hwnas_encoding_done(hwnas_encoding *encoding);

#endif
