#include "study/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "search/ends.h"

enum { N_SAMPLES = 32, MAX_BUILDS = 4000 };

/* Of so many networks each is looked at, in some seconds. */
#define MAX_PROOF ((uint64_t)10000)

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
    return hwnas_metric_count(metric, &costs, 1);
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
        if (i < 2 ? hwnas_end_sample(trial, i ? HWNAS_LARGEST : HWNAS_SMALLEST, &rng)
                  : hwnas_arch_sample(trial, &rng))
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

/* ---- Where a search with limits begins ---- */

/* The sizes that a limit's metric grows with; 0: none is known. */
static int sizes_for(const hwnas_metric *out[2], const hwnas_limit *limit)
{
    switch (limit->goal.metric->source) {
    case HWNAS_FROM_DEVICE:
        out[0] = hwnas_metric_of(HWNAS_MACS);
        out[1] = hwnas_metric_of(HWNAS_PARAMS);
        return 2;
    case HWNAS_FROM_GRAPH:
        out[0] = limit->goal.metric;
        return 1;
    default:
        return 0;
    }
}

static bool wants_large(const hwnas_limit *limit)
{
    return limit->is_upper == limit->goal.metric->is_maximised;
}

static bool is_among(const hwnas_arch *arch, hwnas_arch *const *archs, int n)
{
    for (int i = 0; i < n; i++)
        if (hwnas_arch_equal(archs[i], arch))
            return true;
    return false;
}

/* ---- Uniform scalings of a trained model ---- */

static double number_of(const hwnas_value *v)
{
    return v->kind == HWNAS_VALUE_INT ? (double)v->i : v->kind == HWNAS_VALUE_REAL ? v->r : NAN;
}

static bool has_choice(const hwnas_expr *expr, size_t choice)
{
    bool has = expr->kind == HWNAS_EXPR_CHOICE && (size_t)expr->slot == choice;
    for (size_t i = 0; i < expr->n_args && !has; i++)
        has = has_choice(expr->args[i], choice);
    return has;
}

/* It says the width of a group of channels, and the first value, the model's own, is the largest.
 * Windows, resolutions and settings stay as they are. */
static bool is_scalable(const hwnas_space *space, const hwnas_gene *gene)
{
    const double own = number_of(&gene->values[0]);
    bool is_width = false;
    for (size_t i = 0; i < space->n_changes; i++)
        is_width |= !strcmp(space->changes[i].kind, "width") &&
                    has_choice(space->changes[i].to, gene->choice);
    for (size_t v = 1; v < gene->n_values; v++)
        is_width &= number_of(&gene->values[v]) < own;
    return is_width && own > 0;
}

static uint16_t nearest_value(const hwnas_gene *gene, double wanted)
{
    size_t best = 0;
    for (size_t v = 1; v < gene->n_values; v++)
        if (fabs(number_of(&gene->values[v]) - wanted) <
            fabs(number_of(&gene->values[best]) - wanted))
            best = v;
    return (uint16_t)best;
}

/* All widths by one factor: what people do by hand, and hard to beat by chance. */
static int add_scalings(hwnas_arch **out, int n, const hwnas_space *space)
{
    static const double factors[] = {0.9, 0.8, 0.7, 0.6, 0.5, 0.4};
    for (size_t f = 0; f < sizeof factors / sizeof *factors && n < HWNAS_MAX_STARTS; f++) {
        hwnas_arch *arch = hwnas_arch_new(space);
        for (size_t g = 0; g < space->n_genes; g++) {
            const hwnas_gene *gene = &space->genes[g];
            arch->genes[g] = is_scalable(space, gene)
                                 ? nearest_value(gene, factors[f] * number_of(&gene->values[0]))
                                 : 0;
        }
        if (hwnas_arch_settle(arch) && !is_among(arch, out, n))
            out[n++] = arch;
        else
            hwnas_arch_free(arch);
    }
    return n;
}

