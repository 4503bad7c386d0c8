/* onednn_lower.c: the rules, one row for each operator: which of oneDNN's operators it is, and how
 * its attributes are said there, or which kind of step of ours it becomes. Inputs and outputs are
 * the node's own, in the same order. */
#include "device/onednn/onednn_lower.h"

#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl_debug.h>

#include "device/onednn/dynamic.h"
#include "device/onednn/function_loops.h"
#include "device/onednn/grid_samples.h"
#include "device/onednn/layouts.h"
#include "device/onednn/lines.h"
#include "device/onednn/logical.h"
#include "device/onednn/onednn_steps.h"
#include "device/onednn/plain_pools.h"
#include "device/onednn/reduces.h"
#include "device/onednn/repeats.h"
#include "device/onednn/short_products.h"
#include "device/onednn/windows.h"
#include "graph/op.h"
#include "graph/ops/recurrent.h"

typedef dnnl_graph_op_attr_t attr_id;

/* An operator being made. After the first failure nothing more is done to it. */
typedef struct op {
    const hwnas_onednn_source *source;
    const hwnas_graph *graph; /* its */
    const hwnas_node *node;
    dnnl_graph_op_t made;
    dnnl_status_t status;
} op;

hwnas_status hwnas_onednn_status(dnnl_status_t status, const char *verb, const char *name)
{
    if (status == dnnl_success)
        return HWNAS_OK;
    return hwnas_fail(status == dnnl_out_of_memory ? HWNAS_E_MEMORY : HWNAS_E_LIBRARY, NULL,
                      "oneDNN could not %s '%s': %s", verb, name, dnnl_status2str(status));
}

static void set_ints(op *o, attr_id attr, const int64_t *values, size_t n)
{
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_s64(o->made, attr, values, n);
}

static void set_float(op *o, attr_id attr, double value)
{
    const float narrowed = (float)value;
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_f32(o->made, attr, &narrowed, 1);
}

static void set_floats(op *o, attr_id attr, const float *values, size_t n)
{
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_f32(o->made, attr, values, n);
}

static void set_bool(op *o, attr_id attr, bool value)
{
    const uint8_t byte = value;
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_bool(o->made, attr, &byte, 1);
}

static void set_text(op *o, attr_id attr, const char *text)
{
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_set_attr_str(o->made, attr, text, strlen(text) + 1);
}

static const hwnas_attr *attr_of(const op *o, const char *name)
{
    return hwnas_node_attr(o->node, name);
}

static void lower_conv(op *o)
{
    const hwnas_onednn_window w = hwnas_onednn_conv_window(o->graph, o->node);
    set_ints(o, dnnl_graph_op_attr_strides, w.stride, 2);
    set_ints(o, dnnl_graph_op_attr_pads_begin, w.before, 2);
    set_ints(o, dnnl_graph_op_attr_pads_end, w.after, 2);
    set_ints(o, dnnl_graph_op_attr_dilations, attr_of(o, "dilation")->ints, 2);
    set_ints(o, dnnl_graph_op_attr_groups, attr_of(o, "groups")->ints, 1);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
    set_text(o, dnnl_graph_op_attr_weights_format, "OIX");
}

static void lower_pool(op *o)
{
    const int64_t *pad = attr_of(o, "pad")->ints; /* top, left, bottom, right */
    set_ints(o, dnnl_graph_op_attr_kernel, attr_of(o, "kernel")->ints, 2);
    set_ints(o, dnnl_graph_op_attr_strides, attr_of(o, "stride")->ints, 2);
    set_ints(o, dnnl_graph_op_attr_pads_begin, pad, 2);
    set_ints(o, dnnl_graph_op_attr_pads_end, pad + 2, 2);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
}

static void lower_avg_pool(op *o)
{
    lower_pool(o);
    set_bool(o, dnnl_graph_op_attr_exclude_pad, !attr_of(o, "count_pad")->ints[0]);
}

