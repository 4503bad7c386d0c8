/* cudnn_module.c: what hwnas-cuda.so shows to the program. */
#include "device/module.h"

#include "config.h"
#include "device/cudnn/cuda_device.h"

static const hwnas_device_ops *const devices[] = {&hwnas_cuda_ops, &hwnas_cuda_dry_ops, NULL};

const hwnas_module hwnas_module_entry = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "hwnas-cuda",
    .version = PACKAGE_VERSION,
    .devices = devices,
};
