#include "profile/room.h"
#include "profile/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/streams.h"
#include "measure/verify.h"
#include "profile/command.h"
#include "profile/limits.h"
#include "measure/priority.h"
#include "measure/runner.h"
#include "precision/mix.h"
#include "profile/model_load.h"

enum { CARRY_MEDIAN = 6 }; /* fewest samples with a 95 % interval */

/* What a sweep is at now. */
typedef struct cursor {
    const hwnas_sweep *sweep;
    hwnas_profile *profile;
    hwnas_runner *runner;  /* this one ... */
    hwnas_streams *copies; /* ... or these, or neither when they cannot be had: then */
    hwnas_status status;   /* says why, with */
    const char *message, *hint;
    hwnas_device_info info; /* of the device, where it works */
    hwnas_graph *graph;
    hwnas_mixing mixing; /* if set, it was chosen by hwnas_mix_choose(), of the layers of ... */
    hwnas_graph *plain;  /* ... this one; else NULL */
    int device, threads, streams, model, batch, precision; /* positions in the lists */
    size_t shape;
    int own_batch;   /* of the graph */
    int first_batch; /* of the graph at the first of the batches */
} cursor;

/* Why something failed just now, for a row; *hint: what to try, or NULL. */
static const char *keep_message(const char **hint, const cursor *c)
{
    const hwnas_error *error = hwnas_last_error();
    hwnas_arena *arena = c->profile->arena;
    *hint = *error->hint ? hwnas_arena_string(arena, error->hint, strlen(error->hint)) : NULL;
    return hwnas_arena_string(arena, error->message, strlen(error->message));
}

/* How many copies, 0 for one by its own protocol. */
static int count_streams(const cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    const int asked = s->streams[c->streams], threads = s->threads[c->threads];
    /* Elsewhere there is one at a time. */
    if (asked <= 1 && hwnas_device_is_elsewhere(s->devices[c->device]))
        return 0;
    if (asked != HWNAS_STREAMS_FILL)
        return asked;
    if (hwnas_starts_with(s->devices[c->device], "cuda"))
        return 0;
    return threads < hwnas_device_cores() ? hwnas_device_cores() / threads : 1;
}

/* "fill" comes to a number of copies that the list has already. */
static bool is_repeated(const cursor *c)
{
    const int *streams = c->sweep->streams;
    for (cursor before = {.sweep = c->sweep, .device = c->device, .threads = c->threads};
         before.streams < c->streams; before.streams++)
        if ((streams[before.streams] == HWNAS_STREAMS_FILL ||
             streams[c->streams] == HWNAS_STREAMS_FILL) &&
            count_streams(&before) == count_streams(c))
            return true;
    return false;
}

/* Measures the row's network in one runner, and how much of its time is no code to deploy. */
static hwnas_status run_with_slow_code(hwnas_profile_row *row, const cursor *c,
                                       const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_step_times times = {0};
    hwnas_measure_options o = *options;
    if (row->training || !hwnas_slow_code_applies(row->device))
        return hwnas_runner_measure(&row->m, c->runner, c->graph, options);
    o.steps_runs = HWNAS_SLOW_CODE_RUNS;
    TRY_OUT(hwnas_runner_measure_steps(&row->m, &times, c->runner, c->graph, &o));
    TRY_OUT(hwnas_slow_code_judge(&row->slow, c->profile->arena, c->runner, row->device, c->graph,
                                  &times, options));
out:
    hwnas_step_times_done(&times);
    return status;
}

/* What a step has to compute and to move is that of an inference, which a part of a training step
 * is not. */
static void forget_work(hwnas_layers *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        layers->layers[i].macs = 0;
        layers->layers[i].bytes = layers->layers[i].weight_bytes = 0;
    }
}

/* Measures the row's network in one runner, and where it is asked for its parts and what they could
 * be at best. */
