/* thorough.c: the front of a quick device, measured again; thorough.h says how. */
#include "study/thorough.h"

#include <stdio.h>
#include <stdlib.h>

#include "study/budget.h"
#include "study/member.h"
#include "study/study_facts.h"
#include "trial/judge.h"

#define FACT "thorough"

hwnas_status hwnas_thorough_load(json_t **out, hwnas_store *store)
{
    return hwnas_facts_json(out, store, FACT);
}

static void make_key(char *out, size_t size, const hwnas_session *s, uint64_t number, int device)
{
    snprintf(out, size, "%llu %.64s", (unsigned long long)number,
             s->job->goals.devices.rows[device].name);
}

/* ---- One network ---- */

static hwnas_status measure(hwnas_trial *fresh, hwnas_session *s, const hwnas_trial *trial,
                            int device)
{
    hwnas_member member;
    hwnas_status status =
        hwnas_member_open(&member, trial, s->job, s->setup.space, s->setup.walked);
    if (status == HWNAS_OK)
        status = hwnas_evaluate_on(fresh, s->setup.evaluator, &member.candidate, device,
                                   s->job->max_seconds);
    hwnas_member_close(&member);
    return status;
}

static hwnas_status publish(hwnas_session *s, const hwnas_trial *trial, const hwnas_trial *fresh)
{
    for (size_t i = 0; i < fresh->n_values; i++) {
        hwnas_value_row v = fresh->values[i];
        v.rounds = 1;
        if (hwnas_trial_value(trial, v.metric))
            TRY(hwnas_store_again(s->store, trial->number, &v, 1));
    }
    return HWNAS_OK;
}

static json_t *tell(const hwnas_session *s, const hwnas_trial *trial, const hwnas_trial *fresh,
                    int device)
{
    const hwnas_goal p50 =
        hwnas_goal_of(hwnas_metric_of(HWNAS_LATENCY), device, &s->job->goals.devices);
    const hwnas_value_row *first = hwnas_trial_value(trial, p50.name);
    const hwnas_value_row *value = hwnas_trial_value(fresh, p50.name);
    json_t *note = json_pack("{s:I, s:s}", "trial", (json_int_t)trial->number, "device",
                             hwnas_evaluator_thorough(s->setup.evaluator, device));
    if (first && value) {
        json_object_set_new(note, "first", json_real(first->value));
        json_object_set_new(note, "value", json_real(value->value));
    }
    return note;
}

/* A failure of the network alone leaves its first values. */
static hwnas_status measure_one(hwnas_session *s, json_t *notes, const hwnas_trial *trial,
                                int device)
{
    char key[96];
    hwnas_trial fresh = {0};
    hwnas_status status = measure(&fresh, s, trial, device);
    json_t *note = tell(s, trial, &fresh, device);
    if (status == HWNAS_OK) {
        status = publish(s, trial, &fresh);
    } else if (!hwnas_trial_is_fatal(status) && status != HWNAS_E_INTERRUPTED) {
        json_object_set_new(note, "failed", json_string(hwnas_last_error()->message));
        hwnas_error_clear();
        status = HWNAS_OK;
    }
    hwnas_trial_done(&fresh);
    make_key(key, sizeof key, s, trial->number, device);
    json_object_set_new(notes, key, note);
    return status == HWNAS_OK ? hwnas_facts_set_json(s->store, FACT, notes) : status;
}

/* ---- The fronts ---- */

static bool has_time(const hwnas_session *s)
{
    return !hwnas_session_should_stop(s) &&
           (!(s->job->max_minutes > 0) ||
            hwnas_session_seconds(s) + s->job->max_seconds < 60 * s->job->max_minutes);
}

/* The first network of a front that was not measured yet. */
static hwnas_status measure_next(bool *is_over, hwnas_session *s, json_t *notes, int front,
                                 int device)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trials = NULL;
    size_t n = 0, *members = NULL;
    char key[96];
    *is_over = true;
    TRY_OUT(hwnas_store_trials(&trials, &n, s->store));
    TRY_OUT(hwnas_store_replace(trials, n, s->store));
    hwnas_verified_apply(trials, n, s->verified, &s->job->goals);
    members = hwnas_alloc((n + 1) * sizeof *members);
    const size_t n_front = hwnas_front_find(members, trials, n, &s->job->goals, front);
    for (size_t i = 0; i < n_front && *is_over && has_time(s); i++) {
        make_key(key, sizeof key, s, trials[members[i]].number, device);
        if (json_object_get(notes, key))
            continue;
        TRY_OUT(measure_one(s, notes, &trials[members[i]], device));
        *is_over = false;
    }
out:
    free(members);
    hwnas_trials_free(trials, n);
    return status;
}

static hwnas_status measure_on(hwnas_session *s, json_t *notes, int device)
{
    TRY(hwnas_evaluator_set_thorough(s->setup.evaluator, device, true));
    for (int f = 0; f < hwnas_n_fronts(&s->job->goals); f++) {
        bool is_over = s->job->goals.is_front_per_device && device != f;
        while (!is_over)
            TRY(measure_next(&is_over, s, notes, f, device));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_session_measure_thoroughly(hwnas_session *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_evaluator *e = s->setup.evaluator;
    json_t *notes = NULL;
    TRY_OUT(hwnas_thorough_load(&notes, s->store));
    if (!notes)
        notes = json_object();
    for (int d = 0; d < s->job->goals.devices.n && has_time(s); d++) {
        if (!hwnas_evaluator_thorough(e, d) || !hwnas_evaluator_device(e, d))
            continue;
        status = measure_on(s, notes, d);
        if (status == HWNAS_E_INTERRUPTED)
            status = HWNAS_OK;
        TRY_OUT(status);
        TRY_OUT(hwnas_evaluator_set_thorough(e, d, false));
    }
out:
    json_decref(notes);
    return status;
}
