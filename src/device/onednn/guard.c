/* guard.c: faults of oneDNN 3.7, each found by tests/unit/test_random_graphs.c or in a network. */
#include "device/onednn/guard.h"

#include <stdlib.h>

#include "device/onednn/group.h"
#include "device/onednn/onednn_lower.h"
#include "graph/op.h"

typedef struct guard {
    const hwnas_onednn_source *source;
    const hwnas_graph *graph; /* its */
    const hwnas_fusion *plan;
    bool *is_end; /* by tensor */
    bool has_low; /* bf16 or f16 somewhere: there are no groups */
} guard;

static bool is_product(const hwnas_node *node)
{
    return node->op->class == HWNAS_CLASS_PRODUCT;
}

static bool is_binary(const hwnas_node *node)
{
    dnnl_alg_kind_t alg;
    return hwnas_onednn_binary(&alg, node);
}

static bool is_function(const hwnas_node *node)
{
    hwnas_onednn_post p;
    return hwnas_onednn_function(&p, node);
}

/* The node whose result oneDNN may fuse with the only one that reads it, or NULL. */
static const hwnas_node *fusible(const guard *g, int tensor)
{
    const int n = g->graph->tensors[tensor].producer;
    return n >= 0 && g->plan->group_of[n] < 0 && g->plan->uses[tensor].n_inputs == 1 &&
                   !g->plan->uses[tensor].is_output &&
                   !hwnas_onednn_own(g->source, &g->graph->nodes[n])
               ? &g->graph->nodes[n]
               : NULL;
}

/* Where a chain of elementwise operators that ends with `tensor` begins: the last node before it,
 * or NULL. */
static const hwnas_node *origin_of(const guard *g, int tensor, bool through_binaries)
{
    const hwnas_node *node = fusible(g, tensor);
    while (node && (is_function(node) || (through_binaries && is_binary(node)))) {
        const hwnas_tensor *first = hwnas_node_input(g->graph, node, 0);
        const bool is_whole =
            hwnas_tensor_count(first) == hwnas_tensor_count(hwnas_node_output(g->graph, node));
        node = fusible(g, node->inputs[!is_whole && node->n_inputs > 1]);
    }
    return node;
}

/* Whether oneDNN computes elementwise operators of two tensors correctly behind it. */
static bool takes_binaries(const hwnas_node *origin)
{
    return origin && (is_product(origin) || is_binary(origin));
}

/* Elementwise operators of two tensors may be fused into a product or another such operator only.
 * Behind a LayerNorm they are left out of the result, behind a mean over windows or a softmax they
 * read wrong values, and behind a function of one value they have slow code or, in bf16, none. */
static void guard_binary(const guard *g, const hwnas_node *node)
{
    for (int i = 0; i < 2 && is_binary(node); i++)
        if (fusible(g, node->inputs[i]) && !takes_binaries(origin_of(g, node->inputs[i], false)))
            g->is_end[node->inputs[i]] = true;
}

/* An attention's bias of three dimensions is read with wrong strides from batch 2 on. */
static void guard_attention(const guard *g, const hwnas_node *node)
{
    enum { MASK = 2 }; /* rank, up to which it is right */
    const hwnas_tensor *out = hwnas_node_output(g->graph, node);
    if (node->op->id != HWNAS_OP_ADD || out->rank < 4 || out->dims[0] == 1)
        return;
    for (int i = 0; i < node->n_inputs; i++) {
        const int rank = hwnas_node_input(g->graph, node, i)->rank;
        if (rank > MASK && rank < out->rank)
            g->is_end[node->output] = true;
    }
}

/* One value for each column, or one for all. */
static bool is_row(const hwnas_tensor *t)
{
    return t->rank == 0 || hwnas_tensor_count(t) == 1 ||
           hwnas_tensor_count(t) == t->dims[t->rank - 1];
}

static bool leads_to_softmax(const guard *g, int tensor)
{
    int reader = hwnas_lone_reader(&g->plan->uses[tensor]);
    while (reader >= 0 && is_binary(&g->graph->nodes[reader]))
        reader = hwnas_lone_reader(&g->plan->uses[g->graph->nodes[reader].output]);
    return reader >= 0 && g->graph->nodes[reader].op->id == HWNAS_OP_SOFTMAX;
}

static bool is_attention(const guard *g, const hwnas_node *origin, const hwnas_node *last)
{
    return origin && origin->op->id == HWNAS_OP_MATMUL &&
           hwnas_node_input(g->graph, origin, 1)->rank > 2 && leads_to_softmax(g, last->output);
}

/* An operand that is broadcast along some dimensions before the last is read wrongly, except behind
 * an attention's product: a product with a matrix sees all dimensions but the last as one, and an
 * elementwise operator takes it for one value for each channel. Behind other products of two tensors
 * there is reference code for it, and in bf16, where they sum over one value, a wrong one. */
static void guard_operand(const guard *g, const hwnas_node *node)
{
    const int64_t n = hwnas_tensor_count(hwnas_node_output(g->graph, node));
    for (int i = 0; i < 2 && is_binary(node); i++) {
        const hwnas_tensor *other = hwnas_node_input(g->graph, node, 1 - i);
        if (fusible(g, node->inputs[i]) && !is_row(other) && hwnas_tensor_count(other) != n &&
            !is_attention(g, origin_of(g, node->inputs[i], true), node))
            g->is_end[node->inputs[i]] = true;
    }
}

/* Depthwise convolutions that are fused into another are slow, and in bf16 end the process. */
static void guard_depthwise(const guard *g, const hwnas_node *node)
{
    if (node->op->id == HWNAS_OP_CONV &&
        hwnas_node_attr(node, "groups")->ints[0] == hwnas_node_input(g->graph, node, 0)->dims[1] &&
        fusible(g, node->inputs[0]))
        g->is_end[node->inputs[0]] = true;
}

/* Beside bf16 or f16 a dequantisation is cut off with what reads it as well, a mean, a sum or a
 * function, and for bytes with a zero point there is then no code at all. */
static void guard_dequantize(const guard *g, const hwnas_node *node)
{
    const int reader = hwnas_lone_reader(&g->plan->uses[node->output]);
    if (g->has_low && node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR &&
        (reader < 0 || !is_product(&g->graph->nodes[reader])))
        g->is_end[node->output] = true;
}

bool *hwnas_onednn_guard(const hwnas_onednn_source *source, const hwnas_fusion *plan)
{
    static void (*const guards[])(const guard *g, const hwnas_node *node) = {
        guard_binary, guard_attention, guard_operand, guard_depthwise, guard_dequantize};
    const hwnas_graph *graph = source->graph;
    guard g = {.source = source, .graph = graph, .plan = plan};
    g.has_low = hwnas_onednn_has_low(source);
    g.is_end = hwnas_alloc((graph->n_tensors + 1) * sizeof *g.is_end);
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < sizeof guards / sizeof *guards && plan->group_of[i] < 0; k++)
            guards[k](&g, &graph->nodes[i]);
    return g.is_end;
}
