/* device.c: a device `naive`: runs the nodes of a graph one after another, relu and add by loops of
 * its own, everything else by the library's plain ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

typedef struct naive_exec {
    hwnas_exec base;
    hwnas_graph *graph; /* a copy: the caller may free its own */
    float **buffers;    /* by tensor; those of the graph's inputs are the caller's */
    size_t bytes;
} naive_exec;

static hwnas_status naive_open(hwnas_device **out, const char *argument,
                               const hwnas_device_options *options)
{
    (void)options; /* one thread, however many there may be */
    if (*argument)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "naive takes no '%.40s'", argument),
                          "write 'naive'");
    hwnas_device *device = calloc(1, sizeof *device);
    if (!device)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for a device");
    device->ops = &naive_device;
    *out = device;
    return HWNAS_OK;
}

static void naive_describe(const hwnas_device *device, hwnas_device_info *out)
{
    (void)device;
    snprintf(out->name, sizeof out->name, "an example");
    snprintf(out->library, sizeof out->library, "naive 1");
    out->threads = 1;
    out->native = 1U << HWNAS_F32;
    out->computes = true;
}

static void naive_close(hwnas_device *device)
{
    free(device);
}

static void naive_free(hwnas_exec *base)
{
    naive_exec *exec = (naive_exec *)base;
    for (size_t i = 0; exec->buffers && i < exec->graph->n_tensors; i++)
        if (exec->graph->tensors[i].kind != HWNAS_TENSOR_INPUT)
            free(exec->buffers[i]);
    free(exec->buffers);
    hwnas_graph_free(exec->graph);
    free(exec);
}

static hwnas_status make_buffers(naive_exec *exec)
{
    exec->buffers = calloc(exec->graph->n_tensors, sizeof *exec->buffers);
    for (size_t i = 0; exec->buffers && i < exec->graph->n_tensors; i++) {
        const hwnas_tensor *tensor = &exec->graph->tensors[i];
        if (tensor->kind == HWNAS_TENSOR_INPUT)
            continue;
        exec->buffers[i] = malloc((size_t)hwnas_tensor_bytes(tensor) + 1);
        if (!exec->buffers[i])
            return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for '%s'", tensor->name);
        if (tensor->kind == HWNAS_TENSOR_WEIGHT)
            hwnas_tensor_fill(tensor, exec->buffers[i]);
        exec->bytes += (size_t)hwnas_tensor_bytes(tensor);
    }
    return exec->buffers ? HWNAS_OK : hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for buffers");
}

static hwnas_status naive_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                  const hwnas_exec_options *options)
{
    (void)options; /* fp32 alone */
    naive_exec *exec = calloc(1, sizeof *exec);
    if (!exec)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for an executable");
    exec->base.ops = device->ops;
    hwnas_status status = hwnas_graph_copy(&exec->graph, graph);
    if (status == HWNAS_OK)
        status = make_buffers(exec);
    if (status == HWNAS_OK)
        *out = &exec->base;
    else
        naive_free(&exec->base);
    return status;
}

static void run_node(const naive_exec *exec, const hwnas_node *node)
{
    const char *op = hwnas_node_operator(node);
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    float *out = exec->buffers[node->output];
    const int64_t n = hwnas_tensor_count(&exec->graph->tensors[node->output]);
    for (int i = 0; i < node->n_inputs; i++)
        operands[i] = exec->buffers[node->inputs[i]];
    const hwnas_tensor *inputs = exec->graph->tensors;
    if (!strcmp(op, "relu"))
        for (int64_t i = 0; i < n; i++)
            out[i] = operands[0][i] > 0 ? operands[0][i] : 0;
    else if (!strcmp(op, "add") && node->n_inputs == 2 &&
             hwnas_tensor_count(&inputs[node->inputs[0]]) == n &&
             hwnas_tensor_count(&inputs[node->inputs[1]]) == n)
        for (int64_t i = 0; i < n; i++)
            out[i] = operands[0][i] + operands[1][i];
    else
        hwnas_node_compute(exec->graph, node, operands, out);
}

static hwnas_status naive_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    naive_exec *exec = (naive_exec *)base;
    const hwnas_graph *graph = exec->graph;
    for (size_t i = 0; i < graph->n_inputs; i++)
        exec->buffers[graph->inputs[i]] = (float *)inputs[i]; /* only read */
    for (size_t i = 0; i < graph->n_nodes; i++)
        run_node(exec, &graph->nodes[i]);
    for (size_t i = 0; i < graph->n_outputs; i++)
        memcpy(outputs[i], exec->buffers[graph->outputs[i]],
               (size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]));
    return HWNAS_OK;
}

static size_t naive_memory(const hwnas_exec *base)
{
    return ((const naive_exec *)base)->bytes;
}

const hwnas_device_ops naive_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "naive",
    .help = "an example: node by node",
    .open = naive_open,
    .describe = naive_describe,
    .close = naive_close,
    .precisions = 1U << HWNAS_F32,
    .compile = naive_compile,
    .run = naive_run,
    .free_exec = naive_free,
    .memory = naive_memory,
};
