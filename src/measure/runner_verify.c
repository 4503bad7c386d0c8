/* runner_verify.c: the parent's side of verifying. */
#include <stdlib.h>

#include "measure/runner.h"
#include "measure/verify.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

static hwnas_status send(hwnas_runner *runner, const hwnas_graph *graph, double ref_seconds,
                         const hwnas_measure_options *options)
{
    void *onnx;
    size_t length;
    TRY(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_SEEDS));
    json_t *request = hwnas_wire_options(options);
    json_object_set_new(request, "verify", json_real(ref_seconds));
    const hwnas_status status =
        hwnas_runner_request(runner, &graph, 1, request, onnx, length, options);
    json_decref(request);
    free(onnx);
    return status;
}

static hwnas_status verify_once(hwnas_verified *out, hwnas_runner *runner, const hwnas_graph *graph,
                                double ref_seconds, const hwnas_measure_options *options)
{
    json_t *answer = NULL;
    hwnas_verified v;
    hwnas_status status = send(runner, graph, ref_seconds, options);
    if (status == HWNAS_OK)
        status = hwnas_runner_receive(&answer, runner, options);
    if (status == HWNAS_OK && !hwnas_wire_read_verified(&v, json_object_get(answer, "verified")))
        status = hwnas_runner_protocol_error(runner, "an ANSWER without `verified`");
    json_decref(answer);
    if (status == HWNAS_OK)
        *out = v;
    return hwnas_runner_end_request(runner, status);
}

hwnas_status hwnas_runner_verify(hwnas_verified *out, hwnas_runner *runner,
                                 const hwnas_graph *graph, double ref_seconds,
                                 const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_losses losses = {0};
    do
        status = verify_once(out, runner, graph, ref_seconds, options);
    while (hwnas_runner_tries_again(&status, &losses, runner, options));
    return status;
}
