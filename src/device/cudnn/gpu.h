/* gpu.h: what is known of a GPU, measured or described.
 *
 * A description ships as gpus/NAME.json: our own few fields with their sources, and in `cudnn` the
 * properties that cuDNN wants, under its names. */
#ifndef HWNAS_DEVICE_CUDNN_GPU_H
#define HWNAS_DEVICE_CUDNN_GPU_H

#include <stddef.h>

#include "base/status.h"

typedef struct hwnas_gpu {
    char name[96];        /* "NVIDIA H200" */
    int sm;               /* compute capability: 90 is 9.0 */
    int multiprocessors;
    size_t memory_bytes;
    size_t cache_bytes; /* of the second level; of a GPU that is here */
    char *cudnn; /* the properties as JSON text, in cuDNN's terms */
} hwnas_gpu;

/* Reads a description: "h200", or a path to a file. */
HWNAS_CHECKED hwnas_status hwnas_gpu_read(hwnas_gpu *out, const char *name);
void hwnas_gpu_done(hwnas_gpu *gpu);

#endif
