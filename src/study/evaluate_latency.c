/* evaluate_latency.c: the latency of a candidate on a device: measured, measured in turns with
 * others, or estimated where that decides. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "graph/elaborate.h"
#include "study/evaluator.h"
#include "trial/judge.h"
#include "trial/skip.h"

/* One in so many measurements, the first among them, is of a network that an estimate would spare:
 * a table which is wrong finds out, and a search that ends early stands on one at least. */
enum { AUDIT_EVERY = 20 };

/* Another attempt is for a disturbance that passes. After so many measurements that stayed unstable
 * it does not, and there is one attempt for each until one is steady. */
enum { PATIENCE = 3 };

/* The interval of the lower rung, in widths of the job's. */
#define SHORT_WIDTH 4

hwnas_measure_options hwnas_evaluate_options(const hwnas_evaluator *e, const hwnas_candidate *c,
                                             int device, double seconds)
{
    hwnas_measure_options options = e->options;
    options.max_seconds = seconds;
    options.interval *= c->rung ? SHORT_WIDTH : 1;
    options.exec.precision = precision_at(&e->sites[device], c->settings.dtype);
    return options;
}

/* Of the table of a device with the candidate's settings; yours to free(). NULL: there is none, as
 * nothing is estimated, or which layers are in bytes is not known beforehand. */
static char *key_of(const hwnas_evaluator *e, const hwnas_candidate *c, int device)
{
    const hwnas_site *s = &e->sites[device];
    if (!e->latencies || mixing_at(s, c->settings.dtype))
        return NULL;
    const hwnas_exec_options exec = {.precision = precision_at(s, c->settings.dtype)};
    hwnas_device_info info = s->info;
    const int threads = threads_at(s, c->settings.threads);
    info.threads = threads ? threads : info.threads;
    return hwnas_latency_table_key(s->row->spelling, &info, &exec);
}

hwnas_status hwnas_evaluate_graph(const hwnas_graph **out, hwnas_graph **own,
                                  hwnas_precision *precision, hwnas_evaluator *e,
                                  const hwnas_candidate *c, int device)
{
    const hwnas_site *s = &e->sites[device];
    const int batch = batch_at(s, c->settings.batch);
    *precision = precision_at(s, c->settings.dtype);
    if (mixing_at(s, c->settings.dtype))
        TRY(hwnas_evaluate_mix(own, precision, e, c, device));
    else if (s->phase)
        TRY(hwnas_phase_build(own, s->phase, c->arch, batch));
    else if (batch != c->settings.batch)
        TRY(hwnas_graph_build(own, c->arch, batch));
    *out = *own ? *own : c->graph;
    return HWNAS_OK;
}

hwnas_status hwnas_evaluate_estimate(hwnas_latency_estimate *out, bool *is_known,
                                     hwnas_evaluator *e, const hwnas_candidate *c, int device)
{
    hwnas_status status = HWNAS_OK;
    hwnas_latency_table *table;
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    hwnas_parts parts = {0};
    hwnas_precision precision;
    char *key = key_of(e, c, device);
    *is_known = false;
    if (!key)
        return HWNAS_OK;
    TRY_OUT(hwnas_latencies_table(&table, e->latencies, key));
    if (!hwnas_latency_table_is_trusted(table))
        goto out;
    TRY_OUT(hwnas_evaluate_graph(&graph, &own, &precision, e, c, device));
    hwnas_graph_cut(&parts, graph);
    *is_known = hwnas_latency_table_estimate(out, table, &parts);
out:
    hwnas_parts_done(&parts);
    hwnas_graph_free(own);
    free(key);
    return status;
}

hwnas_status hwnas_evaluate_recall(bool *is_known, double *error, hwnas_trial *trial,
                                   hwnas_evaluator *e, const hwnas_candidate *c, int device)
{
    hwnas_latency_estimate l;
    hwnas_latency_state state;
    hwnas_latency_table *table;
    TRY(hwnas_evaluate_estimate(&l, is_known, e, c, device));
    if (!*is_known)
        return HWNAS_OK;
    char *key = key_of(e, c, device);
    const hwnas_status status = hwnas_latencies_table(&table, e->latencies, key);
    free(key);
    TRY(status);
    hwnas_latency_table_describe(&state, table);
    *error = state.error;
    hwnas_evaluate_add_given(trial, e, device, batch_at(&e->sites[device], c->settings.batch),
                             HWNAS_ESTIMATED, hwnas_metric_of(HWNAS_LATENCY),
                             (hwnas_reading){l.seconds, l.low, l.high});
    return HWNAS_OK;
}

