/* compare: which device serves a model cheapest at a load and a latency target. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/quantity.h"
#include "cli/sweep_lists.h"
#include "profile/baseline_measure.h"
#include "profile/record.h"
#include "report/baseline_text.h"
#include "report/compare_text.h"

static const hwnas_usage usage = {
    .synopsis = "compare MODEL...",
    .summary =
        "Says which device serves a model cheapest, from measurements and recorded profiles.",
    .notes =
        "hwnas compare resnet50 --device cpu --profile gpu.json --price prices.yaml \\\n"
        "              --latency-target 50ms --load 1000/s\n"
        "A machine is taken to do what was measured, no more: --streams fill fills its cores. "
        "Devices\n"
        "are called in the price file as here: cpu, or a profile's name (profile --save --name).",
    .min_arguments = 0,
    .max_arguments = HWNAS_SWEEP_MODELS};

enum { MAX_PROFILES = 32 };

typedef struct request {
    hwnas_sweep sweep;
    hwnas_sweep_lists lists;
    hwnas_query query;
    const char *profiles; /* recorded ones: FILE,NAME=FILE,... or NULL */
    const char *prices, *save;
    const char
        *baseline; /* a recorded profile to be held against today; then the rest has no meaning */
    double tolerance;
    bool measures, as_json, as_csv;

    hwnas_profile *here; /* what was measured; NULL: nothing */
    int n_profiles;      /* recorded ones */
    hwnas_profile *loaded[MAX_PROFILES];
    char *names[MAX_PROFILES]; /* heap */
} request;

/* ---- Profiles ---- */

static bool is_wanted(const request *r, const hwnas_profile_row *row)
{
    const hwnas_sweep *s = &r->sweep;
    for (int i = 0; i < s->n_models; i++)
        if (!strcmp(s->models[i], row->model))
            return !s->code || (row->arch && !strcmp(row->arch, s->code));
    return s->n_models == 0;
}

/* Leaves the rows of the models that are asked for. */
static hwnas_status pick_rows(const request *r, hwnas_profile *profile, const char *path)
{
    const char *names[HWNAS_SWEEP_MODELS + 1] = {NULL};
    hwnas_str list = {0};
    size_t n = 0;
    for (size_t i = 0; i < profile->n_rows; i++) {
        const char *model = profile->rows[i].model;
        if (i < HWNAS_SWEEP_MODELS)
            names[i] = model;
        if (!i || strcmp(model, profile->rows[i - 1].model))
            hwnas_str_addf(&list, "%s%s", list.n ? ", " : "", model);
        if (is_wanted(r, &profile->rows[i]))
            profile->rows[n++] = profile->rows[i];
    }
    hwnas_status status = HWNAS_OK;
    if (!n) {
        const char *near = hwnas_nearest(r->sweep.models[0], names);
        status = hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = path},
                            "none of the models that are asked for is in this profile");
        status = near ? hwnas_hint(status, "did you mean '%s'?", near)
                      : hwnas_hint(status, "it has %s", list.s);
    }
    profile->n_rows = n;
    hwnas_str_done(&list);
    return status;
}

/* Each model is in one of the profiles, when nothing is measured. */
static hwnas_status find_models(const request *r)
{
    for (int i = 0; i < r->sweep.n_models && !r->measures; i++) {
        bool is_there = false;
        for (int k = 0; k < r->n_profiles; k++)
            for (size_t j = 0; j < r->loaded[k]->n_rows; j++)
                is_there |= !strcmp(r->loaded[k]->rows[j].model, r->sweep.models[i]);
        if (!is_there)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "no profile has the model '%s'",
                              r->sweep.models[i]);
    }
    return HWNAS_OK;
}

/* What the machine of a file is called: NAME=FILE, the name in it, or the file's own. */
static char *name_profile(const char *name, const hwnas_profile *profile, const char *path)
{
    if (name || profile->name)
        return hwnas_strdup(name ? name : profile->name);
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const size_t length = strlen(base) - (hwnas_ends_with(base, ".json") ? strlen(".json") : 0);
    return hwnas_printf("%.*s", (int)length, base);
}

