/* quantize_graph.c: a graph with quantisations, and their scales.
 *
 * A tensor is quantised once, behind the operator that makes it, and each reader has a reverse of
 * its own, because a device fuses a reverse with one reader. Weights: symmetric, 127 (of seven bits
 * 63) at the largest magnitude of a channel. Activations: 0 to 255 where nothing is negative, else
 * symmetric -127 to 127, for which the kernels need no correction by a zero point; with a zero
 * point in files, and where it costs nothing. */
#include "graph/quantize_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/quantize_places.h"
#include "graph/rewrite.h"

typedef struct quantizer {
    hwnas_quantize_form form;
    float most; /* that a weight can be */
    const hwnas_range *ranges;
    hwnas_quantize_places places;
    bool *takes_zero;          /* by tensor: may have a zero point */
    int *bytes, *scale, *zero; /* by tensor: the places of its bytes, their scale and zero point */
    float *scale_value;        /* by tensor: of an activation */
    int *origin;
    size_t n_reverses;
} quantizer;

static hwnas_status add_scales(int *scale, int *zero, hwnas_rewrite *r, const char *name, int64_t n,
                               const float *scales, float zero_value, hwnas_dtype dtype)
{
    hwnas_arena *arena = r->to->arena;
    const int rank = n > 1;
    const char *zero_name = hwnas_arena_printf(arena, "%s/zero", name);
    float *zeros = hwnas_alloc((size_t)n * sizeof *zeros);
    for (int64_t i = 0; i < n; i++)
        zeros[i] = zero_value;
    hwnas_status status = hwnas_graph_add_constant(
        scale, r->to, hwnas_arena_printf(arena, "%s/scale", name), rank, &n, scales);
    if (status == HWNAS_OK)
        status = hwnas_graph_add_constant(zero, r->to, zero_name, rank, &n, zeros);
    if (status == HWNAS_OK)
        r->to->tensors[*zero].dtype = dtype;
    free(zeros);
    return status;
}

/* Maxima keep the scale of what they are taken of: bytes then need no more than a comparison. What
 * is not quantised has no range. */
static hwnas_range range_of(const quantizer *q, const hwnas_graph *graph, int tensor)
{
    int producer = graph->tensors[tensor].producer;
    while (producer >= 0 && q->places.is_quantized[producer] &&
           graph->nodes[producer].op->id == HWNAS_OP_MAX_POOL &&
           q->places.wants[graph->nodes[producer].inputs[0]]) {
        tensor = graph->nodes[producer].inputs[0];
        producer = graph->tensors[tensor].producer;
    }
    return q->ranges[tensor];
}

/* How bytes stand for the values of a range, in which 0 is. */
typedef struct bytes_form {
    float scale, zero;
    hwnas_dtype dtype;
} bytes_form;

static bytes_form bytes_for(const hwnas_range *range, bool takes_zero)
{
    const float low = fminf(range->low, 0), high = fmaxf(range->high, 0);
    const bool is_signed = low < 0, is_shifted = is_signed && takes_zero;
    const float width = is_shifted ? high - low : fmaxf(high, -low);
    bytes_form out = {1, 0, is_signed && !is_shifted ? HWNAS_INT8 : HWNAS_UINT8};
    if (width > 0 && isfinite(width))
        out.scale = width / (out.dtype == HWNAS_INT8 ? 127 : 255);
    if (is_shifted)
        out.zero = rintf(fminf(255, -low / out.scale));
    return out;
}

/* Quantises an activation that has its place. */
static hwnas_status quantize(hwnas_rewrite *r, int tensor)
{
    quantizer *q = r->context;
    const hwnas_range range = range_of(q, r->from, tensor);
    const bytes_form with =
        bytes_for(&range, q->takes_zero[tensor] || q->form == HWNAS_QUANTIZE_FILE);
    const char *name = r->from->tensors[tensor].name;
    const hwnas_attr attrs[] = {hwnas_attr_int(0), {0}};
    q->scale_value[tensor] = with.scale;
    TRY(add_scales(&q->scale[tensor], &q->zero[tensor], r, name, 1, &with.scale, with.zero,
                   with.dtype));
    const int inputs[] = {r->place[tensor], q->scale[tensor], q->zero[tensor]};
    return hwnas_graph_add_node(&q->bytes[tensor], r->to, hwnas_ops[HWNAS_OP_QUANTIZE_LINEAR],
                                hwnas_arena_printf(r->to->arena, "%s/quantize", name), attrs, 3,
                                inputs, false);
}

