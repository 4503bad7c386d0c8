/* fake_gpu.c: a stand-in for NVIDIA's driver, NVRTC and NVML in one library, for tests alone: what
 * the GPU is and how it fails. fake_memory.c, fake_stream.c and fake_kernels.c have the rest.
 *
 * Memory of the GPU is the host's, behind guards, and full of NaN when it is new; kernels of ours
 * run as compiled for the host, after a look at every place that they may touch; a recorded graph
 * is a list of what was enqueued. So the control flow, the memory plan and the paths of failure are
 * tried for real, and whole networks give values. It says nothing about a GPU's speed, its
 * parallelism, or cuDNN, which it does not have.
 *
 * FAKE_GPU_FAULT, read at every call: "memory:N" the N-th allocation from now on fails; "lost:N"
 * the N-th launch loses the GPU, which stays lost; "unrecorded:N" so does the N-th one that is
 * recorded; "record" recording fails; "none" there is no GPU; "old" the kernels' images are for
 * another architecture; "newer" NVRTC does not know the GPU's; "unmade" NVRTC gives no image; "rnn"
 * cuDNN takes no recurrent layer. FAKE_GPU_SLOWED: it is hot. FAKE_GPU_DRIVER: the CUDA that the
 * driver knows, as 12040. Time and energy are fake_clock.c's. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_clock.h"
#include "fake_gpu.h"

/* ---- Faults ---- */

struct fake_state fake;

int fake_fault(const char *name)
{
    const char *text = getenv("FAKE_GPU_FAULT");
    const size_t n = strlen(name);
    if (!text || strncmp(text, name, n))
        return 0;
    return text[n] == ':' ? atoi(text + n + 1) : 1;
}

/* What the tests ask for, and forget. */
EXPORT void fake_gpu_reset(void);
void fake_gpu_reset(void)
{
    fake.n_allocations = fake.n_launches = fake.n_recorded = 0;
    fake.is_lost = false;
}

/* Blocks and graphs that nobody has freed, places written beyond a block, replays. */
EXPORT void fake_gpu_count(int *live, int *broken, int *replays);
void fake_gpu_count(int *live, int *broken, int *replays)
{
    *live = fake.n_live;
    *broken = fake.n_broken;
    *replays = fake.n_replays;
}

/* ---- The GPU ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    (void)flags;
    return fake_fault("none") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *out)
{
    const char *version = getenv("FAKE_GPU_DRIVER");
    *out = version ? atoi(version) : CUDA_VERSION;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
    *out = error == CUDA_ERROR_OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
           : error == CUDA_ERROR_ILLEGAL_ADDRESS   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
           : error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                                   : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
    *out = error == CUDA_ERROR_OUT_OF_MEMORY       ? "out of memory"
           : error == CUDA_ERROR_ILLEGAL_ADDRESS   ? "an illegal memory access was encountered"
           : error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "no kernel image is available for execution"
                                                   : "unknown error";
    return CUDA_SUCCESS;
}

/* FAKE_GPU_COUNT of them, which are all the same one. */
static int n_gpus(void)
{
    const char *text = getenv("FAKE_GPU_COUNT");
    return text ? atoi(text) : 1;
}

EXPORT CUresult cuDeviceGetCount(int *out)
{
    *out = fake_fault("none") ? 0 : n_gpus();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    *out = ordinal;
    return ordinal < n_gpus() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char *out, int size, CUdevice device)
{
    (void)device;
    snprintf(out, (size_t)size, "fake GPU, runs on the host");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device)
{
    (void)device;
    snprintf(out, (size_t)size, "0000:00:00.0");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device)
{
    (void)device;
    *out = FAKE_BYTES;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *out = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? FAKE_SM / 10
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? FAKE_SM % 10
           : which == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? FAKE_L2_BYTES
                                                                   : 1;
    return CUDA_SUCCESS;
}

/* What waiting does: spin, or sleep; for the tests. */
EXPORT unsigned fake_gpu_flags;

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    (void)device;
    fake_gpu_flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    (void)device;
    *out = (CUcontext)1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

/* ---- NVML: each call takes the host some time, and is counted ---- */

EXPORT int fake_nvml_calls;

static int answer(void)
{
    fake_nvml_calls++;
    fake_spend(fake_simulation()->nvml);
    return fake.is_lost ? 15 : 0; /* GPU is lost */
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return 0;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out)
{
    *out = NULL;
    return strcmp(bus, "0000:00:00.0") != 0;
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out)
{
    (void)device;
    *out = (unsigned long long)(1e3 * fake_joules() + 0.5);
    return answer();
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out)
{
    (void)device;
    *out = getenv("FAKE_GPU_SLOWED") ? 0x40 : fake_limits();
    return answer();
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned *out);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *out)
{
    (void)device;
    *out = (unsigned)(1e-6 * fake_hertz() + 0.5);
    return type == 1 ? answer() : 2;
}
