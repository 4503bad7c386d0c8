/* dry.h: the devices of tests that compile for described GPUs. */
#ifndef HWNAS_TESTS_GPU_DRY_H
#define HWNAS_TESTS_GPU_DRY_H

#include "device/cudnn/cuda_device.h"

/* Opens `cuda-dry:GPU`; NULL, and the reason printed: CUDA's libraries are not here. Fails the test
 * for any other reason. */
hwnas_cuda_device *dry_open(const char *gpu);

#endif
