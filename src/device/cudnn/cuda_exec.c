/* cuda_exec.c: runs a compiled graph on a GPU.
 *
 * All memory is taken and every kernel loaded before the first run, which then records the whole of
 * it as one CUDA graph; a run replays that. The order on the stream is the order of the steps, so
 * nothing else keeps tensors apart that share memory. */
#include "device/cudnn/cuda_exec.h"

#include <stdlib.h>
#include <string.h>

#include "device/cudnn/live.h"

/* A network's part of the GPU. */
typedef struct cuda_net {
    hwnas_cudnn_launch launch;
    CUgraphExec recorded; /* NULL: a step cannot be recorded, and a run enqueues them one by one */
    CUevent begin, end;
    size_t n_events;
    CUevent *events; /* one before the first step and one behind each, for run_steps() */
} cuda_net;

static const hwnas_cuda_api *api_of(const hwnas_cudnn_net *net)
{
    return hwnas_live_api(net->device->live);
}

void hwnas_cuda_free_exec(hwnas_exec *exec)
{
    hwnas_cudnn_net *net = (hwnas_cudnn_net *)exec;
    cuda_net *n = net->live;
    if (n && hwnas_live_use(net->device->live) == HWNAS_OK) {
        const hwnas_cuda_api *api = api_of(net);
        api->stream_wait(n->launch.stream);
        if (n->recorded)
            api->graph_exec_destroy(n->recorded);
        for (size_t i = 0; i < n->n_events; i++)
            api->event_destroy(n->events[i]);
        if (n->begin)
            api->event_destroy(n->begin);
        if (n->end)
            api->event_destroy(n->end);
        for (int i = 0; i < HWNAS_CUDNN_N_MEMORIES; i++)
            if (n->launch.memories[i])
                api->free((CUdeviceptr)n->launch.memories[i]);
        if (n->launch.workspace)
            api->free((CUdeviceptr)n->launch.workspace);
    }
    if (n)
        free(n->events);
    free(n);
    net->live = NULL;
    hwnas_cudnn_free_exec(exec);
}

static hwnas_status take(char **out, const hwnas_cudnn_net *net, size_t bytes, const char *what)
{
    const hwnas_cuda_api *api = api_of(net);
    CUdeviceptr at = 0;
    size_t left = 0, all = 0;
    if (!bytes)
        return HWNAS_OK;
    const CUresult result = api->alloc(&at, bytes);
    *out = (char *)at;
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return hwnas_cuda_status(api, result, "take memory for", what);
    api->memory_info(&left, &all);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_MEMORY, NULL,
                   "the GPU has no %.1f MiB for the %s; %.1f MiB of %.1f MiB are free",
                   (double)bytes / 0x1p20, what, (double)left / 0x1p20, (double)all / 0x1p20),
        "a smaller batch or f16 takes less; nvidia-smi tells who else is there");
}

static hwnas_status take_memory(cuda_net *n, const hwnas_cudnn_net *net)
{
    static const char *const names[HWNAS_CUDNN_N_MEMORIES] = {
        [HWNAS_CUDNN_WEIGHTS] = "weights",
        [HWNAS_CUDNN_ACTIVATIONS] = "activations",
        [HWNAS_CUDNN_INPUTS] = "inputs",
        [HWNAS_CUDNN_OUTPUTS] = "outputs",
    };
    for (int i = HWNAS_CUDNN_WEIGHTS; i < HWNAS_CUDNN_N_MEMORIES; i++)
        TRY(take(&n->launch.memories[i], net, net->memory_bytes[i], names[i]));
    return take(&n->launch.workspace, net, net->workspace_bytes, "workspace");
}

static hwnas_status upload_weights(const cuda_net *n, const hwnas_cudnn_net *net)
{
    const hwnas_cuda_api *api = api_of(net);
    for (size_t i = 0; i < net->n_tensors; i++) {
        const hwnas_cudnn_tensor *t = &net->tensors[i];
        void *values;
        if (t->root != (int)i || t->memory != HWNAS_CUDNN_WEIGHTS)
            continue;
        TRY(hwnas_try_alloc(&values, t->bytes, t->name));
        hwnas_cudnn_fill(values, net, (int)i);
        CUresult result =
            api->to_device((CUdeviceptr)hwnas_cudnn_address(net, &n->launch, (int)i), values,
                           t->bytes, n->launch.stream);
        if (result == CUDA_SUCCESS)
            result = api->stream_wait(n->launch.stream);
        free(values);
        TRY_CUDA(api, "take the weights", t->name, result);
    }
    return HWNAS_OK;
}

