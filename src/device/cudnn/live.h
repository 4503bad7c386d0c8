/* live.h: a GPU that is here: its context, its stream, what is loaded into it.
 *
 * One thread at a time. */
#ifndef HWNAS_DEVICE_CUDNN_LIVE_H
#define HWNAS_DEVICE_CUDNN_LIVE_H

#include <cudnn.h>

#include "device/cudnn/cublas.h"
#include "device/cudnn/driver.h"
#include "device/cudnn/gpu.h"
#include "device/cudnn/nvml.h"

/* cuDNN's functions that need a GPU. */
typedef struct hwnas_cudnn_run_api {
    __typeof__(&cudnnCreate) create_handle;
    __typeof__(&cudnnDestroy) destroy_handle;
    __typeof__(&cudnnSetStream) set_stream;
    __typeof__(&cudnnGetErrorString) error_string;
    __typeof__(&cudnnBackendExecute) execute;
    /* rnn.c */
    __typeof__(&cudnnCreateRNNDescriptor) create_rnn;
    __typeof__(&cudnnDestroyRNNDescriptor) destroy_rnn;
    __typeof__(&cudnnSetRNNDescriptor_v8) set_rnn;
    __typeof__(&cudnnCreateRNNDataDescriptor) create_rnn_data;
    __typeof__(&cudnnDestroyRNNDataDescriptor) destroy_rnn_data;
    __typeof__(&cudnnSetRNNDataDescriptor) set_rnn_data;
    __typeof__(&cudnnCreateTensorDescriptor) create_tensor;
    __typeof__(&cudnnDestroyTensorDescriptor) destroy_tensor;
    __typeof__(&cudnnSetTensorNdDescriptor) set_tensor;
    __typeof__(&cudnnCreateDropoutDescriptor) create_dropout;
    __typeof__(&cudnnDestroyDropoutDescriptor) destroy_dropout;
    __typeof__(&cudnnSetDropoutDescriptor) set_dropout;
    __typeof__(&cudnnGetRNNTempSpaceSizes) rnn_temp_sizes;
    __typeof__(&cudnnGetRNNWeightSpaceSize) rnn_weight_size;
    __typeof__(&cudnnGetRNNWeightParams) rnn_weight_params;
    __typeof__(&cudnnRNNForward) rnn_forward;
} hwnas_cudnn_run_api;

typedef struct hwnas_live hwnas_live;

/* GPU number `ordinal` of those that the driver shows; fills in what it is. Without `with_cudnn`
 * there is no handle, and no cuDNN need be installed. */
HWNAS_CHECKED hwnas_status hwnas_live_open(hwnas_live **out, hwnas_gpu *gpu, int ordinal,
                                           bool with_cudnn);
void hwnas_live_close(hwnas_live *live); /* accepts NULL */

/* The calling thread uses this GPU from now on; before anything else is done with it. */
HWNAS_CHECKED hwnas_status hwnas_live_use(const hwnas_live *live);

const hwnas_cuda_api *hwnas_live_api(const hwnas_live *live);
const hwnas_cudnn_run_api *hwnas_live_cudnn(const hwnas_live *live); /* NULL without cuDNN */
CUstream hwnas_live_stream(const hwnas_live *live);
cudnnHandle_t hwnas_live_handle(const hwnas_live *live);
const hwnas_cublas_api *hwnas_live_cublas(const hwnas_live *live); /* NULL without cuDNN */
cublasLtHandle_t hwnas_live_cublas_handle(const hwnas_live *live);
const hwnas_nvml *hwnas_live_nvml(const hwnas_live *live); /* NULL: it tells nothing */

/* The image's kernel, loaded when it is first asked for; the GPU keeps it. An image for another
 * architecture: HWNAS_E_LIBRARY. */
HWNAS_CHECKED hwnas_status hwnas_live_function(CUfunction *out, hwnas_live *live,
                                               const hwnas_image *image);

/* What a cuDNN call's failure means, as hwnas_cuda_status(). */
HWNAS_CHECKED hwnas_status hwnas_cudnn_run_status(const hwnas_live *live, cudnnStatus_t result,
                                                  const char *verb, const char *name);
/* The same of cuBLAS. */
HWNAS_CHECKED hwnas_status hwnas_cublas_run_status(const hwnas_live *live, cublasStatus_t result,
                                                   const char *verb, const char *name);

#endif
