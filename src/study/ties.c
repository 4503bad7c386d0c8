#include "study/ties.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "graph/elaborate.h"
#include "study/judge.h"

static const double SHARE = 0.25; /* of the time of a measurement, for one turn */

void hwnas_ties_level(double *values, int n_rounds, int n, const double *firsts)
{
    double whole = 0;
    for (int i = 0; i < n; i++)
        whole += log(firsts[i]) / n;
    for (int r = 0; r < n_rounds; r++) {
        double mean = 0;
        for (int i = 0; i < n; i++)
            mean += log(values[r * n + i]) / n;
        for (int i = 0; i < n; i++)
            values[r * n + i] *= exp(whole - mean);
    }
}

typedef struct study {
    hwnas_store *store;
    hwnas_evaluator *evaluator;
    const hwnas_job *job;
    const hwnas_space *space, *walked;
    const volatile sig_atomic_t *stop;
    double deadline;
    size_t n;
    hwnas_trial *trials;
    size_t *group; /* of each trial: its own index, or that of an earlier one of its group */
} study;

/* ---- Finding groups ---- */

static size_t root_of(const study *s, size_t i)
{
    while (s->group[i] != i)
        i = s->group[i];
    return i;
}

static void join(study *s, size_t a, size_t b)
{
    size_t x = root_of(s, a), y = root_of(s, b);
    s->group[x > y ? x : y] = x > y ? y : x;
}

/* The same trials without their intervals: then values alone decide. */
static hwnas_trial *without_intervals(const study *s)
{
    hwnas_trial *plain = hwnas_alloc((s->n + 1) * sizeof *plain);
    for (size_t i = 0; i < s->n; i++) {
        plain[i] = s->trials[i];
        plain[i].values = hwnas_alloc((s->trials[i].n_values + 1) * sizeof *plain[i].values);
        for (size_t v = 0; v < s->trials[i].n_values; v++) {
            plain[i].values[v] = s->trials[i].values[v];
            if (s->trials[i].is_finished && s->trials[i].violation == 0)
                strcpy(plain[i].values[v].source, "plain");
        }
    }
    return plain;
}

static bool has(const size_t *list, size_t n, size_t which)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == which)
            return true;
    return false;
}

/* Nowhere worse, as far as intervals tell. */
static bool covers(const study *s, const hwnas_trial *a, const hwnas_trial *b, int front)
{
    for (int i = 0; i < s->job->n_objectives; i++) {
        const hwnas_goal *goal = &s->job->objectives[i];
        if (hwnas_goal_counts(goal, s->job, front) &&
            hwnas_value_compare(hwnas_trial_value(a, goal->name), hwnas_trial_value(b, goal->name),
                                goal->metric) > 0)
            return false;
    }
    return true;
}

static void find_groups(study *s, int front)
{
    size_t *with = hwnas_alloc((s->n + 1) * sizeof *with);
    size_t *alone = hwnas_alloc((s->n + 1) * sizeof *alone);
    hwnas_trial *plain = without_intervals(s);
    size_t n_with = hwnas_front_find(with, s->trials, s->n, s->job, front);
    size_t n_alone = hwnas_front_find(alone, plain, s->n, s->job, front);
    for (size_t i = 0; i < n_alone; i++) {
        if (has(with, n_with, alone[i]) || !hwnas_trial_is_feasible(&s->trials[alone[i]], s->job, front))
            continue;
        for (size_t j = 0; j < n_with; j++)
            if (covers(s, &s->trials[with[j]], &s->trials[alone[i]], front))
                join(s, alone[i], with[j]);
    }
    for (size_t i = 0; i < s->n; i++)
        free(plain[i].values);
    free(plain);
    free(with);
    free(alone);
}

/* ---- Measuring ---- */

static bool should_stop(const study *s)
{
    return s->stop && *s->stop;
}

/* One turn: every device that runs measures a trial's network shortly. */
static hwnas_status take_turn(hwnas_trial *out, study *s, const hwnas_trial *trial)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *walked = NULL, *arch = NULL;
    hwnas_graph *graph = NULL;
    hwnas_candidate c = {0};
    TRY_OUT(hwnas_arch_parse(&walked, s->walked, trial->code));
    arch = hwnas_settings_strip(walked, s->space);
    c.arch = arch;
    c.settings = hwnas_settings_of(walked, s->job);
    TRY_OUT(hwnas_graph_build(&graph, arch, c.settings.batch));
    c.graph = graph;
    for (int d = 0; d < s->job->devices.n; d++)
        if (hwnas_evaluator_device(s->evaluator, d))
            TRY_OUT(hwnas_evaluate_on(out, s->evaluator, &c, d, SHARE * s->job->max_seconds));
out:
    hwnas_graph_free(graph);
    hwnas_arch_free(walked);
    hwnas_arch_free(arch);
    return status;
}

