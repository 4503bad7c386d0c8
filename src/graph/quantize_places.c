/* quantize_places.c: which tensors become bytes, and who reads them as such. */
#include "graph/quantize_places.h"

#include <stdlib.h>

#include "graph/op.h"
#include "graph/rewrite.h"

static bool is_image(const hwnas_tensor *tensor)
{
    return tensor->rank == 4;
}

bool hwnas_is_wrong_in_bytes(const hwnas_graph *graph, const hwnas_node *node)
{
    enum { POINTS = 8 };
    if (node->op->id != HWNAS_OP_CONV || !is_image(hwnas_node_output(graph, node)))
        return false;
    const int64_t *kernel = hwnas_node_input(graph, node, 1)->dims;
    return kernel[0] > 1 && kernel[1] == 1 && kernel[2] * kernel[3] == POINTS &&
           hwnas_node_attr(node, "groups")->ints[0] == kernel[0];
}

bool hwnas_has_kernel(int *axis, const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->class != HWNAS_CLASS_PRODUCT || hwnas_is_wrong_in_bytes(graph, node))
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
        out[n] = hwnas_has_kernel(&axis, graph, &graph->nodes[n]);
    return out;
}

/* A product with weights that is to be one of bytes. */
static bool is_byte_product(const hwnas_quantize_places *q, const hwnas_graph *graph, size_t n)
{
    int axis;
    return hwnas_has_kernel(&axis, graph, &graph->nodes[n]) &&
           !(q->stays_float && q->stays_float[n]);
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
            hwnas_has_kernel(&axis, graph, &graph->nodes[t->producer]) &&
            (last < 0 || t->producer > hwnas_node_input(graph, node, last)->producer))
            last = i;
    }
    return last < 0 ? -1 : 1 - last;
}

int hwnas_excites(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    if (node->op->id != HWNAS_OP_MUL || !is_image(out) || out->dims[2] * out->dims[3] == 1)
        return -1;
    for (int i = 0; i < 2; i++) {
        const hwnas_tensor *factor = hwnas_node_input(graph, node, 1 - i);
        if (hwnas_same_shape(hwnas_node_input(graph, node, i), out) && is_image(factor) &&
            factor->dims[1] == out->dims[1] && factor->dims[2] * factor->dims[3] == 1 &&
            (factor->dims[0] == 1 || factor->dims[0] == out->dims[0]))
            return i;
    }
    return -1;
}

/* What the device fuses with the dequantisation before it, besides products. */
static bool fuses_dequantize(const hwnas_quantize_places *q, const hwnas_graph *graph,
                             const hwnas_node *node, int i)
{
    const hwnas_op_id op = node->op->id;
    return is_image(hwnas_node_input(graph, node, i)) &&
           (op == HWNAS_OP_ADD || op == HWNAS_OP_MUL ||
            (op == HWNAS_OP_GLOBAL_AVG_POOL && q->form == HWNAS_QUANTIZE_LOOKUP));
}

bool hwnas_reads_bytes(const hwnas_quantize_places *q, const hwnas_graph *graph, size_t n, int i)
{
    return q->is_quantized[n] || fuses_dequantize(q, graph, &graph->nodes[n], i);
}

/* ---- Functions that are looked up ---- */

/* Some twenty instructions, where a comparison or two do for others. */
static bool is_long(const hwnas_node *node)
{
    const hwnas_op_id op = node->op->id;
    return op == HWNAS_OP_GELU || op == HWNAS_OP_MISH || op == HWNAS_OP_SIGMOID ||
           op == HWNAS_OP_TANH;
}

/* The node f(x) before the node x f(x), of which that alone is made; NULL: it is no such product.
 */
static const hwnas_node *gate_before(const hwnas_graph *graph, const hwnas_node *node,
                                     const hwnas_uses *uses)
{
    for (int i = 0; i < 2 && node->op->id == HWNAS_OP_MUL; i++) {
        const int producer = hwnas_node_input(graph, node, i)->producer;
        const hwnas_node *gate = producer < 0 ? NULL : &graph->nodes[producer];
        if (gate && gate->op->class == HWNAS_CLASS_ACTIVATION && gate->n_inputs == 1 &&
            gate->inputs[0] == node->inputs[1 - i] && hwnas_lone_reader(&uses[gate->output]) >= 0)
            return gate;
    }
    return NULL;
}

/* The product of bytes that a tensor comes of by functions of each value; NULL: of something else.
 */
