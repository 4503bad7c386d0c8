/* groups.c: from each root as far as its results can be worked on in registers. */
#include "device/onednn/groups.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/onednn_int8.h"
#include "graph/op.h"

typedef hwnas_onednn_group group;
typedef hwnas_onednn_post post;

typedef hwnas_onednn_finder finder;

static bool is_weight(const hwnas_graph *graph, int tensor)
{
    return graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT;
}

static bool have_same_dims(const hwnas_tensor *a, const hwnas_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* ---- Operators ---- */

bool hwnas_onednn_function(post *out, const hwnas_node *node)
{
    static const struct {
        hwnas_op_id op;
        dnnl_alg_kind_t alg;
        const char *alpha, *beta; /* attributes */
    } rows[] = {
        {HWNAS_OP_ABS, dnnl_eltwise_abs, NULL, NULL},
        {HWNAS_OP_CLIP, dnnl_eltwise_clip, "low", "high"},
        {HWNAS_OP_EXP, dnnl_eltwise_exp, NULL, NULL},
        {HWNAS_OP_HARD_SIGMOID, dnnl_eltwise_hardsigmoid, "alpha", "beta"},
        {HWNAS_OP_LEAKY_RELU, dnnl_eltwise_relu, "alpha", NULL},
        {HWNAS_OP_RELU, dnnl_eltwise_relu, NULL, NULL},
        {HWNAS_OP_SIGMOID, dnnl_eltwise_logistic, NULL, NULL},
        {HWNAS_OP_SQRT, dnnl_eltwise_sqrt, NULL, NULL},
        {HWNAS_OP_TANH, dnnl_eltwise_tanh, NULL, NULL},
    };
    *out = (post){.operand = -1};
    if (node->op->id == HWNAS_OP_HARD_SWISH) {
        *out = (post){dnnl_eltwise_hardswish, 1.0f / 6, 0.5f, -1, false};
        return true;
    }
    if (node->op->id == HWNAS_OP_GELU) {
        out->alg =
            hwnas_node_attr(node, "tanh")->ints[0] ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf;
        return true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].op != node->op->id)
            continue;
        out->alg = rows[i].alg;
        out->alpha = rows[i].alpha ? (float)hwnas_node_attr(node, rows[i].alpha)->number : 0;
        out->beta = rows[i].beta ? (float)hwnas_node_attr(node, rows[i].beta)->number : 0;
        return true;
    }
    return false;
}

/* x times a function of x is a function too. */
static bool gated_function(post *out, const hwnas_node *gate)
{
    *out = (post){.operand = -1};
    if (gate->op->id == HWNAS_OP_SIGMOID) {
        out->alg = dnnl_eltwise_swish;
        out->alpha = 1;
        return true;
    }
    if (gate->op->id != HWNAS_OP_HARD_SIGMOID)
        return false;
    out->alg = dnnl_eltwise_hardswish;
    out->alpha = (float)hwnas_node_attr(gate, "alpha")->number;
    out->beta = (float)hwnas_node_attr(gate, "beta")->number;
    return true;
}

bool hwnas_onednn_binary(dnnl_alg_kind_t *out, const hwnas_node *node)
{
    static const struct {
        hwnas_op_id op;
        dnnl_alg_kind_t alg;
    } rows[] = {{HWNAS_OP_ADD, dnnl_binary_add},
                {HWNAS_OP_DIV, dnnl_binary_div},
                {HWNAS_OP_MUL, dnnl_binary_mul},
                {HWNAS_OP_SUB, dnnl_binary_sub}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == node->op->id) {
            *out = rows[i].alg;
            return true;
        }
    return false;
}

static bool is_elementwise(const hwnas_node *node)
{
    post p;
    return hwnas_onednn_binary(&p.alg, node) || hwnas_onednn_function(&p, node);
}

static bool joins_channels(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_CONCAT || hwnas_node_output(graph, node)->rank != 4)
        return false;
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    return axis == 1 || axis == -3;
}

/* Makes an image of images by moving their values. */
static bool is_move(const hwnas_graph *graph, const hwnas_node *node)
{
    return joins_channels(graph, node) ||
           ((node->op->id == HWNAS_OP_SLICE || node->op->id == HWNAS_OP_ZERO) &&
            hwnas_node_output(graph, node)->rank == 4);
}

