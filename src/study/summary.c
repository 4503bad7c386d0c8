#include "study/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "store/outline.h"
#include "study/confirm.h"
#include "study/thorough.h"
#include "study/held.h"
#include "study/study_facts.h"
#include "study/identity.h"
#include "study/other_limits.h"
#include "trial/judge.h"
#include "trial/skip.h"
#include "study/verified.h"

/* ---- Details ---- */

/* What is counted of details, while trials are read. */
typedef struct details {
    double run_seconds;
    size_t n, room; /* trials that were estimated first */
    struct remeasured {
        size_t trial;
        double estimate;
    } * remeasured;
} details;

static void see_detail(void *context, size_t trial, double run_seconds, double estimate)
{
    details *d = context;
    d->run_seconds += run_seconds;
    if (isnan(estimate))
        return;
    HWNAS_GROW(d->remeasured, d->n, d->room);
    d->remeasured[d->n++] = (struct remeasured){trial, estimate};
}

/* The quantity that estimates are of, on the first device. */
static hwnas_goal estimated_goal(const hwnas_summary *s)
{
    return hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), 0, &s->job.goals.devices);
}

static void count_details(hwnas_summary *s, const details *d)
{
    double *errors = hwnas_alloc((d->n + 1) * sizeof *errors);
    const hwnas_goal goal = d->n ? estimated_goal(s) : (hwnas_goal){0};
    size_t n_errors = 0;
    s->run_seconds = d->run_seconds;
    for (size_t i = 0; i < d->n; i++) {
        const hwnas_trial *trial = &s->trials[d->remeasured[i].trial];
        const hwnas_value_row *v = trial->is_finished ? hwnas_trial_value(trial, goal.name) : NULL;
        s->n_remeasured += trial->is_finished;
        if (v && v->value > 0 && !trial->is_unstable)
            errors[n_errors++] = fabs(d->remeasured[i].estimate / v->value - 1);
    }
    hwnas_sort(errors, n_errors);
    s->estimate_error = n_errors ? hwnas_quantile(errors, n_errors, 0.5) : NAN;
    free(errors);
}

/* ---- Fronts and counts ---- */

static void find_fronts(hwnas_summary *s)
{
    s->n_fronts = hwnas_n_fronts(&s->job.goals);
    for (int f = 0; f < s->n_fronts; f++) {
        hwnas_summary_front *front = &s->fronts[f];
        front->device = s->job.goals.is_front_per_device ? f : -1;
        front->trials = hwnas_alloc((s->n_trials + 1) * sizeof *front->trials);
        front->n = hwnas_front_find(front->trials, s->trials, s->n_trials, &s->job.goals, f);
        front->winner = front->n ? (long)front->trials[0] : -1;
        hwnas_indicators_find(&front->indicators, s->trials, s->n_trials, front->trials, front->n,
                              &s->job.goals, f);
    }
}

/* To the limits: what was only estimated comes behind all that was measured. */
static bool is_closer(const hwnas_trial *a, const hwnas_trial *b)
{
    const bool a_is_estimated = hwnas_trial_is_estimated(a);
    if (a_is_estimated != hwnas_trial_is_estimated(b))
        return !a_is_estimated;
    return a->violation < b->violation;
}

static void count(hwnas_summary *s)
{
    s->closest = -1;
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_trial *trial = &s->trials[i];
        bool is_feasible = false;
        if (!trial->is_finished)
            continue;
        s->n_finished++;
        s->n_failed += trial->status != HWNAS_OK;
        s->n_short += trial->rung > 0;
        s->n_left_out += hwnas_trial_value_of(trial, HWNAS_LEFT_OUT) != NULL;
        s->n_estimated += hwnas_trial_is_estimated(trial);
        s->n_ended_early += hwnas_trial_value_of(trial, HWNAS_OF_CURVE) != NULL;
        hwnas_evidence_add(&s->evidence, trial, &s->job.goals);
        for (int f = 0; f < s->n_fronts; f++)
            is_feasible |= hwnas_trial_is_feasible(trial, &s->job.goals, f);
        s->n_feasible += is_feasible;
        if (!is_feasible && !trial->rung && trial->violation < INFINITY &&
            (s->closest < 0 || is_closer(trial, &s->trials[s->closest])))
            s->closest = (long)i;
    }
}