static hwnas_status run_alone(hwnas_profile_row *row, const cursor *c,
                              const hwnas_measure_options *options)
{
    hwnas_status status;
    hwnas_step_times times = {0};
    hwnas_graph *form = NULL;
    hwnas_roofline roofline;
    const hwnas_device_ops *ops;
    const char *argument;
    if (!c->sweep->with_layers)
        return run_with_slow_code(row, c, options);
    TRY_OUT(hwnas_runner_measure_steps(&row->m, &times, c->runner, c->graph, options));
    TRY_OUT(hwnas_device_find(&ops, &argument, row->device));
    const bool has_roof = ops->is_deployed && !row->training;
    TRY_OUT(hwnas_exec_form(&form, c->graph, &options->exec));
    if (has_roof)
        TRY_OUT(hwnas_limits_get(&roofline, c->runner, row->device, form, row->precision, false,
                                 options));
    row->layers = hwnas_layers_new(c->profile->arena, form, row->precision, &times,
                                   has_roof ? &roofline : NULL);
    if (row->training)
        forget_work(row->layers);
    else if (hwnas_slow_code_applies(row->device))
        hwnas_slow_code_of(&row->slow, c->profile->arena, row->layers);
out:
    hwnas_graph_free(form);
    hwnas_step_times_done(&times);
    return status;
}

/* Whether the device is right; `row` says so. One that computes nothing, or is the reference
 * itself, is left out. */
static hwnas_status verify(hwnas_profile_row *row, const cursor *c,
                           const hwnas_measure_options *options)
{
    hwnas_verified v;
    if (!c->info.computes)
        row->unverified = "it computes nothing";
    else if (!strcmp(row->device, "ref"))
        row->unverified = "it is the reference itself";
    if (row->unverified)
        return HWNAS_OK;
    TRY(hwnas_runner_verify(&v, c->runner, c->graph, HWNAS_VERIFY_REF_SECONDS, options));
    row->verified_against = hwnas_arena_string(c->profile->arena, v.against, strlen(v.against));
    row->verified_error = v.error;
    row->verified_tolerance = v.tolerance;
    return hwnas_verified_judge(&v, row->device, options->exec.precision);
}

static hwnas_status run_one(hwnas_profile_row *row, const cursor *c,
                            const hwnas_measure_options *options)
{
    double runs_per_second;
    if (c->runner && c->sweep->verifies)
        TRY(verify(row, c, options));
    if (c->runner) {
        TRY(run_alone(row, c, options));
        runs_per_second = 1 / row->m.p50;
    } else {
        TRY(hwnas_streams_measure(&row->m, &runs_per_second, c->copies, c->graph, options));
        TRY(hwnas_slow_code_find(&row->slow, c->profile->arena, hwnas_streams_runner(c->copies),
                                 row->device, c->graph, options));
    }
    if (row->m.n_samples < CARRY_MEDIAN) /* of so slow a network a few runs are known */
        row->m.p50_low = row->m.p50_high = NAN;
    row->items_per_second = row->batch * runs_per_second;
    row->doubt = hwnas_measurement_doubt(&row->m);
    row->cause = hwnas_measurement_cause(&row->m);
    row->throttle = hwnas_measurement_throttle(&row->m);
    row->mode = hwnas_mode_name(row->m.mode);
    row->mode_seconds = hwnas_mode_seconds(options);
    row->stop = hwnas_stop_name(row->m.stop);
    return HWNAS_OK;
}

static const char *tell_command(const cursor *c, const hwnas_profile_row *row,
                                const hwnas_measure_options *options)
{
    const hwnas_recipe recipe = {.model = row->model,
                                 .arch = row->arch,
                                 .device = row->device,
                                 .batch = row->batch,
                                 .shape = row->shape,
                                 .threads = row->threads,
                                 .streams = count_streams(c),
                                 .mixing = c->mixing,
                                 .max_error = row->max_error,
                                 .data = &c->sweep->data,
                                 .has_labels = row->accuracy_metric != NULL,
                                 .skips = c->sweep->skips};
    char *text = hwnas_recipe_command(&recipe, options);
    const char *kept = hwnas_arena_string(c->profile->arena, text, strlen(text));
    free(text);
    return kept;
}

