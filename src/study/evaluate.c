#include "study/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/command.h"
#include "study/evaluator.h"
#include "trial/judge.h"
#include "trial/skip.h"

/* The lower rung of the ladder has so much of the time. */
#define SHORT_SHARE 0.125

/* The line that measures it again. */
static char *command_of(const hwnas_evaluator *e, const hwnas_candidate *c, int device,
                        double seconds)
{
    const hwnas_site *s = &e->sites[device];
    char *code = hwnas_arch_code(c->arch);
    hwnas_measure_options options = hwnas_evaluate_options(e, c, device, seconds);
    const hwnas_recipe recipe = {.model = s->phase ? s->phase->space_name : e->job->space,
                                 .arch = *code ? code : NULL,
                                 .device = s->row->spelling,
                                 .batch = batch_at(s, c->settings.batch),
                                 .mixing = mixing_at(s, c->settings.dtype),
                                 .max_error = hwnas_settings_max_error(e->job),
                                 .data = &e->data.mix,
                                 .has_labels = !isnan(e->job->max_loss),
                                 .threads = threads_at(s, c->settings.threads)};
    char *command = hwnas_recipe_command(&recipe, &options);
    free(code);
    return command;
}

/* Takes `command`. */
static json_t *detail_of(const hwnas_measurement *m, char *command)
{
    json_t *detail = json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:s, s:s?, s:s?, s:b, s:b, s:i, s:f, s:f, s:I, s:s?, s:s}",
        "samples", (json_int_t)m->n_samples, "disturbed", (json_int_t)m->n_disturbed,
        "compile_seconds", m->compile_seconds, "first_run_seconds", m->first_run_seconds,
        "run_seconds", m->run_seconds, "stop", hwnas_stop_name(m->stop), "doubt",
        hwnas_measurement_doubt(m), "cause", hwnas_measurement_cause(m), "realtime", m->is_realtime,
        "cpu_time", m->is_cpu_time, "attempts", m->n_attempts, "shared_share", m->shared_share,
        "total_seconds", m->total_seconds, "memory_bytes", (json_int_t)m->memory_bytes,
        "throttled_by", hwnas_measurement_throttle(m), "command", command);
    free(command);
    return detail;
}

/* The detail of a trial that was measured on several devices: that of each, and what they add up
 * to. */
static void add_detail(json_t *whole, const hwnas_evaluator *e, int device, json_t *detail)
{
    json_t *devices = json_object_get(whole, "devices");
    if (e->n == 1) {
        json_object_update(whole, detail);
        json_decref(detail);
        return;
    }
    if (!devices) {
        devices = json_object();
        json_object_set_new(whole, "devices", devices);
    }
    double run = json_number_value(json_object_get(whole, "run_seconds")) +
                 json_number_value(json_object_get(detail, "run_seconds"));
    json_object_set_new(whole, "run_seconds", json_real(run));
    json_object_set_new(devices, hwnas_job_row_name(&e->job->goals.devices, device).text, detail);
}

static bool is_of_device(const hwnas_value_row *v, const hwnas_evaluator *e, int device)
{
    const hwnas_metric *metric = hwnas_metric_of_value(v->metric);
    return metric && metric->source == HWNAS_FROM_DEVICE &&
           !strcmp(v->metric, hwnas_goal_of(metric, device, &e->job->goals.devices).name);
}

/* Takes over what a duplicate's run on a device gave, and what follows from it at the price of this
 * job; false: nothing. */
static bool take_over(hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_trial *duplicate,
                      int device, int batch)
{
    const size_t n_before = trial->n_values;
    for (size_t i = 0; i < duplicate->n_values; i++)
        if (hwnas_sources[duplicate->values[i].source].is_of_run &&
            is_of_device(&duplicate->values[i], e, device))
            hwnas_trial_add(trial, &duplicate->values[i]);
    const size_t n_taken = trial->n_values;
    for (size_t i = n_before; i < n_taken; i++) {
        const hwnas_value_row v = trial->values[i];
        hwnas_evaluate_add_given(trial, e, device, batch, v.source, hwnas_metric_of_value(v.metric),
                                 (hwnas_reading){v.value, v.low, v.high});
    }
    return n_taken > n_before;
}

