/* onednn_int8.c: what a group may read and write as bytes. */
#include "device/onednn/onednn_int8.h"

#include <stdlib.h>

#include "graph/op.h"

typedef hwnas_onednn_finder finder;
typedef hwnas_onednn_group group;

enum { SCALE = 1, ZERO = 2 }; /* inputs of a quantisation */

static bool is_product(const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_LINEAR || node->op->id == HWNAS_OP_MATMUL;
}

bool hwnas_onednn_is_int8(const hwnas_onednn_source *source, int tensor)
{
    return source->kept[tensor] == dnnl_s8 || source->kept[tensor] == dnnl_u8;
}

hwnas_onednn_scale hwnas_onednn_scale_of(const hwnas_graph *graph, const hwnas_node *node)
{
    float scale, zero = 0;
    hwnas_tensor_fill(hwnas_node_input(graph, node, SCALE), &scale);
    if (node->n_inputs > ZERO)
        hwnas_tensor_fill(hwnas_node_input(graph, node, ZERO), &zero);
    return (hwnas_onednn_scale){scale, (int32_t)zero};
}

hwnas_onednn_scale hwnas_onednn_scale_of_int8(const hwnas_graph *graph, int tensor)
{
    return hwnas_onednn_scale_of(graph, &graph->nodes[graph->tensors[tensor].producer]);
}

static bool has_one_scale(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_tensor_count(hwnas_node_input(graph, node, SCALE)) == 1;
}

static bool are_equal(hwnas_onednn_scale a, hwnas_onednn_scale b)
{
    return a.scale == b.scale && a.zero == b.zero;
}

static const hwnas_node *producer_of(const hwnas_graph *graph, int tensor)
{
    const int producer = graph->tensors[tensor].producer;
    return producer < 0 ? NULL : &graph->nodes[producer];
}

int hwnas_onednn_behind(const hwnas_onednn_source *source, int tensor)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *reverse = producer_of(graph, tensor);
    if (!reverse || reverse->op->id != HWNAS_OP_DEQUANTIZE_LINEAR ||
        !hwnas_onednn_is_int8(source, reverse->inputs[0]) || !has_one_scale(graph, reverse))
        return -1;
    const hwnas_node *from = producer_of(graph, reverse->inputs[0]);
    if (!from || !has_one_scale(graph, from) ||
        !are_equal(hwnas_onednn_scale_of(graph, from), hwnas_onednn_scale_of(graph, reverse)))
        return -1;
    return reverse->inputs[0];
}

/* Signed bytes without zero points, and one scale for all or for each output. */
static bool is_kernel(const hwnas_onednn_source *source, const hwnas_node *node)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *reverse = producer_of(graph, node->inputs[1]);
    if (!reverse || reverse->op->id != HWNAS_OP_DEQUANTIZE_LINEAR ||
        source->kept[reverse->inputs[0]] != dnnl_s8)
        return false;
    const hwnas_tensor *bytes = hwnas_node_input(graph, reverse, 0);
    const int64_t n = hwnas_tensor_count(hwnas_node_input(graph, reverse, SCALE));
    bool is_symmetric = true;
    if (reverse->n_inputs > ZERO) {
        float *zeros = hwnas_alloc((size_t)n * sizeof *zeros);
        hwnas_tensor_fill(hwnas_node_input(graph, reverse, ZERO), zeros);
        for (int64_t i = 0; i < n; i++)
            is_symmetric &= zeros[i] == 0;
        free(zeros);
    }
    return bytes->kind == HWNAS_TENSOR_WEIGHT && bytes->rank == (is_product(node) ? 2 : 4) &&
           is_symmetric &&
           (n == 1 ||
            hwnas_node_attr(reverse, "axis")->ints[0] == (node->op->id == HWNAS_OP_MATMUL ? 1 : 0));
}