static hwnas_status reverse(int *out, hwnas_rewrite *r, const char *name, int64_t axis, int bytes,
                            int scale, int zero)
{
    quantizer *q = r->context;
    const hwnas_attr attrs[] = {hwnas_attr_int(axis), {0}};
    const int inputs[] = {bytes, scale, zero};
    return hwnas_graph_add_node(
        out, r->to, hwnas_ops[HWNAS_OP_DEQUANTIZE_LINEAR],
        hwnas_arena_printf(r->to->arena, "%s/dequantize_%zu", name, q->n_reverses++), attrs, 3,
        inputs, false);
}

/* Values as bytes, in place, of a scale for each of the `n_scales` places along a dimension whose
 * neighbours lie `step` apart. */
static void round_weights(float *values, float *scales, int64_t n, int64_t n_scales, int64_t step,
                          float most)
{
    for (int64_t at = 0, s = 0; at < n; at += step, s = s + 1 < n_scales ? s + 1 : 0)
        for (int64_t i = at; i < at + step; i++)
            scales[s] = fmaxf(scales[s], fabsf(values[i]));
    for (int64_t i = 0; i < n_scales; i++)
        scales[i] = scales[i] > 0 ? scales[i] / most : 1;
    for (int64_t at = 0, s = 0; at < n; at += step, s = s + 1 < n_scales ? s + 1 : 0)
        for (int64_t i = at; i < at + step; i++)
            values[i] = rintf(values[i] / scales[s]);
}

/* A kernel as bytes with their reverse. */
static hwnas_status quantize_kernel(int *out, hwnas_rewrite *r, int tensor, int axis)
{
    quantizer *q = r->context;
    const hwnas_tensor *from = &r->from->tensors[tensor];
    const int64_t n_scales = from->dims[axis], n = hwnas_tensor_count(from);
    int64_t step = 1;
    for (int i = from->rank - 1; i > axis; i--)
        step *= from->dims[i];
    if (q->bytes[tensor] < 0) {
        TRY(hwnas_graph_add_weight(&q->bytes[tensor], r->to, from->name, from->rank, from->dims,
                                   from->init, from->is_parameter));
        float *scales = hwnas_alloc((size_t)n_scales * sizeof *scales);
        float *values = hwnas_arena_alloc(r->to->arena, (size_t)hwnas_tensor_bytes(from));
        hwnas_tensor *to = &r->to->tensors[q->bytes[tensor]];
        hwnas_tensor_fill(from, values);
        round_weights(values, scales, n, n_scales, step, q->most);
        to->data = values;
        to->dtype = HWNAS_INT8;
        hwnas_status status = add_scales(&q->scale[tensor], &q->zero[tensor], r, from->name,
                                         n_scales, scales, 0, HWNAS_INT8);
        free(scales);
        TRY(status);
    }
    return reverse(out, r, from->name, axis, q->bytes[tensor], q->scale[tensor], q->zero[tensor]);
}

/* The product that input `i` of a node is the bias of: the node's own, or that before an `add`;
 * else NULL. */
static const hwnas_node *biased_by(const hwnas_graph *graph, const hwnas_node *node, int i)
{
    enum { BIAS = 2 };
    const hwnas_tensor *bias = hwnas_node_input(graph, node, i);
    const bool is_sum = node->op->id == HWNAS_OP_ADD && i == 1;
    int axis;
    if (bias->kind != HWNAS_TENSOR_WEIGHT || bias->rank != 1 || (!is_sum && i != BIAS))
        return NULL;
    const int producer = hwnas_node_input(graph, node, 0)->producer;
    const hwnas_node *product = !is_sum ? node : producer >= 0 ? &graph->nodes[producer] : NULL;
    if (!product || !hwnas_has_kernel(&axis, graph, product) ||
        (is_sum && product->op->id != HWNAS_OP_MATMUL))
        return NULL;
    return hwnas_node_input(graph, product, 1)->dims[axis] == bias->dims[0] ? product : NULL;
}

/* A bias as 32-bit integers of the input's scale times the kernel's, with their reverse. `out`
 * stays as it is where a channel's kernel is so small that they do not hold the bias. */