/* Which layers of the network had which precision; where they have all the same, nothing. */
static void keep_mixes(json_t *detail, json_t *mixes, const hwnas_trial *duplicate)
{
    json_t *theirs = duplicate ? hwnas_mixes_of(duplicate) : NULL;
    json_object_update_missing(mixes, theirs);
    json_decref(theirs);
    if (json_object_size(mixes))
        json_object_set(detail, HWNAS_MIX_DETAIL, mixes);
}

static bool would_miss(const hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_candidate *c,
                       int device, const hwnas_measurement *m)
{
    hwnas_trial with = {.number = trial->number};
    for (size_t i = 0; i < trial->n_values; i++)
        hwnas_trial_add(&with, &trial->values[i]);
    hwnas_evaluate_add_measurement(&with, e, device, batch_at(&e->sites[device], c->settings.batch),
                                   m);
    const bool misses = hwnas_trial_violation(&with, &e->job->goals, false) > 0;
    free(with.values);
    return misses;
}

/* A network is never looked at again that misses a limit at a rung. So a short look that was
 * disturbed does not say it: then the network is measured as it would be at the real thing, as `c`
 * and `seconds` are then. */
static hwnas_status run(hwnas_measurement *out, hwnas_candidate *c, double *seconds,
                        const hwnas_trial *trial, hwnas_evaluator *e, int device)
{
    const int n_in_vain = e->n_in_vain;
    TRY(hwnas_evaluate_run(out, trial, e, c, device, *seconds));
    if (!c->rung || !out->is_unstable || !would_miss(trial, e, c, device, out))
        return HWNAS_OK;
    c->rung = 0;
    e->n_in_vain = n_in_vain; /* both are one measurement of the trial */
    *seconds = e->options.max_seconds;
    return hwnas_evaluate_run(out, trial, e, c, device, *seconds);
}

/* What disturbs a measurement adds to it, and not all that does is seen: a neighbour of a virtual
 * machine has the caches for minutes. A network that kept its limits at the rung before, and is so
 * much slower now that it misses one, was probably disturbed now. */
#define SLOWER 1.1

static bool is_overruled(const hwnas_trial *trial, const hwnas_evaluator *e,
                         const hwnas_candidate *c, int device, const hwnas_measurement *m)
{
    const hwnas_metric *p50 = hwnas_metric_of(HWNAS_LATENCY);
    const char *name = hwnas_goal_of(p50, device, &e->job->goals.devices).name;
    const hwnas_value_row *before = c->promoted ? hwnas_trial_value(c->promoted, name) : NULL;
    return before && before->source == HWNAS_MEASURED && c->promoted->violation == 0 &&
           m->p50 > SLOWER * hwnas_value_high(before) && would_miss(trial, e, c, device, m);
}

/* What a measurement on a device gave, and how it was made. */
static void keep_measurement(hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_candidate *c,
                             int device, const hwnas_measurement *m, double seconds, json_t *detail)
{
    const int batch = batch_at(&e->sites[device], c->settings.batch);
    json_t *told = detail_of(m, command_of(e, c, device, seconds));
    if (is_overruled(trial, e, c, device, m)) {
        take_over(trial, e, c->promoted, device, batch);
        trial->is_unstable = true;
        json_object_set_new(told, "overruled",
                            json_pack("{s:f, s:I}", "p50_seconds", m->p50, "by_trial",
                                      (json_int_t)c->promoted->number));
    } else {
        hwnas_evaluate_add_measurement(trial, e, device, batch, m);
        trial->is_unstable |= m->is_unstable;
        trial->is_stopped_early |= m->stop == HWNAS_STOP_ABOVE;
    }
    add_detail(detail, e, device, told);
}

