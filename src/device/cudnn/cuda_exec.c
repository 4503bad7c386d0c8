/* cuda_exec.c: runs a compiled graph on a GPU.
 *
 * All memory is taken and every kernel loaded before the first run, which then records the whole of
 * it as one CUDA graph; a run replays that. The order on the stream is the order of the steps, so
 * nothing else keeps tensors apart that share memory. */
#include "device/cudnn/cuda_exec.h"

#include <stdlib.h>
#include <string.h>

#include "device/cudnn/live.h"
#include "device/cudnn/plans.h"

enum { MOST_TIMED = HWNAS_MOST_STARTED };

/* A network's part of the GPU. */
typedef struct cuda_net {
    hwnas_cudnn_launch launch;
    CUgraphExec recorded; /* NULL: a step cannot be recorded, and a run enqueues them one by one */
    CUgraphExec
        marked; /* the same with events between the steps; NULL: not asked for, or as above */
    struct {
        CUevent begin, end;
    } timed[MOST_TIMED]; /* what start() and finish() are about, in turns */
    size_t n_started, n_finished;
    char *eviction; /* memory that is written to have all else out of the cache; NULL: not yet */
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
        if (n->marked)
            api->graph_exec_destroy(n->marked);
        for (size_t i = 0; i < n->n_events; i++)
            api->event_destroy(n->events[i]);
        for (int i = 0; i < MOST_TIMED; i++) {
            if (n->timed[i].begin)
                api->event_destroy(n->timed[i].begin);
            if (n->timed[i].end)
                api->event_destroy(n->timed[i].end);
        }
        for (int i = 0; i < HWNAS_CUDNN_N_MEMORIES; i++)
            if (n->launch.memories[i])
                api->free((CUdeviceptr)n->launch.memories[i]);
        if (n->eviction)
            api->free((CUdeviceptr)n->eviction);
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
        CUresult result = api->to_device((CUdeviceptr)hwnas_cudnn_address(net, &n->launch, (int)i),
                                         values, t->bytes, n->launch.stream);
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

/* With `mark` an event before the first step and behind each. */
static hwnas_status enqueue(const cuda_net *n, const hwnas_cudnn_net *net,
                            hwnas_status (*mark)(const hwnas_cudnn_net *, CUevent))
{
    size_t at = 0;
    if (mark)
        TRY(mark(net, n->events[at]));
    for (size_t i = 0; i < net->n_steps; i++) {
        if (!net->steps[i].kind->run)
            continue;
        TRY(net->steps[i].kind->run(&net->steps[i], net, &n->launch));
        if (mark)
            TRY(mark(net, n->events[++at]));
    }
    return HWNAS_OK;
}

static hwnas_status mark(const hwnas_cudnn_net *net, CUevent event)
{
    const hwnas_cuda_api *api = api_of(net);
    const cuda_net *n = net->live;
    return hwnas_cuda_status(api, api->event_record(event, n->launch.stream), "time",
                             net->graph->name);
}

/* As a node of the graph that is being recorded. */
static hwnas_status mark_node(const hwnas_cudnn_net *net, CUevent event)
{
    const hwnas_cuda_api *api = api_of(net);
    const cuda_net *n = net->live;
    return hwnas_cuda_status(
        api, api->event_record_node(event, n->launch.stream, CU_EVENT_RECORD_EXTERNAL), "time",
        net->graph->name);
}

/* A step that cannot be recorded ends the recording, but not the network: it is enqueued in every
 * run. */
static hwnas_status record(CUgraphExec *out, cuda_net *n, const hwnas_cudnn_net *net,
                           hwnas_status (*marker)(const hwnas_cudnn_net *, CUevent))
{
    const hwnas_cuda_api *api = api_of(net);
    CUgraph graph = NULL;
    TRY_CUDA(api, "record", net->graph->name,
             api->begin_capture(n->launch.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const hwnas_status status = enqueue(n, net, marker);
    CUresult result = api->end_capture(n->launch.stream, &graph);
    if (status == HWNAS_OK && result == CUDA_SUCCESS)
        result = api->graph_instantiate(out, graph, 0);
    if (graph)
        api->graph_destroy(graph);
    if (status == HWNAS_E_CRASHED || status == HWNAS_E_MEMORY)
        return status;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return hwnas_cuda_status(api, result, "record", net->graph->name);
    if (status == HWNAS_OK && result == CUDA_SUCCESS) /* else the first replay would do it */
        return hwnas_cuda_status(api, api->graph_upload(*out, n->launch.stream), "take the graph",
                                 net->graph->name);
    *out = NULL;
    hwnas_error_clear();
    return HWNAS_OK;
}

static hwnas_status make_events(cuda_net *n, const hwnas_cudnn_net *net)
{
    const hwnas_cuda_api *api = api_of(net);
    for (int i = 0; i < MOST_TIMED; i++) {
        TRY_CUDA(api, "make", "event", api->event_create(&n->timed[i].begin, CU_EVENT_DEFAULT));
        TRY_CUDA(api, "make", "event", api->event_create(&n->timed[i].end, CU_EVENT_DEFAULT));
    }
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
    TRY(enqueue(n, net, NULL));
    TRY_CUDA(api_of(net), "run", net->graph->name, api_of(net)->stream_wait(n->launch.stream));
    TRY(make_events(n, net));
    return record(&n->recorded, n, net, NULL);
}

hwnas_status hwnas_cuda_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                const hwnas_exec_options *options)
{
    hwnas_cuda_device *gpu = (hwnas_cuda_device *)device;
    hwnas_exec *exec = NULL;
    hwnas_status status;
    size_t n_refused;
    TRY(hwnas_live_use(gpu->live));
    gpu->compiling++;
    /* Each time another plan has turned out not to run, so it comes to an end. */
    do {
        n_refused = hwnas_cudnn_plans_refused(gpu->plans);
        hwnas_error_clear();
        TRY(hwnas_cudnn_compile(&exec, device, graph, options));
        hwnas_cuda_tell(gpu, "running once"); /* libraries load into the GPU what they need */
        status = go_live((hwnas_cudnn_net *)exec);
        hwnas_cuda_told(gpu);
        if (status == HWNAS_OK)
            *out = exec;
        else
            hwnas_cuda_free_exec(exec);
    } while (status == HWNAS_E_LIBRARY && hwnas_cudnn_plans_refused(gpu->plans) > n_refused);
    return status;
}

static hwnas_status start(const cuda_net *n, const hwnas_cudnn_net *net)
{
    if (!n->recorded)
        return enqueue(n, net, NULL);
    return hwnas_cuda_status(api_of(net), api_of(net)->graph_launch(n->recorded, n->launch.stream),
                             "run", net->graph->name);
}

static hwnas_status give_inputs(const cuda_net *n, const hwnas_cudnn_net *net,
                                const float *const *inputs)
{
    for (size_t i = 0; i < net->graph->n_inputs; i++) {
        const hwnas_cudnn_tensor *t = &net->tensors[net->inputs[i]];
        const CUdeviceptr to = (CUdeviceptr)hwnas_cudnn_address(net, &n->launch, net->inputs[i]);
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
        const CUdeviceptr from = (CUdeviceptr)hwnas_cudnn_address(net, &n->launch, net->outputs[i]);
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

/* Enqueued one by one, steps would wait for the host; so they are replayed with their events. */
hwnas_status hwnas_cuda_run_steps(hwnas_exec *exec, const float *const *inputs,
                                  float *const *outputs, double *seconds)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    cuda_net *n = net->live;
    TRY(hwnas_live_use(net->device->live));
    if (n->recorded && !n->marked)
        TRY(record(&n->marked, n, net, mark_node));
    TRY(give_inputs(n, net, inputs));
    if (n->marked)
        TRY_CUDA(api_of(net), "run", net->graph->name,
                 api_of(net)->graph_launch(n->marked, n->launch.stream));
    else
        TRY(enqueue(n, net, mark));
    TRY(fetch_outputs(n, net, outputs));
    for (size_t i = 0; i < net->n_about; i++)
        TRY(seconds_between(&seconds[i], net, n->events[i], n->events[i + 1]));
    return HWNAS_OK;
}

hwnas_status hwnas_cuda_start(hwnas_exec *exec, int runs)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    cuda_net *n = net->live;
    const size_t at = n->n_started % MOST_TIMED;
    TRY(hwnas_live_use(net->device->live));
    TRY(mark(net, n->timed[at].begin));
    for (int i = 0; i < runs; i++)
        TRY(start(n, net));
    TRY(mark(net, n->timed[at].end));
    n->n_started++;
    return HWNAS_OK;
}

hwnas_status hwnas_cuda_finish(hwnas_exec *exec, double *seconds)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    cuda_net *n = net->live;
    const size_t at = n->n_finished % MOST_TIMED;
    TRY(hwnas_live_use(net->device->live));
    TRY_CUDA(api_of(net), "run", net->graph->name, api_of(net)->event_wait(n->timed[at].end));
    n->n_finished++;
    return seconds_between(seconds, net, n->timed[at].begin, n->timed[at].end);
}

/* A GPU that has nothing to do reaches the first event at once, and then waits for the host to
 * launch the first run. Of several runs that wait is no part: one more goes before them. */
hwnas_status hwnas_cuda_time(hwnas_exec *exec, int runs, double *seconds)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    if (runs > 1) {
        TRY(hwnas_live_use(net->device->live));
        TRY(start(net->live, net));
    }
    TRY(hwnas_cuda_start(exec, runs));
    return hwnas_cuda_finish(exec, seconds);
}

