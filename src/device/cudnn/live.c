#include "device/cudnn/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct loaded {
    const hwnas_image *image;
    CUmodule module;
    CUfunction function;
} loaded;

struct hwnas_live {
    const hwnas_cuda_api *api;
    const hwnas_cudnn_run_api *cudnn;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    cudnnHandle_t handle;
    const hwnas_cublas_api *cublas;
    cublasLtHandle_t cublas_handle;
    hwnas_nvml *nvml;
    size_t n_loaded, capacity;
    loaded *loaded;
};

#define SYMBOL(FUNCTION, MEMBER)                                                                   \
    {                                                                                              \
#FUNCTION, offsetof(hwnas_cudnn_run_api, MEMBER)                                           \
    }
static const hwnas_symbol symbols[] = {
    SYMBOL(cudnnCreate, create_handle),
    SYMBOL(cudnnDestroy, destroy_handle),
    SYMBOL(cudnnSetStream, set_stream),
    SYMBOL(cudnnGetErrorString, error_string),
    SYMBOL(cudnnBackendExecute, execute),
    SYMBOL(cudnnCreateRNNDescriptor, create_rnn),
    SYMBOL(cudnnDestroyRNNDescriptor, destroy_rnn),
    SYMBOL(cudnnSetRNNDescriptor_v8, set_rnn),
    SYMBOL(cudnnCreateRNNDataDescriptor, create_rnn_data),
    SYMBOL(cudnnDestroyRNNDataDescriptor, destroy_rnn_data),
    SYMBOL(cudnnSetRNNDataDescriptor, set_rnn_data),
    SYMBOL(cudnnCreateTensorDescriptor, create_tensor),
    SYMBOL(cudnnDestroyTensorDescriptor, destroy_tensor),
    SYMBOL(cudnnSetTensorNdDescriptor, set_tensor),
    SYMBOL(cudnnCreateDropoutDescriptor, create_dropout),
    SYMBOL(cudnnDestroyDropoutDescriptor, destroy_dropout),
    SYMBOL(cudnnSetDropoutDescriptor, set_dropout),
    SYMBOL(cudnnGetRNNTempSpaceSizes, rnn_temp_sizes),
    SYMBOL(cudnnGetRNNWeightSpaceSize, rnn_weight_size),
    SYMBOL(cudnnGetRNNWeightParams, rnn_weight_params),
    SYMBOL(cudnnRNNForward, rnn_forward),
    {NULL, 0},
};

static hwnas_status open_cudnn(const hwnas_cudnn_run_api **out)
{
    static hwnas_cudnn_run_api api;
    static bool is_open;
    void *library;
    if (!is_open) {
        TRY(hwnas_library_open(&library, "libcudnn.so.9", "NVIDIA's library for networks"));
        TRY(hwnas_library_symbols(&api, symbols, library, "libcudnn.so.9"));
        is_open = true;
    }
    *out = &api;
    return HWNAS_OK;
}

hwnas_status hwnas_cudnn_run_status(const hwnas_live *live, cudnnStatus_t result, const char *verb,
                                    const char *name)
{
    if (result == CUDNN_STATUS_SUCCESS)
        return HWNAS_OK;
    const int kind = CUDNN_STATUS_CATEGORY(result);
    const bool is_lost =
        kind == CUDNN_STATUS_EXECUTION_FAILED || kind == CUDNN_STATUS_INTERNAL_ERROR;
    /* Where it is the GPU that failed, the driver knows more. */
    if (is_lost)
        TRY_CUDA(live->api, verb, name, live->api->stream_wait(live->stream));
    const bool is_memory = result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                           result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    return hwnas_fail(is_memory ? HWNAS_E_MEMORY : HWNAS_E_LIBRARY, NULL,
                      "cuDNN could not %s '%s': %s", verb, name, live->cudnn->error_string(result));
}

hwnas_status hwnas_cublas_run_status(const hwnas_live *live, cublasStatus_t result,
                                     const char *verb, const char *name)
{
    if (result == CUBLAS_STATUS_SUCCESS)
        return HWNAS_OK;
    if (result == CUBLAS_STATUS_EXECUTION_FAILED || result == CUBLAS_STATUS_INTERNAL_ERROR)
        TRY_CUDA(live->api, verb, name, live->api->stream_wait(live->stream));
    return hwnas_fail(result == CUBLAS_STATUS_ALLOC_FAILED ? HWNAS_E_MEMORY : HWNAS_E_LIBRARY, NULL,
                      "cuBLAS could not %s '%s': %s", verb, name,
                      live->cublas->error_string(result));
}