/* *is_enough: a task was done, and no more than one is to be. */
static hwnas_status measure(bool *is_enough, hwnas_trial *trial, hwnas_evaluator *e,
                            const hwnas_candidate *c, json_t *detail)
{
    bool is_decided = c->stage == HWNAS_STAGE_END || c->is_again;
    *is_enough = false;
    for (int i = 0; i < e->n; i++) {
        hwnas_measurement m;
        if (e->sites[i].memory)
            continue;
        if (hwnas_trial_violation(trial, &e->job->goals, false) > 0)
            return HWNAS_OK;
        if (i < c->n_done)
            continue;
        if (c->duplicate &&
            take_over(trial, e, c->duplicate, i, batch_at(&e->sites[i], c->settings.batch))) {
            keep_mixes(detail, c->mixes, c->duplicate);
            json_object_set_new(detail, "same_network_as",
                                json_integer((json_int_t)c->duplicate->number));
            trial->is_unstable |= c->duplicate->is_unstable;
            trial->is_stopped_early |= c->duplicate->is_stopped_early;
            if (c->duplicate->is_stopped_early)
                json_object_set_new(detail, "stop", json_string(hwnas_stop_name(HWNAS_STOP_ABOVE)));
            if (c->duplicate_study)
                json_object_set_new(detail, "of_study", json_string(c->duplicate_study));
            continue;
        }
        if (c->is_lookup_only)
            return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "never measured on this device");
        if (e->sites[i].is_told)
            continue;
        if (!is_ours(e, i) || *is_enough) {
            *c->next_task = i;
            return HWNAS_OK;
        }
        bool is_skipped = false;
        double seconds = (c->rung ? SHORT_SHARE : 1) * e->options.max_seconds;
        if (!is_decided)
            TRY(hwnas_evaluate_skip(&is_skipped, trial, e, c, i, detail));
        if (is_skipped)
            return HWNAS_OK;
        if (c->stage == HWNAS_STAGE_BEGIN) {
            *c->is_open = true;
            hwnas_evaluate_note_begun(c->begun, trial, e, c, i);
            return c->is_twin ? HWNAS_OK : hwnas_evaluate_send(trial, e, c, i, seconds);
        }
        hwnas_candidate now = *c;
        now.begun = is_decided ? c->begun : NULL;
        is_decided = false;
        TRY(run(&m, &now, &seconds, trial, e, i));
        keep_mixes(detail, c->mixes, NULL);
        keep_measurement(trial, e, &now, i, &m, seconds, detail);
        *is_enough = c->is_one_task;
    }
    return HWNAS_OK;
}

/* ---- Judging ---- */

/* A metric that the job judges by, and that its device did not give. */
static bool is_short(const hwnas_trial *trial, const hwnas_goal *goal, bool with_interval)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
    const bool is_bounded = v && (v->source != HWNAS_MEASURED || !isnan(v->high));
    return !v || (with_interval && !is_bounded);
}

static hwnas_status require_all(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    char *words = hwnas_evaluate_shortage(e, trial);
    if (!words)
        return HWNAS_OK;
    const hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, NULL, "too few samples for %s", words),
                   "give it more time with measure: {seconds: ...} (--seconds); it had %g",
                   e->options.max_seconds);
    free(words);
    return status;
}

/* ... more than this many times what the samples themselves take: some are disturbed. */
#define ROOM 1.5

/* By the median of the network, where that is known. */
static char *shortage_words(const hwnas_evaluator *e, const hwnas_trial *trial,
                            const hwnas_goal *goal, bool has_value)
{
    const int least = hwnas_evaluate_samples_for(goal->metric);
    const char *name = goal->device < 0 ? NULL
                                        : hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY),
                                                        goal->device, &e->job->goals.devices)
                                              .name;
    const hwnas_value_row *p50 = name ? hwnas_trial_value(trial, name) : NULL;
    hwnas_str out = {0};
    hwnas_str_addf(&out, "%s%s", has_value ? "the interval of " : "", goal->name);
    if (least && p50 && p50->value > 0) {
        const double seconds = least * p50->value * ROOM;
        const double unit = pow(10, floor(log10(seconds)));
        hwnas_str_addf(&out, ": it takes %d, of %.3g ms each, so measure: {seconds: %g} or more",
                       least, 1e3 * p50->value,
                       fmax(ceil(seconds / unit) * unit, 2 * e->options.max_seconds));
    } else if (least) {
        hwnas_str_addf(&out, ": it takes %d", least);
    }
    return out.s;
}

char *hwnas_evaluate_shortage(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    const hwnas_goals *goals = &e->job->goals;
    const hwnas_goal *first = NULL;
    for (int i = 0; i < goals->n_objectives && !first; i++)
        if (is_short(trial, &goals->objectives[i], false))
            first = &goals->objectives[i];
    for (int i = 0; i < goals->n_limits && !first; i++)
        if (is_short(trial, &goals->limits[i].goal, true))
            first = &goals->limits[i].goal;
    return first ? shortage_words(e, trial, first, hwnas_trial_value(trial, first->name)) : NULL;
}