static hwnas_status load_profile(request *r, char *word)
{
    char *equals = strchr(word, '='), *path = equals ? equals + 1 : word;
    const char *name = equals ? word : NULL;
    hwnas_profile *profile;
    if (equals == word)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--profile '%.60s' has an empty name", word);
    if (equals)
        *equals = '\0';
    if (r->n_profiles == MAX_PROFILES)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "more than %d profiles", MAX_PROFILES);
    TRY(hwnas_profile_load(&profile, path));
    r->names[r->n_profiles] = name_profile(name, profile, path);
    r->loaded[r->n_profiles++] = profile;
    for (int i = 0; i < r->n_profiles - 1; i++)
        if (!strcmp(r->names[i], r->names[r->n_profiles - 1]))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_USAGE, NULL, "two profiles are called '%s'", r->names[i]),
                "write --profile A=%s", path);
    return pick_rows(r, profile, path);
}

static hwnas_status load_profiles(request *r)
{
    char *list = hwnas_strdup(r->profiles), *rest = list;
    hwnas_status status = HWNAS_OK;
    for (char *word; status == HWNAS_OK && (word = strsep(&rest, ","));)
        status = *word ? load_profile(r, word)
                       : hwnas_fail(HWNAS_E_USAGE, NULL, "--profile '%.60s' has an empty name",
                                    r->profiles);
    free(list);
    return status == HWNAS_OK ? find_models(r) : status;
}

/* A recorded device that is called as one of here would take its price, and be taken for it. */
static hwnas_status check_names(const request *r)
{
    for (int i = 0; i < r->sweep.n_devices; i++)
        for (int k = 0; k < r->n_profiles; k++)
            if (!strcmp(r->sweep.devices[i], r->names[k]))
                return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                             "a profile and a device of here are both called '%s'",
                                             r->names[k]),
                                  "give the profile another name: --profile NAME=FILE");
    return HWNAS_OK;
}

/* Measures here what is to be compared. Without --threads each core alone and all together. */
static hwnas_status measure(request *r, const hwnas_prices *prices)
{
    char threads[32];
    const hwnas_price *price;
    const int cores = hwnas_device_cores();
    snprintf(threads, sizeof threads, cores > 1 ? "1,%d" : "1", cores);
    if (!r->lists.threads)
        r->lists.threads = threads;
    TRY(hwnas_sweep_read(&r->sweep, &r->lists));
    TRY(check_names(r));
    for (int i = 0; prices && i < r->sweep.n_devices; i++)
        TRY(hwnas_prices_find(&price, prices, r->sweep.devices[i]));
    r->sweep.options.stop = hwnas_stop_on_signals();
    r->here = hwnas_profile_new();
    if (r->save)
        TRY(hwnas_file_try(r->save));
    const hwnas_status swept = hwnas_sweep_run(r->here, &r->sweep);
    const bool is_saved = r->save && r->here->n_rows;
    if (is_saved)
        TRY(hwnas_profile_save(r->here, r->save));
    if (swept == HWNAS_E_INTERRUPTED)
        return hwnas_fail(swept, NULL, "interrupted; %zu row%s finished%s", r->here->n_rows,
                          r->here->n_rows == 1 ? " was" : "s were", is_saved ? " and saved" : "");
    return swept;
}

/* ---- The answer ---- */

static hwnas_status print(const request *r, const hwnas_comparison *comparison)
{
    hwnas_str text = {0};
    if (r->as_json)
        return hwnas_print_json(hwnas_comparison_json(comparison));
    if (r->as_csv)
        hwnas_comparison_csv(&text, comparison);
    else
        hwnas_comparison_text(&text, comparison);
    return hwnas_print_text(&text);
}

/* A setting may be without the percentile that was asked for, which says nothing of the device. */
static bool lacks_percentile(const hwnas_comparison *c, const hwnas_answer *answer)
{
    for (size_t i = answer->first; i < answer->first + answer->n; i++) {
        const hwnas_profile_row *row = c->choices[i].row;
        if (row->status == HWNAS_OK && isnan(hwnas_profile_row_latency(row, c->query.percentile)))
            return isfinite(c->query.target);
    }
    return false;
}