/* What the GPU is. */
static hwnas_status describe(hwnas_gpu *gpu, hwnas_live *live)
{
    const hwnas_cuda_api *api = live->api;
    int major = 0, minor = 0, cache = 0;
    char bus[32];
    TRY_CUDA(api, "tell", "name", api->device_name(gpu->name, sizeof gpu->name, live->device));
    TRY_CUDA(api, "tell", "memory", api->total_memory(&gpu->memory_bytes, live->device));
    const struct {
        int *out;
        CUdevice_attribute attribute;
    } rows[] = {
        {&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
        {&gpu->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TRY_CUDA(api, "tell", "properties",
                 api->device_attribute(rows[i].out, rows[i].attribute, live->device));
    gpu->sm = 10 * major + minor;
    gpu->cache_bytes = (size_t)(cache > 0 ? cache : 0);
    TRY_CUDA(api, "tell", "bus address", api->device_pci_bus_id(bus, sizeof bus, live->device));
    live->nvml = hwnas_nvml_open(bus);
    return HWNAS_OK;
}

static hwnas_status open_gpu(hwnas_live *live, hwnas_gpu *gpu, int ordinal, bool with_cudnn)
{
    const hwnas_cuda_api *api = live->api;
    int n = 0;
    TRY_CUDA(api, "count", "GPUs", api->device_count(&n));
    if (ordinal < 0 || ordinal >= n)
        return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "there is no GPU %d, the last one is cuda:%d",
                          ordinal, n - 1);
    TRY_CUDA(api, "open", "device", api->device(&live->device, ordinal));
    TRY(describe(gpu, live));
    /* Who waits for the GPU sleeps. By itself the driver would have it spin where there are cores
     * enough, and a measurement has real-time priority: it would keep the driver's own threads off
     * its core, and the kernel stops such a process for 50 ms of each second. Times are the GPU's,
     * so a late awakening is no part of them. */
    TRY_CUDA(api, "open", gpu->name,
             api->set_context_flags(live->device, CU_CTX_SCHED_BLOCKING_SYNC));
    TRY_CUDA(api, "open", gpu->name, api->retain_context(&live->context, live->device));
    TRY_CUDA(api, "use", gpu->name, api->set_context(live->context));
    TRY_CUDA(api, "open", "stream", api->stream_create(&live->stream, CU_STREAM_NON_BLOCKING));
    if (!with_cudnn)
        return HWNAS_OK;
    TRY(open_cudnn(&live->cudnn));
    TRY(hwnas_cudnn_run_status(live, live->cudnn->create_handle(&live->handle), "open", gpu->name));
    TRY(hwnas_cudnn_run_status(live, live->cudnn->set_stream(live->handle, live->stream), "use",
                               "stream"));
    TRY(hwnas_cublas_open(&live->cublas));
    return hwnas_cublas_run_status(live, live->cublas->create(&live->cublas_handle), "open",
                                   gpu->name);
}

hwnas_status hwnas_live_open(hwnas_live **out, hwnas_gpu *gpu, int ordinal, bool with_cudnn)
{
    hwnas_live *live = hwnas_alloc(sizeof *live);
    hwnas_status status = hwnas_cuda_open(&live->api);
    if (status == HWNAS_OK)
        status = open_gpu(live, gpu, ordinal, with_cudnn);
    if (status == HWNAS_OK)
        *out = live;
    else
        hwnas_live_close(live);
    return status;
}

void hwnas_live_close(hwnas_live *live)
{
    if (!live)
        return;
    if (live->context)
        live->api->set_context(live->context);
    if (live->cublas_handle)
        live->cublas->destroy(live->cublas_handle);
    if (live->handle)
        live->cudnn->destroy_handle(live->handle);
    for (size_t i = 0; i < live->n_loaded; i++)
        live->api->module_unload(live->loaded[i].module);
    if (live->stream)
        live->api->stream_destroy(live->stream);
    if (live->context)
        live->api->release_context(live->device);
    hwnas_nvml_close(live->nvml);
    free(live->loaded);
    free(live);
}

hwnas_status hwnas_live_use(const hwnas_live *live)
{
    return hwnas_cuda_status(live->api, live->api->set_context(live->context), "use", "context");
}

const hwnas_cuda_api *hwnas_live_api(const hwnas_live *live)
{
    return live->api;
}

const hwnas_cudnn_run_api *hwnas_live_cudnn(const hwnas_live *live)
{
    return live->cudnn;
}

CUstream hwnas_live_stream(const hwnas_live *live)
{
    return live->stream;
}

cudnnHandle_t hwnas_live_handle(const hwnas_live *live)
{
    return live->handle;
}

const hwnas_cublas_api *hwnas_live_cublas(const hwnas_live *live)
{
    return live->cublas;
}

cublasLtHandle_t hwnas_live_cublas_handle(const hwnas_live *live)
{
    return live->cublas_handle;
}

const hwnas_nvml *hwnas_live_nvml(const hwnas_live *live)
{
    return live->nvml;
}

hwnas_status hwnas_live_function(CUfunction *out, hwnas_live *live, const hwnas_image *image)
{
    for (size_t i = 0; i < live->n_loaded; i++)
        if (live->loaded[i].image == image) {
            *out = live->loaded[i].function;
            return HWNAS_OK;
        }
    loaded l = {.image = image};
    TRY_CUDA(live->api, "load", image->kernel, live->api->module_load(&l.module, image->bytes));
    hwnas_status status = hwnas_cuda_status(
        live->api, live->api->module_function(&l.function, l.module, image->kernel), "find",
        image->kernel);
    if (status != HWNAS_OK) {
        live->api->module_unload(l.module);
        return status;
    }
    HWNAS_GROW(live->loaded, live->n_loaded, live->capacity);
    live->loaded[live->n_loaded++] = l;
    *out = l.function;
    return HWNAS_OK;
}
