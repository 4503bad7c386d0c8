/* pack_weights.h: weights of products as whole numbers of 4 or 8 bits, while all else stays floats.
 *
 * What a product with one vector waits for is its weights, so a language model that writes word by
 * word is deployed like this ("weight-only" quantisation). A graph has a dequantize_linear with a
 * `block_size` between such weights and their product: `linear`, or `matmul` with a matrix. */
#ifndef HWNAS_GRAPH_PACK_WEIGHTS_H
#define HWNAS_GRAPH_PACK_WEIGHTS_H

#include "graph/graph.h"

enum {
    HWNAS_PACKED_GROUP = 64, /* inputs of a result that share a scale */
};

/* Whether a node makes floats of the weights of products, with known scales, one for each block of
 * inputs. */
bool hwnas_is_packed_kernel(const hwnas_graph *graph, const hwnas_node *node);
bool hwnas_graph_has_packed(const hwnas_graph *graph);
/* The node of this kind that gives a product its kernel; NULL: none does. */
const hwnas_node *hwnas_packed_kernel_of(const hwnas_graph *graph, const hwnas_node *product);
/* 4 where all of the whole numbers are in -8 to 7, 8 in -128 to 127, else 0. */
int hwnas_packed_bits(const hwnas_tensor *codes);
/* Number `i` of those that have such bits. */
static inline int hwnas_packed_number(const hwnas_tensor *codes, int64_t i)
{
    return codes->codes.numbers ? codes->codes.numbers[i] : (int)codes->data[i];
}

/* A new graph with the weights of all products packed that are matrices: of 8 bits the largest
 * magnitude of a group becomes 127, of 4 bits 7. `origin` has the number of the old node for each
 * new one, -1 where there was none; yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_graph_pack_weights(hwnas_graph **out, int **origin,
                                                    const hwnas_graph *graph, int bits);

/* The reverse: a new graph of floats, whose weights borrow their values of `graph`, which is to
 * outlive it: those that were packed stay bytes, and hwnas_tensor_fill() makes floats of them.
 * `packed` has for each of its tensors the node of `graph` that it came of, -1 where none did;
 * `origin` as above. Both are yours to free(); NULL: not wanted. */
HWNAS_CHECKED hwnas_status hwnas_graph_unpack_weights(hwnas_graph **out, int **origin,
                                                      int **packed, const hwnas_graph *graph);

#endif