/* Chooses among the layers of the plain graph, while no other runner computes. The row says what
 * was found. */
static hwnas_status choose(hwnas_mix *out, hwnas_profile_row *row, const cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    const hwnas_mix_options how = {.max_error = s->max_error,
                                   .takes_bf16 = c->mixing == HWNAS_MIXED_BF16,
                                   .threads = s->threads[c->threads],
                                   .seconds = s->options.max_seconds,
                                   .stop = s->options.stop};
    if (strcmp(s->devices[c->device], "cpu") != 0 || s->options.exec.training)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "layers are chosen for inference on the device cpu alone"),
                          "--dtype f32,s8 measures all in one or the other");
    if (c->runner)
        hwnas_runner_rest(c->runner);
    return hwnas_mix_data_choose(out, row, &s->data, c->plain, &how);
}

/* One model under one setting. `mix`: gets how the cursor's graph is chosen; NULL: it is not. */
static hwnas_status measure(cursor *c, hwnas_mix *mix)
{
    const hwnas_sweep *s = c->sweep;
    hwnas_profile_row *row = hwnas_profile_add_row(c->profile);
    hwnas_measure_options options = s->options;
    options.exec.precision = c->mixing ? HWNAS_F32 : s->precisions[c->precision];
    row->model = s->models[c->model];
    row->device = s->devices[c->device];
    row->batch = c->own_batch;
    row->shape = s->n_shapes ? s->shapes[c->shape].text : NULL;
    row->threads = s->threads[c->threads];
    row->streams = count_streams(c) ? count_streams(c) : 1;
    row->precision = options.exec.precision;
    row->training = options.exec.training;
    row->arch = s->code;
    row->mixing = c->mixing;
    const hwnas_graph *plain = c->mixing ? c->plain : c->graph;
    row->digest = hwnas_graph_digest(plain);
    hwnas_graph_costs(&row->costs, plain);
    if (mix)
        row->max_error = s->max_error < 0 ? HWNAS_MIX_MAX_ERROR : s->max_error;
    const bool is_here = c->runner || c->copies;
    if (mix && is_here) {
        row->status = choose(mix, row, c);
        c->graph = mix->graph;
        options.exec.precision = mix->ways[mix->chosen].floats;
    }
    row->command = tell_command(c, row, &options);
    hwnas_sweep_tell(s, row, c->profile->n_rows, 0);
    if (is_here) {
        if (row->status == HWNAS_OK)
            row->status = run_one(row, c, &options);
        row->message = row->status == HWNAS_OK ? NULL : keep_message(&row->hint, c);
    } else {
        row->status = c->status;
        row->message = c->message;
        row->hint = c->hint;
    }
    if (row->status != HWNAS_E_INTERRUPTED)
        return HWNAS_OK;
    c->profile->n_rows--; /* it is not finished */
    return HWNAS_E_INTERRUPTED;
}

static size_t count_shapes(const hwnas_sweep *s)
{
    return s->n_shapes ? s->n_shapes : 1;
}

static bool is_file(const cursor *c)
{
    return hwnas_ends_with(c->sweep->models[c->model], ".onnx");
}

/* One that nobody asked for. */
static bool is_spare(const cursor *c)
{
    return c->sweep->has_own_batches && c->batch > 0 && is_file(c);
}

/* Others are measured when it cannot be read. A wrong name of a space is a mistake in the command.
 */
static bool may_lack(const cursor *c)
{
    return c->sweep->keeps_going && is_file(c);
}

/* With `is_first` tells what is left out. A graph that nobody asked for and cannot be had, or that
 * there was already, is NULL. */
