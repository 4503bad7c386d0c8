/* digest.c: the canonical hash of a graph.
 *
 * Each tensor gets the hash of what makes it, from the inputs on (a Merkle tree), so the order of
 * the nodes in the file, their names, and nodes that no output needs do not matter. What fold.c
 * leaves out because it adds zeros does not either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY 1 /* a state on the stack */
#include <xxhash.h>

#include "graph/op.h"
#include "graph/rewrite.h"

static XXH128_hash_t tensor_hash(const hwnas_tensor *tensor, int64_t kind, int64_t extra)
{
    int64_t words[HWNAS_MAX_RANK + 3] = {kind, extra, tensor->rank};
    memcpy(words + 3, tensor->dims, sizeof tensor->dims);
    return XXH3_128bits(words, sizeof words);
}

static int compare_hashes(const void *a, const void *b)
{
    return XXH128_cmp(a, b);
}

/* A small constant that is computed with, such as a factor, is known by its values. */
static XXH128_hash_t constant_hash(const hwnas_tensor *tensor, XXH128_hash_t unknown)
{
    enum { SMALL = 64 };
    float values[SMALL];
    const int64_t n = hwnas_tensor_count(tensor);
    if (tensor->kind != HWNAS_TENSOR_WEIGHT || tensor->is_parameter || n > SMALL)
        return unknown;
    hwnas_tensor_fill(tensor, values);
    return tensor_hash(tensor, HWNAS_TENSOR_WEIGHT,
                       (int64_t)XXH3_64bits(values, (size_t)n * sizeof *values));
}

static int *count_readers(const hwnas_graph *graph)
{
    int *n_readers = hwnas_alloc((graph->n_tensors + 1) * sizeof *n_readers);
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            n_readers[graph->nodes[n].inputs[i]]++;
    return n_readers;
}

static XXH128_hash_t node_hash(const hwnas_graph *graph, const hwnas_node *node,
                               const XXH128_hash_t *tensors, XXH3_state_t *state)
{
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, node->op->name, strlen(node->op->name));
    for (int i = 0; node->op->attrs[i].name; i++) {
        const hwnas_attr *attr = &node->attrs[i];
        XXH3_128bits_update(state, attr->ints, (size_t)attr->n * sizeof *attr->ints);
        if (node->op->attrs[i].kind == HWNAS_ATTR_NUMBER) {
            float number = (float)attr->number; /* as ONNX keeps it */
            XXH3_128bits_update(state, &number, sizeof number);
        }
    }
    XXH128_hash_t inputs[HWNAS_MAX_NODE_INPUTS];
    int n = node->n_inputs;
    for (int i = 0; i < n; i++)
        inputs[i] = i < node->n_data_inputs
                        ? constant_hash(hwnas_node_input(graph, node, i), tensors[node->inputs[i]])
                        : tensors[node->inputs[i]];
    if (node->op->commutes)
        qsort(inputs, (size_t)n, sizeof *inputs, compare_hashes);
    XXH3_128bits_update(state, inputs, (size_t)n * sizeof *inputs);
    return XXH3_128bits_digest(state);
}

hwnas_digest hwnas_graph_digest(const hwnas_graph *graph)
{
    XXH3_state_t state; /* not XXH3_createState(), which may be without memory */
    XXH3_INITSTATE(&state);
    int *same = hwnas_graph_same(graph);
    XXH128_hash_t *tensors = hwnas_alloc((graph->n_tensors + 1) * sizeof *tensors);
    int *n_readers = count_readers(graph); /* a weight is known by its shape and by who share it */
    for (size_t t = 0; t < graph->n_tensors; t++)
        if (graph->tensors[t].kind == HWNAS_TENSOR_WEIGHT)
            tensors[t] = tensor_hash(&graph->tensors[t], HWNAS_TENSOR_WEIGHT, n_readers[t]);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *input = &graph->tensors[graph->inputs[i]];
        /* Which floats a file has is no part of a network: in which it runs is said elsewhere. */
        const hwnas_dtype dtype = hwnas_dtype_is_whole(input->dtype) ? input->dtype : HWNAS_FLOAT32;
        tensors[graph->inputs[i]] =
            tensor_hash(input, HWNAS_TENSOR_INPUT + ((int64_t)dtype << 8), (int64_t)i);
    }
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const int out = graph->nodes[n].output;
        tensors[out] = same[out] == out ? node_hash(graph, &graph->nodes[n], tensors, &state)
                                        : tensors[same[out]];
    }
    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < graph->n_outputs; i++)
        XXH3_128bits_update(&state, &tensors[graph->outputs[i]], sizeof *tensors);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    free(n_readers);
    free(tensors);
    free(same);
    hwnas_digest digest;
    snprintf(digest.hex, sizeof digest.hex, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return digest;
}
