/* packed_rows.h: products of vectors with weights of 4 or 8 bits, whose groups of inputs share
 * scales (graph/pack_weights.h). Loops of ours, since oneDNN 3.7 has none that are fast. */
#ifndef HWNAS_DEVICE_ONEDNN_PACKED_ROWS_H
#define HWNAS_DEVICE_ONEDNN_PACKED_ROWS_H

#include "device/onednn/source.h"
#include "graph/pack_weights.h"

enum { HWNAS_PACKED_VECTORS = 4 }; /* at most, that are multiplied at a time */

typedef struct hwnas_packed_rows hwnas_packed_rows;

/* Whether these loops can take the weights that a node of the graph makes floats of: groups of a
 * multiple of 8 inputs, and whole numbers that fit 8 bits. */
bool hwnas_packed_rows_fit(const hwnas_graph *graph, const hwnas_node *dequantize);
/* The weights in the order in which they are read, in as few bits as hold them. `is_turned`: inputs
 * come first in the matrix. `n_vectors`: how many are multiplied at a time, or 0: weights are
 * unpacked alone. */
HWNAS_CHECKED hwnas_status hwnas_packed_rows_new(hwnas_packed_rows **out, const hwnas_graph *graph,
                                                 const hwnas_node *dequantize, bool is_turned,
                                                 int64_t n_vectors, const char *name);
void hwnas_packed_rows_free(hwnas_packed_rows *rows);
size_t hwnas_packed_rows_bytes(const hwnas_packed_rows *rows);

/* Takes over the vectors `in`, one behind the other; then multiplies tiles of HWNAS_LANES results,
 * `first` to `end`, of which several threads can make some each. */
void hwnas_packed_rows_take(hwnas_packed_rows *rows, const float *in);
void hwnas_packed_rows_multiply(float *out, const hwnas_packed_rows *rows, int64_t first,
                                int64_t end);
/* Results `first` to `first + width` as floats, both multiples of HWNAS_LANES: a row of `width` for
 * each of hwnas_packed_rows_inputs() inputs, of which those behind the last mean nothing. What is
 * behind the last result is 0 or as it was. */
void hwnas_packed_rows_unpack(float *to, const hwnas_packed_rows *rows, int64_t first,
                              int64_t width);
int64_t hwnas_packed_rows_inputs(const hwnas_packed_rows *rows);

#endif
