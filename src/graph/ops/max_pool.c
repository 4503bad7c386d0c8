/* max_pool: the greatest value of each window; padding counts as less than any. */
#include "graph/ops/pool.h"

static const hwnas_attr_row attrs[] = {
    HWNAS_POOL_ATTRS("room"),
    {0},
};

static float greatest(const hwnas_pool_window *w, const hwnas_node *node)
{
    float found = w->plane[w->top * w->width + w->left];
    (void)node;
    for (int64_t y = w->top; y < w->bottom; y++)
        for (int64_t x = w->left; x < w->right; x++)
            if (w->plane[y * w->width + x] > found)
                found = w->plane[y * w->width + x];
    return found;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_pool(graph, node, inputs, output, greatest);
}

const hwnas_op hwnas_op_max_pool = {
    .id = HWNAS_OP_MAX_POOL,
    .class = HWNAS_CLASS_POOL,
    .name = "max_pool",
    .onnx = "MaxPool",
    .help = "greatest value of each window",
    .attrs = attrs,
    .onnx_rows = hwnas_pool_onnx_rows,
    .is_spatial = true,
    .has_int8_kernel = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = hwnas_infer_pool,
    .compute = compute,
};