static hwnas_status load(cursor *c, bool is_first)
{
    const hwnas_sweep *s = c->sweep;
    hwnas_str skipped = {0};
    const hwnas_model_request request = {
        .name = s->models[c->model],
        .code = s->code,
        .batch = s->has_own_batches && c->batch == 0 && is_file(c) ? 0 : s->batches[c->batch],
        .set = s->n_shapes ? &s->shapes[c->shape] : NULL};
    hwnas_status status =
        hwnas_model_load_shaped(&c->graph, &c->own_batch, &request, s->skips ? &skipped : NULL);
    if (status == HWNAS_OK && is_first)
        hwnas_onnx_tell_doubts(c->graph, request.name);
    if (status == HWNAS_OK && skipped.n && is_first && s->on_skipped)
        s->on_skipped(s->context, s->models[c->model], skipped.s);
    hwnas_str_done(&skipped);
    if (status == HWNAS_OK && c->batch == 0)
        c->first_batch = c->own_batch;
    if (status != HWNAS_OK && is_spare(c)) {
        hwnas_error_clear();
        return HWNAS_OK;
    }
    if (status == HWNAS_OK && is_spare(c) && c->own_batch == c->first_batch) {
        hwnas_graph_free(c->graph);
        c->graph = NULL;
    }
    return status;
}

/* What is left when nothing could be read. */
static hwnas_status fail_again(const hwnas_error *first)
{
    const hwnas_place place = {.file = first->file, .line = first->line, .column = first->column};
    hwnas_fail(first->status, *first->file ? &place : NULL, "%s", first->message);
    return *first->hint ? hwnas_hint(first->status, "%s", first->hint) : first->status;
}

/* That samples fit what was loaded. */
static hwnas_status check_data(const cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    return c->graph && s->mixings && s->data.n
               ? hwnas_mix_data_check(&s->data, c->graph, s->models[c->model], c->own_batch)
               : HWNAS_OK;
}

/* That it may be in memory, in the precision that takes least. */
static hwnas_status check_room(const cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    bool is_here = false, is_float = !s->mixings;
    for (int i = 0; i < s->n_devices; i++)
        is_here |= !strcmp(s->devices[i], "cpu") || !strcmp(s->devices[i], "ort");
    for (int i = 0; i < s->n_precisions; i++)
        is_float &= s->precisions[i] == HWNAS_F32 || s->precisions[i] == HWNAS_TF32;
    if (!is_here || !c->graph)
        return HWNAS_OK;
    return hwnas_room_check(c->graph, s->models[c->model], c->own_batch, is_float ? 1 : 0.25);
}

/* What was loaded is freed where it will not do. */
static hwnas_status check_loaded(cursor *c)
{
    hwnas_status status = check_data(c);
    if (status == HWNAS_OK)
        status = check_room(c);
    if (status != HWNAS_OK) {
        hwnas_graph_free(c->graph);
        c->graph = NULL;
    }
    return status;
}

/* A model that cannot be read, or told in JSON, is told before the first one is measured, or where
 * others can be, in a row of its own. */
static hwnas_status try_models(cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    hwnas_error first = {0};
    size_t n_good = 0;
    for (c->model = 0; c->model < s->n_models; c->model++) {
        TRY(hwnas_text_check("the name of a model", s->models[c->model]));
        for (c->shape = 0; c->shape < count_shapes(s); c->shape++)
            for (c->batch = 0; c->batch < s->n_batches; c->batch++) {
                const hwnas_status status = load(c, c->batch == 0 && c->shape == 0);
                if (status != HWNAS_OK && !may_lack(c))
                    return status;
                if (status == HWNAS_OK)
                    TRY(check_loaded(c));
                if (status != HWNAS_OK && first.status == HWNAS_OK)
                    first = *hwnas_last_error();
                n_good += status == HWNAS_OK;
                hwnas_graph_free(c->graph);
                c->graph = NULL;
            }
    }
    return n_good || first.status == HWNAS_OK ? HWNAS_OK : fail_again(&first);
}

/* One row for what cannot be read, however many settings there are. */
static void add_unread(const cursor *c, hwnas_status status)
{
    const hwnas_sweep *s = c->sweep;
    if (c->device || c->threads || c->streams)
        return;
    const hwnas_error *error = hwnas_last_error();
    hwnas_profile_row *row = hwnas_profile_add_row(c->profile);
    row->model = s->models[c->model];
    row->device = s->devices[c->device];
    row->batch = s->batches[c->batch];
    row->shape = s->n_shapes ? s->shapes[c->shape].text : NULL;
    row->threads = s->threads[c->threads];
    row->precision = s->precisions[0];
    row->arch = s->code;
    row->status = status;
    row->message = hwnas_arena_printf(c->profile->arena, "%s%s%s", error->message,
                                      *error->hint ? "; " : "", error->hint);
}

