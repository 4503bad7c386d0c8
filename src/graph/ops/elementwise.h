/* elementwise.h: what operators that work on each element have in common. */
#ifndef HWNAS_GRAPH_OPS_ELEMENTWISE_H
#define HWNAS_GRAPH_OPS_ELEMENTWISE_H

#include "graph/op.h"

/* Shape of the first input. */
hwnas_status hwnas_infer_same(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out);

/* Two inputs of one rank; a dimension of 1 is repeated. */
hwnas_status hwnas_infer_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                                   hwnas_tensor *out);
void hwnas_compute_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                             const float *const *inputs, float *output,
                             float (*function)(float, float));

/* One input, each element by itself. */
void hwnas_compute_each(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output, float (*function)(float));

/* Where an axis that may count from the end, as -1, is among `rank` dimensions. */
hwnas_status hwnas_find_axis(int *out, const hwnas_node *node, int rank);

/* HWNAS_E_INPUT when `out` would take more than 2^46 (7e13) multiply-accumulates, each of its elements
 * `macs`; so the sum over 2^17 layers stays within 64 bits whatever a file claims. */
hwnas_status hwnas_check_macs(const hwnas_node *node, const hwnas_tensor *out, int64_t macs);

/* HWNAS_E_INPUT when input 2, where there is one, is not one bias for each row of the weights (input 1). */
hwnas_status hwnas_check_bias(const hwnas_graph *graph, const hwnas_node *node);

extern const hwnas_attr_row hwnas_no_attrs[];

#endif
