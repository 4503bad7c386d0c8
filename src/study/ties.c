#include "study/ties.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "trial/judge.h"
#include "study/member.h"
#include "study/turns.h"
#include "study/verified.h"

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
    size_t *group; /* hwnas_ties_find() */
} study;

/* ---- Finding groups ---- */

typedef struct groups {
    const hwnas_goals *goals;
    const hwnas_trial *trials;
    size_t n, *group; /* of each trial: its own index, or that of an earlier one of its group */
} groups;

static size_t root_of(const size_t *group, size_t i)
{
    while (group[i] != i)
        i = group[i];
    return i;
}

static void join(size_t *group, size_t a, size_t b)
{
    size_t x = root_of(group, a), y = root_of(group, b);
    group[x > y ? x : y] = x > y ? y : x;
}

/* The same trials with intervals of no width: then values alone decide. */
static hwnas_trial *without_intervals(const groups *g)
{
    hwnas_trial *plain = hwnas_alloc((g->n + 1) * sizeof *plain);
    for (size_t i = 0; i < g->n; i++) {
        plain[i] = g->trials[i];
        plain[i].values = hwnas_alloc((plain[i].n_values + 1) * sizeof *plain[i].values);
        for (size_t k = 0; k < plain[i].n_values; k++) {
            hwnas_value_row *v = &plain[i].values[k];
            *v = g->trials[i].values[k];
            if (plain[i].is_finished && plain[i].violation == 0)
                v->low = v->high = v->value;
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
static bool covers(const groups *g, const hwnas_trial *a, const hwnas_trial *b, int front)
{
    for (int i = 0; i < g->goals->n_objectives; i++) {
        const hwnas_goal *goal = &g->goals->objectives[i];
        if (hwnas_goal_counts(goal, g->goals, front) &&
            hwnas_value_compare(hwnas_trial_value(a, goal->name), hwnas_trial_value(b, goal->name),
                                goal->metric) > 0)
            return false;
    }
    return true;
}

static void find_groups(groups *g, int front)
{
    size_t *with = hwnas_alloc((g->n + 1) * sizeof *with);
    size_t *alone = hwnas_alloc((g->n + 1) * sizeof *alone);
    hwnas_trial *plain = without_intervals(g);
    size_t n_with = hwnas_front_find(with, g->trials, g->n, g->goals, front);
    size_t n_alone = hwnas_front_find(alone, plain, g->n, g->goals, front);
    for (size_t i = 0; i < n_alone; i++) {
        if (has(with, n_with, alone[i]) ||
            !hwnas_trial_is_feasible(&g->trials[alone[i]], g->goals, front))
            continue;
        for (size_t j = 0; j < n_with; j++)
            if (covers(g, &g->trials[with[j]], &g->trials[alone[i]], front))
                join(g->group, alone[i], with[j]);
    }
    for (size_t i = 0; i < g->n; i++)
        free(plain[i].values);
    free(plain);
    free(with);
    free(alone);
}

void hwnas_ties_find(size_t *group, const hwnas_trial *trials, size_t n, const hwnas_goals *goals)
{
    groups g = {.goals = goals, .trials = trials, .n = n, .group = group};
    for (size_t i = 0; i < n; i++)
        group[i] = i;
    for (int f = 0; f < hwnas_n_fronts(goals); f++)
        find_groups(&g, f);
    for (size_t i = 0; i < n; i++)
        group[i] = root_of(group, i);
}

/* ---- Measuring ---- */

static bool should_stop(const study *s)
{
    return s->stop && *s->stop;
}

/* The members of a group as they are to be measured. */
typedef struct group {
    const size_t *trials;
    int n;
    hwnas_member *members;
    hwnas_candidate *candidates; /* of these */
} group;

static void group_done(group *g)
{
    for (int i = 0; i < g->n; i++)
        hwnas_member_close(&g->members[i]);
    free(g->members);
    free(g->candidates);
}

/* `out` is to be done with even after a failure. */
static hwnas_status group_open(group *out, const study *s, const size_t *trials, int n)
{
    *out = (group){.trials = trials, .n = n};
    out->members = hwnas_alloc((size_t)n * sizeof *out->members);
    out->candidates = hwnas_alloc((size_t)n * sizeof *out->candidates);
    for (int i = 0; i < n; i++) {
        TRY(hwnas_member_open(&out->members[i], &s->trials[trials[i]], s->job, s->space,
                              s->walked));
        out->candidates[i] = out->members[i].candidate;
    }
    return HWNAS_OK;
}

/* What the rounds say of one metric of the group's members; a metric that a turn lacks is left. */
static hwnas_status conclude(study *s, const group *g, const hwnas_trial *turns, int n_rounds,
                             const char *metric)
{
    const int n = g->n;
    double *values = hwnas_alloc((size_t)(n_rounds * n) * sizeof *values);
    double *firsts = hwnas_alloc((size_t)n * sizeof *firsts);
    double *rounds = hwnas_alloc((size_t)n_rounds * sizeof *rounds);
    bool is_whole = true;
    for (int i = 0; i < n && is_whole; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&s->trials[g->trials[i]], metric);
        is_whole = v && v->value > 0;
        firsts[i] = is_whole ? v->value : 0;
    }
    for (int i = 0; i < n_rounds * n && is_whole; i++) {
        const hwnas_value_row *v = hwnas_trial_value(&turns[i], metric);
        is_whole = v && v->value > 0;
        values[i] = is_whole ? v->value : 0;
    }
    hwnas_status status = HWNAS_OK;
    if (is_whole)
        hwnas_ties_level(values, n_rounds, n, firsts);
    for (int i = 0; i < n && is_whole && status == HWNAS_OK; i++) {
        hwnas_value_row row = {.rounds = n_rounds};
        for (int r = 0; r < n_rounds; r++)
            rounds[r] = values[r * n + i];
        hwnas_sort(rounds, (size_t)n_rounds);
        row.metric = metric;
        row.value = hwnas_quantile(rounds, (size_t)n_rounds, 0.5);
        (void)hwnas_quantile_interval(rounds, (size_t)n_rounds, 0.5, &row.low, &row.high);
        status = hwnas_store_again(s->store, s->trials[g->trials[i]].number, &row, 1);
    }
    free(values);
    free(firsts);
    free(rounds);
    return status;
}

static hwnas_status conclude_all(study *s, const group *g, const hwnas_trial *turns, int n_rounds)
{
    for (size_t v = 0; n_rounds > 0 && v < turns[0].n_values; v++)
        if (hwnas_metric_is_levelled(hwnas_metric_of_value(turns[0].values[v].metric)))
            TRY(conclude(s, g, turns, n_rounds, turns[0].values[v].metric));
    return HWNAS_OK;
}

static hwnas_status measure_on(study *s, const group *g, int device, bool wants_all)
{
    hwnas_turns turns;
    TRY(hwnas_turns_take(&turns, s->evaluator, g->candidates, g->n, device, s->job->max_seconds,
                         wants_all, s->stop));
    const hwnas_status status = turns.n_rounds < HWNAS_TURN_LEAST
                                    ? HWNAS_OK
                                    : conclude_all(s, g, turns.rows, turns.n_rounds);
    hwnas_turns_done(&turns);
    return status;
}

static bool wants_energy(const hwnas_job *job)
{
    for (int i = 0; i < job->goals.n_objectives; i++)
        if (job->goals.objectives[i].metric->of == HWNAS_ENERGY)
            return true;
    return false;
}

static hwnas_status measure_group(study *s, const size_t *members, int n)
{
    hwnas_status status;
    group g;
    const double budget = hwnas_turns_budget(n, s->job->max_seconds);
    TRY_OUT(group_open(&g, s, members, n));
    for (int d = 0; d < s->job->goals.devices.n; d++) {
        if (!hwnas_evaluator_device(s->evaluator, d) ||
            hwnas_evaluator_thorough(s->evaluator, d)) /* is measured otherwise: thorough.h */
            continue;
        if (should_stop(s) || hwnas_now() + budget > s->deadline)
            goto out; /* it will not be whole in time */
        TRY_OUT(measure_on(s, &g, d, wants_energy(s->job)));
    }
out:
    group_done(&g);
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
            if (s->group[j] == i) {
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
    json_t *verified = NULL;
    if (!hwnas_evaluator_measures(evaluator))
        return HWNAS_OK;
    TRY_OUT(hwnas_store_trials(&s.trials, &s.n, store));
    TRY_OUT(hwnas_store_replace(s.trials, s.n, store));
    TRY_OUT(hwnas_verified_load(&verified, store));
    hwnas_verified_apply(s.trials, s.n, verified, &job->goals);
    s.group = hwnas_alloc((s.n + 1) * sizeof *s.group);
    hwnas_ties_find(s.group, s.trials, s.n, &job->goals);
    TRY_OUT(measure_groups(&s));
out:
    free(s.group);
    json_decref(verified);
    hwnas_trials_free(s.trials, s.n);
    return status;
}
