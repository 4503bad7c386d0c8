/* groups.c: the CPU's rules of fusion (graph/fusion.h): what oneDNN has fast primitives for, and
 * what these do to each of their results while it is in registers. */
#include "device/onednn/groups.h"

#include <stdlib.h>

#include "device/onednn/broadcasts.h"
#include "device/onednn/byte_tables.h"
#include "device/onednn/dynamic.h"
#include "device/onednn/halves.h"
#include "device/onednn/layouts.h"
#include "device/onednn/onednn_int8.h"
#include "graph/quantize_graph.h"

typedef hwnas_onednn_group group;
typedef hwnas_onednn_post post;
typedef hwnas_onednn_finder finder;

static bool is_weight(const hwnas_graph *graph, int tensor)
{
    return graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT;
}

/* ---- Roots ---- */

/* The weight that `linear` or `matmul` multiplies with, or -1: another kind of node. */
static int matrix_of(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_LINEAR && node->op->id != HWNAS_OP_MATMUL)
        return -1;
    const int tensor = node->inputs[1];
    const bool is_matrix = is_weight(graph, tensor) && graph->tensors[tensor].rank == 2 &&
                           !is_weight(graph, node->inputs[0]) &&
                           (node->n_inputs < 3 || is_weight(graph, node->inputs[2]));
    return is_matrix && hwnas_node_input(graph, node, 0)->rank >= 2 ? tensor : -1;
}

bool hwnas_onednn_has_constant_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 1; i < node->n_inputs; i++)
        if (!is_weight(graph, node->inputs[i]))
            return false;
    return hwnas_node_output(graph, node)->rank == 4;
}

static bool is_conv(const finder *f, const hwnas_node *node)
{
    return hwnas_onednn_multiplies_int8(f->source, node) ||
           hwnas_onednn_multiplies_halves(f->source, node) ||
           hwnas_onednn_has_constant_kernel(f->source->graph, node);
}

static bool is_deconv(const finder *f, const hwnas_node *node)
{
    return hwnas_onednn_has_constant_kernel(f->source->graph, node);
}

/* Of an image or of rows. */
static bool is_norm(const finder *f, const hwnas_node *node)
{
    const hwnas_graph *graph = f->source->graph;
    const int rank = hwnas_node_output(graph, node)->rank;
    for (int i = 1; i < node->n_inputs; i++)
        if (!is_weight(graph, node->inputs[i]))
            return false;
    return (rank == 4 || rank == 2) && !is_weight(graph, node->inputs[0]);
}

static bool is_product(const finder *f, const hwnas_node *node)
{
    return matrix_of(f->source->graph, node) >= 0 ||
           hwnas_onednn_multiplies_halves(f->source, node) ||
           hwnas_onednn_multiplies_int8(f->source, node);
}

static bool makes_image(const finder *f, const hwnas_node *node)
{
    return hwnas_node_output(f->source->graph, node)->rank == 4;
}

/* What works on single values has a group of its own on images; elsewhere oneDNN's partitions
 * around attentions want it. */
static bool may_stand_alone(const finder *f, const hwnas_node *node)
{
    return hwnas_onednn_begins_image(f, node) ||
           (!f->has_attention && hwnas_node_output(f->source->graph, node)->rank <= 5);
}

/* Whether operand `i` can come first: it has the result's shape. */
static bool may_begin(const hwnas_graph *graph, const hwnas_node *node, int i)
{
    return !is_weight(graph, node->inputs[i]) &&
           hwnas_same_shape(hwnas_node_input(graph, node, i), hwnas_node_output(graph, node));
}

/* Of floats whose order does not matter, as in `factors * image`. */
static bool is_turned(const finder *f, const hwnas_node *node)
{
    const hwnas_graph *graph = f->source->graph;
    return node->op->commutes && node->n_inputs == 2 && !may_begin(graph, node, 0) &&
           may_begin(graph, node, 1) && hwnas_onednn_behind(f->source, node->inputs[0]) < 0 &&
           hwnas_onednn_behind(f->source, node->inputs[1]) < 0;
}

/* Two operands, of which the first has the result's shape, or comes to be the first. */
static bool is_binary(const finder *f, const hwnas_node *node)
{
    return may_stand_alone(f, node) && (may_begin(f->source->graph, node, 0) || is_turned(f, node));
}