/* What the rounds say of one metric of the group's members; a metric that a turn lacks is left. */
static hwnas_status conclude(study *s, const size_t *members, int n, const hwnas_trial *turns,
                             const char *metric)
{
    double *values = hwnas_alloc((size_t)(HWNAS_TIE_ROUNDS * n) * sizeof *values);
    double *firsts = hwnas_alloc((size_t)n * sizeof *firsts);
    bool is_whole = true;
    for (int i = 0; i < n && is_whole; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[members[i]], metric);
        is_whole = v && v->value > 0;
        firsts[i] = is_whole ? v->value : 0;
    }
    for (int i = 0; i < HWNAS_TIE_ROUNDS * n && is_whole; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&turns[i], metric);
        is_whole = v && v->value > 0;
        values[i] = is_whole ? v->value : 0;
    }
    hwnas_status status = HWNAS_OK;
    if (is_whole)
        hwnas_ties_level(values, HWNAS_TIE_ROUNDS, n, firsts);
    for (int i = 0; i < n && is_whole && status == HWNAS_OK; i++) {
        double rounds[HWNAS_TIE_ROUNDS];
        hwnas_value_row row = {.rounds = HWNAS_TIE_ROUNDS};
        for (int r = 0; r < HWNAS_TIE_ROUNDS; r++)
            rounds[r] = values[r * n + i];
        hwnas_sort(rounds, HWNAS_TIE_ROUNDS);
        snprintf(row.metric, sizeof row.metric, "%s", metric);
        row.value = hwnas_quantile(rounds, HWNAS_TIE_ROUNDS, 0.5);
        (void)hwnas_quantile_interval(rounds, HWNAS_TIE_ROUNDS, 0.5, &row.low, &row.high);
        status = hwnas_store_again(s->store, s->trials[members[i]].number, &row, 1);
    }
    free(values);
    free(firsts);
    return status;
}

/* Quantiles far from the middle need more samples than a turn has, and a count of bytes needs none. */
static bool is_levelled(const char *metric)
{
    static const char *const names[] = {"latency.p50", "throughput", "cost", "energy"};
    const hwnas_metric *m = hwnas_metric_of_value(metric);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (m && !strcmp(m->name, names[i]))
            return true;
    return false;
}

static hwnas_status measure_group(study *s, const size_t *members, int n)
{
    hwnas_status status = HWNAS_OK;
    size_t n_turns = (size_t)(HWNAS_TIE_ROUNDS * n);
    hwnas_trial *turns = hwnas_alloc(n_turns * sizeof *turns);
    double started = hwnas_now();
    for (int r = 0; r < HWNAS_TIE_ROUNDS; r++) {
        for (int k = 0; k < n; k++) {
            int i = r % 2 ? n - 1 - k : k; /* forwards, then backwards */
            if (should_stop(s))
                goto out;
            TRY_OUT(take_turn(&turns[r * n + i], s, &s->trials[members[i]]));
        }
        if (hwnas_now() + (hwnas_now() - started) / (r + 1) * (HWNAS_TIE_ROUNDS - 1 - r) > s->deadline)
            goto out; /* it will not be whole in time */
    }
    for (size_t v = 0; v < turns[0].n_values; v++)
        if (is_levelled(turns[0].values[v].metric))
            TRY_OUT(conclude(s, members, n, turns, turns[0].values[v].metric));
out:
    for (size_t i = 0; i < n_turns; i++)
        free(turns[i].values);
    free(turns);
    return status;
}

static bool was_measured_again(const hwnas_trial *trial)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (trial->values[i].rounds)
            return true;
    return false;
}

static hwnas_status measure_groups(study *s)
{
    hwnas_status status = HWNAS_OK;
    size_t *members = hwnas_alloc((s->n + 1) * sizeof *members);
    for (size_t i = 0; i < s->n && !should_stop(s); i++) {
        int n = 0;
        bool is_new = false;
        for (size_t j = i; j < s->n && s->group[i] == i; j++)
            if (root_of(s, j) == i) {
                members[n++] = j;
                is_new |= !was_measured_again(&s->trials[j]);
            }
        if (n > 1 && is_new && hwnas_now() < s->deadline)
            TRY_OUT(measure_group(s, members, n));
    }
out:
    free(members);
    /* One that fails now has not failed as a trial: its first measurement stands. */
    if (status == HWNAS_E_INTERRUPTED || status == HWNAS_OK)
        return HWNAS_OK;
    return status == HWNAS_E_LIBRARY || status == HWNAS_E_IO ? status : HWNAS_OK;
}

hwnas_status hwnas_ties_measure(hwnas_store *store, hwnas_evaluator *evaluator,
                                const hwnas_job *job, const hwnas_space *space,
                                const hwnas_space *walked, double seconds,
                                const volatile sig_atomic_t *stop)
{
    hwnas_status status = HWNAS_OK;
    study s = {.store = store,
               .evaluator = evaluator,
               .job = job,
               .space = space,
               .walked = walked,
               .stop = stop,
               .deadline = hwnas_now() + seconds};
    if (!hwnas_evaluator_measures(evaluator))
        return HWNAS_OK;
    TRY_OUT(hwnas_store_trials(&s.trials, &s.n, store));
    TRY_OUT(hwnas_store_replace(s.trials, s.n, store));
    s.group = hwnas_alloc((s.n + 1) * sizeof *s.group);
    for (size_t i = 0; i < s.n; i++)
        s.group[i] = i;
    for (int f = 0; f < hwnas_n_fronts(job); f++)
        find_groups(&s, f);
    TRY_OUT(measure_groups(&s));
out:
    free(s.group);
    hwnas_trials_free(s.trials, s.n);
    return status;
}
