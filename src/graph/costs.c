/* costs.c: what a network costs before anything is run. */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

int64_t hwnas_node_macs(const hwnas_graph *graph, const hwnas_node *node)
{
    return node->op->macs ? node->op->macs(graph, node) : 0;
}

static bool reads(const hwnas_node *node, int tensor)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] == tensor)
            return true;
    return false;
}

static bool has_params(const hwnas_graph *graph, const hwnas_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (graph->tensors[node->inputs[i]].is_parameter)
            return true;
    return false;
}

int64_t hwnas_node_params(const hwnas_graph *graph, const hwnas_node *node)
{
    int64_t params = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *weight = &graph->tensors[node->inputs[i]];
        bool is_first = true;
        for (int k = 0; k < i; k++)
            is_first &= node->inputs[k] != node->inputs[i];
        for (const hwnas_node *n = graph->nodes; weight->is_parameter && is_first && n < node; n++)
            is_first = !reads(n, node->inputs[i]);
        if (weight->is_parameter && is_first)
            params += hwnas_tensor_count(weight);
    }
    return params;
}

/* Which tensors are weights, or computed of nothing but weights: a device has them before
 * it runs. */
static bool *find_constants(const hwnas_graph *graph)
{
    bool *is_constant = hwnas_alloc((graph->n_tensors + 1) * sizeof *is_constant);
    for (size_t t = 0; t < graph->n_tensors; t++)
        is_constant[t] = graph->tensors[t].kind == HWNAS_TENSOR_WEIGHT;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        is_constant[node->output] = true;
        for (int i = 0; i < node->n_inputs; i++)
            is_constant[node->output] &= is_constant[node->inputs[i]];
    }
    return is_constant;
}

/* Peak of the bytes of activations alive at once: a tensor lives from its node (an input: from the
 * start) to its last reader (an output: to the end), nothing is done in place. */
static int64_t activation_peak(const hwnas_graph *graph)
{
    size_t n_nodes = graph->n_nodes;
    size_t *last_use = hwnas_alloc((graph->n_tensors + 1) * sizeof *last_use);
    for (size_t n = 0; n < n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            last_use[graph->nodes[n].inputs[i]] = n;
    for (size_t i = 0; i < graph->n_outputs; i++)
        last_use[graph->outputs[i]] = n_nodes;

    bool *is_constant = find_constants(graph);
    /* Bytes that become free after each node. */
    int64_t *freed = hwnas_alloc((n_nodes + 1) * sizeof *freed);
    int64_t live = 0;
    for (size_t t = 0; t < graph->n_tensors; t++) {
        const hwnas_tensor *tensor = &graph->tensors[t];
        if (is_constant[t])
            continue;
        freed[last_use[t]] += hwnas_tensor_bytes(tensor);
        if (tensor->kind == HWNAS_TENSOR_INPUT)
            live += hwnas_tensor_bytes(tensor);
    }
    int64_t peak = live;
    for (size_t n = 0; n < n_nodes; n++) {
        if (!is_constant[graph->nodes[n].output])
            live += hwnas_tensor_bytes(hwnas_node_output(graph, &graph->nodes[n]));
        if (live > peak)
            peak = live;
        live -= freed[n];
    }
    free(is_constant);
    free(freed);
    free(last_use);
    return peak;
}

void hwnas_graph_costs(hwnas_costs *out, const hwnas_graph *graph)
{
    hwnas_costs costs = {0};
    for (size_t n = 0; n < graph->n_nodes; n++) {
        int64_t macs = hwnas_node_macs(graph, &graph->nodes[n]);
        costs.macs += macs;
        costs.layers += macs > 0 && has_params(graph, &graph->nodes[n]);
    }
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *input = &graph->tensors[graph->inputs[i]];
        if (!strncmp(input->name, "past_", 5))
            costs.cache_bytes += hwnas_tensor_count(input) * (int64_t)sizeof(float);
    }
    for (size_t t = 0; t < graph->n_tensors; t++) {
        const hwnas_tensor *tensor = &graph->tensors[t];
        if (tensor->kind != HWNAS_TENSOR_WEIGHT)
            continue;
        const int64_t count = hwnas_tensor_count(tensor);
        costs.weight_bytes += count * (int64_t)sizeof(float);
        costs.params += tensor->is_parameter ? count : 0;
    }
    costs.activation_bytes = activation_peak(graph);
    costs.peak_bytes = costs.weight_bytes + costs.activation_bytes;
    *out = costs;
}
