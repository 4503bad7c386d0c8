/* optimize: a faster model of a trained one. */
#include <hwnas/optimize.h>
#include <hwnas/profile.h>

#include <stdio.h>
#include <string.h>

#include "cli/data_options.h"
#include "cli/verbosity.h"
#include "cli/search_progress.h"

static const hwnas_usage usage = {
    .synopsis = "optimize MODEL.onnx --data FILE",
    .summary = "Makes a trained model faster on a device, and tells what that costs on your\n"
               "samples: a search over its channels, branches and windows, with its weights.",
    .notes = "hwnas optimize model.onnx --data val.npz --constraints 'latency.p50 <= 0.5 x' "
             "--max-loss 1\n"
             "x: times what the model has. Writes NAME-opt.onnx, .py with .safetensors, .yaml, "
             ".db, and\n"
             "NAME-opt-finetune.py, which trains it.",
    .min_arguments = 1,
    .max_arguments = 1};

typedef struct arguments {
    const char *model, *data;
    hwnas_data_arguments how; /* without files and limit */
    const char *constraints, *device, *precisions, *out;
    double max_loss, minutes;
    long threads, batch, trials, seed;
    bool with_resolution, resume, overwrite, as_json;
} arguments;

/* Appends a value: commas part numbers of a list as ':' does here, and belong to a name else. */
static size_t add_value(char *out, size_t size, const char *value, bool is_list)
{
    size_t n = 0;
    for (; *value && n + 3 < size; value++) {
        if (!is_list && (*value == ',' || *value == '\\'))
            out[n++] = '\\';
        out[n++] = is_list && *value == ',' ? ':' : *value;
    }
    out[n] = '\0';
    return *value ? size : n;
}

/* "FILE#labels=...,mean=0.485:0.456:0.406" */
static hwnas_status write_samples(char *out, size_t size, const arguments *a)
{
    const struct {
        const char *name, *value;
        bool is_list;
    } options[] = {{"labels", a->how.labels, false}, {"x", a->how.x, false},
                   {"y", a->how.y, false},           {"scale", a->how.scale, false},
                   {"mean", a->how.mean, true},      {"std", a->how.std, true},
                   {"layout", a->how.layout, false}};
    size_t n = (size_t)snprintf(out, size, "%s", a->data);
    char separator = '#';
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i].value || n >= size)
            continue;
        n += (size_t)snprintf(out + n, size - n, "%c%s=", separator, options[i].name);
        if (n < size)
            n += add_value(out + n, size - n, options[i].value, options[i].is_list);
        separator = ',';
    }
    return n < size ? HWNAS_OK : hwnas_fail(HWNAS_E_USAGE, NULL, "the names of files are too long");
}

static hwnas_status optimize(const arguments *a)
{
    char samples[4096];
    hwnas_optimize_options options = HWNAS_OPTIMIZE_OPTIONS_INIT;
    hwnas_report *report = NULL;
    hwnas_progress_line line;
    TRY(write_samples(samples, sizeof samples, a));
    options.max_loss = a->max_loss;
    options.minutes = a->minutes;
    options.samples = samples;
    options.constraints = a->constraints;
    options.max_trials = a->trials;
    options.device = a->device;
    options.precisions = a->precisions;
    options.with_resolution = a->with_resolution;
    options.threads = a->threads ? (int)a->threads : HWNAS_THREADS_ALL;
    options.batch = (int)a->batch;
    options.seed = (uint64_t)a->seed;
    options.out = a->out;
    options.resume = a->resume;
    options.overwrite = a->overwrite;
    options.cancel = hwnas_stop_on_signals();
    hwnas_progress_begin(&line);
    options.progress = hwnas_log_is_quiet() ? NULL : hwnas_progress_show;
    options.context = &line;
    const hwnas_status status = hwnas_optimize(&report, a->model, &options);
    hwnas_progress_end(&line);
    TRY(status);
    return hwnas_print_report(report, a->as_json ? HWNAS_JSON : HWNAS_TEXT);
}

hwnas_status hwnas_cmd_optimize(int argc, char **argv)
{
    arguments a = {.threads = 1};
    bool done;
    int n;
    const hwnas_option options[] = {
        {"data", 0, HWNAS_OPTION_TEXT, &a.data, "FILE", "samples: .npz, .npy or IDX, also .gz"},
        {"labels", 'l', HWNAS_OPTION_TEXT, &a.how.labels, "FILE",
         "labels: .npy, .npz or IDX (in a .npz of samples: the array y)"},
        {"y", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &a.how.y, "NAME",
         "array of the labels in a .npz (y)"},
        HWNAS_SAMPLE_OPTIONS(a.how),
        {"constraints", 0, HWNAS_OPTION_TEXT, &a.constraints, "EXPR",
         "limits; x is a multiple of what the model has (latency.p50 <= 0.5 x)"},
        {"max-loss", 0, HWNAS_OPTION_NUMBER, &a.max_loss, "POINTS",
         "accuracy that may be lost on the search's samples (any)"},
        {"minutes", 0, HWNAS_OPTION_NUMBER, &a.minutes, "N", "of the search (10)"},
        {"trials", 0, HWNAS_OPTION_INT, &a.trials, "N", "at most so many networks"},
        {"device", 'd', HWNAS_OPTION_TEXT, &a.device, "DEVICE", "what it shall be fast on (cpu)"},
        {"precision", 0, HWNAS_OPTION_TEXT, &a.precisions, "LIST",
         "what it may be computed in: f32,s8 (f32; of --resume, as before)"},
        {"resolution", 0, HWNAS_OPTION_FLAG, &a.with_resolution, NULL,
         "images may be made smaller before the model sees them"},
        {"threads", 't', HWNAS_OPTION_ALL, &a.threads, "N", "threads there, or all (1)"},
        {"batch", 'b', HWNAS_OPTION_INT, &a.batch, "N", "samples that are run together there (1)"},
        {"seed", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &a.seed, "N",
         "another seed, another search (0)"},
        {"out", 'o', HWNAS_OPTION_TEXT, &a.out, "PREFIX", "what files begin with (NAME-opt)"},
        {"resume", 0, HWNAS_OPTION_FLAG, &a.resume, NULL, "go on with the study that is there"},
        {"overwrite", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &a.overwrite, NULL, "begin anew"},
        {"json", 0, HWNAS_OPTION_FLAG, &a.as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &a.model, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!a.data)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--data is missing"),
                          "hwnas optimize model.onnx --data val.npz");
    if (a.threads > 1024 || a.batch > 1 << 20)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--threads is at most 1024, --batch %d", 1 << 20);
    return optimize(&a);
}
