#include "study/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/elaborate.h"
#include "search/ends.h"
#include "study/judge.h"

enum { N_SAMPLES = 32, MAX_BUILDS = 4000 };
static const double MARGIN = 0.1; /* by which a measured limit must be missed */

/* ---- The ends of a space ---- */

typedef struct descent {
    const hwnas_metric *metric;
    double sign; /* 1: the least is wanted; -1: the most */
    int n_builds;
    hwnas_arch *best;
    double cost; /* sign * value of the best */
} descent;

static double size_of(const hwnas_graph *graph, const hwnas_metric *metric)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    return !strcmp(metric->name, "params")   ? (double)costs.params
           : !strcmp(metric->name, "memory") ? (double)costs.peak_bytes
                                             : (double)costs.macs;
}

/* Takes an architecture when it is better; networks that cannot be built are passed by. */
static bool consider(descent *d, const hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    d->n_builds++;
    if (hwnas_graph_build(&graph, arch, 1) != HWNAS_OK) {
        hwnas_error_clear();
        return false;
    }
    double cost = d->sign * size_of(graph, d->metric);
    hwnas_graph_free(graph);
    if (d->best && cost >= d->cost)
        return false;
    if (!d->best)
        d->best = hwnas_arch_copy(arch);
    hwnas_arch_assign(d->best, arch);
    d->cost = cost;
    return true;
}

static bool improve_gene(descent *d, hwnas_arch *trial, size_t gene)
{
    bool is_better = false;
    for (size_t v = 0; v < trial->space->genes[gene].n_values; v++) {
        hwnas_arch_assign(trial, d->best);
        trial->genes[gene] = (uint16_t)v;
        if (hwnas_arch_settle(trial) && !hwnas_arch_equal(trial, d->best))
            is_better |= consider(d, trial);
    }
    return is_better;
}

hwnas_arch *hwnas_probe_extreme(const hwnas_space *space, const hwnas_metric *metric, bool largest)
{
    descent d = {.metric = metric, .sign = largest ? -1 : 1};
    hwnas_rng rng = hwnas_rng_new(1, 0x70726f6265); /* the stream "probe" */
    hwnas_arch *trial = hwnas_arch_new(space);
    for (size_t last = 0; last < 2; last++) {
        for (size_t i = 0; i < space->n_genes; i++)
            trial->genes[i] = (uint16_t)(last ? space->genes[i].n_values - 1 : 0);
        if (hwnas_arch_settle(trial))
            consider(&d, trial);
    }
    for (int i = 0; i < N_SAMPLES; i++) {
        if (i < 2)
            hwnas_end_sample(trial, i ? HWNAS_LARGEST : HWNAS_SMALLEST, &rng);
        else
            hwnas_arch_sample(trial, &rng);
        consider(&d, trial);
    }
    bool is_better = d.best != NULL;
    while (is_better && d.n_builds < MAX_BUILDS) {
        is_better = false;
        for (size_t i = 0; i < space->n_genes && d.n_builds < MAX_BUILDS; i++)
            is_better |= improve_gene(&d, trial, i);
    }
    hwnas_arch_free(trial);
    return d.best ? d.best : hwnas_arch_new(space);
}

/* ---- Limits ---- */

/* The value of a network that comes nearest to a limit so far. */
typedef struct nearest {
    double violation;
    hwnas_value_row value;
    char *code; /* NULL: no network gave the value */
} nearest;

static void judge(nearest *best, const hwnas_limit *limit, const hwnas_trial *trial,
                  const hwnas_arch *arch)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
    if (!v)
        return;
    bool is_bounded = !strcmp(v->source, "measured") && !isnan(v->low);
    double end = !is_bounded ? v->value : limit->is_upper ? v->low : v->high;
    double violation = hwnas_limit_violation(limit, end, end);
    if (best->code && violation >= best->violation)
        return;
    free(best->code);
    *best = (nearest){.violation = violation, .value = *v, .code = hwnas_arch_code(arch)};
}

