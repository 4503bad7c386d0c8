/* ref.c: the truth. Runs the nodes one after another through each operator's own plain loops, one
 * thread, a buffer for each tensor; slow, and short enough to be believed. */
#include "device/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "graph/op.h"
#include "graph/rewrite.h"

typedef struct ref_exec {
    hwnas_exec base;
    hwnas_graph *graph;
    float **buffers; /* by tensor; a graph input's is the caller's during a run */
    size_t bytes;
    hwnas_exec_step *steps; /* one for each node */
    int *numbers;           /* of the nodes: what the steps point to */
} ref_exec;

static hwnas_status ref_open(hwnas_device **out, const char *argument,
                             const hwnas_device_options *options)
{
    (void)options;
    TRY(hwnas_device_takes_no_argument("ref", argument));
    *out = hwnas_alloc(sizeof **out);
    return HWNAS_OK;
}

static void ref_describe(const hwnas_device *device, hwnas_device_info *out)
{
    (void)device;
    *out = (hwnas_device_info){.library = "plain C",
                               .isa = "as compiled",
                               .threads = 1,
                               .native = 1U << HWNAS_F32,
                               .computes = true};
    hwnas_device_cpu_name(out->name, sizeof out->name);
}

static void ref_close(hwnas_device *device)
{
    free(device);
}

static void ref_free_exec(hwnas_exec *base)
{
    ref_exec *exec = (ref_exec *)base;
    if (!exec)
        return;
    for (size_t i = 0; exec->graph && i < exec->graph->n_tensors; i++)
        if (exec->graph->tensors[i].kind != HWNAS_TENSOR_INPUT)
            free(exec->buffers[i]);
    free(exec->buffers);
    free(exec->steps);
    free(exec->numbers);
    hwnas_graph_free(exec->graph);
    free(exec);
}

static hwnas_status ref_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                const hwnas_exec_options *options)
{
    (void)options; /* fp32 alone */
    hwnas_status status = HWNAS_OK;
    ref_exec *exec = hwnas_alloc(sizeof *exec);
    exec->base.ops = device->ops;
    TRY_OUT(hwnas_graph_copy(&exec->graph, graph));
    graph = exec->graph;
    exec->buffers = hwnas_alloc(graph->n_tensors * sizeof *exec->buffers);
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const hwnas_tensor *tensor = &graph->tensors[i];
        if (tensor->kind == HWNAS_TENSOR_INPUT)
            continue;
        const size_t bytes = (size_t)hwnas_tensor_bytes(tensor);
        void *buffer = NULL;
        TRY_OUT(hwnas_try_alloc(&buffer, bytes, tensor->name));
        exec->buffers[i] = buffer;
        exec->bytes += bytes;
        if (tensor->kind == HWNAS_TENSOR_WEIGHT)
            hwnas_tensor_fill(tensor, exec->buffers[i]);
    }
    exec->steps = hwnas_alloc(graph->n_nodes * sizeof *exec->steps);
    exec->numbers = hwnas_alloc(graph->n_nodes * sizeof *exec->numbers);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        exec->numbers[i] = (int)i;
        exec->steps[i] = (hwnas_exec_step){1, &exec->numbers[i], "plain loops"};
    }
    *out = &exec->base;
    exec = NULL;
out:
    ref_free_exec((hwnas_exec *)exec);
    return status;
}

/* `seconds` NULL: nobody wants to know. */
static hwnas_status ref_run_steps(hwnas_exec *base, const float *const *inputs,
                                  float *const *outputs, double *seconds)
{
    ref_exec *exec = (ref_exec *)base;
    const hwnas_graph *graph = exec->graph;
    for (size_t i = 0; i < graph->n_inputs; i++)
        exec->buffers[graph->inputs[i]] = (float *)inputs[i]; /* no operator writes to its input */
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_node *node = &graph->nodes[i];
        const float *operands[HWNAS_MAX_NODE_INPUTS];
        const double start = seconds ? hwnas_now() : 0;
        for (int k = 0; k < node->n_inputs; k++)
            operands[k] = exec->buffers[node->inputs[k]];
        node->op->compute(graph, node, operands, exec->buffers[node->output]);
        if (seconds)
            seconds[i] = hwnas_now() - start;
    }
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int tensor = graph->outputs[i];
        memcpy(outputs[i], exec->buffers[tensor],
               (size_t)hwnas_tensor_bytes(&graph->tensors[tensor]));
    }
    return HWNAS_OK;
}

static hwnas_status ref_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    return ref_run_steps(base, inputs, outputs, NULL);
}

static size_t ref_steps(const hwnas_exec *base, const hwnas_exec_step **out)
{
    const ref_exec *exec = (const ref_exec *)base;
    *out = exec->steps;
    return exec->graph->n_nodes;
}

static size_t ref_memory(const hwnas_exec *base)
{
    return ((const ref_exec *)base)->bytes;
}

const hwnas_device_ops hwnas_ref_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "ref",
    .help = "plain C loops: slow, and the truth that other devices are held to",
    .open = ref_open,
    .describe = ref_describe,
    .close = ref_close,
    .precisions = 1U << HWNAS_F32,
    .compile = ref_compile,
    .run = ref_run,
    .free_exec = ref_free_exec,
    .memory = ref_memory,
    .steps = ref_steps,
    .run_steps = ref_run_steps,
};
