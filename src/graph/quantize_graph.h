/* quantize_graph.h: a network of floats as one of 8-bit integers.
 *
 * Activations that convolutions, products and pooling read become bytes of a scale, weights of
 * convolutions and products signed bytes of a scale for each output channel. The result says so
 * with quantize_linear and dequantize_linear around operators on floats, as ONNX files do; a device
 * fuses them. Sums that only transformers have, norms and whatever is not named here stay as they
 * are. */
#ifndef HWNAS_GRAPH_QUANTIZE_GRAPH_H
#define HWNAS_GRAPH_QUANTIZE_GRAPH_H

#include "graph/graph.h"

/* What values a tensor was seen to take. */
typedef struct hwnas_range {
    float low, high;
} hwnas_range;

/* Whether it has products of two activations: then four dimensions need not be an image. */
bool hwnas_graph_has_attention(const hwnas_graph *graph);
/* Whether a graph has quantisations already. */
bool hwnas_graph_is_quantized(const hwnas_graph *graph);

/* Whether a node makes floats of a weight of bytes that has more than one dimension. */
bool hwnas_dequantizes_kernel(const hwnas_graph *graph, const hwnas_node *node);
/* The same, and products alone read it, as their kernel: a device computes with the bytes. Not
 * those with zero points, for which oneDNN's convolutions end the process, and not those of
 * products that are wrong in bytes (quantize_places.h). */
bool hwnas_is_int8_kernel(const hwnas_graph *graph, const hwnas_node *node);

/* Where quantisations stand. */
typedef enum hwnas_quantize_form {
    HWNAS_QUANTIZE_FUSED,  /* as few as a device needs that computes what it likes behind a product,
                              of scales that it is fastest with */
    HWNAS_QUANTIZE_LOOKUP, /* the same, and before functions that take long, of which a device then
                              makes a table of 256 values; squeeze and excite on bytes */
    HWNAS_QUANTIZE_FILE, /* around each operator, as other engines look for them in files: unsigned
                            bytes with a zero point, biases as 32-bit integers */
} hwnas_quantize_form;

/* By tensor: which activations are to be quantised, and thus need a range. Yours to free(). */
bool *hwnas_quantize_wants(const hwnas_graph *graph, hwnas_quantize_form form);

/* By node: products with weights, each of which can be of bytes or of floats. Yours to free(). */
bool *hwnas_quantizable_products(const hwnas_graph *graph);

/* A new graph; `ranges` by tensor. `stays_float` (NULL: none does): by node, products that keep
 * their floats, and with them what only passes values on to or from them. Weights have
 * `weight_bits` bits, 8 or what hwnas_device_weight_bits() says. `origin` has the number of the old
 * node for each new one, -1 where there was none; yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_graph_quantize(hwnas_graph **out, int **origin,
                                                const hwnas_graph *graph, const hwnas_range *ranges,
                                                const bool *stays_float, hwnas_quantize_form form,
                                                int weight_bits);

/* The largest magnitude of a weight that comes as bytes with a dequantisation, of more than one
 * dimension; 0: there is none. */
float hwnas_graph_largest_byte(const hwnas_graph *graph);
/* The first node that multiplies unsigned bytes with bytes of which two products can be more than
 * 16 bits hold, in which older processors add them; NULL: there is none. */
const hwnas_node *hwnas_graph_exceeds_16_bits(const hwnas_graph *graph);

#endif
