/* ort_exec.c: a session of ONNX Runtime as an executable. */
#include <stdlib.h>
#include <string.h>

#include "device/ort/ort.h"
#include "device/ranges.h"
#include "onnx/onnx.h"

/* An input or an output. Floats are bound where the caller has them, all else is converted. */
typedef struct port {
    char *name; /* ONNX Runtime's */
    ONNXTensorElementDataType type;
    size_t rank, count;
    int64_t dims[HWNAS_MAX_RANK];
    void *converted; /* NULL: floats */
    const void *bound;
    OrtValue *value; /* of `converted` or `bound` */
} port;

typedef struct ort_exec {
    hwnas_exec base;
    const ort_device *device;
    OrtSession *session;
    size_t n_inputs, n_outputs;
    port *ports; /* inputs, then outputs */
    const char **names;
    OrtValue **values; /* both as `ports` */
} ort_exec;

/* ---- Types ---- */

/* What a type cannot hold becomes its nearest value, and what is no number 0: C leaves both open.
 */
#define BOUNDED(TYPE, LOW, HIGH, value)                                                            \
    ((value) >= (float)(HIGH)  ? (HIGH)                                                            \
     : (value) <= (float)(LOW) ? (LOW)                                                             \
     : (value) == (value)      ? (TYPE)(value)                                                     \
                               : 0)

#define INTEGERS(NAME, TYPE, LOW, HIGH) CONVERTERS(NAME, TYPE, BOUNDED(TYPE, LOW, HIGH, in[i]))
#define CONVERTERS(NAME, TYPE, CONVERTED)                                                          \
    static void NAME##_from_floats(void *out, const float *in, size_t n)                           \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            ((TYPE *)out)[i] = (TYPE)(CONVERTED);                                                  \
    }                                                                                              \
    static void NAME##_to_floats(float *out, const void *in, size_t n)                             \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = (float)((const TYPE *)in)[i];                                                 \
    }

CONVERTERS(bool, bool, in[i])
CONVERTERS(double, double, in[i])
INTEGERS(int8, int8_t, INT8_MIN, INT8_MAX)
INTEGERS(int16, int16_t, INT16_MIN, INT16_MAX)
INTEGERS(int32, int32_t, INT32_MIN, INT32_MAX)
INTEGERS(int64, int64_t, INT64_MIN, INT64_MAX)
INTEGERS(uint8, uint8_t, 0, UINT8_MAX)
INTEGERS(uint16, uint16_t, 0, UINT16_MAX)
INTEGERS(uint32, uint32_t, 0, UINT32_MAX)
INTEGERS(uint64, uint64_t, 0, UINT64_MAX)

static const struct type_row {
    ONNXTensorElementDataType type;
    size_t size;
    void (*from_floats)(void *out, const float *in, size_t n); /* NULL: they are floats */
    void (*to_floats)(float *out, const void *in, size_t n);
} types[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, sizeof(float), NULL, NULL},
#define ROW(ELEMENT, NAME, TYPE)                                                                   \
    {                                                                                              \
        ONNX_TENSOR_ELEMENT_DATA_TYPE_##ELEMENT, sizeof(TYPE), NAME##_from_floats,                 \
            NAME##_to_floats                                                                       \
    }
    ROW(BOOL, bool, bool),
    ROW(DOUBLE, double, double),
    ROW(INT8, int8, int8_t),
    ROW(INT16, int16, int16_t),
    ROW(INT32, int32, int32_t),
    ROW(INT64, int64, int64_t),
    ROW(UINT8, uint8, uint8_t),
    ROW(UINT16, uint16, uint16_t),
    ROW(UINT32, uint32, uint32_t),
    ROW(UINT64, uint64, uint64_t),
#undef ROW
};

