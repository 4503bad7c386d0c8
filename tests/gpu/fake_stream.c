/* fake_stream.c: what is enqueued is done at once, or recorded as a graph; events have the host's
 * clock. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_gpu.h"
#include "host_kernels.h"

typedef struct work {
    enum { LAUNCH, COPY, FILL, CALL } what;
    char *to;
    const char *from;
    size_t bytes;
    int value, n_blocks, n_threads;
    char kernel[64];
    hwnas_kernel_job job;
    fake_call *call;
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
        if (v->at && !fake_owns(v->at, (last + 1) * stored_size(v->type)))
            return false;
    }
    return true;
}

static CUresult do_work(const work *w)
{
    if (++fake.n_launches == fake_fault("lost"))
        fake.is_lost = true;
    if (fake.is_lost)
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
    case CALL:
        return w->call->run(w->call);
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

static void forget(const work *w)
{
    if (w->what == CALL && !--w->call->refs)
        w->call->free(w->call);
}

CUresult fake_enqueue(fake_call *call)
{
    const work w = {.what = CALL, .call = call};
    call->refs = 1;
    const CUresult result = enqueue(&w);
    if (!recording)
        forget(&w);
    return result;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                     CUstream stream)
{
    (void)stream;
    if (!fake_owns((char *)to, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = COPY, .to = (char *)to, .from = from, .bytes = bytes});
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (!fake_owns((char *)from, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = COPY, .to = to, .from = (char *)from, .bytes = bytes});
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                     CUstream stream)
{
    (void)stream;
    if (!fake_owns((char *)from, bytes) || !fake_owns((char *)to, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(&(work){.what = COPY, .to = (char *)to, .from = (char *)from, .bytes = bytes});
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    if (!fake_owns((char *)to, bytes))
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
    w.job = *(const hwnas_kernel_job *)arguments[0];
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
           : fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS
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
    const graph *g = (const graph *)made;
    for (size_t i = 0; i < g->n; i++)
        forget(&g->all[i]);
    free(g->all);
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
    if (fake_fault("record")) {
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
    for (size_t i = 0; i < g->n; i++)
        if (g->all[i].what == CALL)
            g->all[i].call->refs++;
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
    fake.n_replays++;
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
    return fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
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
