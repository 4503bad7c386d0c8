/* profile: latency, throughput and memory of models, over devices, batches, threads and precisions.
 */
#include <limits.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/sweep_lists.h"
#include "profile/record.h"
#include "report/layer_table.h"
#include "report/profile_text.h"

static const hwnas_usage usage = {
    .synopsis = "profile MODEL...",
    .summary = "Measures models: latency with its interval, throughput, memory, compile time.",
    .notes =
        "MODEL is an ONNX file, a YAML file, or the name of a space or of a network of the zoo.\n"
        "hwnas profile resnet50 bert_base:length=64 --threads 1,2 --dtype f32,bf16,s8",
    .min_arguments = 1,
    .max_arguments = HWNAS_SWEEP_MODELS};

typedef struct output {
    bool as_json, as_csv;
    const char *save, *name;
} output;

static hwnas_status print(const hwnas_profile *profile, const output *o, bool with_layers)
{
    hwnas_str text = {0};
    if (o->as_json)
        return hwnas_print_json(hwnas_profile_json(profile));
    if (o->as_csv && with_layers)
        hwnas_layers_csv(&text, profile);
    else if (o->as_csv)
        hwnas_profile_csv(&text, profile);
    else
        hwnas_profile_text(&text, profile);
    if (!o->as_csv)
        hwnas_layers_text(&text, profile);
    return hwnas_print_text(&text);
}

/* What was measured before a signal is printed and saved like a whole profile. */
static hwnas_status run(hwnas_sweep *sweep, const output *o)
{
    hwnas_status status = HWNAS_OK;
    hwnas_profile *profile = hwnas_profile_new();
    sweep->options.stop = hwnas_stop_on_signals();
    profile->name = o->name;
    if (o->save)
        TRY_OUT(hwnas_file_try(o->save));
    int threads = 1;
    for (int i = 0; i < sweep->n_threads; i++)
        threads = sweep->threads[i] > threads ? sweep->threads[i] : threads;
    for (int i = 0; i < sweep->n_devices; i++)
        hwnas_note_crowd(sweep->devices[i], threads, sweep->options.priority);
    const hwnas_status swept = hwnas_sweep_run(profile, sweep);
    if (profile->n_rows)
        TRY_OUT(print(profile, o, sweep->with_layers));
    if (profile->n_rows && o->save)
        TRY_OUT(hwnas_profile_save(profile, o->save));
    status = swept == HWNAS_OK ? hwnas_profile_check(profile) : swept;
    if (swept == HWNAS_E_INTERRUPTED)
        status = hwnas_fail(swept, NULL, "interrupted; %zu row%s finished", profile->n_rows,
                            profile->n_rows == 1 ? " was" : "s were");
out:
    hwnas_profile_free(profile);
    return status;
}

hwnas_status hwnas_cmd_profile(int argc, char **argv)
{
    hwnas_sweep s = {.on_skipped = hwnas_sweep_print_skipped, .options = HWNAS_MEASURE_DEFAULTS};
    hwnas_sweep_lists lists = HWNAS_SWEEP_DEFAULTS;
    output o = {0};
    bool done;
    const char *mode = "hot", *priority = "auto";
    long samples = s.options.min_samples;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &s.code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &lists.devices, "LIST", "where (cpu)"},
        {"batch", 'b', HWNAS_OPTION_TEXT, &lists.batches, "LIST", "batch sizes (1)"},
        {"threads", 't', HWNAS_OPTION_TEXT, &lists.threads, "LIST", "numbers of threads (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &lists.precisions, "LIST",
         "precisions: f32, tf32, bf16, f16, s8 (f32)"},
        {"streams", 0, HWNAS_OPTION_TEXT, &lists.streams, "LIST",
         "copies at a time, on cores of their own; fill: as many as fit"},
        {"interval", 0, HWNAS_OPTION_NUMBER, &s.options.interval, "SHARE",
         "measure until the median is known this well (0.01)"},
        {"seconds", 0, HWNAS_OPTION_NUMBER, &s.options.max_seconds, "S",
         "but no longer than this for each (1)"},
        {"samples", 0, HWNAS_OPTION_INT, &samples, "N", NULL},
        {"mode", 0, HWNAS_OPTION_TEXT, &mode, "MODE",
         "hot, cold-weights, cold, after-idle[=SECONDS], sustained[=SECONDS]"},
        {"priority", 0, HWNAS_OPTION_TEXT, &priority, "HOW",
         "realtime, normal; auto: realtime where allowed"},
        {"skip-unsupported", 0, HWNAS_OPTION_FLAG, &s.skips, NULL,
         "leave out nodes of ONNX files that cannot be computed, and say so"},
        {"save", 0, HWNAS_OPTION_TEXT, &o.save, "FILE",
         "keep it, for 'hwnas compare' on any machine"},
        {"name", 0, HWNAS_OPTION_TEXT, &o.name, "NAME", NULL},
        {"layers", 'l', HWNAS_OPTION_FLAG, &s.with_layers, NULL,
         "the parts of each network: time, work, share of the roofline"},
        {"verify", 0, HWNAS_OPTION_FLAG, &s.verifies, NULL,
         "compare each result with a reference first; a wrong one gets no time"},
        {"json", 0, HWNAS_OPTION_FLAG, &o.as_json, NULL, "one JSON object"},
        {"csv", 0, HWNAS_OPTION_FLAG, &o.as_csv, NULL, "one row for each measurement, or layer"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, s.models, &s.n_models, &done));
    if (done)
        return HWNAS_OK;
    if (s.options.interval <= 0 || s.options.max_seconds <= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--interval and --seconds must be more than 0");
    if (samples < 1 || samples > INT_MAX)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--samples must be 1 or more");
    s.options.min_samples = (int)samples;
    TRY(hwnas_mode_parse(&s.options, mode));
    TRY(hwnas_priority_find(&s.options.priority, priority));
    if (lists.streams && s.options.mode != HWNAS_HOT)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--streams are measured in the mode hot only");
    if (s.with_layers && (lists.streams || s.options.mode != HWNAS_HOT))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--layers are measured in the mode hot, without --streams");
    if (s.verifies && lists.streams)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--verify runs one copy; leave out --streams");
    if (o.name)
        TRY(hwnas_text_check("--name", o.name));
    if (o.as_json && o.as_csv)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--json and --csv exclude each other");
    hwnas_status status = hwnas_sweep_read(&s, &lists);
    if (status == HWNAS_OK)
        status = run(&s, &o);
    hwnas_sweep_done(&s);
    return status;
}
