/* loops.c: steps that run the operator's own loops. The node is kept in a graph of its own,
 * because the one that it comes from may be freed. */
#include <stdlib.h>
#include <string.h>

#include "device/onednn/onednn_steps.h"
#include "graph/op.h"

int hwnas_onednn_over_first(const hwnas_onednn_step *step, int output, size_t k)
{
    (void)output;
    return k == 0 ? step->input_ids[0] : -1;
}

static void free_graph(void *state)
{
    hwnas_graph_free(state);
}

static hwnas_status compile_loops(hwnas_onednn_step *step, const onednn_device *device,
                                  const hwnas_graph *graph, const hwnas_node *node)
{
    (void)device;
    int operands[HWNAS_MAX_NODE_INPUTS], output;
    hwnas_graph *alone = step->state = hwnas_graph_new(node->name, 0);
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *t = hwnas_node_input(graph, node, i);
        TRY(hwnas_graph_add_weight(&operands[i], alone, t->name, t->rank, t->dims, HWNAS_INIT_ZERO,
                                   false));
        alone->tensors[operands[i]].dtype = t->dtype;
    }
    return hwnas_graph_add_node(&output, alone, node->op, node->name, node->attrs, node->n_inputs,
                                operands, false);
}

static dnnl_status_t run_loops(const hwnas_onednn_step *step, const onednn_device *device)
{
    (void)device;
    const hwnas_graph *alone = step->state;
    const hwnas_node *node = &alone->nodes[0];
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    for (size_t i = 0; i < step->n_inputs; i++)
        operands[i] = hwnas_onednn_values(step->inputs[i]);
    node->op->compute(alone, node, operands, hwnas_onednn_values(step->outputs[0]));
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_loops = {
    .name = HWNAS_HOW_PLAIN,
    .compile = compile_loops,
    .run = run_loops,
    .free = free_graph,
};

static hwnas_status compile_reshape(hwnas_onednn_step *step, const onednn_device *device,
                                    const hwnas_graph *graph, const hwnas_node *node)
{
    (void)step, (void)device, (void)graph, (void)node;
    return HWNAS_OK;
}

static dnnl_status_t run_reshape(const hwnas_onednn_step *step, const onednn_device *device)
{
    (void)device;
    const void *from = hwnas_onednn_values(step->inputs[0]);
    void *to = hwnas_onednn_values(step->outputs[0]);
    if (to != from)
        memcpy(to, from, step->output_bytes);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_reshape = {
    .name = "reshape",
    .compile = compile_reshape,
    .run = run_reshape,
    .free = free,
    .in_place = hwnas_onednn_over_first,
};
