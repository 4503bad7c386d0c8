/* onednn.h: what the files of this device share. */
#ifndef HWNAS_DEVICE_ONEDNN_ONEDNN_H
#define HWNAS_DEVICE_ONEDNN_ONEDNN_H

#include <oneapi/dnnl/dnnl_graph.h>

#include "device/device.h"

/* Memory that steps need while they run, one at a time: an executable's. */
typedef struct hwnas_onednn_scratch {
    void *memory;
    size_t bytes; /* the most that a step needs */
} hwnas_onednn_scratch;

typedef struct onednn_device {
    hwnas_device base;
    int threads;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    hwnas_onednn_scratch *scratch; /* of the executable that a step is in; else NULL */
} onednn_device;

/* OpenMP's number of threads is a property of the calling thread: said anew before each use. */
void hwnas_onednn_use_threads(int threads);

/* Whether the processor has instructions for products of a type; fp32's it has. */
bool hwnas_onednn_is_native(hwnas_precision precision);

/* Which precisions this processor has instructions for, and which oneDNN computes without. */
void hwnas_onednn_find_precisions(const onednn_device *device, unsigned *native,
                                  unsigned *emulated);
/* Why one is in neither set. */
HWNAS_CHECKED hwnas_status hwnas_onednn_refuse(hwnas_precision precision, bool is_x86);
/* HWNAS_E_UNSUPPORTED: in neither set; the hint names those that are. */
HWNAS_CHECKED hwnas_status hwnas_onednn_check_precision(bool *is_emulated,
                                                        const onednn_device *device,
                                                        hwnas_precision precision);

hwnas_status hwnas_onednn_compile(hwnas_exec **out, hwnas_device *base, const hwnas_graph *graph,
                                  const hwnas_exec_options *options);
hwnas_status hwnas_onednn_run(hwnas_exec *base, const float *const *inputs, float *const *outputs);
void hwnas_onednn_free_exec(hwnas_exec *base);
size_t hwnas_onednn_memory(const hwnas_exec *base);
size_t hwnas_onednn_steps(const hwnas_exec *base, const hwnas_exec_step **out);
hwnas_status hwnas_onednn_run_steps(hwnas_exec *base, const float *const *inputs,
                                    float *const *outputs, double *seconds);

#endif
