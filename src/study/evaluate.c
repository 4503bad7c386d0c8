#include "study/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"
#include "predict/predict.h"

struct hwnas_evaluator {
    const hwnas_job *job;
    hwnas_predictor *predictor; /* NULL: no accuracy */
    hwnas_device *memory;       /* a device that remembers; NULL: none */
    hwnas_runner *runner;       /* a device that runs; NULL: none */
    hwnas_device_info info;     /* of the runner's device */
    hwnas_measure_options options;
};

/* A device that remembers, or a runner, which is started to see whether the device works. */
static hwnas_status open_device(hwnas_evaluator *e)
{
    const hwnas_device_ops *ops;
    const char *argument;
    hwnas_device_options options = {.threads = e->job->threads};
    TRY(hwnas_device_find(&ops, &argument, e->job->device));
    if (ops->recall)
        return hwnas_device_open(&e->memory, e->job->device, &options);
    TRY(hwnas_runner_open(&e->runner, e->job->device, e->job->threads));
    return hwnas_runner_describe(&e->info, e->runner);
}

hwnas_status hwnas_evaluator_open(hwnas_evaluator **out, const hwnas_job *job,
                                  const hwnas_space *space, const volatile sig_atomic_t *stop)
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
    if (job->predictor)
        status = hwnas_predictor_load(&e->predictor, job->predictor, space);
    if (status != HWNAS_OK) {
        hwnas_fail_at(status, &job->predictor_place);
        goto out;
    }
    if (job->device)
        status = open_device(e);
    if (status != HWNAS_OK) {
        hwnas_fail_at(status, &job->device_place);
        goto out;
    }
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
    hwnas_predictor_free(e->predictor);
    hwnas_device_close(e->memory);
    hwnas_runner_close(e->runner);
    free(e);
}

const hwnas_device_info *hwnas_evaluator_device(const hwnas_evaluator *e)
{
    return e->runner ? &e->info : NULL;
}

static void add_value(hwnas_trial *trial, const char *metric, const char *source, double value,
                      double low, double high)
{
    const hwnas_metric *row = NULL;
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (!strcmp(m->name, metric))
            row = m;
    for (int i = 0; i < trial->n_values; i++)
        if (!strcmp(trial->values[i].metric, metric))
            return; /* the first to say it is nearer to the truth: a device before a count */
    hwnas_value_row *out = &trial->values[trial->n_values++];
    *out = (hwnas_value_row){.value = value, .low = low, .high = high};
    snprintf(out->metric, sizeof out->metric, "%s", metric);
    snprintf(out->unit, sizeof out->unit, "%s", row ? row->si : "");
    snprintf(out->source, sizeof out->source, "%s", source);
}

static void add_costs(hwnas_trial *trial, const hwnas_graph *graph)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    add_value(trial, "macs", "computed", (double)costs.macs, NAN, NAN);
    add_value(trial, "params", "computed", (double)costs.params, NAN, NAN);
    add_value(trial, "memory", "computed", (double)costs.peak_bytes, NAN, NAN);
}

/* What the limits say of the values that are known; `all`: a limit on an unknown value is missed.
 */
static double violation(const hwnas_job *job, const hwnas_trial *trial, bool all)
{
    double sum = 0;
    for (int i = 0; i < job->n_limits; i++) {
        const hwnas_limit *limit = &job->limits[i];
        const hwnas_value_row *v = hwnas_trial_value(trial, limit->metric->name);
        if (!v && !all)
            continue;
        /* A limit holds for the whole interval of a measurement; a prediction has no promise in it.
         */
        bool measured = v && !strcmp(v->source, "measured");
        sum += v ? hwnas_limit_violation(limit, measured ? v->low : v->value,
                                         measured ? v->high : v->value)
                 : INFINITY;
    }
    return sum;
}

static hwnas_status measure(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_graph *graph)
{
    hwnas_measurement m;
    TRY(hwnas_runner_measure(&m, e->runner, graph, &e->options));
    add_value(trial, "latency.p50", "measured", m.p50, m.p50_low, m.p50_high);
    if (!isnan(m.p90))
        add_value(trial, "latency.p90", "measured", m.p90, NAN, NAN);
    const char *doubt = hwnas_measurement_doubt(&m);
    json_t *detail = json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:s, s:b, s:s?, s:f, s:I}", "samples", (json_int_t)m.n_samples,
        "disturbed", (json_int_t)m.n_disturbed, "compile_seconds", m.compile_seconds,
        "first_run_seconds", m.first_run_seconds, "run_seconds", m.run_seconds, "stop",
        m.stop == HWNAS_STOP_INTERVAL ? "interval" : "budget", "unstable", m.is_unstable, "doubt",
        doubt, "total_seconds", m.total_seconds, "memory_bytes", (json_int_t)m.memory_bytes);
    trial->detail = json_dumps(detail, JSON_COMPACT);
    json_decref(detail);
    return HWNAS_OK;
}

static void take_over(hwnas_trial *trial, const hwnas_trial *twin)
{
    for (int i = 0; i < twin->n_values; i++)
        if (!strcmp(twin->values[i].source, "measured"))
            trial->values[trial->n_values++] = twin->values[i];
    json_t *detail = json_pack("{s:I}", "same_network_as", (json_int_t)twin->number);
    trial->detail = json_dumps(detail, JSON_COMPACT);
    json_decref(detail);
}

/* A metric that the job judges by, and that its device did not give. */
static hwnas_status require(const hwnas_evaluator *e, const hwnas_trial *trial,
                            const hwnas_metric *metric)
{
    if (hwnas_trial_value(trial, metric->name))
        return HWNAS_OK;
    if (e->runner)
        return hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, NULL, "too few samples for %s", metric->name),
                          "give it more time with measure: {seconds: ...}");
    return hwnas_hint(
        hwnas_fail_at(hwnas_fail(HWNAS_E_INPUT, NULL, "the device '%s' does not give %s",
                                 e->job->device, metric->name),
                      &e->job->device_place),
        "choose another device or column, or another objective");
}

static hwnas_status require_all(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    for (int i = 0; i < e->job->n_objectives; i++)
        TRY(require(e, trial, e->job->objectives[i]));
    for (int i = 0; i < e->job->n_limits; i++)
        TRY(require(e, trial, e->job->limits[i].metric));
    return HWNAS_OK;
}

hwnas_status hwnas_evaluate(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_arch *arch,
                            const hwnas_graph *graph, const hwnas_trial *twin)
{
    if (e->memory) {
        double value;
        const char *metric;
        TRY(e->memory->ops->recall(&value, &metric, e->memory, trial->code));
        add_value(trial, metric, "replayed", value, NAN, NAN);
    }
    add_costs(trial, graph);
    if (e->predictor) {
        hwnas_estimate estimate;
        TRY(hwnas_predictor_score(&estimate, e->predictor, &arch, 1));
        bool exact = estimate.sd == 0;
        add_value(trial, "accuracy", exact ? "replayed" : "predicted", estimate.mean,
                  exact ? NAN : estimate.mean - estimate.sd,
                  exact ? NAN : estimate.mean + estimate.sd);
    }
    if (e->runner && violation(e->job, trial, false) == 0) {
        if (twin && hwnas_trial_value(twin, "latency.p50"))
            take_over(trial, twin);
        else
            TRY(measure(trial, e, graph));
    }
    /* Without a measurement the cheap limits were missed already, which is violation enough. */
    bool is_complete = !e->runner || hwnas_trial_value(trial, "latency.p50");
    if (is_complete)
        TRY(require_all(e, trial));
    trial->violation = violation(e->job, trial, is_complete);
    return HWNAS_OK;
}
