/* run: what a network computes of given inputs. */
#include <stdlib.h>
#include <string.h>

#include "cli/data_options.h"

static const hwnas_usage usage = {
    .synopsis = "run MODEL",
    .summary = "Computes a network's outputs of given inputs.",
    .notes =
        "Files of the kinds .npy, .npz, IDX (*-ubyte) and .gz hold samples, any number of them;"
        "\nothers hold raw fp32, all inputs in order, for one run.\n"
        "hwnas run net.onnx --input x.npy --output y.npy\n"
        "hwnas run bert.onnx --input tokens=t.npy --input mask=m.npy --output out.npz",
    .min_arguments = 1,
    .max_arguments = 1};

enum { DEFAULT_BATCH = 1 };

typedef struct arguments {
    const char *model, *code, *device, *dtype, *output, *shape;
    long batch, threads;
    bool as_json;
    hwnas_data_arguments data;
} arguments;

/* A network on its device, with its outputs. */
typedef struct job {
    hwnas_network *network;
    hwnas_device *device;
    hwnas_precision precision;
    size_t n_inputs, n_outputs;
    float **outputs;
} job;

static bool is_raw(const char *path)
{
    static const char *const suffixes[] = {".npy", ".npz", ".gz", "-ubyte"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t n = strlen(suffixes[i]);
        if (length >= n && !strcmp(path + length - n, suffixes[i]))
            return false;
    }
    return true;
}

/* Which goes with samples. */
static bool has_preprocessing(const hwnas_data_arguments *data)
{
    return data->scale || data->mean || data->std || data->layout;
}

static void free_arrays(float **arrays, size_t n)
{
    for (size_t i = 0; arrays && i < n; i++)
        hwnas_free(arrays[i]);
    free(arrays);
}

/* One run: the bytes are all inputs in their order, or the arrays have their shapes. */
static hwnas_status run_once(job *j, const char *raw, const hwnas_data_read *read)
{
    hwnas_status status = HWNAS_OK;
    hwnas_exec_options how = HWNAS_EXEC_OPTIONS_INIT;
    hwnas_array_info *arrays = hwnas_need(j->n_inputs, sizeof *arrays);
    float **inputs = hwnas_need(j->n_inputs, sizeof *inputs);
    how.precision = j->precision;
    for (size_t i = 0; i < j->n_inputs; i++)
        arrays[i] = *hwnas_network_input(j->network, i);
    if (raw)
        TRY_OUT(hwnas_arrays_read(inputs, raw, j->n_inputs, arrays));
    else
        TRY_OUT(hwnas_network_read_inputs(inputs, j->network, read->n, read->files));
    TRY_OUT(
        hwnas_network_run(j->outputs, j->network, j->device, (const float *const *)inputs, &how));
out:
    free_arrays(inputs, j->n_inputs);
    free(arrays);
    return status;
}

static hwnas_status run_samples(job *j, int64_t *n_samples, const hwnas_data_read *read)
{
    hwnas_status status = HWNAS_OK;
    hwnas_dataset *data = NULL;
    hwnas_evaluation_options options = HWNAS_EVALUATION_OPTIONS_INIT;
    options.precision = j->precision;
    options.progress = hwnas_show_samples;
    options.cancel = hwnas_stop_on_signals();
    TRY_OUT(hwnas_dataset_open(&data, j->network, read->n, read->files, &read->options));
    status = hwnas_dataset_run(j->outputs, data, j->network, j->device, &options);
    hwnas_show_progress(NULL, NULL);
    *n_samples = hwnas_dataset_samples(data);
out:
    hwnas_dataset_close(data);
    return status;
}

/* `n_samples` stand in the place of the batch; 0: it was one run. */
static hwnas_status write_outputs(const job *j, const char *path, int64_t n_samples)
{
    hwnas_array_info *arrays = hwnas_need(j->n_outputs, sizeof *arrays);
    int64_t(*dims)[8] = hwnas_need(j->n_outputs, sizeof *dims);
    for (size_t i = 0; i < j->n_outputs; i++) {
        arrays[i] = *hwnas_network_output(j->network, i);
        memcpy(dims[i], arrays[i].dims, (size_t)arrays[i].rank * sizeof **dims);
        if (n_samples) {
            arrays[i].count = arrays[i].count / dims[i][0] * n_samples;
            dims[i][0] = n_samples;
        }
        arrays[i].dims = dims[i];
    }
    const hwnas_status status =
        hwnas_arrays_write(path, j->n_outputs, arrays, (const float *const *)j->outputs);
    free(dims);
    free(arrays);
    return status;
}

