/* fake_gpu.c: a stand-in for NVIDIA's driver, NVRTC and NVML in one library, for tests alone.
 *
 * Memory of the GPU is the host's, behind guards, and full of NaN when it is new; kernels of ours
 * run as compiled for the host, after a look at every place that they may touch; a recorded graph
 * is a list of what was enqueued. So the control flow, the memory plan and the paths of failure are
 * tried for real, and whole networks give values. It says nothing about a GPU's speed, its
 * parallelism, or cuDNN, which it does not have.
 *
 * FAKE_GPU_FAULT, read at every call: "memory:N" the N-th allocation from now on fails; "lost:N"
 * the N-th launch loses the GPU, which stays lost; "record" recording fails; "none" there is no
 * GPU; "old" the kernels' images are for another architecture. FAKE_GPU_SLOWED: it is hot. */
#include <cuda.h>
#include <nvrtc.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host_kernels.h"

enum { GUARD = 256, SM = 90, MOST_BYTES = 1 << 30 };
#define EXPORT __attribute__((visibility("default")))

/* ---- Faults ---- */

static int n_allocations, n_launches;
static bool is_lost;

static int fault(const char *name)
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
    n_allocations = n_launches = 0;
    is_lost = false;
}

/* ---- Memory ---- */

typedef struct block {
    char *begin;
    size_t bytes;
    struct block *next;
} block;
static block *blocks;
static size_t n_used;
static int n_live, n_broken, n_recorded_runs;

/* Blocks that nobody has freed, places written beyond a block, replays. */
EXPORT void fake_gpu_count(int *live, int *broken, int *replays);
void fake_gpu_count(int *live, int *broken, int *replays)
{
    *live = n_live;
    *broken = n_broken;
    *replays = n_recorded_runs;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    if (is_lost)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (++n_allocations == fault("memory") || n_used + bytes > MOST_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block *b = malloc(sizeof *b);
    char *memory = aligned_alloc(GUARD, (bytes + 3 * GUARD - 1) / GUARD * GUARD);
    memset(memory, 0xA5, GUARD);
    memset(memory + GUARD, 0xFF, bytes);
    memset(memory + GUARD + bytes, 0xA5, GUARD);
    *b = (block){memory + GUARD, bytes, blocks};
    blocks = b;
    n_used += bytes;
    n_live++;
    *out = (CUdeviceptr)b->begin;
    return CUDA_SUCCESS;
}

static bool is_guarded(const block *b)
{
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)b->begin[i - GUARD] != 0xA5 ||
            (unsigned char)b->begin[b->bytes + (size_t)i] != 0xA5)
            return false;
    return true;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at)
{
    for (block **b = &blocks; *b; b = &(*b)->next) {
        block *found = *b;
        if (found->begin != (char *)at)
            continue;
        n_broken += !is_guarded(found);
        n_used -= found->bytes;
        n_live--;
        *b = found->next;
        free(found->begin - GUARD);
        free(found);
        return is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
    }
    n_broken++;
    return CUDA_ERROR_INVALID_VALUE;
}

/* Whether all of it lies in one block. */
static bool is_ours(const char *begin, size_t bytes)
{
    for (const block *b = blocks; b; b = b->next)
        if (begin >= b->begin && begin + bytes <= b->begin + b->bytes)
            return true;
    fprintf(stderr, "fake GPU: %zu bytes at %p are not the GPU's\n", bytes, (const void *)begin);
    n_broken++;
    return false;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *all)
{
    *all = MOST_BYTES;
    *left = MOST_BYTES - n_used;
    return CUDA_SUCCESS;
}

/* ---- What is enqueued: done at once, or recorded ---- */

typedef struct work {
    enum { LAUNCH, COPY, FILL } what;
    char *to;
    const char *from;
    size_t bytes;
    int value, n_blocks, n_threads;
    char kernel[64];
    hwnas_job job;
} work;

typedef struct graph {
    size_t n;
    work *all;
} graph;
static graph *recording;

static size_t stored_size(int type)
{
    return type == HWNAS_STORED_F32 || type == HWNAS_STORED_S32 ? 4
           : type == HWNAS_STORED_S8                            ? 1
                                                                : 2;
}

/* Views without a place are dimensions of another; what they reach is not looked at. */
static bool is_within(const work *w)
{
    for (int k = 0; k < w->job.n_views; k++) {
        const hwnas_view *v = &w->job.views[k];
        size_t last = 0;
        for (int i = 0; i < v->rank; i++)
            last += (size_t)(v->dims[i] - 1) * (size_t)v->steps[i];
        if (v->at && !is_ours(v->at, (last + 1) * stored_size(v->type)))
            return false;
    }
    return true;
}

