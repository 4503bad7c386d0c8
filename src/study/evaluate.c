#include "study/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "graph/elaborate.h"
#include "measure/race.h"
#include "profile/command.h"
#include "predict/active.h"
#include "study/judge.h"
#include "study/latencies.h"
#include "study/spare.h"

/* A median of energy stands on six blocks of samples, of ten at least (measure/protocol.c). */
enum { SAMPLES_OF_ENERGY = 60 };

/* One in so many trials that an estimate would spare is measured all the same, so that a table which
 * is wrong finds out. */
enum { AUDIT_EVERY = 20 };

/* The lower rung of the ladder: an eighth of the time, or an interval four times as wide. */
#define SHORT_SHARE 0.125
#define SHORT_WIDTH 4

/* A device of the job. */
typedef struct site {
    const hwnas_job_device *row;
    hwnas_device *memory;   /* a device that remembers; NULL: it runs */
    hwnas_device_info info; /* of one that runs */
} site;

struct hwnas_evaluator {
    const hwnas_job *job;
    hwnas_predictor *predictor; /* NULL: no accuracy */
    int n;
    site sites[HWNAS_MAX_DEVICES];
    /* One runner at a time: the threads of an idle one would spin on the cores of the next. */
    hwnas_runner *runner;
    int runner_site, runner_threads;
    hwnas_measure_options options;
    hwnas_latencies *latencies; /* NULL: nothing is estimated */
};

/* ---- Opening ---- */

static int threads_at(const site *s, int threads)
{
    return s->row->threads ? s->row->threads : threads;
}

static int batch_at(const site *s, int batch)
{
    return s->row->batch ? s->row->batch : batch;
}

static hwnas_precision precision_at(const site *s, int dtype)
{
    return (hwnas_precision)((s->row->dtype ? s->row->dtype : dtype) - 1);
}

static hwnas_status use_runner(hwnas_evaluator *e, int device, int threads)
{
    if (e->runner && e->runner_site == device && e->runner_threads == threads)
        return HWNAS_OK;
    hwnas_runner_close(e->runner);
    e->runner = NULL;
    e->runner_site = device;
    e->runner_threads = threads;
    return hwnas_runner_open(&e->runner, e->sites[device].row->spelling, threads);
}

/* A device that remembers, or a runner, which is started to see whether the device works. */
static hwnas_status open_site(hwnas_evaluator *e, int device, bool free_only)
{
    site *s = &e->sites[device];
    const hwnas_device_ops *ops;
    const char *argument;
    int threads = threads_at(s, e->job->threads.values[0]);
    TRY(hwnas_device_find(&ops, &argument, s->row->spelling));
    if (ops->recall) {
        hwnas_device_options options = {.threads = threads};
        return hwnas_device_open(&s->memory, s->row->spelling, &options);
    }
    if (free_only)
        return HWNAS_OK;
    TRY(use_runner(e, device, threads));
    return hwnas_runner_describe(&s->info, e->runner);
}

static bool is_derived(const hwnas_metric *metric)
{
    return !strcmp(metric->name, "throughput") || !strcmp(metric->name, "cost");
}

/* That a device can give what is asked of it. */
static hwnas_status check_goal(const hwnas_evaluator *e, const hwnas_goal *goal)
{
    const hwnas_metric *metric = goal->metric;
    if (goal->device < 0)
        return HWNAS_OK;
    const site *s = &e->sites[goal->device];
    const char *recalled = s->memory ? s->memory->ops->recalls(s->memory) : NULL;
    bool is_given = !recalled || !strcmp(recalled, metric->name) ||
                    (is_derived(metric) && !strcmp(recalled, "latency.p50"));
    if (!is_given)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                     "the device '%s' does not give %s", s->row->spelling,
                                     metric->name),
                          "choose another device or column, or another objective");
    if (!strcmp(metric->name, "cost") && isnan(s->row->price))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                                     "cost needs the price of '%s' an hour", s->row->name),
                          "add price: 0.17, or {name: ..., device: ..., price: 0.17}");
    if (!strcmp(metric->name, "energy") && !recalled && !s->info.has_energy)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &s->row->place,
                       "the device '%s' does not give energy: no counter that may be read",
                       s->row->spelling),
            "Linux has it in /sys/class/powercap/intel-rapl:*/energy_uj, on most systems for root");
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
        const site *s = &e->sites[i];
        const hwnas_device_ops *ops;
        const char *argument;
        if (s->memory)
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