/* All is known that the trial is judged by, if only estimated. An accuracy that takes a training
 * may come later, of a network that is likely to keep the limits; of another the measurement says
 * whether it is worth one. */
static bool is_ready_to_wait(const hwnas_trial *trial, const hwnas_evaluator *e)
{
    const bool comes_later = hwnas_evaluate_is_accuracy_dear(e) &&
                             hwnas_trial_violation(trial, &e->job->goals, false) == 0;
    return hwnas_trial_is_known(trial, &e->job->goals,
                                comes_later ? hwnas_metric_of(HWNAS_ACCURACY) : NULL);
}

hwnas_status hwnas_evaluate_skip(bool *is_skipped, hwnas_trial *trial, hwnas_evaluator *e,
                                 const hwnas_candidate *c, int device, json_t *detail)
{
    hwnas_latency_estimate l;
    bool is_known = false;
    const size_t n_values = trial->n_values;
    *is_skipped = false;
    if (!c->estimate)
        TRY(hwnas_evaluate_estimate(&l, &is_known, e, c, device));
    if (!is_known)
        return HWNAS_OK;
    const int batch = batch_at(&e->sites[device], c->settings.batch);
    hwnas_evaluate_add_given(trial, e, device, batch, HWNAS_ESTIMATED,
                             hwnas_metric_of(HWNAS_LATENCY),
                             (hwnas_reading){l.seconds, l.low, l.high});
    *is_skipped = hwnas_trial_cannot_improve(trial, &e->job->goals, c->front) ||
                  (c->may_wait && is_ready_to_wait(trial, e));
    if (*is_skipped && e->n_audited * AUDIT_EVERY <= e->n_run) {
        e->n_audited++;
        *is_skipped = false;
    }
    if (*is_skipped)
        json_object_set_new(
            detail, "estimated",
            json_pack("{s:i, s:i}", "parts", l.n_parts, "unknown_parts", l.n_unknown));
    else
        trial->n_values = n_values;
    return HWNAS_OK;
}

/* 0: nothing is known that would make an exact number useless. */
static double give_up_of(const hwnas_trial *trial, const hwnas_evaluator *e,
                         const hwnas_candidate *c, int device)
{
    const hwnas_metric *p50 = hwnas_metric_of(HWNAS_LATENCY);
    return trial && e->job->stops_early
               ? hwnas_trial_give_up(trial, &e->job->goals, c->front,
                                     hwnas_goal_of(p50, device, &e->job->goals.devices).name)
               : 0;
}

/* Another attempt would outlast the search. */
static bool is_late(const hwnas_evaluator *e, const hwnas_candidate *c)
{
    return c->deadline > 0 && hwnas_now() + 2 * e->options.max_seconds > c->deadline;
}

void hwnas_evaluate_note_begun(hwnas_begun *out, const hwnas_trial *trial, const hwnas_evaluator *e,
                               const hwnas_candidate *c, int device)
{
    out->give_up = give_up_of(trial, e, c, device);
    const bool is_once = c->estimate || e->n_in_vain >= PATIENCE || is_late(e, c);
    out->max_attempts = is_once ? 1 : e->options.max_attempts;
}

/* The options of a measurement, and the key of the table that learns from it (NULL: none), yours to
 * free(). */
static hwnas_measure_options how_to_run(char **key, const hwnas_trial *trial,
                                        const hwnas_evaluator *e, const hwnas_candidate *c,
                                        int device, double seconds)
{
    hwnas_measure_options options = hwnas_evaluate_options(e, c, device, seconds);
    hwnas_begun now;
    hwnas_evaluate_note_begun(&now, trial, e, c, device);
    const hwnas_begun *begun = c->begun ? c->begun : &now;
    options.give_up = begun->give_up;
    options.max_attempts = begun->max_attempts;
    *key = key_of(e, c, device);
    return options;
}

hwnas_status hwnas_evaluate_send(const hwnas_trial *trial, hwnas_evaluator *e,
                                 const hwnas_candidate *c, int device, double seconds)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_site *s = &e->sites[device];
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    char *key = NULL;
    if (s->phase || mixing_at(s, c->settings.dtype) || hwnas_boards_room(&s->boards) < 2 ||
        s->boards.threads != threads_at(s, c->settings.threads))
        return HWNAS_OK;
    hwnas_measure_options options = how_to_run(&key, trial, e, c, device, seconds);
    TRY_OUT(hwnas_evaluate_graph(&graph, &own, &options.exec.precision, e, c, device));
    hwnas_runner *runner = hwnas_boards_take_ahead(&s->boards, graph, &options);
    if (runner)
        TRY_OUT(key ? hwnas_latencies_send_ahead(e->latencies, key, runner, graph, &options)
                    : hwnas_runner_send_ahead(runner, graph, false, &options));
