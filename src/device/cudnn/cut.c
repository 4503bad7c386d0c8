/* cut.c: forms groups of nodes, each of which is to become one step.
 *
 * A group begins with a node that does the work, a convolution or a product, and goes on as long as
 * one node alone reads the result and works on each element of it: bias, activation, sum with
 * another branch. What was formed is put in the order of the last nodes, in which it can run: a
 * group's result alone is seen from outside, so whatever it reads was made by a group that ends
 * before it does. */
#include "device/cudnn/cut.h"

#include <stdlib.h>
#include <string.h>

#include "device/cudnn/cudnn_int8.h"

typedef hwnas_cudnn_cut cutter;
typedef hwnas_cudnn_group group;

hwnas_cudnn_bans hwnas_cudnn_bans_new(hwnas_arena *arena, const hwnas_graph *graph)
{
    return (hwnas_cudnn_bans){
        .joins = hwnas_arena_alloc(arena, graph->n_nodes * sizeof(int)),
        .engine = hwnas_arena_alloc(arena, graph->n_nodes * sizeof(bool)),
        .slice = hwnas_arena_alloc(arena, graph->n_tensors * sizeof(bool)),
        .attention = hwnas_arena_alloc(arena, graph->n_nodes * sizeof(bool)),
        .bytes = hwnas_arena_alloc(arena, graph->n_nodes * sizeof(bool)),
    };
}

/* ---- The rules: how a node by itself is computed. Of several rows the first that fits counts. ---- */

static bool has_weights(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 1; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return true;
}

/* The kernel may be computed, as that of bytes is where cuDNN does not multiply them. */
static bool has_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    return node->n_inputs < 3 || hwnas_node_input(graph, node, 2)->kind == HWNAS_TENSOR_WEIGHT;
}

static bool is_matrix_product(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_node_input(graph, node, 0)->rank >= 2 &&
           hwnas_node_input(graph, node, 1)->rank >= 2;
}

/* Over the last dimension, with scale and shift. */
static bool is_common_norm(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    return node->n_inputs == 3 && has_weights(graph, node) && in->rank >= 2 &&
           (axis == -1 || axis == in->rank - 1) &&
           hwnas_tensor_count(hwnas_node_input(graph, node, 1)) == in->dims[in->rank - 1] &&
           hwnas_tensor_count(hwnas_node_input(graph, node, 2)) == in->dims[in->rank - 1];
}

/* Of whole images: what a global average pool is. */
static bool is_over_image(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    return hwnas_node_input(graph, node, 0)->rank == 4 && axes->n == 2 && axes->ints[0] == 2 &&
           axes->ints[1] == 3;
}

static const struct rule {
    hwnas_op_id op;
    hwnas_cudnn_role role;
    bool (*fits)(const hwnas_graph *graph, const hwnas_node *node); /* NULL: each */
} rules[] = {
    {HWNAS_OP_AVG_POOL, HWNAS_CUDNN_BY_POOL, NULL},
    {HWNAS_OP_CONCAT, HWNAS_CUDNN_BY_CONCAT, NULL},
    {HWNAS_OP_CONV, HWNAS_CUDNN_BY_CONV, has_kernel},
    {HWNAS_OP_CONV_TRANSPOSE, HWNAS_CUDNN_BY_CONV_BACK, has_weights},
    {HWNAS_OP_DROPOUT, HWNAS_CUDNN_BY_VIEW, NULL},
    {HWNAS_OP_FLATTEN, HWNAS_CUDNN_BY_VIEW, NULL},
    {HWNAS_OP_GLOBAL_AVG_POOL, HWNAS_CUDNN_BY_POOL, NULL},
    {HWNAS_OP_GRU_CORE, HWNAS_CUDNN_BY_RNN, has_weights},
    {HWNAS_OP_LAYER_NORM, HWNAS_CUDNN_BY_NORM, is_common_norm},
    {HWNAS_OP_LINEAR, HWNAS_CUDNN_BY_MATMUL, has_weights},
    {HWNAS_OP_LSTM_CORE, HWNAS_CUDNN_BY_RNN, has_weights},
    {HWNAS_OP_MATMUL, HWNAS_CUDNN_BY_MATMUL, is_matrix_product},
    {HWNAS_OP_MAX_POOL, HWNAS_CUDNN_BY_POOL, NULL},
    {HWNAS_OP_MEAN, HWNAS_CUDNN_BY_POOL, is_over_image},
    {HWNAS_OP_MEAN, HWNAS_CUDNN_BY_REDUCE, hwnas_cudnn_is_reduction},
    {HWNAS_OP_REDUCE_MAX, HWNAS_CUDNN_BY_REDUCE, hwnas_cudnn_is_reduction},
    {HWNAS_OP_REDUCE_MIN, HWNAS_CUDNN_BY_REDUCE, hwnas_cudnn_is_reduction},
    {HWNAS_OP_REDUCE_SUM, HWNAS_CUDNN_BY_REDUCE, hwnas_cudnn_is_reduction},
    {HWNAS_OP_RESHAPE, HWNAS_CUDNN_BY_VIEW, NULL},
    {HWNAS_OP_SLICE, HWNAS_CUDNN_BY_VIEW, NULL},
    {HWNAS_OP_TRANSPOSE, HWNAS_CUDNN_BY_VIEW, NULL},
};

