/* onednn_int8.c: what a group may read and write as bytes. */
#include "device/onednn/onednn_int8.h"

#include <stdlib.h>

#include "device/onednn/pixels.h"
#include "graph/op.h"
#include "graph/quantize_places.h"

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
    const hwnas_node *dequantize = producer_of(graph, tensor);
    if (!dequantize || dequantize->op->id != HWNAS_OP_DEQUANTIZE_LINEAR ||
        !hwnas_onednn_is_int8(source, dequantize->inputs[0]) || !has_one_scale(graph, dequantize))
        return -1;
    const hwnas_node *from = producer_of(graph, dequantize->inputs[0]);
    if (!from || !has_one_scale(graph, from) ||
        !are_equal(hwnas_onednn_scale_of(graph, from), hwnas_onednn_scale_of(graph, dequantize)))
        return -1;
    return dequantize->inputs[0];
}

/* Signed bytes without zero points, and one scale for all or for each output. */
static bool is_kernel(const hwnas_onednn_source *source, const hwnas_node *node)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *dequantize = producer_of(graph, node->inputs[1]);
    if (!dequantize || dequantize->op->id != HWNAS_OP_DEQUANTIZE_LINEAR ||
        source->kept[dequantize->inputs[0]] != dnnl_s8)
        return false;
    const hwnas_tensor *bytes = hwnas_node_input(graph, dequantize, 0);
    const int64_t n = hwnas_tensor_count(hwnas_node_input(graph, dequantize, SCALE));
    bool is_symmetric = true;
    if (dequantize->n_inputs > ZERO) {
        float *zeros = hwnas_alloc((size_t)n * sizeof *zeros);
        hwnas_tensor_fill(hwnas_node_input(graph, dequantize, ZERO), zeros);
        for (int64_t i = 0; i < n; i++)
            is_symmetric &= zeros[i] == 0;
        free(zeros);
    }
    return bytes->kind == HWNAS_TENSOR_WEIGHT && bytes->rank == (is_product(node) ? 2 : 4) &&
           is_symmetric &&
           (n == 1 || hwnas_node_attr(dequantize, "axis")->ints[0] ==
                          (node->op->id == HWNAS_OP_MATMUL ? 1 : 0));
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

bool hwnas_onednn_sums_bytes(const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_ADD || node->op->id == HWNAS_OP_SUB;
}

/* ---- While groups are found ---- */

/* Of one scale, and kept as such. */
static bool makes_int8(const hwnas_fusion *f, const hwnas_node *node)
{
    return node->op->id == HWNAS_OP_QUANTIZE_LINEAR &&
           hwnas_onednn_is_int8(hwnas_onednn_finder_of(f)->source, node->output) &&
           has_one_scale(f->graph, node);
}

bool hwnas_onednn_is_quantize_root(const hwnas_fusion *f, int n)
{
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    const hwnas_node *node = &f->graph->nodes[n];
    const int producer = hwnas_node_input(f->graph, node, 0)->producer;
    return makes_int8(f, node) &&
           (producer < 0 || finder->is_own[producer] || f->group_of[producer] >= 0);
}

static void look_behind(group *g, const hwnas_fusion *f, int i)
{
    const hwnas_node *root = &f->graph->nodes[g->chain.nodes[0]];
    g->reads[i] = hwnas_onednn_behind(hwnas_onednn_finder_of(f)->source, root->inputs[i]);
    g->dequantizes[g->n_dequantizes++] = hwnas_node_input(f->graph, root, i)->producer;
    g->has_bytes = true;
}

/* Maxima of bytes are bytes of the same scale. */
static bool keeps_scale(const hwnas_fusion *f, const hwnas_node *root)
{
    const hwnas_onednn_source *source = hwnas_onednn_finder_of(f)->source;
    const int bytes = hwnas_onednn_behind(source, root->inputs[0]);
    const int reader = hwnas_lone_reader(&f->uses[root->output]);
    const hwnas_node *last = reader < 0 ? NULL : &f->graph->nodes[reader];
    return bytes >= 0 && last && makes_int8(f, last) &&
           source->kept[bytes] == source->kept[last->output] &&
           are_equal(hwnas_onednn_scale_of_int8(f->graph, bytes),
                     hwnas_onednn_scale_of(f->graph, last));
}

int hwnas_onednn_excited(const hwnas_fusion *f, const hwnas_node *node)
{
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    const int reader = hwnas_lone_reader(&f->uses[node->output]);
    if (reader < 0 || !makes_int8(f, &f->graph->nodes[reader]))
        return -1;
    const int made = f->graph->nodes[reader].output, image = hwnas_excites(f->graph, node);
    const int bytes = image < 0 ? -1 : hwnas_onednn_behind(finder->source, node->inputs[image]);
    return bytes >= 0 && finder->layouts[bytes] == HWNAS_ONEDNN_IMAGE &&
                   finder->layouts[made] == HWNAS_ONEDNN_IMAGE
               ? image
               : -1;
}

