#include "graph/pack_weights.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/op.h"
#include "graph/quantize_graph.h"
#include "graph/rewrite.h"

enum { KERNEL = 1 }; /* the input of a product */

typedef struct packer {
    float most;        /* the greatest whole number */
    bool *is_product;  /* by node: has weights that can be packed */
    int *packed;       /* by tensor: the packed weights as floats, in the new graph; -1: not yet */
    int *origin;
} packer;

/* The dimension of the inputs in the matrix of a product; -1: the node is no product with one. */
static int input_axis(const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_LINEAR ? 1 : node->op->id == HWNAS_OP_MATMUL ? 0 : -1;
}

/* Whether products alone read a tensor, as their matrix, with the inputs along `axis`. */
static bool is_matrix_of_products(const hwnas_graph *graph, int tensor, int64_t axis)
{
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == tensor)
            return false;
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int k = 0; k < graph->nodes[n].n_inputs; k++)
            if (graph->nodes[n].inputs[k] == tensor &&
                (k != KERNEL || input_axis(&graph->nodes[n]) != axis))
                return false;
    return true;
}

bool hwnas_is_packed_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    if (!hwnas_dequantizes_kernel(graph, node) || hwnas_node_input(graph, node, 0)->rank != 2 ||
        hwnas_node_attr(node, "block_size")->ints[0] < 1)
        return false;
    for (int i = 1; i < node->n_inputs; i++) /* scales and zero points */
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return is_matrix_of_products(graph, node->output, hwnas_node_attr(node, "axis")->ints[0]);
}

const hwnas_node *hwnas_packed_kernel_of(const hwnas_graph *graph, const hwnas_node *product)
{
    if (product->op->id != HWNAS_OP_LINEAR && product->op->id != HWNAS_OP_MATMUL)
        return NULL;
    const int producer = hwnas_node_input(graph, product, KERNEL)->producer;
    const hwnas_node *node = producer < 0 ? NULL : &graph->nodes[producer];
    return node && hwnas_is_packed_kernel(graph, node) ? node : NULL;
}

/* No way out of these loops, so that the compiler makes vectors of them. */

static int bits_of_floats(const float *values, int64_t n)
{
    int fits_8 = 1, fits_4 = 1;
    for (int64_t i = 0; i < n; i++) {
        fits_8 &= (values[i] >= -128) & (values[i] <= 127);
        fits_4 &= (values[i] >= -8) & (values[i] <= 7);
    }
    return !fits_8 ? 0 : fits_4 ? 4 : 8;
}

static int bits_of_numbers(const int8_t *numbers, int64_t n)
{
    int fits_4 = 1;
    for (int64_t i = 0; i < n; i++)
        fits_4 &= (numbers[i] >= -8) & (numbers[i] <= 7);
    return fits_4 ? 4 : 8;
}

int hwnas_packed_bits(const hwnas_tensor *codes)
{
    const int64_t n = hwnas_tensor_count(codes);
    if (codes->codes.numbers)
        return bits_of_numbers(codes->codes.numbers, n);
    return codes->data ? bits_of_floats(codes->data, n) : 0;
}

bool hwnas_graph_has_packed(const hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (hwnas_is_packed_kernel(graph, &graph->nodes[n]))
            return true;
    return false;
}

/* ---- Packing ---- */

/* The scale of a group whose largest magnitude is given. */
static float scale_for(float largest, float most)
{
    const float scale = largest / most;
    return scale > 0 ? scale : 1; /* zeros, or too small for a float to be divided */
}

/* To the nearest whole number, the even one of two: rintf() for small numbers, without a call. */
static inline float rounded(float value)
{
    const float shift = 12582912; /* 1.5 * 2^23: floats there are whole numbers */
    return value + shift - shift;
}

static inline float greater(float a, float b) /* as fmaxf(): what is no number counts for nothing */
{
    return b > a ? b : a;
}

/* Values as whole numbers, in place; groups of a row's numbers share a scale. */
static void round_rows(float *values, float *scales, int64_t n_rows, int64_t n, float most)
{
    enum { GROUP = HWNAS_PACKED_GROUP };
    for (int64_t row = 0; row < n_rows; row++, values += n)
        for (int64_t first = 0; first < n; first += GROUP) {
            const int64_t end = first + GROUP < n ? first + GROUP : n;
            float largest = 0;
            for (int64_t i = first; i < end; i++)
                largest = greater(largest, fabsf(values[i]));
            const float scale = *scales++ = scale_for(largest, most);
            for (int64_t i = first; i < end; i++)
                values[i] = rounded(values[i] / scale);
        }
}