static bool is_function(const finder *f, const hwnas_node *node)
{
    return may_stand_alone(f, node) && !is_weight(f->source->graph, node->inputs[0]);
}

static bool is_softmax(const finder *f, const hwnas_node *node)
{
    return may_stand_alone(f, node) && hwnas_node_output(f->source->graph, node)->rank > 0;
}

static bool moves_image(const finder *f, const hwnas_node *node)
{
    return hwnas_onednn_moves_image(f->source->graph, node) && hwnas_onednn_begins_image(f, node);
}

/* ---- The rules ---- */

enum { ALL = HWNAS_FUSES_VALUES | HWNAS_FUSES_QUANTIZE };

static const hwnas_fusion_row alone,
    product = {.takes = ALL}, product_of_floats = {.takes = HWNAS_FUSES_VALUES},
    maximum = {.takes = HWNAS_FUSES_QUANTIZE}, binary = {.takes = ALL, .is = HWNAS_FUSES_BINARY},
    function = {.is = HWNAS_FUSES_FUNCTION},
    gate_of_x = {.is = HWNAS_FUSES_FUNCTION, .is_gate = true},
    quantize = {.is = HWNAS_FUSES_QUANTIZE};

static const struct rule {
    const hwnas_fusion_row *row;
    bool (*is_root)(const finder *f, const hwnas_node *node);
} rules[HWNAS_N_OPS + 1] = {
    /* the last: of an operator without an identity */
    [HWNAS_OP_ABS] = {&function, is_function},
    [HWNAS_OP_ADD] = {&binary, is_binary},
    [HWNAS_OP_AVG_POOL] = {&alone, makes_image},
    [HWNAS_OP_BATCH_NORM] = {&product_of_floats, is_norm},
    [HWNAS_OP_CLIP] = {&function, is_function},
    [HWNAS_OP_CONCAT] = {&alone, moves_image},
    [HWNAS_OP_CONV] = {&product, is_conv},
    [HWNAS_OP_CONV_TRANSPOSE] = {&product_of_floats, is_deconv},
    [HWNAS_OP_DIV] = {&binary, is_binary},
    [HWNAS_OP_EXP] = {&function, is_function},
    [HWNAS_OP_GELU] = {&function, is_function},
    [HWNAS_OP_GLOBAL_AVG_POOL] = {&alone, makes_image},
    [HWNAS_OP_HARD_SIGMOID] = {&gate_of_x, is_function},
    [HWNAS_OP_HARD_SWISH] = {&function, is_function},
    [HWNAS_OP_LEAKY_RELU] = {&function, is_function},
    [HWNAS_OP_LINEAR] = {&product, is_product},
    [HWNAS_OP_MATMUL] = {&product, is_product},
    [HWNAS_OP_MAX_POOL] = {&maximum, makes_image},
    [HWNAS_OP_MISH] = {&function, is_function},
    [HWNAS_OP_MUL] = {&binary, is_binary},
    [HWNAS_OP_QUANTIZE_LINEAR] = {&quantize, NULL}, /* see is_root() */
    [HWNAS_OP_RELU] = {&function, is_function},
    [HWNAS_OP_SIGMOID] = {&gate_of_x, is_function},
    [HWNAS_OP_SLICE] = {&alone, moves_image},
    [HWNAS_OP_SOFTMAX] = {&alone, is_softmax},
    [HWNAS_OP_SQRT] = {&function, is_function},
    [HWNAS_OP_SUB] = {&binary, is_binary},
    [HWNAS_OP_TANH] = {&function, is_function},
    [HWNAS_OP_ZERO] = {&alone, moves_image},
};

static const hwnas_fusion_row *row_of(const hwnas_fusion *f, const hwnas_node *node)
{
    (void)f;
    const struct rule *rule = &rules[node->op->id];
    return rule->row ? rule->row : &alone;
}

static bool is_root(const hwnas_fusion *plan, int n)
{
    const finder *f = plan->device;
    const hwnas_node *node = &plan->graph->nodes[n];
    const struct rule *rule = &rules[node->op->id];
    return f->is_refused && !f->is_refused[n] &&
           (hwnas_onednn_is_quantize_root(plan, n) || hwnas_onednn_excited(plan, node) >= 0 ||
            (rule->is_root && !f->is_own[n] && !hwnas_node_is_whole(plan->graph, node) &&
             rule->is_root(f, node)));
}

