/* encoding.c: the layers of a network that count, as a sorted list. */
#include "search/encoding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "graph/elaborate.h"
#include "graph/op.h"
#include "graph/rewrite.h"

static uint64_t kind_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    uint64_t hash = XXH3_64bits(node->op->name, strlen(node->op->name));
    for (int i = 0; node->op->attrs[i].name; i++) {
        const hwnas_attr *attr = &node->attrs[i];
        hash = XXH3_64bits_withSeed(attr->ints, (size_t)attr->n * sizeof *attr->ints, hash);
        hash = XXH3_64bits_withSeed(&attr->number, sizeof attr->number, hash);
    }
    return XXH3_64bits_withSeed(out->dims, (size_t)out->rank * sizeof *out->dims, hash);
}

static int by_kind(const void *a, const void *b)
{
    uint64_t x = ((const hwnas_layer_count *)a)->kind, y = ((const hwnas_layer_count *)b)->kind;
    return (x > y) - (x < y);
}

/* Sorts, and joins what is equal. */
static void settle(hwnas_encoding *e)
{
    size_t n = 0;
    if (e->n_layers)
        qsort(e->layers, e->n_layers, sizeof *e->layers, by_kind);
    for (size_t i = 0; i < e->n_layers; i++) {
        if (n && e->layers[n - 1].kind == e->layers[i].kind)
            e->layers[n - 1].count += e->layers[i].count;
        else
            e->layers[n++] = e->layers[i];
    }
    e->n_layers = n;
}

/* From the outputs back; a tensor stands for those that it is the same as. */
static void count_layers(hwnas_encoding *out, const hwnas_graph *graph)
{
    int *same = hwnas_graph_same(graph);
    bool *is_needed = hwnas_alloc(graph->n_tensors + 1);
    for (size_t i = 0; i < graph->n_outputs; i++)
        is_needed[same[graph->outputs[i]]] = true;
    for (size_t n = graph->n_nodes; n-- > 0;) {
        const hwnas_node *node = &graph->nodes[n];
        if (!is_needed[node->output])
            continue;
        for (int i = 0; i < node->n_data_inputs; i++)
            is_needed[same[node->inputs[i]]] = true;
        HWNAS_GROW(out->layers, out->n_layers, out->capacity);
        out->layers[out->n_layers++] =
            (hwnas_layer_count){.kind = kind_of(graph, node), .count = 1};
    }
    free(is_needed);
    free(same);
    settle(out);
}

hwnas_status hwnas_encode(hwnas_encoding *out, const hwnas_arch *arch)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    if (!arch->space->network) { /* choices alone: nothing to build */
        *out = (hwnas_encoding){.arch = hwnas_arch_copy(arch)};
        return HWNAS_OK;
    }
    TRY(hwnas_graph_build(&graph, arch, 1));
    *out = (hwnas_encoding){.arch = hwnas_arch_copy(arch), .digest = hwnas_graph_digest(graph)};
    count_layers(out, graph);
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
    out->costs[0] = log(1 + (double)costs.macs);
    out->costs[1] = log(1 + (double)costs.params);
    return HWNAS_OK;
}

void hwnas_encoding_done(hwnas_encoding *encoding)
{
    hwnas_arch_free(encoding->arch);
    free(encoding->layers);
    memset(encoding, 0, sizeof *encoding);
}