static hwnas_status check_goals(hwnas_evaluator *e)
{
    const hwnas_job *job = e->job;
    for (int i = 0; i < HWNAS_N_SETTINGS; i++)
        TRY(check_setting(e, &hwnas_setting_table[i]));
    TRY(check_precisions(e));
    const hwnas_goal *goals[HWNAS_MAX_OBJECTIVES + 2 * HWNAS_MAX_LIMITS];
    int n = 0;
    for (int i = 0; i < job->n_objectives; i++)
        goals[n++] = &job->objectives[i];
    for (int i = 0; i < job->n_limits; i++)
        goals[n++] = &job->limits[i].goal;
    for (int i = 0; i < job->n_targets; i++)
        goals[n++] = &job->targets[i].goal;
    for (int i = 0; i < n; i++) {
        TRY(check_goal(e, goals[i]));
        bool is_p90 = !strcmp(goals[i]->metric->name, "latency.p90");
        bool is_p99 = !strcmp(goals[i]->metric->name, "latency.p99");
        bool is_energy = !strcmp(goals[i]->metric->name, "energy");
        int least = is_p90      ? samples_to_bound(0.9)
                    : is_p99    ? samples_to_bound(0.99)
                    : is_energy ? SAMPLES_OF_ENERGY
                                : 0;
        if (least > e->options.min_samples)
            e->options.min_samples = least;
    }
    return HWNAS_OK;
}

/* With a budget of trainings its first half is spent here. Where the job does not train, what was
 * trained before says the rest. */
static hwnas_status open_predictor(hwnas_evaluator *e, const hwnas_space *space,
                                   const volatile sig_atomic_t *stop)
{
    const hwnas_job *job = e->job;
    if (!job->predictor)
        return HWNAS_OK;
    hwnas_status status = hwnas_predictor_load(&e->predictor, job->predictor, space);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &job->predictor_place);
    hwnas_predictor_stop_on(e->predictor, stop);
    const bool is_idle = !job->trains && !strcmp(hwnas_predictor_kind(e->predictor), "command");
    if (!job->train_budget && !is_idle)
        return HWNAS_OK;
    const hwnas_train_options options = {.budget = is_idle ? 0 : (size_t)job->train_budget,
                                         .n_networks = (uint64_t)job->max_trials,
                                         .seed = job->seed};
    status = hwnas_predictor_train(&e->predictor, &options);
    if (status == HWNAS_OK || !is_idle)
        return status == HWNAS_OK ? status : hwnas_fail_at(status, &job->train_budget_place);
    /* Too few results yet: nothing is known of the accuracy. */
    hwnas_error_clear();
    hwnas_predictor_free(e->predictor);
    e->predictor = NULL;
    return HWNAS_OK;
}

