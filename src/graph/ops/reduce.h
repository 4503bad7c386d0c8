/* reduce.h: what operators that make one value of many along some dimensions have in common. */
#ifndef HWNAS_GRAPH_OPS_REDUCE_H
#define HWNAS_GRAPH_OPS_REDUCE_H

#include "graph/ops/elementwise.h"

enum { HWNAS_REDUCE_AXES, HWNAS_REDUCE_KEEP };

extern const double hwnas_reduce_keeps; /* ONNX's default */

/* ONNX: no axes are all of them. Since opset 13 (sums) and 18 (the rest) they are an input. */
#define HWNAS_REDUCE_ATTRS(IS_REQUIRED)                                                            \
    [HWNAS_REDUCE_AXES] = {.name = "axes",                                                         \
                           .kind = HWNAS_ATTR_INTS,                                                \
                           .is_required = IS_REQUIRED,                                             \
                           .low = -HWNAS_MAX_RANK,                                                 \
                           .high = HWNAS_MAX_RANK - 1,                                             \
                           .onnx = "axes",                                                         \
                           .help = "dimensions; 1 is the channels or the positions"},              \
    [HWNAS_REDUCE_KEEP] = {.name = "keep",                                                         \
                           .kind = HWNAS_ATTR_BOOL,                                                \
                           .high = 1,                                                              \
                           .onnx = "keepdims",                                                     \
                           .onnx_fallback = &hwnas_reduce_keeps,                                   \
                           .help = "leave them, with length 1"}

void hwnas_reduce_settle(const hwnas_graph *graph, hwnas_node *node);
hwnas_status hwnas_reduce_infer(const hwnas_graph *graph, const hwnas_node *node,
                                hwnas_tensor *out);

/* Takes one more value into an accumulator, and makes the result of `n` of them. */
typedef double hwnas_reduce_step(double so_far, double value);
typedef double hwnas_reduce_end(double all, double n);
void hwnas_reduce_compute(const hwnas_graph *graph, const hwnas_node *node,
                          const float *const *inputs, float *output, double start,
                          hwnas_reduce_step *step, hwnas_reduce_end *end);

#endif
