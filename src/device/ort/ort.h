/* ort.h: what the files of the device `ort` share: ONNX Runtime, as a network is deployed with it. */
#ifndef HWNAS_DEVICE_ORT_ORT_H
#define HWNAS_DEVICE_ORT_ORT_H

#include <onnxruntime_c_api.h>

#include "device/device.h"

typedef struct ort_device {
    hwnas_device base;
    const OrtApi *api;
    OrtEnv *env;
    OrtMemoryInfo *memory; /* of the processor */
    const char *provider;  /* NULL: the processor's */
    int threads;
    char version[32];
} ort_device;

/* What ONNX Runtime answered, as ours; releases it. NULL is HWNAS_OK; a failure is `code`, and says
 * "cannot VERB NAME". */
HWNAS_CHECKED hwnas_status hwnas_ort_status(const OrtApi *api, OrtStatus *answer, hwnas_status code,
                                            const char *verb, const char *name);

#define TRY_ORT(api, verb, name, call)                                                             \
    TRY(hwnas_ort_status(api, call, HWNAS_E_LIBRARY, verb, name))

HWNAS_CHECKED hwnas_status hwnas_ort_compile(hwnas_exec **out, hwnas_device *device,
                                             const hwnas_graph *graph,
                                             const hwnas_exec_options *options);
HWNAS_CHECKED hwnas_status hwnas_ort_run(hwnas_exec *exec, const float *const *inputs,
                                         float *const *outputs);
void hwnas_ort_free_exec(hwnas_exec *exec);

#endif