static bool computes_whole(const hwnas_graph *graph, const hwnas_node *node)
{
    bool is_whole = hwnas_dtype_is_whole(hwnas_node_output(graph, node)->dtype);
    for (int i = 0; i < node->n_inputs; i++)
        is_whole |= hwnas_dtype_is_whole(hwnas_node_input(graph, node, i)->dtype);
    return is_whole;
}

hwnas_cudnn_role hwnas_cudnn_role_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const bool is_whole = computes_whole(graph, node);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == node->op->id && (!rules[i].fits || rules[i].fits(graph, node)) &&
            (!is_whole || rules[i].role >= HWNAS_CUDNN_BY_VIEW))
            return rules[i].role;
    return !is_whole && hwnas_cudnn_is_pointwise(graph, node) ? HWNAS_CUDNN_BY_POINTWISE
                                                              : HWNAS_CUDNN_BY_KERNEL;
}

/* ---- Readers ---- */

static void count_readers(cutter *c)
{
    const hwnas_graph *graph = c->graph;
    for (size_t i = 0; i < graph->n_tensors; i++)
        c->reader[i] = -1;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        for (int k = 0; k < node->n_inputs; k++) {
            const int tensor = node->inputs[k];
            if (c->reader[tensor] != (int)i) /* one node may read it twice */
                c->n_readers[tensor]++;
            c->reader[tensor] = (int)i;
        }
    }
    for (size_t i = 0; i < graph->n_outputs; i++) {
        c->n_readers[graph->outputs[i]]++;
        c->reader[graph->outputs[i]] = -1;
    }
}

static bool reads(const hwnas_node *node, int tensor)
{
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k] == tensor)
            return true;
    return false;
}

