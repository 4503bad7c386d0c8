/* evaluator.c: opens what a job is evaluated with, its devices and its predictor, and sees that
 * they give what is asked of them. */
#include "study/evaluator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/stats.h"
#include "measure/priority.h"
#include "measure/runner.h"
#include "predict/active.h"

/* A median of energy stands on six blocks of samples, of ten at least (measure/protocol.c). */
enum { SAMPLES_OF_ENERGY = 60 };

void hwnas_evaluator_put_away(hwnas_evaluator *e)
{
    if (e->runner)
        hwnas_boards_make_way(&e->sites[e->runner_site].boards);
    e->runner = NULL;
}

static const char *spelling_at(const hwnas_site *s)
{
    return s->is_thorough ? s->thorough : s->row->spelling;
}

hwnas_status hwnas_evaluator_use_runner(hwnas_evaluator *e, int device, int threads)
{
    const int host = e->sites[device].host;
    hwnas_boards *boards = boards_at(e, device);
    if (e->runner_site != host)
        hwnas_evaluator_put_away(e);
    e->runner = NULL;
    if (boards->n)
        hwnas_boards_set_threads(boards, threads);
    else
        TRY(hwnas_boards_open(boards, spelling_at(&e->sites[device]), threads));
    e->runner_site = host;
    e->runner = boards->runners[0];
    return HWNAS_OK;
}

void hwnas_evaluator_renew_runner(hwnas_evaluator *e)
{
    e->runner = NULL;
    for (int i = 0; i < HWNAS_MAX_DEVICES; i++)
        hwnas_boards_rest(&e->sites[i].boards);
}

/* Whether this machine has something else to do between two networks: a training, or networks on
 * other devices, for which a runner here makes room. */
static bool is_busy_between(const hwnas_evaluator *e, int device)
{
    hwnas_trainings trainings;
    bool has_others = false;
    for (int i = 0; i < e->n; i++)
        has_others |= is_ours(e, i) && e->sites[i].host != e->sites[device].host;
    return has_others || hwnas_predictor_trainings(&trainings, e->predictor);
}

/* The same in each session, whether the boards are open just now or not. A device here that is sent
 * the next network would begin with it as soon as it is free. */
int hwnas_evaluator_room(const hwnas_evaluator *e)
{
    int first = 0;
    while (first < e->n && !is_ours(e, first))
        first++;
    if (first == e->n)
        return 1;
    const bool is_far = hwnas_device_is_elsewhere(spelling_at(&e->sites[first]));
    return !is_far && is_busy_between(e, first) ? 1 : e->sites[first].room;
}

void hwnas_evaluator_forget_ahead(hwnas_evaluator *e)
{
    for (int i = 0; i < e->n; i++)
        hwnas_boards_forget(&e->sites[i].boards);
}

static void tell_of_exact(const hwnas_evaluator *e, const hwnas_site *s)
{
    bool has_f32 = false, has_tf32 = false;
    for (int i = 0; i < e->job->dtype.n; i++) {
        has_f32 |= precision_at(s, e->job->dtype.values[i]) == HWNAS_F32;
        has_tf32 |= precision_at(s, e->job->dtype.values[i]) == HWNAS_TF32;
    }
    if (has_f32 && !has_tf32 && s->info.computes && hwnas_device_exact_is_slow(&s->info))
        hwnas_log(HWNAS_LOG_NOTE, "%s: " HWNAS_EXACT_IS_SLOW, s->row->spelling, "dtype:");
}

/* More threads than cores of this machine take turns on them, which is no latency of anything. */
static void tell_of_threads(const hwnas_evaluator *e, const hwnas_site *s)
{
    const hwnas_setting_values *given = &e->job->threads;
    const hwnas_place *place = s->row->threads ? &s->row->place : &given->place;
    const int n_cores = hwnas_device_cores();
    int most = s->row->threads;
    for (int i = 0; i < given->n && !s->row->threads; i++)
        most = given->values[i] > most ? given->values[i] : most;
    if (most <= n_cores || strcmp(s->row->spelling, "cpu") != 0)
        return;
    char at[64] = "";
    if (place->line)
        snprintf(at, sizeof at, ":%d:%d", place->line, place->column);
    hwnas_log(HWNAS_LOG_NOTE,
              "%s%s%s%d threads on %d core%s take turns: what is measured is their scheduling",
              place->file ? place->file : "", at, place->file ? ": " : "", most, n_cores,
              n_cores == 1 ? "" : "s");
}

