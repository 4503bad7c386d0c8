/* graph_facts.h: a network in named numbers that mean the same in every space: size, depth and width at
 * each scale, how often each operator occurs, and what lies on the ways from input to output.
 *
 * Only what carries the input to an output counts: an operator behind `zero`, or without a reader,
 * does not. So networks that compute the same by that rule get equal descriptions, whatever their
 * encodings (Yang et al., "A Study on Encodings for Neural Architecture Search", NeurIPS 2020, on
 * why that matters). A number whose name is missing is 0. */
#ifndef HWNAS_PREDICT_GRAPH_FACTS_H
#define HWNAS_PREDICT_GRAPH_FACTS_H

#include "graph/graph.h"

/* A *kind* of operator below is its name with kernel, dilation and grouping: "conv3x3",
 * "depthwise_conv5x5", "avg_pool3x3". Sizes are of one image or sequence, batch included.
 *
 * log macs, log params, log activations   multiply-accumulates, weights, and values that layers
 * with weights put out log resolution                          height of the first input depth
 * layers with weights on the longest way log paths                               ways from the
 * inputs to the outputs log macs 1/4, layers 1/4, log width 1/4   of the layers whose output is a
 * quarter as high as the input; width is the most channels count KIND occurrences most KIND, least
 * KIND, mean KIND        of all ways, how many lie on one path CELL A>B ways through one CELL, a
 * template that the network calls several times and always alike, that pass A, then B */
typedef struct hwnas_fact {
    const char *name;
    double value;
} hwnas_fact;

typedef struct hwnas_facts {
    size_t n, capacity;
    hwnas_fact *list;
    hwnas_arena *arena;
} hwnas_facts;

/* `cells`: the names of the cells, NULL-terminated, when they are known; NULL to look for them.
 * hwnas_facts_done() releases what it holds. */
void hwnas_facts_of(hwnas_facts *out, const hwnas_graph *graph, const char *const *cells);
void hwnas_facts_done(hwnas_facts *facts);

/* The part CELL of "path CELL A>B" in the arena, or NULL. */
const char *hwnas_fact_cell(const char *name, hwnas_arena *arena);

#endif
