/* comparing.c: hwnas/profile.h: models under settings, measured and compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/profile_report.h"
#include "api/report_handle.h"
#include "base/c_locale.h"
#include "base/file.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "measure/priority.h"
#include "precision/mix.h"
#include "profile/baseline_measure.h"
#include "profile/inquiry.h"
#include "profile/record.h"
#include "profile/training_cost.h"
#include "report/baseline_text.h"
#include "report/compare_text.h"

/* ---- Options ---- */

static const hwnas_profile_options no_models = HWNAS_PROFILE_OPTIONS_INIT;

static const char *keep(hwnas_arena *arena, const char *text)
{
    return text ? hwnas_arena_string(arena, text, strlen(text)) : NULL;
}

/* A list of the options as one of the sweep: its length, 1 where there is none. */
static hwnas_status take_length(int *out, const char *what, size_t n, size_t most)
{
    if (n > most)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "more than %zu %s", most, what);
    *out = n ? (int)n : 1;
    return HWNAS_OK;
}

/* None: `fallback`. `special` is a number that means something else. */
static hwnas_status take_numbers(int out[HWNAS_SWEEP_LIST], int *n_out, const char *what,
                                 const int *numbers, size_t n, int fallback, int most, int special)
{
    TRY(take_length(n_out, what, n, HWNAS_SWEEP_LIST));
    out[0] = fallback;
    for (size_t i = 0; i < n; i++) {
        if ((numbers[i] < 1 || numbers[i] > most) && numbers[i] != special)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "%s are 1 to %d, not %d", what, most,
                              numbers[i]);
        out[i] = numbers[i];
    }
    return HWNAS_OK;
}

static hwnas_status take_lists(hwnas_sweep *out, hwnas_arena *arena, const hwnas_profile_options *o)
{
    const hwnas_device_ops *ops;
    const char *argument;
    if (o->n_models > HWNAS_SWEEP_MODELS)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "more than %d models", HWNAS_SWEEP_MODELS);
    out->n_models = (int)o->n_models;
    for (size_t i = 0; i < o->n_models; i++)
        out->models[i] = keep(arena, o->models[i]);
    TRY(take_length(&out->n_devices, "devices", o->n_devices, HWNAS_SWEEP_LIST));
    for (int i = 0; i < out->n_devices; i++) {
        out->devices[i] = o->n_devices ? keep(arena, o->devices[i]) : "cpu";
        TRY(hwnas_device_find(&ops, &argument, out->devices[i]));
    }
    TRY(take_length(&out->n_precisions, "precisions", o->n_precisions, HWNAS_SWEEP_LIST));
    if (o->mixings && !o->n_precisions)
        out->n_precisions = 0;
    for (size_t i = 0; i < o->n_precisions; i++) {
        if ((unsigned)o->precisions[i] >= HWNAS_N_PRECISIONS)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "there is no precision number %d",
                              (int)o->precisions[i]);
        out->precisions[i] = o->precisions[i];
    }
    TRY(take_numbers(out->batches, &out->n_batches, "batches", o->batches, o->n_batches, 1, 1 << 20,
                     1));
    TRY(take_numbers(out->threads, &out->n_threads, "threads", o->threads, o->n_threads, 1, 1024,
                     HWNAS_THREADS_ALL));
    for (int i = 0; i < out->n_threads; i++)
        if (out->threads[i] == HWNAS_THREADS_ALL)
            out->threads[i] = hwnas_device_cores();
    return take_numbers(out->streams, &out->n_streams, "streams", o->streams, o->n_streams, 0, 1024,
                        HWNAS_STREAMS_FILL);
}

/* Samples by which layers are chosen. */
static hwnas_status take_data(hwnas_sweep *out, const hwnas_profile_options *o)
{
    out->data = (hwnas_mix_data){.n = o->n_data,
                                 .files = o->data,
                                 .calibrate = o->calibrate,
                                 .max_loss = o->max_loss < 0 ? HWNAS_MIX_MAX_LOSS : o->max_loss,
                                 .needs_labels = o->max_loss >= 0};
    if (!o->n_data && (o->max_loss >= 0 || o->calibrate))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "%s is of samples, and there are none",
                                     o->calibrate ? "calibrate" : "max_loss"),
                          "--data FILE has the samples: .npz, .npy or IDX");
    if (!o->n_data)
        return HWNAS_OK;
    if (!o->mixings)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL,
                       "samples choose the precision of layers, and nothing mixed is measured"),
            "--dtype f32,mixed measures a choice beside f32");
    if (isnan(o->max_loss) || o->calibrate < 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "max_loss or calibrate is out of range");
    for (size_t i = 0; i < o->n_data; i++)
        TRY(hwnas_file_check_output(o->save, o->data[i].path));
    TRY(TAKE_OPTIONS(&out->data.options, o->data_options));
    return hwnas_file_check_output(o->save, out->data.options.labels);
}

