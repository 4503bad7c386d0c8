/* digest.c: the canonical hash of a graph.
 *
 * Each tensor gets the hash of what makes it, from the inputs on (a Merkle tree), so the order of
 * the nodes in the file, their names, and nodes that no output needs do not matter. What fold.c
 * leaves out because it adds zeros does not either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    for (int i = 0; i < n; i++) {
        const hwnas_tensor *tensor = &graph->tensors[node->inputs[i]];
        inputs[i] = tensor->kind == HWNAS_TENSOR_WEIGHT
                        ? tensor_hash(tensor, HWNAS_TENSOR_WEIGHT, 0)
                        : tensors[node->inputs[i]];
    }
    if (node->op->commutes)
        qsort(inputs, (size_t)n, sizeof *inputs, compare_hashes);
    XXH3_128bits_update(state, inputs, (size_t)n * sizeof *inputs);
    return XXH3_128bits_digest(state);
}

hwnas_digest hwnas_graph_digest(const hwnas_graph *graph)
{
    XXH3_state_t *state = XXH3_createState();
    int *same = hwnas_graph_same(graph);
    XXH128_hash_t *tensors = hwnas_alloc((graph->n_tensors + 1) * sizeof *tensors);
    for (size_t i = 0; i < graph->n_inputs; i++)
        tensors[graph->inputs[i]] =
            tensor_hash(&graph->tensors[graph->inputs[i]], HWNAS_TENSOR_INPUT, (int64_t)i);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const int out = graph->nodes[n].output;
        tensors[out] = same[out] == out ? node_hash(graph, &graph->nodes[n], tensors, state)
                                        : tensors[same[out]];
    }
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < graph->n_outputs; i++)
        XXH3_128bits_update(state, &tensors[graph->outputs[i]], sizeof *tensors);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    free(tensors);
    free(same);
    hwnas_digest digest;
    snprintf(digest.hex, sizeof digest.hex, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return digest;
}