static const hwnas_node *product_before(const hwnas_quantize_places *q, const hwnas_graph *graph,
                                        const hwnas_uses *uses, int tensor)
{
    for (int n; (n = graph->tensors[tensor].producer) >= 0;) {
        const hwnas_node *node = &graph->nodes[n], *gate = gate_before(graph, node, uses);
        if (is_byte_product(q, graph, (size_t)n))
            return node;
        if (!gate && !node->op->is_epilogue && !is_long(node))
            return NULL;
        tensor = gate ? gate->inputs[0] : node->inputs[0];
    }
    return NULL;
}

/* A table costs a second rounding to bytes. It is worth that where the product before takes no
 * longer than the function would: some 1 ns for a value, in which 256 pairs of bytes are
 * multiplied. */
static bool is_short(const hwnas_graph *graph, const hwnas_node *product)
{
    enum { MOST = 256 };
    return product->op->macs(graph, product) <=
           MOST * hwnas_tensor_count(hwnas_node_output(graph, product));
}

static bool reads_nothing_but_bytes(const hwnas_quantize_places *q, const hwnas_graph *graph,
                                    const hwnas_uses *uses, int tensor)
{
    enum { KNOWN = 2 }; /* of the readers of a tensor; of more it is not said who they are */
    if (!q->wants[tensor] || uses[tensor].is_output || uses[tensor].n_readers > KNOWN)
        return false;
    for (int k = 0; k < uses[tensor].n_readers; k++)
        for (int i = 0; i < graph->nodes[uses[tensor].readers[k]].n_inputs; i++)
            if (graph->nodes[uses[tensor].readers[k]].inputs[i] == tensor &&
                !hwnas_reads_bytes(q, graph, (size_t)uses[tensor].readers[k], i))
                return false;
    return true;
}

/* A function f(x) or x f(x) between two tensors of bytes: 256 values are known beforehand. */
static bool take_lookup(hwnas_quantize_places *q, const hwnas_graph *graph, const hwnas_uses *uses,
                        const hwnas_node *node, bool *is_due)
{
    const hwnas_node *gate = gate_before(graph, node, uses);
    const hwnas_node *function = gate ? gate : node;
    if (!is_long(function) || !reads_nothing_but_bytes(q, graph, uses, node->output))
        return false;
    const int x = function->inputs[0], n = graph->tensors[x].producer;
    if (n < 0 || uses[x].is_output || uses[x].n_readers != (gate ? 2 : 1) ||
        !is_byte_product(q, graph, (size_t)n) || !is_short(graph, &graph->nodes[n]))
        return false;
    q->is_quantized[node - graph->nodes] = q->is_quantized[function - graph->nodes] = true;
    q->wants[x] = is_due[x] = true;
    return true;
}

/* The image that a node multiplies with factors, if it comes of bytes and nothing else reads the
 * result; else -1. */
static int excited(const hwnas_quantize_places *q, const hwnas_graph *graph, const hwnas_uses *uses,
                   const hwnas_node *node)
{
    const int image = hwnas_excites(graph, node);
    return image >= 0 && hwnas_lone_reader(&uses[node->output]) >= 0 &&
                   product_before(q, graph, uses, node->inputs[image])
               ? node->inputs[image]
               : -1;
}

/* ---- Which tensors ---- */

/* From the end to the beginning: whether somebody wants a tensor as bytes is known when its
 * producer is looked at. `is_due`: it, or an activation of it, is wanted. */