static bool is_complete(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    if (e->predictor && !hwnas_trial_value(trial, hwnas_metric_of(HWNAS_ACCURACY)->name))
        return false; /* not trained, as it misses a limit */
    if (hwnas_evaluate_awaits(e, trial))
        return false;
    for (int i = 0; i < e->n; i++) {
        hwnas_goal goal = hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), i, &e->job->goals.devices);
        if (runs_at(&e->sites[i]) && !hwnas_trial_value(trial, goal.name))
            return false;
    }
    return true;
}

/* How many samples or epochs an accuracy is of that was not worth more. */
static void add_part(json_t *detail, const hwnas_evaluator *e, const hwnas_trial *trial)
{
    int64_t n, n_all;
    const bool is_of_curve = hwnas_trial_value_of(trial, HWNAS_OF_CURVE);
    if (hwnas_trial_is_partial(trial) && hwnas_predictor_was_stopped(&n, &n_all, e->predictor))
        json_object_set_new(
            detail, is_of_curve ? "accuracy_epochs" : "accuracy_samples",
            json_pack("{s:I, s:I}", "run", (json_int_t)n, "there", (json_int_t)n_all));
}

/* Trains a network that keeps the limits, where that is ours to do now. */
static hwnas_status train(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c,
                          bool is_enough)
{
    hwnas_trainings trainings;
    const bool is_ours = hwnas_tasks_have(e->tasks, HWNAS_TASK_TRAINING) &&
                         !(is_enough && hwnas_predictor_trainings(&trainings, e->predictor));
    if (is_ours || hwnas_trial_violation(trial, &e->job->goals, false) > 0)
        return hwnas_evaluate_accuracy(trial, e, c);
    if (c->is_lookup_only)
        return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "not to be trained here");
    *c->next_task = HWNAS_TASK_TRAINING;
    return HWNAS_OK;
}

static bool is_handed_on(const hwnas_candidate *c)
{
    return c->next_task && *c->next_task < HWNAS_N_TRIAL_TASKS;
}

static void keep_detail(hwnas_trial *trial, const json_t *detail)
{
    free(trial->detail);
    trial->detail = json_object_size(detail) ? json_dumps(detail, JSON_COMPACT) : NULL;
}

hwnas_status hwnas_evaluate(hwnas_trial *trial, hwnas_evaluator *e,
                            const hwnas_candidate *candidate)
{
    hwnas_status status = HWNAS_OK;
    bool is_enough;
    hwnas_candidate with_mixes = *candidate;
    const hwnas_candidate *c = &with_mixes;
    with_mixes.mixes = hwnas_mixes_of(trial);
    /* Values and detail of one whose first tasks others did. */
    json_t *detail = trial->detail ? json_loads(trial->detail, 0, NULL) : json_object();
    /* One that was trained while its latency was an estimate keeps its accuracy, whatever the
     * measurement says. */
    const bool is_accuracy_dear =
        hwnas_evaluate_is_accuracy_dear(e) &&
        !(c->estimate && hwnas_trial_value(c->estimate, hwnas_metric_of(HWNAS_ACCURACY)->name));
    if (c->stage != HWNAS_STAGE_END && !trial->n_values)
        TRY_OUT((is_accuracy_dear ? hwnas_evaluate_costs : hwnas_evaluate_free)(trial, e, c));
    const size_t n_free = trial->n_values;
    TRY_OUT(measure(&is_enough, trial, e, c, detail));
    if (c->stage == HWNAS_STAGE_BEGIN && *c->is_open) {
        trial->n_values = n_free;
        goto out;
    }
    if (is_accuracy_dear && !is_handed_on(c))
        TRY_OUT(train(trial, e, c, is_enough));
    if (is_handed_on(c)) {
        keep_detail(trial, detail);
        goto out;
    }
    add_part(detail, e, trial);
    /* What was left unmeasured misses a limit already, which is violation enough. */
    bool is_whole = is_complete(e, trial) && !hwnas_trial_is_estimated(trial);
    if (is_whole)
        TRY_OUT(require_all(e, trial));
    trial->violation = hwnas_trial_violation(trial, &e->job->goals, is_whole);
    if (c->estimate)
        json_object_set_new(detail, "estimate",
                            json_real(hwnas_trial_value_of(c->estimate, HWNAS_ESTIMATED)->value));
    keep_detail(trial, detail);
out:
    json_decref(with_mixes.mixes);
    json_decref(detail);
    return status;
}
