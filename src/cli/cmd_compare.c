/* compare: which device serves a model cheapest at a load and a latency target; and whether two
 * models compute the same. */
#define _GNU_SOURCE 1 /* strsep() */
#include <float.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/compare_outputs.h"
#include "cli/quantity.h"
#include "cli/sweep_lists.h"

static const hwnas_usage usage = {
    .synopsis = "compare MODEL...",
    .summary = "Says which device serves, or trains, a model cheapest; or whether models compute "
               "the same.",
    .notes =
        "hwnas compare resnet50 -d cpu -p gpu.json --price prices.yaml --latency-target 50ms "
        "--load 1000/s\n"
        "hwnas compare --outputs a.onnx b.onnx      hwnas compare --outputs a.onnx --dtype bf16",
    .min_arguments = 0,
    .max_arguments = HWNAS_MAX_MODELS};

enum { MAX_PROFILES = 32 };
static const double DEFAULT_TOLERANCE = 0.05; /* of --baseline */
static const double INTERVAL = 0.01, SECONDS = 1, UTILISATION = 0.8; /* where nobody says them */

/* "FILE,NAME=FILE", which is cut in place. */
static hwnas_status read_profiles(hwnas_recorded_profile out[MAX_PROFILES], size_t *n, char *list)
{
    char *rest = list;
    for (char *word; (word = strsep(&rest, ","));) {
        char *equals = strchr(word, '=');
        if (!*word || equals == word)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--profile '%.60s' has an empty name", word);
        if (*n == MAX_PROFILES)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "more than %d profiles", MAX_PROFILES);
        if (equals)
            *equals = '\0';
        out[(*n)++] = (hwnas_recorded_profile){equals ? word : NULL, equals ? equals + 1 : word};
    }
    return HWNAS_OK;
}

/* What is said beside --outputs, and has no meaning there; NULL: nothing is. */
typedef struct said {
    const char *option;
    bool is_said;
} said;

static hwnas_status refuse(const said *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].is_said)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--outputs goes without --%s", all[i].option);
    return HWNAS_OK;
}

static hwnas_status run_baseline(hwnas_baseline_options *baseline, bool as_json)
{
    hwnas_report *report;
    if (baseline->tolerance < 0)
        baseline->tolerance = DEFAULT_TOLERANCE;
    if (baseline->tolerance >= 1)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--tolerance is a share, 0.05 for 5 %%");
    if (baseline->tolerance <= 0)
        baseline->tolerance = DBL_MIN; /* the library takes 0 for its default */
    const hwnas_status status = hwnas_compare_baseline(&report, baseline);
    hwnas_show_progress(NULL, NULL);
    TRY(status);
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static hwnas_status read_question(hwnas_compare_options *out, const char *target, const char *load,
                                  const char *percentile)
{
    if (target)
        TRY(hwnas_quantity_seconds(&out->target, "latency-target", target));
    if (load)
        TRY(hwnas_quantity_rate(&out->load, "load", load));
    if (percentile)
        TRY(hwnas_quantity_percentile(&out->percentile, "percentile", percentile));
    if (!(out->utilisation > 0 && out->utilisation < 1))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--utilisation must be between 0 and 1"),
                          "at 1 the queue grows without end");
    return HWNAS_OK;
}

static hwnas_status read_training(hwnas_profile_options *models,
                                  const hwnas_compare_options *compare,
                                  const hwnas_training_words *words, const char *streams)
{
    const char *wrong = compare->target > 0       ? "latency-target"
                        : compare->load > 0       ? "load"
                        : compare->percentile > 0 ? "percentile"
                        : streams                 ? "streams"
                                                  : NULL;
    if (words->trains && wrong)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--%s is of requests, and --training compares training steps", wrong);
    if (compare->base && !words->trains)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--base belongs to --training"),
                          "--baseline FILE measures again what a file holds");
    return hwnas_training_read(models, words, NULL);
}

