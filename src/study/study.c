/* study.c: the loop. Beside it: setup.c opens what it strings together, begin.c takes up what there
 * is, history.c writes what happens and goes through it again, session.c does one trial, budget.c
 * says when there is no other, study_facts.c knows a study again, warm.c takes trials over,
 * starts.c has the networks to begin with, standstill.c says when not to go on, waiting.c which
 * estimates are to be remeasured, ties.c settles the front, confirm.c measures its end afresh,
 * verify_front.c sees that its networks are computed right. ask_tell.c is the same study for a
 * program that runs the networks itself. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "study/budget.h"
#include "study/confirm.h"
#include "study/session.h"
#include "study/study_facts.h"
#include "study/thorough.h"
#include "study/ties.h"
#include "study/verify_front.h"

/* ---- Running ---- */

/* What the next trial may take beside a measurement. A training that would outlast the time is made
 * all the same, as its result is kept; but what waits is measured before. Those of a budget are not
 * made then (may_train()). */
static double next_training_seconds(const hwnas_session *s)
{
    hwnas_trainings t;
    const bool trains = hwnas_evaluator_trainings(&t, s->setup.evaluator) && !t.budget;
    return trains && !isnan(t.seconds) ? t.seconds : 0;
}

/* An estimated trial is to be measured before another one is made: in the end, or before the time
 * for it is gone, all that may belong to the front; and now and then those that would be on it. */
static bool find_due(size_t *id, hwnas_session *s, bool is_over)
{
    const double mean = s->n_run ? s->run_seconds / (double)s->n_run : s->job->max_seconds;
    const double left = hwnas_session_seconds_left(s);
    const double next = is_over ? 0 : next_training_seconds(s);
    const bool is_round = s->n_done >= s->next_round;
    if (left <= 0 || !s->waiting.n ||
        (!is_over && !is_round && (double)s->waiting.n * mean + next < left))
        return false;
    /* Before a training that leaves no time for it, what was put off has its other tries at once,
     * as in the end. */
    const double n_all = (double)hwnas_waiting_front(id, &s->waiting, &s->steady, INFINITY);
    const bool is_last = is_over || (next > 0 && n_all * mean + next >= left);
    const double now = is_last ? INFINITY : hwnas_now();
    const size_t n_possible = hwnas_waiting_possible(id, &s->waiting, now);
    const size_t n_front = hwnas_waiting_front(id, &s->waiting, &s->steady, now);
    const size_t n = s->job->goals.is_aggressive ? n_front : n_possible;
    if (is_round && !n_front)
        s->next_round = 2 * s->n_done;
    s->is_deadline_near = (double)n_front * mean >= left;
    if (is_last || s->is_deadline_near)
        return n > 0;
    return now >= s->waiting.next_try && ((is_round && n_front) || (double)n * mean + next >= left);
}

/* That no network meets the limits is not said on estimates alone: in the end, or in the last tenth
 * of the time, the network that comes closest to them is measured, until the closest one was. */
static bool is_closest_due(size_t *id, const hwnas_session *s, bool is_over)
{
    const double left = hwnas_session_seconds_left(s);
    return left > 0 && (is_over || left < 0.1 * 60 * s->job->max_minutes) &&
           hwnas_session_find_closest(id, s);
}

/* A training must leave the time to measure what would be on the front. */
static bool may_train(hwnas_session *s)
{
    hwnas_trainings t;
    size_t id;
    if (!(s->job->max_minutes > 0) || !hwnas_evaluator_trainings(&t, s->setup.evaluator) ||
        !t.budget || isnan(t.seconds))
        return true;
    const double mean = s->n_run ? s->run_seconds / (double)s->n_run : s->job->max_seconds;
    const size_t n_front = hwnas_waiting_front(&id, &s->waiting, &s->steady, INFINITY);
    return hwnas_session_seconds(s) + t.seconds + (double)(n_front + 1) * mean <
           hwnas_session_search_seconds(s);
}

static hwnas_status propose(hwnas_session *s, hwnas_arch *walked)
{
    hwnas_evaluator_may_train(s->setup.evaluator, may_train(s));
    int rung;
    TRY(hwnas_session_propose(s, walked, &rung));
    if (s->exhausted)
        return HWNAS_OK;
    if (hwnas_session_most_open(s) > 1)
        return hwnas_session_open_trial(s, s->next++, walked, rung, true);
    return hwnas_session_try(s, s->next++, walked, rung, true);
}