int hwnas_probe_starts(hwnas_arch *out[HWNAS_MAX_STARTS], const hwnas_job *job,
                       const hwnas_space *walked)
{
    int n = 0;
    for (int i = 0; i < job->goals.n_limits; i++) {
        const hwnas_metric *sizes[2];
        const int n_sizes = sizes_for(sizes, &job->goals.limits[i]);
        for (int s = 0; s < n_sizes && n < HWNAS_MAX_STARTS; s++) {
            hwnas_arch *arch =
                hwnas_probe_extreme(walked, sizes[s], wants_large(&job->goals.limits[i]));
            if (is_among(arch, out, n))
                hwnas_arch_free(arch);
            else
                out[n++] = arch;
        }
    }
    return n && walked->builder ? add_scalings(out, n, walked) : n;
}

/* ---- Proof ---- */

/* The network that comes nearest to a limit. */
typedef struct nearest {
    double violation; /* INFINITY: no network has the value */
    double value;
    char *code;
} nearest;

/* Takes a network that comes nearer. One that cannot be built is none. */
static hwnas_status judge(nearest *best, hwnas_evaluator *e, const hwnas_job *job,
                          const hwnas_limit *limit, const hwnas_space *space,
                          const hwnas_arch *walked)
{
    hwnas_graph *graph = NULL;
    hwnas_trial trial = {0};
    hwnas_arch *arch = hwnas_settings_strip(walked, space);
    hwnas_candidate c = {.arch = arch, .settings = hwnas_settings_of(walked, job)};
    hwnas_status status = hwnas_graph_build(&graph, arch, c.settings.batch);
    c.graph = graph;
    if (status == HWNAS_OK)
        status = hwnas_evaluate_costs(&trial, e, &c);
    const hwnas_value_row *v =
        status == HWNAS_OK ? hwnas_trial_value(&trial, limit->goal.name) : NULL;
    const double violation = v ? hwnas_limit_violation(limit, v->value, v->value) : INFINITY;
    if (violation < best->violation) {
        free(best->code);
        *best = (nearest){violation, v->value, hwnas_arch_code(walked)};
    }
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    free(trial.values);
    if (status == HWNAS_E_INTERRUPTED || status == HWNAS_E_LIBRARY)
        return status;
    hwnas_error_clear();
    return HWNAS_OK;
}

static hwnas_status cannot_be_met(const nearest *best, const hwnas_limit *limit)
{
    const hwnas_metric m = hwnas_metric_shown(limit->goal.metric, best->value);
    return hwnas_hint(hwnas_fail(HWNAS_E_INFEASIBLE, NULL,
                                 "no network of the space meets %s: the %s, %s, has %.*f %s",
                                 limit->text, wants_large(limit) ? "largest" : "smallest",
                                 best->code, m.decimals, best->value / m.scale, m.unit),
                      "relax the constraint, or choose another space");
}

/* Looks at one network after the other until one meets the limit. */
static hwnas_status prove(hwnas_evaluator *e, const hwnas_job *job, const hwnas_limit *limit,
                          const hwnas_space *space, const hwnas_space *walked)
{
    hwnas_status status = HWNAS_OK;
    nearest best = {.violation = INFINITY};
    hwnas_arch *arch = hwnas_probe_extreme(walked, limit->goal.metric, wants_large(limit));
    TRY_OUT(judge(&best, e, job, limit, space, arch));
    hwnas_arch_free(arch);
    arch = best.violation > 0 ? hwnas_arch_first(walked) : NULL;
    while (arch && best.violation > 0) {
        TRY_OUT(judge(&best, e, job, limit, space, arch));
        if (!hwnas_arch_next(arch))
            break;
    }
    if (best.violation > 0 && best.code)
        status = cannot_be_met(&best, limit);
out:
    hwnas_arch_free(arch);
    free(best.code);
    return status;
}

hwnas_status hwnas_probe_limits(hwnas_evaluator *e, const hwnas_job *job, const hwnas_space *space,
                                const hwnas_space *walked)
{
    if (!hwnas_space_count_up_to(walked, MAX_PROOF))
        return HWNAS_OK;
    for (int i = 0; i < job->goals.n_limits; i++)
        if (job->goals.limits[i].goal.metric->source == HWNAS_FROM_GRAPH)
            TRY(prove(e, job, &job->goals.limits[i], space, walked));
    return HWNAS_OK;
}