long hwnas_summary_winner(const hwnas_summary *s)
{
    for (int f = 0; f < s->n_fronts; f++)
        if (s->fronts[f].winner >= 0)
            return s->fronts[f].winner;
    return -1;
}

/* ---- Reading ---- */

/* A damaged fact says nothing. */
static size_t count_in(const json_t *fact, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(fact, key));
    return n > 0 ? (size_t)n : 0;
}

static hwnas_status read_facts(hwnas_summary *s, hwnas_store *store)
{
    const hwnas_place place = {.file = s->study};
    hwnas_status status = HWNAS_OK;
    json_t *wall = NULL, *warm = NULL, *waiting = NULL;
    hwnas_choice_of_strategy choice = {0};
    bool has_choice;
    TRY_OUT(hwnas_facts_json(&s->identity, store, "job"));
    if (s->identity && !json_string_value(json_object_get(s->identity, "space"))) {
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the study does not say what it searched for");
        goto out;
    }
    if (!s->identity) {
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the search was ended before it began"),
                       "'hwnas search JOB.yaml --study %s --resume' begins it", s->study);
        goto out;
    }
    TRY_OUT(hwnas_facts_json(&s->devices, store, "devices"));
    TRY_OUT(hwnas_facts_json(&s->conditions, store, "conditions"));
    TRY_OUT(hwnas_facts_json(&wall, store, "wall_seconds"));
    TRY_OUT(hwnas_facts_json(&warm, store, "warm_start"));
    TRY_OUT(hwnas_store_get(&s->ended, store, "ended"));
    TRY_OUT(hwnas_held_load(&s->held, store));
    TRY_OUT(hwnas_facts_choice(&choice, &has_choice, store));
    s->n_among = choice.n_among;
    TRY_OUT(hwnas_thorough_load(&s->thorough, store));
    TRY_OUT(hwnas_confirmed_load(&s->confirmed, store));
    TRY_OUT(hwnas_verified_load(&s->verified, store));
    TRY_OUT(hwnas_facts_json(&waiting, store, HWNAS_WAITING_FACT));
    s->n_waiting = count_in(waiting, "networks");
    s->n_waiting_trained = count_in(waiting, "trained");
    s->n_untrained = count_in(waiting, "untrained");
    s->waits_for_time = json_is_false(json_object_get(waiting, "has_time"));
    s->wall_seconds = json_number_value(wall);
    s->n_warm = (uint64_t)json_integer_value(json_object_get(warm, "trials"));
    s->n_outside = (uint64_t)json_integer_value(json_object_get(warm, "outside"));
    status = hwnas_job_goals(&s->job, s->identity);
out:
    json_decref(wall);
    json_decref(warm);
    json_decref(waiting);
    return status;
}

static hwnas_status read_whole(hwnas_summary *s, hwnas_store *store, details *d)
{
    TRY(hwnas_store_trials(&s->trials, &s->n_trials, store));
    for (size_t i = 0; i < s->n_trials; i++) {
        hwnas_event event;
        if (!s->trials[i].detail)
            continue;
        hwnas_event_read_detail(&event, s->trials[i].detail);
        see_detail(d, i, event.run_seconds, event.estimate);
    }
    return HWNAS_OK;
}

static size_t list_judged(const char *metrics[HWNAS_MOST_GOALS], const hwnas_goals *of)
{
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n_goals = hwnas_goals_list(goals, of);
    size_t n = 0;
    for (int g = 0; g < n_goals; g++) {
        size_t k = 0;
        while (k < n && strcmp(metrics[k], goals[g]->name))
            k++;
        metrics[k] = goals[g]->name;
        n += k == n;
    }
    return n;
}

hwnas_status hwnas_summary_outlines(hwnas_trial **out, size_t *n, hwnas_store *store,
                                    const hwnas_goals *goals)
{
    const char *metrics[HWNAS_MOST_GOALS];
    const size_t n_metrics = list_judged(metrics, goals);
    return hwnas_store_outlines(
        out, n, store, &(hwnas_outline_wish){.n_metrics = n_metrics, .metrics = metrics});
}