static void decide(hwnas_quantize_places *q, const hwnas_graph *graph)
{
    bool *is_due = hwnas_alloc((graph->n_tensors + 1) * sizeof *is_due);
    hwnas_uses *uses = hwnas_graph_uses(graph, NULL, NULL);
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        const int other = other_summand(graph, node, uses);
        int image;
        if (is_byte_product(q, graph, n)) {
            q->is_quantized[n] = q->wants[node->inputs[0]] = is_due[node->inputs[0]] = true;
        } else if (q->wants[node->output] && passes(graph, node)) {
            q->is_quantized[n] = true;
            for (int i = 0; i < node->n_inputs; i++)
                q->wants[node->inputs[i]] = is_due[node->inputs[i]] = true;
        } else if (q->form == HWNAS_QUANTIZE_LOOKUP && take_lookup(q, graph, uses, node, is_due)) {
            continue;
        } else if (q->form == HWNAS_QUANTIZE_LOOKUP && q->wants[node->output] &&
                   (image = excited(q, graph, uses, node)) >= 0) {
            q->wants[image] = is_due[image] = true;
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
        return hwnas_has_kernel(&axis, graph, node);
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
static void decide_for_files(hwnas_quantize_places *q, const hwnas_graph *graph)
{
    int axis;
    bool *is_float = hwnas_alloc((graph->n_nodes + 1) * sizeof *is_float);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const bool multiplies = hwnas_has_kernel(&axis, graph, node);
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

void hwnas_quantize_places_find(hwnas_quantize_places *out, const hwnas_graph *graph,
                                const bool *stays_float, hwnas_quantize_form form)
{
    *out = (hwnas_quantize_places){.form = form, .stays_float = stays_float};
    out->is_quantized = hwnas_alloc((graph->n_nodes + 1) * sizeof *out->is_quantized);
    out->wants = hwnas_alloc((graph->n_tensors + 1) * sizeof *out->wants);
    if (form == HWNAS_QUANTIZE_FILE)
        decide_for_files(out, graph);
    else
        decide(out, graph);
    for (size_t i = 0; i < graph->n_tensors; i++)
        out->wants[i] &= graph->tensors[i].kind != HWNAS_TENSOR_WEIGHT &&
                         !hwnas_dtype_is_whole(graph->tensors[i].dtype);
}

bool hwnas_is_depthwise(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_CONV || !is_image(hwnas_node_output(graph, node)))
        return false;
    const int64_t n_channels = hwnas_node_input(graph, node, 0)->dims[1];
    const int64_t *kernel = hwnas_node_input(graph, node, 1)->dims;
    return n_channels >= HWNAS_DEPTHWISE_CHANNELS && kernel[0] == n_channels && kernel[1] == 1 &&
           kernel[2] * kernel[3] <= HWNAS_DEPTHWISE_POINTS;
}

/* Has no padding, where zeros are added up beside the bytes. */
static bool has_no_padding(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_CONV)
        return true;
    if (hwnas_node_input(graph, node, 1)->rank != 4)
        return false;
    const int64_t *kernel = hwnas_node_input(graph, node, 1)->dims;
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints;
    return kernel[2] * kernel[3] == 1 && !pad[0] && !pad[1] && !pad[2] && !pad[3] &&
           hwnas_node_attr(node, "groups")->ints[0] == 1;
}

/* Loops of the device take a zero point off where they read a byte, and tables have it in them.
 * Without VNNI, where weights have 7 bits, depthwise convolutions are such loops, and a product of
 * bytes computes the sum of its weights, which a zero point needs, for signed bytes anyway. */
static bool reads_zero(const hwnas_quantize_places *q, const hwnas_graph *graph, size_t n,
                       int weight_bits)
{
    const hwnas_node *node = &graph->nodes[n];
    if (is_byte_product(q, graph, n))
        return weight_bits < 8 && (has_no_padding(graph, node) || hwnas_is_depthwise(graph, node));
    return node->op->id == HWNAS_OP_GLOBAL_AVG_POOL || is_long(node) ||
           hwnas_excites(graph, node) >= 0 ||
           (node->op->id == HWNAS_OP_MUL && q->is_quantized[n]); /* x f(x) */
}

bool *hwnas_takes_zero(const hwnas_quantize_places *q, const hwnas_graph *graph, int weight_bits)
{
    bool *out = hwnas_alloc((graph->n_tensors + 1) * sizeof *out);
    for (size_t i = 0; i < graph->n_tensors; i++)
        out[i] = q->form == HWNAS_QUANTIZE_LOOKUP && q->wants[i];
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_inputs; i++)
            if (hwnas_reads_bytes(q, graph, n, i) && !reads_zero(q, graph, n, weight_bits))
                out[node->inputs[i]] = false;
        const bool is_loop = weight_bits < 8 && hwnas_is_depthwise(graph, node);
        /* Primitives, which are slower with one: 0.4 ms for 0.3 of a depthwise convolution. */
        if ((is_byte_product(q, graph, n) && !is_loop) || passes(graph, node) ||
            node->op->id == HWNAS_OP_ADD)
            out[node->output] = false;
    }
    return out;
}

void hwnas_quantize_places_done(hwnas_quantize_places *places)
{
    free(places->is_quantized);
    free(places->wants);
}

bool *hwnas_quantize_wants(const hwnas_graph *graph, hwnas_quantize_form form)
{
    hwnas_quantize_places places;
    hwnas_quantize_places_find(&places, graph, NULL, form);
    free(places.is_quantized);
    return places.wants;
}