hwnas_status hwnas_evaluator_open(hwnas_evaluator **out, const hwnas_job *job,
                                  const hwnas_space *space, bool free_only,
                                  const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    hwnas_evaluator *e = hwnas_alloc(sizeof *e);
    e->job = job;
    e->options = (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS;
    e->options.interval = job->interval;
    e->options.max_seconds = job->max_seconds;
    e->options.timeout = job->timeout;
    e->options.memory_limit = (size_t)job->memory_limit;
    e->options.stop = stop;
    TRY_OUT(open_predictor(e, space, stop));
    for (; e->n < job->devices.n; e->n++) {
        e->sites[e->n].row = &job->devices.rows[e->n];
        status = open_site(e, e->n, free_only);
        if (status != HWNAS_OK) {
            hwnas_fail_at(status, &job->devices.rows[e->n].place);
            goto out;
        }
    }
    if (!free_only)
        TRY_OUT(check_goals(e));
    if (!free_only && job->estimates && hwnas_evaluator_measures(e))
        e->latencies = hwnas_latencies_open(true);
    *out = e;
    e = NULL;
out:
    hwnas_evaluator_close(e);
    return status;
}

void hwnas_evaluator_close(hwnas_evaluator *e)
{
    if (!e)
        return;
    hwnas_latencies_close(e->latencies);
    hwnas_predictor_free(e->predictor);
    for (int i = 0; i < e->n; i++)
        hwnas_device_close(e->sites[i].memory);
    hwnas_runner_close(e->runner);
    free(e);
}

const hwnas_device_info *hwnas_evaluator_device(const hwnas_evaluator *e, int device)
{
    return e->sites[device].memory ? NULL : &e->sites[device].info;
}

bool hwnas_evaluator_measures(const hwnas_evaluator *e)
{
    for (int i = 0; i < e->n; i++)
        if (!e->sites[i].memory)
            return true;
    return false;
}

/* ---- Values ---- */

/* `device` -1: of the network. The first to say a value is nearer to the truth: a device before a
 * count. */
static void add_value(hwnas_trial *trial, const hwnas_evaluator *e, const char *metric, int device,
                      const char *source, double value, double low, double high)
{
    const hwnas_metric *row = hwnas_metric_of_value(metric);
    bool is_of_network = !row || row->source != HWNAS_FROM_DEVICE;
    hwnas_value_row out = {.value = value, .low = low, .high = high};
    hwnas_goal goal = hwnas_goal_of(row, is_of_network ? -1 : device, &e->job->devices);
    if (hwnas_trial_value(trial, goal.name))
        return;
    snprintf(out.metric, sizeof out.metric, "%s", goal.name);
    snprintf(out.unit, sizeof out.unit, "%s", row->si);
    snprintf(out.source, sizeof out.source, "%s", source);
    hwnas_trial_add(trial, &out);
}

/* What follows from the median latency of a batch. */
static void add_derived(hwnas_trial *trial, const hwnas_evaluator *e, int device, int batch,
                        const char *source, double p50, double low, double high)
{
    double price = e->sites[device].row->price;
    add_value(trial, e, "throughput", device, source, batch / p50, batch / high, batch / low);
    if (isnan(price))
        return;
    double factor = price / 3600 * 1e6 / batch; /* a million inferences take 1e6 / batch runs */
    add_value(trial, e, "cost", device, source, factor * p50, factor * low, factor * high);
}

static void add_costs(hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_candidate *c)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, c->graph);
    double macs = (double)costs.macs / c->settings.batch;
    add_value(trial, e, "macs", -1, "computed", macs, NAN, NAN);
    add_value(trial, e, "params", -1, "computed", (double)costs.params, NAN, NAN);
    add_value(trial, e, "memory", -1, "computed", (double)costs.peak_bytes, NAN, NAN);
}

static hwnas_status recall(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    hwnas_status status = HWNAS_OK;
    char *code = hwnas_arch_code(c->arch);
    for (int i = 0; i < e->n; i++) {
        hwnas_device *memory = e->sites[i].memory;
        double value;
        const char *metric;
        if (!memory)
            continue;
        TRY_OUT(memory->ops->recall(&value, &metric, memory, code));
        add_value(trial, e, metric, i, "replayed", value, NAN, NAN);
        if (!strcmp(metric, "latency.p50"))
            add_derived(trial, e, i, 1, "replayed", value, NAN, NAN);
    }
out:
    free(code);
    return status;
}