static const struct type_row *row_of(ONNXTensorElementDataType type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

/* ---- Ports ---- */

static hwnas_status bind(port *p, const ort_device *device, const void *at)
{
    const OrtApi *api = device->api;
    if (p->bound == at)
        return HWNAS_OK;
    if (p->value)
        api->ReleaseValue(p->value);
    p->value = NULL;
    p->bound = NULL;
    TRY_ORT(api, "take", p->name,
            api->CreateTensorWithDataAsOrtValue(device->memory, (void *)at,
                                                p->count * row_of(p->type)->size, p->dims, p->rank,
                                                p->type, &p->value));
    p->bound = at;
    return HWNAS_OK;
}

static hwnas_status read_type(port *p, const OrtApi *api, const OrtTypeInfo *info)
{
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    TRY_ORT(api, "describe", p->name, api->CastTypeInfoToTensorInfo(info, &tensor));
    if (!tensor)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%.60s' is not a tensor", p->name);
    TRY_ORT(api, "describe", p->name, api->GetTensorElementType(tensor, &p->type));
    if (!row_of(p->type))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                          "'%.60s' has a type that the device 'ort' does not take", p->name);
    return HWNAS_OK;
}

/* The shape is the graph's: what ONNX Runtime infers may be open. */
static hwnas_status open_port(port *p, const ort_exec *exec, size_t index, bool is_input,
                              const hwnas_tensor *tensor)
{
    const OrtApi *api = exec->device->api;
    OrtAllocator *allocator;
    OrtTypeInfo *info = NULL;
    TRY_ORT(api, "describe", tensor->name, api->GetAllocatorWithDefaultOptions(&allocator));
    TRY_ORT(api, "describe", tensor->name,
            (is_input ? api->SessionGetInputName : api->SessionGetOutputName)(exec->session, index,
                                                                              allocator, &p->name));
    TRY_ORT(api, "describe", tensor->name,
            (is_input ? api->SessionGetInputTypeInfo
                      : api->SessionGetOutputTypeInfo)(exec->session, index, &info));
    const hwnas_status status = read_type(p, api, info);
    api->ReleaseTypeInfo(info);
    TRY(status);
    p->rank = (size_t)tensor->rank;
    p->count = (size_t)hwnas_tensor_count(tensor);
    memcpy(p->dims, tensor->dims, p->rank * sizeof *p->dims);
    if (!row_of(p->type)->from_floats)
        return HWNAS_OK;
    TRY(hwnas_try_alloc(&p->converted, p->count * row_of(p->type)->size + 1, tensor->name));
    return bind(p, exec->device, p->converted);
}

static hwnas_status open_ports(ort_exec *exec, const hwnas_graph *graph)
{
    const OrtApi *api = exec->device->api;
    size_t n_inputs, n_outputs;
    TRY_ORT(api, "describe", graph->name, api->SessionGetInputCount(exec->session, &n_inputs));
    TRY_ORT(api, "describe", graph->name, api->SessionGetOutputCount(exec->session, &n_outputs));
    if (n_inputs != graph->n_inputs || n_outputs != graph->n_outputs)
        return hwnas_fail(HWNAS_E_LIBRARY, NULL,
                          "ONNX Runtime sees %zu inputs and %zu outputs in place of %zu and %zu",
                          n_inputs, n_outputs, graph->n_inputs, graph->n_outputs);
    const size_t n = n_inputs + n_outputs;
    exec->ports = hwnas_alloc((n + 1) * sizeof *exec->ports);
    exec->names = hwnas_alloc((n + 1) * sizeof *exec->names);
    exec->values = hwnas_alloc((n + 1) * sizeof *exec->values);
    exec->n_inputs = n_inputs;
    exec->n_outputs = n_outputs;
    for (size_t i = 0; i < n; i++) {
        const bool is_input = i < n_inputs;
        const int tensor = is_input ? graph->inputs[i] : graph->outputs[i - n_inputs];
        TRY(open_port(&exec->ports[i], exec, is_input ? i : i - n_inputs, is_input,
                      &graph->tensors[tensor]));
        exec->names[i] = exec->ports[i].name;
    }
    return HWNAS_OK;
}

/* ---- Sessions ---- */