static void lower_clip(op *o)
{
    set_float(o, dnnl_graph_op_attr_min, attr_of(o, "low")->number);
    set_float(o, dnnl_graph_op_attr_max, attr_of(o, "high")->number);
}

static void lower_leaky_relu(op *o)
{
    set_float(o, dnnl_graph_op_attr_alpha, attr_of(o, "alpha")->number);
}

static void lower_axis(op *o)
{
    const int64_t axis = attr_of(o, "axis")->ints[0];
    const int64_t from_begin = axis + (axis < 0 ? hwnas_node_output(o->graph, o->node)->rank : 0);
    set_ints(o, dnnl_graph_op_attr_axis, &from_begin, 1);
}

static void lower_batch_norm(op *o)
{
    set_float(o, dnnl_graph_op_attr_epsilon, attr_of(o, "epsilon")->number);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
}

static void lower_hard_sigmoid(op *o)
{
    set_float(o, dnnl_graph_op_attr_alpha, attr_of(o, "alpha")->number);
    set_float(o, dnnl_graph_op_attr_beta, attr_of(o, "beta")->number);
}

static void lower_global_avg_pool(op *o)
{
    static const int64_t one[] = {1, 1}, none[] = {0, 0};
    set_ints(o, dnnl_graph_op_attr_kernel, hwnas_node_input(o->graph, o->node, 0)->dims + 2, 2);
    set_ints(o, dnnl_graph_op_attr_strides, one, 2);
    set_ints(o, dnnl_graph_op_attr_pads_begin, none, 2);
    set_ints(o, dnnl_graph_op_attr_pads_end, none, 2);
    set_bool(o, dnnl_graph_op_attr_exclude_pad, true);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
}

static void lower_shape(op *o)
{
    const hwnas_tensor *out = hwnas_node_output(o->graph, o->node);
    set_ints(o, dnnl_graph_op_attr_shape, out->dims, (size_t)out->rank);
    set_bool(o, dnnl_graph_op_attr_special_zero, false);
}

/* Whether only dimensions of 1 change their places, so that every value stays where it is. */
static bool leaves_values(const hwnas_graph *graph, const hwnas_node *transpose)
{
    const hwnas_tensor *in = hwnas_node_input(graph, transpose, 0);
    const hwnas_attr *order = hwnas_node_attr(transpose, "order");
    int64_t last = -1;
    for (int i = 0; i < in->rank; i++) {
        const int64_t axis = order->ints[i];
        if (in->dims[axis] == 1)
            continue;
        if (axis < last)
            return false;
        last = axis;
    }
    return true;
}

/* Whether what was last still is. */
static bool keeps_last(const hwnas_node *transpose)
{
    const hwnas_attr *order = hwnas_node_attr(transpose, "order");
    return order->ints[order->n - 1] == order->n - 1;
}

/* At the end of an attention it goes into the partition; elsewhere it need not be done at all.
 * Behind a transpose of three dimensions that moves the last one the whole attention would be
 * reference code with it. */
static bool follows_transpose(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_node *before = in->producer < 0 ? NULL : &graph->nodes[in->producer];
    return hwnas_node_is(before, HWNAS_OP_TRANSPOSE) && !leaves_values(graph, before) &&
           (in->rank == 4 || keeps_last(before));
}

static void lower_order(op *o)
{
    const hwnas_attr *order = attr_of(o, "order");
    set_ints(o, dnnl_graph_op_attr_order, order->ints, (size_t)order->n);
}

static void lower_layer_norm(op *o)
{
    set_bool(o, dnnl_graph_op_attr_keep_stats, false);
    set_float(o, dnnl_graph_op_attr_epsilon, attr_of(o, "epsilon")->number);
}

/* Whether there is one weight for each of the values that a mean is taken of. */
static bool has_whole_weights(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 1; i < node->n_inputs; i++)
        if (hwnas_tensor_count(hwnas_node_input(graph, node, i)) !=
            hwnas_onednn_row_length(graph, node))
            return false;
    return true;
}

