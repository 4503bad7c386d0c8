/* concat: tensors one after the other along one axis. */
#include <string.h>

#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = -HWNAS_MAX_RANK,
     .high = HWNAS_MAX_RANK - 1, .onnx = "axis", .is_required_by_onnx = true,
     .help = "dimension along which they follow each other; 1 is the channels"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *first = hwnas_node_input(graph, node, 0);
    int axis;
    TRY(hwnas_find_axis(&axis, node, first->rank));
    TRY(hwnas_infer_same(graph, node, out));
    for (int i = 1; i < node->n_inputs; i++) {
        const hwnas_tensor *in = hwnas_node_input(graph, node, i);
        bool fits = in->rank == first->rank;
        for (int k = 0; fits && k < in->rank; k++)
            fits = k == axis || in->dims[k] == first->dims[k];
        if (!fits)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'concat' cannot join the shapes %s and %s",
                              hwnas_tensor_shape(first).s, hwnas_tensor_shape(in).s);
        out->dims[axis] += in->dims[axis];
    }
    return HWNAS_OK;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const int64_t axis = node->attrs[0].ints[0] + (node->attrs[0].ints[0] < 0 ? out->rank : 0);
    int64_t n_rows = 1, row = hwnas_tensor_count(out), at = 0;
    for (int i = 0; i < axis; i++)
        n_rows *= out->dims[i];
    row /= n_rows;
    for (int k = 0; k < node->n_inputs; k++) {
        const int64_t part = hwnas_tensor_count(hwnas_node_input(graph, node, k)) / n_rows;
        for (int64_t i = 0; i < n_rows; i++)
            memcpy(output + i * row + at, inputs[k] + i * part, (size_t)part * sizeof *output);
        at += part;
    }
}

const hwnas_op hwnas_op_concat = {
    .id = HWNAS_OP_CONCAT,
    .name = "concat",
    .onnx = "Concat",
    .help = "tensors one after the other, along the channels unless said",
    .attrs = attrs,
    .has_int8_kernel = true,
    .is_common = true,
    .min_inputs = 2,
    .max_inputs = HWNAS_MAX_NODE_INPUTS,
    .keeps_zeros = true,
    .joins = true,
    .infer = infer,
    .compute = compute,
};