hwnas_status hwnas_evaluate_free(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    TRY(recall(trial, e, c));
    add_costs(trial, e, c);
    if (!e->predictor)
        return HWNAS_OK;
    hwnas_estimate estimate;
    hwnas_predictor_advance(e->predictor, trial->number);
    TRY(hwnas_predictor_score(&estimate, e->predictor, &c->arch, 1));
    bool exact = estimate.sd == 0;
    const char *source = estimate.is_trained                        ? "trained"
                         : hwnas_predictor_ranks_only(e->predictor) ? "computed"
                         : exact                                    ? "replayed"
                                                                    : "predicted";
    add_value(trial, e, "accuracy", -1, source, estimate.mean,
              exact ? NAN : estimate.mean - estimate.sd, exact ? NAN : estimate.mean + estimate.sd);
    return HWNAS_OK;
}

static void add_measurement(hwnas_trial *trial, const hwnas_evaluator *e, int device, int batch,
                            const hwnas_measurement *m)
{
    add_value(trial, e, "latency.p50", device, "measured", m->p50, m->p50_low, m->p50_high);
    if (!isnan(m->p90))
        add_value(trial, e, "latency.p90", device, "measured", m->p90, m->p90_low, m->p90_high);
    if (!isnan(m->p99))
        add_value(trial, e, "latency.p99", device, "measured", m->p99, m->p99_low, m->p99_high);
    add_derived(trial, e, device, batch, "measured", m->p50, m->p50_low, m->p50_high);
    if (!isnan(m->energy))
        add_value(trial, e, "energy", device, "measured", m->energy / batch, m->energy_low / batch,
                  m->energy_high / batch);
    if (m->memory_bytes) /* a count of bytes, the same each time */
        add_value(trial, e, "memory.device", device, "measured", (double)m->memory_bytes,
                  (double)m->memory_bytes, (double)m->memory_bytes);
}

static hwnas_measure_options options_of(const hwnas_evaluator *e, const hwnas_candidate *c,
                                        int device, double seconds)
{
    hwnas_measure_options options = e->options;
    options.max_seconds = seconds;
    options.interval *= c->rung ? SHORT_WIDTH : 1;
    options.exec.precision = precision_at(&e->sites[device], c->settings.dtype);
    return options;
}

/* ---- Latencies ---- */

hwnas_status hwnas_evaluator_use_study(hwnas_evaluator *e, hwnas_store *study)
{
    return e && e->latencies ? hwnas_latencies_use_study(e->latencies, study) : HWNAS_OK;
}

const char *hwnas_evaluator_note(const hwnas_evaluator *e)
{
    return e->latencies ? hwnas_latencies_note(e->latencies) : NULL;
}

/* Of the table of a device with the candidate's settings; yours to free(). */
static char *key_of(const hwnas_evaluator *e, const hwnas_candidate *c, int device)
{
    const site *s = &e->sites[device];
    const hwnas_exec_options exec = {.precision = precision_at(s, c->settings.dtype)};
    hwnas_device_info info = s->info;
    const int threads = threads_at(s, c->settings.threads);
    info.threads = threads ? threads : info.threads;
    return hwnas_latency_table_key(s->row->spelling, &info, &exec);
}

/* The graph as a device gets it, of its own batch where it has one; `own` is to be freed. */
static hwnas_status graph_at(const hwnas_graph **out, hwnas_graph **own, const hwnas_evaluator *e,
                             const hwnas_candidate *c, int device)
{
    const site *s = &e->sites[device];
    if (batch_at(s, c->settings.batch) != c->settings.batch)
        TRY(hwnas_graph_build(own, c->arch, s->row->batch));
    *out = *own ? *own : c->graph;
    return HWNAS_OK;
}

