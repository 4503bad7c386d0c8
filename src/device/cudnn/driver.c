#include "device/cudnn/driver.h"

#include "base/mem.h"

#define SYMBOL(FUNCTION, MEMBER) SYMBOL_(FUNCTION, MEMBER)
#define SYMBOL_(FUNCTION, MEMBER)                                                                  \
    {                                                                                              \
#FUNCTION, offsetof(hwnas_cuda_api, MEMBER)                                                \
    }

static const hwnas_symbol symbols[] = {
    SYMBOL(cuInit, init),
    SYMBOL(cuDriverGetVersion, driver_version),
    SYMBOL(cuGetErrorName, error_name),
    SYMBOL(cuGetErrorString, error_string),
    SYMBOL(cuDeviceGetCount, device_count),
    SYMBOL(cuDeviceGet, device),
    SYMBOL(cuDeviceGetName, device_name),
    SYMBOL(cuDeviceGetPCIBusId, device_pci_bus_id),
    SYMBOL(cuDeviceGetAttribute, device_attribute),
    SYMBOL(cuDeviceTotalMem, total_memory),
    SYMBOL(cuMemGetInfo, memory_info),
    SYMBOL(cuDevicePrimaryCtxSetFlags, set_context_flags),
    SYMBOL(cuDevicePrimaryCtxRetain, retain_context),
    SYMBOL(cuDevicePrimaryCtxRelease, release_context),
    SYMBOL(cuCtxSetCurrent, set_context),
    SYMBOL(cuMemAlloc, alloc),
    SYMBOL(cuMemFree, free),
    SYMBOL(cuMemcpyHtoDAsync, to_device),
    SYMBOL(cuMemcpyDtoHAsync, to_host),
    SYMBOL(cuMemcpyDtoDAsync, copy),
    SYMBOL(cuMemsetD8Async, fill),
    SYMBOL(cuStreamCreate, stream_create),
    SYMBOL(cuStreamDestroy, stream_destroy),
    SYMBOL(cuStreamSynchronize, stream_wait),
    SYMBOL(cuStreamBeginCapture, begin_capture),
    SYMBOL(cuStreamEndCapture, end_capture),
    SYMBOL(cuGraphInstantiateWithFlags, graph_instantiate),
    SYMBOL(cuGraphUpload, graph_upload),
    SYMBOL(cuGraphLaunch, graph_launch),
    SYMBOL(cuGraphDestroy, graph_destroy),
    SYMBOL(cuGraphExecDestroy, graph_exec_destroy),
    SYMBOL(cuEventCreate, event_create),
    SYMBOL(cuEventDestroy, event_destroy),
    SYMBOL(cuEventRecord, event_record),
    SYMBOL(cuEventRecordWithFlags, event_record_node),
    SYMBOL(cuEventSynchronize, event_wait),
    /* Its newer form is not in drivers before 12.8. */
    {"cuEventElapsedTime", offsetof(hwnas_cuda_api, event_milliseconds)},
    SYMBOL(cuModuleLoadData, module_load),
    SYMBOL(cuModuleUnload, module_unload),
    SYMBOL(cuModuleGetFunction, module_function),
    SYMBOL(cuLaunchKernel, launch),
    {NULL, 0},
};

static hwnas_status init(const hwnas_cuda_api *api)
{
    const char *words = "unknown";
    int n = 0;
    CUresult result = api->init(0);
    if (result == CUDA_SUCCESS)
        result = api->device_count(&n);
    if (result == CUDA_SUCCESS && n > 0)
        return HWNAS_OK;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NO_DEVICE)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "NVIDIA's driver is here, but it sees no GPU"),
            "nvidia-smi lists those that it sees; CUDA_VISIBLE_DEVICES may hide them");
    api->error_string(result, &words);
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "NVIDIA's driver does not start: %s", words);
}

hwnas_status hwnas_cuda_open(const hwnas_cuda_api **out)
{
    static hwnas_cuda_api api;
    static bool is_open;
    void *library;
    if (!is_open) {
        TRY(hwnas_driver_open(&library, false));
        TRY(hwnas_library_symbols(&api, symbols, library, "libcuda.so.1"));
        TRY(init(&api));
        is_open = true;
    }
    *out = &api;
    return HWNAS_OK;
}

/* Not in the headers of every CUDA 12. */
enum { ERROR_CONTAINED = 226, ERROR_TENSOR_MEMORY_LEAK = 721 };

/* After these the context is of no use, and cannot be made anew in this process: those of which
 * cuda.h says that the process must be relaunched, and what hardware or driver are gone after. */
static bool is_lost(CUresult result)
{
    switch ((int)result) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case ERROR_CONTAINED:
    case ERROR_TENSOR_MEMORY_LEAK:
        return true;
    default:
        return false;
    }
}

hwnas_status hwnas_cuda_status(const hwnas_cuda_api *api, CUresult result, const char *verb,
                               const char *name)
{
    const char *words = "unknown", *code = "unknown";
    if (result == CUDA_SUCCESS)
        return HWNAS_OK;
    api->error_string(result, &words);
    api->error_name(result, &code);
    const hwnas_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? HWNAS_E_MEMORY
                                : is_lost(result)                  ? HWNAS_E_CRASHED
                                                                   : HWNAS_E_LIBRARY;
    return hwnas_fail(status, NULL, "the GPU could not %s '%s': %s (%s)", verb, name, words, code);
}