static bool has_row_weights(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_tensor_count(hwnas_node_input(graph, node, 1)) == 1 ||
           has_whole_weights(graph, node);
}

/* The scale of a norm that has none. */
static bool is_unscaled(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *scale = hwnas_node_input(graph, node, 1);
    return node->n_inputs == 2 && scale->data && hwnas_tensor_count(scale) == 1 &&
           scale->data[0] == 1;
}

static bool is_common_layer_norm(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    return node->n_inputs == 3 && in->rank >= 2 && in->rank <= 5 &&
           hwnas_node_input(graph, node, 1)->rank == 1 &&
           hwnas_node_input(graph, node, 2)->rank == 1 && has_whole_weights(graph, node);
}

/* A single pixel lies plain and with its channels last at once, and oneDNN 3.7 mistakes one for the
 * other. */
static bool has_pixels(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    return in->dims[2] * in->dims[3] > 1;
}

static void lower_upsample(op *o)
{
    set_text(o, dnnl_graph_op_attr_mode, attr_of(o, "linear")->ints[0] ? "linear" : "nearest");
    set_ints(o, dnnl_graph_op_attr_sizes, hwnas_node_output(o->graph, o->node)->dims + 2, 2);
    set_text(o, dnnl_graph_op_attr_data_format, "NCX");
}

static bool is_exact(const hwnas_graph *graph, const hwnas_node *node)
{
    (void)graph;
    return !hwnas_node_attr(node, "tanh")->ints[0];
}

static bool has_given_weights(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = HWNAS_RNN_W; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return true;
}

static void lower_linear(op *o)
{
    set_bool(o, dnnl_graph_op_attr_transpose_b, true); /* our weights are outputs x inputs */
}

static void no_attributes(op *o)
{
    (void)o;
}

/* Scales and zero points are attributes, one for all or one for each channel. */
static void lower_quantize(op *o)
{
    enum { SCALE = 1, ZERO = 2 };
    const hwnas_tensor *scale = hwnas_node_input(o->graph, o->node, SCALE);
    const size_t n = (size_t)hwnas_tensor_count(scale);
    float *floats = hwnas_alloc(n * sizeof *floats);
    int64_t *zeros = hwnas_alloc(n * sizeof *zeros);
    if (o->node->n_inputs > ZERO)
        hwnas_tensor_fill(hwnas_node_input(o->graph, o->node, ZERO), floats);
    for (size_t i = 0; i < n; i++)
        zeros[i] = (int64_t)floats[i];
    hwnas_tensor_fill(scale, floats);
    set_text(o, dnnl_graph_op_attr_qtype, n == 1 ? "per_tensor" : "per_channel");
    set_ints(o, dnnl_graph_op_attr_axis, attr_of(o, "axis")->ints, 1);
    set_floats(o, dnnl_graph_op_attr_scales, floats, n);
    set_ints(o, dnnl_graph_op_attr_zps, zeros, n);
    free(floats);
    free(zeros);
}