/* Evaluates one network for a limit, with one setting. A network that fails tells nothing. */
static hwnas_status try_network(nearest *best, hwnas_evaluator *e, const hwnas_job *job,
                                const hwnas_limit *limit, const hwnas_arch *arch,
                                hwnas_settings settings)
{
    hwnas_graph *graph = NULL;
    hwnas_trial trial = {0};
    hwnas_candidate c = {.arch = arch, .settings = settings};
    hwnas_status status = hwnas_graph_build(&graph, arch, settings.batch);
    c.graph = graph;
    if (status == HWNAS_OK)
        status = hwnas_evaluate_free(&trial, e, &c);
    int device = limit->goal.device;
    if (status == HWNAS_OK && device >= 0 && hwnas_evaluator_device(e, device))
        status = hwnas_evaluate_on(&trial, e, &c, device, job->max_seconds);
    if (status == HWNAS_OK)
        judge(best, limit, &trial, arch);
    hwnas_graph_free(graph);
    free(trial.values);
    if (status == HWNAS_E_INTERRUPTED || status == HWNAS_E_LIBRARY)
        return status;
    hwnas_error_clear();
    return HWNAS_OK;
}

static hwnas_status cannot_be_met(const nearest *best, const hwnas_limit *limit, bool largest)
{
    const hwnas_metric *m = limit->goal.metric;
    double scale = m->scale;
    bool is_bounded = !strcmp(best->value.source, "measured") && !isnan(best->value.low);
    char *interval = is_bounded
                         ? hwnas_printf(" [%.*f, %.*f]", m->decimals, best->value.low / scale,
                                        m->decimals, best->value.high / scale)
                         : hwnas_strdup("");
    hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INFEASIBLE, NULL,
                              "no network of the space meets %s: the %s, %s, has %.*f%s %s",
                              limit->text, largest ? "largest" : "smallest", best->code,
                              m->decimals, best->value.value / scale, interval, m->unit),
                   "relax the constraint, or choose another space%s",
                   limit->goal.device >= 0 ? " or device" : "");
    free(interval);
    return status;
}

static hwnas_status probe_limit(hwnas_evaluator *e, const hwnas_job *job, const hwnas_space *space,
                                const hwnas_limit *limit)
{
    hwnas_status status = HWNAS_OK;
    bool is_measured = limit->goal.device >= 0;
    bool largest = limit->is_upper == limit->goal.metric->is_maximised;
    const char *const sizes[] = {"macs", "params"};
    nearest best = {.violation = INFINITY};
    hwnas_arch *arch = NULL;
    for (int s = 0; s < (is_measured ? 2 : 1); s++) {
        const hwnas_metric *size =
            is_measured ? hwnas_metric_of_value(sizes[s]) : limit->goal.metric;
        hwnas_arch_free(arch);
        arch = hwnas_probe_extreme(space, size, largest);
        hwnas_settings settings = hwnas_settings_first(job);
        do {
            TRY_OUT(try_network(&best, e, job, limit, arch, settings));
            if (best.code && best.violation <= (is_measured ? MARGIN : 0))
                goto out;
        } while (hwnas_settings_next(&settings, job));
    }
    if (best.code)
        status = cannot_be_met(&best, limit, largest);
out:
    hwnas_arch_free(arch);
    free(best.code);
    return status;
}

hwnas_status hwnas_probe(hwnas_evaluator *e, const hwnas_job *job, const hwnas_space *space)
{
    /* What is computed first: it costs nothing. */
    for (int measured = 0; measured < 2; measured++)
        for (int i = 0; i < job->n_limits; i++) {
            const hwnas_metric *metric = job->limits[i].goal.metric;
            bool is_turn =
                measured ? metric->source == HWNAS_FROM_DEVICE : metric->source == HWNAS_FROM_GRAPH;
            if (is_turn)
                TRY(probe_limit(e, job, space, &job->limits[i]));
        }
    return HWNAS_OK;
}
