#include "study/warm_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "graph/elaborate.h"
#include "latency/transfer.h"
#include "study/evaluator.h"
#include "study/warm.h"
#include "trial/judge.h"
#include "trial/skip.h"

/* Fewer say hardly more than those that are measured; of more a share is taken. */
enum { FEWEST_ROWS = 2 * HWNAS_WARM_FIRST, MOST_ROWS = 4000 };

struct hwnas_warm_order {
    hwnas_warm_study study;
    size_t n;
    const hwnas_trial **trials;
    hwnas_arch **archs;
    hwnas_transfer *transfer;
    size_t n_done;
    hwnas_trial *done; /* trials of this study */
};

/* The median latency that was measured on a device of a study, in seconds; 0: none was. */
static double latency_of(const hwnas_trial *trial, const hwnas_goals *goals, int device)
{
    const hwnas_metric *p50 = hwnas_metric_of(HWNAS_LATENCY);
    const hwnas_value_row *v =
        hwnas_trial_value(trial, hwnas_goal_of(p50, device, &goals->devices).name);
    return v && v->source != HWNAS_ESTIMATED && v->value > 0 ? v->value : 0;
}

static bool has_latencies(const hwnas_trial *trial, const hwnas_goals *goals)
{
    bool has = goals->devices.n > 0 && hwnas_warm_is_whole(trial);
    for (int d = 0; d < goals->devices.n && has; d++)
        has = latency_of(trial, goals, d) > 0;
    return has;
}

static bool read_facts(double *out, const hwnas_arch *walked, const hwnas_session *s)
{
    hwnas_graph *graph;
    hwnas_arch *arch = hwnas_settings_strip(walked, s->setup.space);
    const hwnas_settings settings = hwnas_settings_of(walked, s->job);
    const bool is_built = hwnas_graph_build(&graph, arch, settings.batch) == HWNAS_OK;
    if (is_built) {
        hwnas_transfer_facts(out, graph);
        hwnas_graph_free(graph);
    }
    hwnas_arch_free(arch);
    return is_built;
}

static void read_rows(hwnas_warm_order *order, const hwnas_session *s)
{
    const hwnas_warm_study *study = &order->study;
    const hwnas_goals *goals = &study->job.goals;
    const size_t n_sources = (size_t)goals->devices.n, n_genes = s->setup.walked->n_genes;
    const size_t step = study->n / MOST_ROWS + 1, most = study->n / step + 1;
    double *logs = hwnas_alloc((most * n_sources + 1) * sizeof *logs);
    double *facts = hwnas_alloc(most * HWNAS_TRANSFER_FACTS * sizeof *facts);
    uint16_t *genes = hwnas_alloc((most * n_genes + 1) * sizeof *genes);
    order->trials = hwnas_alloc(most * sizeof *order->trials);
    order->archs = hwnas_alloc(most * sizeof *order->archs);
    for (size_t i = 0; i < study->n; i += step) {
        const hwnas_trial *trial = &study->trials[i];
        hwnas_arch *arch;
        if (!has_latencies(trial, goals) ||
            hwnas_arch_parse(&arch, s->setup.walked, trial->code) != HWNAS_OK)
            continue;
        if (!read_facts(facts + order->n * HWNAS_TRANSFER_FACTS, arch, s)) {
            hwnas_arch_free(arch);
            continue;
        }
        for (size_t d = 0; d < n_sources; d++)
            logs[order->n * n_sources + d] = log(latency_of(trial, goals, (int)d));
        memcpy(genes + order->n * n_genes, arch->genes, n_genes * sizeof *genes);
        order->trials[order->n] = trial;
        order->archs[order->n++] = arch;
    }
    hwnas_error_clear(); /* of those beyond the predictor's domain */
    if (order->n >= FEWEST_ROWS)
        order->transfer = hwnas_transfer_new(order->n, n_sources, logs, HWNAS_TRANSFER_FACTS, facts,
                                             n_genes, genes);
    free(logs);
    free(facts);
    free(genes);
}

hwnas_status hwnas_warm_order_open(hwnas_warm_order **out, const hwnas_session *s)
{
    hwnas_warm_study study;
    *out = NULL;
    if (!s->job->warm_start || s->job->goals.devices.n != 1 || s->setup.evaluator->sites[0].memory)
        return HWNAS_OK;
    TRY(hwnas_warm_study_read(&study, s->job, s->setup.wide, s->setup.evaluator));
    hwnas_warm_order *order = hwnas_alloc(sizeof *order);
    *order = (hwnas_warm_order){.study = study};
    if (study.same[0] < 0)
        read_rows(order, s);
    if (order->transfer)
        *out = order;
    else
        hwnas_warm_order_close(order);
    return HWNAS_OK;
}

void hwnas_warm_order_close(hwnas_warm_order *order)
{
    if (!order)
        return;
    for (size_t i = 0; i < order->n; i++)
        hwnas_arch_free(order->archs[i]);
    free(order->archs);
    free(order->trials);
    hwnas_trials_free(order->done, order->n_done);
    hwnas_transfer_free(order->transfer);
    hwnas_warm_study_done(&order->study);
    free(order);
}