static hwnas_status set_options(OrtSessionOptions *options, const ort_device *device)
{
    const OrtApi *api = device->api;
    TRY_ORT(api, "set", "threads", api->SetIntraOpNumThreads(options, device->threads));
    TRY_ORT(api, "set", "threads", api->SetInterOpNumThreads(options, 1));
    TRY_ORT(api, "set", "optimizations",
            api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL));
    if (!device->provider)
        return HWNAS_OK;
    const hwnas_status status = hwnas_ort_status(
        api, api->SessionOptionsAppendExecutionProvider(options, device->provider, NULL, NULL, 0),
        HWNAS_E_UNSUPPORTED, "use the provider", device->provider);
    return status == HWNAS_OK
               ? status
               : hwnas_hint(status, "this library was built without it; 'ort' uses the processor's "
                                    "own provider");
}

static hwnas_status open_session(ort_exec *exec, const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_OK;
    const ort_device *device = exec->device;
    const OrtApi *api = device->api;
    OrtSessionOptions *options = NULL;
    void *onnx = NULL;
    size_t length;
    TRY_OUT(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_VALUES));
    TRY_OUT(hwnas_ort_status(api, api->CreateSessionOptions(&options), HWNAS_E_LIBRARY, "open",
                             graph->name));
    TRY_OUT(set_options(options, device));
    TRY_OUT(hwnas_ort_status(
        api, api->CreateSessionFromArray(device->env, onnx, length, options, &exec->session),
        HWNAS_E_UNSUPPORTED, "compile", graph->name));
out:
    if (options)
        api->ReleaseSessionOptions(options);
    free(onnx);
    return status;
}

hwnas_status hwnas_ort_compile(hwnas_exec **out, hwnas_device *base, const hwnas_graph *graph,
                               const hwnas_exec_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *quantized = NULL;
    ort_exec *exec = hwnas_alloc(sizeof *exec);
    exec->base.ops = base->ops;
    exec->device = (const ort_device *)base;
    if (!hwnas_graph_is_quantized(graph))
        TRY_OUT(hwnas_device_in_precision(&quantized, base, graph, options));
    if (quantized)
        graph = quantized;
    TRY_OUT(open_session(exec, graph));
    TRY_OUT(open_ports(exec, graph));
    *out = &exec->base;
    exec = NULL;
out:
    if (exec)
        hwnas_ort_free_exec(&exec->base);
    hwnas_graph_free(quantized);
    return status;
}

hwnas_status hwnas_ort_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    ort_exec *exec = (ort_exec *)base;
    const OrtApi *api = exec->device->api;
    const size_t n = exec->n_inputs + exec->n_outputs;
    for (size_t i = 0; i < n; i++) {
        port *p = &exec->ports[i];
        const bool is_input = i < exec->n_inputs;
        if (!p->converted)
            TRY(bind(p, exec->device, is_input ? inputs[i] : outputs[i - exec->n_inputs]));
        else if (is_input)
            row_of(p->type)->from_floats(p->converted, inputs[i], p->count);
        exec->values[i] = p->value;
    }
    TRY_ORT(api, "run", "the network",
            api->Run(exec->session, NULL, exec->names, (const OrtValue *const *)exec->values,
                     exec->n_inputs, exec->names + exec->n_inputs, exec->n_outputs,
                     exec->values + exec->n_inputs));
    for (size_t i = exec->n_inputs; i < n; i++)
        if (exec->ports[i].converted)
            row_of(exec->ports[i].type)
                ->to_floats(outputs[i - exec->n_inputs], exec->ports[i].converted,
                            exec->ports[i].count);
    return HWNAS_OK;
}

static void close_port(port *p, const OrtApi *api)
{
    OrtAllocator *allocator;
    if (p->value)
        api->ReleaseValue(p->value);
    if (p->name) {
        OrtStatus *answer = api->GetAllocatorWithDefaultOptions(&allocator);
        if (!answer)
            answer = api->AllocatorFree(allocator, p->name);
        if (answer)
            api->ReleaseStatus(answer);
    }
    free(p->converted);
}

void hwnas_ort_free_exec(hwnas_exec *base)
{
    ort_exec *exec = (ort_exec *)base;
    if (!exec)
        return;
    const OrtApi *api = exec->device->api;
    for (size_t i = 0; i < exec->n_inputs + exec->n_outputs; i++)
        close_port(&exec->ports[i], api);
    if (exec->session)
        api->ReleaseSession(exec->session);
    free(exec->ports);
    free(exec->names);
    free(exec->values);
    free(exec);
}