/* No device that would do is an answer, and one that scripts want to hear of. */
static hwnas_status find_loser(const hwnas_comparison *c)
{
    for (size_t i = 0; i < c->n_answers; i++) {
        if (c->answers[i].winner)
            continue;
        hwnas_status status = hwnas_fail(HWNAS_E_INFEASIBLE, NULL,
                                         "%s: no setting keeps the target", c->answers[i].model);
        return lacks_percentile(c, &c->answers[i])
                   ? hwnas_hint(status, "more --seconds bring the percentile that some lack; "
                                        "--percentile p50 does without")
                   : status;
    }
    return HWNAS_OK;
}

static hwnas_status run(request *r)
{
    hwnas_status status = HWNAS_OK;
    hwnas_prices *prices = NULL;
    hwnas_comparison *comparison = NULL;
    /* Mistakes in files are told before anything is measured. */
    if (r->prices)
        TRY_OUT(hwnas_prices_load(&prices, r->prices));
    if (r->profiles)
        TRY_OUT(load_profiles(r));
    comparison = hwnas_comparison_new(&r->query, prices);
    for (int i = 0; i < r->n_profiles; i++)
        TRY_OUT(hwnas_comparison_add(comparison, r->loaded[i], r->names[i]));
    if (r->measures) {
        TRY_OUT(measure(r, prices));
        TRY_OUT(hwnas_comparison_add(comparison, r->here, NULL));
    }
    hwnas_comparison_judge(comparison);
    TRY_OUT(print(r, comparison));
    TRY_OUT(find_loser(comparison));
out:
    hwnas_comparison_free(comparison);
    hwnas_prices_free(prices);
    hwnas_profile_free(r->here);
    for (int i = 0; i < r->n_profiles; i++) {
        hwnas_profile_free(r->loaded[i]);
        free(r->names[i]);
    }
    hwnas_sweep_done(&r->sweep);
    return status;
}

/* ---- A recorded profile held against today ---- */

static hwnas_status print_baseline(const hwnas_baseline *baseline, bool as_json)
{
    hwnas_str text = {0};
    if (as_json)
        return hwnas_print_json(hwnas_baseline_json(baseline));
    hwnas_baseline_text(&text, baseline);
    return hwnas_print_text(&text);
}

static hwnas_status run_baseline(request *r)
{
    hwnas_status status = HWNAS_OK;
    hwnas_profile *recorded, *now;
    TRY(hwnas_profile_load(&recorded, r->baseline));
    now = hwnas_profile_new();
    hwnas_baseline baseline = {.before = recorded, .now = now, .tolerance = r->tolerance};
    r->sweep.options.stop = hwnas_stop_on_signals();
    const hwnas_status measured = hwnas_baseline_measure(&baseline, now, &r->sweep);
    if (baseline.n)
        TRY_OUT(print_baseline(&baseline, r->as_json));
    status = measured == HWNAS_OK ? hwnas_baseline_conclude(&baseline) : measured;
    if (measured == HWNAS_E_INTERRUPTED)
        status = hwnas_fail(measured, NULL, "interrupted; %zu of the rows %s judged", baseline.n,
                            baseline.n == 1 ? "was" : "were");
out:
    hwnas_baseline_done(&baseline);
    hwnas_profile_free(now);
    hwnas_profile_free(recorded);
    return status;
}

static hwnas_status check_baseline(const request *r)
{
    if (!r->baseline)
        return HWNAS_OK;
    if (r->profiles || r->prices || r->save || r->as_csv || r->lists.devices)
        return hwnas_fail(
            HWNAS_E_USAGE, NULL,
            "--baseline measures what its file holds: it goes with models, --tolerance, "
            "--interval, --seconds and --json only");
    if (r->tolerance >= 1)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--tolerance is a share, 0.05 for 5 %%");
    return HWNAS_OK;
}