/* The options as a sweep, whose texts are in the arena. */
static hwnas_status take_sweep(hwnas_sweep *out, hwnas_arena *arena, const hwnas_profile_options *o)
{
    *out = (hwnas_sweep){.code = keep(arena, o->code),
                         .with_layers = o->with_layers,
                         .verifies = o->verifies,
                         .skips = o->skips,
                         .mixings = o->mixings,
                         .max_error = o->max_error,
                         .has_own_batches = !o->n_batches,
                         .progress = o->progress,
                         .progress_context = o->context,
                         .options = HWNAS_MEASURE_DEFAULTS};
    hwnas_measure_options *m = &out->options;
    m->stop = o->cancel;
    m->energy = true;
    m->fewest = 1;
    if (o->interval != 0)
        m->interval = o->interval;
    if (o->seconds != 0)
        m->max_seconds = o->seconds;
    if (o->min_runs)
        m->min_samples = o->min_runs;
    if (!(m->interval > 0) || !(m->max_seconds > 0) || m->min_samples < 1)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "interval, seconds and runs must be more than 0");
    TRY(hwnas_api_check_interval(m->interval));
    if (o->mode)
        TRY(hwnas_mode_parse(m, o->mode));
    if (o->priority)
        TRY(hwnas_priority_find(&m->priority, o->priority));
    if (o->n_streams && m->mode != HWNAS_HOT)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "streams are measured in the mode hot only");
    if (o->with_layers && (o->n_streams || m->mode != HWNAS_HOT))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "layers are measured in the mode hot, without streams");
    if (o->verifies && o->n_streams)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "a network is verified in one copy, without streams");
    if (o->training && (o->n_streams || m->mode != HWNAS_HOT || o->verifies))
        return hwnas_fail(
            HWNAS_E_USAGE, NULL,
            "training steps are measured in the mode hot, without streams and without "
            "verifying");
    m->exec.training = o->training;
    if (o->name)
        TRY(hwnas_text_check("the name of the machine", o->name));
    if (o->shape)
        TRY(hwnas_shapes_parse(out->shapes, &out->n_shapes, arena, o->shape));
    TRY(take_data(out, o));
    return take_lists(out, arena, o);
}

/* What a whole training is, where that is asked for. */
static hwnas_status take_plan(hwnas_training_plan *out, const hwnas_profile_options *o,
                              const hwnas_sweep *sweep)
{
    const bool is_asked = o->samples != 0 || o->epochs != 0 || o->prices;
    *out = (hwnas_training_plan){.samples = o->samples, .epochs = o->epochs != 0 ? o->epochs : 1};
    if (is_asked && !o->training)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "samples, epochs and prices of a training, and none is measured");
    if (is_asked && o->samples == 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "%s of a training of how many samples is not said",
                                     o->epochs != 0 ? "epochs" : "the cost"),
                          "give the number of samples of the training set, too");
    return hwnas_training_plan_check(out, sweep->batches,
                                     sweep->has_own_batches ? 0 : sweep->n_batches);
}

/* Of all devices that are to be measured on. */
static hwnas_status take_prices(hwnas_prices **out, const char *path, const hwnas_sweep *sweep)
{
    hwnas_status status;
    const hwnas_price *price;
    hwnas_prices *prices;
    TRY(hwnas_prices_load(&prices, path));
    for (int i = 0; i < sweep->n_devices; i++)
        TRY_OUT(hwnas_prices_find(&price, prices, sweep->devices[i]));
    *out = prices;
    return HWNAS_OK;
out:
    hwnas_prices_free(prices);
    return status;
}

/* For a sweep's `on_skipped`: a text of notes, one behind the other. */
static void note_skipped(void *context, const char *model, const char *list)
{
    hwnas_str_addf(context, "%s is not measured whole; left out, with what depends on it:\n%s",
                   model, list);
}

/* Gives the notes to a report, if there is one. */
static void hand_over(hwnas_report *report, hwnas_str *notes)
{
    while (notes->n && notes->s[notes->n - 1] == '\n')
        notes->s[--notes->n] = '\0';
    if (report && notes->n)
        hwnas_report_add_left_out(report, notes->s);
    hwnas_str_done(notes);
}

/* ---- Profiles ---- */

/* What the sweep came to, with the rows that there are. */
static hwnas_status conclude_profile(hwnas_profile *profile, hwnas_status swept, const char *save,
                                     const hwnas_training_plan *plan, const hwnas_prices *prices)
{
    hwnas_training_costs_fill(profile, plan, prices);
    if (save && profile->n_rows)
        TRY(hwnas_profile_save(profile, save));
    if (swept == HWNAS_E_INTERRUPTED)
        return hwnas_fail(swept, NULL, "interrupted; %zu row%s finished", profile->n_rows,
                          profile->n_rows == 1 ? " was" : "s were");
    return swept == HWNAS_OK ? hwnas_profile_check(profile) : swept;
}