bool hwnas_onednn_multiplies_int8(const hwnas_onednn_source *source, const hwnas_node *node)
{
    const hwnas_graph *graph = source->graph;
    if (node->op->id != HWNAS_OP_CONV && !is_product(node))
        return false;
    if (hwnas_onednn_behind(source, node->inputs[0]) < 0 || !is_kernel(source, node))
        return false;
    if (node->n_inputs > 2 && hwnas_node_input(graph, node, 2)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    return node->op->id == HWNAS_OP_CONV ? hwnas_node_output(graph, node)->rank == 4
                                         : hwnas_node_input(graph, node, 0)->rank >= 2;
}

/* ---- While groups are found ---- */

bool hwnas_onednn_is_quantize_root(const finder *f, size_t n)
{
    const hwnas_node *node = &f->graph->nodes[n];
    const int producer = hwnas_node_input(f->graph, node, 0)->producer;
    return node->op->id == HWNAS_OP_QUANTIZE_LINEAR &&
           hwnas_onednn_is_int8(f->source, node->output) && has_one_scale(f->graph, node) &&
           (producer < 0 || f->is_own[producer] || f->out->of_node[producer] >= 0);
}

/* The quantisation that alone reads a tensor, or NULL. */
static const hwnas_node *quantize_of(const finder *f, int tensor)
{
    if (f->n_readers[tensor] != 1 || f->is_output[tensor])
        return NULL;
    const hwnas_node *node = &f->graph->nodes[f->readers[tensor][0]];
    return node->op->id == HWNAS_OP_QUANTIZE_LINEAR &&
                   hwnas_onednn_is_int8(f->source, node->output) && has_one_scale(f->graph, node)
               ? node
               : NULL;
}

static void look_behind(group *g, const finder *f, int i)
{
    const hwnas_node *root = &f->graph->nodes[g->nodes[0]];
    const int bytes = hwnas_onednn_behind(f->source, root->inputs[i]);
    g->reads[i] = bytes;
    g->reverses[g->n_reverses++] = hwnas_node_input(f->graph, root, i)->producer;
    g->has_bytes = true;
}

/* Maxima of bytes are bytes of the same scale. */
static bool keeps_scale(const finder *f, const hwnas_node *root)
{
    const int bytes = hwnas_onednn_behind(f->source, root->inputs[0]);
    const hwnas_node *last = quantize_of(f, root->output);
    return bytes >= 0 && last && f->source->kept[bytes] == f->source->kept[last->output] &&
           are_equal(hwnas_onednn_scale_of_int8(f->graph, bytes),
                     hwnas_onednn_scale_of(f->graph, last));
}

void hwnas_onednn_read_bytes(group *g, const finder *f)
{
    const hwnas_node *root = &f->graph->nodes[g->nodes[0]];
    const bool is_sum = root->op->id == HWNAS_OP_ADD || root->op->id == HWNAS_OP_SUB ||
                        root->op->id == HWNAS_OP_MUL;
    for (int i = 0; i < 2 && i < root->n_inputs; i++)
        g->reads[i] = root->inputs[i];
    if (hwnas_onednn_multiplies_int8(f->source, root)) {
        look_behind(g, f, 0);
        g->reverses[g->n_reverses++] = hwnas_node_input(f->graph, root, 1)->producer;
        g->is_product_of_bytes = true;
    } else if (root->op->id == HWNAS_OP_MAX_POOL && keeps_scale(f, root)) {
        look_behind(g, f, 0);
    } else if (root->op->class == HWNAS_CLASS_QUANTIZATION) {
        g->has_bytes = true;
    } else if (is_sum) { /* these primitives have no zero points */
        for (int i = 0; i < 2; i++) {
            const int bytes = hwnas_onednn_behind(f->source, root->inputs[i]);
            if (bytes >= 0 && !hwnas_onednn_scale_of_int8(f->graph, bytes).zero)
                look_behind(g, f, i);
        }
    }
}

bool hwnas_onednn_take_int8_sum(group *g, const finder *f, const hwnas_node *node, int operand)
{
    const int bytes = hwnas_onednn_behind(f->source, operand);
    const hwnas_onednn_post p = {.alg = dnnl_binary_add, .operand = bytes, .is_sum = true};
    if (bytes < 0 || node->op->id != HWNAS_OP_ADD || !g->is_product_of_bytes || g->ends_as_floats ||
        g->n_reverses == HWNAS_ONEDNN_MAX_REVERSES)
        return false;
    for (int i = 0; i < g->n_posts; i++)
        if (g->posts[i].is_sum)
            return false;
    g->reverses[g->n_reverses++] = f->graph->tensors[operand].producer;
    return hwnas_onednn_add_post(g, &p, f, node, NULL);
}

bool hwnas_onednn_take_quantize(group *g, const finder *f)
{
    const hwnas_node *root = &f->graph->nodes[g->nodes[0]];
    const hwnas_node *node = quantize_of(f, g->output);
    const bool is_binary = root->op->class == HWNAS_CLASS_ARITHMETIC;
    const bool is_pool = root->op->id == HWNAS_OP_MAX_POOL && g->has_bytes;
    if (!node || f->is_own[node - f->graph->nodes] ||
        (!g->is_product_of_bytes && !is_binary && !is_pool) ||
        !hwnas_onednn_add_post(g, NULL, f, node, NULL))
        return false;
    g->has_bytes = true;
    return true;
}

/* ---- Reverses ---- */

/* By tensor: whether a node of no group reads it, so that a partition may fuse what makes it with
 * that node. Yours to free(). */
static bool *read_by_partitions(const finder *f)
{
    bool *is_read = hwnas_alloc((f->graph->n_tensors + 1) * sizeof *is_read);
    for (size_t i = 0; i < f->graph->n_nodes; i++)
        for (int k = 0; k < f->graph->nodes[i].n_inputs; k++)
            is_read[f->graph->nodes[i].inputs[k]] |= f->out->of_node[i] < 0 && !f->is_own[i];
    return is_read;
}

static void share_out(const finder *f, const int *n_behind)
{
    for (size_t n = 0; n < f->out->n; n++) {
        group *g = &f->out->all[n];
        for (int i = 0; i < g->n_reverses; i++) {
            const int reverse = g->reverses[i];
            const int tensor = f->graph->nodes[reverse].output;
            if (f->out->of_node[reverse] >= 0 || n_behind[reverse] < f->n_readers[tensor] ||
                f->is_output[tensor] || g->n_nodes == HWNAS_ONEDNN_MAX_GROUP)
                continue;
            g->nodes[g->n_nodes++] = reverse;
            f->out->of_node[reverse] = (int)n;
        }
    }
}

void hwnas_onednn_settle_dequantize(const finder *f)
{
    int *n_behind = hwnas_alloc((f->graph->n_nodes + 1) * sizeof *n_behind);
    for (size_t n = 0; n < f->out->n; n++)
        for (int i = 0; i < f->out->all[n].n_reverses; i++)
            n_behind[f->out->all[n].reverses[i]]++;
    share_out(f, n_behind);
    free(n_behind);
    bool *is_for_partition = read_by_partitions(f); /* no reverse reads what another makes */
    for (size_t n = 0; n < f->graph->n_nodes; n++) {
        const hwnas_node *node = &f->graph->nodes[n];
        if (f->out->of_node[n] >= 0 || f->is_own[n] ||
            hwnas_onednn_behind(f->source, node->output) < 0 || is_for_partition[node->output])
            continue;
        group *g = &f->out->all[f->out->n];
        *g = (group){.n_nodes = 1, .nodes = {(int)n}, .bias = -1, .output = node->output};
        g->has_bytes = true;
        g->reads[0] = node->inputs[0];
        g->layout = f->out->layouts[node->output] == HWNAS_ONEDNN_IMAGE ? HWNAS_ONEDNN_IMAGE
                                                                        : HWNAS_ONEDNN_PLAIN;
        f->out->of_node[n] = (int)f->out->n++;
    }
    free(is_for_partition);
}
