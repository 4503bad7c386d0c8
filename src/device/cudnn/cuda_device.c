/* cuda_device.c: the beginning and the end of both devices. */
#include "device/cudnn/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/cudnn/live.h"
#include "device/cudnn/plans.h"

hwnas_status hwnas_cuda_device_open(hwnas_device **out, const hwnas_device_ops *ops,
                                    hwnas_status (*find)(hwnas_cuda_device *, const char *),
                                    const char *argument)
{
    hwnas_cuda_device *device = hwnas_alloc(sizeof *device);
    device->base.ops = ops;
    device->plans = hwnas_cudnn_plans_new();
    const hwnas_status status = find(device, argument);
    if (status == HWNAS_OK)
        *out = &device->base;
    else
        hwnas_cuda_device_close(&device->base);
    return status;
}

void hwnas_cuda_device_close(hwnas_device *base)
{
    hwnas_cuda_device *device = (hwnas_cuda_device *)base;
    hwnas_cudnn_plans_free(device->plans, device->cudnn);
    if (device->properties)
        device->cudnn->destroy(device->properties);
    hwnas_live_close(device->live);
    hwnas_gpu_done(&device->gpu);
    free(device);
}

void hwnas_cuda_listen(hwnas_device *base, void (*progress)(void *context, const char *phase),
                       void *context)
{
    hwnas_cuda_device *device = (hwnas_cuda_device *)base;
    device->progress = progress;
    device->context = context;
}

void hwnas_cuda_tell(hwnas_cuda_device *device, const char *phase)
{
    if (phase)
        snprintf(device->phase, sizeof device->phase, "%s", phase);
    if (device->progress)
        device->progress(device->context, device->phase);
}

int hwnas_cudnn_tell_version(char *out, size_t size, const hwnas_cuda_device *device)
{
    const size_t version = device->cudnn->version();
    return snprintf(out, size, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100,
                    version % 100);
}
