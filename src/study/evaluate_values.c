/* evaluate_values.c: the values of a trial, from what costs nothing and from a measurement. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "graph/elaborate.h"
#include "predict/domain.h"
#include "predict/int8_loss.h"
#include "study/evaluator.h"
#include "study/write_network.h"
#include "trial/judge.h"
#include "trial/skip.h"

/* Puts a value at the end of the trial's, unless it has one of that name: the first to say a value
 * is nearer to the truth, a device before a count. */
static void add_value_of(hwnas_trial *trial, hwnas_goal goal, hwnas_source source,
                         hwnas_reading reading)
{
    hwnas_value_row out = {
        .value = reading.value, .low = reading.low, .high = reading.high, .source = source};
    if (isnan(reading.value) || hwnas_trial_value(trial, goal.name))
        return;
    out.metric = hwnas_intern(goal.name);
    out.unit = goal.metric->si;
    hwnas_trial_add(trial, &out);
}

static void add_value(hwnas_trial *trial, const hwnas_evaluator *e, const hwnas_metric *metric,
                      int device, hwnas_source source, hwnas_reading reading)
{
    const int row = metric->source == HWNAS_FROM_DEVICE ? device : -1;
    add_value_of(trial, hwnas_goal_of(metric, row, &e->job->goals.devices), source, reading);
}

void hwnas_evaluate_add_given(hwnas_trial *trial, const hwnas_evaluator *e, int device, int batch,
                              hwnas_source source, const hwnas_metric *metric,
                              hwnas_reading reading)
{
    const double price = e->sites[device].row->price;
    add_value(trial, e, metric, device, source, reading);
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (m != metric && hwnas_metric_gives(metric, m) &&
            hwnas_metric_is_in(m, e->sites[device].row->phase))
            add_value(trial, e, m, device, source, hwnas_metric_read(m, reading, batch, price));
}

static void add_costs_of(hwnas_trial *trial, const hwnas_graph *graph, const char *phase, int batch)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    for (const hwnas_metric *m = hwnas_metrics; m->name; m++)
        if (m->source == HWNAS_FROM_GRAPH && hwnas_metric_is_in(m, phase))
            add_value_of(trial, hwnas_goal_in(m, phase), HWNAS_COMPUTED,
                         (hwnas_reading){hwnas_metric_count(m, &costs, batch), NAN, NAN});
}

static hwnas_status add_costs(hwnas_trial *trial, const hwnas_evaluator *e,
                              const hwnas_candidate *c)
{
    const int batch = c->settings.batch;
    add_costs_of(trial, c->graph, "", batch);
    for (int i = 0; i < e->phases.n; i++) {
        hwnas_graph *own = NULL;
        TRY(hwnas_phase_build(&own, &e->phases.rows[i], c->arch, batch));
        add_costs_of(trial, own, e->phases.rows[i].name, batch);
        hwnas_graph_free(own);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_evaluator_digest(char out[33], const hwnas_evaluator *e,
                                    const hwnas_candidate *c)
{
    return hwnas_phases_digest(out, &e->phases, c->graph, c->arch, c->settings.batch);
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
        hwnas_evaluate_add_given(trial, e, i, 1, HWNAS_REPLAYED, hwnas_metric_of_value(metric),
                                 (hwnas_reading){value, NAN, NAN});
    }
out:
    free(code);
    return status;
}

hwnas_status hwnas_evaluate_costs(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    TRY(lookup(trial, e, c));
    return add_costs(trial, e, c);
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
        if (status == HWNAS_OK)
            status = add_costs(&trial, e, &c);
        if (status == HWNAS_OK)
            least = fmin(least, hwnas_trial_violation(&trial, &e->job->goals, false));
        hwnas_error_clear();
        hwnas_graph_free(graph);
        free(trial.values);
    } while (least > 0 && hwnas_settings_next(&settings, e->job));
    return least;
}

