/* cut.c: cuDNN's rules of fusion (graph/fusion.h): how each node is computed by itself, and what
 * joins it. Each group becomes one step. */
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

/* ---- The rules: how a node by itself is computed. Of several rows the first that fits counts.
 * ---- */

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

/* How a node would be computed by itself. */
static hwnas_cudnn_role role_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const bool is_whole = hwnas_node_is_whole(graph, node);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == node->op->id && (!rules[i].fits || rules[i].fits(graph, node)) &&
            (!is_whole || rules[i].role >= HWNAS_CUDNN_BY_VIEW))
            return rules[i].role;
    return !is_whole && hwnas_cudnn_is_pointwise(graph, node) ? HWNAS_CUDNN_BY_POINTWISE
                                                              : HWNAS_CUDNN_BY_KERNEL;
}

/* ---- What joins a group ---- */

/* By role: what a node takes as the first of a group; elements alone follow. */
static const hwnas_fusion_row rows[HWNAS_CUDNN_N_ROLES] = {
    [HWNAS_CUDNN_BY_CONV] = {.takes = HWNAS_FUSES_VALUES},
    [HWNAS_CUDNN_BY_CONV_BACK] = {.takes = HWNAS_FUSES_VALUES},
    [HWNAS_CUDNN_BY_MATMUL] = {.takes = HWNAS_FUSES_VALUES},
    [HWNAS_CUDNN_BY_POINTWISE] = {HWNAS_FUSES_VALUES, HWNAS_FUSES_VALUES, true},
};

static const hwnas_fusion_row *row_of(const hwnas_fusion *f, const hwnas_node *node)
{
    static const hwnas_fusion_row quantize = {.is = HWNAS_FUSES_QUANTIZE};
    return node->op->id == HWNAS_OP_QUANTIZE_LINEAR ? &quantize : &rows[role_of(f->graph, node)];
}

/* Takes the node that makes floats of bytes for this group alone. */
static void take_dequantize(hwnas_fusion *f, group *g, int tensor)
{
    const int dequantize = hwnas_cudnn_dequantize_of(f->graph, tensor);
    if (dequantize < 0 || hwnas_lone_reader(&f->uses[tensor]) < 0 || f->group_of[dequantize] >= 0 ||
        g->n_dequantizes == HWNAS_CUDNN_LONGEST_GROUP)
        return;
    g->dequantizes[g->n_dequantizes++] = dequantize;
    f->group_of[dequantize] = (int)f->n_groups;
}

static bool is_banned(const hwnas_fusion *f, const group *g, const hwnas_node *node)
{
    const cutter *c = f->device;
    return node && c->bans->joins[node - f->graph->nodes] == g->chain.nodes[0] + 1;
}

/* What is made of bytes reads others as bytes, too, and its result is made bytes where nothing else
 * is made of it. */
static bool follows(hwnas_fusion *f, void *into, const hwnas_node *node, const hwnas_node *gate)
{
    group *g = into;
    if (is_banned(f, g, node) || is_banned(f, g, gate))
        return false;
    if (gate && g->role == HWNAS_CUDNN_BY_KERNEL) /* a chain has no value but the last */
        return false;
    if (node->op->id == HWNAS_OP_QUANTIZE_LINEAR)
        return hwnas_cudnn_makes_int8(f->graph, node);
    for (int k = 0; k < node->n_inputs && g->n_dequantizes; k++)
        take_dequantize(f, g, node->inputs[k]);
    return true;
}

/* ---- What begins one: attentions, then products of bytes, then whatever is left ---- */

/* A product with one number. */
static bool is_scaling(const hwnas_fusion *f, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_MUL && node->op->id != HWNAS_OP_DIV)
        return false;
    const hwnas_tensor *by = hwnas_node_input(f->graph, node, 1);
    return by->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(by) == 1;
}

/* A sum with one value for each word of either side, the same in all heads of a single item. A mask
 * that was repeated over one side, as BERT's is, cuDNN read wrongly (9.19, H200); one of several
 * items was not looked at. */
static bool is_masking(const hwnas_fusion *f, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_ADD)
        return false;
    const hwnas_tensor *mask = hwnas_node_input(f->graph, node, 1);
    const hwnas_tensor *scores = hwnas_node_output(f->graph, node);
    const int64_t *d = scores->dims, *m = mask->dims + mask->rank - 2;
    return scores->rank == 4 && d[0] == 1 && mask->rank >= 2 && mask->rank <= 4 && m[0] == d[2] &&
           m[1] == d[3] && hwnas_tensor_count(mask) == d[2] * d[3] &&
           hwnas_same_shape(hwnas_node_input(f->graph, node, 0), scores);
}

static bool stands_in_attention(const hwnas_fusion *f, const hwnas_node *node)
{
    return is_scaling(f, node) || is_masking(f, node);
}

/* Nothing, a scaling, a mask, or a scaling and then a mask. */
static bool is_between_well(const hwnas_fusion *f, const hwnas_fusion_group *g)
{
    const int n = g->n_nodes - 3;
    for (int i = 1; i <= n; i++)
        if (is_masking(f, &f->graph->nodes[g->nodes[i]]) && i < n)
            return false;
    return n < 2 || (n == 2 && is_masking(f, &f->graph->nodes[g->nodes[2]]));
}

/* cuDNN wants heads whose size is a multiple of 8, and takes at most one scaling. In fp32 it makes
 * a plan (9.19) which reads where nothing is (seen on an H100), so there attention is two products.
 */
