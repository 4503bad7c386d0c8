/* global_avg_pool: the mean over height and width of each channel. */
#include "graph/ops/elementwise.h"

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    TRY(hwnas_need_image(node, in, "of volumes mean: {axes: [2, 3, 4]} is the same"));
    *out = (hwnas_tensor){.name = out->name, .kind = out->kind, .rank = 4,
                          .dims = {in->dims[0], in->dims[1], 1, 1}};
    return HWNAS_OK;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    int64_t planes = in->dims[0] * in->dims[1], size = in->dims[2] * in->dims[3];
    for (int64_t p = 0; p < planes; p++) {
        double sum = 0;
        for (int64_t i = 0; i < size; i++)
            sum += inputs[0][p * size + i];
        output[p] = (float)(sum / (double)size);
    }
}

const hwnas_op hwnas_op_global_avg_pool = {
    .id = HWNAS_OP_GLOBAL_AVG_POOL,
    .class = HWNAS_CLASS_POOL,
    .name = "global_avg_pool",
    .onnx = "GlobalAveragePool",
    .help = "mean of each channel's plane",
    .attrs = hwnas_no_attrs,
    .is_spatial = true,
    .has_int8_kernel = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = infer,
    .compute = compute,
};