/* `n_samples` as for write_outputs(). */
static hwnas_status print_json(const job *j, const arguments *a, int64_t n_samples)
{
    json_t *outputs = json_array();
    for (size_t i = 0; i < j->n_outputs; i++) {
        const hwnas_array_info *info = hwnas_network_output(j->network, i);
        json_t *shape = json_array();
        for (int d = 0; d < info->rank; d++)
            json_array_append_new(shape, json_integer(!d && n_samples ? n_samples : info->dims[d]));
        json_array_append_new(outputs, json_pack("{s:s, s:o}", "name", info->name, "shape", shape));
    }
    return hwnas_print_json(json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:o}", "format", "hwnas.run",
                                      "version", 1, "model", a->model, "device", a->device, "dtype",
                                      a->dtype, "file", a->output, "outputs", outputs));
}

static hwnas_status run(const arguments *a)
{
    hwnas_status status = HWNAS_OK;
    job j = {0};
    int64_t n_samples = 0;
    const char *raw =
        a->data.files.n == 1 && is_raw(a->data.files.texts[0]) ? a->data.files.texts[0] : NULL;
    hwnas_data_read read = {0};
    hwnas_network_options network = HWNAS_NETWORK_OPTIONS_INIT;
    hwnas_device_options device = HWNAS_DEVICE_OPTIONS_INIT;
    network.batch = a->batch ? (int)a->batch : DEFAULT_BATCH;
    network.takes_own_batch = !a->batch;
    network.shape = a->shape;
    device.threads = (int)a->threads;
    TRY_OUT(hwnas_data_arguments_read(&read, &a->data, true));
    read.options.takes_non_finite = true;
    if (!raw) {
        network.n_files = read.n;
        network.files = read.files;
    }
    TRY_OUT(hwnas_precision_find(&j.precision, a->dtype));
    TRY_OUT(hwnas_network_open(&j.network, a->model, a->code, &network));
    TRY_OUT(hwnas_device_open(&j.device, a->device, &device));
    while (hwnas_network_input(j.network, j.n_inputs))
        j.n_inputs++;
    while (hwnas_network_output(j.network, j.n_outputs))
        j.n_outputs++;
    j.outputs = hwnas_need(j.n_outputs, sizeof *j.outputs);
    if (raw || (!hwnas_network_takes_samples(j.network) && !has_preprocessing(&a->data)))
        TRY_OUT(run_once(&j, raw, &read));
    else
        TRY_OUT(run_samples(&j, &n_samples, &read));
    TRY_OUT(write_outputs(&j, a->output, n_samples));
    if (a->as_json)
        status = print_json(&j, a, n_samples);
out:
    hwnas_data_read_done(&read);
    free_arrays(j.outputs, j.n_outputs);
    hwnas_device_close(j.device);
    hwnas_network_close(j.network);
    return status;
}

hwnas_status hwnas_cmd_run(int argc, char **argv)
{
    arguments a = {.device = "cpu", .dtype = "f32"};
    bool done;
    int n;
    const hwnas_option options[] = {
        {"input", 'i', HWNAS_OPTION_LIST, &a.data.files, "FILE",
         "inputs; NAME=FILE for each of several, or all by name in one .npz"},
        {"output", 'o', HWNAS_OPTION_TEXT, &a.output, "FILE",
         ".npy, .npz for several outputs, else raw fp32"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &a.code, "CODE",
         "which network of a space; its weights are random"},
        {"device", 'd', HWNAS_OPTION_TEXT, &a.device, "DEVICE", "cpu or ref (cpu)"},
        {"threads", 't', HWNAS_OPTION_ALL, &a.threads, "N", "threads, or all (all)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &a.dtype, "TYPE",
         "f32, tf32, bf16, f16, s8, w8 or w4 (f32)"},
        {"batch", 'b', HWNAS_OPTION_INT, &a.batch, "N",
         "samples that are run together (1; an ONNX file may have its own)"},
        {"shape", 0, HWNAS_OPTION_TEXT, &a.shape, "SHAPES",
         "open dimensions of an ONNX file: ids=1x128,mask=1x128; by name n=128"},
        HWNAS_SAMPLE_OPTIONS(a.data),
        {"json", 0, HWNAS_OPTION_FLAG, &a.as_json, NULL, "one JSON object about the outputs"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &a.model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!a.data.files.n || !a.output)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--input and --output are needed"),
                          "hwnas run net.onnx --input x.npy --output y.npy");
    if (a.threads > 1024 || a.batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--threads is at most 1024, --batch %d", 1 << 20);
    TRY(hwnas_file_check_output(a.output, a.model));
    for (int i = 0; i < a.data.files.n; i++) {
        const char *text = a.data.files.texts[i], *equals = strchr(text, '=');
        TRY(hwnas_file_check_output(a.output, text));
        if (equals)
            TRY(hwnas_file_check_output(a.output, equals + 1));
    }
    return run(&a);
}
