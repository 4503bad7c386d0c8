/* plain_loop: how a latency is often measured: build, 5 runs to warm up, the mean of 30. For
 * comparison with the protocol, on the same engine in this process; one ONNX file after the other,
 * one thread.
 *
 * usage: plain_loop FILE.onnx...      prints seconds, one line each */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/device.h"
#include "measure/buffers.h"
#include "onnx/onnx.h"

enum { WARM_UP = 5, RUNS = 30 };

static hwnas_status time_file(double *mean, hwnas_device *device, const char *path)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *raw = NULL, *graph = NULL;
    hwnas_exec *exec = NULL;
    hwnas_buffers buffers = {0};
    double start = 0;
    TRY_OUT(hwnas_onnx_load(&raw, path, NULL));
    TRY_OUT(hwnas_graph_fold(&graph, raw));
    TRY_OUT(hwnas_device_compile(&exec, device, graph, NULL));
    TRY_OUT(hwnas_buffers_open(&buffers, graph));
    for (int i = 0; i < WARM_UP + RUNS; i++) {
        if (i == WARM_UP)
            start = hwnas_now();
        TRY_OUT(exec->ops->run(exec, (const float *const *)buffers.inputs, buffers.outputs));
    }
    *mean = (hwnas_now() - start) / RUNS;
out:
    hwnas_buffers_done(&buffers);
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    hwnas_graph_free(raw);
    return status;
}

int main(int argc, char **argv)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device = NULL;
    hwnas_status status = hwnas_device_open(&device, "cpu", &options);
    for (int i = 1; i < argc && status == HWNAS_OK; i++) {
        double mean;
        status = time_file(&mean, device, argv[i]);
        if (status == HWNAS_OK)
            printf("%.9g\n", mean);
    }
    if (status != HWNAS_OK)
        fprintf(stderr, "plain_loop: %s\n", hwnas_last_error()->message);
    hwnas_device_close(device);
    return status == HWNAS_OK ? 0 : 1;
}
