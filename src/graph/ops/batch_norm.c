/* batch_norm: (x - mean) / sqrt(variance + epsilon) * scale + bias for each channel, with the
 * running statistics of inference. Ioffe and Szegedy 2015, algorithm 2. Without `affine` scale and
 * bias are the constants 1 and 0. */
#include <math.h>
#include <stdlib.h>

#include "graph/ops/elementwise.h"

enum { EPSILON, AFFINE };

static const hwnas_attr_row attrs[] = {
    [EPSILON] = {.name = "epsilon", .kind = HWNAS_ATTR_NUMBER, .fallback = 1e-5, .low = 0,
                 .high = 1, .onnx = "epsilon", .help = "added to the variance"},
    [AFFINE] = {.name = "affine", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .low = 0, .high = 1,
                .help = "scale and bias are learned"},
    {0},
};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "momentum", .is_ignored = true},
    {.name = "spatial", .value = 1, .fallback = 1},
    {.name = "training_mode", .value = 0, .fallback = 0},
    {0},
};

static hwnas_status make_weights(hwnas_graph *graph, hwnas_node *node)
{
    const bool affine = node->attrs[AFFINE].ints[0];
    const struct {
        const char *suffix;
        hwnas_init init;
        bool is_parameter;
    } weights[] = {
        {"scale", affine ? HWNAS_INIT_NEAR_ONE : HWNAS_INIT_ONE, affine},
        {"bias", affine ? HWNAS_INIT_SMALL : HWNAS_INIT_ZERO, affine},
        {"mean", HWNAS_INIT_SMALL, false},
        {"variance", HWNAS_INIT_NEAR_ONE, false},
    };
    if (hwnas_node_input(graph, node, 0)->rank < 2)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'batch_norm' needs channels, the shape is %s",
                          hwnas_tensor_shape(hwnas_node_input(graph, node, 0)).s);
    int64_t channels = hwnas_node_input(graph, node, 0)->dims[1];
    for (int i = 0; i < 4; i++)
        TRY(hwnas_node_add_weight(graph, node, weights[i].suffix, 1, &channels, weights[i].init,
                                  weights[i].is_parameter));
    return HWNAS_OK;
}

/* Of a sequence (batch x length x features) the channels are the features, as they are for conv1d:
 * an image of one row is normalised. */
static hwnas_status build(int *out, hwnas_graph *graph, const hwnas_node *node)
{
    enum { N_STEPS = 5 };
    const hwnas_tensor in = *hwnas_node_input(graph, node, 0);
    if (in.rank != 3)
        return HWNAS_OK;
    const hwnas_attr swap = {.is_set = true, .n = 3, .ints = {0, 2, 1}};
    const hwnas_attr image = {
        .is_set = true, .n = 4, .ints = {in.dims[0], in.dims[2], 1, in.dims[1]}};
    const hwnas_attr row = {.is_set = true, .n = 3, .ints = {in.dims[0], in.dims[2], in.dims[1]}};
    const struct {
        hwnas_op_id op;
        const char *suffix;
        const hwnas_attr *attrs;
    } steps[N_STEPS] = {
        {HWNAS_OP_TRANSPOSE, ".features_first", &swap},
        {HWNAS_OP_RESHAPE, ".image", &image},
        {HWNAS_OP_BATCH_NORM, ".norm", node->attrs},
        {HWNAS_OP_RESHAPE, ".sequence", &row},
        {HWNAS_OP_TRANSPOSE, "", &swap},
    };
    *out = node->inputs[0];
    for (int i = 0; i < N_STEPS; i++) {
        const char *name = hwnas_arena_printf(graph->arena, "%s%s", node->name, steps[i].suffix);
        TRY(hwnas_graph_add_node(out, graph, hwnas_ops[steps[i].op], name, steps[i].attrs, 1, out,
                                 steps[i].op == HWNAS_OP_BATCH_NORM));
    }
    return HWNAS_OK;
}

static void read_weights(const hwnas_graph *graph, hwnas_node *node)
{
    node->attrs[AFFINE].ints[0] = hwnas_node_input(graph, node, 1)->is_parameter;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    for (int i = 1; i < node->n_inputs; i++) {
        const hwnas_tensor *weight = hwnas_node_input(graph, node, i);
        if (in->rank < 2 || weight->rank != 1 || weight->dims[0] != in->dims[1])
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'batch_norm': '%s' of shape %s does not fit %s",
                              weight->name, hwnas_tensor_shape(weight).s, hwnas_tensor_shape(in).s);
    }
    return hwnas_infer_same(graph, node, out);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    double epsilon = hwnas_node_attr(node, "epsilon")->number;
    int64_t channels = in->dims[1], planes = in->dims[0] * channels;
    int64_t size = hwnas_tensor_count(in) / planes;
    for (int64_t p = 0; p < planes; p++) {
        int64_t c = p % channels;
        double scale = inputs[1][c] / sqrt(inputs[4][c] + epsilon);
        for (int64_t i = p * size; i < (p + 1) * size; i++)
            output[i] = (float)((inputs[0][i] - inputs[3][c]) * scale + inputs[2][c]);
    }
}

void hwnas_batch_norm_values(double *factors, double *offsets, const hwnas_graph *graph,
                             const hwnas_node *norm)
{
    enum { SCALE, SHIFT, MEAN, VARIANCE, N_WEIGHTS };
    const double epsilon = hwnas_node_attr(norm, "epsilon")->number;
    const int64_t channels = hwnas_node_input(graph, norm, 1)->dims[0];
    float *weights = hwnas_alloc((size_t)(N_WEIGHTS * channels) * sizeof *weights);
    for (int i = 0; i < N_WEIGHTS; i++)
        hwnas_tensor_fill(hwnas_node_input(graph, norm, 1 + i), weights + i * channels);
    for (int64_t c = 0; c < channels; c++) {
        const float *at = weights + c;
        factors[c] = at[SCALE * channels] / sqrt(at[VARIANCE * channels] + epsilon);
        offsets[c] = at[SHIFT * channels] - at[MEAN * channels] * factors[c];
    }
    free(weights);
}

const hwnas_op hwnas_op_batch_norm = {
    .id = HWNAS_OP_BATCH_NORM,
    .name = "batch_norm",
    .onnx = "BatchNormalization",
    .help = "normalises each channel with running statistics",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .is_spatial = true,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_weights = 4,
    .max_weights = 4,
    .n_statistics = 2,
    .build = build,
    .make_weights = make_weights,
    .read_weights = read_weights,
    .infer = infer,
    .compute = compute,
};