/* Samples are those of --outputs, or choose what is mixed. */
static hwnas_status read_samples(hwnas_data_arguments *data, const hwnas_option_list *inputs,
                                 bool outputs)
{
    if (outputs && (data->files.n || data->labels || data->y || data->limit))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "--outputs compares two networks, which need no labels"),
                          "its samples are those of --input FILE, the first batch of them");
    if (!outputs && inputs->n)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--input belongs to --outputs"),
                          "samples that choose the layers of --dtype mixed are --data FILE");
    if (outputs)
        data->files = *inputs;
    if (!data->files.n && (data->x || data->scale || data->mean || data->std || data->layout))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--x, --scale, --mean, --std and --layout say how samples are read, of "
                          "--data or of --outputs --input, and there are none");
    return HWNAS_OK;
}

static hwnas_status compare_devices(hwnas_profile_options *models,
                                    const hwnas_compare_options *compare,
                                    const hwnas_data_arguments *data, double max_loss,
                                    hwnas_format format)
{
    hwnas_data_read read;
    hwnas_report *report;
    hwnas_status status = hwnas_sweep_samples(models, &read, data, max_loss);
    if (status == HWNAS_OK)
        status = hwnas_compare(&report, compare);
    hwnas_show_progress(NULL, NULL);
    hwnas_data_read_done(&read);
    return status == HWNAS_OK ? hwnas_print_report(report, format) : status;
}