hwnas_status hwnas_models_profile(hwnas_report **out, const hwnas_profile_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_profile_options options;
    hwnas_sweep sweep;
    hwnas_report *report = NULL;
    hwnas_str notes = {0};
    hwnas_training_plan plan;
    hwnas_prices *prices = NULL;
    TRY(TAKE_OPTIONS(&options, given));
    hwnas_api_use_runner();
    hwnas_profile *profile = hwnas_profile_new();
    TRY_OUT(take_sweep(&sweep, profile->arena, &options));
    if (!sweep.n_models) {
        status = hwnas_fail(HWNAS_E_USAGE, NULL, "which model?");
        goto out;
    }
    TRY_OUT(take_plan(&plan, &options, &sweep));
    if (options.prices)
        TRY_OUT(take_prices(&prices, options.prices, &sweep));
    profile->name = keep(profile->arena, options.name);
    if (options.save)
        TRY_OUT(hwnas_file_try(options.save));
    sweep.keeps_going = true;
    sweep.on_skipped = note_skipped;
    sweep.context = &notes;
    hwnas_api_note_sweep(&sweep);
    status =
        conclude_profile(profile, hwnas_sweep_run(profile, &sweep), options.save, &plan, prices);
    if (profile->n_rows) {
        report = hwnas_report_of_profile(profile, options.with_layers);
        hwnas_report_end(report, status);
        profile = NULL;
        status = HWNAS_OK;
        *out = report;
    }
out:
    hand_over(report, &notes);
    hwnas_prices_free(prices);
    hwnas_profile_free(profile);
    return status;
}

/* ---- Comparisons ---- */

/* What the comparison refers to, too. */
typedef struct found_comparison {
    hwnas_inquiry inquiry;
    hwnas_str notes;
} found_comparison;

static const hwnas_comparison *comparison_of(const void *found)
{
    return ((const found_comparison *)found)->inquiry.comparison;
}

static void comparison_text(hwnas_str *out, const void *found)
{
    hwnas_comparison_text(out, comparison_of(found));
}

static void comparison_csv(hwnas_str *out, const void *found)
{
    hwnas_comparison_csv(out, comparison_of(found));
}

static void comparison_markdown(hwnas_str *out, const void *found)
{
    hwnas_comparison_markdown(out, comparison_of(found));
}

static json_t *comparison_json(const void *found)
{
    return hwnas_comparison_json(comparison_of(found));
}

static void comparison_free(void *found)
{
    found_comparison *f = found;
    hwnas_inquiry_done(&f->inquiry);
    hwnas_str_done(&f->notes);
    free(f);
}

static double or_default(double given, double fallback)
{
    return given != 0 ? given : fallback;
}

/* How it is measured here where nothing else is said: each core alone and all together, filled. */
static void set_compare_defaults(hwnas_profile_options *models, int threads[2])
{
    static const int fill[] = {HWNAS_STREAMS_FILL}, batches[] = {1, 8}, steps[] = {32};
    threads[0] = 1;
    threads[1] = hwnas_device_cores();
    if (!models->n_threads) {
        models->threads = threads;
        models->n_threads = threads[1] > 1 ? 2 : 1;
    }
    if (!models->n_batches) {
        models->batches = models->training ? steps : batches;
        models->n_batches = models->training ? 1 : 2;
    }
    if (!models->n_streams && !models->training) {
        models->streams = fill;
        models->n_streams = 1;
    }
}

static hwnas_status take_inquiry(hwnas_inquiry *out, const hwnas_compare_options *o)
{
    int threads[2];
    hwnas_profile_options models;
    TRY(TAKE_OPTIONS(&models, o->models ? o->models : &no_models));
    out->measures = o->measures;
    out->query = (hwnas_query){.percentile = or_default(o->percentile, 0.99),
                               .target = or_default(o->target, INFINITY),
                               .load = o->load,
                               .utilisation = or_default(o->utilisation, 0.8)};
    if (models.training && (o->percentile != 0 || o->target != 0 || o->load != 0))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "a training has no requests: it takes no target, load or percentile");
    if (models.prices || (o->base && !models.training))
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          models.prices ? "prices are those of the comparison"
                                        : "a base is of training steps");
    out->query.training = models.training;
    out->query.base = o->base;
    out->prices = o->prices;
    out->n_recorded = o->n_recorded;
    out->recorded = o->recorded;
    out->save = models.save;
    if (!(out->query.utilisation > 0 && out->query.utilisation < 1))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "utilisation must be between 0 and 1"),
                          "at 1 the queue grows without end");
    if (o->measures ? !models.n_models : !o->n_recorded)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "which model?"),
            "name one, or give recorded profiles alone to compare all that they have");
    if (out->save && !o->measures)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "there is nothing to save: nothing is measured");
    if (models.n_data && !o->measures)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "samples choose the precision of layers, and nothing is "
                                     "measured here"),
                          "--device cpu measures here, beside the recorded profiles");
    const bool has_own_batches = !models.n_batches;
    set_compare_defaults(&models, threads);
    TRY(take_sweep(&out->sweep, out->here->arena, &models));
    out->sweep.has_own_batches = has_own_batches;
    TRY(take_plan(&out->query.plan, &models, &out->sweep));
    if (out->sweep.n_shapes > 1)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a comparison is of one shape: '%s' is several",
                          models.shape);
    return HWNAS_OK;
}

