/* profile: latency, throughput and memory of models, over batches and threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/model.h"
#include "report/profile.h"

enum { MAX_MODELS = 64, MAX_LIST = 16 };

static const hwnas_usage usage = {
    .synopsis = "profile MODEL...",
    .summary = "Measures models: latency with its interval, throughput, memory, compile time.",
    .notes = "MODEL is an ONNX file, a YAML file, or the name of a space or of a network of the zoo.\n"
             "hwnas profile resnet50 mobilenet_v2 --batch 1,8 --threads 1,2\n"
             "hwnas profile nas_bench_macro --arch 22212220\n"
             "hwnas profile bert_base:length=64",
    .min_arguments = 1,
    .max_arguments = MAX_MODELS};

/* "1,2,8" */
static hwnas_status parse_list(int *out, int *n, const char *option, const char *text, long most)
{
    *n = 0;
    for (const char *at = text; *n < MAX_LIST;) {
        char *end;
        errno = 0;
        const long value = strtol(at, &end, 10);
        if (end == at || errno || value < 1 || value > most || (*end && *end != ','))
            break;
        out[(*n)++] = (int)value;
        if (!*end)
            return HWNAS_OK;
        at = end + 1;
    }
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--%s '%.60s' is no list of numbers 1 to %ld",
                                 option, text, most),
                      "write --%s 1,2,4", option);
}

/* One model under one setting. That it cannot be measured is written down, and is no end. */
static hwnas_status measure(hwnas_profile *profile, hwnas_runner *runner, const hwnas_graph *graph,
                            const char *model, int batch, int threads,
                            const hwnas_measure_options *options)
{
    hwnas_profile_row *row = &profile->rows[profile->n_rows];
    *row = (hwnas_profile_row){.model = model, .batch = batch, .threads = threads};
    hwnas_graph_costs(&row->costs, graph);
    row->status = hwnas_runner_measure(&row->m, runner, graph, options);
    if (row->status != HWNAS_OK)
        row->message = hwnas_strdup(hwnas_last_error()->message);
    profile->n_rows++;
    return row->status == HWNAS_E_INTERRUPTED ? row->status : HWNAS_OK;
}

typedef struct sweep {
    const char *models[MAX_MODELS], *code, *device;
    int n_models, batches[MAX_LIST], n_batches, threads[MAX_LIST], n_threads;
    bool skips; /* leave out what cannot be computed */
    hwnas_measure_options options;
} sweep;

/* Says what is left out, once for each model. */
static hwnas_status load(hwnas_graph **out, const sweep *s, int model, int batch, bool is_first)
{
    hwnas_str skipped = {0};
    hwnas_status status =
        hwnas_model_load(out, s->models[model], s->code, batch, s->skips ? &skipped : NULL);
    if (status == HWNAS_OK && skipped.n && is_first)
        fprintf(stderr, "%s is not measured whole; left out, with what depends on it:\n%s",
                s->models[model], skipped.s);
    hwnas_str_done(&skipped);
    return status;
}

static hwnas_status run_sweep(hwnas_profile *profile, const sweep *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_runner *runner = NULL;
    hwnas_graph *graph = NULL;
    profile->device = s->device;
    profile->rows = hwnas_alloc((size_t)s->n_models * (size_t)s->n_batches * (size_t)s->n_threads *
                                sizeof *profile->rows);
    for (int t = 0; t < s->n_threads; t++) {
        TRY_OUT(hwnas_runner_open(&runner, s->device, s->threads[t]));
        TRY_OUT(hwnas_runner_describe(&profile->info, runner));
        for (int m = 0; m < s->n_models; m++)
            for (int b = 0; b < s->n_batches; b++) {
                TRY_OUT(load(&graph, s, m, s->batches[b], t == 0 && b == 0));
                TRY_OUT(measure(profile, runner, graph, s->models[m], s->batches[b], s->threads[t],
                                &s->options));
                hwnas_graph_free(graph);
                graph = NULL;
            }
        hwnas_runner_close(runner);
        runner = NULL;
    }
out:
    hwnas_graph_free(graph);
    hwnas_runner_close(runner);
    return status;
}

static hwnas_status print(const hwnas_profile *profile, bool as_json, bool as_csv)
{
    hwnas_str text = {0};
    if (as_json)
        return hwnas_print_json(hwnas_profile_json(profile));
    if (as_csv)
        hwnas_profile_csv(&text, profile);
    else
        hwnas_profile_text(&text, profile);
    return hwnas_print_text(&text);
}

/* The worst of the rows: a profile of which a part failed says so by its exit code. */
static hwnas_status worst(const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_rows; i++)
        if (profile->rows[i].status != HWNAS_OK)
            return hwnas_fail(profile->rows[i].status, NULL, "%s: %s", profile->rows[i].model,
                              profile->rows[i].message);
    return HWNAS_OK;
}

hwnas_status hwnas_cmd_profile(int argc, char **argv)
{
    sweep s = {.device = "cpu", .options = HWNAS_MEASURE_DEFAULTS};
    const char *batches = "1", *threads = "1";
    bool as_json = false, as_csv = false, done;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &s.code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &s.device, "DEVICE", "where (cpu)"},
        {"batch", 'b', HWNAS_OPTION_TEXT, &batches, "LIST", "batch sizes (1)"},
        {"threads", 't', HWNAS_OPTION_TEXT, &threads, "LIST", "numbers of threads (1)"},
        {"interval", 0, HWNAS_OPTION_NUMBER, &s.options.interval, "SHARE",
         "measure until the median is known this well (0.01)"},
        {"seconds", 0, HWNAS_OPTION_NUMBER, &s.options.max_seconds, "S",
         "but no longer than this for each (1)"},
        {"skip-unsupported", 0, HWNAS_OPTION_FLAG, &s.skips, NULL,
         "leave out nodes of ONNX files that cannot be computed, and say so"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {"csv", 0, HWNAS_OPTION_FLAG, &as_csv, NULL, "one row for each measurement"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, s.models, &s.n_models, &done));
    if (done)
        return HWNAS_OK;
    if (s.options.interval <= 0 || s.options.max_seconds <= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--interval and --seconds must be more than 0");
    if (as_json && as_csv)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--json and --csv exclude each other");
    TRY(parse_list(s.batches, &s.n_batches, "batch", batches, 1 << 20));
    TRY(parse_list(s.threads, &s.n_threads, "threads", threads, 1024));
    hwnas_profile profile = {0};
    hwnas_status status = run_sweep(&profile, &s);
    if (status == HWNAS_OK)
        status = print(&profile, as_json, as_csv);
    if (status == HWNAS_OK)
        status = worst(&profile);
    hwnas_profile_done(&profile);
    return status;
}
