#include "measure/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/ranges.h"
#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"
#include "graph/rounding.h"

/* fp32 differs by the order of its sums alone. A rounding to bf16 is off by 2^-9 at most, one to
 * f16 or tf32 by 2^-12 or 2^-11; some ten to a hundred of them one after the other, each of another
 * sign, are worth some ten. In s8 device and reference compute the same bytes, but for values that
 * lie between two. */
static const double tolerances[HWNAS_N_PRECISIONS] = {
    [HWNAS_F32] = 1e-4, [HWNAS_TF32] = 0.01, [HWNAS_BF16] = 0.05,
    [HWNAS_F16] = 0.01, [HWNAS_S8] = 0.05,   [HWNAS_W8] = 1e-4, [HWNAS_W4] = 1e-4,
};
double hwnas_verify_tolerance(hwnas_precision precision)
{
    return tolerances[precision];
}

/* Networks that let errors grow from layer to layer get this many times what random rounding in
 * the reference does to their outputs. */
static const double MARGIN = 10;

/* ---- Comparing ---- */

/* As much of a name as there is room for, without the beginning of a character at its end. */
static void keep_name(hwnas_verified *v, const char *name)
{
    size_t n = strlen(name);
    if (n >= sizeof v->output)
        for (n = sizeof v->output - 1; n && ((unsigned char)name[n] & 0xC0) == 0x80;)
            n--;
    memcpy(v->output, name, n);
    v->output[n] = '\0';
}

/* How far a value is off, relative to `scale`. What is finite on neither side is equal: which of
 * infinity and NaN it is, is a matter of the order of sums. */
static double deviation(float got, float wanted, double scale)
{
    if (!isfinite(wanted))
        return isfinite(got) ? INFINITY : 0;
    return isfinite(got) ? fabs((double)got - wanted) / scale : INFINITY;
}

static double scale_of(const float *wanted, int64_t n)
{
    double scale = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(wanted[i]))
            scale = fmax(scale, fabs((double)wanted[i]));
    return scale > 0 ? scale : 1;
}

/* Compares one output, and keeps the first value that is beyond the tolerance, or else the worst.
 * Where `rounded` is given, values that alone there are not finite are beyond the precision's
 * range, and are not compared. */
static void compare_floats(hwnas_verified *v, const hwnas_tensor *output, const float *got,
                           const float *wanted, const float *rounded)
{
    const int64_t n = hwnas_tensor_count(output);
    const double scale = scale_of(wanted, n);
    bool is_found = v->error > v->tolerance; /* in an output before */
    for (int64_t i = 0; i < n; i++) {
        if (rounded && !isfinite(rounded[i]) && isfinite(wanted[i]))
            continue;
        const double error = deviation(got[i], wanted[i], scale);
        if (!is_found && (error > v->error || !*v->output)) {
            is_found = error > v->tolerance;
            keep_name(v, output->name);
            v->at = i;
            v->got = got[i];
            v->wanted = wanted[i];
        }
        v->error = fmax(v->error, error);
    }
}

/* Of whole numbers, which are indices or classes, a difference says nothing, and where values are
 * rounded nor does which of two nearly equal ones is first: so the share that differs counts, in
 * fp32 alone. */
static void compare_wholes(hwnas_verified *v, const hwnas_tensor *output, const float *got,
                           const float *wanted, hwnas_precision precision)
{
    const int64_t n = hwnas_tensor_count(output);
    int64_t n_other = 0, first = 0;
    for (int64_t i = n - 1; i >= 0; i--)
        if (got[i] != wanted[i]) {
            n_other++;
            first = i;
        }
    const double error = (double)n_other / (double)n;
    if (precision != HWNAS_F32 || (error <= v->error && *v->output))
        return;
    if (v->error <= v->tolerance) {
        keep_name(v, output->name);
        v->at = first;
        v->got = got[first];
        v->wanted = wanted[first];
    }
    v->error = fmax(v->error, error);
}

static void compare(hwnas_verified *v, const hwnas_graph *graph, float *const *got,
                    float *const *wanted, float *const *rounded, hwnas_precision precision)
{
    v->error = 0;
    v->output[0] = '\0';
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const hwnas_tensor *output = &graph->tensors[graph->outputs[i]];
        if (hwnas_dtype_is_whole(output->dtype))
            compare_wholes(v, output, got[i], wanted[i], precision);
        else
            compare_floats(v, output, got[i], wanted[i], rounded ? rounded[i] : NULL);
    }
}