static bool same_shape(const hwnas_tensor *a, const hwnas_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* ---- Growing a group ---- */

/* Whether `node` goes on with `tensor`: its result has the same shape, and nobody has it yet. */
static bool can_join(const cutter *c, const group *g, int node, int tensor)
{
    const hwnas_node *n = &c->graph->nodes[node];
    return c->group_of[node] < 0 && c->bans->joins[node] != g->nodes[0] + 1 && reads(n, tensor) &&
           hwnas_cudnn_role_of(c->graph, n) == HWNAS_CUDNN_BY_POINTWISE &&
           same_shape(hwnas_node_output(c->graph, n), &c->graph->tensors[tensor]);
}

/* x f(x): two nodes read the tensor, the one of them reads the other as well, and alone. */
static bool find_gate(const cutter *c, const group *g, int tensor, int *gate, int *product)
{
    const int last = c->reader[tensor];
    if (c->n_readers[tensor] != 2 || last < 0 || c->graph->nodes[last].n_inputs != 2)
        return false;
    for (int k = 0; k < 2; k++) {
        const int between = c->graph->nodes[last].inputs[k];
        const int made_by = c->graph->tensors[between].producer;
        if (between == tensor || made_by < 0 || c->n_readers[between] != 1 ||
            c->graph->nodes[made_by].n_inputs != 1 || !can_join(c, g, made_by, tensor))
            continue;
        *gate = made_by;
        *product = last;
        return can_join(c, g, last, between);
    }
    return false;
}

static void take(cutter *c, group *g, int node)
{
    g->nodes[g->n_nodes++] = node;
    c->group_of[node] = (int)c->n_groups;
}

static void grow(cutter *c, group *g)
{
    while (g->n_nodes + 2 <= HWNAS_CUDNN_LONGEST_GROUP) {
        const int tensor = c->graph->nodes[g->nodes[g->n_nodes - 1]].output;
        const int reader = c->reader[tensor];
        int gate, product;
        if (c->n_readers[tensor] == 1 && reader >= 0 && can_join(c, g, reader, tensor)) {
            take(c, g, reader);
        } else if (find_gate(c, g, tensor, &gate, &product)) {
            take(c, g, gate);
            take(c, g, product);
        } else {
            return;
        }
    }
}

/* ---- Attention: product, scale, softmax, product ---- */

/* The node that makes the tensor, if only `n` nodes read it; or -1. */
static int lone_maker(const cutter *c, int tensor)
{
    return c->n_readers[tensor] == 1 ? c->graph->tensors[tensor].producer : -1;
}

static bool is_op(const cutter *c, int node, hwnas_op_id id)
{
    return node >= 0 && c->graph->nodes[node].op->id == id;
}

/* A product that no plan has yet. */
static bool is_free_product(const cutter *c, int node)
{
    return is_op(c, node, HWNAS_OP_MATMUL) && c->group_of[node] < 0;
}

/* A product with one number. */
static bool is_scaling(const cutter *c, int node)
{
    if (!is_op(c, node, HWNAS_OP_MUL) && !is_op(c, node, HWNAS_OP_DIV))
        return false;
    const hwnas_tensor *by = hwnas_node_input(c->graph, &c->graph->nodes[node], 1);
    return by->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(by) == 1;
}

/* cuDNN wants heads whose size is a multiple of 8. */
static bool is_attention_shaped(const cutter *c, int first, int second)
{
    const hwnas_tensor *q = hwnas_node_input(c->graph, &c->graph->nodes[first], 0);
    const hwnas_tensor *k = hwnas_node_input(c->graph, &c->graph->nodes[first], 1);
    const hwnas_tensor *v = hwnas_node_input(c->graph, &c->graph->nodes[second], 1);
    return q->rank == 4 && k->rank == 4 && v->rank == 4 && q->dims[3] % 8 == 0 &&
           v->dims[3] % 8 == 0 && !memcmp(q->dims, k->dims, 2 * sizeof *q->dims) &&
           !memcmp(q->dims, v->dims, 2 * sizeof *q->dims);
}

static void find_attention(cutter *c, int softmax)
{
    const hwnas_node *node = &c->graph->nodes[softmax];
    const int rank = hwnas_node_output(c->graph, node)->rank;
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    const int second = c->n_readers[node->output] == 1 ? c->reader[node->output] : -1;
    int first = lone_maker(c, node->inputs[0]), scale = -1;
    if ((axis != -1 && axis != rank - 1) || c->bans->attention[softmax])
        return;
    if (is_scaling(c, first)) {
        scale = first;
        first = lone_maker(c, c->graph->nodes[scale].inputs[0]);
    }
    if (!is_free_product(c, first) || !is_free_product(c, second) ||
        c->graph->nodes[second].inputs[0] != node->output || !is_attention_shaped(c, first, second))
        return;
    group *g = &c->groups[c->n_groups];
    *g = (group){.role = HWNAS_CUDNN_BY_ATTENTION};
    take(c, g, first);
    if (scale >= 0)
        take(c, g, scale);
    take(c, g, softmax);
    take(c, g, second);
    c->n_groups++;
}

/* ---- Products of bytes ---- */

/* Takes the node that makes floats of bytes for this group alone. */
static void take_dequantize(cutter *c, group *g, int tensor)
{
    const int reverse = hwnas_cudnn_dequantize_of(c->graph, tensor);
    if (reverse < 0 || c->n_readers[tensor] != 1 || c->group_of[reverse] >= 0 ||
        g->n_reverses == HWNAS_CUDNN_LONGEST_GROUP)
        return;
    g->reverses[g->n_reverses++] = reverse;
    c->group_of[reverse] = (int)c->n_groups;
}

/* The result as bytes, where nothing else is made of it. */
static void take_quantisation(cutter *c, group *g)
{
    const int tensor = c->graph->nodes[g->nodes[g->n_nodes - 1]].output;
    const int reader = c->reader[tensor];
    if (c->n_readers[tensor] == 1 && reader >= 0 && c->group_of[reader] < 0 &&
        c->bans->joins[reader] != g->nodes[0] + 1 && g->n_nodes < HWNAS_CUDNN_LONGEST_GROUP &&
        hwnas_cudnn_makes_int8(c->graph, &c->graph->nodes[reader]))
        take(c, g, reader);
}

static void find_int8_product(cutter *c, int node)
{
    const hwnas_node *n = &c->graph->nodes[node];
    if (c->bans->bytes[node] || c->bans->engine[node] || !hwnas_cudnn_multiplies_int8(c->graph, n) ||
        c->n_readers[n->inputs[0]] != 1 || c->n_readers[n->inputs[1]] != 1)
        return;
    group *g = &c->groups[c->n_groups];
    *g = (group){.role = n->op->id == HWNAS_OP_CONV ? HWNAS_CUDNN_BY_CONV : HWNAS_CUDNN_BY_MATMUL};
    take(c, g, node);
    take_dequantize(c, g, n->inputs[0]);
    take_dequantize(c, g, n->inputs[1]);
    grow(c, g);
    for (int i = 1; i < g->n_nodes; i++)
        for (int k = 0; k < c->graph->nodes[g->nodes[i]].n_inputs; k++)
            take_dequantize(c, g, c->graph->nodes[g->nodes[i]].inputs[k]);
    take_quantisation(c, g);
    c->n_groups++;
}

/* ---- All of it ---- */

static bool can_grow(hwnas_cudnn_role role)
{
    return role == HWNAS_CUDNN_BY_CONV || role == HWNAS_CUDNN_BY_CONV_BACK ||
           role == HWNAS_CUDNN_BY_MATMUL || role == HWNAS_CUDNN_BY_POINTWISE;
}

static bool is_by_engine(hwnas_cudnn_role role)
{
    return can_grow(role) || role == HWNAS_CUDNN_BY_POOL || role == HWNAS_CUDNN_BY_NORM ||
           role == HWNAS_CUDNN_BY_REDUCE ||
           role == HWNAS_CUDNN_BY_RNN;
}

static void form_group(cutter *c, int node)
{
    group *g = &c->groups[c->n_groups];
    *g = (group){.role = hwnas_cudnn_role_of(c->graph, &c->graph->nodes[node])};
    if (is_by_engine(g->role) && c->bans->engine[node])
        g->role = HWNAS_CUDNN_BY_KERNEL;
    take(c, g, node);
    if (can_grow(g->role))
        grow(c, g);
    c->n_groups++;
}

static int by_last_node(const void *a, const void *b)
{
    const group *x = a, *y = b;
    const int p = x->nodes[x->n_nodes - 1], q = y->nodes[y->n_nodes - 1];
    return p < q ? -1 : p > q;
}

void hwnas_cudnn_form_groups(cutter *c)
{
    const hwnas_graph *graph = c->graph;
    hwnas_arena *arena = c->net->arena;
    c->n_readers = hwnas_arena_alloc(arena, graph->n_tensors * sizeof *c->n_readers);
    c->reader = hwnas_arena_alloc(arena, graph->n_tensors * sizeof *c->reader);
    c->is_image = hwnas_arena_alloc(arena, graph->n_tensors * sizeof *c->is_image);
    c->group_of = hwnas_arena_alloc(arena, graph->n_nodes * sizeof *c->group_of);
    c->groups = hwnas_arena_alloc(arena, graph->n_nodes * sizeof *c->groups);
    c->n_groups = 0;
    count_readers(c);
    for (size_t i = 0; i < graph->n_nodes; i++)
        c->group_of[i] = -1;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (is_op(c, (int)i, HWNAS_OP_SOFTMAX))
            find_attention(c, (int)i);
    for (size_t i = 0; i < graph->n_nodes && c->net->precision == HWNAS_S8; i++)
        if (c->group_of[i] < 0)
            find_int8_product(c, (int)i);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (c->group_of[i] < 0)
            form_group(c, (int)i);
    qsort(c->groups, c->n_groups, sizeof *c->groups, by_last_node);
    for (size_t i = 0; i < c->n_groups; i++) {
        for (int k = 0; k < c->groups[i].n_nodes; k++)
            c->group_of[c->groups[i].nodes[k]] = (int)i;
        for (int k = 0; k < c->groups[i].n_reverses; k++)
            c->group_of[c->groups[i].reverses[k]] = (int)i;
    }
}
