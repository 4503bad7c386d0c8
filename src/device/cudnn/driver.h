/* driver.h: the functions of NVIDIA's driver and of NVRTC, opened when they are first needed.
 *
 * Nothing here needs cuDNN. A failure has the driver's own words: HWNAS_E_MEMORY when the GPU's
 * memory is short, HWNAS_E_CRASHED when the GPU is lost to this process (the next one may have it
 * again), else HWNAS_E_LIBRARY. */
#ifndef HWNAS_DEVICE_CUDNN_DRIVER_H
#define HWNAS_DEVICE_CUDNN_DRIVER_H

#include <cuda.h>
#include <nvrtc.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/cudnn/libraries.h"

/* cuda.h gives some functions newer names by macros; the members have the plain ones in small. */
typedef struct hwnas_cuda_api {
    __typeof__(&cuInit) init;
    __typeof__(&cuDriverGetVersion) driver_version;
    __typeof__(&cuGetErrorName) error_name;
    __typeof__(&cuGetErrorString) error_string;
    __typeof__(&cuDeviceGetCount) device_count;
    __typeof__(&cuDeviceGet) device;
    __typeof__(&cuDeviceGetName) device_name;
    __typeof__(&cuDeviceGetPCIBusId) device_pci_bus_id;
    __typeof__(&cuDeviceGetAttribute) device_attribute;
    __typeof__(&cuDeviceTotalMem) total_memory;
    __typeof__(&cuMemGetInfo) memory_info;
    __typeof__(&cuDevicePrimaryCtxSetFlags) set_context_flags;
    __typeof__(&cuDevicePrimaryCtxRetain) retain_context;
    __typeof__(&cuDevicePrimaryCtxRelease) release_context;
    __typeof__(&cuCtxSetCurrent) set_context;
    __typeof__(&cuMemAlloc) alloc;
    __typeof__(&cuMemFree) free;
    __typeof__(&cuMemcpyHtoDAsync) to_device;
    __typeof__(&cuMemcpyDtoHAsync) to_host;
    __typeof__(&cuMemcpyDtoDAsync) copy;
    __typeof__(&cuMemsetD8Async) fill;
    __typeof__(&cuStreamCreate) stream_create;
    __typeof__(&cuStreamDestroy) stream_destroy;
    __typeof__(&cuStreamSynchronize) stream_wait;
    __typeof__(&cuStreamBeginCapture) begin_capture;
    __typeof__(&cuStreamEndCapture) end_capture;
    __typeof__(&cuGraphInstantiateWithFlags) graph_instantiate;
    __typeof__(&cuGraphUpload) graph_upload;
    __typeof__(&cuGraphLaunch) graph_launch;
    __typeof__(&cuGraphDestroy) graph_destroy;
    __typeof__(&cuGraphExecDestroy) graph_exec_destroy;
    __typeof__(&cuEventCreate) event_create;
    __typeof__(&cuEventDestroy) event_destroy;
    __typeof__(&cuEventRecord) event_record;
    __typeof__(&cuEventRecordWithFlags) event_record_node;
    __typeof__(&cuEventSynchronize) event_wait;
    CUresult (*event_milliseconds)(float *out, CUevent begin, CUevent end);
    __typeof__(&cuModuleLoadData) module_load;
    __typeof__(&cuModuleUnload) module_unload;
    __typeof__(&cuModuleGetFunction) module_function;
    __typeof__(&cuLaunchKernel) launch;
} hwnas_cuda_api;

/* The real driver's, initialised; without one, or without a GPU: HWNAS_E_UNSUPPORTED. */
HWNAS_CHECKED hwnas_status hwnas_cuda_open(const hwnas_cuda_api **out);

/* What `result` of a call means; `verb` and `name` are for "the GPU could not VERB 'NAME': ...". */
HWNAS_CHECKED hwnas_status hwnas_cuda_status(const hwnas_cuda_api *api, CUresult result,
                                             const char *verb, const char *name);

#define TRY_CUDA(api, verb, name, call) TRY(hwnas_cuda_status(api, call, verb, name))
#define TRY_CUDA_OUT(api, verb, name, call) TRY_OUT(hwnas_cuda_status(api, call, verb, name))

/* ---- NVRTC ---- */

/* A kernel compiled for one architecture, or for an older one and for the driver to make code of;
 * lives as long as the process. */
typedef struct hwnas_image {
    const char *kernel;
    int sm;
    char *options; /* as hwnas_launch_options() gives them */
    void *bytes;   /* cubin, or PTX where NVRTC does not know the architecture yet */
    size_t n_bytes;
} hwnas_image;

/* Compiles what the options say of a kernel, unless this process has done so already. `sm`: 90
 * is 9.0. One that NVRTC cannot compile: HWNAS_E_LIBRARY with the first line of its log. */
HWNAS_CHECKED hwnas_status hwnas_image_make(const hwnas_image **out, const char *kernel,
                                            const char *file, const char *options, int sm);

/* The kernels' text, generated from kernels/: FILE without its ending for .cu, else all of it. */
typedef struct hwnas_kernel_source {
    const char *name; /* NULL ends */
    const char *text;
} hwnas_kernel_source;
extern const hwnas_kernel_source hwnas_kernel_sources[];

#endif