out:
    free(key);
    hwnas_graph_free(own);
    return status;
}

hwnas_status hwnas_evaluate_run(hwnas_measurement *out, const hwnas_trial *trial,
                                hwnas_evaluator *e, const hwnas_candidate *c, int device,
                                double seconds)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_site *s = &e->sites[device];
    hwnas_boards *boards = boards_at(e, device);
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    char *key;
    hwnas_measure_options options = how_to_run(&key, trial, e, c, device, seconds);
    TRY_OUT(hwnas_evaluate_graph(&graph, &own, &options.exec.precision, e, c, device));
    TRY_OUT(hwnas_evaluator_use_runner(e, device, threads_at(s, c->settings.threads)));
    if (e->tell_run)
        e->tell_run(e->run_context);
    hwnas_losses losses = {0};
    do {
        TRY_OUT(hwnas_boards_choose(&e->runner, boards, graph, &options));
        status =
            key ? hwnas_latencies_measure(out, e->latencies, key, e->runner, graph, &options, false)
                : hwnas_runner_measure(out, e->runner, graph, &options);
    } while (hwnas_boards_choose_again(&status, &losses, boards, e->runner));
    TRY_OUT(status);
    e->n_run++;
    e->n_in_vain = out->is_unstable ? e->n_in_vain + 1 : 0;
out:
    free(key);
    hwnas_graph_free(own);
    return status;
}

hwnas_status hwnas_evaluate_on(hwnas_trial *trial, hwnas_evaluator *e, const hwnas_candidate *c,
                               int device, double seconds)
{
    hwnas_measurement m;
    TRY(hwnas_evaluate_run(&m, NULL, e, c, device, seconds));
    hwnas_evaluate_add_measurement(trial, e, device, batch_at(&e->sites[device], c->settings.batch),
                                   &m);
    trial->is_unstable |= m.is_unstable;
    return HWNAS_OK;
}

bool hwnas_evaluate_can_race(const hwnas_evaluator *e, const hwnas_candidate *candidates, int n,
                             int device)
{
    const hwnas_site *s = &e->sites[device];
    bool is_one = n <= HWNAS_RACE_MOST && s->can_race;
    for (int i = 1; i < n && is_one; i++)
        is_one = threads_at(s, candidates[i].settings.threads) ==
                     threads_at(s, candidates[0].settings.threads) &&
                 precision_at(s, candidates[i].settings.dtype) ==
                     precision_at(s, candidates[0].settings.dtype) &&
                 mixing_at(s, candidates[i].settings.dtype) ==
                     mixing_at(s, candidates[0].settings.dtype);
    return is_one;
}

/* The blocks of a race as the trials that they would have been. */
static hwnas_trial *tell_blocks(const hwnas_race *race, const hwnas_evaluator *e,
                                const hwnas_candidate *candidates, int device)
{
    hwnas_trial *turns = hwnas_alloc((size_t)(race->n_blocks * race->n + 1) * sizeof *turns);
    for (int k = 0; k < race->n_blocks * race->n; k++) {
        const int batch = batch_at(&e->sites[device], candidates[k % race->n].settings.batch);
        const hwnas_measurement m = {
            .p50 = race->blocks[k], .p50_low = NAN, .p50_high = NAN, .energy = NAN};
        hwnas_evaluate_add_measurement(&turns[k], e, device, batch, &m);
    }
    return turns;
}

hwnas_status hwnas_evaluate_race(hwnas_trial **turns, int *n_blocks, hwnas_evaluator *e,
                                 const hwnas_candidate *candidates, int n, int device,
                                 double seconds)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_site *s = &e->sites[device];
    const hwnas_graph *graphs[HWNAS_RACE_MOST];
    hwnas_graph *own[HWNAS_RACE_MOST] = {NULL};
    hwnas_precision precisions[HWNAS_RACE_MOST];
    hwnas_race race = {0};
    const hwnas_measure_options options =
        hwnas_evaluate_options(e, &candidates[0], device, seconds);
    for (int i = 0; i < n; i++)
        TRY_OUT(
            hwnas_evaluate_graph(&graphs[i], &own[i], &precisions[i], e, &candidates[i], device));
    TRY_OUT(hwnas_evaluator_use_runner(e, device, threads_at(s, candidates[0].settings.threads)));
    TRY_OUT(hwnas_runner_race(&race, e->runner, graphs,
                              mixing_at(s, candidates[0].settings.dtype) ? precisions : NULL, n,
                              &options));
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