int hwnas_warm_order_first(hwnas_arch *out[HWNAS_WARM_FIRST], const hwnas_warm_order *order,
                           uint64_t seed)
{
    size_t rows[HWNAS_WARM_FIRST];
    hwnas_rng rng = hwnas_rng_new(seed, 0x7761726d); /* the stream "warm" */
    const size_t n = hwnas_transfer_choose(rows, order->transfer, HWNAS_WARM_FIRST, &rng);
    for (size_t i = 0; i < n; i++)
        out[i] = hwnas_arch_copy(order->archs[rows[i]]);
    return (int)n;
}

/* ---- What was measured here, and what follows ---- */

static const hwnas_trial *find_done(const hwnas_warm_order *order, const char *code)
{
    for (size_t i = 0; i < order->n_done; i++)
        if (order->done[i].is_finished && !strcmp(order->done[i].code, code))
            return &order->done[i];
    return NULL;
}

static hwnas_status fit(double *error, hwnas_warm_order *order, const hwnas_session *s)
{
    size_t rows[HWNAS_TRANSFER_MOST] = {0}, n = 0;
    double seconds[HWNAS_TRANSFER_MOST] = {0};
    for (size_t i = 0; i < order->n && n < HWNAS_TRANSFER_MOST; i++) {
        const hwnas_trial *trial = find_done(order, order->trials[i]->code);
        const double latency = trial && trial->status == HWNAS_OK && !trial->is_stopped_early
                                   ? latency_of(trial, &s->job->goals, 0)
                                   : 0;
        rows[n] = i;
        seconds[n] = latency;
        n += latency > 0;
    }
    TRY(hwnas_transfer_fit(order->transfer, n, rows, seconds));
    for (size_t i = 0; i < n; i++)
        seconds[i] = fabs(hwnas_transfer_left_out(order->transfer, i));
    hwnas_sort(seconds, n);
    *error = hwnas_quantile(seconds, n, 0.5);
    return HWNAS_OK;
}

/* A network of the other study as a trial here: what belongs to no device as it is, and the latency
 * as it is estimated; its values are to be freed. */
static hwnas_trial carry_over(const hwnas_warm_order *order, size_t row, const hwnas_session *s)
{
    const hwnas_trial *from = order->trials[row];
    const hwnas_transferred e = hwnas_transfer_estimate(order->transfer, row);
    const hwnas_evaluator *evaluator = s->setup.evaluator;
    hwnas_trial trial = {.code = from->code, .is_finished = true};
    for (size_t i = 0; i < from->n_values; i++) {
        const hwnas_metric *metric = hwnas_metric_of_value(from->values[i].metric);
        if (metric && metric->source != HWNAS_FROM_DEVICE)
            hwnas_trial_add(&trial, &from->values[i]);
    }
    const hwnas_settings settings = hwnas_settings_of(order->archs[row], s->job);
    hwnas_evaluate_add_given(&trial, evaluator, 0, batch_at(&evaluator->sites[0], settings.batch),
                             HWNAS_ESTIMATED, hwnas_metric_of(HWNAS_LATENCY),
                             (hwnas_reading){e.seconds, e.seconds, e.seconds});
    trial.violation = hwnas_trial_violation(&trial, &s->job->goals, false);
    return trial;
}

static void insert(hwnas_front *front, const hwnas_warm_order *order, size_t row,
                   const hwnas_session *s)
{
    hwnas_trial trial = carry_over(order, row, s);
    if (hwnas_trial_is_known(&trial, &s->job->goals, NULL) && trial.violation == 0) {
        const hwnas_score score = hwnas_trial_score(&trial, &s->job->goals);
        hwnas_point point = {.id = row};
        memcpy(point.objectives, score.objectives, sizeof point.objectives);
        hwnas_front_insert(front, &point);
    }
    free(trial.values);
}

hwnas_status hwnas_warm_order_next(hwnas_arch *out[HWNAS_WARM_ROUND], int *n_out, double *error,
                                   hwnas_warm_order *order, const hwnas_session *s)
{
    hwnas_front front = {.n_objectives = s->job->goals.n_objectives};
    size_t n = 0, *rows;
    *n_out = 0;
    TRY(hwnas_store_trials(&order->done, &order->n_done, s->store));
    if (fit(error, order, s) != HWNAS_OK) {
        hwnas_error_clear(); /* too little was measured */
        return HWNAS_OK;
    }
    for (size_t i = 0; i < s->front.n; i++) {
        hwnas_point measured = s->front.points[i];
        measured.id = UINT64_MAX;
        hwnas_front_insert(&front, &measured);
    }
    for (size_t i = 0; i < order->n; i++)
        if (!find_done(order, order->trials[i]->code))
            insert(&front, order, i, s);
    rows = hwnas_alloc((front.n + 1) * sizeof *rows);
    for (size_t i = 0; i < front.n; i++)
        if (front.points[i].id != UINT64_MAX)
            rows[n++] = (size_t)front.points[i].id;
    hwnas_front_done(&front);
    const size_t n_taken = n < HWNAS_WARM_ROUND ? n : HWNAS_WARM_ROUND;
    for (size_t i = 0; i < n_taken; i++)
        out[i] = hwnas_arch_copy(order->archs[rows[n_taken > 1 ? i * (n - 1) / (n_taken - 1) : 0]]);
    free(rows);
    *n_out = (int)n_taken;
    return HWNAS_OK;
}
