/* ort.c: ONNX Runtime as a device. The library is opened when it is asked for, so one program
 * serves every version that is installed. */
#include "device/ort/ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/devices.h"
#include "device/ranges.h"

enum { API = 16 }; /* of ONNX Runtime 1.16: what newer ones have as well */

#define XNNPACK "xnnpack"

hwnas_status hwnas_ort_status(const OrtApi *api, OrtStatus *answer, hwnas_status code,
                              const char *verb, const char *name)
{
    if (!answer)
        return HWNAS_OK;
    const hwnas_status status = hwnas_fail(code, NULL, "ONNX Runtime cannot %s '%.60s': %.300s",
                                           verb, name, api->GetErrorMessage(answer));
    api->ReleaseStatus(answer);
    return status;
}

/* Stays open: its threads may outlive whatever it made. */
static void *open_library(void)
{
    static const char *const names[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
    const char *given = getenv("HWNAS_ORT_LIBRARY");
    void *library = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library && !(given && *given); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static hwnas_status find_api(const OrtApiBase **out)
{
    const OrtApiBase *(*get)(void) = NULL;
    void *library = open_library();
    if (!library)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "there is no ONNX Runtime: %.300s", dlerror()),
            "install libonnxruntime, or name the library in $HWNAS_ORT_LIBRARY "
            "(onnxruntime-node has one)");
    *(void **)&get = dlsym(library, "OrtGetApiBase");
    if (!get || !get()->GetApi(API))
        return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, NULL,
                                     "this is no ONNX Runtime 1.16 or newer%s%s", get ? ": " : "",
                                     get ? get()->GetVersionString() : ""),
                          "name another library in $HWNAS_ORT_LIBRARY");
    *out = get();
    return HWNAS_OK;
}

static void ort_close(hwnas_device *base)
{
    ort_device *device = (ort_device *)base;
    if (device->memory)
        device->api->ReleaseMemoryInfo(device->memory);
    if (device->env)
        device->api->ReleaseEnv(device->env);
    free(device);
}

static hwnas_status ort_open(hwnas_device **out, const char *argument,
                             const hwnas_device_options *options)
{
    hwnas_status status = HWNAS_OK;
    const OrtApiBase *library = NULL;
    const bool is_xnnpack = !strcmp(argument, XNNPACK);
    if (*argument && !is_xnnpack)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "device 'ort' takes no '%.60s'", argument),
            "write 'ort', or 'ort:" XNNPACK "' for that execution provider");
    TRY(find_api(&library));
    ort_device *device = hwnas_alloc(sizeof *device);
    const OrtApi *api = device->api = library->GetApi(API);
    device->provider = is_xnnpack ? "XNNPACK" : NULL;
    device->threads = options->threads ? options->threads : hwnas_device_cores();
    snprintf(device->version, sizeof device->version, "%.20s", library->GetVersionString());
    TRY_OUT(hwnas_ort_status(api, api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "hwnas", &device->env),
                             HWNAS_E_LIBRARY, "open", "its environment"));
    TRY_OUT(hwnas_ort_status(
        api, api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &device->memory),
        HWNAS_E_LIBRARY, "open", "the processor's memory"));
    *out = &device->base;
    device = NULL;
out:
    if (device)
        ort_close(&device->base);
    return status;
}

/* Floats, with weights of few bits where they are wished for (MatMulNBits). */
enum { FLOATS = 1 << HWNAS_F32 | 1 << HWNAS_W8 | 1 << HWNAS_W4 };

static void ort_describe(const hwnas_device *base, hwnas_device_info *out)
{
    const ort_device *device = (const ort_device *)base;
    const bool has_s8 = hwnas_device_cpu_has_s8();
    *out = (hwnas_device_info){.threads = device->threads,
                               .native = FLOATS | (unsigned)has_s8 << HWNAS_S8,
                               .emulated = (unsigned)!has_s8 << HWNAS_S8,
                               .computes = true};
    hwnas_device_cpu_name(out->name, sizeof out->name);
    snprintf(out->library, sizeof out->library, "ONNX Runtime %s", device->version);
    snprintf(out->isa, sizeof out->isa, "%s", device->provider ? device->provider : "CPU provider");
}

/* As a file of bytes is written: what ONNX Runtime reads is such a file. */
static hwnas_status ort_quantize(hwnas_graph **out, int **origin, hwnas_device *device,
                                 const hwnas_graph *graph, const hwnas_exec_options *options)
{
    return hwnas_device_quantize(out, origin, device, graph, options, HWNAS_QUANTIZE_FILE);
}

const hwnas_device_ops hwnas_ort_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "ort",
    .help = "this processor through ONNX Runtime: ort, ort:xnnpack",
    .open = ort_open,
    .describe = ort_describe,
    .close = ort_close,
    .precisions = FLOATS | 1U << HWNAS_S8,
    .is_deployed = true,
    .has_own_threads = true,
    .compile = hwnas_ort_compile,
    .run = hwnas_ort_run,
    .free_exec = hwnas_ort_free_exec,
    .quantize = ort_quantize,
};
