#include "study/verify_front.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "trial/judge.h"
#include "study/member.h"
#include "study/verified.h"

/* So many wrong networks and none that is right: it is the device that is wrong. */
enum { MAX_FAILURES_IN_A_ROW = 8 };
static const double REF_SHARE = 0.1;

/* The loops of `ref` have a share of the search's time, and of that what one network may take. */
static double ref_seconds_left(const hwnas_session *s)
{
    const double search = s->earlier_seconds + hwnas_now() - s->started;
    const double share = fmax(REF_SHARE * search, HWNAS_VERIFY_REF_SECONDS);
    return fmax(0, fmin(share - s->verify_seconds, HWNAS_VERIFY_REF_SECONDS));
}

/* Without an interruption: what cannot be verified is noted, and no failure of the search. */
static hwnas_status verify_on(hwnas_session *s, const hwnas_trial *trial,
                              const hwnas_candidate *candidate, int device)
{
    const hwnas_row_name row = hwnas_job_row_name(&s->job->goals.devices, device);
    const char *name = row.text;
    hwnas_verified v;
    hwnas_slow_code slow = HWNAS_SLOW_CODE_INIT;
    hwnas_arena *room = hwnas_arena_new();
    hwnas_status found = HWNAS_OK;
    const double start = hwnas_now(), left = ref_seconds_left(s);
    hwnas_status status = hwnas_evaluate_verify(&v, s->setup.evaluator, candidate, device, left);
    if (status == HWNAS_OK)
        found = hwnas_evaluate_slow_code(&slow, room, s->setup.evaluator, candidate, device);
    s->verify_seconds += hwnas_now() - start;
    if (status == HWNAS_E_INTERRUPTED || found == HWNAS_E_INTERRUPTED) {
        hwnas_arena_free(room);
        return HWNAS_E_INTERRUPTED;
    }
    if (status != HWNAS_OK) {
        hwnas_verified_note(s->verified, trial->number, name, NULL, hwnas_last_error()->message);
    } else {
        status = hwnas_verified_judge(
            &v, name, hwnas_evaluate_precision(s->setup.evaluator, candidate, device));
        hwnas_verified_note(s->verified, trial->number, name, &v,
                            status == HWNAS_OK ? NULL : hwnas_last_error()->message);
    }
    hwnas_verified_note_slow(s->verified, trial->number, name, &slow);
    hwnas_arena_free(room);
    return hwnas_verified_save(s->store, s->verified);
}

/* All that is wrong, and nothing right: the last failure, which is recorded still. */
static hwnas_status check_hope(const hwnas_session *s)
{
    size_t n_right, n_wrong;
    hwnas_verified_count(&n_right, &n_wrong, s->verified);
    if (n_right || n_wrong < MAX_FAILURES_IN_A_ROW)
        return HWNAS_OK;
    const hwnas_error last = *hwnas_last_error();
    return hwnas_hint(hwnas_fail(HWNAS_E_WRONG_RESULT, NULL,
                                 "each of the %zu best networks gave a wrong result, last error: "
                                 "%s",
                                 n_wrong, last.message),
                      "the device computes wrong, so its times mean nothing; 'hwnas profile MODEL "
                      "--verify' looks for the cause");
}

static hwnas_status verify_member(hwnas_session *s, const hwnas_trial *trial, int front)
{
    hwnas_status status = HWNAS_OK;
    hwnas_member m = {0};
    for (int d = 0; d < s->job->goals.devices.n; d++) {
        const hwnas_row_name name = hwnas_job_row_name(&s->job->goals.devices, d);
        if ((s->job->goals.is_front_per_device && d != front) ||
            hwnas_evaluator_unverifiable(s->setup.evaluator, d) ||
            hwnas_verified_is_known(s->verified, trial->number, name.text))
            continue;
        if (!m.graph)
            TRY_OUT(hwnas_member_open(&m, trial, s->job, s->setup.space, s->setup.walked));
        TRY_OUT(verify_on(s, trial, &m.candidate, d));
        if (hwnas_verified_is_wrong(s->verified, trial->number)) {
            status = check_hope(s);
            goto out;
        }
    }
out:
    hwnas_member_close(&m);
    return status;
}

hwnas_status hwnas_session_note_unverified(hwnas_session *s)
{
    json_t *skipped = json_object();
    for (int d = 0; d < s->job->goals.devices.n; d++) {
        const char *why = s->job->verifies ? hwnas_evaluator_unverifiable(s->setup.evaluator, d)
                                           : "the job says verify: none";
        if (why)
            json_object_set_new(skipped, hwnas_job_row_name(&s->job->goals.devices, d).text,
                                json_string(why));
    }
    json_object_set_new(s->verified, "skipped", skipped);
    return hwnas_verified_save(s->store, s->verified);
}

static hwnas_status verify_front(hwnas_session *s, const hwnas_trial *trials, size_t n, int front)
{
    hwnas_status status = HWNAS_OK;
    size_t *members = hwnas_alloc((n + 1) * sizeof *members);
    const size_t n_members = hwnas_front_find(members, trials, n, &s->job->goals, front);
    for (size_t i = 0; i < n_members && !hwnas_session_should_stop(s); i++)
        TRY_OUT(verify_member(s, &trials[members[i]], front));
out:
    free(members);
    return status;
}

hwnas_status hwnas_session_verify(hwnas_session *s, bool *is_right)
{
    hwnas_status status;
    hwnas_trial *trials = NULL;
    size_t n = 0, n_right, n_before, n_wrong;
    *is_right = true;
    TRY(hwnas_session_note_unverified(s));
    if (!s->job->verifies || !s->job->goals.devices.n)
        return HWNAS_OK;
    hwnas_verified_count(&n_right, &n_before, s->verified);
    TRY_OUT(hwnas_store_trials(&trials, &n, s->store));
    TRY_OUT(hwnas_store_replace(trials, n, s->store));
    hwnas_verified_apply(trials, n, s->verified, &s->job->goals);
    for (int f = 0; f < hwnas_n_fronts(&s->job->goals); f++)
        TRY_OUT(verify_front(s, trials, n, f));
    hwnas_verified_count(&n_right, &n_wrong, s->verified);
    *is_right = n_wrong == n_before;
out:
    hwnas_trials_free(trials, n);
    return status;
}