/* The second-level cache; the first is emptied by each launch. */
hwnas_status hwnas_cuda_evict(hwnas_exec *exec)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    cuda_net *n = net->live;
    const size_t bytes = 2 * net->device->gpu.cache_bytes;
    if (!bytes)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "the driver does not tell the size of the cache");
    TRY(hwnas_live_use(net->device->live));
    if (!n->eviction)
        TRY(take(&n->eviction, net, bytes, "emptying of the cache"));
    return hwnas_cuda_status(
        api_of(net), api_of(net)->fill((CUdeviceptr)n->eviction, 0, bytes, n->launch.stream),
        "empty", "cache");
}

void hwnas_cuda_state(hwnas_exec *exec, hwnas_device_state *out)
{
    const hwnas_cudnn_net *net = (const hwnas_cudnn_net *)exec;
    const hwnas_nvml *nvml = hwnas_live_nvml(net->device->live);
    const cuda_net *n = net->live;
    *out = (hwnas_device_state){.hertz = hwnas_nvml_hertz(nvml),
                                .throttles = hwnas_nvml_throttles(nvml),
                                .is_recorded = n->recorded != NULL};
}

double hwnas_cuda_joules(hwnas_exec *exec)
{
    return hwnas_nvml_joules(hwnas_live_nvml(((hwnas_cudnn_net *)exec)->device->live));
}