static hwnas_status read_outlines(hwnas_summary *s, hwnas_store *store, details *d)
{
    const char *metrics[HWNAS_MOST_GOALS + 1];
    const hwnas_goal estimated = estimated_goal(s);
    size_t n_metrics = list_judged(metrics, &s->job.goals);
    if (s->job.goals.devices.n)
        metrics[n_metrics++] = estimated.name; /* once more, if it is judged: that does no harm */
    return hwnas_store_outlines(
        &s->trials, &s->n_trials, store,
        &(hwnas_outline_wish){
            .n_metrics = n_metrics, .metrics = metrics, .see_detail = see_detail, .context = d});
}

/* Trials that are to be whole, by their indices. */
typedef struct shown {
    hwnas_trial **trials;
    size_t n, room;
    bool *has; /* by index */
} shown;

static void show(shown *all, const hwnas_summary *s, size_t which)
{
    if (all->has[which] || s->trials[which].code)
        return;
    all->has[which] = true;
    HWNAS_GROW(all->trials, all->n, all->room);
    all->trials[all->n++] = &s->trials[which];
}

static hwnas_status fill_shown(hwnas_summary *s, hwnas_store *store)
{
    shown all = {.has = hwnas_alloc((s->n_trials + 1) * sizeof *all.has)};
    for (int f = 0; f < s->n_fronts; f++)
        for (size_t i = 0; i < s->fronts[f].n; i++)
            show(&all, s, s->fronts[f].trials[i]);
    if (s->closest >= 0 && hwnas_summary_winner(s) < 0)
        show(&all, s, (size_t)s->closest);
    for (size_t i = 0; i < s->n_trials; i++) /* that their results are wrong was found later */
        if (s->trials[i].is_finished && (s->trials[i].status != HWNAS_OK ||
                                         hwnas_verified_is_wrong(s->verified, s->trials[i].number)))
            show(&all, s, i);
    const hwnas_status status = hwnas_store_fill(all.trials, all.n, store);
    free(all.trials);
    free(all.has);
    TRY(status);
    /* As was done to the outlines. */
    TRY(hwnas_store_replace(s->trials, s->n_trials, store));
    hwnas_verified_apply(s->trials, s->n_trials, s->verified, &s->job.goals);
    return HWNAS_OK;
}

static hwnas_status read(hwnas_summary *s, hwnas_store *store, const hwnas_summary_view *view)
{
    details d = {0};
    TRY(read_facts(s, store));
    if (view->constraints) {
        s->has_other_limits = true;
        /* Other limits are met by other networks. */
        s->n_waiting = s->n_waiting_trained = s->n_untrained = 0;
        TRY(hwnas_other_limits_read(&s->job, s->identity, view->constraints));
    }
    hwnas_status status = view->is_brief ? read_outlines(s, store, &d) : read_whole(s, store, &d);
    TRY_OUT(status);
    TRY_OUT(hwnas_store_replace(s->trials, s->n_trials, store));
    if (view->constraints)
        hwnas_other_limits_judge(s);
    hwnas_verified_apply(s->trials, s->n_trials, s->verified, &s->job.goals);
    find_fronts(s);
    count(s);
    count_details(s, &d);
    if (view->is_brief)
        status = fill_shown(s, store);
out:
    free(d.remeasured);
    return status;
}

hwnas_status hwnas_summary_load_as(hwnas_summary **out, hwnas_store *store, const char *study,
                                   const hwnas_summary_view *view)
{
    hwnas_summary *s = hwnas_alloc(sizeof *s);
    s->study = hwnas_strdup(study);
    hwnas_status status = hwnas_store_begin_reading(store);
    if (status == HWNAS_OK)
        status = hwnas_store_end(store, read(s, store, view));
    if (status == HWNAS_OK)
        *out = s;
    else
        hwnas_summary_free(s);
    return status;
}

hwnas_status hwnas_summary_load(hwnas_summary **out, hwnas_store *store, const char *study)
{
    return hwnas_summary_load_as(out, store, study, &(hwnas_summary_view){0});
}

void hwnas_summary_free(hwnas_summary *s)
{
    if (!s)
        return;
    hwnas_trials_free(s->trials, s->n_trials);
    json_decref(s->identity);
    json_decref(s->devices);
    json_decref(s->conditions);
    json_decref(s->thorough);
    json_decref(s->confirmed);
    json_decref(s->held);
    json_decref(s->verified);
    for (int f = 0; f < s->n_fronts; f++)
        free(s->fronts[f].trials);
    free(s->study);
    free(s->ended);
    free(s->note);
    free(s);
}
