/* dry.c: cuda-dry, a GPU that is described and not here. All is compiled as for a real one, so one
 * knows before any is rented whether a network runs on it and fits; nothing runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/cudnn/choose_plan.h"
#include "device/module.h"

#define MEBI 1048576.0

/* "h200", "h200:quick", or a path in the place of the name. */
static hwnas_status read_gpu(hwnas_cuda_device *device, const char *argument)
{
    static const char quick[] = ":" HWNAS_CUDA_QUICK;
    char *name = hwnas_strdup(argument);
    device->is_quick = hwnas_ends_with(name, quick);
    if (device->is_quick)
        name[strlen(name) - strlen(quick)] = '\0';
    const hwnas_status status = hwnas_gpu_read(&device->gpu, name);
    free(name);
    return status;
}

static hwnas_status find(hwnas_cuda_device *device, const char *argument)
{
    device->is_dry = true;
    if (*argument)
        TRY(read_gpu(device, argument));
    TRY(hwnas_driver_open(&device->driver, true));
    TRY(hwnas_cudnn_open(&device->cudnn));
    return *argument ? hwnas_cudnn_describe_gpu(device) : HWNAS_OK;
}

static hwnas_status dry_open(hwnas_device **out, const char *argument,
                             const hwnas_device_options *options)
{
    (void)options;
    return hwnas_cuda_device_open(out, &hwnas_cuda_dry_ops, find, argument);
}

static void dry_describe(const hwnas_device *base, hwnas_device_info *out)
{
    const hwnas_cuda_device *device = (const hwnas_cuda_device *)base;
    *out = (hwnas_device_info){.threads = 1};
    if (*device->gpu.name) {
        snprintf(out->name, sizeof out->name, "%s, described: nothing runs", device->gpu.name);
        snprintf(out->isa, sizeof out->isa, "sm_%d", device->gpu.sm);
        out->native = hwnas_cudnn_native(device);
    } else {
        snprintf(out->name, sizeof out->name, "builds plans without a GPU");
    }
    hwnas_cudnn_tell_version(out->library, sizeof out->library, device);
}

static hwnas_status dry_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                const hwnas_exec_options *options)
{
    ((hwnas_cuda_device *)device)->compiling++;
    return hwnas_cudnn_compile(out, device, graph, options);
}

static hwnas_status dry_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    hwnas_footprint f;
    (void)inputs;
    (void)outputs;
    hwnas_cudnn_footprint(exec, &f);
    return hwnas_hint(
        hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                   "would run and fit: %zu steps, %zu by cuDNN, %zu by own kernels; weights %.1f + "
                   "activations %.1f + workspace %.1f + buffers %.1f MiB of %.0f MiB",
                   f.n_steps, f.n_library, f.n_own, (double)f.weight_bytes / MEBI,
                   (double)f.activation_bytes / MEBI, (double)f.workspace_bytes / MEBI,
                   (double)f.buffer_bytes / MEBI, (double)f.device_bytes / MEBI),
        "there is no GPU behind cuda-dry, so nothing runs; `hwnas forecast` tells each step, "
        "cuda:0 "
        "measures");
}

const hwnas_device_ops hwnas_cuda_dry_ops = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cuda-dry",
    .help = "compiles for an NVIDIA GPU that is not here, runs nothing: cuda-dry:h200",
    .caveat = HWNAS_CUDA_DRY_CAVEAT,
    .open = dry_open,
    .describe = dry_describe,
    .close = hwnas_cuda_device_close,
    .listen = hwnas_cuda_listen,
    .precisions = HWNAS_CUDA_PRECISIONS,
    .compile = dry_compile,
    .run = dry_run,
    .free_exec = hwnas_cudnn_free_exec,
    .memory = hwnas_cudnn_held,
    .footprint = hwnas_cudnn_footprint,
    .steps = hwnas_cudnn_steps,
};
