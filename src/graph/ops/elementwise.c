#include "graph/ops/elementwise.h"

#include <string.h>

const hwnas_attr_row hwnas_no_attrs[] = {{0}};

hwnas_status hwnas_infer_same(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    out->rank = in->rank;
    memcpy(out->dims, in->dims, sizeof out->dims);
    return HWNAS_OK;
}

hwnas_status hwnas_infer_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                                   hwnas_tensor *out)
{
    const hwnas_tensor *a = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *b = hwnas_node_input(graph, node, 1);
    bool fits = a->rank == b->rank;
    out->rank = a->rank;
    for (int i = 0; fits && i < a->rank; i++) {
        fits = a->dims[i] == b->dims[i] || a->dims[i] == 1 || b->dims[i] == 1;
        out->dims[i] = a->dims[i] > b->dims[i] ? a->dims[i] : b->dims[i];
    }
    if (!fits)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' cannot join the shapes %s and %s",
                          node->op->name, hwnas_tensor_shape(a).s, hwnas_tensor_shape(b).s);
    return HWNAS_OK;
}

void hwnas_compute_each(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output, float (*function)(float))
{
    const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    for (int64_t i = 0; i < n; i++)
        output[i] = function(inputs[0][i]);
}

hwnas_status hwnas_find_axis(int *out, const hwnas_node *node, int rank)
{
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    if (axis < -rank || axis >= rank)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'axis' of '%s' is %lld, its input has %d dimensions", node->op->name,
                          (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return HWNAS_OK;
}

hwnas_status hwnas_check_macs(const hwnas_node *node, const hwnas_tensor *out, int64_t macs)
{
    double total = (double)macs;
    for (int i = 0; i < out->rank; i++)
        total *= (double)out->dims[i];
    if (total > 0x1p46)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' would take %.1g multiply-accumulates",
                          node->op->name, total);
    return HWNAS_OK;
}

void hwnas_compute_broadcast(const hwnas_graph *graph, const hwnas_node *node,
                             const float *const *inputs, float *output,
                             float (*function)(float, float))
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    int64_t index[HWNAS_MAX_RANK] = {0}, n = hwnas_tensor_count(out);
    for (int64_t at = 0; at < n; at++) {
        float operands[2];
        for (int side = 0; side < 2; side++) {
            const hwnas_tensor *in = hwnas_node_input(graph, node, side);
            int64_t from = 0;
            for (int i = 0; i < in->rank; i++)
                from = from * in->dims[i] + (in->dims[i] == 1 ? 0 : index[i]);
            operands[side] = inputs[side][from];
        }
        output[at] = function(operands[0], operands[1]);
        for (int i = out->rank - 1; i >= 0 && ++index[i] == out->dims[i]; i--)
            index[i] = 0;
    }
}

hwnas_status hwnas_check_bias(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->n_inputs <= 2)
        return HWNAS_OK;
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    const hwnas_tensor *bias = hwnas_node_input(graph, node, 2);
    if (bias->rank == 1 && bias->dims[0] == weight->dims[0])
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s': a bias of shape %s does not fit %s", node->op->name,
                      hwnas_tensor_shape(bias).s, hwnas_tensor_shape(weight).s);
}