/* Zeros are good whole numbers as well. */
static hwnas_status clear_inputs(const cuda_net *n, const hwnas_cudnn_net *net)
{
    const size_t bytes = net->memory_bytes[HWNAS_CUDNN_INPUTS];
    const CUdeviceptr at = (CUdeviceptr)n->launch.memories[HWNAS_CUDNN_INPUTS];
    return bytes ? hwnas_cuda_status(api_of(net), api_of(net)->fill(at, 0, bytes, n->launch.stream),
                                     "clear", "inputs")
                 : HWNAS_OK;
}

static hwnas_status enqueue(const cuda_net *n, const hwnas_cudnn_net *net)
{
    for (size_t i = 0; i < net->n_steps; i++)
        if (net->steps[i].kind->run)
            TRY(net->steps[i].kind->run(&net->steps[i], net, &n->launch));
    return HWNAS_OK;
}

/* A step that cannot be recorded ends the recording, but not the network: it is enqueued in every
 * run. */
static hwnas_status record(cuda_net *n, const hwnas_cudnn_net *net)
{
    const hwnas_cuda_api *api = api_of(net);
    CUgraph graph = NULL;
    TRY_CUDA(api, "record", net->graph->name,
             api->begin_capture(n->launch.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const hwnas_status status = enqueue(n, net);
    CUresult result = api->end_capture(n->launch.stream, &graph);
    if (status == HWNAS_E_CRASHED || status == HWNAS_E_MEMORY)
        return status;
    if (status == HWNAS_OK && result == CUDA_SUCCESS)
        result = api->graph_instantiate(&n->recorded, graph, 0);
    if (graph)
        api->graph_destroy(graph);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return hwnas_cuda_status(api, result, "record", net->graph->name);
    if (status != HWNAS_OK || result != CUDA_SUCCESS) {
        n->recorded = NULL;
        hwnas_error_clear();
    }
    return HWNAS_OK;
}

static hwnas_status make_events(cuda_net *n, const hwnas_cudnn_net *net)
{
    const hwnas_cuda_api *api = api_of(net);
    TRY_CUDA(api, "make", "event", api->event_create(&n->begin, CU_EVENT_DEFAULT));
    TRY_CUDA(api, "make", "event", api->event_create(&n->end, CU_EVENT_DEFAULT));
    n->events = hwnas_alloc((net->n_about + 1) * sizeof *n->events);
    for (; n->n_events <= net->n_about; n->n_events++)
        TRY_CUDA(api, "make", "event",
                 api->event_create(&n->events[n->n_events], CU_EVENT_DEFAULT));
    return HWNAS_OK;
}

/* The first run is not recorded, since libraries load what they need in it. */
static hwnas_status go_live(hwnas_cudnn_net *net)
{
    hwnas_live *live = net->device->live;
    cuda_net *n = net->live = hwnas_alloc(sizeof *n);
    TRY(hwnas_live_use(live));
    n->launch.stream = hwnas_live_stream(live);
    n->launch.handle = hwnas_live_handle(live);
    TRY(take_memory(n, net));
    TRY(upload_weights(n, net));
    for (size_t i = 0; i < net->n_steps; i++)
        if (net->steps[i].kind->load)
            TRY(net->steps[i].kind->load(&net->steps[i], net, &n->launch));
    TRY(clear_inputs(n, net));
    TRY(enqueue(n, net));
    TRY_CUDA(api_of(net), "run", net->graph->name, api_of(net)->stream_wait(n->launch.stream));
    TRY(make_events(n, net));
    return record(n, net);
}

hwnas_status hwnas_cuda_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                const hwnas_exec_options *options)
{
    hwnas_exec *exec = NULL;
    TRY(hwnas_live_use(((hwnas_cuda_device *)device)->live));
    TRY(hwnas_cudnn_compile(&exec, device, graph, options));
    hwnas_status status = go_live((hwnas_cudnn_net *)exec);
    if (status == HWNAS_OK)
        *out = exec;
    else
        hwnas_cuda_free_exec(exec);
    return status;
}

static hwnas_status start(const cuda_net *n, const hwnas_cudnn_net *net)
{
    if (!n->recorded)
        return enqueue(n, net);
    return hwnas_cuda_status(api_of(net), api_of(net)->graph_launch(n->recorded, n->launch.stream),
                             "run", net->graph->name);
}

static hwnas_status give_inputs(const cuda_net *n, const hwnas_cudnn_net *net,
                                const float *const *inputs)
{
    for (size_t i = 0; i < net->graph->n_inputs; i++) {
        const hwnas_cudnn_tensor *t = &net->tensors[net->inputs[i]];
        const CUdeviceptr to =
            (CUdeviceptr)hwnas_cudnn_address(net, &n->launch, net->inputs[i]);
        TRY_CUDA(api_of(net), "take the input", t->name,
                 api_of(net)->to_device(to, inputs[i], t->bytes, n->launch.stream));
    }
    return HWNAS_OK;
}

static hwnas_status fetch_outputs(const cuda_net *n, const hwnas_cudnn_net *net,
                                  float *const *outputs)
{
    const hwnas_cuda_api *api = api_of(net);
    for (size_t i = 0; i < net->graph->n_outputs; i++) {
        const hwnas_cudnn_tensor *t = &net->tensors[net->outputs[i]];
        const CUdeviceptr from =
            (CUdeviceptr)hwnas_cudnn_address(net, &n->launch, net->outputs[i]);
        TRY_CUDA(api, "give the output", t->name,
                 api->to_host(outputs[i], from, (size_t)hwnas_cudnn_count(t) * sizeof(float),
                              n->launch.stream));
    }
    TRY_CUDA(api, "run", net->graph->name, api->stream_wait(n->launch.stream));
    return HWNAS_OK;
}

hwnas_status hwnas_cuda_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    const cuda_net *n = net->live;
    TRY(hwnas_live_use(net->device->live));
    TRY(give_inputs(n, net, inputs));
    TRY(start(n, net));
    return fetch_outputs(n, net, outputs);
}

