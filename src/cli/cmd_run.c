/* run: one inference of an ONNX file on a device, raw fp32 in, raw fp32 out; for comparing devices.
 */
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "device/device.h"
#include "onnx/onnx.h"

static const hwnas_usage usage = {
    .synopsis = "run MODEL.onnx",
    .summary = "Computes a network's outputs: raw fp32 from a file, raw fp32 to a file.",
    .min_arguments = 1,
    .max_arguments = 1};

/* Compiles and runs; the outputs follow each other in `out`. */
static hwnas_status infer(hwnas_str *out, const hwnas_graph *graph, const char *device_name,
                          const hwnas_exec_options *how, const float *input, size_t input_bytes)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_device_options options = {0};
    hwnas_device *device = NULL;
    hwnas_exec *exec = NULL;
    hwnas_graph *folded = NULL;
    const float **inputs = hwnas_alloc(graph->n_inputs * sizeof *inputs);
    float **outputs = hwnas_alloc(graph->n_outputs * sizeof *outputs);
    size_t at = 0;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        inputs[i] = input + at;
        at += (size_t)hwnas_tensor_count(&graph->tensors[graph->inputs[i]]);
    }
    if (at * sizeof *input != input_bytes) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "the input has %zu bytes, the network takes %zu",
                            input_bytes, at * sizeof *input);
        goto out;
    }
    TRY_OUT(hwnas_device_open(&device, device_name, &options));
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(hwnas_device_compile(&exec, device, folded, how));
    for (size_t i = 0; i < graph->n_outputs; i++)
        TRY_OUT(hwnas_try_alloc((void **)&outputs[i],
                                (size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]),
                                "an output"));
    TRY_OUT(device->ops->run(exec, inputs, outputs));
    for (size_t i = 0; i < graph->n_outputs; i++)
        hwnas_str_addn(out, (const char *)outputs[i],
                       (size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]));
out:
    hwnas_exec_free(exec);
    hwnas_device_close(device);
    hwnas_graph_free(folded);
    for (size_t i = 0; i < graph->n_outputs; i++)
        free(outputs[i]);
    free(outputs);
    free(inputs);
    return status;
}

hwnas_status hwnas_cmd_run(int argc, char **argv)
{
    const char *model, *device = "cpu", *dtype = "f32", *input_path = NULL, *output_path = NULL;
    bool done;
    int n;
    const hwnas_option options[] = {
        {"device", 'd', HWNAS_OPTION_TEXT, &device, "DEVICE", "cpu or ref (cpu)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "TYPE", "f32, tf32, bf16, f16 or s8 (f32)"},
        {"input", 'i', HWNAS_OPTION_TEXT, &input_path, "FILE", "raw fp32, all inputs in order"},
        {"output", 'o', HWNAS_OPTION_TEXT, &output_path, "FILE", "raw fp32, all outputs in order"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!input_path || !output_path)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--input and --output are needed");
    TRY(hwnas_file_check_output(output_path, model));
    TRY(hwnas_file_check_output(output_path, input_path));
    hwnas_status status = HWNAS_OK;
    const size_t limit = (size_t)2 << 30;
    char *input = NULL;
    size_t input_bytes;
    hwnas_exec_options how = {0};
    hwnas_graph *graph = NULL;
    hwnas_str output = {0};
    TRY_OUT(hwnas_precision_find(&how.precision, dtype));
    TRY_OUT(hwnas_onnx_load(&graph, model, NULL));
    TRY_OUT(hwnas_file_read(&input, &input_bytes, input_path, limit));
    TRY_OUT(infer(&output, graph, device, &how, (const float *)(void *)input, input_bytes));
    TRY_OUT(hwnas_file_write(output_path, output.s, output.n));
out:
    hwnas_str_done(&output);
    hwnas_graph_free(graph);
    free(input);
    return status;
}