/* Puts estimates in the place of a measurement that would be for nothing; *is_spared: they are. */
static hwnas_status spare(bool *is_spared, hwnas_trial *trial, hwnas_evaluator *e,
                          const hwnas_candidate *c, int device, json_t *detail)
{
    hwnas_status status = HWNAS_OK;
    hwnas_latency_table *table;
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    hwnas_parts parts = {0};
    hwnas_latency_estimate l;
    const size_t n_values = trial->n_values;
    char *key = e->latencies ? key_of(e, c, device) : NULL;
    *is_spared = false;
    if (!key)
        return HWNAS_OK;
    TRY_OUT(hwnas_latencies_table(&table, e->latencies, key));
    if (!hwnas_table_is_trusted(table))
        goto out;
    TRY_OUT(graph_at(&graph, &own, e, c, device));
    hwnas_graph_cut(&parts, graph);
    if (!hwnas_latency_table_estimate(&l, table, &parts))
        goto out;
    const int batch = batch_at(&e->sites[device], c->settings.batch);
    add_value(trial, e, "latency.p50", device, HWNAS_ESTIMATED, l.seconds, l.low, l.high);
    add_derived(trial, e, device, batch, HWNAS_ESTIMATED, l.seconds, l.low, l.high);
    *is_spared = trial->number % AUDIT_EVERY && hwnas_trial_is_hopeless(trial, e->job, c->front);
    if (*is_spared)
        json_object_set_new(detail, "estimated",
                            json_pack("{s:i, s:i}", "parts", l.n_parts, "unknown_parts", l.n_unknown));
    else
        trial->n_values = n_values;
out:
    hwnas_parts_done(&parts);
    hwnas_graph_free(own);
    free(key);
    return status;
}

static hwnas_status run_on(hwnas_measurement *out, hwnas_evaluator *e, const hwnas_candidate *c,
                           int device, double seconds)
{
    hwnas_status status = HWNAS_OK;
    const site *s = &e->sites[device];
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    char *key = e->latencies ? key_of(e, c, device) : NULL;
    const hwnas_measure_options options = options_of(e, c, device, seconds);
    TRY_OUT(graph_at(&graph, &own, e, c, device));
    TRY_OUT(use_runner(e, device, threads_at(s, c->settings.threads)));
    TRY_OUT(key ? hwnas_latencies_measure(out, e->latencies, key, e->runner, graph, &options, false)
                : hwnas_runner_measure(out, e->runner, graph, &options));
out:
    free(key);
    hwnas_graph_free(own);
    return status;
}

hwnas_status hwnas_evaluate_on(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c,
                               int device, double seconds)
{
    hwnas_measurement m;
    TRY(run_on(&m, e, c, device, seconds));
    add_measurement(trial, e, device, batch_at(&e->sites[device], c->settings.batch), &m);
    return HWNAS_OK;
}

bool hwnas_evaluate_can_race(const hwnas_evaluator *e, const hwnas_candidate *candidates, int n,
                             int device)
{
    const site *s = &e->sites[device];
    bool is_one = n <= HWNAS_RACE_MOST;
    for (int i = 1; i < n && is_one; i++)
        is_one = threads_at(s, candidates[i].settings.threads) ==
                     threads_at(s, candidates[0].settings.threads) &&
                 precision_at(s, candidates[i].settings.dtype) ==
                     precision_at(s, candidates[0].settings.dtype);
    return is_one;
}

/* The blocks of a race as the trials that they would have been. */
static hwnas_trial *tell_blocks(const hwnas_race *race, const hwnas_evaluator *e,
                                const hwnas_candidate *candidates, int device)
{
    hwnas_trial *turns =
        hwnas_alloc((size_t)(race->n_blocks * race->n + 1) * sizeof *turns);
    for (int k = 0; k < race->n_blocks * race->n; k++) {
        const int batch = batch_at(&e->sites[device], candidates[k % race->n].settings.batch);
        const hwnas_measurement m = {.p50 = race->blocks[k],
                                     .p50_low = NAN,
                                     .p50_high = NAN,
                                     .p90 = NAN,
                                     .p99 = NAN,
                                     .energy = NAN};
        add_measurement(&turns[k], e, device, batch, &m);
    }
    return turns;
}