/* ---- Running ---- */

static hwnas_status run_device(float **outputs, const hwnas_buffers *buffers, hwnas_device *device,
                               const hwnas_graph *graph, const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_graph *folded = NULL;
    hwnas_exec *exec = NULL;
    if (options->progress)
        options->progress(options->context, "running once");
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(hwnas_device_compile(&exec, device, folded, &options->exec));
    TRY_OUT(device->ops->run(exec, (const float *const *)buffers->inputs, outputs));
out:
    hwnas_exec_free(exec);
    hwnas_graph_free(folded);
    return status;
}

/* `out` stays NULL where the graph itself is what the device computes. */
static hwnas_status in_precision(hwnas_graph **out, hwnas_device *device, const hwnas_graph *graph,
                                 const hwnas_exec_options *options)
{
    hwnas_status status;
    hwnas_graph *folded = NULL;
    if (!hwnas_precision_has_form(options->precision) || hwnas_graph_is_quantized(graph))
        return HWNAS_OK;
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(hwnas_device_in_precision(out, device, folded, options));
out:
    hwnas_graph_free(folded);
    return status;
}

hwnas_status hwnas_expected_open(hwnas_expected *out, hwnas_device *device,
                                 const hwnas_graph *graph, double ref_seconds,
                                 const hwnas_measure_options *options)
{
    *out = (hwnas_expected){.how = {.max_seconds = ref_seconds}};
    TRY(hwnas_buffers_open(&out->buffers, graph));
    TRY(in_precision(&out->quantized, device, graph, &options->exec));
    if (out->quantized)
        graph = out->quantized;
    if (hwnas_reference_seconds(graph) <= ref_seconds) {
        const hwnas_status status = hwnas_reference_run(&out->buffers, graph, &out->how, options);
        if (status != HWNAS_E_TIMEOUT)
            return status;
        hwnas_error_clear();
    }
    out->how = (hwnas_reference){.device = device};
    return hwnas_reference_run(&out->buffers, graph, &out->how, options);
}

void hwnas_expected_done(hwnas_expected *expected)
{
    hwnas_buffers_done(&expected->buffers);
    hwnas_graph_free(expected->quantized);
}

/* The reference once more, with the rounding of a precision. */
static hwnas_status run_rounded(hwnas_buffers *out, const hwnas_expected *expected,
                                const hwnas_graph *graph, const hwnas_measure_options *options,
                                hwnas_precision precision)
{
    hwnas_reference how = expected->how;
    how.is_rounded = true;
    how.precision = precision;
    how.max_seconds = 0; /* it was quick enough before */
    TRY(hwnas_buffers_open(out, graph));
    return hwnas_reference_run(out, expected->quantized ? expected->quantized : graph, &how,
                               options);
}

static bool is_beyond_range(const hwnas_graph *graph, float *const *rounded, float *const *wanted)
{
    for (size_t i = 0; i < graph->n_outputs; i++)
        for (int64_t k = 0; k < hwnas_tensor_count(&graph->tensors[graph->outputs[i]]); k++)
            if (!isfinite(rounded[i][k]) && isfinite(wanted[i][k]))
                return true;
    return false;
}

/* Compares again what is beyond the tolerance: with what rounding alone does to the outputs, and
 * without the values that the precision has no room for. */
static hwnas_status compare_with_rounded(hwnas_verified *v, const hwnas_expected *expected,
                                         float *const *got, const hwnas_graph *graph,
                                         const hwnas_measure_options *options,
                                         hwnas_precision precision)
{
    hwnas_verified moved = {.tolerance = INFINITY};
    hwnas_buffers rounded = {0};
    float *const *wanted = expected->buffers.outputs;
    hwnas_status status = run_rounded(&rounded, expected, graph, options, precision);
    if (status == HWNAS_OK) {
        const bool is_beyond =
            precision == HWNAS_F16 && is_beyond_range(graph, rounded.outputs, wanted);
        float *const *mask = is_beyond ? rounded.outputs : NULL;
        compare(&moved, graph, rounded.outputs, wanted, mask, precision);
        if (isfinite(moved.error))
            v->tolerance = fmax(v->tolerance, MARGIN * moved.error);
        compare(v, graph, got, wanted, mask, precision);
        if (is_beyond)
            strncat(v->against, ", where values fit f16",
                    sizeof v->against - strlen(v->against) - 1);
    }
    hwnas_buffers_done(&rounded);
    return status;
}

