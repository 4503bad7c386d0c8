/* onnx_read_zero.c: what says `zero` in a file: a product with one zero or, with a stride, a
 * depthwise convolution by a zero for each channel (onnx_forms.c).
 *
 * It is looked for when the whole is read, as the zeros may have been computed, or be of a form
 * that became such a product; else a file that we write would be read as another network. */
#include <string.h>

#include "onnx/onnx_reader.h"

static bool is_zeros(const hwnas_tensor *tensor)
{
    if (tensor->kind != HWNAS_TENSOR_WEIGHT || tensor->dtype != HWNAS_FLOAT32)
        return false;
    if (!tensor->data)
        return tensor->init == HWNAS_INIT_ZERO;
    for (int64_t i = 0, n = hwnas_tensor_count(tensor); i < n; i++)
        if (tensor->data[i] != 0)
            return false;
    return true;
}

static bool is_one_zero(const hwnas_tensor *tensor, const hwnas_tensor *other)
{
    return hwnas_tensor_count(tensor) == 1 && tensor->rank <= other->rank && is_zeros(tensor) &&
           other->kind != HWNAS_TENSOR_WEIGHT && other->dtype == HWNAS_FLOAT32;
}

/* The same step in both directions over single values, each times the zero of its channel; else 0.
 */
static int64_t stride_of_zeros(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *kernel = hwnas_node_input(graph, node, 1);
    const int64_t *strides = hwnas_node_attr(node, "stride")->ints;
    const int64_t *pads = hwnas_node_attr(node, "pad")->ints;
    const bool is_depthwise = kernel->dims[0] == hwnas_node_attr(node, "groups")->ints[0] &&
                              kernel->dims[1] == 1 && node->n_inputs == 2;
    const bool is_padded = pads[0] || pads[1] || pads[2] || pads[3];
    if (!is_depthwise || is_padded || kernel->dims[2] != 1 || kernel->dims[3] != 1)
        return 0;
    return strides[0] == strides[1] && strides[0] > 1 && is_zeros(kernel) ? strides[0] : 0;
}

/* Zeros as we write them stay, so that a graph that was written comes back with its tensors. */
static hwnas_status make_zero(hwnas_graph *graph, hwnas_node *node, int data, int64_t stride)
{
    const int inputs[] = {node->inputs[data], node->inputs[1 - data]};
    const bool is_own = stride > 1 || graph->tensors[inputs[1]].rank == 1;
    memcpy(node->inputs, inputs, sizeof inputs);
    node->op = hwnas_ops[HWNAS_OP_ZERO];
    node->n_inputs = is_own ? 2 : 1;
    node->n_data_inputs = 1;
    node->attrs = hwnas_arena_alloc(graph->arena, sizeof *node->attrs);
    node->attrs[0] = (hwnas_attr){.is_set = true, .n = 1, .ints = {stride}};
    return is_own ? HWNAS_OK : node->op->make_weights(graph, node);
}

hwnas_status hwnas_onnx_settle_zeros(hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++) {
        hwnas_node *node = &graph->nodes[n];
        if (node->op->id == HWNAS_OP_CONV) {
            const int64_t stride = stride_of_zeros(graph, node);
            if (stride)
                TRY(make_zero(graph, node, 0, stride));
        } else if (node->op->id == HWNAS_OP_MUL) {
            const hwnas_tensor *a = hwnas_node_input(graph, node, 0);
            const hwnas_tensor *b = hwnas_node_input(graph, node, 1);
            if (is_one_zero(b, a) || is_one_zero(a, b))
                TRY(make_zero(graph, node, is_one_zero(b, a) ? 0 : 1, 1));
        }
    }
    return HWNAS_OK;
}
