/* engine_ort.c: ONNX Runtime as a worker of `engine`: engine_ort LIBRARY MODEL.onnx THREADS. The
 * library is opened by its name, so one program serves every version that is installed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_c_api.h>

#include "benchmarks/engine_worker.h"

enum { MAX_PORTS = 64, MAX_RANK = 8, API = 16 };

typedef struct model {
    OrtSession *session;
    size_t n_inputs, n_outputs;
    char *input_names[MAX_PORTS], *output_names[MAX_PORTS];
    OrtValue *inputs[MAX_PORTS];
} model;

static const OrtApi *api;

static void ok(OrtStatus *status)
{
    if (!status)
        return;
    fprintf(stderr, "engine_ort: %s\n", api->GetErrorMessage(status));
    exit(1);
}

static void run(void *context)
{
    model *m = context;
    OrtValue *outputs[MAX_PORTS] = {NULL};
    ok(api->Run(m->session, NULL, (const char *const *)m->input_names,
                (const OrtValue *const *)m->inputs, m->n_inputs,
                (const char *const *)m->output_names, m->n_outputs, outputs));
    for (size_t i = 0; i < m->n_outputs; i++)
        api->ReleaseValue(outputs[i]);
}

static const OrtApiBase *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const OrtApiBase *(*get)(void) = NULL;
    if (library)
        *(void **)&get = dlsym(library, "OrtGetApiBase");
    api = get ? get()->GetApi(API) : NULL;
    if (!api) {
        fprintf(stderr, "engine_ort: %s\n", get ? "an old ONNX Runtime" : dlerror());
        exit(1);
    }
    return get();
}

static OrtSession *open_session(const char *path, int threads)
{
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    ok(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "engine", &env));
    ok(api->CreateSessionOptions(&options));
    ok(api->SetIntraOpNumThreads(options, threads));
    ok(api->SetInterOpNumThreads(options, 1));
    ok(api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL));
    ok(api->CreateSession(env, path, options, &session));
    return session;
}

static OrtValue *make_input(const OrtSession *session, size_t index)
{
    OrtTypeInfo *type;
    const OrtTensorTypeAndShapeInfo *shape;
    ONNXTensorElementDataType element;
    OrtMemoryInfo *memory;
    OrtValue *value;
    int64_t dims[MAX_RANK];
    size_t rank, n = 1;
    ok(api->SessionGetInputTypeInfo(session, index, &type));
    ok(api->CastTypeInfoToTensorInfo(type, &shape));
    ok(api->GetTensorElementType(shape, &element));
    ok(api->GetDimensionsCount(shape, &rank));
    ok(api->GetDimensions(shape, dims, rank));
    for (size_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    const int is_whole = element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    float *values = malloc(n * sizeof *values);
    int64_t *whole = malloc(n * sizeof *whole);
    worker_fill(values, n, is_whole);
    for (size_t i = 0; i < n && is_whole; i++)
        whole[i] = (int64_t)values[i];
    ok(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    ok(api->CreateTensorWithDataAsOrtValue(memory, is_whole ? (void *)whole : values,
                                           n * (is_whole ? sizeof *whole : sizeof *values), dims,
                                           rank, element, &value));
    api->ReleaseTypeInfo(type);
    return value;
}

int main(int argc, char **argv)
{
    model m = {0};
    OrtAllocator *allocator;
    char who[64];
    if (argc != 4) {
        fprintf(stderr, "usage: engine_ort LIBRARY MODEL.onnx THREADS\n");
        return 2;
    }
    const OrtApiBase *base = open_library(argv[1]);
    const double start = worker_now();
    m.session = open_session(argv[2], atoi(argv[3]));
    const double create = worker_now() - start;
    ok(api->GetAllocatorWithDefaultOptions(&allocator));
    ok(api->SessionGetInputCount(m.session, &m.n_inputs));
    ok(api->SessionGetOutputCount(m.session, &m.n_outputs));
    if (m.n_inputs > MAX_PORTS || m.n_outputs > MAX_PORTS) {
        fprintf(stderr, "engine_ort: '%s' has more than %d inputs or outputs\n", argv[2],
                MAX_PORTS);
        return 1;
    }
    for (size_t i = 0; i < m.n_inputs; i++) {
        ok(api->SessionGetInputName(m.session, i, allocator, &m.input_names[i]));
        m.inputs[i] = make_input(m.session, i);
    }
    for (size_t i = 0; i < m.n_outputs; i++)
        ok(api->SessionGetOutputName(m.session, i, allocator, &m.output_names[i]));
    snprintf(who, sizeof who, "ONNX Runtime %s", base->GetVersionString());
    worker_serve(run, &m, create, who, "");
    return 0;
}
