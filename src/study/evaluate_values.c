/* evaluate_values.c: the values of a trial, from what costs nothing and from a measurement. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "study/evaluator.h"
#include "trial/judge.h"

void hwnas_evaluate_add_value(hwnas_trial *trial, const hwnas_evaluator *e, const char *metric,
                              int device, hwnas_source source, double value, double low,
                              double high)
{
    const hwnas_metric *row = hwnas_metric_of_value(metric);
    bool is_of_network = !row || row->source != HWNAS_FROM_DEVICE;
    hwnas_value_row out = {.value = value, .low = low, .high = high, .source = source};
    hwnas_goal goal = hwnas_goal_of(row, is_of_network ? -1 : device, &e->job->goals.devices);
    if (hwnas_trial_value(trial, goal.name))
        return;
    snprintf(out.metric, sizeof out.metric, "%s", goal.name);
    snprintf(out.unit, sizeof out.unit, "%s", row->si);
    hwnas_trial_add(trial, &out);
}

void hwnas_evaluate_add_derived(hwnas_trial *trial, const hwnas_evaluator *e, int device, int batch,
                                hwnas_source source, double p50, double low, double high)
{
    double price = e->sites[device].row->price;
    hwnas_evaluate_add_value(trial, e, "throughput", device, source, batch / p50, batch / high,
                             batch / low);
    if (isnan(price))
        return;
    double factor = price / 3600 * 1e6 / batch; /* a million inferences take 1e6 / batch runs */
    hwnas_evaluate_add_value(trial, e, "cost", device, source, factor * p50, factor * low,
                             factor * high);
}

static void add_costs(hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_candidate *c)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, c->graph);
    double macs = (double)costs.macs / c->settings.batch;
    hwnas_evaluate_add_value(trial, e, "macs", -1, HWNAS_COMPUTED, macs, NAN, NAN);
    hwnas_evaluate_add_value(trial, e, "params", -1, HWNAS_COMPUTED, (double)costs.params, NAN,
                             NAN);
    hwnas_evaluate_add_value(trial, e, "memory", -1, HWNAS_COMPUTED, (double)costs.peak_bytes, NAN,
                             NAN);
}

static hwnas_status lookup(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    hwnas_status status = HWNAS_OK;
    char *code = hwnas_arch_code(c->arch);
    for (int i = 0; i < e->n; i++) {
        hwnas_device *memory = e->sites[i].memory;
        double value;
        const char *metric;
        if (!memory)
            continue;
        TRY_OUT(memory->ops->lookup(&value, &metric, memory, code));
        hwnas_evaluate_add_value(trial, e, metric, i, HWNAS_REPLAYED, value, NAN, NAN);
        if (!strcmp(metric, "latency.p50"))
            hwnas_evaluate_add_derived(trial, e, i, 1, HWNAS_REPLAYED, value, NAN, NAN);
    }
out:
    free(code);
    return status;
}

hwnas_status hwnas_evaluate_costs(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    TRY(lookup(trial, e, c));
    add_costs(trial, e, c);
    return HWNAS_OK;
}

double hwnas_evaluate_free_violation(void *evaluator, const hwnas_arch *arch)
{
    hwnas_evaluator *e = evaluator;
    hwnas_settings settings = hwnas_settings_first(e->job);
    double least = INFINITY;
    do {
        hwnas_trial trial = {.number = 0};
        hwnas_graph *graph = NULL;
        hwnas_candidate c = {.arch = arch, .settings = settings};
        hwnas_status status = hwnas_graph_build(&graph, arch, settings.batch);
        c.graph = graph;
        if (status == HWNAS_OK)
            status = lookup(&trial, e, &c);
        if (status == HWNAS_OK) {
            add_costs(&trial, e, &c);
            least = fmin(least, hwnas_trial_violation(&trial, &e->job->goals, false));
        }
        hwnas_error_clear();
        hwnas_graph_free(graph);
        free(trial.values);
    } while (least > 0 && hwnas_settings_next(&settings, e->job));
    return least;
}