static hwnas_status quantize_bias(int *out, hwnas_rewrite *r, const hwnas_node *product, int bias)
{
    enum { X, KERNEL };
    quantizer *q = r->context;
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *from = &r->from->tensors[bias];
    const int64_t n = hwnas_tensor_count(from);
    const char *name = hwnas_arena_printf(r->to->arena, "%s/whole_bias", product->name);
    float *scales = hwnas_alloc((size_t)n * sizeof *scales);
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    bool fits = true;
    int whole, scale, zero;
    hwnas_tensor_fill(&r->to->tensors[q->scale[product->inputs[KERNEL]]], scales);
    hwnas_tensor_fill(from, values);
    for (int64_t i = 0; i < n; i++) {
        scales[i] *= q->scale_value[product->inputs[X]];
        values[i] = rintf(values[i] / scales[i]);
        fits &= fabsf(values[i]) < 2147483648.0f;
    }
    if (!fits)
        goto out;
    TRY_OUT(hwnas_graph_add_constant(&whole, r->to, name, 1, &n, values));
    r->to->tensors[whole].dtype = HWNAS_INT32;
    TRY_OUT(add_scales(&scale, &zero, r, name, n, scales, 0, HWNAS_INT32));
    TRY_OUT(reverse(out, r, name, 0, whole, scale, zero));
out:
    free(scales);
    free(values);
    return status;
}

/* What input `i` of a node is in the new graph. */
static hwnas_status read_input(int *out, hwnas_rewrite *r, size_t n, int i)
{
    quantizer *q = r->context;
    const hwnas_node *node = &r->from->nodes[n];
    const int tensor = node->inputs[i];
    const hwnas_tensor *t = &r->from->tensors[tensor];
    int axis;
    if (i == 1 && q->places.is_quantized[n] && hwnas_has_kernel(&axis, r->from, node))
        return quantize_kernel(out, r, tensor, axis);
    const hwnas_node *product = q->form == HWNAS_QUANTIZE_FILE ? biased_by(r->from, node, i) : NULL;
    *out = -1;
    if (product && q->places.is_quantized[product - r->from->nodes] &&
        q->places.wants[product->inputs[0]])
        TRY(quantize_bias(out, r, product, tensor));
    if (*out >= 0)
        return HWNAS_OK;
    if (q->places.wants[tensor] && hwnas_reads_bytes(&q->places, r->from, n, i)) {
        if (q->bytes[tensor] < 0)
            TRY(quantize(r, tensor));
        return reverse(out, r, t->name, 0, q->bytes[tensor], q->scale[tensor], q->zero[tensor]);
    }
    if (r->place[tensor] < 0)
        TRY(hwnas_rewrite_copy_weight(r, tensor));
    *out = r->place[tensor];
    return HWNAS_OK;
}

static hwnas_status quantize_nodes(hwnas_rewrite *r)
{
    quantizer *q = r->context;
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        int inputs[HWNAS_MAX_NODE_INPUTS];
        for (int i = 0; i < node->n_inputs; i++)
            TRY(read_input(&inputs[i], r, n, i));
        q->origin[r->to->n_nodes] = (int)n;
        TRY(hwnas_rewrite_add_node(r, node, node->n_inputs, inputs, node->output));
    }
    return HWNAS_OK;
}

/* Each tensor has at most one quantisation, each input of a node one reverse. */
static size_t most_nodes(const hwnas_graph *graph)
{
    size_t n = graph->n_nodes + graph->n_tensors + 1;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += (size_t)graph->nodes[i].n_inputs;
    return n;
}

hwnas_status hwnas_graph_quantize(hwnas_graph **out, int **origin, const hwnas_graph *graph,
                                  const hwnas_range *ranges, const bool *stays_float,
                                  hwnas_quantize_form form, int weight_bits)
{
    const size_t n_nodes = most_nodes(graph), n_places = graph->n_tensors + 1;
    quantizer q = {.form = form, .most = (float)((1 << (weight_bits - 1)) - 1), .ranges = ranges};
    hwnas_quantize_places_find(&q.places, graph, stays_float, form);
    q.takes_zero = hwnas_takes_zero(&q.places, graph, weight_bits);
    q.origin = hwnas_alloc(n_nodes * sizeof *q.origin);
    q.bytes = hwnas_alloc(n_places * sizeof *q.bytes);
    q.scale = hwnas_alloc(n_places * sizeof *q.scale);
    q.zero = hwnas_alloc(n_places * sizeof *q.zero);
    q.scale_value = hwnas_alloc(n_places * sizeof *q.scale_value);
    for (size_t i = 0; i < n_nodes; i++)
        q.origin[i] = -1;
    for (size_t i = 0; i < n_places; i++)
        q.bytes[i] = -1;
    hwnas_status status = hwnas_graph_remake(out, graph, quantize_nodes, &q);
    if (status == HWNAS_OK) {
        *origin = q.origin;
        q.origin = NULL;
    }
    hwnas_quantize_places_done(&q.places);
    free(q.takes_zero);
    free(q.bytes);
    free(q.scale);
    free(q.zero);
    free(q.scale_value);
    free(q.origin);
    return status;
}