/* A device that remembers, or a runner, which is started to see whether the device works. */
static hwnas_status open_site(hwnas_evaluator *e, int device, const hwnas_space *space)
{
    hwnas_site *s = &e->sites[device];
    const hwnas_device_ops *ops;
    const char *argument;
    int threads = threads_at(s, e->job->threads.values[0]);
    s->phase = hwnas_phases_find(&e->phases, s->row->phase);
    while (strcmp(e->sites[s->host].row->name, s->row->name) != 0)
        s->host++;
    TRY(hwnas_device_find(&ops, &argument, s->row->spelling));
    s->is_told = !ops->open;
    s->thorough = hwnas_device_thorough(s->row->spelling);
    if (ops->lookup && s->phase)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                     "the device '%s' has one number for a network, and none for "
                                     "its phase '%s'",
                                     s->row->spelling, s->phase->name),
                          "published numbers are without phases");
    if (ops->lookup) {
        hwnas_device_options options = {.threads = threads};
        TRY(hwnas_device_open(&s->memory, s->row->spelling, &options));
        return ops->recall(&s->recalled, &s->n_recalled, s->memory, space);
    }
    if (!is_ours(e, device))
        return HWNAS_OK;
    TRY(hwnas_evaluator_use_runner(e, device, threads));
    TRY(hwnas_boards_describe(&s->info, boards_at(e, device)));
    tell_of_exact(e, s);
    tell_of_threads(e, s);
    s->can_race = hwnas_runner_can_race(e->runner);
    /* Where each network has a runner of its own, or the next may need one of other threads,
     * nothing can be sent ahead; nor where phases share a runner, which take turns. */
    const bool is_lasting = !s->phase && !e->job->memory_limit &&
                            (s->row->threads || !hwnas_setting_is_open(&e->job->threads));
    s->room = is_lasting ? hwnas_boards_room(boards_at(e, device)) : 1;
    return HWNAS_OK;
}

/* That a device can give what is asked of it. */
static hwnas_status check_goal(const hwnas_evaluator *e, const hwnas_goal *goal)
{
    const hwnas_metric *metric = goal->metric;
    if (goal->device < 0)
        return HWNAS_OK;
    const hwnas_site *s = &e->sites[goal->device];
    const char *recalled = s->memory ? s->memory->ops->lookup_metric(s->memory) : NULL;
    if (recalled && !hwnas_metric_gives(hwnas_metric_of_value(recalled), metric))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                     "the device '%s' does not give %s", s->row->spelling,
                                     metric->name),
                          "choose another device or column, or another objective");
    if (metric->per == HWNAS_PRICE_OF_MILLION && isnan(s->row->price))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                     "%s needs the price of '%s' an hour", metric->name,
                                     s->row->name),
                          "add price: 0.17, or {name: ..., device: ..., price: 0.17}");
    if (metric->per == HWNAS_PRICE_OF_MILLION && s->row->price == 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                     "at the price 0 of '%s' %s is 0, whatever the network",
                                     s->row->name, metric->name),
                          "ask for the %s of a device that costs something, or for latency.p50",
                          metric->name);
    if (metric->of == HWNAS_ENERGY && is_ours(e, goal->device) && !s->info.has_energy)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                       "the device '%s' does not give energy: no counter that may be read",
                       s->row->spelling),
            "a GPU tells it through NVML; of a processor Linux has it in "
            "/sys/class/powercap/intel-rapl:*/energy_uj, on most systems for root");
    return HWNAS_OK;
}

/* The fewest samples that bound a quantile on both sides. */
static int samples_to_bound(double q)
{
    double low, high, values[1024];
    for (int n = 0; n < 1024; n++)
        values[n] = n;
    for (int n = 6; n < 1024; n++)
        if (hwnas_quantile_interval(values, (size_t)n, q, &low, &high))
            return n;
    return 1024;
}