static hwnas_value_row accuracy_row(const hwnas_evaluator *e, const hwnas_estimate *estimate)
{
    const bool exact = estimate->sd == 0;
    hwnas_value_row row = {.value = estimate->mean,
                           .low = exact ? NAN : estimate->mean - estimate->sd,
                           .high = exact ? NAN : estimate->mean + estimate->sd,
                           .source = estimate->is_trained                       ? HWNAS_TRAINED
                                     : hwnas_predictor_ranks_only(e->predictor) ? HWNAS_COMPUTED
                                     : exact                                    ? HWNAS_REPLAYED
                                                                                : HWNAS_PREDICTED};
    snprintf(row.metric, sizeof row.metric, "accuracy");
    snprintf(row.unit, sizeof row.unit, "%s", hwnas_metric_of_value("accuracy")->si);
    return row;
}

hwnas_status hwnas_evaluator_train(hwnas_value_row *out, hwnas_evaluator *e, const hwnas_arch *arch)
{
    hwnas_estimate estimate;
    hwnas_predictor_train_mode(e->predictor, HWNAS_TRAIN_EACH);
    TRY(hwnas_predictor_score(&estimate, e->predictor, &arch, 1));
    *out = accuracy_row(e, &estimate);
    return HWNAS_OK;
}

/* A network that misses a limit already is not trained. */
static hwnas_status add_accuracy(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    hwnas_trainings trainings;
    hwnas_estimate estimate;
    const bool is_missed = hwnas_trial_violation(trial, &e->job->goals, false) > 0;
    const bool trains = hwnas_predictor_trainings(&trainings, e->predictor);
    if (trains && !trainings.budget && (is_missed || !e->may_train))
        return HWNAS_OK;
    hwnas_predictor_train_mode(e->predictor, is_missed || !e->may_train ? HWNAS_TRAIN_NONE
                                                                        : HWNAS_TRAIN_PROMISING);
    hwnas_predictor_advance(e->predictor, trial->number);
    TRY(hwnas_predictor_score(&estimate, e->predictor, &c->arch, 1));
    const hwnas_value_row row = accuracy_row(e, &estimate);
    hwnas_evaluate_add_value(trial, e, "accuracy", -1, row.source, row.value, row.low, row.high);
    return HWNAS_OK;
}

hwnas_status hwnas_evaluate_free(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    TRY(hwnas_evaluate_costs(trial, e, c));
    return e->predictor ? add_accuracy(trial, e, c) : HWNAS_OK;
}

void hwnas_evaluate_add_measurement(hwnas_trial *trial, const hwnas_evaluator *e, int device,
                                    int batch, const hwnas_measurement *m)
{
    hwnas_evaluate_add_value(trial, e, "latency.p50", device, HWNAS_MEASURED, m->p50, m->p50_low,
                             m->p50_high);
    if (!isnan(m->p90))
        hwnas_evaluate_add_value(trial, e, "latency.p90", device, HWNAS_MEASURED, m->p90,
                                 m->p90_low, m->p90_high);
    if (!isnan(m->p99))
        hwnas_evaluate_add_value(trial, e, "latency.p99", device, HWNAS_MEASURED, m->p99,
                                 m->p99_low, m->p99_high);
    hwnas_evaluate_add_derived(trial, e, device, batch, HWNAS_MEASURED, m->p50, m->p50_low,
                               m->p50_high);
    if (!isnan(m->energy))
        hwnas_evaluate_add_value(trial, e, "energy", device, HWNAS_MEASURED, m->energy / batch,
                                 m->energy_low / batch, m->energy_high / batch);
    if (m->memory_bytes) /* a count of bytes, the same each time */
        hwnas_evaluate_add_value(trial, e, "memory.device", device, HWNAS_MEASURED,
                                 (double)m->memory_bytes, (double)m->memory_bytes,
                                 (double)m->memory_bytes);
}
