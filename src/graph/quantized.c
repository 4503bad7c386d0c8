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

/* The bytes of a product's kernel that reads unsigned bytes; NULL: it does neither. */
static const hwnas_tensor *unsigned_kernel(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->class != HWNAS_CLASS_PRODUCT)
        return NULL;
    const int x = hwnas_node_input(graph, node, 0)->producer;
    const int w = hwnas_node_input(graph, node, 1)->producer;
    if (x < 0 || w < 0 || graph->nodes[x].op->id != HWNAS_OP_DEQUANTIZE_LINEAR ||
        hwnas_node_input(graph, &graph->nodes[x], 0)->dtype != HWNAS_UINT8 ||
        !hwnas_dequantizes_kernel(graph, &graph->nodes[w]) ||
        hwnas_is_packed_kernel(graph, &graph->nodes[w]))
        return NULL;
    const hwnas_tensor *kernel = hwnas_node_input(graph, &graph->nodes[w], 0);
    return hwnas_tensor_is_given(kernel) ? kernel : NULL;
}

/* Whether two weights of one output and one sign are more than 128 together: 255 x 128 < 2^15.
 * Which two are added depends on the loops. */
static bool has_large_pair(const hwnas_tensor *kernel, bool is_column)
{
    enum { MOST = 128 };
    const int64_t n = hwnas_tensor_count(kernel);
    const int64_t n_outputs = kernel->dims[is_column ? kernel->rank - 1 : 0], each = n / n_outputs;
    bool is_large = false;
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    hwnas_tensor_fill(kernel, values);
    for (int64_t o = 0; o < n_outputs && !is_large; o++) {
        float most[2][2] = {{0}}; /* by sign, the two largest */
        for (int64_t i = 0; i < each; i++) {
            const float value = values[is_column ? i * n_outputs + o : o * each + i];
            float *two = most[value < 0];
            if (fabsf(value) > two[0]) {
                two[1] = two[0];
                two[0] = fabsf(value);
            } else {
                two[1] = fmaxf(two[1], fabsf(value));
            }
        }
        is_large = most[0][0] + most[0][1] > MOST || most[1][0] + most[1][1] > MOST;
    }
    free(values);
    return is_large;
}

const hwnas_node *hwnas_graph_exceeds_16_bits(const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        const hwnas_tensor *kernel = unsigned_kernel(graph, node);
        if (kernel && has_large_pair(kernel, node->op->id == HWNAS_OP_MATMUL))
            return node;
    }
    return NULL;
}