/* The same where groups of a column's do. */
static void round_columns(float *values, float *scales, int64_t n_rows, int64_t n, float most)
{
    enum { GROUP = HWNAS_PACKED_GROUP };
    for (int64_t first = 0; first < n_rows; first += GROUP, scales += n) {
        const int64_t end = first + GROUP < n_rows ? first + GROUP : n_rows;
        for (int64_t i = 0; i < n; i++)
            scales[i] = 0;
        for (int64_t row = first; row < end; row++)
            for (int64_t i = 0; i < n; i++)
                scales[i] = greater(scales[i], fabsf(values[row * n + i]));
        for (int64_t i = 0; i < n; i++)
            scales[i] = scale_for(scales[i], most);
        for (int64_t row = first; row < end; row++)
            for (int64_t i = 0; i < n; i++)
                values[row * n + i] = rounded(values[row * n + i] / scales[i]);
    }
}

/* Whole numbers as the values of a weight: as bytes, unless some are none, as of weights that are
 * not finite. */
static void keep_numbers(hwnas_graph *graph, int tensor, const float *values)
{
    hwnas_tensor *t = &graph->tensors[tensor];
    const int64_t n = hwnas_tensor_count(t);
    t->dtype = HWNAS_INT8;
    if (!bits_of_floats(values, n)) {
        t->data = hwnas_arena_copy(graph->arena, values, (size_t)n * sizeof *values);
        return;
    }
    int8_t *numbers = hwnas_arena_alloc(graph->arena, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (int8_t)values[i];
    t->codes.numbers = numbers;
}

/* A product's kernel as whole numbers, and the node that makes floats of them. */
static hwnas_status pack_kernel(int *out, hwnas_rewrite *r, const hwnas_node *product)
{
    packer *p = r->context;
    const hwnas_tensor *from = hwnas_node_input(r->from, product, KERNEL);
    const bool is_turned = product->op->id == HWNAS_OP_MATMUL; /* inputs x results */
    const int64_t n_in = from->dims[!is_turned], n_out = from->dims[is_turned];
    const int64_t n_groups = (n_in + HWNAS_PACKED_GROUP - 1) / HWNAS_PACKED_GROUP;
    const int64_t dims[] = {is_turned ? n_groups : n_out, is_turned ? n_out : n_groups};
    const hwnas_attr attrs[] = {hwnas_attr_int(!is_turned), hwnas_attr_int(HWNAS_PACKED_GROUP)};
    hwnas_arena *arena = r->to->arena;
    int inputs[2];
    TRY(hwnas_graph_add_weight(&inputs[0], r->to, from->name, from->rank, from->dims, from->init,
                               from->is_parameter));
    void *values;
    TRY(hwnas_try_alloc(&values, (size_t)hwnas_tensor_bytes(from), from->name));
    float *scales = hwnas_alloc((size_t)(n_groups * n_out) * sizeof *scales);
    hwnas_tensor_fill(from, values);
    (is_turned ? round_columns : round_rows)(values, scales, from->dims[0], from->dims[1], p->most);
    keep_numbers(r->to, inputs[0], values);
    free(values);
    const hwnas_status status = hwnas_graph_add_constant(
        &inputs[1], r->to, hwnas_arena_printf(arena, "%s/scale", from->name), 2, dims, scales);
    free(scales);
    TRY(status);
    return hwnas_graph_add_node(out, r->to, hwnas_ops[HWNAS_OP_DEQUANTIZE_LINEAR],
                                hwnas_arena_printf(arena, "%s/dequantize", from->name), attrs, 2,
                                inputs, false);
}

static hwnas_status pack_nodes(hwnas_rewrite *r)
{
    packer *p = r->context;
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        int inputs[HWNAS_MAX_NODE_INPUTS];
        for (int i = 0; i < node->n_inputs; i++) {
            const int tensor = node->inputs[i];
            const bool is_packed = p->is_product[n] && i == KERNEL;
            if (is_packed && p->packed[tensor] < 0)
                TRY(pack_kernel(&p->packed[tensor], r, node));
            if (!is_packed && r->place[tensor] < 0)
                TRY(hwnas_rewrite_copy_weight(r, tensor));
            inputs[i] = is_packed ? p->packed[tensor] : r->place[tensor];
        }
        p->origin[r->to->n_nodes] = (int)n;
        TRY(hwnas_rewrite_add_node(r, node, node->n_inputs, inputs, node->output));
    }
    return HWNAS_OK;
}