static bool is_fp32(const hwnas_graph *graph, const hwnas_node *node)
{
    bool is_whole = hwnas_dtype_is_whole(hwnas_node_output(graph, node)->dtype);
    for (int i = 0; i < node->n_inputs; i++)
        is_whole |= hwnas_dtype_is_whole(hwnas_node_input(graph, node, i)->dtype);
    return !is_whole;
}

/* ---- Layouts ---- */

/* Makes images of images, and is fast when channels are last. */
static bool is_image_op(const hwnas_graph *graph, const hwnas_node *node)
{
    const bool is_spatial = node->op->is_spatial && node->op->id != HWNAS_OP_CONV_TRANSPOSE;
    return hwnas_node_output(graph, node)->rank == 4 &&
           (is_spatial || node->op->class == HWNAS_CLASS_QUANTIZATION || is_elementwise(node) ||
            is_move(graph, node));
}

/* Images begin with a convolution, a pool or a quantisation, and go on through what works on values
 * alone. */
static bool begins_image(const finder *f, const hwnas_node *node)
{
    const hwnas_graph *graph = f->graph;
    const hwnas_onednn_layout *layouts = f->out->layouts;
    const bool is_reverse = node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR;
    if (!is_image_op(graph, node) ||
        !(is_fp32(graph, node) || hwnas_onednn_changes_type(f->source, node)))
        return false;
    if (!is_elementwise(node) && !is_move(graph, node) && !is_reverse)
        return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (layouts[node->inputs[i]] == HWNAS_ONEDNN_IMAGE &&
            (is_move(graph, node) ||
             have_same_dims(hwnas_node_input(graph, node, i), hwnas_node_output(graph, node))))
            return true;
    return false;
}

/* Reorders what it reads if need be, but for a slice: of images it makes images. */
static bool reads_images(const finder *f, size_t n)
{
    const hwnas_node *node = &f->graph->nodes[n];
    const hwnas_onednn_layout layout = f->out->layouts[node->output];
    return !f->is_own[n] && is_image_op(f->graph, node) && layout != HWNAS_ONEDNN_FREE &&
           (layout == HWNAS_ONEDNN_IMAGE || node->op->id != HWNAS_OP_SLICE);
}

static void choose_images(const finder *f)
{
    hwnas_onednn_layout *layouts = f->out->layouts;
    for (size_t i = 0; i < f->graph->n_nodes; i++) {
        const hwnas_node *node = &f->graph->nodes[i];
        if (!f->is_own[i] && begins_image(f, node))
            layouts[node->output] = HWNAS_ONEDNN_IMAGE;
    }
    for (size_t i = 0; i < f->graph->n_outputs; i++)
        layouts[f->graph->outputs[i]] = HWNAS_ONEDNN_PLAIN;
    for (size_t i = f->graph->n_nodes; i-- > 0;) { /* what is plain makes all slices before it so */
        const hwnas_node *node = &f->graph->nodes[i];
        for (int k = 0; k < node->n_inputs && !reads_images(f, i); k++)
            if (layouts[node->inputs[k]] == HWNAS_ONEDNN_IMAGE)
                layouts[node->inputs[k]] = HWNAS_ONEDNN_PLAIN;
    }
    /* What moves values of images that have become plain makes no image. */
    for (size_t i = 0; i < f->graph->n_nodes; i++) {
        const hwnas_node *node = &f->graph->nodes[i];
        if (is_move(f->graph, node) && layouts[node->output] == HWNAS_ONEDNN_IMAGE &&
            !begins_image(f, node))
            layouts[node->output] = HWNAS_ONEDNN_PLAIN;
    }
}

static bool is_transposed(const finder *f, int tensor)
{
    const int producer = f->graph->tensors[tensor].producer;
    return producer >= 0 && f->graph->nodes[producer].op->id == HWNAS_OP_TRANSPOSE;
}

