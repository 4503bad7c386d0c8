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

hwnas_status hwnas_node_compile(hwnas_node_exec *out, const hwnas_graph *graph,
                                const hwnas_node *node, hwnas_device *device,
                                const float *const *operands)
{
    *out = (hwnas_node_exec){.graph = graph, .node = node};
    if (!device)
        return HWNAS_OK;
    TRY(isolate(&out->alone, graph, node, operands));
    const hwnas_status status = hwnas_device_compile(&out->exec, device, out->alone, NULL);
    if (status == HWNAS_OK)
        return HWNAS_OK;
    hwnas_node_exec_done(out);
    return status == HWNAS_E_UNSUPPORTED ? HWNAS_OK : status;
}

hwnas_status hwnas_node_exec_run(const hwnas_node_exec *e, const float *const *operands,
                                 float *output)
{
    if (e->exec)
        return e->exec->ops->run(e->exec, operands, &output);
    e->node->op->compute(e->graph, e->node, operands, output);
    return HWNAS_OK;
}

void hwnas_node_exec_done(hwnas_node_exec *e)
{
    hwnas_exec_free(e->exec);
    hwnas_graph_free(e->alone);
    e->exec = NULL;
    e->alone = NULL;
}

hwnas_status hwnas_node_run(const hwnas_graph *graph, const hwnas_node *node, hwnas_device *device,
                            const float *const *operands, float *output)
{
    hwnas_node_exec exec;
    TRY(hwnas_node_compile(&exec, graph, node, node->op->macs ? device : NULL, operands));
    const hwnas_status status = hwnas_node_exec_run(&exec, operands, output);
    hwnas_node_exec_done(&exec);
    return status;
}