#define OWN dnnl_graph_op_wildcard, no_attributes
/* Of several rows for one operator the first that fits counts. */
static const struct rule {
    hwnas_op_id op;
    dnnl_graph_op_kind_t kind;
    void (*set_attributes)(op *o);
    bool (*fits)(const hwnas_graph *graph, const hwnas_node *node); /* NULL: each */
    const hwnas_onednn_kind *own;                                   /* of a wildcard */
} rules[] = {
    {HWNAS_OP_ABS, OWN, NULL, &hwnas_onednn_eltwise},
    {HWNAS_OP_ADD, dnnl_graph_op_add, no_attributes, NULL, NULL},
    {HWNAS_OP_AVG_POOL, OWN, hwnas_onednn_is_plain_pool, &hwnas_onednn_plain_pools},
    {HWNAS_OP_AVG_POOL, dnnl_graph_op_avg_pool, lower_avg_pool, NULL, NULL},
    {HWNAS_OP_BATCH_NORM, dnnl_graph_op_batch_norm_inference, lower_batch_norm, NULL, NULL},
    {HWNAS_OP_CAST, dnnl_graph_op_type_cast, no_attributes, NULL, NULL},
    {HWNAS_OP_CLIP, dnnl_graph_op_clamp, lower_clip, NULL, NULL},
    /* oneDNN turns all else of four dimensions into its layout of images and back. */
    {HWNAS_OP_CONCAT, dnnl_graph_op_concat, lower_axis, hwnas_onednn_joins_channels, NULL},
    {HWNAS_OP_CONCAT, OWN, NULL, &hwnas_onednn_loops},
    {HWNAS_OP_CONV, OWN, hwnas_onednn_is_wrong, &hwnas_onednn_loops},
    {HWNAS_OP_CONV, dnnl_graph_op_convolution, lower_conv, NULL, NULL},
    {HWNAS_OP_DEQUANTIZE_LINEAR, dnnl_graph_op_dequantize, lower_quantize, NULL, NULL},
    {HWNAS_OP_DIV, dnnl_graph_op_divide, no_attributes, NULL, NULL},
    {HWNAS_OP_FLATTEN, OWN, NULL, &hwnas_onednn_reshape},
    {HWNAS_OP_GELU, dnnl_graph_op_gelu, no_attributes, is_exact, NULL},
    {HWNAS_OP_GELU, OWN, NULL, &hwnas_onednn_eltwise},
    {HWNAS_OP_GLOBAL_AVG_POOL, dnnl_graph_op_avg_pool, lower_global_avg_pool, NULL, NULL},
    {HWNAS_OP_GRID_SAMPLE, OWN, hwnas_onednn_can_sample, &hwnas_onednn_grid_samples},
    {HWNAS_OP_GRU_CORE, OWN, hwnas_onednn_is_short_recurrent, &hwnas_onednn_short_recurrent},
    {HWNAS_OP_GRU_CORE, OWN, has_given_weights, &hwnas_onednn_gru},
    {HWNAS_OP_GRU_CORE, OWN, NULL, &hwnas_onednn_loops},
    {HWNAS_OP_HARD_SIGMOID, dnnl_graph_op_hard_sigmoid, lower_hard_sigmoid, NULL, NULL},
    {HWNAS_OP_HARD_SWISH, dnnl_graph_op_hard_swish, no_attributes, NULL, NULL},
    {HWNAS_OP_LAYER_NORM, dnnl_graph_op_layer_norm, lower_layer_norm, is_common_layer_norm, NULL},
    {HWNAS_OP_LAYER_NORM, OWN, has_whole_weights, &hwnas_onednn_layer_norm},
    {HWNAS_OP_LAYER_NORM, OWN, is_unscaled, &hwnas_onednn_layer_norm},
    {HWNAS_OP_LAYER_NORM, OWN, NULL, &hwnas_onednn_loops},
    {HWNAS_OP_LEAKY_RELU, dnnl_graph_op_leaky_relu, lower_leaky_relu, NULL, NULL},
    {HWNAS_OP_LINEAR, dnnl_graph_op_matmul, lower_linear, NULL, NULL},
    {HWNAS_OP_LSTM_CORE, OWN, hwnas_onednn_is_short_recurrent, &hwnas_onednn_short_recurrent},
    {HWNAS_OP_LSTM_CORE, OWN, has_given_weights, &hwnas_onednn_lstm},
    {HWNAS_OP_LSTM_CORE, OWN, NULL, &hwnas_onednn_loops},
    {HWNAS_OP_MATMUL, dnnl_graph_op_matmul, no_attributes, NULL, NULL},
    {HWNAS_OP_MAX_POOL, OWN, hwnas_onednn_is_plain_pool, &hwnas_onednn_plain_pools},
    {HWNAS_OP_MAX_POOL, dnnl_graph_op_max_pool, lower_pool, NULL, NULL},
    {HWNAS_OP_MISH, dnnl_graph_op_mish, no_attributes, NULL, NULL},
    {HWNAS_OP_MUL, dnnl_graph_op_multiply, no_attributes, NULL, NULL},
    {HWNAS_OP_NEG, OWN, NULL, &hwnas_onednn_eltwise},
    {HWNAS_OP_POW, OWN, hwnas_onednn_has_function, &hwnas_onednn_functions},
    {HWNAS_OP_POW, OWN, hwnas_onednn_has_one_exponent, &hwnas_onednn_eltwise},
    {HWNAS_OP_QUANTIZE_LINEAR, dnnl_graph_op_quantize, lower_quantize, NULL, NULL},
    {HWNAS_OP_REDUCE_MAX, OWN, hwnas_onednn_is_extreme_of_all, &hwnas_onednn_extreme},
    {HWNAS_OP_REDUCE_MIN, OWN, hwnas_onednn_is_extreme_of_all, &hwnas_onednn_extreme},
    {HWNAS_OP_RELU, dnnl_graph_op_relu, no_attributes, NULL, NULL},
    {HWNAS_OP_RESHAPE, dnnl_graph_op_static_reshape, lower_shape, follows_transpose, NULL},
    {HWNAS_OP_RESHAPE, OWN, NULL, &hwnas_onednn_reshape},
    {HWNAS_OP_RMS_NORM, OWN, has_row_weights, &hwnas_onednn_rms_norm},
    {HWNAS_OP_RMS_NORM, OWN, NULL, &hwnas_onednn_loops},
    {HWNAS_OP_SIGMOID, dnnl_graph_op_sigmoid, no_attributes, NULL, NULL},
    {HWNAS_OP_SLICE, OWN, NULL, &hwnas_onednn_loops},
    {HWNAS_OP_SOFTMAX, dnnl_graph_op_softmax, lower_axis, NULL, NULL},
    {HWNAS_OP_SQRT, OWN, NULL, &hwnas_onednn_eltwise},
    {HWNAS_OP_SUB, dnnl_graph_op_subtract, no_attributes, NULL, NULL},
    {HWNAS_OP_TANH, dnnl_graph_op_tanh, no_attributes, NULL, NULL},
    {HWNAS_OP_TRANSPOSE, OWN, leaves_values, &hwnas_onednn_reshape},
    {HWNAS_OP_TRANSPOSE, dnnl_graph_op_static_transpose, lower_order, NULL, NULL},
    {HWNAS_OP_UPSAMPLE, dnnl_graph_op_interpolate, lower_upsample, has_pixels, NULL},
    {HWNAS_OP_UPSAMPLE, OWN, NULL, &hwnas_onednn_loops},
};

