/* cuda.c: cuda:N, an NVIDIA GPU of this machine. */
#include <stdlib.h>

#include "device/cudnn/cuda_device.h"

static void cuda_close(hwnas_device *base)
{
    free(base);
}

static hwnas_status cuda_open(hwnas_device **out, const char *argument,
                              const hwnas_device_options *options)
{
    void *driver;
    (void)out;
    (void)argument;
    (void)options;
    TRY(hwnas_driver_open(&driver, false));
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "running on a GPU is not in this version");
}

static void cuda_describe(const hwnas_device *base, hwnas_device_info *out)
{
    (void)base;
    *out = (hwnas_device_info){.threads = 1};
}

const hwnas_device_ops hwnas_cuda_ops = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "cuda",
    .help = "an NVIDIA GPU, through cuDNN: cuda:0, cuda:1, ...",
    .open = cuda_open,
    .describe = cuda_describe,
    .close = cuda_close,
    .precisions = 1U << HWNAS_F32 | 1U << HWNAS_TF32 | 1U << HWNAS_BF16 | 1U << HWNAS_F16,
    .compile = hwnas_cudnn_compile,
    .free_exec = hwnas_cudnn_free_exec,
    .memory = hwnas_cudnn_held,
    .steps = hwnas_cudnn_steps,
};
