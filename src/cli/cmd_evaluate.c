/* evaluate: how good a network is on samples of the user's. */
#include "cli/data_options.h"

static const hwnas_usage usage = {
    .synopsis = "evaluate MODEL.onnx",
    .summary = "Runs a network on samples and compares its outputs with labels, or with another\n"
               "network's: accuracy, loss, error, each with its 95 % interval.",
    .notes = "hwnas evaluate net.onnx --data val.npz\n"
             "hwnas evaluate net.onnx --data t10k-images-idx3-ubyte.gz --labels "
             "t10k-labels-idx1-ubyte.gz \\\n    --scale 1/255 --mean 0.286 --std 0.353 --dtype s8\n"
             "hwnas evaluate small.onnx --data x.npy --against net.onnx",
    .min_arguments = 1,
    .max_arguments = 1};

enum { DEFAULT_BATCH = 32 };

typedef struct arguments {
    const char *model, *code, *device, *dtype, *task, *against, *shape;
    long batch, threads, calibrate;
    bool as_json;
    hwnas_data_arguments data;
} arguments;

static hwnas_status open_network(hwnas_network **out, const char *name, const char *code,
                                 const arguments *a, const hwnas_data_read *read)
{
    hwnas_network_options options = HWNAS_NETWORK_OPTIONS_INIT;
    options.n_files = read->n;
    options.files = read->files;
    options.batch = a->batch ? (int)a->batch : DEFAULT_BATCH;
    options.takes_own_batch = !a->batch;
    options.shape = a->shape;
    return hwnas_network_open(out, name, code, &options);
}

/* The network, and the original. A shape may be one of either alone, where the other has no such
 * input or dimension, or is fixed. */
static hwnas_status open_both(hwnas_network **network, hwnas_network **original, arguments *a,
                              const hwnas_data_read *read)
{
    const char *const shape = a->shape;
    hwnas_status status = open_network(network, a->model, a->code, a, read);
    if (!a->against || (status != HWNAS_OK && !shape))
        return status;
    const bool fits = status == HWNAS_OK;
    status = open_network(original, a->against, NULL, a, read);
    if (!shape || (fits == (status == HWNAS_OK)))
        return fits ? status : open_network(network, a->model, a->code, a, read);
    a->shape = NULL;
    status = fits ? open_network(original, a->against, NULL, a, read)
                  : open_network(network, a->model, a->code, a, read);
    a->shape = shape;
    return status;
}

static hwnas_status evaluate(arguments *a)
{
    hwnas_status status = HWNAS_OK;
    hwnas_network *network = NULL, *original = NULL;
    hwnas_device *device = NULL;
    hwnas_dataset *data = NULL;
    hwnas_evaluation *evaluation = NULL;
    hwnas_report *report;
    hwnas_data_read read = {0};
    hwnas_device_options device_options = HWNAS_DEVICE_OPTIONS_INIT;
    hwnas_evaluation_options options = HWNAS_EVALUATION_OPTIONS_INIT;
    device_options.threads = (int)a->threads;
    options.calibrate = a->calibrate;
    options.task = a->task;
    options.progress = hwnas_show_samples;
    TRY_OUT(hwnas_precision_find(&options.precision, a->dtype));
    TRY_OUT(hwnas_data_arguments_read(&read, &a->data, false));
    TRY_OUT(open_both(&network, &original, a, &read));
    options.against = original;
    TRY_OUT(hwnas_dataset_open(&data, network, read.n, read.files, &read.options));
    TRY_OUT(hwnas_device_open(&device, a->device, &device_options));
    options.cancel = hwnas_stop_on_signals();
    status = hwnas_dataset_evaluate(&evaluation, data, network, device, &options);
    hwnas_show_progress(NULL, NULL);
    if (status != HWNAS_OK)
        goto out;
    TRY_OUT(hwnas_evaluation_report(&report, evaluation));
    status = hwnas_print_report(report, a->as_json ? HWNAS_JSON : HWNAS_TEXT);
out:
    hwnas_data_read_done(&read);
    hwnas_evaluation_free(evaluation);
    hwnas_dataset_close(data);
    hwnas_device_close(device);
    hwnas_network_close(original);
    hwnas_network_close(network);
    return status;
}

hwnas_status hwnas_cmd_evaluate(int argc, char **argv)
{
    arguments a = {.device = "cpu", .dtype = "f32"};
    bool done;
    int n;
    const hwnas_option options[] = {
        {"data", 0, HWNAS_OPTION_LIST, &a.data.files, "FILE",
         "samples: .npz, .npy or IDX, also .gz; NAME=FILE for each input"},
        {"labels", 'l', HWNAS_OPTION_TEXT, &a.data.labels, "FILE",
         "labels: .npy, .npz or IDX (in a .npz of samples: the array y)"},
        {"y", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &a.data.y, "NAME",
         "array of the labels in a .npz (y)"},
        {"limit", 'n', HWNAS_OPTION_INT, &a.data.limit, "N", "the first N samples alone"},
        HWNAS_SAMPLE_OPTIONS(a.data),
        {"against", 0, HWNAS_OPTION_TEXT, &a.against, "MODEL",
         "the original: share of the same answers, SQNR, largest difference"},
        {"task", 0, HWNAS_OPTION_TEXT, &a.task, "NAME",
         "classify, tokens, regress (what the shapes say)"},
        {"arch", 'a', HWNAS_OPTION_TEXT, &a.code, "CODE",
         "which network of a space; its weights are random"},
        {"device", 'd', HWNAS_OPTION_TEXT, &a.device, "DEVICE", "where (cpu)"},
        {"threads", 't', HWNAS_OPTION_ALL, &a.threads, "N", "threads, or all (all)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &a.dtype, "TYPE",
         "f32, tf32, bf16, f16, s8, w8 or w4 (f32)"},
        {"calibrate", 0, HWNAS_OPTION_INT, &a.calibrate, "N",
         "s8: ranges come from the first N samples (64)"},
        {"batch", 'b', HWNAS_OPTION_INT, &a.batch, "N",
         "samples that are run together (32; an ONNX file may have its own)"},
        {"shape", 0, HWNAS_OPTION_TEXT, &a.shape, "SHAPES",
         "open dimensions of an ONNX file: ids=1x128,mask=1x128; by name n=128"},
        {"json", 0, HWNAS_OPTION_FLAG, &a.as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &a.model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!a.data.files.n)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--data is missing"),
                          "hwnas evaluate net.onnx --data val.npz");
    if (a.threads > 1024 || a.batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--threads is at most 1024, --batch %d", 1 << 20);
    return evaluate(&a);
}