static CUresult do_work(const work *w)
{
    if (++n_launches == fault("lost"))
        is_lost = true;
    if (is_lost)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    switch (w->what) {
    case COPY:
        memcpy(w->to, w->from, w->bytes);
        return CUDA_SUCCESS;
    case FILL:
        memset(w->to, w->value, w->bytes);
        return CUDA_SUCCESS;
    case LAUNCH:
        if (!is_within(w))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        return host_kernel_run(w->kernel, &w->job, w->n_blocks, w->n_threads, false)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_NOT_FOUND;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult enqueue(const work *w)
{
    if (!recording)
        return do_work(w);
    recording->all = realloc(recording->all, (recording->n + 1) * sizeof *recording->all);
    recording->all[recording->n++] = *w;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                     CUstream stream)
{
    (void)stream;
    if (!is_ours((char *)to, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = COPY, .to = (char *)to, .from = from, .bytes = bytes});
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (!is_ours((char *)from, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = COPY, .to = to, .from = (char *)from, .bytes = bytes});
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                     CUstream stream)
{
    (void)stream;
    if (!is_ours((char *)from, bytes) || !is_ours((char *)to, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = COPY, .to = (char *)to, .from = (char *)from, .bytes = bytes});
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    if (!is_ours((char *)to, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = FILL, .to = (char *)to, .bytes = bytes, .value = value});
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                               unsigned bx, unsigned by, unsigned bz, unsigned shared,
                               CUstream stream, void **arguments, void **extra)
{
    work w = {.what = LAUNCH, .n_blocks = (int)gx, .n_threads = (int)bx};
    (void)shared;
    (void)stream;
    (void)extra;
    if (gx < 1 || gy != 1 || gz != 1 || bx < 1 || bx > 1024 || by != 1 || bz != 1)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(w.kernel, sizeof w.kernel, "%s", (const char *)function);
    w.job = *(const hwnas_job *)arguments[0];
    return enqueue(&w);
}

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    (void)flags;
    *out = (CUstream)1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    return recording ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
           : is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS
                     : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    recording = calloc(1, sizeof *recording);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph made)
{
    free(((graph *)made)->all);
    free(made);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    (void)stream;
    graph *made = recording;
    recording = NULL;
    *out = NULL;
    if (!made)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (fault("record")) {
        cuGraphDestroy((CUgraph)made);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *out = (CUgraph)made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph from,
                                            unsigned long long flags)
{
    (void)flags;
    const graph *g = (const graph *)from;
    graph *made = calloc(1, sizeof *made);
    made->n = g->n;
    made->all = malloc((g->n + 1) * sizeof *made->all);
    memcpy(made->all, g->all, g->n * sizeof *made->all);
    *out = (CUgraphExec)made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec made)
{
    return cuGraphDestroy((CUgraph)made);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec made, CUstream stream)
{
    const graph *g = (const graph *)made;
    (void)stream;
    n_recorded_runs++;
    for (size_t i = 0; i < g->n; i++) {
        const CUresult result = do_work(&g->all[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

/* ---- Events: the host's clock ---- */

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof(struct timespec));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)event);
    return is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *out, CUevent begin, CUevent end);
EXPORT CUresult cuEventElapsedTime(float *out, CUevent begin, CUevent end)
{
    const struct timespec *a = (const struct timespec *)begin, *b = (const struct timespec *)end;
    *out =
        (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
    return CUDA_SUCCESS;
}

/* ---- The GPU ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    (void)flags;
    return fault("none") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *out)
{
    *out = CUDA_VERSION;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
    *out = error == CUDA_ERROR_OUT_OF_MEMORY      ? "CUDA_ERROR_OUT_OF_MEMORY"
           : error == CUDA_ERROR_ILLEGAL_ADDRESS  ? "CUDA_ERROR_ILLEGAL_ADDRESS"
           : error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                                   : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
    *out = error == CUDA_ERROR_OUT_OF_MEMORY      ? "out of memory"
           : error == CUDA_ERROR_ILLEGAL_ADDRESS  ? "an illegal memory access was encountered"
           : error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "no kernel image is available for execution"
                                                   : "unknown error";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *out)
{
    *out = fault("none") ? 0 : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    *out = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
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
    *out = MOST_BYTES;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *out = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? SM / 10
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? SM % 10
                                                                   : 1;
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

/* ---- Kernels: an image is "fake sm_90 NAME" ---- */

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    int sm = 0;
    if (sscanf(image, "fake sm_%d", &sm) != 1)
        return CUDA_ERROR_INVALID_IMAGE;
    if (sm != SM || fault("old"))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *out = (CUmodule)strdup(image);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    free(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    char *has = strrchr((char *)module, ' ');
    if (!has || strcmp(has + 1, name))
        return CUDA_ERROR_NOT_FOUND;
    *out = (CUfunction)(has + 1);
    return CUDA_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_SUCCESS ? "success" : "compilation";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n,
                                      const char *const *headers, const char *const *names)
{
    (void)text;
    (void)name;
    (void)n;
    (void)headers;
    (void)names;
    *out = calloc(1, 256);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options)
{
    static const char wants[] = "-DWANT_", architecture[] = "--gpu-architecture=";
    const char *kernel = NULL, *sm = NULL;
    for (int i = 0; i < n; i++) {
        if (!strncmp(options[i], wants, sizeof wants - 1))
            kernel = options[i] + sizeof wants - 1;
        if (!strncmp(options[i], architecture, sizeof architecture - 1))
            sm = options[i] + sizeof architecture - 1;
    }
    if (!kernel || !sm)
        return NVRTC_ERROR_COMPILATION;
    snprintf((char *)program, 256, "fake %s %.*s", sm, (int)strcspn(kernel, "="), kernel);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *out)
{
    (void)program;
    *out = 0;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *out)
{
    (void)program;
    (void)out;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *out)
{
    *out = strlen((char *)program) + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out)
{
    strcpy(out, (char *)program);
    return NVRTC_SUCCESS;
}

/* ---- NVML: a hot GPU that uses 1 mJ for each launch ---- */

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
    *out = (unsigned long long)n_launches;
    return 0;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int which, unsigned *out);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *out)
{
    (void)device;
    (void)which;
    *out = 1000;
    return 0;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *out)
{
    (void)device;
    *out = getenv("FAKE_GPU_SLOWED") ? 0x40 : 0x1;
    return 0;
}
