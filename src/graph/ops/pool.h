/* pool.h: what max_pool and avg_pool have in common. */
#ifndef HWNAS_GRAPH_OPS_POOL_H
#define HWNAS_GRAPH_OPS_POOL_H

#include "graph/op.h"

/* The first rows of a pool's attributes. */
enum { HWNAS_POOL_KERNEL, HWNAS_POOL_STRIDE, HWNAS_POOL_PAD, HWNAS_POOL_N_ATTRS };
#define HWNAS_POOL_ATTRS(what_is_padded)                                                          \
    [HWNAS_POOL_KERNEL] = {.name = "kernel", .kind = HWNAS_ATTR_INTS, .count = 2,                 \
                           .is_required = true, .is_required_by_onnx = true, .fallback = 1,       \
                           .low = 1, .high = 1 << 20, .onnx = "kernel_shape",                     \
                           .help = "height and width of the window"},                             \
    [HWNAS_POOL_STRIDE] = {.name = "stride", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1,  \
                           .low = 1, .high = 1 << 20, .onnx = "strides",                          \
                           .help = "step down and to the right"},                                 \
    [HWNAS_POOL_PAD] = {.name = "pad", .kind = HWNAS_ATTR_INTS, .count = 4, .fallback = 0,        \
                        .low = 0, .high = 1 << 20, .onnx = "pads",                                \
                        .help = what_is_padded " at top, left, bottom, right"}

extern const hwnas_onnx_row hwnas_pool_onnx_rows[];

hwnas_status hwnas_infer_pool(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out);

/* One place of the window on one plane. */
typedef struct hwnas_pool_window {
    const float *plane;
    int64_t width;         /* of the plane */
    int64_t top, left;     /* the first row and column that are not padding */
    int64_t bottom, right; /* behind the last */
    int64_t n_padded;      /* how many values it has with the padding */
} hwnas_pool_window;
/* Puts what `reduce` makes of each window into the output. */
void hwnas_compute_pool(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output,
                        float (*reduce)(const hwnas_pool_window *window, const hwnas_node *node));

#endif
