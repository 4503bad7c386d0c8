#include "latency/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/stats.h"
#include "graph/elaborate.h"

enum {
    CANDIDATES = 48,           /* that are looked at for each that is measured */
    RANDOM_EVERY = 4,          /* one in so many is random: those tell the error */
    MAX_FAILURES_IN_A_ROW = 5, /* failures in a row that end it */
    MAX_HELD_OUT = 4096,
};
/* Short and many: a network more teaches more than the same one measured twice as well. The time is
 * what it takes at most to have a few samples that nobody disturbed; on a machine of our own a
 * third does. */
static const double INTERVAL = 0.02, SECONDS = 0.3;
static const int SAMPLES = 6;

typedef struct calibrator {
    const hwnas_calibrate_options *options;
    hwnas_latencies *latencies;
    const hwnas_space *space;
    hwnas_runner *runner;
    hwnas_latency_table *table;
    char *key;
    hwnas_rng rng;
    hwnas_calibration state;
    int n_in_a_row; /* failures */
    double *errors; /* of the held out */
} calibrator;

/* Builds a random network; failures are passed over. */
static hwnas_graph *draw(calibrator *c, hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    if (!hwnas_arch_sample(arch, &c->rng))
        return NULL;
    if (hwnas_graph_build(&graph, arch, c->options->batch) != HWNAS_OK) {
        hwnas_error_clear();
        return NULL;
    }
    return graph;
}

/* The one that its parts are known least of; NULL: none could be built. */
static hwnas_graph *choose(calibrator *c, hwnas_arch *arch, int n)
{
    hwnas_graph *best = NULL;
    hwnas_parts parts = {0};
    double most = -1;
    for (int i = 0; i < n; i++) {
        hwnas_graph *graph = draw(c, arch);
        if (!graph)
            continue;
        hwnas_graph_cut(&parts, graph);
        const double doubt = hwnas_latency_table_doubt(c->table, &parts);
        hwnas_graph_free(doubt > most ? best : graph);
        if (doubt > most) {
            most = doubt;
            best = graph;
        }
    }
    hwnas_parts_done(&parts);
    return best;
}

static void judge(calibrator *c, const hwnas_latency_estimate *e, const hwnas_measurement *m)
{
    hwnas_calibration *s = &c->state;
    if (s->n_held_out == MAX_HELD_OUT)
        return;
    const double n = (double)s->n_held_out, error = fabs(e->seconds / m->p50 - 1);
    s->within_5 = (s->within_5 * n + (error <= 0.05)) / (n + 1);
    s->within_10 = (s->within_10 * n + (error <= 0.1)) / (n + 1);
    s->coverage = (s->coverage * n + (e->low <= m->p50 && m->p50 <= e->high)) / (n + 1);
    c->errors[s->n_held_out++] = error;
    hwnas_sort(c->errors, s->n_held_out);
    s->error = hwnas_quantile(c->errors, s->n_held_out, 0.5);
}

static hwnas_status measure(calibrator *c, const hwnas_graph *graph, bool is_random)
{
    const hwnas_measure_options options = {.exec = {.precision = c->options->precision},
                                           .interval = INTERVAL,
                                           .max_seconds = SECONDS,
                                           .min_samples = SAMPLES,
                                           .max_attempts = 1,
                                           .timeout = 60,
                                           .stop = c->options->stop};
    hwnas_measurement m;
    hwnas_latency_estimate e;
    hwnas_parts parts = {0};
    hwnas_graph_cut(&parts, graph);
    const bool is_known = hwnas_latency_table_estimate(&e, c->table, &parts);
    hwnas_parts_done(&parts);
    hwnas_status status =
        hwnas_latencies_measure(&m, c->latencies, c->key, c->runner, graph, &options, true);
    if (status == HWNAS_OK) {
        TRY(hwnas_latencies_keep(c->latencies));
        c->n_in_a_row = 0;
        c->state.n_measured++;
        c->state.n_unstable += m.is_unstable;
        if (is_known && is_random && !m.is_unstable)
            judge(c, &e, &m);
        return HWNAS_OK;
    }
    if (status == HWNAS_E_INTERRUPTED)
        return status;
    c->state.n_failed++;
    if (status == HWNAS_E_LIBRARY || ++c->n_in_a_row == MAX_FAILURES_IN_A_ROW)
        return status;
    hwnas_error_clear();
    return HWNAS_OK;
}

static hwnas_status spend(calibrator *c)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_new(c->space);
    const double start = hwnas_now();
    for (unsigned i = 0; c->state.seconds < c->options->seconds; i++) {
        const bool is_random = i % RANDOM_EVERY == RANDOM_EVERY - 1;
        hwnas_graph *graph = choose(c, arch, is_random ? 1 : CANDIDATES);
        if (graph)
            status = measure(c, graph, is_random);
        hwnas_graph_free(graph);
        TRY_OUT(status);
        c->state.seconds = hwnas_now() - start;
        hwnas_latency_table_describe(&c->state.table, c->table);
        if (c->options->progress)
            c->options->progress(c->options->context, &c->state);
    }
out:
    hwnas_arch_free(arch);
    return status;
}

hwnas_status hwnas_calibrate(hwnas_calibration *out, hwnas_latencies *latencies,
                             const hwnas_space *space, const hwnas_calibrate_options *options)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_exec_options exec = {.precision = options->precision};
    hwnas_device_info info;
    calibrator c = {.options = options,
                    .latencies = latencies,
                    .space = space,
                    .rng = hwnas_rng_new(options->seed, 0x63616c6962), /* the stream "calib" */
                    .state = {.error = NAN}};
    c.errors = hwnas_alloc(MAX_HELD_OUT * sizeof *c.errors);
    TRY_OUT(hwnas_runner_open(&c.runner, options->device, options->threads));
    TRY_OUT(hwnas_runner_describe(&info, c.runner));
    c.key = hwnas_latency_table_key(options->device, &info, &exec);
    snprintf(c.state.key, sizeof c.state.key, "%s", c.key);
    TRY_OUT(hwnas_latencies_table(&c.table, latencies, c.key));
    status = spend(&c);
    if (status != HWNAS_OK && status != HWNAS_E_INTERRUPTED)
        goto out;
    hwnas_latency_table_describe(&c.state.table, c.table);
    *out = c.state;
out:
    hwnas_runner_close(c.runner);
    free(c.key);
    free(c.errors);
    return status;
}