/* Measures an estimated trial; those that are probably next travel meanwhile. */
static hwnas_status remeasure(hwnas_session *s, size_t due)
{
    const size_t most = hwnas_session_most_open(s);
    if (most > 1 && s->waiting.n) {
        size_t *ids = hwnas_alloc(most * sizeof *ids);
        const size_t n = hwnas_waiting_list(ids, most, &s->waiting, &s->steady, hwnas_now());
        hwnas_evaluator_forget_ahead(s->setup.evaluator);
        hwnas_status status = hwnas_session_send_estimated(s, due);
        for (size_t i = 0; i < n && status == HWNAS_OK; i++)
            status = hwnas_session_send_estimated(s, ids[i]);
        free(ids);
        TRY(status);
    }
    return hwnas_session_remeasure(s, due);
}

/* One step of the search. Open trials are ended before an estimated one is measured, and before the
 * search is over. */
static hwnas_status step(hwnas_session *s, hwnas_arch *walked, const size_t *due, bool is_over)
{
    if (s->n_asked && (due || is_over || s->n_asked >= hwnas_session_most_open(s)))
        return hwnas_session_end_trial(s);
    if (due)
        return remeasure(s, *due);
    if (!s->n_asked)
        hwnas_evaluator_forget_ahead(s->setup.evaluator);
    return propose(s, walked);
}

static hwnas_status search(hwnas_session *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *walked = hwnas_arch_new(s->setup.walked);
    char *end = NULL;
    s->is_over = false;
    while (!hwnas_session_should_stop(s)) {
        size_t id;
        free(end);
        end = hwnas_session_end(s);
        const bool is_due = find_due(&id, s, end != NULL) || is_closest_due(&id, s, end != NULL);
        if (end && !is_due && !s->n_asked)
            break;
        TRY_OUT(step(s, walked, is_due ? &id : NULL, end != NULL));
        TRY_OUT(hwnas_session_remember_time(s));
        TRY_OUT(hwnas_session_check_hope(s));
        hwnas_session_report(s, is_due ? "measuring what was estimated" : "");
    }
    s->is_over = true;
    const char *why = end && !hwnas_session_should_stop(s) ? end : "interrupted";
    hwnas_log(HWNAS_LOG_INFO, "the search is over: %s", why);
    TRY_OUT(hwnas_store_set(s->store, "ended", why));
out:
    hwnas_arch_free(walked);
    free(end);
    return status;
}

/* ---- The last trainings ---- */

/* How many of the front have an accuracy that is only predicted; *first: the winner before others.
 */
static hwnas_status find_untrained(size_t *n, size_t *first, hwnas_session *s)
{
    const char *accuracy = hwnas_metric_of(HWNAS_ACCURACY)->name;
    *n = 0;
    for (size_t i = 0; i < s->front.n; i++) {
        hwnas_trial trial;
        const size_t id = s->front.points[i].id;
        TRY(hwnas_session_trial(&trial, s, id));
        const hwnas_value_row *v = hwnas_trial_value(&trial, accuracy);
        if (v && hwnas_sources[v->source].is_predicted && !(*n)++)
            *first = id;
        hwnas_trial_done(&trial);
    }
    return HWNAS_OK;
}

static bool has_time_to_train(const hwnas_session *s)
{
    hwnas_trainings t;
    return hwnas_evaluator_trainings(&t, s->setup.evaluator) && t.n_known < t.budget &&
           (!(s->job->max_minutes > 0) ||
            hwnas_session_seconds(s) + (isnan(t.seconds) ? 0 : t.seconds) <
                60 * s->job->max_minutes);
}

/* While the budget and the time last, what is on the front by a prediction is trained. What it
 * really has may put another network there. A program that fails leaves the prediction. */
static hwnas_status train_front(hwnas_session *s)
{
    bool is_trained = true;
    while (is_trained && !s->in_vain && !hwnas_session_should_stop(s) && has_time_to_train(s)) {
        size_t id, n;
        TRY(find_untrained(&n, &id, s));
        if (!n)
            break;
        hwnas_status status = hwnas_session_train(s, &is_trained, id);
        if (status != HWNAS_OK && !hwnas_trial_is_fatal(status)) {
            s->in_vain = hwnas_printf("a network of the front could not be trained: %s",
                                      hwnas_last_error()->message);
            hwnas_error_clear();
            return HWNAS_OK;
        }
        TRY(status);
        TRY(hwnas_session_remember_time(s));
    }
    return HWNAS_OK;
}

/* As a predictor tells it while programs train. */
static void tell_training(void *context, size_t n_done, size_t n, double seconds)
{
    hwnas_session *s = context;
    if (n > 1)
        snprintf(s->phase, sizeof s->phase, "trained %zu of %zu networks in %.0f s", n_done, n,
                 seconds);
    else
        snprintf(s->phase, sizeof s->phase, "training a network for %.0f s", seconds);
    hwnas_session_report(s, s->phase);
}

