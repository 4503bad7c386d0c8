/* optimizing.c: hwnas/optimize.h: deriving, searching, recovering and comparing in one call. */
#include <hwnas/optimize.h>
#include <hwnas/profile.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/multiples.h"
#include "api/optimization.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "device/device.h"
#include "export/exporter.h"
#include "export/finetune.h"
#include "inherit/samples.h"
#include "onnx/onnx.h"
#include "predict/predict.h"
#include "report/optimized_text.h"
#include "study/summary.h"
#include "study/write_network.h"

static void end(hwnas_optimization *o)
{
    hwnas_arch_free(o->first);
    hwnas_arch_free(o->best);
    hwnas_predictor_free(o->predictor);
    hwnas_space_free(o->space);
    hwnas_report_free(o->search);
    hwnas_optimized_free(o->found);
    free(o->prefix);
    free(o->space_path);
    free(o->study_path);
    free(o->accuracy);
    free(o->constraints);
    free(o->precisions);
}

/* ---- What there is to begin with ---- */

/* "f32, s8" as "f32,s8". */
static hwnas_status take_precisions(hwnas_optimization *o)
{
    hwnas_status status = HWNAS_OK;
    char *text = hwnas_strdup(o->options.precisions), *rest = text;
    hwnas_precision precision;
    hwnas_str list = {0};
    for (char *word; status == HWNAS_OK && (word = strsep(&rest, ","));) {
        word += strspn(word, " ");
        word[strcspn(word, " ")] = '\0';
        status = hwnas_precision_find(&precision, word);
        hwnas_str_addf(&list, "%s%s", list.n ? "," : "", word);
    }
    free(text);
    o->precisions = list.s;
    return status;
}

static hwnas_status take_options(hwnas_optimization *o, const char *model,
                                 const hwnas_optimize_options *given)
{
    TRY(TAKE_OPTIONS(&o->options, given));
    hwnas_optimize_options *options = &o->options;
    o->model = model;
    if (!hwnas_ends_with(model, ".onnx"))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' is no ONNX file", model),
                          "a trained model with its weights: model.onnx");
    if (!options->samples)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "labelled samples are needed to measure the loss of accuracy");
    if (!(options->max_loss >= 0) || !(options->minutes >= 0))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "max_loss and minutes must not be negative");
    if (!options->constraints)
        options->constraints = "latency.p50 <= 0.5 x";
    if (!options->minutes)
        options->minutes = 10;
    if (!options->device)
        options->device = "cpu";
    if (!options->threads)
        options->threads = 1;
    if (options->threads == HWNAS_THREADS_ALL)
        options->threads = hwnas_device_cores();
    options->batch = options->batch ? options->batch : 1;
    o->prefix = options->out ? hwnas_strdup(options->out)
                             : hwnas_printf("%.*s-opt", (int)(strlen(model) - 5), model);
    o->space_path = hwnas_printf("%s.yaml", o->prefix);
    o->study_path = hwnas_printf("%s.db", o->prefix);
    o->accuracy = hwnas_printf("samples:%s", options->samples);
    return options->precisions ? take_precisions(o) : HWNAS_OK;
}

/* None of the files is the model, and none is replaced unasked. */
static hwnas_status check_file(const hwnas_optimization *o, const char *suffix)
{
    char *path = hwnas_printf("%s%s", o->prefix, suffix);
    hwnas_status status = hwnas_file_check_output(path, o->model);
    if (status == HWNAS_OK && !o->options.resume && !o->options.overwrite && !access(path, F_OK))
        status = hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s is there already", path),
                            "--resume to go on, --overwrite to begin anew, --out for other names");
    free(path);
    return status;
}

static hwnas_status check_files(const hwnas_optimization *o)
{
    static const char *const suffixes[] = {".yaml", ".db", ".onnx", ".py", ".safetensors", NULL};
    for (size_t i = 0; suffixes[i]; i++)
        TRY(check_file(o, suffixes[i]));
    for (size_t i = 0; hwnas_finetune_suffixes[i]; i++)
        TRY(check_file(o, hwnas_finetune_suffixes[i]));
    return HWNAS_OK;
}

/* A space that is there may have been edited: it is used as it is when the study goes on. */
static hwnas_status prepare(hwnas_optimization *o)
{
    const bool is_there = !access(o->space_path, F_OK);
    TRY(check_files(o));
    o->is_new_space = !is_there;
    if (!o->options.resume || !is_there)
        TRY(hwnas_derive_space(o->space_path, o->model, o->options.with_resolution));
    TRY(hwnas_load_space(&o->space, o->space_path));
    TRY(hwnas_predictor_load(&o->predictor, o->accuracy, o->space));
    o->samples = hwnas_predictor_samples_of(o->predictor);
    o->first = hwnas_arch_new(o->space);
    return HWNAS_OK;
}