static hwnas_status check(const request *r)
{
    TRY(check_baseline(r));
    if (r->as_json && r->as_csv)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--json and --csv exclude each other");
    if (!(r->query.utilisation > 0 && r->query.utilisation < 1))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--utilisation must be between 0 and 1"),
                          "at 1 the queue grows without end");
    if (r->sweep.options.interval <= 0 || r->sweep.options.max_seconds <= 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--interval and --seconds must be more than 0");
    if (!r->sweep.n_models && r->measures && !r->baseline)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "which model?"),
                          "name one, or give --profile FILE alone to compare all that it has");
    if (r->save && !r->measures)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--save has nothing to keep: nothing is measured");
    return HWNAS_OK;
}

hwnas_status hwnas_cmd_compare(int argc, char **argv)
{
    request r = {
        .tolerance = 0.05,
        .sweep = {.on_skipped = hwnas_sweep_print_skipped, .options = HWNAS_MEASURE_DEFAULTS},
        .lists = {.batches = "1,8", .precisions = "f32", .streams = "fill"},
        .query = {.percentile = 0.99, .target = INFINITY, .utilisation = 0.8}};
    const char *target = NULL, *load = NULL, *percentile = NULL;
    bool done;
    const hwnas_option options[] = {
        {"arch", 'a', HWNAS_OPTION_TEXT, &r.sweep.code, "CODE", "which network of a space"},
        {"device", 'd', HWNAS_OPTION_TEXT, &r.lists.devices, "LIST",
         "measured here (cpu, unless --profile is given)"},
        {"profile", 'p', HWNAS_OPTION_TEXT, &r.profiles, "LIST",
         "recorded: FILE or NAME=FILE, by 'profile --save'"},
        {"price", 0, HWNAS_OPTION_TEXT, &r.prices, "FILE", "what an hour of each costs (YAML)"},
        {"latency-target", 0, HWNAS_OPTION_TEXT, &target, "T",
         "8ms: with waiting, at the percentile"},
        {"load", 0, HWNAS_OPTION_TEXT, &load, "N", "requests: 1000/s, 500/min"},
        {"percentile", 0, HWNAS_OPTION_TEXT, &percentile, "P", "p50, p90 or p99 (p99)"},
        {"utilisation", 0, HWNAS_OPTION_NUMBER, &r.query.utilisation, "SHARE", NULL},
        {"batch", 'b', HWNAS_OPTION_TEXT, &r.lists.batches, "LIST", "batch sizes (1,8)"},
        {"threads", 't', HWNAS_OPTION_TEXT, &r.lists.threads, "LIST",
         "numbers of threads (1 and all cores)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &r.lists.precisions, "LIST", "precisions (f32)"},
        {"streams", 0, HWNAS_OPTION_TEXT, &r.lists.streams, "LIST", "copies at a time (fill)"},
        {"interval", 0, HWNAS_OPTION_NUMBER, &r.sweep.options.interval, "SHARE", NULL},
        {"seconds", 0, HWNAS_OPTION_NUMBER, &r.sweep.options.max_seconds, "S", NULL},
        {"save", 0, HWNAS_OPTION_TEXT, &r.save, "FILE", "keep what was measured here"},
        {"baseline", 0, HWNAS_OPTION_TEXT, &r.baseline, "FILE",
         "measure again what it holds; exit code 1 if a network got slower"},
        {"tolerance", 0, HWNAS_OPTION_NUMBER, &r.tolerance, "SHARE", NULL},
        {"json", 0, HWNAS_OPTION_FLAG, &r.as_json, NULL, "one JSON object"},
        {"csv", 0, HWNAS_OPTION_FLAG, &r.as_csv, NULL, NULL},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, r.sweep.models, &r.sweep.n_models, &done));
    if (done)
        return HWNAS_OK;
    r.measures = r.lists.devices || !r.profiles;
    if (target)
        TRY(hwnas_quantity_seconds(&r.query.target, "latency-target", target));
    if (load)
        TRY(hwnas_quantity_rate(&r.query.load, "load", load));
    if (percentile)
        TRY(hwnas_quantity_percentile(&r.query.percentile, "percentile", percentile));
    TRY(check(&r));
    if (r.baseline)
        return run_baseline(&r);
    if (!r.lists.devices)
        r.lists.devices = "cpu";
    return run(&r);
}