hwnas_status hwnas_evaluate_race(hwnas_trial **turns, int *n_blocks, hwnas_evaluator *e,
                                 const hwnas_candidate *candidates, int n, int device,
                                 double seconds)
{
    hwnas_status status = HWNAS_OK;
    const site *s = &e->sites[device];
    const hwnas_graph *graphs[HWNAS_RACE_MOST];
    hwnas_graph *own[HWNAS_RACE_MOST] = {NULL};
    hwnas_race race = {0};
    const hwnas_measure_options options = options_of(e, &candidates[0], device, seconds);
    for (int i = 0; i < n; i++) {
        const hwnas_candidate *c = &candidates[i];
        if (batch_at(s, c->settings.batch) != c->settings.batch)
            TRY_OUT(hwnas_graph_build(&own[i], c->arch, s->row->batch));
        graphs[i] = own[i] ? own[i] : c->graph;
    }
    TRY_OUT(use_runner(e, device, threads_at(s, candidates[0].settings.threads)));
    TRY_OUT(hwnas_runner_race(&race, e->runner, graphs, n, &options));
    /* Blocks that count were clean, however many were not: better than what single measurements
     * said one after the other. */
    *n_blocks = race.n_blocks;
    *turns = tell_blocks(&race, e, candidates, device);
out:
    hwnas_race_done(&race);
    for (int i = 0; i < n; i++)
        hwnas_graph_free(own[i]);
    return status;
}

/* The line that measures it again. */
static char *command_of(const hwnas_evaluator *e, const hwnas_candidate *c, int device,
                        double seconds)
{
    const site *s = &e->sites[device];
    char *code = hwnas_arch_code(c->arch);
    hwnas_measure_options options = options_of(e, c, device, seconds);
    const hwnas_recipe recipe = {.model = e->job->space,
                                 .arch = *code ? code : NULL,
                                 .device = s->row->spelling,
                                 .batch = batch_at(s, c->settings.batch),
                                 .threads = threads_at(s, c->settings.threads)};
    char *command = hwnas_recipe_command(&recipe, &options);
    free(code);
    return command;
}

/* Takes `command`. */
static json_t *detail_of(const hwnas_measurement *m, char *command)
{
    json_t *detail = json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:s, s:b, s:s?, s:i, s:f, s:f, s:I, s:s}", "samples",
        (json_int_t)m->n_samples, "disturbed", (json_int_t)m->n_disturbed, "compile_seconds",
        m->compile_seconds, "first_run_seconds", m->first_run_seconds, "run_seconds",
        m->run_seconds, "stop", hwnas_stop_name(m->stop), "unstable", m->is_unstable, "doubt",
        hwnas_measurement_doubt(m), "attempts", m->n_attempts, "shared_share", m->shared_share,
        "total_seconds", m->total_seconds, "memory_bytes", (json_int_t)m->memory_bytes, "command",
        command);
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
    bool is_unstable = json_is_true(json_object_get(whole, "unstable")) ||
                       json_is_true(json_object_get(detail, "unstable"));
    json_object_set_new(whole, "run_seconds", json_real(run));
    json_object_set_new(whole, "unstable", json_boolean(is_unstable));
    json_object_set_new(devices, e->sites[device].row->name, detail);
}

static bool is_of_device(const hwnas_value_row *v, const hwnas_evaluator *e, int device)
{
    const hwnas_metric *metric = hwnas_metric_of_value(v->metric);
    return metric && metric->source == HWNAS_FROM_DEVICE &&
           !strcmp(v->metric, hwnas_goal_of(metric, device, &e->job->devices).name);
}

