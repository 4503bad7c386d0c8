#include "inherit/importance.h"

#include <stdlib.h>

#include "graph/op.h"
#include "inherit/layer.h"
#include "inherit/walk.h"

typedef struct weighing {
    const hwnas_original *original;
    int64_t n_chunks;
    double *importance; /* by set */
} weighing;

/* Squares of a tensor's values, summed for each index of a dimension; yours to free(). */
static double *sum_squares(const hwnas_tensor *t, int dim, int64_t n_chunks, const float *values)
{
    const int64_t n = t->dims[dim], count = n_chunks * hwnas_tensor_count(t);
    double *sums = hwnas_alloc((size_t)n * sizeof *sums);
    int64_t behind = 1;
    for (int d = dim + 1; d < t->rank; d++)
        behind *= t->dims[d];
    for (int64_t begin = 0, k = 0; begin < count; begin += behind, k = k + 1 < n ? k + 1 : 0) {
        double sum = 0;
        for (int64_t i = begin; i < begin + behind; i++)
            sum += (double)values[i] * values[i];
        sums[k] += sum;
    }
    return sums;
}

/* After a node ran: its inputs are still there. */
static hwnas_status weigh_inputs(void *context, int n, float *const *values)
{
    const weighing *w = context;
    const hwnas_graph *graph = w->original->graph;
    const hwnas_node *node = &graph->nodes[n];
    const hwnas_layer_kind kind = hwnas_layer_kind_of(graph, node);
    if (kind == HWNAS_LAYER_NONE || kind == HWNAS_LAYER_BIAS)
        return HWNAS_OK;
    const hwnas_tensor *x = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *kernel = hwnas_node_input(graph, node, 1);
    const int dim = kind == HWNAS_LAYER_MATMUL ? x->rank - 1 : 1;
    const int kernel_dim = kind == HWNAS_LAYER_DEPTHWISE || kind == HWNAS_LAYER_MATMUL ? 0 : 1;
    const int *sets = hwnas_coupling_sets(w->original->coupling, node->inputs[0], dim);
    const int64_t n_channels = x->dims[dim];
    double *carried = sum_squares(x, dim, w->n_chunks, values[node->inputs[0]]);
    double *met = sum_squares(kernel, kernel_dim, 1, values[node->inputs[1]]), sum = 0;
    for (int64_t c = 0; c < n_channels; c++)
        sum += carried[c] *= met[c];
    for (int64_t c = 0; c < n_channels && sum > 0; c++)
        if (sets[c] != HWNAS_SET_FIXED)
            w->importance[sets[c]] += carried[c] * (double)n_channels / sum;
    free(carried);
    free(met);
    return HWNAS_OK;
}

hwnas_status hwnas_importance_of_activations(double **out, const hwnas_original *original,
                                             hwnas_device *device, const float *const *inputs,
                                             int64_t n_chunks)
{
    weighing w = {.original = original,
                  .n_chunks = n_chunks,
                  .importance =
                      hwnas_alloc(((size_t)original->coupling->n_sets + 1) * sizeof *w.importance)};
    const hwnas_walker walker = {.graph = original->graph,
                                 .device = device,
                                 .n_chunks = n_chunks,
                                 .inputs = inputs,
                                 .context = &w,
                                 .after = weigh_inputs};
    const hwnas_status status = hwnas_inherit_walk(&walker);
    if (status == HWNAS_OK)
        *out = w.importance;
    else
        free(w.importance);
    return status;
}
