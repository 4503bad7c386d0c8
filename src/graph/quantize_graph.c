/* quantize_graph.c: where quantisations stand, and their scales.
 *
 * A tensor is quantised once, behind the operator that makes it, and each reader has a reverse of
 * its own, because a device fuses a reverse with one reader. Weights: symmetric, 127 (of seven bits
 * 63) at the largest magnitude of a channel. Activations: 0 to 255 where nothing is negative, else
 * symmetric -127 to 127, for which the kernels need no correction by a zero point. */
#include "graph/quantize_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/rewrite.h"

typedef struct quantizer {
    hwnas_quantize_form form;
    float most; /* that a weight can be */
    const hwnas_range *ranges;
    const bool *stays_float;   /* by node; NULL: none */
    bool *is_quantized;        /* by node: reads bytes */
    bool *wants;               /* by tensor: is bytes for those who want them */
    int *bytes, *scale, *zero; /* by tensor: the places of its bytes, their scale and zero point */
    float *scale_value;        /* by tensor: of an activation */
    int *origin;
    size_t n_reverses;
} quantizer;

static bool is_image(const hwnas_tensor *tensor)
{
    return tensor->rank == 4;
}

/* A product with weights: a row says which dimension of them is the output's; < 0: from the end. */
static bool has_kernel(int *axis, const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->class != HWNAS_CLASS_PRODUCT)
        return false;
    const hwnas_tensor *kernel = hwnas_node_input(graph, node, 1);
    const bool is_matmul = node->op->id == HWNAS_OP_MATMUL;
    *axis = is_matmul ? 1 : 0;
    return kernel->kind == HWNAS_TENSOR_WEIGHT && (!is_matmul || kernel->rank == 2) &&
           !hwnas_dtype_is_whole(kernel->dtype) &&
           hwnas_node_input(graph, node, 0)->kind != HWNAS_TENSOR_WEIGHT &&
           !hwnas_dtype_is_whole(hwnas_node_input(graph, node, 0)->dtype);
}

bool *hwnas_quantizable_products(const hwnas_graph *graph)
{
    int axis;
    bool *out = hwnas_alloc((graph->n_nodes + 1) * sizeof *out);
    for (size_t n = 0; n < graph->n_nodes; n++)
        out[n] = has_kernel(&axis, graph, &graph->nodes[n]);
    return out;
}

/* A product with weights that is to be one of bytes. */
static bool is_byte_product(const quantizer *q, const hwnas_graph *graph, size_t n)
{
    int axis;
    return has_kernel(&axis, graph, &graph->nodes[n]) && !(q->stays_float && q->stays_float[n]);
}

/* Operators on bytes that do not pay by themselves, but between those that do. Means are not among
 * them: they need another scale. */
static bool passes(const hwnas_graph *graph, const hwnas_node *node)
{
    /* Fewer channels than a register has bytes: oneDNN's slow code. */
    if (node->op->id == HWNAS_OP_MAX_POOL)
        return hwnas_node_output(graph, node)->dims[1] >= 32;
    return node->op->id == HWNAS_OP_CONCAT && is_image(hwnas_node_output(graph, node)) &&
           hwnas_node_attr(node, "axis")->ints[0] == 1;
}

/* The end of a residual block: one summand comes of a convolution straight, which then adds the
 * other. Returns which one that is, or -1. */
static int other_summand(const hwnas_graph *graph, const hwnas_node *node, const hwnas_uses *uses)
{
    int axis, last = -1;
    if (node->op->id != HWNAS_OP_ADD || !is_image(hwnas_node_output(graph, node)) ||
        node->inputs[0] == node->inputs[1])
        return -1;
    for (int i = 0; i < 2; i++) {
        const hwnas_tensor *t = hwnas_node_input(graph, node, i);
        if (t->kind == HWNAS_TENSOR_WEIGHT ||
            hwnas_tensor_count(t) != hwnas_tensor_count(hwnas_node_output(graph, node)))
            return -1;
        if (t->producer >= 0 && hwnas_lone_reader(&uses[node->inputs[i]]) >= 0 &&
            has_kernel(&axis, graph, &graph->nodes[t->producer]) &&
            (last < 0 || t->producer > hwnas_node_input(graph, node, last)->producer))
            last = i;
    }
    return last < 0 ? -1 : 1 - last;
}

/* From the end to the beginning: whether somebody wants a tensor as bytes is known when its
 * producer is looked at. `is_due`: it, or an activation of it, is wanted. */
static void decide(quantizer *q, const hwnas_graph *graph)
{
    bool *is_due = hwnas_alloc((graph->n_tensors + 1) * sizeof *is_due);
    hwnas_uses *uses = hwnas_graph_uses(graph, NULL, NULL);
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        const int other = other_summand(graph, node, uses);
        if (is_byte_product(q, graph, n)) {
            q->is_quantized[n] = q->wants[node->inputs[0]] = is_due[node->inputs[0]] = true;
        } else if (q->wants[node->output] && passes(graph, node)) {
            q->is_quantized[n] = true;
            for (int i = 0; i < node->n_inputs; i++)
                q->wants[node->inputs[i]] = is_due[node->inputs[i]] = true;
        } else if (is_due[node->output] && other >= 0) {
            q->wants[node->inputs[other]] = is_due[node->inputs[other]] = true;
        } else if (is_due[node->output] && node->op->is_epilogue) {
            is_due[node->inputs[0]] = true;
        }
    }
    free(uses);
    free(is_due);
}