/* More than weights: those of few bits are the same floats on every device. */
static bool has_bytes(const hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].op->id == HWNAS_OP_DEQUANTIZE_LINEAR &&
            !hwnas_is_packed_kernel(graph, &graph->nodes[n]))
            return true;
    return false;
}

hwnas_status hwnas_expected_compare(hwnas_verified *out, const hwnas_expected *expected,
                                    float *const *got, const hwnas_graph *graph,
                                    const hwnas_measure_options *options)
{
    const hwnas_device *device = expected->how.device;
    const hwnas_precision precision = has_bytes(graph)            ? HWNAS_S8
                                      : hwnas_graph_rounds(graph) ? HWNAS_BF16
                                                                  : options->exec.precision;
    hwnas_verified v = {.tolerance = tolerances[precision]};
    if (device)
        snprintf(v.against, sizeof v.against, "%s, each layer by itself", device->ops->name);
    else
        snprintf(v.against, sizeof v.against, "ref");
    compare(&v, graph, got, expected->buffers.outputs, NULL, precision);
    if (v.error > v.tolerance && (isfinite(v.error) || precision == HWNAS_F16))
        TRY(compare_with_rounded(&v, expected, got, graph, options, precision));
    *out = v;
    return HWNAS_OK;
}

static float **new_outputs(const hwnas_graph *graph)
{
    float **outputs = hwnas_alloc(graph->n_outputs * sizeof *outputs);
    for (size_t i = 0; i < graph->n_outputs; i++)
        outputs[i] = hwnas_alloc((size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]));
    return outputs;
}

hwnas_status hwnas_verify(hwnas_verified *out, hwnas_device *device, const hwnas_graph *graph,
                          double ref_seconds, const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_expected expected;
    float **got = new_outputs(graph);
    TRY_OUT(hwnas_expected_open(&expected, device, graph, ref_seconds, options));
    TRY_OUT(run_device(got, &expected.buffers, device, graph, options));
    TRY_OUT(hwnas_expected_compare(out, &expected, got, graph, options));
    out->may_overflow =
        hwnas_graph_largest_byte(graph) > (float)(1 << (hwnas_device_weight_bits(device) - 1));
out:
    for (size_t i = 0; i < graph->n_outputs; i++)
        free(got[i]);
    free(got);
    hwnas_expected_done(&expected);
    return status;
}

/* ---- Telling ---- */

hwnas_status hwnas_verified_judge(const hwnas_verified *v, const char *device,
                                  hwnas_precision precision)
{
    if (v->error <= v->tolerance)
        return HWNAS_OK;
    hwnas_fail(HWNAS_E_WRONG_RESULT, NULL,
               "the result on %s in %s is wrong: it differs from that of %s by %.3g of the largest "
               "value, more than %.2g; the first value that does is number %lld of '%s': %.6g "
               "instead of %.6g",
               device, hwnas_precision_name(precision), v->against, v->error, v->tolerance,
               (long long)v->at, v->output, v->got, v->wanted);
    if (v->may_overflow)
        return hwnas_hint(HWNAS_E_WRONG_RESULT,
                          "this processor has no instructions for products of bytes (VNNI): two of "
                          "them are added in 16 bits, which the network's weights of 8 bits may "
                          "exceed, in other programs too; quantize it with weights of 7 bits "
                          "(reduce_range=True in onnxruntime.quantization), or let '--dtype s8' do "
                          "it from the network in floats");
    if (!isfinite(v->wanted))
        return hwnas_hint(HWNAS_E_WRONG_RESULT,
                          "the network itself makes values that are no numbers: look for NaN or "
                          "infinity in its weights, for divisions by zero and for values that grow "
                          "beyond a float; what a device makes of them differs");
    return hwnas_hint(HWNAS_E_WRONG_RESULT,
                      "this is a fault of the device's code, not of the network; please report it "
                      "with the network as ONNX ('hwnas export')");
}