/* Values outside are held wherever some are inside (held.h); where none is, all networks are. Sizes
 * are known of what was fitted before the search: what is fitted in it learns from any. */
static hwnas_source source_outside(const hwnas_evaluator *e, const hwnas_arch *arch)
{
    const hwnas_sizes *sizes = hwnas_predictor_sizes(e->predictor);
    const bool is_of_size =
        sizes && sizes->n && hwnas_predictor_has_seen_values(e->predictor, arch);
    return !is_of_size              ? HWNAS_EXTRAPOLATED
           : e->job->is_domain_free ? HWNAS_OTHER_SIZE
                                    : HWNAS_LEFT_OUT;
}

static hwnas_source source_of(const hwnas_evaluator *e, const hwnas_arch *arch,
                              const hwnas_estimate *estimate)
{
    int64_t n, n_all;
    const bool was_stopped = hwnas_predictor_was_stopped(&n, &n_all, e->predictor);
    return was_stopped            ? (estimate->is_trained ? HWNAS_PARTIAL : HWNAS_OF_CURVE)
           : estimate->is_trained ? HWNAS_TRAINED
           : hwnas_predictor_ranks_only(e->predictor) ? HWNAS_COMPUTED
           : estimate->is_outside                     ? source_outside(e, arch)
           : estimate->sd == 0                        ? HWNAS_REPLAYED
                                                      : HWNAS_PREDICTED;
}

static void add_estimate(hwnas_trial *trial, const hwnas_evaluator *e,
                         const hwnas_estimate *estimate, hwnas_source source)
{
    const bool is_exact = estimate->sd == 0;
    add_value(trial, e, hwnas_metric_of(HWNAS_ACCURACY), -1, source,
              (hwnas_reading){estimate->mean, is_exact ? NAN : estimate->mean - estimate->sd,
                              is_exact ? NAN : estimate->mean + estimate->sd});
}

hwnas_status hwnas_evaluator_train(hwnas_trial *out, hwnas_evaluator *e, const hwnas_arch *arch)
{
    hwnas_estimate estimate;
    hwnas_predictor_train_mode(e->predictor, HWNAS_TRAIN_EACH);
    hwnas_predictor_use_rung(e->predictor, 0);
    TRY(hwnas_predictor_score(&estimate, e->predictor, &arch, 1));
    add_estimate(out, e, &estimate, source_of(e, arch, &estimate));
    return HWNAS_OK;
}

static bool is_outside(hwnas_source source)
{
    return source == HWNAS_EXTRAPOLATED || source == HWNAS_OTHER_SIZE || source == HWNAS_LEFT_OUT;
}

/* Takes off what a network run in bytes is likely to lose, where the predictor knows only floats.
 */
static hwnas_source take_off_loss(hwnas_estimate *estimate, const hwnas_evaluator *e,
                                  const hwnas_candidate *c)
{
    const hwnas_source source = source_of(e, c->arch, estimate);
    if (e->job->has_no_int8_loss || !hwnas_predictor_is_of_floats(e->predictor) ||
        strcmp(hwnas_predictor_unit(e->predictor), "%"))
        return source;
    const hwnas_int8_family *family = hwnas_int8_family_of(c->graph);
    estimate->mean -= family->mean;
    estimate->sd = hypot(estimate->sd, hwnas_int8_loss_sd(family));
    return is_outside(source) ? source : HWNAS_PRIOR;
}

/* Weights of 8 bits in groups cost next to nothing; what those of 4 bits cost nobody has told. */
static hwnas_source of_floats(const hwnas_evaluator *e, const hwnas_arch *arch,
                              const hwnas_estimate *estimate)
{
    const hwnas_source source = source_of(e, arch, estimate);
    const bool is_doubted = hwnas_predictor_is_of_floats(e->predictor);
    return is_doubted && !is_outside(source) ? HWNAS_OF_FLOATS : source;
}