bool hwnas_graph_has_attention(const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op->id == HWNAS_OP_MATMUL &&
            hwnas_node_input(graph, &graph->nodes[i], 1)->kind != HWNAS_TENSOR_WEIGHT)
            return true;
    return false;
}

/* What engines have kernels of bytes for, as long as each tensor around them is quantised. */
static bool has_int8_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    int axis;
    if (node->op->id == HWNAS_OP_CONV)
        return has_kernel(&axis, graph, node);
    return node->op->has_int8_kernel && is_image(hwnas_node_output(graph, node)) &&
           !hwnas_graph_has_attention(graph);
}

/* Whether a node has its values from a product that keeps its floats, with no product of bytes
 * between. */
static bool follows_floats(const bool *is_float, const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const int before = hwnas_node_input(graph, node, i)->producer;
        if (before >= 0 && is_float[before])
            return true;
    }
    return false;
}

/* Each operator by itself: what it reads and what it makes. A function that cuts off goes with the
 * operator before it. */
static void decide_for_files(quantizer *q, const hwnas_graph *graph)
{
    int axis;
    bool *is_float = hwnas_alloc((graph->n_nodes + 1) * sizeof *is_float);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const bool multiplies = has_kernel(&axis, graph, node);
        is_float[n] =
            multiplies ? !is_byte_product(q, graph, n) : follows_floats(is_float, graph, node);
        if (is_float[n])
            continue;
        const bool does_clip = node->op->id == HWNAS_OP_RELU || node->op->id == HWNAS_OP_CLIP;
        const int before = hwnas_node_input(graph, node, 0)->producer;
        q->is_quantized[n] = true;
        if (!multiplies && !has_int8_kernel(graph, node)) {
            if (does_clip && before >= 0 && q->wants[node->inputs[0]]) {
                q->wants[node->output] = true;
                q->wants[node->inputs[0]] = false;
            }
            continue;
        }
        for (int i = 0; i < node->n_inputs && (i == 0 || !multiplies); i++)
            q->wants[node->inputs[i]] = true;
        if (has_int8_kernel(graph, node))
            q->wants[node->output] = true;
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        q->wants[graph->outputs[i]] = false;
    free(is_float);
}

static void quantizer_init(quantizer *q, const hwnas_graph *graph)
{
    q->is_quantized = hwnas_alloc((graph->n_nodes + 1) * sizeof *q->is_quantized);
    q->wants = hwnas_alloc((graph->n_tensors + 1) * sizeof *q->wants);
    if (q->form == HWNAS_QUANTIZE_FILE)
        decide_for_files(q, graph);
    else
        decide(q, graph);
    for (size_t i = 0; i < graph->n_tensors; i++)
        q->wants[i] &= graph->tensors[i].kind != HWNAS_TENSOR_WEIGHT &&
                       !hwnas_dtype_is_whole(graph->tensors[i].dtype);
}

bool *hwnas_quantize_wants(const hwnas_graph *graph, hwnas_quantize_form form)
{
    quantizer q = {.form = form};
    quantizer_init(&q, graph);
    free(q.is_quantized);
    return q.wants;
}

/* ---- Making the graph ---- */

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
    while (producer >= 0 && q->is_quantized[producer] &&
           graph->nodes[producer].op->id == HWNAS_OP_MAX_POOL &&
           q->wants[graph->nodes[producer].inputs[0]]) {
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

static bytes_form bytes_for(const hwnas_range *range, hwnas_quantize_form form)
{
    const float low = fminf(range->low, 0), high = fmaxf(range->high, 0);
    const bool is_signed = low < 0, is_shifted = is_signed && form == HWNAS_QUANTIZE_FILE;
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
    const bytes_form with = bytes_for(&range, q->form);
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
    if (!product || !has_kernel(&axis, graph, product) ||
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
    if (i == 1 && q->is_quantized[n] && has_kernel(&axis, r->from, node))
        return quantize_kernel(out, r, tensor, axis);
    const hwnas_node *product = q->form == HWNAS_QUANTIZE_FILE ? biased_by(r->from, node, i) : NULL;
    *out = -1;
    if (product && q->is_quantized[product - r->from->nodes] && q->wants[product->inputs[0]])
        TRY(quantize_bias(out, r, product, tensor));
    if (*out >= 0)
        return HWNAS_OK;
    /* What else is fused with a reverse; the rest reads what it read before. */
    const bool reads_bytes =
        is_image(t) && (node->op->id == HWNAS_OP_ADD || node->op->id == HWNAS_OP_MUL);
    if (q->wants[tensor] && (q->is_quantized[n] || reads_bytes)) {
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
    quantizer q = {.form = form,
                   .most = (float)((1 << (weight_bits - 1)) - 1),
                   .ranges = ranges,
                   .stays_float = stays_float};
    quantizer_init(&q, graph);
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
    free(q.is_quantized);
    free(q.wants);
    free(q.bytes);
    free(q.scale);
    free(q.zero);
    free(q.scale_value);
    free(q.origin);
    return status;
}