/* The root's own bias; a group that has none may take one. */
static int bias_of(const hwnas_node *root)
{
    const hwnas_op_id op = root->op->id;
    const bool may_have =
        op == HWNAS_OP_CONV || op == HWNAS_OP_CONV_TRANSPOSE || op == HWNAS_OP_LINEAR;
    return may_have && root->n_inputs > 2 ? root->inputs[2] : -1;
}

static void begin_with(hwnas_fusion *plan, group *g, int n)
{
    const finder *f = plan->device;
    const hwnas_node *root = &plan->graph->nodes[n];
    hwnas_fusion_take(plan, g, n);
    g->chain.takes = row_of(plan, root)->takes;
    g->bias = bias_of(root);
    g->layout = hwnas_onednn_begins_image(f, root) ? HWNAS_ONEDNN_IMAGE : HWNAS_ONEDNN_PLAIN;
    hwnas_onednn_read_bytes(g, plan);
    if (hwnas_onednn_multiplies_halves(f->source, root))
        hwnas_onednn_read_halves(g, plan);
    if (rules[root->op->id].is_root == is_binary && is_turned(f, root)) {
        g->reads[0] = root->inputs[1];
        g->reads[1] = root->inputs[0];
    }
}

static bool begin(hwnas_fusion *plan, void *into, int n)
{
    if (!is_root(plan, n))
        return false;
    begin_with(plan, into, n);
    return true;
}

static bool has_sum(const group *g)
{
    for (int i = 0; i < g->n_posts; i++)
        if (g->posts[i].is_sum)
            return true;
    return false;
}

/* Floats are not written over bytes. */
static bool begins_anew(hwnas_fusion *plan, void *into)
{
    const finder *f = plan->device;
    group *g = into;
    const int root = g->chain.nodes[0];
    if (!has_sum(g) || !g->has_bytes || hwnas_onednn_is_int8(f->source, g->chain.output))
        return false;
    hwnas_fusion_empty(plan, g);
    begin_with(plan, g, root);
    g->ends_as_floats = true;
    return true;
}

/* ---- Followers ---- */

static bool add_post(group *g, post p)
{
    g->posts[g->n_posts++] = p;
    return true;
}

/* x times a function of x is a function too. */
static post gated_function(const hwnas_node *gate)
{
    if (gate->op->id == HWNAS_OP_SIGMOID)
        return (post){dnnl_eltwise_swish, 1, 0, -1, false};
    return (post){dnnl_eltwise_hardswish, (float)hwnas_node_attr(gate, "alpha")->number,
                  (float)hwnas_node_attr(gate, "beta")->number, -1, false};
}

/* An operand of one number: a function of one value. */
static bool take_number(group *g, const hwnas_tensor *operand, const hwnas_node *node)
{
    float number;
    if (operand->kind != HWNAS_TENSOR_WEIGHT || hwnas_tensor_count(operand) != 1)
        return false;
    hwnas_tensor_fill(operand, &number);
    post p = {dnnl_eltwise_linear, 1, 0, -1, false};
    if (node->op->id == HWNAS_OP_MUL)
        p.alpha = number;
    else if (node->op->id == HWNAS_OP_DIV)
        p.alpha = 1 / number;
    else
        p.beta = node->op->id == HWNAS_OP_SUB ? -number : number;
    return add_post(g, p);
}

/* One value for each channel of an image, for each column of anything else. */
static bool is_per_channel(const group *g, const hwnas_tensor *t, const hwnas_tensor *out)
{
    const int axis = g->layout == HWNAS_ONEDNN_IMAGE ? out->rank - 3 : out->rank - 1;
    if (t->rank > out->rank || hwnas_tensor_count(t) != out->dims[axis])
        return false;
    const int at = axis - (out->rank - t->rank);
    return at >= 0 && t->dims[at] == out->dims[axis];
}

