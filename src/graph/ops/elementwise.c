#include "graph/ops/elementwise.h"

#include <float.h>
#include <math.h>
#include <string.h>

const hwnas_attr_row hwnas_no_attrs[] = {{0}};

hwnas_status hwnas_infer_same(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    out->rank = in->rank;
    memcpy(out->dims, in->dims, sizeof out->dims);
    return HWNAS_OK;
}

hwnas_status hwnas_infer_floats(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    if (hwnas_dtype_is_whole(hwnas_node_input(graph, node, 0)->dtype))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' takes floats, not whole numbers",
                          node->op->name);
    return hwnas_infer_same(graph, node, out);
}

bool hwnas_broadcast_shape(hwnas_tensor *out, const hwnas_tensor *a, const hwnas_tensor *b)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < out->rank; i++) {
        const int in_a = i - out->rank + a->rank, in_b = i - out->rank + b->rank;
        const int64_t x = in_a < 0 ? 1 : a->dims[in_a], y = in_b < 0 ? 1 : b->dims[in_b];
        if (x != y && x != 1 && y != 1)
            return false;
        out->dims[i] = x == 1 ? y : x;
    }
    return true;
}

hwnas_status hwnas_infer_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                                   hwnas_tensor *out)
{
    const hwnas_tensor *a = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *b = hwnas_node_input(graph, node, 1);
    if (hwnas_broadcast_shape(out, a, b))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' cannot join the shapes %s and %s", node->op->name,
                      hwnas_tensor_shape(a).s, hwnas_tensor_shape(b).s);
}

hwnas_walk hwnas_walk_new(const hwnas_tensor *in, const hwnas_tensor *out)
{
    hwnas_walk walk = {.rank = out->rank};
    int64_t width = 1;
    memcpy(walk.dims, out->dims, sizeof walk.dims);
    for (int i = in->rank - 1; i >= 0; width *= in->dims[i--])
        if (in->dims[i] > 1)
            walk.step[i + out->rank - in->rank] = width;
    return walk;
}

void hwnas_walk_next(hwnas_walk *walk)
{
    for (int i = walk->rank - 1; i >= 0; i--) {
        walk->at += walk->step[i];
        if (++walk->index[i] < walk->dims[i])
            return;
        walk->at -= walk->step[i] * walk->dims[i];
        walk->index[i] = 0;
    }
}

void hwnas_compute_each(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output, float (*function)(float))
{
    const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = function(inputs[0][i]);
}

void hwnas_compute_copy(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output)
{
    memcpy(output, inputs[0], (size_t)hwnas_tensor_bytes(hwnas_node_output(graph, node)));
}

hwnas_status hwnas_find_axis(int *out, const hwnas_node *node, int rank)
{
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    if (axis < -rank || axis >= rank)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'axis' of '%s' is %lld, its input has %d dimensions", node->op->name,
                          (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return HWNAS_OK;
}

void hwnas_settle_axis(int64_t *axis, int rank)
{
    if (*axis < 0 && *axis >= -rank)
        *axis += rank;
}

int64_t hwnas_place_of(float index, int64_t n)
{
    const double at = trunc(index);
    if (!(at >= -(double)n)) /* or no number */
        return 0;
    return at >= (double)n ? n - 1 : (int64_t)at + (at < 0 ? n : 0);
}

hwnas_status hwnas_check_macs(const hwnas_node *node, const hwnas_tensor *out, int64_t macs)
{
    double total = (double)macs;
    for (int i = 0; i < out->rank; i++)
        total *= (double)out->dims[i];
    if (total > 0x1p46)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' would take %.1g multiply-accumulates",
                          node->op->name, total);
    return HWNAS_OK;
}

/* The nearest float that a type of 32 or 64 bits can hold; ONNX does not say what becomes of
 * others. */
static float clamp_wide(float value, hwnas_dtype dtype)
{
    const bool is_long = dtype == HWNAS_INT64 || dtype == HWNAS_UINT64;
    const bool is_signed = dtype == HWNAS_INT64 || dtype == HWNAS_INT32;
    const float end = ldexpf(1, (is_long ? 64 : 32) - is_signed);
    const float least = is_signed ? -end : 0;
    return value < least ? least : value >= end ? nextafterf(end, 0) : value;
}

float hwnas_as_dtype(float value, hwnas_dtype dtype)
{
    static const int bits[HWNAS_N_DTYPES] = {
        [HWNAS_INT16] = 16, [HWNAS_INT8] = 8, [HWNAS_UINT16] = 16, [HWNAS_UINT8] = 8};
    if (!hwnas_dtype_is_whole(dtype))
        return value;
    if (dtype == HWNAS_BOOL)
        return value != 0;
    value = isfinite(value) ? truncf(value) + 0.0f /* no -0 */
            : value > 0     ? FLT_MAX
            : value < 0     ? -FLT_MAX
                            : 0;
    if (!bits[dtype])
        return clamp_wide(value, dtype);
    const double range = ldexp(1, bits[dtype]);
    const bool is_signed = dtype == HWNAS_INT16 || dtype == HWNAS_INT8;
    const double wrapped = value - range * floor(value / range);
    return (float)(is_signed && wrapped >= range / 2 ? wrapped - range : wrapped);
}

void hwnas_compute_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                             const float *const *inputs, float *output,
                             float (*function)(float, float))
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    hwnas_walk a = hwnas_walk_new(hwnas_node_input(graph, node, 0), out);
    hwnas_walk b = hwnas_walk_new(hwnas_node_input(graph, node, 1), out);
    for (int64_t at = 0, n = hwnas_tensor_count(out); at < n; at++) {
        output[at] = hwnas_as_dtype(function(inputs[0][a.at], inputs[1][b.at]), out->dtype);
        hwnas_walk_next(&a);
        hwnas_walk_next(&b);
    }
}

hwnas_status hwnas_need_image(const hwnas_node *node, const hwnas_tensor *in,
                              const char *of_volumes)
{
    if (in->rank == 4)
        return HWNAS_OK;
    const hwnas_status status = hwnas_fail(
        HWNAS_E_INPUT, NULL, "'%s' needs an image (batch x channels x height x width), not %s",
        node->op->name, hwnas_tensor_shape(in).s);
    return in->rank == 5 ? hwnas_hint(status, "%s", of_volumes) : status;
}

hwnas_status hwnas_check_bias(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->n_inputs <= 2)
        return HWNAS_OK;
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    const hwnas_tensor *bias = hwnas_node_input(graph, node, 2);
    if (bias->rank == 1 && bias->dims[0] == weight->dims[0])
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s': a bias of shape %s does not fit %s",
                      node->op->name, hwnas_tensor_shape(bias).s, hwnas_tensor_shape(weight).s);
}