/* Takes over what a twin measured on a device; false: nothing. */
static bool take_over(hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_trial *twin,
                      int device, int batch)
{
    bool is_any = false;
    for (size_t i = 0; i < twin->n_values; i++)
        if (!strcmp(twin->values[i].source, "measured") &&
            is_of_device(&twin->values[i], e, device)) {
            hwnas_trial_add(trial, &twin->values[i]);
            is_any = true;
        }
    hwnas_goal median =
        hwnas_goal_of(hwnas_metric_of_value("latency.p50"), device, &e->job->devices);
    const hwnas_value_row *v = hwnas_trial_value(trial, median.name);
    if (v) { /* at the price of this job */
        hwnas_value_row p50 = *v;
        add_derived(trial, e, device, batch, "measured", p50.value, p50.low, p50.high);
    }
    return is_any;
}

static hwnas_status measure(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c,
                            json_t *detail)
{
    for (int i = 0; i < e->n; i++) {
        hwnas_measurement m;
        if (e->sites[i].memory)
            continue;
        if (hwnas_trial_violation(trial, e->job, false) > 0)
            return HWNAS_OK;
        if (c->twin && take_over(trial, e, c->twin, i, batch_at(&e->sites[i], c->settings.batch))) {
            json_object_set_new(detail, "same_network_as",
                                json_integer((json_int_t)c->twin->number));
            if (hwnas_trial_is_unstable(c->twin))
                json_object_set_new(detail, "unstable", json_true());
            if (c->twin_study)
                json_object_set_new(detail, "of_study", json_string(c->twin_study));
            continue;
        }
        if (c->is_recalled_only)
            return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "never measured on this device");
        bool is_spared;
        const double seconds = (c->rung ? SHORT_SHARE : 1) * e->options.max_seconds;
        TRY(spare(&is_spared, trial, e, c, i, detail));
        if (is_spared)
            return HWNAS_OK;
        TRY(run_on(&m, e, c, i, seconds));
        add_measurement(trial, e, i, batch_at(&e->sites[i], c->settings.batch), &m);
        add_detail(detail, e, i, detail_of(&m, command_of(e, c, i, seconds)));
    }
    return HWNAS_OK;
}

/* ---- Judging ---- */

/* A metric that the job judges by, and that its device did not give. */
static hwnas_status require(const hwnas_evaluator *e, const hwnas_trial *trial,
                            const hwnas_goal *goal, bool with_interval)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
    bool is_bounded = v && (strcmp(v->source, "measured") || !isnan(v->high));
    if (v && (is_bounded || !with_interval))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, NULL, "too few samples for %s%s",
                                 v ? "the interval of " : "", goal->name),
                      "give it more time with measure: {seconds: ...}; it had %g",
                      e->options.max_seconds);
}

static hwnas_status require_all(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    for (int i = 0; i < e->job->n_objectives; i++)
        TRY(require(e, trial, &e->job->objectives[i], false));
    for (int i = 0; i < e->job->n_limits; i++)
        TRY(require(e, trial, &e->job->limits[i].goal, true));
    return HWNAS_OK;
}

static bool is_complete(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    for (int i = 0; i < e->n; i++) {
        hwnas_goal goal = hwnas_goal_of(hwnas_metric_of_value("latency.p50"), i, &e->job->devices);
        if (!e->sites[i].memory && !hwnas_trial_value(trial, goal.name))
            return false;
    }
    return true;
}

hwnas_status hwnas_evaluate(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    hwnas_status status = HWNAS_OK;
    json_t *detail = json_object();
    TRY_OUT(hwnas_evaluate_free(trial, e, c));
    TRY_OUT(measure(trial, e, c, detail));
    /* What was left unmeasured misses a limit already, which is violation enough. */
    bool is_whole = is_complete(e, trial) && !hwnas_trial_is_estimated(trial);
    if (is_whole)
        TRY_OUT(require_all(e, trial));
    trial->violation = hwnas_trial_violation(trial, e->job, is_whole);
    if (json_object_size(detail))
        trial->detail = json_dumps(detail, JSON_COMPACT);
out:
    json_decref(detail);
    return status;
}
