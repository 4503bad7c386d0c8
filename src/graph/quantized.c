/* quantized.c: what a graph has of 8-bit integers. */
#include <math.h>
#include <stdlib.h>

#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"
#include "graph/quantize_places.h"

bool hwnas_graph_is_quantized(const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op->id == HWNAS_OP_DEQUANTIZE_LINEAR)
            return true;
    return false;
}

bool hwnas_dequantizes_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    return node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR && in->kind == HWNAS_TENSOR_WEIGHT &&
           in->rank > 1 && (in->dtype == HWNAS_INT8 || in->dtype == HWNAS_UINT8);
}

static bool has_zero_points(const hwnas_graph *graph, const hwnas_node *node)
{
    enum { ZERO = 2 };
    if (node->n_inputs <= ZERO || hwnas_node_input(graph, node, ZERO)->kind != HWNAS_TENSOR_WEIGHT)
        return false;
    const int64_t n = hwnas_tensor_count(hwnas_node_input(graph, node, ZERO));
    float *zeros = hwnas_alloc((size_t)n * sizeof *zeros);
    hwnas_tensor_fill(hwnas_node_input(graph, node, ZERO), zeros);
    bool any = false;
    for (int64_t i = 0; i < n; i++)
        any |= zeros[i] != 0;
    free(zeros);
    return any;
}

bool hwnas_is_int8_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    enum { KERNEL = 1 };
    if (!hwnas_dequantizes_kernel(graph, node))
        return false;
    if (hwnas_node_attr(node, "block_size")->ints[0])
        return hwnas_is_packed_kernel(graph, node);
    if (has_zero_points(graph, node))
        return false;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *reader = &graph->nodes[i];
        const bool multiplies =
            reader->op->class == HWNAS_CLASS_PRODUCT && !hwnas_is_wrong_in_bytes(graph, reader);
        for (int k = 0; k < reader->n_inputs; k++)
            if (reader->inputs[k] == node->output && !(multiplies && k == KERNEL))
                return false;
    }
    return true;
}

float hwnas_graph_largest_byte(const hwnas_graph *graph)
{
    float largest = 0;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        if (!hwnas_dequantizes_kernel(graph, &graph->nodes[n]) ||
            hwnas_is_packed_kernel(graph, &graph->nodes[n]))
            continue;
        const hwnas_tensor *kernel = hwnas_node_input(graph, &graph->nodes[n], 0);
        const int8_t *numbers = kernel->codes.numbers;
        for (int64_t i = 0; hwnas_tensor_is_given(kernel) && i < hwnas_tensor_count(kernel); i++)
            largest = fmaxf(largest, fabsf(numbers ? (float)numbers[i] : kernel->data[i]));
    }
    return largest;
}