static void set_plain(const finder *f, int tensor)
{
    const int bytes = hwnas_onednn_behind(f->source, tensor);
    if (f->out->layouts[tensor] == HWNAS_ONEDNN_FREE)
        f->out->layouts[tensor] = HWNAS_ONEDNN_PLAIN;
    if (bytes >= 0 && f->out->layouts[bytes] == HWNAS_ONEDNN_FREE)
        f->out->layouts[bytes] = HWNAS_ONEDNN_PLAIN;
}

/* What our steps and groups read and write is plain unless it is an image. So is what was
 * transposed, but for products: oneDNN would leave the values where they are and exchange strides,
 * with which all its other operators are slow. */
static void choose_plain(const finder *f)
{
    for (size_t i = 0; i < f->graph->n_outputs; i++)
        f->out->layouts[f->graph->outputs[i]] = HWNAS_ONEDNN_PLAIN; /* without groups as well */
    for (size_t i = 0; i < f->graph->n_nodes; i++) {
        const hwnas_node *node = &f->graph->nodes[i];
        const bool is_ours =
            f->is_own[i] || f->out->of_node[i] >= 0 || node->op->id == HWNAS_OP_SLICE;
        for (int k = 0; k < node->n_inputs; k++)
            if (is_ours || (node->op->id != HWNAS_OP_MATMUL && is_transposed(f, node->inputs[k])))
                set_plain(f, node->inputs[k]);
        if (is_ours)
            set_plain(f, node->output);
    }
}

/* ---- Groups ---- */

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

static bool has_constant_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 1; i < node->n_inputs; i++)
        if (!is_weight(graph, node->inputs[i]))
            return false;
    return hwnas_node_output(graph, node)->rank == 4;
}

static bool is_product(const finder *f, const hwnas_node *node)
{
    return matrix_of(f->graph, node) >= 0 ||
           (node->op->id != HWNAS_OP_CONV && hwnas_onednn_multiplies_int8(f->source, node));
}

/* Two operands, of which the first has the result's shape. */
static bool is_binary_root(const finder *f, const hwnas_node *node)
{
    dnnl_alg_kind_t alg;
    return hwnas_onednn_binary(&alg, node) && !is_weight(f->graph, node->inputs[0]) &&
           have_same_dims(hwnas_node_input(f->graph, node, 0), hwnas_node_output(f->graph, node));
}

static bool is_root(const finder *f, size_t n)
{
    const hwnas_node *node = &f->graph->nodes[n];
    const hwnas_tensor *out = hwnas_node_output(f->graph, node);
    post p;
    if (hwnas_onednn_is_quantize_root(f, n))
        return true;
    if (f->is_own[n] || !is_fp32(f->graph, node))
        return false;
    if (hwnas_onednn_multiplies_int8(f->source, node))
        return true;
    if (node->op->id == HWNAS_OP_CONV)
        return has_constant_kernel(f->graph, node);
    if (is_product(f, node))
        return true;
    if (node->op->class == HWNAS_CLASS_POOL)
        return out->rank == 4;
    if (!begins_image(f, node) && (f->has_attention || out->rank > 5))
        return false;
    return is_binary_root(f, node) || (is_move(f->graph, node) && begins_image(f, node)) ||
           (hwnas_onednn_function(&p, node) && !is_weight(f->graph, node->inputs[0])) ||
           (node->op->id == HWNAS_OP_SOFTMAX && out->rank > 0);
}

static bool takes_posts(const hwnas_node *root)
{
    dnnl_alg_kind_t alg;
    return root->op->class == HWNAS_CLASS_PRODUCT || hwnas_onednn_binary(&alg, root);
}

/* A free node that reads `tensor`. */
static const hwnas_node *free_reader(const finder *f, int tensor, int k)
{
    const int n = f->readers[tensor][k];
    if (f->is_own[n] || f->out->of_node[n] >= 0 || !is_fp32(f->graph, &f->graph->nodes[n]))
        return NULL;
    return &f->graph->nodes[n];
}

bool hwnas_onednn_add_post(group *g, const post *p, const finder *f, const hwnas_node *node,
                           const hwnas_node *gate)
{
    if (g->n_posts == HWNAS_ONEDNN_MAX_POSTS || g->n_nodes + 2 > HWNAS_ONEDNN_MAX_GROUP)
        return false;
    if (p)
        g->posts[g->n_posts++] = *p;
    if (gate)
        g->nodes[g->n_nodes++] = (int)(gate - f->graph->nodes);
    g->nodes[g->n_nodes++] = (int)(node - f->graph->nodes);
    g->output = node->output;
    return true;
}

