#include "study/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "study/confirm.h"
#include "study/held.h"
#include "study/study_facts.h"
#include "study/identity.h"
#include "trial/judge.h"
#include "trial/skip.h"
#include "study/verified.h"

static json_t *detail_of(const hwnas_trial *trial)
{
    return trial->detail ? json_loads(trial->detail, 0, NULL) : NULL;
}

/* Adds what is in the details of a trial. `errors` has `n_errors` of estimates that were
 * remeasured.
 */
static void count_detail(hwnas_summary *s, double *errors, size_t *n_errors,
                         const hwnas_trial *trial)
{
    json_t *detail = detail_of(trial);
    const json_t *estimate = json_object_get(detail, "estimate");
    const hwnas_metric *p50 = hwnas_metric_of(HWNAS_LATENCY);
    const hwnas_value_row *v =
        estimate ? hwnas_trial_value(trial, hwnas_goal_of(p50, 0, &s->job.goals.devices).name)
                 : NULL;
    s->run_seconds += json_number_value(json_object_get(detail, "run_seconds"));
    s->n_remeasured += estimate != NULL;
    if (v && v->value > 0 && !trial->is_unstable)
        errors[(*n_errors)++] = fabs(json_number_value(estimate) / v->value - 1);
    json_decref(detail);
}

static void find_fronts(hwnas_summary *s)
{
    s->n_fronts = hwnas_n_fronts(&s->job.goals);
    for (int f = 0; f < s->n_fronts; f++) {
        hwnas_summary_front *front = &s->fronts[f];
        front->device = s->job.goals.is_front_per_device ? f : -1;
        front->trials = hwnas_alloc((s->n_trials + 1) * sizeof *front->trials);
        front->n = hwnas_front_find(front->trials, s->trials, s->n_trials, &s->job.goals, f);
        front->winner = front->n ? (long)front->trials[0] : -1;
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
    double *errors = hwnas_alloc((s->n_trials + 1) * sizeof *errors);
    size_t n_errors = 0;
    s->closest = -1;
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_trial *trial = &s->trials[i];
        bool is_feasible = false;
        if (!trial->is_finished)
            continue;
        s->n_finished++;
        s->n_failed += trial->status != HWNAS_OK;
        s->n_short += trial->rung > 0;
        s->n_estimated += hwnas_trial_is_estimated(trial);
        hwnas_evidence_add(&s->evidence, trial, &s->job.goals);
        count_detail(s, errors, &n_errors, trial);
        for (int f = 0; f < s->n_fronts; f++)
            is_feasible |= hwnas_trial_is_feasible(trial, &s->job.goals, f);
        s->n_feasible += is_feasible;
        if (!is_feasible && !trial->rung && trial->violation < INFINITY &&
            (s->closest < 0 || is_closer(trial, &s->trials[s->closest])))
            s->closest = (long)i;
    }
    hwnas_sort(errors, n_errors);
    s->estimate_error = n_errors ? hwnas_quantile(errors, n_errors, 0.5) : NAN;
    free(errors);
}

long hwnas_summary_winner(const hwnas_summary *s)
{
    for (int f = 0; f < s->n_fronts; f++)
        if (s->fronts[f].winner >= 0)
            return s->fronts[f].winner;
    return -1;
}

hwnas_status hwnas_summary_load(hwnas_summary **out, hwnas_store *store, const char *study)
{
    hwnas_status status = HWNAS_OK;
    hwnas_summary *s = hwnas_alloc(sizeof *s);
    json_t *wall = NULL, *warm = NULL;
    s->study = hwnas_strdup(study);
    TRY_OUT(hwnas_facts_json(&s->identity, store, "job"));
    if (s->identity && !json_string_value(json_object_get(s->identity, "space"))) {
        hwnas_place place = {.file = study};
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the study does not say what it searched for");
        goto out;
    }
    if (!s->identity) {
        hwnas_place place = {.file = study};
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the search was ended before it began"),
                       "'hwnas search JOB.yaml --study %s --resume' begins it", study);
        goto out;
    }
    TRY_OUT(hwnas_facts_json(&s->devices, store, "devices"));
    TRY_OUT(hwnas_facts_json(&s->conditions, store, "conditions"));
    TRY_OUT(hwnas_facts_json(&wall, store, "wall_seconds"));
    TRY_OUT(hwnas_facts_json(&warm, store, "warm_start"));
    TRY_OUT(hwnas_store_get(&s->ended, store, "ended"));
    s->wall_seconds = json_number_value(wall);
    s->n_warm = (uint64_t)json_integer_value(json_object_get(warm, "trials"));
    s->n_outside = (uint64_t)json_integer_value(json_object_get(warm, "outside"));
    TRY_OUT(hwnas_job_goals(&s->job, s->identity));
    TRY_OUT(hwnas_store_trials(&s->trials, &s->n_trials, store));
    TRY_OUT(hwnas_store_replace(s->trials, s->n_trials, store));
    TRY_OUT(hwnas_held_load(&s->held, store));
    TRY_OUT(hwnas_confirmed_load(&s->confirmed, store));
    TRY_OUT(hwnas_verified_load(&s->verified, store));
    hwnas_verified_apply(s->trials, s->n_trials, s->verified, &s->job.goals);
    find_fronts(s);
    count(s);
    *out = s;
    s = NULL;
out:
    json_decref(wall);
    json_decref(warm);
    hwnas_summary_free(s);
    return status;
}

void hwnas_summary_free(hwnas_summary *s)
{
    if (!s)
        return;
    hwnas_trials_free(s->trials, s->n_trials);
    json_decref(s->identity);
    json_decref(s->devices);
    json_decref(s->conditions);
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