void hwnas_onednn_read_bytes(group *g, const hwnas_fusion *f)
{
    const hwnas_onednn_source *source = hwnas_onednn_finder_of(f)->source;
    const hwnas_node *root = &f->graph->nodes[g->chain.nodes[0]];
    const bool is_sum = hwnas_onednn_sums_bytes(root);
    for (int i = 0; i < 2 && i < root->n_inputs; i++)
        g->reads[i] = root->inputs[i];
    const int image = hwnas_onednn_excited(f, root);
    if (image >= 0) { /* the factors stay floats */
        look_behind(g, f, image);
        g->reads[1] = root->inputs[1 - image];
        g->reads[0] = hwnas_onednn_behind(source, root->inputs[image]);
    } else if (hwnas_onednn_multiplies_int8(source, root)) {
        look_behind(g, f, 0);
        g->dequantizes[g->n_dequantizes++] = hwnas_node_input(f->graph, root, 1)->producer;
        g->is_product_of_bytes = true;
    } else if (root->op->id == HWNAS_OP_MAX_POOL && keeps_scale(f, root)) {
        look_behind(g, f, 0);
    } else if (hwnas_onednn_is_mean_of_bytes(source, hwnas_onednn_finder_of(f)->layouts, root)) {
        look_behind(g, f, 0);
    } else if (root->op->class == HWNAS_CLASS_QUANTIZATION) {
        g->has_bytes = true;
    } else if (is_sum || root->op->id == HWNAS_OP_MUL) { /* products have no zero points */
        for (int i = 0; i < 2; i++) {
            const int bytes = hwnas_onednn_behind(source, root->inputs[i]);
            if (bytes >= 0 && (is_sum || !hwnas_onednn_scale_of_int8(f->graph, bytes).zero))
                look_behind(g, f, i);
        }
    }
}

bool hwnas_onednn_take_int8_sum(group *g, const hwnas_fusion *f, const hwnas_node *node,
                                int operand)
{
    const int bytes = hwnas_onednn_behind(hwnas_onednn_finder_of(f)->source, operand);
    if (bytes < 0 || node->op->id != HWNAS_OP_ADD || !g->is_product_of_bytes || g->ends_as_floats ||
        g->n_dequantizes == HWNAS_ONEDNN_MAX_DEQUANTIZES)
        return false;
    for (int i = 0; i < g->n_posts; i++)
        if (g->posts[i].is_sum)
            return false;
    g->dequantizes[g->n_dequantizes++] = f->graph->tensors[operand].producer;
    g->posts[g->n_posts++] =
        (hwnas_onednn_post){.alg = dnnl_binary_add, .operand = bytes, .is_sum = true};
    return true;
}

bool hwnas_onednn_take_quantize(group *g, const hwnas_fusion *f, const hwnas_node *node)
{
    const hwnas_node *root = &f->graph->nodes[g->chain.nodes[0]];
    if (g->ends_as_floats || !makes_int8(f, node) ||
        (!g->is_product_of_bytes && root->op->class != HWNAS_CLASS_ARITHMETIC && !g->has_bytes))
        return false;
    g->has_bytes = true;
    return true;
}

/* ---- Dequantisations ---- */

/* By tensor: whether a node of no group reads it, so that a partition may fuse what makes it with
 * that node. Yours to free(). */
static bool *read_by_partitions(const hwnas_fusion *f)
{
    const bool *is_own = hwnas_onednn_finder_of(f)->is_own;
    bool *is_read = hwnas_alloc((f->graph->n_tensors + 1) * sizeof *is_read);
    for (size_t i = 0; i < f->graph->n_nodes; i++)
        for (int k = 0; k < f->graph->nodes[i].n_inputs; k++)
            is_read[f->graph->nodes[i].inputs[k]] |= f->group_of[i] < 0 && !is_own[i];
    return is_read;
}

static void share_out(const hwnas_fusion *f, const int *n_behind)
{
    group *groups = f->groups;
    for (size_t n = 0; n < f->n_groups; n++) {
        hwnas_fusion_group *chain = &groups[n].chain;
        for (int i = 0; i < groups[n].n_dequantizes; i++) {
            const int node = groups[n].dequantizes[i];
            const hwnas_uses *uses = &f->uses[f->graph->nodes[node].output];
            if (f->group_of[node] >= 0 || n_behind[node] < uses->n_inputs || uses->is_output ||
                chain->n_nodes == HWNAS_FUSION_LONGEST)
                continue;
            chain->nodes[chain->n_nodes++] = node;
            f->group_of[node] = (int)n;
        }
    }
}

/* The float that a dequantisation makes is read by steps alone: it is one, too. */
static void make_group(hwnas_fusion *f, int node)
{
    const hwnas_node *n = &f->graph->nodes[node];
    group *g = &((group *)f->groups)[f->n_groups];
    hwnas_fusion_take(f, g, node);
    g->bias = -1;
    g->has_bytes = true;
    g->reads[0] = n->inputs[0];
    g->layout = hwnas_onednn_finder_of(f)->layouts[n->output] == HWNAS_ONEDNN_IMAGE
                    ? HWNAS_ONEDNN_IMAGE
                    : HWNAS_ONEDNN_PLAIN;
    f->n_groups++;
}

void hwnas_onednn_settle_dequantize(hwnas_fusion *f)
{
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    const group *groups = f->groups;
    int *n_behind = hwnas_alloc((f->graph->n_nodes + 1) * sizeof *n_behind);
    for (size_t n = 0; n < f->n_groups; n++)
        for (int i = 0; i < groups[n].n_dequantizes; i++)
            n_behind[groups[n].dequantizes[i]]++;
    share_out(f, n_behind);
    free(n_behind);
    bool *is_for_partition = read_by_partitions(f); /* no dequantisation reads what another makes */
    for (size_t n = 0; n < f->graph->n_nodes; n++) {
        const int output = f->graph->nodes[n].output;
        if (f->group_of[n] < 0 && !finder->is_own[n] &&
            hwnas_onednn_behind(finder->source, output) >= 0 && !is_for_partition[output])
            make_group(f, (int)n);
    }
    free(is_for_partition);
}
