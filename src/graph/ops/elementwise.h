/* elementwise.h: what operators that work on each element have in common. */
#ifndef HWNAS_GRAPH_OPS_ELEMENTWISE_H
#define HWNAS_GRAPH_OPS_ELEMENTWISE_H

#include "graph/op.h"

/* Shape of the first input. */
hwnas_status hwnas_infer_same(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out);

/* The same, of floats alone: what is written as several nodes would be another thing of whole
 * numbers. */
hwnas_status hwnas_infer_floats(const hwnas_graph *graph, const hwnas_node *node,
                                hwnas_tensor *out);

/* The common shape of two tensors: they are aligned at their last dimensions, and a dimension that
 * is 1 or absent is repeated (numpy's broadcasting). False when there is none; then `out` means
 * nothing. */
bool hwnas_broadcast_shape(hwnas_tensor *out, const hwnas_tensor *a, const hwnas_tensor *b);

/* Where the value of a broadcast tensor lies, while the output is walked in order. */
typedef struct hwnas_walk {
    int64_t at;
    int rank;
    int64_t dims[HWNAS_MAX_RANK], step[HWNAS_MAX_RANK], index[HWNAS_MAX_RANK];
} hwnas_walk;
hwnas_walk hwnas_walk_new(const hwnas_tensor *in, const hwnas_tensor *out);
void hwnas_walk_next(hwnas_walk *walk);

/* Two inputs of a common shape. */
hwnas_status hwnas_infer_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                                   hwnas_tensor *out);
void hwnas_compute_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                             const float *const *inputs, float *output,
                             float (*function)(float, float));

/* The greater and the lesser of two; of NaN and something NaN, as ONNX Runtime has it. */
static inline float hwnas_greater(float a, float b)
{
    return a > b || a != a ? a : b;
}
static inline float hwnas_lesser(float a, float b)
{
    return a < b || a != a ? a : b;
}

/* The value as a tensor of the type would hold it: whole, within its range (which wraps), 0
 * or 1. */
float hwnas_as_dtype(float value, hwnas_dtype dtype);

/* One input, each element by itself. */
void hwnas_compute_each(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output, float (*function)(float));

/* The values of the input, as they are. */
void hwnas_compute_copy(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output);

/* Where an axis that may count from the end, as -1, is among `rank` dimensions. */
hwnas_status hwnas_find_axis(int *out, const hwnas_node *node, int rank);
/* Says an axis from the beginning. One that the rank does not have stays as it is, for the above to
 * refuse. */
void hwnas_settle_axis(int64_t *axis, int rank);

/* What an index of a dimension of `n` names, counted from the end when it is less than 0. One outside
 * of the dimension is taken for the nearest that is in it: nothing is read or written beyond. */
int64_t hwnas_place_of(float index, int64_t n);

/* HWNAS_E_INPUT when `out` would take more than 2^46 (7e13) multiply-accumulates, each of its
 * elements `macs`; so the sum over 2^17 layers stays within 64 bits whatever a file claims. */
hwnas_status hwnas_check_macs(const hwnas_node *node, const hwnas_tensor *out, int64_t macs);

/* HWNAS_E_INPUT when `in` is not batch x channels x height x width. `of_volumes`: what to try with
 * a depth before the height. */
hwnas_status hwnas_need_image(const hwnas_node *node, const hwnas_tensor *in,
                              const char *of_volumes);

/* HWNAS_E_INPUT when input 2, where there is one, is not one bias for each row of the weights
 * (input 1). */
hwnas_status hwnas_check_bias(const hwnas_graph *graph, const hwnas_node *node);

extern const hwnas_attr_row hwnas_no_attrs[];

#endif
