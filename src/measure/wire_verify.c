/* wire_verify.c: what verifying found as JSON, and the parent's side of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/runner.h"
#include "measure/verify.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *hwnas_wire_verified(const hwnas_verified *v)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:I, s:o, s:o}", "against", v->against, "error",
                     number(v->error), "tolerance", number(v->tolerance), "output", v->output, "at",
                     (json_int_t)v->at, "got", number(v->got), "wanted", number(v->wanted));
}

static bool read_number(double *out, const json_t *object, const char *name, double if_null)
{
    const json_t *value = json_object_get(object, name);
    *out = json_is_number(value) ? json_number_value(value) : if_null;
    return json_is_number(value) || json_is_null(value);
}

static bool read_text(char *out, size_t size, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value) || json_string_length(value) >= size)
        return false;
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return true;
}

bool hwnas_wire_read_verified(hwnas_verified *out, const json_t *object)
{
    hwnas_verified v = {0};
    const json_t *at = json_object_get(object, "at");
    v.at = json_integer_value(at);
    if (!json_is_integer(at) || !read_text(v.against, sizeof v.against, object, "against") ||
        !read_text(v.output, sizeof v.output, object, "output") ||
        !read_number(&v.error, object, "error", INFINITY) ||
        !read_number(&v.tolerance, object, "tolerance", 0) ||
        !read_number(&v.got, object, "got", NAN) || !read_number(&v.wanted, object, "wanted", NAN))
        return false;
    *out = v;
    return true;
}

static hwnas_status send(hwnas_runner *runner, const hwnas_graph *graph, double ref_seconds,
                         const hwnas_measure_options *options)
{
    void *onnx;
    size_t length;
    TRY(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_SEEDS));
    json_t *request = hwnas_wire_options(options);
    json_object_set_new(request, "verify", json_real(ref_seconds));
    const hwnas_status status = hwnas_runner_request(runner, request, onnx, length, options);
    json_decref(request);
    free(onnx);
    return status;
}

hwnas_status hwnas_runner_verify(hwnas_verified *out, hwnas_runner *runner,
                                 const hwnas_graph *graph, double ref_seconds,
                                 const hwnas_measure_options *options)
{
    json_t *answer = NULL;
    hwnas_verified v;
    hwnas_status status = send(runner, graph, ref_seconds, options);
    if (status == HWNAS_OK)
        status = hwnas_runner_receive(&answer, runner, options);
    if (status == HWNAS_OK && !hwnas_wire_read_verified(&v, json_object_get(answer, "verified")))
        status = hwnas_runner_protocol_error();
    json_decref(answer);
    if (status == HWNAS_OK)
        *out = v;
    else if (status != HWNAS_E_UNSUPPORTED)
        hwnas_runner_stop(runner); /* not to be trusted, or still running */
    return status;
}