static hwnas_status settle_ties(hwnas_session *s)
{
    hwnas_session_report(s, "measuring near ties again");
    double seconds = s->job->ties * hwnas_session_seconds(s);
    TRY(hwnas_ties_measure(s->store, s->setup.evaluator, s->job, s->setup.space, s->setup.walked,
                           seconds, s->options->stop));
    TRY(hwnas_evaluator_keep(s->setup.evaluator));
    return hwnas_session_remember_time(s);
}

/* Of a quick device, without being quick. */
static hwnas_status measure_thoroughly(hwnas_session *s)
{
    hwnas_session_report(s, "measuring the front");
    TRY(hwnas_session_measure_thoroughly(s));
    TRY(hwnas_evaluator_keep(s->setup.evaluator));
    return hwnas_session_remember_time(s);
}

static hwnas_status confirm(hwnas_session *s, double seconds)
{
    hwnas_session_report(s, "confirming the front's end");
    TRY(hwnas_session_confirm(s, seconds));
    TRY(hwnas_evaluator_keep(s->setup.evaluator));
    return hwnas_session_remember_time(s);
}

/* A network of the front whose result is wrong leaves it, and the search goes on as if that one had
 * failed: what was kept off by it may have to be measured, and ties be settled again. */
static hwnas_status search_and_verify(hwnas_session *s)
{
    for (bool is_right = false; !is_right;) {
        TRY(search(s));
        TRY(train_front(s));
        if (hwnas_session_should_stop(s))
            return HWNAS_OK;
        const double searched = hwnas_session_seconds(s);
        TRY(measure_thoroughly(s));
        TRY(settle_ties(s));
        TRY(confirm(s, s->job->confirm * searched));
        if (s->job->verifies)
            hwnas_session_report(s, "verifying the front");
        TRY(hwnas_session_verify(s, &is_right));
        TRY(hwnas_session_remember_time(s));
        if (!is_right)
            TRY(hwnas_session_drop_wrong(s));
    }
    return HWNAS_OK;
}

/* Of the front, those that the budget has a training for yet. */
static hwnas_status count_untrained(size_t *out, hwnas_session *s)
{
    hwnas_trainings t;
    size_t id;
    *out = 0;
    if (!hwnas_evaluator_trainings(&t, s->setup.evaluator) || t.n_known >= t.budget)
        return HWNAS_OK;
    TRY(find_untrained(out, &id, s));
    *out = *out < t.budget - t.n_known ? *out : t.budget - t.n_known;
    return HWNAS_OK;
}

/* What the session leaves to the next one, for whoever looks at the study: networks without a
 * measurement are on no front, however well they were trained. */
static hwnas_status remember_waiting(hwnas_session *s)
{
    size_t n_trained, n_untrained;
    TRY(count_untrained(&n_untrained, s));
    const size_t n = hwnas_waiting_left(&n_trained, &s->waiting, &s->steady);
    json_t *fact = json_pack("{s:I, s:I, s:I, s:b}", "networks", (json_int_t)n, "trained",
                             (json_int_t)n_trained, "untrained", (json_int_t)n_untrained,
                             "has_time", hwnas_session_seconds_left(s) > 0);
    const hwnas_status status = hwnas_facts_set_json(s->store, HWNAS_WAITING_FACT, fact);
    json_decref(fact);
    return status;
}

/* A search that was interrupted before its first trial has replaced nothing. */
static hwnas_status check_draft(const hwnas_session *s)
{
    const hwnas_place place = {.file = s->job->study};
    if (!hwnas_store_is_draft(s->store))
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INTERRUPTED, &place,
                   "interrupted before the first trial: the old study is still there"),
        "the same command begins again");
}

hwnas_status hwnas_study_run(hwnas_summary **out, const hwnas_job *job,
                             const hwnas_session_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_session s;
    const hwnas_training_watch watch = {.tell = tell_training, .context = &s};
    hwnas_session_init(&s, job, options);
    TRY_OUT(hwnas_session_open(&s, &watch));
    status = hwnas_session_begin(&s);
    if (status == HWNAS_OK)
        status = search_and_verify(&s);
    if (status == HWNAS_E_INTERRUPTED)
        status = hwnas_store_set(s.store, "ended", "interrupted");
    if (status != HWNAS_OK) {
        hwnas_session_discard(&s, status);
        goto out;
    }
    TRY_OUT(s.n_done ? hwnas_session_publish(&s) : check_draft(&s));
    TRY_OUT(hwnas_session_remember_time(&s));
    TRY_OUT(remember_waiting(&s));
    TRY_OUT(hwnas_session_summarize(out, &s));
    (*out)->is_interrupted = hwnas_session_should_stop(&s);
    const char *note = hwnas_evaluator_note(s.setup.evaluator);
    (*out)->note = s.in_vain ? hwnas_strdup(s.in_vain) : note ? hwnas_strdup(note) : NULL;
out:
    hwnas_session_close(&s);
    return status;
}
