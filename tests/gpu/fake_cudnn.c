/* fake_cudnn.c: a stand-in for cuDNN, for tests alone: its interface of descriptors. Two engines
 * take every graph, the first of them slowly; fake_cudnn_ops.c computes it with plain loops, after
 * what NVIDIA's reference says of each operation. So it shows whether our operations mean what they
 * should: dimensions, strides, padding, places in memory, the order of what is enqueued. It says
 * nothing of what the real one takes (tests/unit/test_plans.c does), of its rounding, or of its
 * speed. */
#define _GNU_SOURCE 1 /* gettid() */
#include "device/helpers.h"
#include "fake_cudnn.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_clock.h"

EXPORT size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

EXPORT size_t cudnnGetCudartVersion(void)
{
    const char *version = getenv("FAKE_CUDNN_CUDA");
    return version ? (size_t)atoi(version) : CUDA_VERSION;
}

EXPORT const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status ? "the stand-in for cuDNN refuses" : "success";
}

EXPORT void cudnnGetLastErrorString(char *out, size_t size)
{
    if (size)
        *out = '\0';
}

/* ---- Handles ---- */

static pid_t handle_thread; /* that opened the handle, and runs networks with it */

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    handle_thread = gettid();
    *out = malloc(1);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    return handle && stream ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* ---- Descriptors ---- */

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    case CUDNN_TYPE_FRACTION:
        return sizeof(cudnnFraction_t);
    default:
        return 4; /* floats and enumerations */
    }
}

const fake_attr *fake_find(const fake_descriptor *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; d && i < d->n_attrs; i++)
        if (d->attrs[i].name == name)
            return &d->attrs[i];
    return NULL;
}

const fake_descriptor *fake_child(const fake_descriptor *d, cudnnBackendAttributeName_t name)
{
    const fake_attr *a = fake_find(d, name);
    return a && a->n == 1 ? *(fake_descriptor **)a->values : NULL;
}

int64_t fake_int(const fake_descriptor *d, cudnnBackendAttributeName_t name, int64_t otherwise)
{
    const fake_attr *a = fake_find(d, name);
    int word;
    int64_t value;
    if (!a || a->n < 1)
        return otherwise;
    if (size_of(a->type) == 1)
        return *(const char *)a->values;
    if (size_of(a->type) == 8)
        return memcpy(&value, a->values, sizeof value), value;
    return memcpy(&word, a->values, sizeof word), word;
}

static void release(fake_descriptor *d)
{
    if (!d || __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL))
        return;
    for (int i = 0; i < d->n_attrs; i++) {
        const fake_attr *a = &d->attrs[i];
        if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
            for (int64_t k = 0; k < a->n; k++)
                release(((fake_descriptor **)a->values)[k]);
        free(a->values);
    }
    free(d);
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t *out)
{
    fake_descriptor *d = calloc(1, sizeof *d);
    *d = (fake_descriptor){.type = type, .refs = 1};
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    release(d);
    return CUDNN_STATUS_SUCCESS;
}

/* Descriptors of a plan are used by the thread that made it and by the one that runs it. */
static void hold(fake_descriptor *d)
{
    __atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
}

static void set(fake_descriptor *d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    fake_attr *a = &d->attrs[d->n_attrs++];
    *a = (fake_attr){name, type, n, malloc((size_t)n * size_of(type) + 1)};
    memcpy(a->values, values, (size_t)n * size_of(type));
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t k = 0; k < n; k++)
            hold(((fake_descriptor **)a->values)[k]);
}

/* Whether each is there and finished, as it must be to become a part of another. */
static bool are_final(int64_t n, const void *values)
{
    for (int64_t k = 0; k < n; k++) {
        const fake_descriptor *d = ((fake_descriptor *const *)values)[k];
        if (!d || !d->is_final)
            return false;
    }
    return true;
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t n,
                                              const void *values)
{
    fake_descriptor *d = of;
    if (d->is_final || d->n_attrs == FAKE_MAX_ATTRS || n < 0 || fake_find(d, name))
        return CUDNN_STATUS_BAD_PARAM;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && !are_final(n, values))
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    set(d, name, type, n, values);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Faults ---- */

/* FAKE_CUDNN_FAULT: "run" plans with a convolution are made, and fail when they are run; "bf16" no
 * engine takes such values; "five" to make a plan with a window of five columns kills the process;
 * "ahead" any that is made by another thread than that which runs networks, or waits for it, does;
 * "full" those are refused; "harm" the GPU is lost by them. */
static bool has_fault(const char *name)
{
    const char *text = getenv("FAKE_CUDNN_FAULT");
    return text && !strcmp(text, name);
}

static bool has_operation(const fake_descriptor *graph, cudnnBackendDescriptorType_t type)
{
    const fake_attr *ops = fake_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < ops->n; i++)
        if (((fake_descriptor **)ops->values)[i]->type == type)
            return true;
    return false;
}

