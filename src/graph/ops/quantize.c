/* quantize.c: floats as whole numbers of a scale from a zero point, and back. Scale and zero point
 * are single values, one for each place along an axis, or one for each block of them. */
#include <math.h>

#include "graph/ops/elementwise.h"

enum { X, SCALE, ZERO };
enum { AXIS, BLOCK }; /* attributes */

static const hwnas_attr_row attrs[] = {
    {.name = "axis",
     .kind = HWNAS_ATTR_INT,
     .fallback = 1,
     .low = -HWNAS_MAX_RANK,
     .high = HWNAS_MAX_RANK - 1,
     .onnx = "axis",
     .help = "dimension that has scales of its own"},
    {.name = "block_size",
     .kind = HWNAS_ATTR_INT,
     .fallback = 0,
     .low = 0,
     .high = 1 << 30,
     .onnx = "block_size",
     .onnx_is_rare = true,
     .help = "places along it that share a scale; 0: no blocks"},
    {0},
};

/* Counted from the beginning; of a single scale it means nothing. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    int64_t *axis = node->attrs[AXIS].ints;
    if (!node->attrs[BLOCK].ints[0] &&
        hwnas_tensor_count(hwnas_node_input(graph, node, SCALE)) == 1)
        *axis = 0;
    else
        hwnas_settle_axis(axis, hwnas_node_input(graph, node, X)->rank);
}

/* A scale for each block: those have the values' shape, but along the axis. */
static bool fit_blocks(const hwnas_tensor *of, const hwnas_tensor *in, int64_t axis, int64_t block)
{
    if (of->rank != in->rank || axis < 0 || axis >= in->rank)
        return false;
    for (int i = 0; i < in->rank; i++)
        if (of->dims[i] != (i == axis ? (in->dims[i] + block - 1) / block : in->dims[i]))
            return false;
    return true;
}

static hwnas_status check(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, X);
    const int64_t axis = node->attrs[AXIS].ints[0], block = node->attrs[BLOCK].ints[0];
    for (int i = SCALE; i < node->n_inputs; i++) {
        const hwnas_tensor *of = hwnas_node_input(graph, node, i);
        const int64_t n = hwnas_tensor_count(of);
        if (block && fit_blocks(of, in, axis, block))
            continue;
        const bool is_along = axis >= 0 && axis < in->rank && n == in->dims[axis];
        if (block || of->rank > 1 || (n != 1 && !is_along) ||
            n != hwnas_tensor_count(hwnas_node_input(graph, node, SCALE)))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s': scales of shape %s do not fit %s",
                              node->op->name, hwnas_tensor_shape(of).s, hwnas_tensor_shape(in).s);
    }
    return HWNAS_OK;
}

static hwnas_status infer_quantize(const hwnas_graph *graph, const hwnas_node *node,
                                   hwnas_tensor *out)
{
    TRY(check(graph, node));
    out->dtype =
        node->n_inputs > ZERO ? hwnas_node_input(graph, node, ZERO)->dtype : HWNAS_UINT8;
    return hwnas_infer_same(graph, node, out);
}

static hwnas_status infer_dequantize(const hwnas_graph *graph, const hwnas_node *node,
                                     hwnas_tensor *out)
{
    TRY(check(graph, node));
    out->dtype = HWNAS_FLOAT32;
    return hwnas_infer_same(graph, node, out);
}

/* Which scale is a value's: `step` values lie together at one place along the axis, which has
 * `n_places`; `block` of those share scales. */
typedef struct scale_places {
    int64_t step, n_places, block, n_blocks;
} scale_places;

static scale_places find_places(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, X);
    const int64_t axis = node->attrs[AXIS].ints[0];
    scale_places p = {1, hwnas_tensor_count(hwnas_node_input(graph, node, SCALE)),
                      node->attrs[BLOCK].ints[0], 0};
    for (int i = in->rank - 1; i > axis; i--)
        p.step *= in->dims[i];
    if (p.block) {
        p.n_places = in->dims[axis];
        p.n_blocks = (p.n_places + p.block - 1) / p.block;
    }
    return p;
}

static int64_t scale_of(const scale_places *p, int64_t i)
{
    const int64_t place = i / p->step % p->n_places;
    if (!p->block)
        return place;
    return (i / p->step / p->n_places * p->n_blocks + place / p->block) * p->step + i % p->step;
}

static void compute_quantize(const hwnas_graph *graph, const hwnas_node *node,
                             const float *const *inputs, float *output)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const double low = out->dtype == HWNAS_INT8    ? -128
                       : out->dtype == HWNAS_INT16 ? -32768
                       : out->dtype == HWNAS_INT32 ? -2147483648.0
                                                   : 0;
    const double high = out->dtype == HWNAS_INT8     ? 127
                        : out->dtype == HWNAS_INT16  ? 32767
                        : out->dtype == HWNAS_UINT16 ? 65535
                        : out->dtype == HWNAS_INT32  ? 2147483647
                                                     : 255;
    const scale_places places = find_places(graph, node);
    for (int64_t i = 0, n = hwnas_tensor_count(out); i < n; i++) {
        const int64_t s = scale_of(&places, i);
        const double zero = node->n_inputs > ZERO ? inputs[ZERO][s] : 0;
        output[i] = (float)fmin(high, fmax(low, rint(inputs[X][i] / inputs[SCALE][s]) + zero));
    }
}

static void compute_dequantize(const hwnas_graph *graph, const hwnas_node *node,
                               const float *const *inputs, float *output)
{
    const scale_places places = find_places(graph, node);
    for (int64_t i = 0, n = hwnas_tensor_count(hwnas_node_output(graph, node)); i < n; i++) {
        const int64_t s = scale_of(&places, i);
        output[i] =
            (inputs[X][i] - (node->n_inputs > ZERO ? inputs[ZERO][s] : 0)) * inputs[SCALE][s];
    }
}

#define LINEAR(NAME, ID, ONNX, KIND, HELP)                                                         \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .class = HWNAS_CLASS_QUANTIZATION,                                                         \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = attrs,                                                                            \
        .is_internal = true,                                                                       \
        .takes_integers = true,                                                                    \
        .min_inputs = 2,                                                                           \
        .max_inputs = 3,                                                                           \
        .settle = settle,                                                                          \
        .infer = infer_##KIND,                                                                     \
        .compute = compute_##KIND,                                                                 \
    };

LINEAR(quantize_linear, QUANTIZE_LINEAR, "QuantizeLinear", quantize,
       "floats as whole numbers of a scale")
LINEAR(dequantize_linear, DEQUANTIZE_LINEAR, "DequantizeLinear", dequantize,
       "whole numbers of a scale as floats")