/* Products of a matrix of weights. One that is both, of inputs x results and the other way round,
 * would need two packed forms: the second stays as it is. */
static bool *find_products(const hwnas_graph *graph)
{
    bool *out = hwnas_quantizable_products(graph);
    hwnas_op_id *first = hwnas_alloc((graph->n_tensors + 1) * sizeof *first);
    bool *is_seen = hwnas_alloc((graph->n_tensors + 1) * sizeof *is_seen);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        const hwnas_op_id id = node->op->id;
        out[n] &= (id == HWNAS_OP_LINEAR || id == HWNAS_OP_MATMUL) &&
                  hwnas_node_input(graph, node, KERNEL)->rank == 2;
        if (!out[n])
            continue;
        const int kernel = node->inputs[KERNEL];
        out[n] = !is_seen[kernel] || first[kernel] == id;
        first[kernel] = is_seen[kernel] ? first[kernel] : id;
        is_seen[kernel] = true;
    }
    free(first);
    free(is_seen);
    return out;
}

hwnas_status hwnas_graph_pack_weights(hwnas_graph **out, int **origin, const hwnas_graph *graph,
                                      int bits)
{
    packer p = {.most = (float)((1 << (bits - 1)) - 1), .is_product = find_products(graph)};
    p.packed = hwnas_alloc((graph->n_tensors + 1) * sizeof *p.packed);
    p.origin = hwnas_alloc((2 * graph->n_nodes + 1) * sizeof *p.origin);
    for (size_t i = 0; i < graph->n_tensors; i++)
        p.packed[i] = -1;
    for (size_t i = 0; i < 2 * graph->n_nodes; i++)
        p.origin[i] = -1;
    const hwnas_status status = hwnas_graph_remake(out, graph, pack_nodes, &p);
    free(p.is_product);
    free(p.packed);
    if (status == HWNAS_OK)
        *origin = p.origin;
    else
        free(p.origin);
    return status;
}

/* ---- The reverse ---- */

/* A weight that is made floats of where it is read: of bytes and scales that are given. */
static hwnas_status unpack_kernel(hwnas_rewrite *r, const hwnas_node *node)
{
    const hwnas_tensor *in[3] = {NULL}, *output = hwnas_node_output(r->from, node);
    bool is_given = true;
    for (int i = 0; i < node->n_inputs; i++) {
        in[i] = hwnas_node_input(r->from, node, i);
        is_given &= i ? in[i]->data != NULL : in[i]->codes.numbers != NULL;
    }
    if (!is_given)
        return hwnas_rewrite_fold(r, node);
    int place;
    TRY(hwnas_graph_add_weight(&place, r->to, output->name, output->rank, output->dims,
                               HWNAS_INIT_ZERO, false));
    r->to->tensors[place].codes =
        (hwnas_codes){.numbers = in[0]->codes.numbers,
                      .scales = in[1]->data,
                      .zeros = in[2] ? in[2]->data : NULL,
                      .axis = (int)hwnas_node_attr(node, "axis")->ints[0],
                      .block = hwnas_node_attr(node, "block_size")->ints[0]};
    r->place[node->output] = place;
    return HWNAS_OK;
}

static hwnas_status unpack_nodes(hwnas_rewrite *r)
{
    packer *p = r->context;
    r->borrows = true;
    for (size_t n = 0; n < r->from->n_nodes; n++) {
        const hwnas_node *node = &r->from->nodes[n];
        if (hwnas_is_packed_kernel(r->from, node)) {
            TRY(unpack_kernel(r, node));
            p->packed[r->place[node->output]] = (int)n;
            continue;
        }
        p->origin[r->to->n_nodes] = (int)n;
        TRY(hwnas_rewrite_copy_node(r, node));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_graph_unpack_weights(hwnas_graph **out, int **origin, int **packed,
                                        const hwnas_graph *graph)
{
    packer p = {0};
    p.packed = hwnas_alloc((graph->n_tensors + 1) * sizeof *p.packed);
    p.origin = hwnas_alloc((graph->n_nodes + 1) * sizeof *p.origin);
    for (size_t i = 0; i < graph->n_tensors; i++)
        p.packed[i] = -1;
    const hwnas_status status = hwnas_graph_remake(out, graph, unpack_nodes, &p);
    const bool is_made = status == HWNAS_OK;
    if (is_made && origin)
        *origin = p.origin;
    else
        free(p.origin);
    if (is_made && packed)
        *packed = p.packed;
    else
        free(p.packed);
    return status;
}