/* The accuracy that a network has to have; 0: any. */
static double accuracy_floor(const hwnas_goals *goals)
{
    double floor = 0;
    for (int i = 0; i < goals->n_limits; i++)
        if (goals->limits[i].goal.metric == hwnas_metric_of(HWNAS_ACCURACY) &&
            !goals->limits[i].is_upper)
            floor = fmax(floor, goals->limits[i].value);
    return floor;
}

/* What a training must reach to be worth it, where latencies that are not measured yet are as good
 * as they are estimated to be at best. */
static hwnas_status find_floor(double *out, const hwnas_trial *trial, hwnas_evaluator *e,
                               const hwnas_candidate *c)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial known = {.number = trial->number};
    for (size_t i = 0; i < trial->n_values; i++)
        hwnas_trial_add(&known, &trial->values[i]);
    for (int i = 0; i < e->n; i++) {
        const hwnas_goal goal =
            hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), i, &e->job->goals.devices);
        bool is_known;
        double error;
        if (runs_at(&e->sites[i]) && !hwnas_trial_value(&known, goal.name))
            TRY_OUT(hwnas_evaluate_recall(&is_known, &error, &known, e, c, i));
    }
    *out = hwnas_trial_accuracy_floor(&known, &e->job->goals, c->front);
out:
    free(known.values);
    return status;
}

hwnas_status hwnas_evaluate_accuracy(hwnas_trial *trial, hwnas_evaluator *e,
                                     const hwnas_candidate *c)
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
    hwnas_predictor_use_rung(e->predictor, c->rung);
    hwnas_predictor_stop_below(e->predictor, accuracy_floor(&e->job->goals));
    /* What bytes cost is worth judging; other floats cost next to nothing, and the processor that
     * judges may not have them. */
    const hwnas_precision precision = hwnas_trial_precision(e->job, c->settings, -1);
    hwnas_predictor_use_precision(e->predictor,
                                  hwnas_precision_has_form(precision) ? precision : HWNAS_F32);
    double floor = -INFINITY;
    if (hwnas_predictor_gives_up(e->predictor) && !c->rung) {
        if (c->is_lookup_only)
            floor = INFINITY; /* one that was ended stays so */
        else
            TRY(find_floor(&floor, trial, e, c));
    }
    hwnas_predictor_give_up_below(e->predictor, floor);
    const hwnas_status status = hwnas_predictor_score(&estimate, e->predictor, &c->arch, 1);
    hwnas_predictor_give_up_below(e->predictor, -INFINITY);
    TRY(status);
    /* How much of the loss of all layers in bytes a part of them has is not known. */
    const bool has_bytes = precision == HWNAS_S8 || hwnas_trial_mixing(e->job, c->settings, -1);
    const hwnas_source source = has_bytes               ? take_off_loss(&estimate, e, c)
                                : precision == HWNAS_W4 ? of_floats(e, c->arch, &estimate)
                                                        : source_of(e, c->arch, &estimate);
    add_estimate(trial, e, &estimate, source);
    return HWNAS_OK;
}

hwnas_status hwnas_evaluate_free(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c)
{
    TRY(hwnas_evaluate_costs(trial, e, c));
    return e->predictor ? hwnas_evaluate_accuracy(trial, e, c) : HWNAS_OK;
}

bool hwnas_evaluate_is_accuracy_dear(const hwnas_evaluator *e)
{
    hwnas_trainings trainings;
    return e->predictor && hwnas_predictor_trainings(&trainings, e->predictor) && !trainings.budget;
}

void hwnas_evaluate_add_measurement(hwnas_trial *trial, const hwnas_evaluator *e, int device,
                                    int batch, const hwnas_measurement *measurement)
{
    const double price = e->sites[device].row->price;
    const hwnas_metric *m = NULL;
    hwnas_reading reading;
    while (hwnas_metric_next_measured(&m, &reading, measurement, e->sites[device].row->phase, batch,
                                      price))
        add_value(trial, e, m, device, HWNAS_MEASURED, reading);
}