/* x times sigmoid(x), where x is what the group makes. */
static bool take_gated(group *g, const finder *f)
{
    const hwnas_node *a = free_reader(f, g->output, 0), *b = free_reader(f, g->output, 1);
    for (int turn = 0; turn < 2 && a && b; turn++) {
        const hwnas_node *gate = turn ? b : a, *product = turn ? a : b;
        post p;
        if (product->op->id == HWNAS_OP_MUL && f->n_readers[gate->output] == 1 &&
            !f->is_output[gate->output] &&
            (product->inputs[0] == gate->output || product->inputs[1] == gate->output) &&
            gated_function(&p, gate))
            return hwnas_onednn_add_post(g, &p, f, product, gate);
    }
    return false;
}

/* An operand of one number: a function of one value. */
static bool take_number(group *g, const finder *f, const hwnas_node *node, int operand)
{
    const hwnas_tensor *t = &f->graph->tensors[operand];
    float number;
    if (t->kind != HWNAS_TENSOR_WEIGHT || hwnas_tensor_count(t) != 1)
        return false;
    hwnas_tensor_fill(t, &number);
    post p = {dnnl_eltwise_linear, 1, 0, -1, false};
    if (node->op->id == HWNAS_OP_MUL)
        p.alpha = number;
    else if (node->op->id == HWNAS_OP_DIV)
        p.alpha = 1 / number;
    else
        p.beta = node->op->id == HWNAS_OP_SUB ? -number : number;
    return hwnas_onednn_add_post(g, &p, f, node, NULL);
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

static bool has_sum(const group *g)
{
    for (int i = 0; i < g->n_posts; i++)
        if (g->posts[i].is_sum)
            return true;
    return false;
}

/* A sum or product with another tensor. */
static bool take_binary(group *g, const finder *f, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(f->graph, node);
    const bool is_first = node->inputs[0] == g->output;
    const int operand = node->inputs[is_first];
    const hwnas_tensor *other = &f->graph->tensors[operand];
    const hwnas_node *root = &f->graph->nodes[g->nodes[0]];
    dnnl_alg_kind_t root_alg;
    post p = {.operand = operand};
    if (!hwnas_onednn_binary(&p.alg, node) || operand == g->output ||
        (!is_first && !node->op->commutes) || !have_same_dims(out, &f->graph->tensors[g->output]))
        return false;
    if (take_number(g, f, node, operand) ||
        (have_same_dims(other, out) && hwnas_onednn_take_int8_sum(g, f, node, operand)))
        return true;
    if (p.alg == dnnl_binary_add && g->bias < 0 && !g->n_posts && is_weight(f->graph, operand) &&
        is_product(f, root) && is_per_channel(g, other, out)) {
        g->bias = operand;
        return hwnas_onednn_add_post(g, NULL, f, node, NULL);
    }
    if (!have_same_dims(other, out))
        return is_per_channel(g, other, out) && hwnas_onednn_add_post(g, &p, f, node, NULL);
    if ((f->out->layouts[operand] == HWNAS_ONEDNN_IMAGE) != (g->layout == HWNAS_ONEDNN_IMAGE))
        return false;
    p.is_sum = p.alg == dnnl_binary_add && !has_sum(g) && !hwnas_onednn_binary(&root_alg, root) &&
               f->n_readers[operand] == 1 && !f->is_output[operand] && !g->has_bytes &&
               other->kind == HWNAS_TENSOR_ACTIVATION;
    return hwnas_onednn_add_post(g, &p, f, node, NULL);
}

/* Takes the next node into the group. */
static bool extend(group *g, const finder *f)
{
    const int tensor = g->output;
    post p;
    if (f->is_output[tensor] || hwnas_onednn_is_int8(f->source, tensor))
        return false;
    if (!g->ends_as_floats && hwnas_onednn_take_quantize(g, f))
        return true;
    if (!takes_posts(&f->graph->nodes[g->nodes[0]]))
        return false;
    if (f->n_readers[tensor] == 2)
        return take_gated(g, f);
    const hwnas_node *node = f->n_readers[tensor] == 1 ? free_reader(f, tensor, 0) : NULL;
    if (!node)
        return false;
    if (hwnas_onednn_function(&p, node))
        return hwnas_onednn_add_post(g, &p, f, node, NULL);
    return take_binary(g, f, node);
}

/* The root's own bias; a group that has none may take one. */
static int bias_of(const hwnas_node *root)
{
    const bool has_bias =
        (root->op->id == HWNAS_OP_CONV || root->op->id == HWNAS_OP_LINEAR) && root->n_inputs > 2;
    return has_bias ? root->inputs[2] : -1;
}

static void grow(group *g, const finder *f, size_t n, bool ends_as_floats)
{
    const hwnas_node *root = &f->graph->nodes[n];
    *g = (group){.n_nodes = 1, .nodes = {(int)n}, .bias = bias_of(root), .output = root->output};
    g->layout = begins_image(f, root) ? HWNAS_ONEDNN_IMAGE : HWNAS_ONEDNN_PLAIN;
    g->ends_as_floats = ends_as_floats;
    hwnas_onednn_read_bytes(g, f);
    while (extend(g, f))
        ;
}

/* The layout of what leaves the group is that of its last tensor; those inside have no place. */
static void find_group(finder *f, size_t n)
{
    const int index = (int)f->out->n;
    group *g = &f->out->all[f->out->n++];
    f->out->of_node[n] = index;
    grow(g, f, n, false);
    if (has_sum(g) && g->has_bytes && !hwnas_onednn_is_int8(f->source, g->output))
        grow(g, f, n, true); /* floats are not written over bytes */
    for (int i = 0; i < g->n_nodes; i++)
        f->out->of_node[g->nodes[i]] = index;
}

static void count_readers(finder *f)
{
    for (size_t i = 0; i < f->graph->n_nodes; i++) {
        const hwnas_node *node = &f->graph->nodes[i];
        for (int k = 0; k < node->n_inputs; k++) {
            int *n = &f->n_readers[node->inputs[k]];
            if (*n < 2)
                f->readers[node->inputs[k]][*n] = (int)i;
            ++*n;
        }
        f->has_attention |=
            node->op->id == HWNAS_OP_MATMUL && !is_weight(f->graph, node->inputs[1]);
    }
    for (size_t i = 0; i < f->graph->n_outputs; i++)
        f->is_output[f->graph->outputs[i]] = true;
}

void hwnas_onednn_groups_find(hwnas_onednn_groups *out, const hwnas_onednn_source *source,
                              const bool *is_own, const bool *is_refused)
{
    const hwnas_graph *graph = source->graph;
    finder f = {.source = source, .graph = graph, .out = out, .is_own = is_own};
    *out = (hwnas_onednn_groups){0};
    out->all = hwnas_alloc((graph->n_nodes + 1) * sizeof *out->all);
    out->of_node = hwnas_alloc((graph->n_nodes + 1) * sizeof *out->of_node);
    out->layouts = hwnas_alloc((graph->n_tensors + 1) * sizeof *out->layouts);
    f.is_output = hwnas_alloc((graph->n_tensors + 1) * sizeof *f.is_output);
    f.n_readers = hwnas_alloc((graph->n_tensors + 1) * sizeof *f.n_readers);
    f.readers = hwnas_alloc((graph->n_tensors + 1) * sizeof *f.readers);
    count_readers(&f);
    for (size_t i = 0; i < graph->n_nodes; i++)
        out->of_node[i] = -1;
    if (is_refused)
        choose_images(&f);
    for (size_t i = 0; i < graph->n_nodes && is_refused; i++)
        if (out->of_node[i] < 0 && !is_refused[i] && is_root(&f, i))
            find_group(&f, i);
    if (is_refused)
        hwnas_onednn_settle_dequantize(&f);
    choose_plain(&f);
    free(f.is_output);
    free(f.n_readers);
    free(f.readers);
}

void hwnas_onednn_groups_done(hwnas_onednn_groups *groups)
{
    free(groups->all);
    free(groups->of_node);
    free(groups->layouts);
}
