/* cuda.c: cuda:N, an NVIDIA GPU of this machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cudnn/cudnn_int8.h"
#include "device/cudnn/cuda_exec.h"
#include "device/cudnn/engine.h"
#include "device/cudnn/live.h"
#include "device/cudnn/tune.h"
#include "device/module.h"

/* Behind the colon: "0", "1:tune". */
typedef struct spelling {
    int ordinal;
    bool tunes; /* times the first engines of each plan */
    bool owns;  /* kernels of our own alone, no cuDNN */
    bool is_quick; /* kernels that serve all sizes */
} spelling;

static hwnas_status read_spelling(spelling *out, const char *argument)
{
    static const char *const words[] = {"tune", "own", HWNAS_CUDA_QUICK};
    bool *const flags[] = {&out->tunes, &out->owns, &out->is_quick};
    char *end = (char *)argument;
    const long ordinal = *argument ? strtol(argument, &end, 10) : 0;
    bool is_right = ordinal >= 0 && ordinal < 1024 && (end > argument || !*argument);
    *out = (spelling){.ordinal = (int)ordinal};
    while (is_right && *end == ':') {
        const size_t n = strcspn(++end, ":");
        is_right = false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i]) == n && !strncmp(words[i], end, n))
                is_right = *flags[i] = true;
        end += n;
    }
    const bool contradicts = out->is_quick && (out->tunes || out->owns);
    if (is_right && !*end && !contradicts)
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "there is no GPU 'cuda:%s'", argument),
        "write cuda:0, or cuda:0:quick for plans that are made sooner, or cuda:0:tune to time "
        "cuDNN's engines, or cuda:0:own for our own kernels alone");
}

/* The GPU as cuDNN sees it: what plans are made for. */
static hwnas_status ask_properties(hwnas_cuda_device *device, int ordinal)
{
    const hwnas_cudnn_api *cudnn = device->cudnn;
    const int32_t number = ordinal;
    cudnnStatus_t result = cudnn->create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device->properties);
    if (result == CUDNN_STATUS_SUCCESS)
        result = cudnn->set(device->properties, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32,
                            1, &number);
    if (result == CUDNN_STATUS_SUCCESS)
        result = cudnn->finalize(device->properties);
    return hwnas_cudnn_run_status(device->live, result, "describe", device->gpu.name);
}

static hwnas_status find(hwnas_cuda_device *device, const char *argument)
{
    spelling s = {0};
    hwnas_live *live = NULL;
    TRY(read_spelling(&s, argument));
    device->tunes = s.tunes && !s.owns;
    device->is_quick = s.is_quick;
    device->time_plan = hwnas_cuda_time_plan;
    TRY(hwnas_driver_open(&device->driver, false));
    if (!s.owns)
        TRY(hwnas_cudnn_open(&device->cudnn));
    TRY(hwnas_live_open(&live, &device->gpu, s.ordinal, !s.owns));
    device->live = live;
    return s.owns ? HWNAS_OK : ask_properties(device, s.ordinal);
}

static int count_gpus(void)
{
    const hwnas_cuda_api *api;
    int n = 0;
    if (hwnas_cuda_open(&api) != HWNAS_OK)
        hwnas_error_clear();
    else if (api->device_count(&n) != CUDA_SUCCESS)
        n = 0;
    return n;
}

static hwnas_status cuda_open(hwnas_device **out, const char *argument,
                              const hwnas_device_options *options)
{
    (void)options;
    return hwnas_cuda_device_open(out, &hwnas_cuda_ops, find, argument);
}

static void cuda_describe(const hwnas_device *base, hwnas_device_info *out)
{
    const hwnas_cuda_device *device = (const hwnas_cuda_device *)base;
    int driver = 0;
    hwnas_live_api(device->live)->driver_version(&driver);
    *out =
        (hwnas_device_info){.threads = 1,
                            .computes = true,
                            .native = hwnas_cudnn_native(device),
                            .memory_bytes = (double)device->gpu.memory_bytes,
                            .cache_bytes = (double)device->gpu.cache_bytes,
                            .has_energy = !isnan(hwnas_nvml_joules(hwnas_live_nvml(device->live)))};
    snprintf(out->name, sizeof out->name, "%s", device->gpu.name);
    snprintf(out->isa, sizeof out->isa, "sm_%d", device->gpu.sm);
    if (device->cudnn) {
        const int n = hwnas_cudnn_tell_version(out->library, sizeof out->library, device);
        snprintf(out->library + n, sizeof out->library - (size_t)n, ", driver for CUDA %d.%d",
                 driver / 1000, driver / 10 % 100);
    } else {
        snprintf(out->library, sizeof out->library, "own kernels, driver for CUDA %d.%d",
                 driver / 1000, driver / 10 % 100);
    }
}

static hwnas_status cuda_quantize(hwnas_graph **out, int **origin, hwnas_device *device,
                                  const hwnas_graph *graph, const hwnas_exec_options *options)
{
    return hwnas_cudnn_quantize(out, origin, (hwnas_cuda_device *)device, graph, options);
}

/* The libraries load into the context that is this thread's, and what they do there is no part of a
 * recording that another thread has begun: those are of their thread alone. */
static void cuda_prepare(hwnas_device *base, const hwnas_graph *graph,
                         const hwnas_exec_options *options, bool (*goes_on)(void *context),
                         void *context)
{
    hwnas_cuda_device *device = (hwnas_cuda_device *)base;
    if (hwnas_live_use(device->live) == HWNAS_OK)
        hwnas_cudnn_prepare(device, graph, options, goes_on, context);
    else
        hwnas_error_clear();
}

const hwnas_device_ops hwnas_cuda_ops = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cuda",
    .help = "an NVIDIA GPU, through cuDNN: cuda:0, cuda:1, ...; cuda:0:quick",
    .caveat = HWNAS_CUDA_CAVEAT,
    .quick = HWNAS_CUDA_QUICK,
    .count = count_gpus,
    .open = cuda_open,
    .describe = cuda_describe,
    .close = hwnas_cuda_device_close,
    .listen = hwnas_cuda_listen,
    .precisions = HWNAS_CUDA_PRECISIONS,
    .is_deployed = true,
    .compile = hwnas_cuda_compile,
    .prepare = cuda_prepare,
    .run = hwnas_cuda_run,
    .free_exec = hwnas_cuda_free_exec,
    .quantize = cuda_quantize,
    .memory = hwnas_cudnn_held,
    .footprint = hwnas_cudnn_footprint,
    .steps = hwnas_cudnn_steps,
    .run_steps = hwnas_cuda_run_steps,
    .time = hwnas_cuda_time,
    .start = hwnas_cuda_start,
    .finish = hwnas_cuda_finish,
    .evict = hwnas_cuda_evict,
    .state = hwnas_cuda_state,
    .joules = hwnas_cuda_joules,
};
