/* fake_stream.c: what is enqueued is computed at once, or recorded as a graph; fake_clock.c says
 * when the GPU has done it. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_clock.h"
#include "fake_gpu.h"
#include "host_kernels.h"

typedef struct work {
    enum { LAUNCH, COPY, FILL, CALL, EVENT } what;
    char *to;
    const char *from;
    size_t bytes;
    int value, n_blocks, n_threads;
    char kernel[64];
    hwnas_kernel_job job;
    fake_call *call;
    double *event; /* when it was reached */
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

/* What the last replay consisted of, as it was simulated; for the tests: seconds of work at the
 * full clock rate, and -1 for an event. */
enum { MOST_LOGGED = 512 };
EXPORT int fake_gpu_n_logged;
EXPORT double fake_gpu_log[MOST_LOGGED];

static void note(double seconds)
{
    if (fake_gpu_n_logged < MOST_LOGGED)
        fake_gpu_log[fake_gpu_n_logged++] = seconds;
}

/* Seconds at the full clock rate: kernels differ, as their sizes do. */
static double simulated(const work *w)
{
    const double one = fake_simulation()->kernel;
    return w->what == LAUNCH ? one * (1 + 0.25 * (w->n_blocks % 4))
           : w->what == CALL ? one * (1 + w->call->extra)
                             : one * 0.5;
}

static CUresult compute(const work *w)
{
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
    case EVENT:
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static bool is_cold; /* the cache: something as large has just been written */

/* The host goes on at once: that the GPU is lost is found out when it waits, or by the next call.
 */
static CUresult do_work(const work *w, bool is_first, bool is_replay)
{
    const fake_settings *f = fake_simulation();
    if (fake.is_lost)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (w->what == EVENT) {
        if (is_replay && f->event > 0)
            fake_work(f->event, is_first);
        *w->event = fake_stream_end();
        if (is_replay)
            note(-1);
        return CUDA_SUCCESS;
    }
    if (++fake.n_launches == fake_fault("lost")) {
        fake.is_lost = true;
        return CUDA_SUCCESS;
    }
    const double start = fake_clock();
    const CUresult result = f->values < !!is_replay ? CUDA_SUCCESS : compute(w);
    const double seconds = f->kernel > 0 ? simulated(w) : fake_clock() - start;
    is_cold |= w->what == FILL && w->bytes >= FAKE_L2_BYTES;
    fake_work(seconds * (is_cold && is_replay ? 1 + f->cold : 1), is_first);
    if (is_replay)
        note(seconds);
    return result;
}

static CUresult enqueue(const work *w)
{
    if (!recording) {
        fake_spend(fake_simulation()->launch);
        return do_work(w, true, false);
    }
    if (fake.is_lost || ++fake.n_recorded == fake_fault("unrecorded")) {
        fake.is_lost = true;
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
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

/* ---- What happens, in its order ---- */

static int n_ahead;

static void add_line(const char *variable, const char *line)
{
    const char *name = getenv(variable);
    FILE *file = name ? fopen(name, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\n", line);
    fclose(file);
}

/* FAKE_GPU_TRACE names a file that gets a line for each plan that is made, "plan" or "ahead", and
 * "network" when one has been recorded. */
static void trace(const char *line)
{
    add_line("FAKE_GPU_TRACE", line);
}

void fake_note_plan(bool is_ahead)
{
    trace(is_ahead ? "ahead" : "plan");
    if (is_ahead)
        add_line("FAKE_GPU_HELD", "held");
    __atomic_add_fetch(&n_ahead, is_ahead, __ATOMIC_RELEASE);
}

/* FAKE_GPU_HOLDS=N: the first network that is timed is not done before N plans were made ahead; the
 * GPU is lost where that never comes. So it is in each process; with FAKE_GPU_HELD, a file that the
 * first plan makes which is made ahead, in none that begins later. */
enum { MOST_MILLISECONDS = 60000 };

static void hold_on(void)
{
    static bool is_over;
    const char *text = getenv("FAKE_GPU_HOLDS"), *held = getenv("FAKE_GPU_HELD");
    is_over |= held && !access(held, F_OK);
    for (int i = 0; text && !is_over && __atomic_load_n(&n_ahead, __ATOMIC_ACQUIRE) < atoi(text);
         i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        is_over = fake.is_lost = i == MOST_MILLISECONDS;
    }
    is_over = true;
}

/* ---- The stream ---- */

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
    if (recording)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    fake_wait(fake_stream_end());
    return fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    recording = calloc(1, sizeof *recording);
    fake.n_live++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph made)
{
    const graph *g = (const graph *)made;
    for (size_t i = 0; i < g->n; i++)
        forget(&g->all[i]);
    free(g->all);
    free(made);
    fake.n_live--;
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
    fake.n_live++;
    made->n = g->n;
    made->all = malloc((g->n + 1) * sizeof *made->all);
    memcpy(made->all, g->all, g->n * sizeof *made->all);
    for (size_t i = 0; i < g->n; i++)
        if (g->all[i].what == CALL)
            g->all[i].call->refs++;
    *out = (CUgraphExec)made;
    trace("network");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphUpload(CUgraphExec made, CUstream stream)
{
    return made && stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* FAKE_GPU_TRUTH names a file, to which the simulated seconds of the last replay are written. */
static void tell_truth(void)
{
    const char *name = getenv("FAKE_GPU_TRUTH");
    FILE *file = name && fake_gpu_n_logged ? fopen(name, "w") : NULL;
    double sum = 0;
    for (int i = 0; i < fake_gpu_n_logged; i++)
        sum += fake_gpu_log[i] > 0 ? fake_gpu_log[i] : 0;
    if (file) {
        fprintf(file, "%.9g\n", sum);
        fclose(file);
    }
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec made)
{
    tell_truth();
    return cuGraphDestroy((CUgraph)made);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec made, CUstream stream)
{
    const graph *g = (const graph *)made;
    (void)stream;
    fake.n_replays++;
    fake_gpu_n_logged = 0;
    fake_spend(fake_simulation()->launch);
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < g->n && result == CUDA_SUCCESS; i++)
        result = do_work(&g->all[i], !i, true);
    is_cold = false;
    return result;
}

/* ---- Events ---- */

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof(double));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

/* Recorded with a graph, it is part of it if it is external; else it says nothing. */
EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    (void)stream;
    if (fake.is_lost)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (recording && !(flags & CU_EVENT_RECORD_EXTERNAL))
        return CUDA_SUCCESS;
    if (recording)
        return enqueue(&(work){.what = EVENT, .event = (double *)event});
    *(double *)event = fake_stream_end();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    hold_on();
    fake_wait(*(const double *)event);
    return fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *out, CUevent begin, CUevent end);
EXPORT CUresult cuEventElapsedTime(float *out, CUevent begin, CUevent end)
{
    const double a = *(const double *)begin, b = *(const double *)end;
    if (fake_clock() < b)
        return CUDA_ERROR_NOT_READY;
    *out = (float)((b - a) * 1e3);
    return fake.is_lost ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}
