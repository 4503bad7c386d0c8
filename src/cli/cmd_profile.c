/* profile: latency, throughput and memory of models, over devices, batches, threads and precisions.
 */
#include <limits.h>

#include "cli/sweep_lists.h"

static const hwnas_usage usage = {
    .synopsis = "profile MODEL...",
    .summary = "Measures models: latency with its interval, throughput, memory, compile time.",
    .notes = "MODEL is a file (ONNX, YAML), or the name of a space or network: resnet50, "
             "bert_base:length=64",
    .min_arguments = 1,
    .max_arguments = HWNAS_MAX_MODELS};

hwnas_status hwnas_cmd_profile(int argc, char **argv)
{
    hwnas_profile_options profile = HWNAS_PROFILE_OPTIONS_INIT;
    hwnas_sweep_lists lists = {.max_error = HWNAS_NO_MAX_ERROR};
    hwnas_report *report;
    hwnas_format format;
    hwnas_training_words training = HWNAS_TRAINING_WORDS_INIT;
    bool as_json = false, as_csv = false, as_markdown = false, done;
    hwnas_data_arguments data = {.limit = 0};
    hwnas_data_read read;
    double max_loss = HWNAS_NO_MAX_LOSS;
    long runs = 30, calibrate = 0;
    int n;
    profile.interval = 0.01;
    profile.seconds = 1;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &profile.code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &lists.devices, "LIST", "where (cpu)"},
        {"batch", 'b', HWNAS_OPTION_TEXT, &lists.batches, "LIST",
         "batch sizes (1, or what an ONNX file fixes)"},
        {"shape", 0, HWNAS_OPTION_TEXT, &profile.shape, "SHAPES",
         "open dimensions of ONNX: ids=1x128; by name n=128; a sweep n={1,8}"},
        {"threads", 't', HWNAS_OPTION_TEXT, &lists.threads, "LIST", "numbers, or all (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &lists.precisions, "LIST",
         "f32, tf32, bf16, f16, s8, w8, w4; mixed, mixed-bf16: by layer (f32)"},
        {"max-error", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &lists.max_error, "PERCENT",
         "mixed: largest difference from f32, of the largest output (5)"},
        {"data", 0, HWNAS_OPTION_LIST | HWNAS_OPTION_RARE, &data.files, "FILE",
         "mixed: samples that choose (docs/evaluate.md); random inputs"},
        HWNAS_CHOICE_OPTIONS(data, max_loss),
        {"calibrate", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &calibrate, "N",
         "mixed: ranges come from the first N samples (64)"},
        HWNAS_SAMPLE_OPTIONS(data),
        {"streams", 0, HWNAS_OPTION_TEXT, &lists.streams, "LIST",
         "copies at a time, on cores of their own; fill: as many as fit"},
        {"interval", 0, HWNAS_OPTION_NUMBER, &profile.interval, "SHARE",
         "measure until the median is known this well (0.01)"},
        {"seconds", 0, HWNAS_OPTION_NUMBER, &profile.seconds, "S",
         "but no longer than this for each (1)"},
        {"runs", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &runs, "N",
         "at least so many of each (30)"},
        {"mode", 0, HWNAS_OPTION_TEXT, &profile.mode, "MODE",
         "hot, cold-weights, cold, after-idle[=SECONDS], sustained[=SECONDS]"},
        {"priority", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &profile.priority, "HOW",
         "realtime, normal; auto: realtime where allowed"},
        {"skip-unsupported", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &profile.skips, NULL,
         "leave out nodes of ONNX files that cannot be computed, and say so"},
        {"save", 0, HWNAS_OPTION_TEXT, &profile.save, "FILE",
         "keep it, for 'hwnas compare' on any machine"},
        {"name", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &profile.name, "NAME",
         "with --save: what the device is called in comparisons"},
        {"layers", 'l', HWNAS_OPTION_FLAG, &profile.with_layers, NULL,
         "the parts of each network: time, work, share of the roofline"},
        {"training", 0, HWNAS_OPTION_FLAG, &training.trains, NULL,
         "a training step: forward, loss, backward, update of the weights"},
        {"optimizer", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &training.optimizer, "NAME",
         "of --training: sgd, with momentum; adamw (sgd)"},
        {"samples", 0, HWNAS_OPTION_INT | HWNAS_OPTION_RARE, &training.samples, "N",
         "of the training set: what --epochs E of it take; --price: and cost"},
        {"epochs", 0, HWNAS_OPTION_NUMBER | HWNAS_OPTION_RARE, &training.epochs, "E",
         "of --samples: passes over them (1)"},
        {"price", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &profile.prices, "FILE",
         "of --samples: what an hour of each device costs (YAML), so what a training costs"},
        {"verify", 0, HWNAS_OPTION_FLAG, &profile.verifies, NULL,
         "compare each result with a reference first; a wrong one gets no time"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {"csv", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &as_csv, NULL, "comma-separated values"},
        {"markdown", 0, HWNAS_OPTION_FLAG | HWNAS_OPTION_RARE, &as_markdown, NULL,
         "the rows, and layers, as tables of Markdown"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, lists.models, &n, &done));
    if (done)
        return HWNAS_OK;
    if (profile.prices && !training.trains)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--price belongs to --training"),
                          "'hwnas compare --price' says which device serves a model cheapest");
    TRY(hwnas_training_read(&profile, &training, profile.prices));
    if (profile.interval <= 0 || profile.seconds <= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--interval and --seconds must be more than 0");
    if (runs < 1 || runs > INT_MAX)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--runs must be 1 or more");
    TRY(hwnas_table_format(&format, as_json, as_csv, as_markdown));
    TRY(hwnas_sweep_read(&profile, &lists));
    profile.models = lists.models;
    profile.n_models = (size_t)n;
    profile.min_runs = (int)runs;
    profile.calibrate = calibrate;
    profile.cancel = hwnas_stop_on_signals();
    profile.progress = hwnas_show_progress;
    hwnas_status status = hwnas_sweep_samples(&profile, &read, &data, max_loss);
    if (status == HWNAS_OK)
        status = hwnas_models_profile(&report, &profile);
    hwnas_show_progress(NULL, NULL);
    hwnas_data_read_done(&read);
    return status == HWNAS_OK ? hwnas_print_report(report, format) : status;
}
