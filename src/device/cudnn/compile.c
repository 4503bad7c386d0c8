/* compile.c: from a graph to an executable: cut, made, placed. */
#include <stdlib.h>

#include "device/cudnn/steps.h"

hwnas_status hwnas_cudnn_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                 const hwnas_exec_options *options)
{
    (void)out;
    (void)device;
    (void)options;
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' is not cut yet", graph->name);
}

void hwnas_cudnn_free_exec(hwnas_exec *exec)
{
    hwnas_cudnn_net *net = (hwnas_cudnn_net *)exec;
    for (size_t i = 0; i < net->n_steps; i++)
        net->steps[i].kind->free(&net->steps[i]);
    hwnas_graph_free(net->graph);
    hwnas_arena_free(net->arena);
    free(net);
}

size_t hwnas_cudnn_held(const hwnas_exec *exec)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    size_t bytes = net->workspace_bytes;
    for (int i = 0; i < HWNAS_CUDNN_N_MEMORIES; i++)
        bytes += net->memory_bytes[i];
    return bytes;
}

size_t hwnas_cudnn_steps(const hwnas_exec *exec, const hwnas_exec_step **out)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    *out = net->about;
    return net->n_about;
}