static bool is_attention_shaped(const hwnas_fusion *f, const hwnas_fusion_group *g)
{
    const hwnas_node *first = &f->graph->nodes[g->nodes[0]];
    const hwnas_node *second = &f->graph->nodes[g->nodes[g->n_nodes - 1]];
    const hwnas_tensor *q = hwnas_node_input(f->graph, first, 0);
    const hwnas_tensor *k = hwnas_node_input(f->graph, first, 1);
    const hwnas_tensor *v = hwnas_node_input(f->graph, second, 1);
    return is_between_well(f, g) && q->rank == 4 && k->rank == 4 && v->rank == 4 &&
           q->dims[3] % 8 == 0 && v->dims[3] % 8 == 0 &&
           !memcmp(q->dims, k->dims, 2 * sizeof *q->dims) &&
           !memcmp(q->dims, v->dims, 2 * sizeof *q->dims);
}

static bool begin_attention(hwnas_fusion *f, void *into, int node)
{
    const cutter *c = f->device;
    group *g = into;
    g->role = HWNAS_CUDNN_BY_ATTENTION;
    if (hwnas_cudnn_io_type(c->net->precision) == HWNAS_CUDNN_F32 || c->bans->attention[node] ||
        !hwnas_fusion_take_attention(f, g, node, stands_in_attention))
        return false;
    if (is_attention_shaped(f, &g->chain))
        return true;
    hwnas_fusion_empty(f, g);
    return false;
}

static bool begin_int8_product(hwnas_fusion *f, void *into, int node)
{
    const cutter *c = f->device;
    const hwnas_node *n = &f->graph->nodes[node];
    group *g = into;
    if (c->net->precision != HWNAS_S8 || c->bans->bytes[node] || c->bans->engine[node] ||
        !hwnas_cudnn_multiplies_int8(f->graph, n) ||
        hwnas_lone_reader(&f->uses[n->inputs[0]]) < 0 ||
        hwnas_lone_reader(&f->uses[n->inputs[1]]) < 0)
        return false;
    g->role = n->op->id == HWNAS_OP_CONV ? HWNAS_CUDNN_BY_CONV : HWNAS_CUDNN_BY_MATMUL;
    g->chain.takes = HWNAS_FUSES_VALUES | HWNAS_FUSES_QUANTIZE;
    hwnas_fusion_take(f, g, node);
    take_dequantize(f, g, n->inputs[0]);
    take_dequantize(f, g, n->inputs[1]);
    return true;
}

static bool is_by_engine(hwnas_cudnn_role role)
{
    return rows[role].takes || role == HWNAS_CUDNN_BY_POOL || role == HWNAS_CUDNN_BY_NORM ||
           role == HWNAS_CUDNN_BY_REDUCE || role == HWNAS_CUDNN_BY_RNN;
}

static bool begin_any(hwnas_fusion *f, void *into, int node)
{
    const cutter *c = f->device;
    group *g = into;
    g->role = role_of(f->graph, &f->graph->nodes[node]);
    const bool is_banned = is_by_engine(g->role) && c->bans->engine[node];
    if (is_banned && g->role != HWNAS_CUDNN_BY_POINTWISE)
        g->role = HWNAS_CUDNN_BY_KERNEL;
    g->chain.takes = rows[g->role].takes; /* of elements a kernel of ours takes as many as a plan */
    if (is_banned)
        g->role = HWNAS_CUDNN_BY_KERNEL;
    /* What cuDNN's plans of pools write in bf16 is noise (9.19, seen on an H100). */
    if (g->role == HWNAS_CUDNN_BY_POOL && c->net->precision == HWNAS_BF16)
        g->role = HWNAS_CUDNN_BY_KERNEL;
    /* cuDNN compiles these for each size, kernels of ours are compiled for a type. */
    if (c->net->device->is_quick &&
        (g->role == HWNAS_CUDNN_BY_POINTWISE || g->role == HWNAS_CUDNN_BY_POOL))
        g->role = HWNAS_CUDNN_BY_KERNEL;
    hwnas_fusion_take(f, g, node);
    return true;
}

static const hwnas_fusion_rules fusion_rules = {
    .group_size = sizeof(group),
    .longest = HWNAS_CUDNN_LONGEST_GROUP,
    .passes = (hwnas_fusion_begin *const[]){begin_attention, begin_int8_product, begin_any, NULL},
    .row = row_of,
    .follows = follows,
};

static int by_last_node(const void *a, const void *b)
{
    const hwnas_fusion_group *x = &((const group *)a)->chain, *y = &((const group *)b)->chain;
    return x->nodes[x->n_nodes - 1] - y->nodes[y->n_nodes - 1];
}

static void put_in_order(hwnas_fusion *f)
{
    group *groups = f->groups;
    qsort(groups, f->n_groups, sizeof *groups, by_last_node);
    for (size_t i = 0; i < f->n_groups; i++) {
        for (int k = 0; k < groups[i].chain.n_nodes; k++)
            f->group_of[groups[i].chain.nodes[k]] = (int)i;
        for (int k = 0; k < groups[i].n_dequantizes; k++)
            f->group_of[groups[i].dequantizes[k]] = (int)i;
    }
}

void hwnas_cudnn_form_groups(cutter *c)
{
    c->is_image = hwnas_arena_alloc(c->net->arena, c->graph->n_tensors * sizeof *c->is_image);
    c->plan = (hwnas_fusion){.rules = &fusion_rules, .graph = c->graph, .device = c};
    hwnas_fusion_plan(&c->plan);
    put_in_order(&c->plan);
}
