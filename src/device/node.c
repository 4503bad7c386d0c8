#include "device/node.h"

#include "graph/op.h"

/* The node alone, as a graph whose weights are given. */
static hwnas_status isolate(hwnas_graph **out, const hwnas_graph *graph, const hwnas_node *node,
                            const float *const *operands)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *alone = hwnas_graph_new(node->name, 0);
    int inputs[HWNAS_MAX_NODE_INPUTS], made;
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *from = hwnas_node_input(graph, node, i);
        char *name = hwnas_arena_printf(alone->arena, "%d", i);
        if (i < node->n_data_inputs) {
            TRY_OUT(hwnas_graph_add_input(&inputs[i], alone, name, from->dtype, from->rank,
                                          from->dims));
            continue;
        }
        TRY_OUT(hwnas_graph_add_weight(&inputs[i], alone, name, from->rank, from->dims, from->init,
                                       from->is_parameter));
        alone->tensors[inputs[i]].data = operands[i];
    }
    TRY_OUT(hwnas_graph_add_node(&made, alone, node->op, node->name, node->attrs, node->n_inputs,
                                 inputs, false));
    hwnas_graph_add_output(alone, made);
    *out = alone;
    alone = NULL;
out:
    hwnas_graph_free(alone);
    return status;
}

static hwnas_status run_on_device(const hwnas_graph *graph, const hwnas_node *node,
                                  hwnas_device *device, const float *const *operands, float *output)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *alone = NULL;
    hwnas_exec *exec = NULL;
    TRY_OUT(isolate(&alone, graph, node, operands));
    TRY_OUT(hwnas_device_compile(&exec, device, alone, NULL));
    TRY_OUT(device->ops->run(exec, operands, &output));
out:
    hwnas_exec_free(exec);
    hwnas_graph_free(alone);
    return status;
}

hwnas_status hwnas_node_run(const hwnas_graph *graph, const hwnas_node *node, hwnas_device *device,
                            const float *const *operands, float *output)
{
    if (device && node->op->macs) {
        hwnas_status status = run_on_device(graph, node, device, operands, output);
        if (status != HWNAS_E_UNSUPPORTED)
            return status;
    }
    node->op->compute(graph, node, operands, output);
    return HWNAS_OK;
}
