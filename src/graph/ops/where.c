/* where: of two tensors, element by element, the one that a third chooses. */
#include "graph/ops/elementwise.h"

enum { CONDITION, THEN, ELSE };

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    hwnas_tensor values = {0};
    out->dtype = hwnas_node_input(graph, node, THEN)->dtype;
    if (hwnas_broadcast_shape(&values, hwnas_node_input(graph, node, THEN),
                              hwnas_node_input(graph, node, ELSE)) &&
        hwnas_broadcast_shape(out, hwnas_node_input(graph, node, CONDITION), &values))
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, NULL, "'where' cannot join the shapes %s, %s and %s",
                      hwnas_tensor_shape(hwnas_node_input(graph, node, CONDITION)).s,
                      hwnas_tensor_shape(hwnas_node_input(graph, node, THEN)).s,
                      hwnas_tensor_shape(hwnas_node_input(graph, node, ELSE)).s);
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    hwnas_walk walks[3];
    for (int i = 0; i < 3; i++)
        walks[i] = hwnas_walk_new(hwnas_node_input(graph, node, i), out);
    for (int64_t at = 0, n = hwnas_tensor_count(out); at < n; at++) {
        const int chosen = inputs[CONDITION][walks[CONDITION].at] != 0 ? THEN : ELSE;
        output[at] = inputs[chosen][walks[chosen].at];
        for (int i = 0; i < 3; i++)
            hwnas_walk_next(&walks[i]);
    }
}

const hwnas_op hwnas_op_where = {
    .id = HWNAS_OP_WHERE,
    .name = "where",
    .onnx = "Where",
    .onnx_since = 9,
    .help = "one of two tensors, element by element, by a condition",
    .attrs = hwnas_no_attrs,
    .is_internal = true,
    .min_inputs = 3,
    .max_inputs = 3,
    .is_elementwise = true,
    .infer = infer,
    .compute = compute,
};
