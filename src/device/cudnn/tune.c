/* tune.c: how long a plan takes on the GPU that is here, on memory of its own. */
#include "device/cudnn/tune.h"

#include <math.h>

#include "device/cudnn/engine.h"
#include "device/cudnn/live.h"

/* Every byte of what is read: small numbers in each type, and no zeros, with which a GPU draws less
 * power. */
enum { RUNS = 5, ALIGN = 256, BYTE = 0x3c };

static size_t bytes_of(const hwnas_cudnn_port *port)
{
    int64_t last = 0;
    for (int i = 0; i < port->rank; i++)
        last += (port->dims[i] - 1) * port->strides[i];
    const size_t bytes = ((size_t)last + 1) * hwnas_cudnn_type_size(port->type);
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Seconds of a run, after one that is not counted. */
static hwnas_status time_runs(double *out, const hwnas_live *live, cudnnBackendDescriptor_t plan,
                              cudnnBackendDescriptor_t pack, const CUevent *events)
{
    const hwnas_cuda_api *api = hwnas_live_api(live);
    const hwnas_cudnn_run_api *cudnn = hwnas_live_cudnn(live);
    float milliseconds = 0;
    for (int i = 0; i <= RUNS; i++) {
        if (i == 1)
            TRY_CUDA(api, "time", "plan", api->event_record(events[0], hwnas_live_stream(live)));
        TRY(hwnas_cudnn_run_status(live, cudnn->execute(hwnas_live_handle(live), plan, pack),
                                   "time", "plan"));
    }
    TRY_CUDA(api, "time", "plan", api->event_record(events[1], hwnas_live_stream(live)));
    TRY_CUDA(api, "time", "plan", api->event_wait(events[1]));
    TRY_CUDA(api, "time", "plan", api->event_milliseconds(&milliseconds, events[0], events[1]));
    *out = milliseconds * 1e-3 / RUNS;
    return HWNAS_OK;
}

static hwnas_status time_on(double *out, const hwnas_cuda_device *device,
                            const hwnas_cudnn_operation *o, cudnnBackendDescriptor_t plan,
                            CUdeviceptr memory, size_t bytes)
{
    const hwnas_cuda_api *api = hwnas_live_api(device->live);
    hwnas_status status = HWNAS_OK;
    char *places[HWNAS_CUDNN_MAX_PORTS] = {NULL}, *at = (char *)memory;
    CUevent events[2] = {NULL};
    cudnnBackendDescriptor_t pack = NULL;
    for (int i = 0; i < o->n_ports; i++)
        if (o->ports[i].kind == HWNAS_CUDNN_PORT_MEMORY) {
            places[i] = at;
            at += bytes_of(&o->ports[i]);
        }
    TRY_OUT(hwnas_cudnn_run_status(
        device->live, hwnas_cudnn_pack(&pack, device->cudnn, o, places, at), "time", "plan"));
    TRY_CUDA_OUT(api, "time", "plan",
                 api->fill(memory, BYTE, bytes, hwnas_live_stream(device->live)));
    for (int i = 0; i < 2; i++)
        TRY_CUDA_OUT(api, "make", "event", api->event_create(&events[i], CU_EVENT_DEFAULT));
    TRY_OUT(time_runs(out, device->live, plan, pack, events));
out:
    for (int i = 0; i < 2; i++)
        if (events[i])
            api->event_destroy(events[i]);
    if (pack)
        device->cudnn->destroy(pack);
    return status;
}

double hwnas_cuda_time_plan(hwnas_cuda_device *device, const hwnas_cudnn_operation *o,
                            cudnnBackendDescriptor_t plan, size_t workspace)
{
    const hwnas_cuda_api *api = hwnas_live_api(device->live);
    CUdeviceptr memory = 0;
    size_t bytes = workspace;
    double seconds = INFINITY;
    for (int i = 0; i < o->n_ports; i++)
        if (o->ports[i].kind == HWNAS_CUDNN_PORT_MEMORY)
            bytes += bytes_of(&o->ports[i]);
    hwnas_status status =
        hwnas_cuda_status(api, api->alloc(&memory, bytes), "take memory for", "plan");
    if (status == HWNAS_OK) {
        status = time_on(&seconds, device, o, plan, memory, bytes);
        api->stream_wait(hwnas_live_stream(device->live));
        api->free(memory);
    }
    if (status != HWNAS_OK)
        hwnas_error_clear(); /* a run will tell, if that is how it is */
    return seconds;
}