/* What oneDNN lacks, or is slow at. */
static const struct rule plain = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_loops},
                         pads = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_pads},
                         cum_sums = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_cum_sums},
                         repeats = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_repeats},
                         reduces = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_reduces},
                         functions = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_functions},
                         lies = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_reshape},
                         short_products = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_short_products},
                         turned_products = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_turned_products},
                         /* whose scale is found in the run */
    quantize = {HWNAS_N_OPS, OWN, NULL, &hwnas_onednn_quantize};

static const struct rule *rule_of(const hwnas_onednn_source *source, const hwnas_node *node)
{
    const hwnas_graph *graph = source->graph;
    const bool stays = !hwnas_onednn_changes_type(source, node);
    if (stays && node->op->id == HWNAS_OP_QUANTIZE_LINEAR &&
        hwnas_onednn_quantizes_all_alike(graph, node))
        return &quantize;
    if (stays && (node->op->id == HWNAS_OP_PAD || node->op->id == HWNAS_OP_CUM_SUM))
        return node->op->id == HWNAS_OP_PAD ? &pads : &cum_sums;
    if (stays && hwnas_onednn_is_repeat(graph, node))
        return &repeats;
    /* oneDNN's floats do not round, wrap or cut off as whole numbers do. */
    if (stays && (hwnas_node_is_whole(graph, node) || node->op->id == HWNAS_OP_CAST))
        return hwnas_onednn_is_reduce(graph, node) ? &reduces : &plain;
    if (hwnas_onednn_is_left_lying(source, node))
        return &lies;
    if (hwnas_onednn_is_short_product(source, node))
        return hwnas_onednn_is_turned_product(source, node) ? &turned_products : &short_products;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == node->op->id && (!rules[i].fits || rules[i].fits(graph, node)))
            return &rules[i];
    return hwnas_onednn_has_function(graph, node) ? &functions
           : hwnas_onednn_is_reduce(graph, node)  ? &reduces
                                                  : &plain;
}

