/* avg_pool: the mean of each window. */
#include "graph/ops/pool.h"

enum { COUNT_PAD = HWNAS_POOL_N_ATTRS };

static const hwnas_attr_row attrs[] = {
    HWNAS_POOL_ATTRS("room"),
    [COUNT_PAD] = {.name = "count_pad", .kind = HWNAS_ATTR_BOOL, .fallback = 0, .low = 0, .high = 1,
                   .onnx = "count_include_pad",
                   .help = "padding counts as zeros; else the mean is of the values alone"},
    {0},
};

static float mean(const hwnas_pool_window *w, const hwnas_node *node)
{
    const int64_t n_values = (w->bottom - w->top) * (w->right - w->left);
    double sum = 0;
    for (int64_t y = w->top; y < w->bottom; y++)
        for (int64_t x = w->left; x < w->right; x++)
            sum += w->plane[y * w->width + x];
    return (float)(sum / (double)(node->attrs[COUNT_PAD].ints[0] ? w->n_padded : n_values));
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    hwnas_compute_pool(graph, node, inputs, output, mean);
}

const hwnas_op hwnas_op_avg_pool = {
    .id = HWNAS_OP_AVG_POOL,
    .class = HWNAS_CLASS_POOL,
    .name = "avg_pool",
    .onnx = "AveragePool",
    .help = "mean of each window",
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