/* ---- Limits ---- */

static bool goes_on(const hwnas_optimization *o)
{
    return o->options.resume && !access(o->study_path, F_OK);
}

/* As those of a study are told; one that is older than the option has none. */
static char *precisions_of(const json_t *identity)
{
    const json_t *dtype = json_object_get(identity, "dtype"), *one;
    hwnas_str list = {0};
    size_t i;
    hwnas_str_add(&list, json_is_string(dtype)  ? json_string_value(dtype)
                         : json_is_array(dtype) ? ""
                                                : "f32");
    json_array_foreach(dtype, i, one)
        hwnas_str_addf(&list, "%s%s", i ? "," : "", json_string_value(one));
    return list.s;
}

static hwnas_status take_precisions_of_study(hwnas_optimization *o, const json_t *identity)
{
    hwnas_status status = HWNAS_OK;
    char *theirs = precisions_of(identity);
    if (o->precisions && strcmp(o->precisions, theirs))
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s was made with --precision %s, not %s",
                                  o->study_path, theirs, o->precisions),
                       "--resume without --precision goes on with its own; --overwrite begins "
                       "anew, --out beside it");
    free(o->precisions);
    o->precisions = theirs;
    return status;
}

/* A study that goes on has its limits already: the model measured anew would give others. So it has
 * its precisions. */
static hwnas_status take_of_study(hwnas_optimization *o)
{
    hwnas_status status = HWNAS_OK;
    hwnas_store *store = NULL;
    hwnas_summary *summary = NULL;
    hwnas_str text = {0};
    size_t i;
    const json_t *limit;
    TRY_OUT(hwnas_store_open(&store, o->study_path, HWNAS_STORE_READ));
    TRY_OUT(hwnas_summary_load(&summary, store, o->study_path));
    TRY_OUT(take_precisions_of_study(o, summary->identity));
    json_array_foreach(json_object_get(summary->identity, "constraints"), i, limit)
        hwnas_str_addf(&text, "%s%s", i ? " and " : "", json_string_value(limit));
    if (text.s)
        o->constraints = hwnas_strdup(text.s);
    else
        status = hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s has no constraints", o->study_path),
                            "it is no study of an optimization: --overwrite to begin anew");
out:
    hwnas_str_done(&text);
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}

/* What is known of the model, and the limits that follow. */
static hwnas_status judge_model(hwnas_optimization *o)
{
    hwnas_status status = HWNAS_OK;
    hwnas_optimized *found = o->found;
    hwnas_graph *graph = NULL;
    hwnas_str constraints = {0};
    o->is_resumed = goes_on(o);
    if (o->is_resumed) /* before seconds are spent on what cannot go on */
        TRY(take_of_study(o));
    TRY_OUT(hwnas_optimization_time(o, NULL));
    TRY_OUT(hwnas_graph_build(&graph, o->first, o->options.batch));
    hwnas_optimization_costs(&found->original.costs, o, graph);
    TRY_OUT(hwnas_samples_score(&found->original.searched, o->samples, o->first, HWNAS_F32,
                                HWNAS_SAMPLES_SEARCH));
    if (o->constraints)
        goto out;
    TRY_OUT(hwnas_multiples_resolve(&constraints, o->options.constraints, found, true));
    if (o->options.max_loss > 0)
        hwnas_str_addf(&constraints, " and accuracy >= %.9g %%",
                       found->original.searched.value - o->options.max_loss);
    o->constraints = hwnas_strdup(constraints.s);
out:
    hwnas_str_done(&constraints);
    hwnas_graph_free(graph);
    return status;
}

/* ---- Searching ---- */

static hwnas_status search(hwnas_optimization *o)
{
    char threads[16], batch[16], seed[32], minutes[32];
    hwnas_search_options options = HWNAS_SEARCH_OPTIONS_INIT;
    char *dtype = hwnas_printf("{values: [%s]}", o->precisions ? o->precisions : "f32");
    snprintf(threads, sizeof threads, "%d", o->options.threads);
    snprintf(batch, sizeof batch, "%d", o->options.batch);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->options.seed);
    snprintf(minutes, sizeof minutes, "%.9g", o->options.minutes);
    const hwnas_job_flag flags[] = {{"space", o->space_path},
                                    {"accuracy", o->accuracy},
                                    {"device", o->options.device},
                                    {"threads", threads},
                                    {"batch", batch},
                                    {"dtype", dtype},
                                    {"objectives", "accuracy,latency.p50"},
                                    {"constraints", o->constraints},
                                    {"minutes", minutes},
                                    {"seed", seed},
                                    /* Accuracy takes longer than measuring. */
                                    {"estimate", "off"},
                                    {0}};
    options.study = o->study_path;
    options.resume = goes_on(o);
    options.overwrite = o->options.overwrite;
    options.max_trials = o->options.max_trials;
    options.flags = flags;
    options.cancel = o->options.cancel;
    options.progress = o->options.progress;
    options.context = o->options.context;
    const hwnas_status status = hwnas_search(&o->search, NULL, &options);
    free(dtype);
    return status;
}