const hwnas_onednn_kind *hwnas_onednn_own(const hwnas_onednn_source *source, const hwnas_node *node)
{
    return rule_of(source, node)->own;
}

static hwnas_status add_ports(op *o)
{
    dnnl_graph_logical_tensor_t port;
    const int n = hwnas_onednn_changes_type(o->source, o->node) ? 1 : o->node->n_inputs;
    for (int i = 0; i < n; i++) {
        TRY(hwnas_onednn_plain(&port, o->source, o->node->inputs[i]));
        if (o->status == dnnl_success)
            o->status = dnnl_graph_op_add_input(o->made, &port);
    }
    TRY(hwnas_onednn_plain(&port, o->source, o->node->output));
    if (o->status == dnnl_success)
        o->status = dnnl_graph_op_add_output(o->made, &port);
    return HWNAS_OK;
}

static hwnas_status lower_node(dnnl_graph_graph_t target, const hwnas_onednn_source *source,
                               size_t index, bool is_in_group)
{
    hwnas_status status = HWNAS_OK;
    op o = {.source = source, .graph = source->graph, .node = &source->graph->nodes[index]};
    const struct rule *rule = is_in_group ? &plain : rule_of(source, o.node);
    o.status = dnnl_graph_op_create(&o.made, index, rule->kind, o.node->name);
    if (o.status == dnnl_success) {
        TRY_OUT(add_ports(&o));
        rule->set_attributes(&o);
    }
    if (o.status == dnnl_success)
        o.status = dnnl_graph_add_op(target, o.made);
    status = hwnas_onednn_status(o.status, "take", o.node->name);
out:
    dnnl_graph_op_destroy(o.made);
    return status;
}

/* Keeps a tensor from disappearing inside of a partition. `id` is the end's. */
static hwnas_status lower_end(dnnl_graph_graph_t target, const hwnas_onednn_source *source,
                              int tensor, size_t id)
{
    const char *name = source->graph->tensors[tensor].name;
    dnnl_graph_op_t end = NULL;
    dnnl_graph_logical_tensor_t port;
    TRY(hwnas_onednn_plain(&port, source, tensor));
    dnnl_status_t status = dnnl_graph_op_create(&end, id, dnnl_graph_op_end, name);
    if (status == dnnl_success)
        status = dnnl_graph_op_add_input(end, &port);
    if (status == dnnl_success)
        status = dnnl_graph_add_op(target, end);
    dnnl_graph_op_destroy(end);
    return hwnas_onednn_status(status, "take", name);
}

hwnas_status hwnas_onednn_lower(dnnl_graph_graph_t target, const hwnas_onednn_source *source,
                                const hwnas_fusion *plan, const bool *is_end)
{
    const hwnas_graph *graph = source->graph;
    size_t id = graph->n_nodes;
    for (size_t i = 0; i < graph->n_nodes; i++)
        TRY(lower_node(target, source, i, plan->group_of[i] >= 0));
    for (size_t i = 0; i < graph->n_outputs; i++)
        TRY(lower_end(target, source, graph->outputs[i], id++));
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (is_end[i])
            TRY(lower_end(target, source, (int)i, id++));
    return HWNAS_OK;
}