hwnas_status hwnas_compare(hwnas_report **out, const hwnas_compare_options *given)
{
    static const hwnas_report_kind kind = {.text = comparison_text,
                                           .json = comparison_json,
                                           .csv = comparison_csv,
                                           .markdown = comparison_markdown,
                                           .free = comparison_free};
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_compare_options options;
    TRY(TAKE_OPTIONS(&options, given));
    hwnas_api_use_runner();
    found_comparison *found = hwnas_alloc(sizeof *found);
    hwnas_inquiry *inquiry = &found->inquiry;
    inquiry->here = hwnas_profile_new();
    TRY_OUT(take_inquiry(inquiry, &options));
    inquiry->sweep.on_skipped = note_skipped;
    inquiry->sweep.context = &found->notes;
    TRY_OUT(hwnas_inquiry_run(inquiry));
    hwnas_report *report = hwnas_report_new(&kind, found);
    hwnas_report_end(report, hwnas_comparison_conclude(inquiry->comparison));
    hand_over(report, &found->notes);
    *out = report;
    return HWNAS_OK;
out:
    comparison_free(found);
    return status;
}

/* ---- A recorded profile held against today ---- */

typedef struct found_baseline {
    hwnas_baseline baseline;
    hwnas_profile *recorded, *now;
    hwnas_str notes;
} found_baseline;

static void baseline_text(hwnas_str *out, const void *found)
{
    hwnas_baseline_text(out, &((const found_baseline *)found)->baseline);
}

static json_t *baseline_json(const void *found)
{
    return hwnas_baseline_json(&((const found_baseline *)found)->baseline);
}

static void baseline_free(void *found)
{
    found_baseline *f = found;
    hwnas_baseline_done(&f->baseline);
    hwnas_profile_free(f->now);
    hwnas_profile_free(f->recorded);
    hwnas_str_done(&f->notes);
    free(f);
}

static hwnas_status conclude_baseline(const hwnas_baseline *baseline, hwnas_status measured)
{
    if (measured == HWNAS_E_INTERRUPTED)
        return hwnas_fail(measured, NULL, "interrupted; %zu of the rows %s judged", baseline->n,
                          baseline->n == 1 ? "was" : "were");
    return measured == HWNAS_OK ? hwnas_baseline_conclude(baseline) : measured;
}

hwnas_status hwnas_compare_baseline(hwnas_report **out, const hwnas_baseline_options *given)
{
    static const hwnas_report_kind kind = {
        .text = baseline_text, .json = baseline_json, .free = baseline_free};
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_baseline_options options;
    hwnas_profile_options models;
    hwnas_sweep asked;
    TRY(TAKE_OPTIONS(&options, given));
    TRY(TAKE_OPTIONS(&models, options.models ? options.models : &no_models));
    if (!options.recorded || options.tolerance < 0 || options.tolerance >= 1)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "a baseline needs a recorded profile, and a tolerance that is a share, "
                          "0.05 for 5 %%");
    hwnas_api_use_runner();
    found_baseline *found = hwnas_alloc(sizeof *found);
    found->now = hwnas_profile_new();
    TRY_OUT(take_sweep(&asked, found->now->arena, &models));
    TRY_OUT(hwnas_profile_load(&found->recorded, options.recorded));
    found->baseline = (hwnas_baseline){.before = found->recorded,
                                       .now = found->now,
                                       .tolerance = or_default(options.tolerance, 0.05)};
    asked.on_skipped = note_skipped;
    asked.context = &found->notes;
    status = conclude_baseline(&found->baseline,
                               hwnas_baseline_measure(&found->baseline, found->now, &asked));
    if (found->baseline.n) {
        *out = hwnas_report_new(&kind, found);
        hwnas_report_end(*out, status);
        hand_over(*out, &found->notes);
        return HWNAS_OK;
    }
out:
    baseline_free(found);
    return status;
}