static hwnas_status seconds_between(double *out, const hwnas_cudnn_net *net, CUevent begin,
                                    CUevent end)
{
    float milliseconds = 0;
    TRY_CUDA(api_of(net), "time", net->graph->name,
             api_of(net)->event_milliseconds(&milliseconds, begin, end));
    *out = milliseconds * 1e-3;
    return HWNAS_OK;
}

hwnas_status hwnas_cuda_run_steps(hwnas_exec *exec, const float *const *inputs,
                                  float *const *outputs, double *seconds)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    const cuda_net *n = net->live;
    const hwnas_cuda_api *api = api_of(net);
    size_t at = 0;
    TRY(hwnas_live_use(net->device->live));
    TRY(give_inputs(n, net, inputs));
    TRY_CUDA(api, "time", net->graph->name, api->event_record(n->events[0], n->launch.stream));
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_step *step = &net->steps[i];
        if (!step->kind->run)
            continue;
        TRY(step->kind->run(step, net, &n->launch));
        TRY_CUDA(api, "time", step->name, api->event_record(n->events[++at], n->launch.stream));
    }
    TRY(fetch_outputs(n, net, outputs));
    for (size_t i = 0; i < net->n_about; i++)
        TRY(seconds_between(&seconds[i], net, n->events[i], n->events[i + 1]));
    return HWNAS_OK;
}

hwnas_status hwnas_cuda_time(hwnas_exec *exec, int runs, double *seconds)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    const cuda_net *n = net->live;
    const hwnas_cuda_api *api = api_of(net);
    TRY(hwnas_live_use(net->device->live));
    TRY_CUDA(api, "time", net->graph->name, api->event_record(n->begin, n->launch.stream));
    for (int i = 0; i < runs; i++)
        TRY(start(n, net));
    TRY_CUDA(api, "time", net->graph->name, api->event_record(n->end, n->launch.stream));
    TRY_CUDA(api, "run", net->graph->name, api->event_wait(n->end));
    return seconds_between(seconds, net, n->begin, n->end);
}

const char *hwnas_cuda_slowed(hwnas_exec *exec)
{
    return hwnas_nvml_slowed(hwnas_live_nvml(((hwnas_cudnn_net *)exec)->device->live));
}

double hwnas_cuda_joules(hwnas_exec *exec)
{
    return hwnas_nvml_joules(hwnas_live_nvml(((hwnas_cudnn_net *)exec)->device->live));
}
