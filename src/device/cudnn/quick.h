/* quick.h: plans that are made sooner, for searches: "cuda:0:quick", "cuda-dry:h200:quick".
 *
 * A search wants plans of hundreds of sizes, and NVRTC takes up to some seconds for the kernel of
 * one. So a kernel that cuDNN compiled for one size serves others of the same form (its kernel
 * cache; a plan whose graph says that its sizes may change). Pools and functions of elements, for
 * which cuDNN has no such kernels, go to ours (cut.c). Where cuDNN has a kernel ready, the plan is
 * the one that the device makes without being quick. */
#ifndef HWNAS_DEVICE_CUDNN_QUICK_H
#define HWNAS_DEVICE_CUDNN_QUICK_H

#include "device/cudnn/operation.h"

/* cuDNN's caches of kernels, one for each form of operation; as long as the device is open. */
typedef struct hwnas_cudnn_caches hwnas_cudnn_caches;

/* The cache of the operation's form, made when it is first asked for, with `graph`, which says that
 * sizes may change. NULL: cuDNN has none. The device's. Not for several threads. */
cudnnBackendDescriptor_t hwnas_cudnn_cache_of(hwnas_cuda_device *device,
                                              const hwnas_cudnn_operation *o,
                                              cudnnBackendDescriptor_t graph);
/* How many; NULL: 0. */
size_t hwnas_cudnn_caches_count(const hwnas_cudnn_caches *caches);
void hwnas_cudnn_caches_free(hwnas_cudnn_caches *caches, const hwnas_cudnn_api *api);

#endif