/* ---- Writing ---- */

static void add_file(hwnas_report *report, const char *path, const hwnas_network_file *file)
{
    char *note = hwnas_network_file_note(file);
    hwnas_report_add_file(report, path, note);
    free(note);
}

static hwnas_status write_files(hwnas_optimization *o, hwnas_report *report,
                                const hwnas_graph *graph)
{
    hwnas_status status = HWNAS_OK;
    char *onnx = hwnas_printf("%s.onnx", o->prefix), *module = hwnas_printf("%s.py", o->prefix);
    char *weights = NULL;
    hwnas_network_file file = {
        .format = "onnx", .precision = o->found->best.precision, .batch = 1, .samples = o->samples};
    hwnas_exec_options how = {
        .precision = hwnas_precision_weight_bits(file.precision) ? file.precision : HWNAS_F32};
    if (file.precision == HWNAS_S8)
        TRY_OUT(hwnas_samples_calibrate(&how, o->samples, 1));
    TRY_OUT(hwnas_graph_write_folded(onnx, graph, &how));
    add_file(report, onnx, &file);
    TRY_OUT(hwnas_export_graph(module, &weights, graph));
    file.format = "pytorch";
    add_file(report, module, &file);
    hwnas_report_add_file(report, weights, "");
out:
    free(weights);
    free(onnx);
    free(module);
    return status;
}

/* What trains it: the program and the network that it learns from. */
static hwnas_status write_finetune(hwnas_optimization *o, hwnas_report *report)
{
    hwnas_graph *original;
    TRY(hwnas_graph_build_trained(&original, o->first, 1));
    const hwnas_status status = hwnas_export_finetune(o->prefix, o->options.samples, original);
    hwnas_graph_free(original);
    for (size_t i = 0; hwnas_finetune_suffixes[i] && status == HWNAS_OK; i++) {
        char *path = hwnas_printf("%s%s", o->prefix, hwnas_finetune_suffixes[i]);
        hwnas_report_add_file(report, path, "");
        free(path);
    }
    return status;
}

static hwnas_status write_all(hwnas_optimization *o, hwnas_report *report)
{
    hwnas_graph *graph = NULL;
    TRY(hwnas_samples_build(&graph, o->samples, o->best, 1));
    const hwnas_status status = write_files(o, report, graph);
    hwnas_graph_free(graph);
    return status == HWNAS_OK ? write_finetune(o, report) : status;
}

/* ---- All of it ---- */

static void free_found(void *found)
{
    hwnas_optimized_free(found);
}

static void text_of(hwnas_str *out, const void *found)
{
    hwnas_optimized_text(out, found);
}

static json_t *json_of(const void *found)
{
    return hwnas_optimized_json(found);
}

hwnas_status hwnas_optimize(hwnas_report **out, const char *model,
                            const hwnas_optimize_options *given)
{
    IN_C_LOCALE;
    static const hwnas_report_kind kind = {.text = text_of, .json = json_of, .free = free_found};
    hwnas_status status = HWNAS_OK;
    hwnas_report *report = NULL;
    hwnas_optimization o = {.found = hwnas_alloc(sizeof *o.found)};
    o.found->model = hwnas_strdup(model);
    TRY_OUT(take_options(&o, model, given));
    TRY_OUT(prepare(&o));
    TRY_OUT(judge_model(&o));
    TRY_OUT(search(&o));
    TRY_OUT(hwnas_report_conclude(o.search));
    TRY_OUT(hwnas_optimization_choose(&o));
    TRY_OUT(hwnas_optimization_score(&o));
    report = hwnas_report_new(&kind, o.found);
    status = write_all(&o, report);
    o.found = NULL; /* the report's */
    if (status != HWNAS_OK) {
        hwnas_report_free(report);
        goto out;
    }
    *out = report;
out:
    if (status != HWNAS_OK && o.is_new_space && access(o.study_path, F_OK))
        unlink(o.space_path);
    end(&o);
    return status;
}