int hwnas_evaluate_samples_for(const hwnas_metric *metric)
{
    return metric->of == HWNAS_ENERGY ? SAMPLES_OF_ENERGY
           : metric->quantile > 0     ? samples_to_bound(metric->quantile)
                                      : 0;
}

/* A setting is a choice only for a device that runs with it. */
static hwnas_status check_setting(const hwnas_evaluator *e, const hwnas_setting_kind *setting)
{
    const hwnas_setting_values *given = hwnas_setting_of_job(setting, e->job);
    bool is_used = !hwnas_setting_is_open(given);
    for (int i = 0; i < e->n; i++)
        is_used |= !e->sites[i].memory && !hwnas_setting_of_device(setting, e->sites[i].row);
    if (is_used)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &given->place,
                                 "%s is a choice, but no device of the job runs with it",
                                 setting->name),
                      "published numbers have one %s; leave it out", setting->name);
}

/* That every device that runs computes in all that is asked of it. */
static hwnas_status check_precisions(const hwnas_evaluator *e)
{
    const hwnas_setting_values *given = &e->job->dtype;
    for (int i = 0; i < e->n; i++) {
        const hwnas_site *s = &e->sites[i];
        const hwnas_device_ops *ops;
        const char *argument;
        if (!runs_at(s))
            continue;
        TRY(hwnas_device_find(&ops, &argument, s->row->spelling));
        for (int k = 0; k < given->n; k++)
            if (!(ops->precisions & (1U << precision_at(s, given->values[k]))))
                return hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                  "the device '%s' does not compute in %s", s->row->spelling,
                                  hwnas_precision_name(precision_at(s, given->values[k])));
    }
    return HWNAS_OK;
}

static hwnas_status check_goals(hwnas_evaluator *e, const hwnas_space *space)
{
    for (int i = 0; i < HWNAS_N_SETTINGS; i++)
        TRY(check_setting(e, &hwnas_setting_table[i]));
    TRY(check_precisions(e));
    TRY(hwnas_evaluator_check_mixed(e, space));
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(goals, &e->job->goals);
    for (int i = 0; i < n; i++) {
        TRY(check_goal(e, goals[i]));
        const hwnas_metric *metric = goals[i]->metric;
        const int least = hwnas_evaluate_samples_for(metric);
        if (least > e->options.min_samples)
            e->options.min_samples = least;
        e->options.energy |= metric->of == HWNAS_ENERGY;
    }
    hwnas_evaluator_tell_of_limits(e);
    return HWNAS_OK;
}

/* An accuracy is to be large, so by a column of errors the worst network would win. */
static hwnas_status check_target(const hwnas_evaluator *e)
{
    const char *target = e->predictor ? hwnas_predictor_target(e->predictor) : NULL;
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(goals, &e->job->goals);
    bool is_judged = false;
    for (int i = 0; i < n; i++)
        is_judged |= goals[i]->metric->source == HWNAS_FROM_PREDICTOR;
    if (!target || !is_judged || !hwnas_column_is_minimised(target))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &e->job->predictor_place,
                                 "the accuracy is to be large, and '%.60s' is better the smaller "
                                 "it is",
                                 target),
                      "negate the values, in a column such as 'negative_%.60s'", target);
}

static hwnas_status open_predictor(hwnas_evaluator *e, const hwnas_space *space,
                                   const volatile sig_atomic_t *stop,
                                   const hwnas_training_watch *watch)
{
    const hwnas_job *job = e->job;
    if (!job->predictor)
        return HWNAS_OK;
    hwnas_status status = hwnas_predictor_load(&e->predictor, job->predictor, space);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &job->predictor_place);
    hwnas_predictor_stop_on(e->predictor, stop);
    if (watch)
        hwnas_predictor_watch(e->predictor, watch);
    return HWNAS_OK;
}

