/* layer_norm.c: normalisations over the dimensions from `axis` on.
 *
 * layer_norm: mean 0 and variance 1, then scale and shift (Ba, Kiros and Hinton 2016).
 * rms_norm: mean square 1, then scale (Zhang and Sennrich 2019). */
#include <math.h>
#include <string.h>

#include "graph/ops/elementwise.h"

enum { AXIS, EPSILON, BIAS };

#define AXIS_AND_EPSILON(TO)                                                                       \
    [AXIS] = {.name = "axis",                                                                      \
              .kind = HWNAS_ATTR_INT,                                                              \
              .fallback = -1,                                                                      \
              .low = -HWNAS_MAX_RANK,                                                              \
              .high = HWNAS_MAX_RANK - 1,                                                          \
              .onnx = "axis",                                                                      \
              .help = "first of the dimensions that are one; -1 is the last"},                     \
    [EPSILON] = {.name = "epsilon",                                                                \
                 .kind = HWNAS_ATTR_NUMBER,                                                        \
                 .fallback = 1e-5,                                                                 \
                 .low = 0,                                                                         \
                 .high = 1,                                                                        \
                 .onnx = "epsilon",                                                                \
                 .help = "added to the " TO}

static const hwnas_attr_row rms_attrs[] = {AXIS_AND_EPSILON("mean square"), {0}};

static const hwnas_attr_row attrs[] = {
    AXIS_AND_EPSILON("variance"),
    [BIAS] = {.name = "bias",
              .kind = HWNAS_ATTR_BOOL,
              .fallback = 1,
              .low = 0,
              .high = 1,
              .help = "add a learned shift"},
    {0},
};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "stash_type", .is_ignored = true},
    {0},
};

/* The shape of scale and shift. */
static hwnas_status find_dims(hwnas_tensor *out, const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    int axis;
    TRY(hwnas_find_axis(&axis, node, in->rank));
    *out = (hwnas_tensor){.rank = in->rank - axis};
    memcpy(out->dims, in->dims + axis, (size_t)out->rank * sizeof *out->dims);
    return HWNAS_OK;
}

static hwnas_status make_weights(hwnas_graph *graph, hwnas_node *node)
{
    hwnas_tensor own;
    TRY(find_dims(&own, graph, node));
    TRY(hwnas_node_add_weight(graph, node, "weight", own.rank, own.dims, HWNAS_INIT_NEAR_ONE,
                              true));
    if (node->op->max_weights > 1 && node->attrs[BIAS].ints[0])
        TRY(hwnas_node_add_weight(graph, node, "bias", own.rank, own.dims, HWNAS_INIT_SMALL, true));
    return HWNAS_OK;
}

/* The axis is counted from the end. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    int64_t *axis = node->attrs[AXIS].ints;
    const int rank = hwnas_node_input(graph, node, 0)->rank;
    if (*axis >= 0 && *axis < rank)
        *axis -= rank;
}

static void read_weights(const hwnas_graph *graph, hwnas_node *node)
{
    (void)graph;
    node->attrs[BIAS].ints[0] = node->n_inputs > 2;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    hwnas_tensor own, common;
    TRY(find_dims(&own, graph, node));
    for (int i = 1; i < node->n_inputs; i++) {
        const hwnas_tensor *weight = hwnas_node_input(graph, node, i);
        if (weight->rank > own.rank || !hwnas_broadcast_shape(&common, weight, &own) ||
            memcmp(common.dims, own.dims, (size_t)own.rank * sizeof *own.dims))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s': weights of shape %s do not fit %s",
                              node->op->name, hwnas_tensor_shape(weight).s,
                              hwnas_tensor_shape(hwnas_node_input(graph, node, 0)).s);
    }
    return hwnas_infer_floats(graph, node, out);
}

static void normalise(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                      float *output, bool is_centred)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t axis = node->attrs[AXIS].ints[0] + (node->attrs[AXIS].ints[0] < 0 ? in->rank : 0);
    hwnas_tensor own = {.rank = in->rank - (int)axis};
    memcpy(own.dims, in->dims + axis, (size_t)own.rank * sizeof *own.dims);
    const int64_t n = hwnas_tensor_count(&own), count = hwnas_tensor_count(in);
    for (int64_t at = 0; at < count; at += n) {
        const float *x = inputs[0] + at;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n && is_centred; i++)
            mean += x[i];
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += (x[i] - mean) * (x[i] - mean);
        const double factor = 1 / sqrt(variance / (double)n + node->attrs[EPSILON].number);
        hwnas_walk scale = hwnas_walk_new(hwnas_node_input(graph, node, 1), &own);
        hwnas_walk shift = hwnas_walk_new(hwnas_node_input(graph, node, node->n_inputs - 1), &own);
        for (int64_t i = 0; i < n; i++) {
            const double b = node->n_inputs > 2 ? inputs[2][shift.at] : 0;
            output[at + i] = (float)((x[i] - mean) * factor * inputs[1][scale.at] + b);
            hwnas_walk_next(&scale);
            hwnas_walk_next(&shift);
        }
    }
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    normalise(graph, node, inputs, output, true);
}

static void compute_rms(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output)
{
    normalise(graph, node, inputs, output, false);
}

const hwnas_op hwnas_op_layer_norm = {
    .id = HWNAS_OP_LAYER_NORM,
    .name = "layer_norm",
    .onnx = "LayerNormalization",
    .onnx_since = 17,
    .help = "mean 0 and variance 1 over the features, then scale and shift",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_weights = 1,
    .max_weights = 2,
    .settle = settle,
    .make_weights = make_weights,
    .read_weights = read_weights,
    .infer = infer,
    .compute = compute,
};

const hwnas_op hwnas_op_rms_norm = {
    .id = HWNAS_OP_RMS_NORM,
    .name = "rms_norm",
    .onnx = "RMSNormalization",
    .onnx_since = 23, /* before, it is written in several operators: src/onnx/onnx_forms.c */
    .help = "mean square 1 over the features, then scale",
    .attrs = rms_attrs,
    .onnx_rows = onnx_rows,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_weights = 1,
    .max_weights = 1,
    .keeps_zeros = true,
    .settle = settle,
    .make_weights = make_weights,
    .infer = infer,
    .compute = compute_rms,
};