hwnas_status hwnas_cmd_compare(int argc, char **argv)
{
    hwnas_profile_options models = HWNAS_PROFILE_OPTIONS_INIT;
    hwnas_compare_options compare = HWNAS_COMPARE_OPTIONS_INIT;
    hwnas_baseline_options baseline = HWNAS_BASELINE_OPTIONS_INIT;
    hwnas_recorded_profile recorded[MAX_PROFILES];
    hwnas_sweep_lists lists = {.max_error = HWNAS_NO_MAX_ERROR};
    hwnas_format format;
    hwnas_data_arguments data = {0};
    hwnas_option_list inputs = {0};
    double max_loss = HWNAS_NO_MAX_LOSS;
    long calibrate = 0;
    char *profiles = NULL;
    const char *target = NULL, *load = NULL, *percentile = NULL;
    hwnas_training_words training = HWNAS_TRAINING_WORDS_INIT;
    bool outputs = false, as_json = false, as_csv = false, as_markdown = false, done;
    int n;
    models.interval = INTERVAL;
    models.seconds = SECONDS;
    compare.utilisation = UTILISATION;
    baseline.tolerance = -1;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &models.code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &lists.devices, "LIST",
         "measured here (cpu, unless --profile is given)"},
        {"profile", 'p', HWNAS_OPTION_TEXT, &profiles, "LIST",
         "recorded: FILE or NAME=FILE, by 'profile --save'"},
        {"price", 0, HWNAS_OPTION_TEXT, &compare.prices, "FILE",
         "what an hour of each costs (YAML)"},
        {"latency-target", 0, HWNAS_OPTION_TEXT, &target, "T",
         "8ms: with waiting, at the percentile"},
        {"load", 0, HWNAS_OPTION_TEXT, &load, "N", "requests: 1000/s, 500/min"},
        {"percentile", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &percentile, "P",
         "p50, p90 or p99 (p99)"},
        {"utilisation", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &compare.utilisation, "SHARE",
         "busy at most so much of the time (0.8)"},
        {"batch", 'b', HWNAS_OPTION_TEXT, &lists.batches, "LIST",
         "batch sizes (1,8; of training 32; of an ONNX file what it fixes)"},
        {"shape", 0, HWNAS_OPTION_TEXT, &models.shape, "SHAPES",
         "open dimensions of ONNX files: ids=1x128,mask=1x128; by name n=128"},
        {"threads", 't', HWNAS_OPTION_TEXT, &lists.threads, "LIST",
         "numbers of threads (1 and all cores)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &lists.precisions, "LIST",
         "precisions, or mixed, mixed-bf16 (f32)"},
        {"max-error", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &lists.max_error, "PERCENT",
         "of --dtype mixed: largest difference from f32, of the largest output (5)"},
        {"data", 0, HWNAS_OPTION_LIST | HWNAS_OPTION_RARE, &data.files, "FILE",
         "mixed: samples that choose (docs/evaluate.md); random inputs"},
        HWNAS_CHOICE_OPTIONS(data, max_loss),
        {"calibrate", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &calibrate, "N",
         "mixed: ranges come from the first N samples (64)"},
        {"streams", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &lists.streams, "LIST",
         "copies at a time (fill)"},
        {"interval", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &models.interval, "SHARE",
         "measure until the median is known this well (0.01)"},
        {"seconds", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &models.seconds, "S",
         "but no longer than this for each (1)"},
        {"save", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &models.save, "FILE",
         "keep what was measured here"},
        {"training", 0, HWNAS_OPTION_FLAG, &training.trains, NULL,
         "which trains it cheapest: steps, in units of those of --base NAME"},
        {"optimizer", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &training.optimizer, "NAME",
         "of --training: sgd, with momentum; adamw (sgd)"},
        {"samples", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &training.samples, "N",
         "of --training: those of the training set, for what the whole takes"},
        {"epochs", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &training.epochs, "E",
         "of --samples: passes over them (1)"},
        {"base", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &compare.base, "NAME",
         "of --training: the device or profile that is 1 (the first)"},
        {"baseline", 0, HWNAS_OPTION_TEXT, &baseline.recorded, "FILE",
         "measure again what it holds; exit code 1 if a network got slower"},
        {"tolerance", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &baseline.tolerance, "SHARE",
         "of --baseline: slower by this share is no change (0.05); of --outputs: a difference, of "
         "the largest value (f32: 0.0001)"},
        {"outputs", 0, HWNAS_OPTION_FLAG, &outputs, NULL,
         "instead: how outputs and nodes differ; of one model, from ref's"},
        {"input", 'i', HWNAS_OPTION_LIST | HWNAS_OPTION_RARE, &inputs, "FILE",
         "of --outputs: samples, the first batch of them (random ones)"},
        HWNAS_SAMPLE_OPTIONS(data),
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {"csv", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &as_csv, NULL, "comma-separated values"},
        {"markdown", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &as_markdown, NULL,
         "tables of Markdown, with the winners"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, lists.models, &n, &done));
    if (done)
        return HWNAS_OK;
    const said unwanted[] = {{"profile", profiles != NULL},
                             {"price", compare.prices != NULL},
                             {"latency-target", target != NULL},
                             {"load", load != NULL},
                             {"percentile", percentile != NULL},
                             {"streams", lists.streams != NULL},
                             {"interval", models.interval != INTERVAL},
                             {"seconds", models.seconds != SECONDS},
                             {"utilisation", compare.utilisation != UTILISATION},
                             {"save", models.save != NULL},
                             {"max-loss", max_loss != HWNAS_NO_MAX_LOSS},
                             {"calibrate", calibrate != 0},
                             {"training", training.trains},
                             {"baseline", baseline.recorded != NULL},
                             {"markdown", as_markdown}};
    if (outputs)
        TRY(refuse(unwanted, sizeof unwanted / sizeof *unwanted));
    TRY(read_samples(&data, &inputs, outputs));
    if (!outputs && !baseline.recorded && baseline.tolerance >= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--tolerance belongs to --baseline, or to --outputs");
    const bool samples_said = data.files.n || data.labels || data.y || data.limit || calibrate ||
                              max_loss != HWNAS_NO_MAX_LOSS;
    TRY(read_question(&compare, target, load, percentile));
    TRY(read_training(&models, &compare, &training, lists.streams));
    if (baseline.recorded && (profiles || compare.prices || models.save || as_csv || as_markdown ||
                              lists.devices || training.trains || samples_said))
        return hwnas_fail(
            HWNAS_E_USAGE, NULL,
            "--baseline measures what its file holds: it goes with models, --tolerance, "
            "--interval, --seconds and --json only");
    TRY(hwnas_table_format(&format, as_json, as_csv, as_markdown));
    if (models.interval <= 0 || models.seconds <= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--interval and --seconds must be more than 0");
    models.models = lists.models;
    models.n_models = (size_t)n;
    models.cancel = hwnas_stop_on_signals();
    models.progress = hwnas_show_progress;
    if (outputs)
        return hwnas_compare_outputs_run(&models, &lists, &data, baseline.tolerance, format);
    compare.models = baseline.models = &models;
    if (baseline.recorded)
        return run_baseline(&baseline, as_json);
    compare.measures = lists.devices || !profiles;
    if (profiles)
        TRY(read_profiles(recorded, &compare.n_recorded, profiles));
    compare.recorded = recorded;
    TRY(hwnas_sweep_read(&models, &lists));
    models.calibrate = calibrate;
    return compare_devices(&models, &compare, &data, max_loss, format);
}