hwnas_status hwnas_evaluator_train_first(hwnas_evaluator *e)
{
    const hwnas_job *job = e->job;
    if (!e->predictor)
        return HWNAS_OK;
    hwnas_trainings trainings;
    const bool is_idle = !job->trains && hwnas_predictor_trainings(&trainings, e->predictor);
    if (!job->train_budget && !is_idle)
        return HWNAS_OK;
    const hwnas_train_options options = {.budget = is_idle ? 0 : (size_t)job->train_budget,
                                         .n_networks = (uint64_t)job->max_trials,
                                         .seed = job->seed,
                                         .violation = hwnas_evaluate_free_violation,
                                         .context = e};
    /* An idle runner's threads would spin beside the program. */
    hwnas_evaluator_put_away(e);
    hwnas_status status = hwnas_predictor_train(&e->predictor, &options);
    if (status == HWNAS_OK || !is_idle)
        return status == HWNAS_OK ? status : hwnas_fail_at(status, &job->train_budget_place);
    /* Too few results yet: nothing is known of the accuracy. */
    hwnas_error_clear();
    hwnas_predictor_free(e->predictor);
    e->predictor = NULL;
    return HWNAS_OK;
}

hwnas_status hwnas_evaluator_open(hwnas_evaluator **out, const hwnas_job *job,
                                  const hwnas_space *space, hwnas_tasks tasks,
                                  const volatile sig_atomic_t *stop,
                                  const hwnas_training_watch *watch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_evaluator *e = hwnas_alloc(sizeof *e);
    e->job = job;
    e->may_train = true;
    e->tasks = tasks;
    e->options = (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS;
    e->options.interval = job->interval;
    e->options.max_seconds = job->max_seconds;
    e->options.priority = job->priority;
    e->options.timeout = job->timeout;
    e->options.memory_limit = (size_t)job->memory_limit;
    e->options.stop = stop;
    hwnas_metric_ask_for_tails(&e->options);
    TRY_OUT(hwnas_phases_open(&e->phases, job, space));
    TRY_OUT(hwnas_job_data_read(&e->data, job));
    TRY_OUT(open_predictor(e, space, stop, watch));
    if (tasks)
        TRY_OUT(check_target(e));
    if (e->predictor && hwnas_tasks_have(tasks, HWNAS_TASK_TRAINING))
        TRY_OUT(hwnas_predictor_check(e->predictor));
    for (; e->n < job->goals.devices.n; e->n++) {
        e->sites[e->n].row = &job->goals.devices.rows[e->n];
        status = open_site(e, e->n, space);
        if (status != HWNAS_OK) {
            hwnas_fail_at(status, &job->goals.devices.rows[e->n].place);
            goto out;
        }
    }
    if (tasks)
        TRY_OUT(check_goals(e, space));
    if (job->priority == HWNAS_PRIORITY_REALTIME && hwnas_evaluator_measures(e))
        TRY_OUT(hwnas_priority_check());
    if (job->estimate && hwnas_evaluator_measures(e))
        e->latencies = hwnas_latencies_open(true);
    *out = e;
    e = NULL;
out:
    hwnas_evaluator_close(e);
    return status;
}

void hwnas_evaluator_watch_runs(hwnas_evaluator *e, void (*tell)(void *context), void *context)
{
    e->tell_run = tell;
    e->run_context = context;
}

void hwnas_evaluator_close(hwnas_evaluator *e)
{
    if (!e)
        return;
    hwnas_latencies_close(e->latencies);
    hwnas_predictor_free(e->predictor);
    hwnas_phases_close(&e->phases);
    hwnas_job_data_done(&e->data);
    for (int i = 0; i < HWNAS_MAX_DEVICES; i++) {
        hwnas_device_close(e->sites[i].memory);
        free(e->sites[i].thorough);
    }
    for (int i = 0; i < HWNAS_MAX_DEVICES; i++)
        hwnas_boards_close(&e->sites[i].boards);
    free(e);
}

const hwnas_device_info *hwnas_evaluator_device(const hwnas_evaluator *e, int device)
{
    return is_ours(e, device) ? &e->sites[device].info : NULL;
}

const char *hwnas_evaluator_thorough(const hwnas_evaluator *e, int device)
{
    return e->sites[device].thorough;
}

hwnas_status hwnas_evaluator_set_thorough(hwnas_evaluator *e, int device, bool is_thorough)
{
    hwnas_site *s = &e->sites[device];
    if (!s->thorough || s->is_thorough == is_thorough)
        return HWNAS_OK;
    hwnas_evaluator_put_away(e);
    hwnas_boards_close(boards_at(e, device)); /* those of its other phases, too */
    s->is_thorough = is_thorough;
    /* What is learnt of latencies is kept by what a device says of itself. */
    TRY(hwnas_evaluator_use_runner(e, device, threads_at(s, e->job->threads.values[0])));
    return hwnas_boards_describe(&s->info, boards_at(e, device));
}

bool hwnas_evaluator_measures(const hwnas_evaluator *e)
{
    for (int i = 0; i < e->n; i++)
        if (is_ours(e, i))
            return true;
    return false;
}

hwnas_tasks hwnas_evaluator_tasks(const hwnas_evaluator *e)
{
    hwnas_trainings trainings;
    hwnas_tasks tasks = 0;
    for (int i = 0; i < e->n; i++)
        tasks |= runs_at(&e->sites[i]) ? 1U << i : 0;
    return tasks |
           (hwnas_predictor_trainings(&trainings, e->predictor) ? 1U << HWNAS_TASK_TRAINING : 0);
}

bool hwnas_evaluator_trainings(hwnas_trainings *out, const hwnas_evaluator *e)
{
    return hwnas_predictor_trainings(out, e->predictor);
}

bool hwnas_evaluator_weights(char **file, char **hash, const hwnas_evaluator *e)
{
    return hwnas_predictor_weights(file, hash, e->predictor);
}

void hwnas_evaluator_may_train(hwnas_evaluator *e, bool may_train)
{
    e->may_train = may_train;
}

hwnas_status hwnas_evaluator_use_study(hwnas_evaluator *e, hwnas_store *study)
{
    return e && e->latencies ? hwnas_latencies_use_study(e->latencies, study) : HWNAS_OK;
}

static void set_text(char *out, size_t size, const json_t *device, const char *key)
{
    const char *text = json_string_value(json_object_get(device, key));
    snprintf(out, size, "%s", text ? text : "");
}

hwnas_status hwnas_evaluator_recall(hwnas_evaluator *e, hwnas_store *study, const json_t *devices)
{
    char *has_any = NULL;
    TRY(hwnas_store_get(&has_any, study, "latency_cache"));
    if (!has_any)
        return HWNAS_OK;
    free(has_any);
    for (int i = 0; i < e->n; i++) {
        hwnas_device_info *info = &e->sites[i].info;
        const json_t *device =
            json_object_get(devices, hwnas_job_row_name(&e->job->goals.devices, i).text);
        set_text(info->name, sizeof info->name, device, "name");
        set_text(info->library, sizeof info->library, device, "library");
        set_text(info->isa, sizeof info->isa, device, "isa");
        info->threads = (int)json_integer_value(json_object_get(device, "threads"));
    }
    e->latencies = hwnas_latencies_open(true);
    return hwnas_latencies_use_study(e->latencies, study);
}

hwnas_status hwnas_evaluator_keep(hwnas_evaluator *e)
{
    return e->latencies ? hwnas_latencies_keep(e->latencies) : HWNAS_OK;
}

json_t *hwnas_evaluator_state(const hwnas_evaluator *e)
{
    return json_pack("{s:I, s:I, s:i}", "n_measured", (json_int_t)e->n_run, "n_audited",
                     (json_int_t)e->n_audited, "n_in_vain", e->n_in_vain);
}

void hwnas_evaluator_set_state(hwnas_evaluator *e, const json_t *state)
{
    e->n_run = (size_t)json_integer_value(json_object_get(state, "n_measured"));
    e->n_audited = (size_t)json_integer_value(json_object_get(state, "n_audited"));
    e->n_in_vain = (int)json_integer_value(json_object_get(state, "n_in_vain"));
}

const char *hwnas_evaluator_note(const hwnas_evaluator *e)
{
    return e->latencies ? hwnas_latencies_note(e->latencies) : NULL;
}