static hwnas_status measure_mixed(cursor *c, hwnas_mixing mixing)
{
    hwnas_mix mix = {0};
    c->plain = c->graph;
    c->mixing = mixing;
    const hwnas_status status = measure(c, &mix);
    c->mixing = HWNAS_UNMIXED;
    c->graph = c->plain;
    c->plain = NULL;
    hwnas_mix_done(&mix);
    return status;
}

/* One model in one shape, in all precisions. */
static hwnas_status run_shape(cursor *c)
{
    const hwnas_status status = load(c, false);
    if (status != HWNAS_OK && !may_lack(c))
        return status;
    if (status != HWNAS_OK)
        add_unread(c, status);
    else if (c->graph && !c->batch && !c->shape && !c->threads && !c->streams)
        hwnas_device_note_overflow(&c->info, c->graph, c->sweep->models[c->model]);
    for (c->precision = 0; c->graph && c->precision < c->sweep->n_precisions; c->precision++)
        TRY(measure(c, NULL));
    for (int i = HWNAS_UNMIXED + 1; i < HWNAS_N_MIXINGS && c->graph; i++)
        if (c->sweep->mixings & 1U << i)
            TRY(measure_mixed(c, (hwnas_mixing)i));
    hwnas_graph_free(c->graph);
    c->graph = NULL;
    return HWNAS_OK;
}

/* Everything on one device with one number of threads and streams. */
static hwnas_status run_models(cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    for (c->model = 0; c->model < s->n_models; c->model++)
        for (c->shape = 0; c->shape < count_shapes(s); c->shape++)
            for (c->batch = 0; c->batch < s->n_batches; c->batch++)
                TRY(run_shape(c));
    return HWNAS_OK;
}

/* Starts what measures. When that cannot be had, each row says so. */
static void open_runner(cursor *c)
{
    const hwnas_sweep *s = c->sweep;
    const char *device = s->devices[c->device];
    const int threads = s->threads[c->threads], streams = count_streams(c);
    hwnas_device_info *info = &c->info;
    *info = (hwnas_device_info){0};
    c->status = streams ? hwnas_streams_open(&c->copies, device, threads, streams)
                        : hwnas_runner_open(&c->runner, device, threads);
    if (c->status == HWNAS_OK)
        c->status = streams ? hwnas_streams_describe(info, c->copies)
                            : hwnas_runner_describe(info, c->runner);
    if (c->status != HWNAS_OK)
        c->message = keep_message(&c->hint, c);
    hwnas_profile_add_device(c->profile, device, c->status == HWNAS_OK ? info : NULL);
}

static void close_runner(cursor *c)
{
    hwnas_graph_free(c->graph);
    hwnas_runner_close(c->runner);
    hwnas_streams_close(c->copies);
    c->graph = NULL;
    c->runner = NULL;
    c->copies = NULL;
}

hwnas_status hwnas_sweep_run(hwnas_profile *profile, const hwnas_sweep *sweep)
{
    cursor c = {.sweep = sweep, .profile = profile};
    hwnas_status status = HWNAS_OK;
    TRY(try_models(&c));
    if (sweep->options.priority == HWNAS_PRIORITY_REALTIME)
        TRY(hwnas_priority_check());
    for (c.device = 0; c.device < sweep->n_devices; c.device++)
        for (c.threads = 0; c.threads < sweep->n_threads; c.threads++)
            for (c.streams = 0; c.streams < sweep->n_streams; c.streams++) {
                if (is_repeated(&c))
                    continue;
                open_runner(&c);
                status = run_models(&c);
                close_runner(&c);
                TRY(status);
            }
    return HWNAS_OK;
}