/* A sum or product with another tensor. */
static bool take_binary(group *g, const hwnas_fusion *plan, const hwnas_node *node)
{
    const finder *f = plan->device;
    const hwnas_tensor *out = hwnas_node_output(plan->graph, node);
    const bool is_first = node->inputs[0] == g->chain.output;
    const int operand = node->inputs[is_first];
    const hwnas_tensor *other = &plan->graph->tensors[operand];
    const hwnas_uses *uses = &plan->uses[operand];
    const hwnas_node *root = &plan->graph->nodes[g->chain.nodes[0]];
    dnnl_alg_kind_t root_alg;
    post p = {.operand = operand};
    if (!hwnas_onednn_binary(&p.alg, node) || operand == g->chain.output ||
        (!is_first && !node->op->commutes))
        return false;
    if (take_number(g, other, node) ||
        (hwnas_same_shape(other, out) && hwnas_onednn_take_int8_sum(g, plan, node, operand)))
        return true;
    if (p.alg == dnnl_binary_add && g->bias < 0 && !g->n_posts && is_weight(plan->graph, operand) &&
        root->op->class == HWNAS_CLASS_PRODUCT && root->op->id != HWNAS_OP_CONV &&
        is_per_channel(g, other, out)) {
        g->bias = operand;
        return true;
    }
    if (!hwnas_same_shape(other, out))
        return is_per_channel(g, other, out) && add_post(g, p);
    if ((f->layouts[operand] == HWNAS_ONEDNN_IMAGE) != (g->layout == HWNAS_ONEDNN_IMAGE))
        return false;
    p.is_sum = p.alg == dnnl_binary_add && !has_sum(g) && !hwnas_onednn_binary(&root_alg, root) &&
               uses->n_inputs == 1 && !uses->is_output && !g->has_bytes &&
               other->kind == HWNAS_TENSOR_ACTIVATION;
    return add_post(g, p);
}

static bool follows(hwnas_fusion *plan, void *into, const hwnas_node *node, const hwnas_node *gate)
{
    const finder *f = plan->device;
    group *g = into;
    post p;
    if (f->is_own[node - plan->graph->nodes] || g->n_posts == HWNAS_ONEDNN_MAX_POSTS ||
        (g->is_dynamic && g->layout == HWNAS_ONEDNN_PLAIN &&
         f->layouts[node->output] == HWNAS_ONEDNN_IMAGE)) /* it writes rows */
        return false;
    if (node->op->id == HWNAS_OP_QUANTIZE_LINEAR)
        return hwnas_onednn_take_quantize(g, plan, node);
    if (hwnas_node_is_whole(plan->graph, node))
        return false;
    if (gate)
        return node->op->id == HWNAS_OP_MUL && !f->is_own[gate - plan->graph->nodes] &&
               add_post(g, gated_function(gate));
    if (hwnas_onednn_function(&p, node))
        return add_post(g, p);
    return take_binary(g, plan, node);
}

static const hwnas_fusion_rules fusion_rules = {
    .group_size = sizeof(group),
    .longest = HWNAS_FUSION_LONGEST,
    .passes = (hwnas_fusion_begin *const[]){hwnas_onednn_take_table, hwnas_onednn_take_scores,
                                            hwnas_onednn_take_dynamic, begin,
                                            hwnas_onednn_take_broadcast, NULL},
    .row = row_of,
    .follows = follows,
    .begins_anew = begins_anew,
};

/* ---- All of it ---- */

void hwnas_onednn_groups_find(hwnas_onednn_groups *out, const hwnas_onednn_source *source,
                              const bool *is_own, const bool *is_refused)
{
    const hwnas_graph *graph = source->graph;
    finder f = {.source = source, .is_own = is_own, .is_refused = is_refused};
    f.has_attention = hwnas_graph_has_attention(graph);
    f.layouts = hwnas_alloc((graph->n_tensors + 1) * sizeof *f.layouts);
    hwnas_fusion plan = {.rules = &fusion_rules, .graph = graph, .device = &f};
    if (is_refused)
        hwnas_onednn_choose_images(&f);
    hwnas_fusion_plan(&plan);
    if (is_refused)
        hwnas_onednn_settle_dequantize(&plan);
    hwnas_onednn_choose_plain(&f, plan.group_of);
    plan.device = NULL; /* of this call */
    *out = (hwnas_onednn_groups){plan, f.layouts};
}

const hwnas_onednn_group *hwnas_onednn_group_of(const hwnas_onednn_groups *groups, int node)
{
    const int index = groups->plan.group_of[node];
    return index < 0 ? NULL : &((const group *)groups->plan.groups)[index];
}

void hwnas_onednn_groups_done(hwnas_onednn_groups *groups)
{
    hwnas_fusion_done(&groups->plan);
    free(groups->layouts);
}
