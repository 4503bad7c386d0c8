#include "study/ask_tell.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "study/budget.h"

/* ---- Ask ---- */

hwnas_asked *hwnas_asked_add(hwnas_session *s, uint64_t number, const hwnas_arch *walked)
{
    hwnas_asked *asked = hwnas_alloc(sizeof *asked);
    asked->trial.number = number;
    asked->walked = hwnas_arch_copy(walked);
    HWNAS_GROW(s->asked, s->n_asked, s->asked_room);
    return s->asked[s->n_asked++] = asked;
}

void hwnas_asked_remove(hwnas_session *s, const hwnas_asked *asked)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_asked; i++)
        if (s->asked[i] != asked)
            s->asked[n++] = s->asked[i];
    s->n_asked = n;
}

hwnas_status hwnas_session_ask_again(hwnas_session *s, uint64_t number, const hwnas_arch *walked)
{
    const bool runs_again = s->runs_again;
    hwnas_asked *asked = hwnas_asked_add(s, number, walked);
    asked->is_again = true;
    /* Another encoding may have been told meanwhile; this one is open all the same. */
    s->runs_again = true;
    hwnas_status status = hwnas_session_evaluate(s, &asked->trial, walked, false, NULL);
    s->runs_again = runs_again;
    return status;
}

static hwnas_status give(const hwnas_asked **out, hwnas_asked *asked)
{
    asked->is_given = true;
    asked->since = hwnas_now();
    *out = asked;
    return HWNAS_OK;
}

hwnas_status hwnas_asked_settle(hwnas_session *s, hwnas_asked *asked)
{
    hwnas_asked_remove(s, asked);
    const hwnas_status status = hwnas_session_absorb(s, &asked->trial, asked->walked);
    hwnas_asked_free(asked);
    return status == HWNAS_OK ? hwnas_session_check_hope(s) : status;
}

/* The strategy's next proposal is in s->proposed, unless it has none. */
static hwnas_status find_proposal(hwnas_session *s)
{
    if (s->proposed)
        return HWNAS_OK;
    hwnas_arch *walked = hwnas_arch_new(s->setup.walked);
    const hwnas_status status = hwnas_session_propose(s, walked, &s->proposed_rung);
    if (status == HWNAS_OK && !s->exhausted)
        s->proposed = walked;
    else
        hwnas_arch_free(walked);
    return status;
}

/* The next proposal, evaluated as far as that is free; *out NULL: it is a finished trial, or there
 * is none. A failure before it is a trial leaves the session as it was. */
static hwnas_status propose(hwnas_asked **out, hwnas_session *s)
{
    const int n_failures = s->n_failures_in_a_row;
    *out = NULL;
    TRY(find_proposal(s));
    if (s->exhausted)
        return HWNAS_OK;
    hwnas_asked *asked = hwnas_asked_add(s, s->next, s->proposed);
    asked->trial.rung = s->proposed_rung;
    hwnas_status status = hwnas_session_evaluate(s, &asked->trial, s->proposed, false, NULL);
    const bool is_open = asked->trial.status == HWNAS_OK && asked->trial.violation == 0 &&
                         hwnas_evaluate_awaits(s->setup.evaluator, &asked->trial);
    if (status == HWNAS_OK)
        status = is_open ? hwnas_session_start_asked(s, &asked->trial)
                         : hwnas_session_write_whole(s, &asked->trial);
    if (status != HWNAS_OK) {
        s->n_failures_in_a_row = n_failures;
        hwnas_asked_remove(s, asked);
        hwnas_asked_free(asked);
        return status;
    }
    s->next++;
    hwnas_arch_free(s->proposed);
    s->proposed = NULL;
    if (!is_open)
        return hwnas_asked_settle(s, asked);
    *out = asked;
    return HWNAS_OK;
}

/* Takes `why`. */
static hwnas_status fail_over(hwnas_session *s, char *why)
{
    hwnas_status status = s->n_asked ? HWNAS_OK : hwnas_store_set(s->store, "ended", why);
    if (status == HWNAS_OK) {
        status = hwnas_fail(HWNAS_E_EXHAUSTED, NULL, "there is no other trial to be made: %s", why);
        if (s->n_asked)
            hwnas_hint(status, "%zu that were asked are still to be told", s->n_asked);
    }
    free(why);
    return status;
}

hwnas_status hwnas_session_ask(const hwnas_asked **out, hwnas_session *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_asked *asked = NULL;
    char *end = NULL;
    for (size_t i = 0; i < s->n_asked; i++)
        if (!s->asked[i]->is_given)
            return give(out, s->asked[i]);
    while (status == HWNAS_OK && !asked && !end) {
        if (hwnas_session_should_stop(s))
            status = hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted");
        else if (!(end = hwnas_session_end(s)))
            status = propose(&asked, s);
    }
    if (end)
        return fail_over(s, end);
    return status == HWNAS_OK ? give(out, asked) : status;
}

/* ---- Tell ---- */

static hwnas_status find_asked(hwnas_asked **out, const hwnas_session *s, uint64_t number)
{
    for (size_t i = 0; i < s->n_asked; i++)
        if (s->asked[i]->trial.number == number) {
            *out = s->asked[i];
            return HWNAS_OK;
        }
    const hwnas_place place = {.file = s->job->study};
    if (number < s->next)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "trial %llu is finished already",
                                     (unsigned long long)number),
                          "a trial is told once");
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &place, "trial %llu was never asked", (unsigned long long)number),
        "the trials of this study so far end before %llu", (unsigned long long)s->next);
}

hwnas_status hwnas_asked_finish(hwnas_session *s, hwnas_asked *asked, hwnas_trial *trial)
{
    hwnas_status status = hwnas_session_write(s, trial, HWNAS_EVENT_FINISHED);
    if (status != HWNAS_OK) {
        hwnas_trials_free(trial, 1);
        return status;
    }
    hwnas_asked_remove(s, asked);
    status = hwnas_session_absorb(s, trial, asked->walked);
    hwnas_trials_free(trial, 1);
    hwnas_asked_free(asked);
    return status == HWNAS_OK ? hwnas_session_remember_time(s) : status;
}

hwnas_status hwnas_session_tell(hwnas_session *s, uint64_t number, const hwnas_metric_value *values,
                                size_t n)
{
    hwnas_asked *asked = NULL;
    TRY(find_asked(&asked, s, number));
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    hwnas_trial_copy(trial, &asked->trial);
    hwnas_status status = hwnas_evaluate_tell(trial, s->setup.evaluator,
                                              hwnas_settings_of(asked->walked, s->job), values, n);
    if (status != HWNAS_OK) {
        hwnas_trials_free(trial, 1);
        return status;
    }
    hwnas_trial_settle(trial, HWNAS_OK, asked->since);
    s->n_failures_in_a_row = 0;
    return hwnas_asked_finish(s, asked, trial);
}

hwnas_status hwnas_session_tell_failure(hwnas_session *s, uint64_t number, hwnas_status why,
                                        const char *message)
{
    hwnas_asked *asked = NULL;
    TRY(find_asked(&asked, s, number));
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    hwnas_trial_copy(trial, &asked->trial);
    hwnas_trial_settle(trial, hwnas_fail(why, NULL, "%s", message), asked->since);
    hwnas_error_clear();
    s->n_failures_in_a_row++;
    return hwnas_asked_finish(s, asked, trial);
}
