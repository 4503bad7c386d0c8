/* quantize_places.h: where quantisations stand, before there are any. */
#ifndef HWNAS_GRAPH_QUANTIZE_PLACES_H
#define HWNAS_GRAPH_QUANTIZE_PLACES_H

#include "graph/quantize_graph.h"

typedef struct hwnas_quantize_places {
    hwnas_quantize_form form;
    const bool *stays_float; /* by node; NULL: none */
    bool *is_quantized;      /* by node: reads bytes */
    bool *wants;             /* by tensor: is bytes for those who want them */
} hwnas_quantize_places;

/* `stays_float` as of hwnas_graph_quantize(). */
void hwnas_quantize_places_find(hwnas_quantize_places *out, const hwnas_graph *graph,
                                const bool *stays_float, hwnas_quantize_form form);
void hwnas_quantize_places_done(hwnas_quantize_places *places);

/* Whether node `n` reads input `i`, which is wanted as bytes, behind a dequantisation of its own.
 */
bool hwnas_reads_bytes(const hwnas_quantize_places *places, const hwnas_graph *graph, size_t n,
                       int i);

/* Which input of a node is an image of several pixels whose channels it multiplies with the factors
 * that the other input has, of all images or of each, as squeeze and excite does; -1: the node does
 * something else.
 */
int hwnas_excites(const hwnas_graph *graph, const hwnas_node *node);

/* A convolution of images that has a kernel for each channel, of a size that the CPU has loops of
 * its own for. */
enum { HWNAS_DEPTHWISE_CHANNELS = 32 /* or more */, HWNAS_DEPTHWISE_POINTS = 64 /* or less */ };
bool hwnas_is_depthwise(const hwnas_graph *graph, const hwnas_node *node);

/* Depthwise convolutions of eight points, as 8 x 1 or 4 x 2: of bytes that are signed or have a
 * zero point oneDNN 3.7 computes them wrongly (with AVX2; others were not tried), so they stay
 * floats. */
bool hwnas_is_wrong_in_bytes(const hwnas_graph *graph, const hwnas_node *node);

/* By tensor: whether a zero point costs none of those that read its bytes anything, so that all
 * bytes may stand for values that are there. With weights of 7 bits products of pixels and
 * depthwise convolutions are among them. Yours to free(). */
bool *hwnas_takes_zero(const hwnas_quantize_places *places, const hwnas_graph *graph,
                       int weight_bits);

/* A product with weights that can be of bytes. `axis`: the dimension of the kernel that the outputs
 * are along. */
bool hwnas_has_kernel(int *axis, const hwnas_graph *graph, const hwnas_node *node);

#endif