static bool multiplies(const fake_descriptor *graph)
{
    return has_operation(graph, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) ||
           has_operation(graph, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) ||
           has_operation(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
}

static bool has_type(const fake_descriptor *d, cudnnDataType_t type)
{
    if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        return fake_int(d, CUDNN_ATTR_TENSOR_DATA_TYPE, -1) == (int64_t)type;
    for (int i = 0; i < d->n_attrs; i++)
        if (d->attrs[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
            for (int64_t k = 0; k < d->attrs[i].n; k++)
                if (has_type(((fake_descriptor **)d->attrs[i].values)[k], type))
                    return true;
    return false;
}

static bool has_columns(const fake_descriptor *d, int64_t n)
{
    const fake_attr *dims = fake_find(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
    if (dims)
        return dims->n && ((const int64_t *)dims->values)[dims->n - 1] == n;
    for (int i = 0; i < d->n_attrs; i++)
        if (d->attrs[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
            for (int64_t k = 0; k < d->attrs[i].n; k++)
                if (has_columns(((fake_descriptor **)d->attrs[i].values)[k], n))
                    return true;
    return false;
}

/* ---- Two engines ---- */

/* The graph that a heuristic, a configuration or a plan is of. */
static fake_descriptor *graph_of(const fake_descriptor *d)
{
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        d = fake_child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    return (fake_descriptor *)fake_child(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
}

/* ---- Kernels that are compiled ---- */

/* FAKE_CUDNN_COMPILES: engines say that they compile their kernels, and so many were compiled; for
 * the tests. */
EXPORT int fake_cudnn_compiled;
/* Plans that were made at one time, at most. */
EXPORT int fake_cudnn_most_at_once;

static bool compiles(void)
{
    return getenv("FAKE_CUDNN_COMPILES") != NULL;
}

static bool is_dynamic(const fake_descriptor *graph)
{
    return fake_int(graph, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, 0);
}

static bool same_operations(const fake_descriptor *a, const fake_descriptor *b)
{
    const fake_attr *x = fake_find(a, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    const fake_attr *y = fake_find(b, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    bool are_same = x && y && x->n == y->n;
    for (int64_t i = 0; are_same && i < x->n; i++)
        are_same =
            ((fake_descriptor **)x->values)[i]->type == ((fake_descriptor **)y->values)[i]->type;
    return are_same;
}

/* False where the plan's cache is not one for its graph. */
static bool compile_plan(const fake_descriptor *plan)
{
    const fake_descriptor *graph = graph_of(plan);
    fake_descriptor *cache =
        (fake_descriptor *)fake_child(plan, CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE);
    if (!compiles() || !graph)
        return true;
    if (cache &&
        (!is_dynamic(graph) ||
         !same_operations(graph, fake_child(cache, CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH))))
        return false;
    __atomic_fetch_add(&fake_cudnn_compiled, !cache || !cache->has_kernel, __ATOMIC_RELAXED);
    if (cache)
        cache->has_kernel = true;
    return true;
}

/* By another thread than that which runs networks, which does not wait for it. */
static bool is_made_ahead(void)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return handle_thread && gettid() != handle_thread && strcmp(name, HWNAS_HELPER_THREAD) != 0;
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of)
{
    fake_descriptor *d = of;
    if (d->is_final)
        return CUDNN_STATUS_BAD_PARAM;
    /* FAKE_CUDNN_SECONDS: so long it takes to make a plan. */
    const char *seconds = getenv("FAKE_CUDNN_SECONDS");
    if (seconds && d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        static int at_once;
        const int n = __atomic_add_fetch(&at_once, 1, __ATOMIC_RELAXED);
        if (n > __atomic_load_n(&fake_cudnn_most_at_once, __ATOMIC_RELAXED))
            __atomic_store_n(&fake_cudnn_most_at_once, n, __ATOMIC_RELAXED);
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * fmin(atof(seconds), 0.99))}, NULL);
        __atomic_sub_fetch(&at_once, 1, __ATOMIC_RELAXED);
    }
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        const bool is_ahead = is_made_ahead();
        if ((has_fault("five") && has_columns(d, 5)) || (has_fault("ahead") && is_ahead))
            raise(SIGKILL);
        if ((has_fault("full") && is_ahead) || !compile_plan(d))
            return CUDNN_STATUS_NOT_SUPPORTED;
        fake_note_plan(is_ahead);
        fake.is_lost |= has_fault("harm") && is_ahead;
    }
    d->is_final = true;
    return CUDNN_STATUS_SUCCESS;
}

/* FAKE_CUDNN_CUBLASLT: the first engine says that it uses cublasLt. The answers about an engine;
 * false: that is not asked, or nobody told the stand-in to answer. */
static bool tell_of_engine(const fake_descriptor *d, cudnnBackendAttributeName_t name, int64_t *n,
                           void *values)
{
    const bool has_cublaslt = getenv("FAKE_CUDNN_CUBLASLT") != NULL;
    if (!has_cublaslt && !compiles())
        return false;
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        const int64_t engine = fake_int(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
        set(*(fake_descriptor **)values, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
            &engine);
        return true;
    }
    if (has_cublaslt && name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
        *(int64_t *)values = fake_int(d, name, 0);
        return true;
    }
    if (name != CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE)
        return false;
    *n = compiles() || !fake_int(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
    *(cudnnBackendBehaviorNote_t *)values = compiles() ? CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION
                                                       : CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY;
    return true;
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room,
                                              int64_t *n, void *values)
{
    const fake_descriptor *d = of;
    (void)type;
    *n = name == CUDNN_ATTR_ENGINEHEUR_RESULTS ? 2 : 1;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *(int64_t *)values = FAKE_WORKSPACE;
        return CUDNN_STATUS_SUCCESS;
    }
    if (tell_of_engine(d, name, n, values))
        return CUDNN_STATUS_SUCCESS;
    if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS)
        return CUDNN_STATUS_NOT_SUPPORTED;
    fake_descriptor *graph = graph_of(d);
    if (graph && is_dynamic(graph) && !multiplies(graph)) { /* as the real one */
        *n = 0;
        return CUDNN_STATUS_SUCCESS;
    }
    if (graph && has_fault("bf16") && has_type(graph, CUDNN_DATA_BFLOAT16)) {
        *n = 0;
        return CUDNN_STATUS_SUCCESS;
    }
    for (int64_t i = 0; graph && i < room; i++) {
        fake_descriptor *config = ((fake_descriptor **)values)[i];
        set(config, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &i);
        set(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &graph);
        config->is_final = true;
    }
    return graph ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* How often each of the two ran; for the tests. */
EXPORT int fake_cudnn_runs[2];

static CUresult run_call(fake_call *call)
{
    const fake_run *run = (const fake_run *)call;
    fake_cudnn_runs[run->engine]++;
    if (!run->engine && fake_simulation()->kernel == 0)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return fake_run_graph(run);
}

static void free_call(fake_call *call)
{
    release(((fake_run *)call)->graph);
    free(call);
}

/* Numbers that are given by value are read while a run is enqueued: they may be gone in a replay.
 */
static void read_numbers(fake_run *run)
{
    const fake_attr *ops = fake_find(run->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < ops->n; i++) {
        const fake_descriptor *op = ((fake_descriptor **)ops->values)[i];
        for (int a = 0; a < op->n_attrs; a++) {
            if (op->attrs[a].type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
                continue;
            const fake_descriptor *t = *(fake_descriptor **)op->attrs[a].values;
            const int64_t id = fake_int(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, -1);
            for (int k = 0; k < run->n; k++)
                if (run->ids[k] == id && fake_int(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0))
                    run->numbers[k] = *(const float *)run->pointers[k];
        }
    }
}

/* FAKE_CUDNN_LOADS: so many seconds the first plan that runs takes to load its kernels. */
static void load_once(void)
{
    static bool is_loaded;
    const char *seconds = getenv("FAKE_CUDNN_LOADS");
    if (seconds && !is_loaded)
        nanosleep(&(struct timespec){.tv_sec = atoi(seconds)}, NULL);
    is_loaded = true;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack)
{
    const fake_attr *ids = fake_find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const fake_attr *pointers = fake_find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    const fake_attr *workspace = fake_find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    fake_descriptor *graph = graph_of(plan);
    if (!handle || !graph || !ids || !pointers || !workspace || ids->n != pointers->n ||
        ids->n > FAKE_MAX_PACK || !((fake_descriptor *)pack)->is_final)
        return CUDNN_STATUS_BAD_PARAM;
    if (has_fault("run") &&
        has_operation(graph, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR))
        return CUDNN_STATUS_EXECUTION_FAILED;
    load_once();
    fake_run *run = calloc(1, sizeof *run);
    run->call = (fake_call){.run = run_call, .free = free_call};
    run->graph = graph;
    run->engine = (int)fake_int(fake_child(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG),
                                CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
    /* The first is slow, and a kernel for all sizes slower than one for a single size. */
    run->call.extra = (run->engine ? 0 : 2) + (is_dynamic(graph) ? 4 : 0);
    hold(graph);
    run->n = (int)ids->n;
    memcpy(run->ids, ids->values, (size_t)ids->n * sizeof *run->ids);
    memcpy(run->pointers, pointers->values, (size_t)ids->n * sizeof *run->pointers);
    run->workspace = *(char **)workspace->values;
    read_numbers(run);
    return fake_enqueue(&run->call) ? CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER
                                    : CUDNN_STATUS_SUCCESS;
}
