/* study.c: the loop. Beside it: setup.c opens what it strings together, begin.c takes up what there
 * is, history.c writes what happens and goes through it again, session.c does one trial,
 * study_facts.c knows a study again, warm.c takes trials over, probe.c finds the networks to begin
 * with, standstill.c says when not to go on, waiting.c which estimates are to be remeasured, ties.c
 * settles the front, verify_front.c sees that its networks are computed right. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "study/study_facts.h"
#include "study/probe.h"
#include "study/session.h"
#include "study/standstill.h"
#include "study/ties.h"
#include "study/verify_front.h"

enum {
    MAX_FAILURES_IN_A_ROW = 5, /* so many failures in a row, for a reason of the machine, end a
                     study without any success */
    CHECK_EVERY = 10,          /* trials between two looks at whether the front stands still */
    FIRST_ROUND = 32, /* trials until what would be on the front is measured; from then on whenever
                         there are twice as many */
    LEAST_SEEKING = 100 /* trials before a search says that nothing is feasible */
};

/* Of the trials or the minutes: without anything feasible by then the search ends. The first
 * network within the fastest hundredth of a published device took at most 21 trials with
 * `bayesian`, 55 with `local-search` and 68 with `nsga2` (27 devices of NAS-Bench-201, 6 seeds
 * each). */
static const double SEEKING_SHARE = 0.2;

static hwnas_status remember_time(hwnas_session *s)
{
    char text[32];
    snprintf(text, sizeof text, "%.3f", s->earlier_seconds + hwnas_now() - s->started);
    return hwnas_store_set(s->store, "wall_seconds", text);
}

/* ---- Running ---- */

static uint64_t n_own(const hwnas_session *s)
{
    return s->n_done - s->n_warm;
}

/* Seconds for the trainings that are kept for the end, a quarter of the time at most. */
static double reserved_seconds(const hwnas_session *s)
{
    hwnas_trainings t;
    if (!hwnas_evaluator_trainings(&t, s->setup.evaluator) || t.n_known >= t.budget ||
        isnan(t.seconds))
        return 0;
    const size_t left = t.budget - t.n_known, n = left < t.reserved ? left : t.reserved;
    return fmin((double)n * t.seconds, 0.25 * 60 * s->job->max_minutes);
}

/* Seconds for trials: what is left of the budget when near ties and the last trainings have had
 * theirs. */
static double search_seconds(const hwnas_session *s)
{
    double share = hwnas_evaluator_measures(s->setup.evaluator) ? s->job->ties : 0;
    return (60 * s->job->max_minutes - reserved_seconds(s)) / (1 + share);
}

static double seconds_so_far(const hwnas_session *s)
{
    return s->earlier_seconds + hwnas_now() - s->started;
}

/* INFINITY: without an end. */
static double seconds_left(const hwnas_session *s)
{
    return s->job->max_minutes > 0 ? search_seconds(s) - seconds_so_far(s) : INFINITY;
}

static void report(hwnas_session *s, const char *phase)
{
    if (!s->options->progress)
        return;
    uint64_t n_new = s->n_done - s->session_first;
    hwnas_progress p = {.n_done = n_own(s),
                        .n_failed = s->n_failed,
                        .max_trials = (uint64_t)s->job->max_trials,
                        .n_front = s->front.n,
                        .seconds = seconds_so_far(s),
                        .seconds_left = NAN,
                        .phase = phase};
    if (n_new > 0) {
        p.trials_per_minute = 60 * (double)n_new / (hwnas_now() - s->started);
        if (s->job->max_trials)
            p.seconds_left = 60 * ((double)p.max_trials - (double)p.n_done) / p.trials_per_minute;
    }
    if (s->job->max_minutes > 0 && s->setup.evaluator)
        p.seconds_left =
            fmin(search_seconds(s) - p.seconds, isnan(p.seconds_left) ? INFINITY : p.seconds_left);
    if (s->front.n)
        p.winner = s->done[s->front.points[0].id];
    s->options->progress(s->options->context, &p);
}

static bool is_evidence_bad(const hwnas_session *s)
{
    hwnas_evidence evidence = {0};
    for (size_t i = 0; i < s->n_done; i++)
        hwnas_evidence_add(&evidence, s->done[i], &s->job->goals);
    return hwnas_evidence_is_bad(&evidence);
}

/* The share of the budget in which something feasible is looked for has been spent in vain. A
 * search on a machine that was too busy goes on: it may become quieter. */
static bool is_infeasible(const hwnas_session *s)
{
    const hwnas_job *job = s->job;
    const double n = (double)n_own(s);
    if (!job->goals.n_limits || s->front.n || n < LEAST_SEEKING ||
        !s->setup.strategy->ops->seeks_feasible)
        return false;
    const bool is_spent =
        (job->max_trials && n >= SEEKING_SHARE * (double)job->max_trials) ||
        (job->max_minutes > 0 && seconds_so_far(s) >= SEEKING_SHARE * search_seconds(s));
    return is_spent && !is_evidence_bad(s);
}

/* Why the search is over, as half a sentence; NULL: it is not. Yours to free. */
static char *find_end(const hwnas_session *s)
{
    const hwnas_job *job = s->job;
    size_t window = hwnas_standstill_window(s->n_scores);
    if (s->is_target_met)
        return hwnas_strdup("the target is met");
    if (s->exhausted)
        return hwnas_strdup(s->exhausted);
    if (is_infeasible(s))
        return hwnas_printf("none of %llu networks met the constraints, and a fifth of the budget "
                            "is spent",
                            (unsigned long long)n_own(s));
    if (job->max_trials && n_own(s) >= (uint64_t)job->max_trials)
        return hwnas_strdup("all trials were made");
    if (job->max_minutes > 0 && seconds_so_far(s) >= search_seconds(s))
        return hwnas_strdup("the time is over");
    if (job->improvement > 0 && s->n_scores && s->n_scores % CHECK_EVERY == 0 &&
        hwnas_improvement(s->scores, s->n_scores, window, job->goals.n_objectives) <
            job->improvement)
        return hwnas_printf("the front improved by less than %.4g %% over the last %zu trials",
                            100 * job->improvement, window);
    return NULL;
}

/* None of the first trials succeeded: the failure of the last one, which is recorded still. */
static hwnas_status give_up(const hwnas_session *s)
{
    hwnas_error error = *hwnas_last_error();
    hwnas_place place = {.file = error.file, .line = error.line, .column = error.column};
    return hwnas_hint(hwnas_fail(s->done[s->n_done - 1]->status, *error.file ? &place : NULL,
                                 "each of the first %zu trials failed, last error: %s", s->n_done,
                                 error.message),
                      "%s", error.hint);
}

/* An estimated trial is to be measured before another one is made: in the end, or before the time
 * for it is gone, all that may belong to the front; and now and then those that would be on it. */
static bool find_due(size_t *id, hwnas_session *s, bool is_over)
{
    const double mean = s->n_run ? s->run_seconds / (double)s->n_run : s->job->max_seconds;
    const double left = seconds_left(s);
    const double now = is_over ? INFINITY : hwnas_now();
    const bool is_round = s->n_done >= s->next_round;
    if (left <= 0 || !s->waiting.n || (!is_over && !is_round && (double)s->waiting.n * mean < left))
        return false;
    const size_t n_possible = hwnas_waiting_possible(id, &s->waiting, now);
    const size_t n_front = hwnas_waiting_front(id, &s->waiting, &s->steady, now);
    const size_t n = s->job->goals.is_aggressive ? n_front : n_possible;
    if (is_round && !n_front)
        s->next_round = 2 * s->n_done;
    s->is_deadline_near = (double)n_front * mean >= left;
    if (is_over || s->is_deadline_near)
        return n > 0;
    return now >= s->waiting.next_try && ((is_round && n_front) || (double)n * mean >= left);
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
    return seconds_so_far(s) + t.seconds + (double)(n_front + 1) * mean < search_seconds(s);
}

static hwnas_status propose(hwnas_session *s, hwnas_arch *walked)
{
    hwnas_evaluator_may_train(s->setup.evaluator, may_train(s));
    const uint64_t n_asked = s->next - s->n_warm;
    if (n_asked < (uint64_t)s->n_starts)
        return hwnas_session_try(s, s->next++, s->starts[n_asked], 0, true);
    hwnas_strategy *strategy = s->setup.strategy;
    hwnas_status status = strategy->ops->ask(strategy, s->next, walked);
    if (status == HWNAS_E_EXHAUSTED) {
        s->exhausted = hwnas_strdup(hwnas_last_error()->message);
        return HWNAS_OK;
    }
    TRY(status);
    int rung = strategy->ops->rung ? strategy->ops->rung(strategy, s->next) : 0;
    return hwnas_session_try(s, s->next++, walked, rung, true);
}

static hwnas_status search(hwnas_session *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *walked = hwnas_arch_new(s->setup.walked);
    char *end = NULL;
    while (!hwnas_session_should_stop(s)) {
        size_t id;
        free(end);
        end = find_end(s);
        const bool is_due = find_due(&id, s, end != NULL) ||
                            (end && seconds_left(s) > 0 && hwnas_session_find_closest(&id, s));
        if (end && !is_due)
            break;
        TRY_OUT(is_due ? hwnas_session_remeasure(s, id) : propose(s, walked));
        TRY_OUT(remember_time(s));
        if (s->n_failures_in_a_row == MAX_FAILURES_IN_A_ROW && s->n_failed == s->n_done) {
            status = give_up(s);
            goto out;
        }
        report(s, is_due ? "measuring what was estimated" : "");
    }
    const char *why = end && !hwnas_session_should_stop(s) ? end : "interrupted";
    hwnas_log(HWNAS_LOG_INFO, "the search is over: %s", why);
    TRY_OUT(hwnas_store_set(s->store, "ended", why));
out:
    hwnas_arch_free(walked);
    free(end);
    return status;
}

/* ---- The last trainings ---- */

/* The first of the front whose accuracy is only predicted: the winner before others. */
static bool find_untrained(size_t *id, const hwnas_session *s)
{
    const char *accuracy = hwnas_metric_of(HWNAS_ACCURACY)->name;
    for (size_t i = 0; i < s->front.n; i++) {
        const hwnas_value_row *v = hwnas_trial_value(s->done[s->front.points[i].id], accuracy);
        *id = s->front.points[i].id;
        if (v && v->source == HWNAS_PREDICTED)
            return true;
    }
    return false;
}

static bool has_time_to_train(const hwnas_session *s)
{
    hwnas_trainings t;
    return hwnas_evaluator_trainings(&t, s->setup.evaluator) && t.n_known < t.budget &&
           (!(s->job->max_minutes > 0) ||
            seconds_so_far(s) + (isnan(t.seconds) ? 0 : t.seconds) < 60 * s->job->max_minutes);
}

/* While the budget and the time last, what is on the front by a prediction is trained. What it
 * really has may put another network there. A program that fails leaves the prediction. */
static hwnas_status train_front(hwnas_session *s)
{
    bool is_trained = true;
    size_t id;
    while (is_trained && !s->in_vain && !hwnas_session_should_stop(s) && has_time_to_train(s) &&
           find_untrained(&id, s)) {
        hwnas_status status = hwnas_session_train(s, &is_trained, id);
        if (status != HWNAS_OK && !hwnas_trial_is_fatal(status)) {
            s->in_vain = hwnas_printf("a network of the front could not be trained: %s",
                                      hwnas_last_error()->message);
            hwnas_error_clear();
            return HWNAS_OK;
        }
        TRY(status);
        TRY(remember_time(s));
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
    report(s, s->phase);
}

static hwnas_status settle_ties(hwnas_session *s)
{
    report(s, "measuring near ties again");
    double seconds = s->job->ties * seconds_so_far(s);
    TRY(hwnas_ties_measure(s->store, s->setup.evaluator, s->job, s->setup.space, s->setup.walked,
                           seconds, s->options->stop));
    TRY(hwnas_evaluator_keep(s->setup.evaluator));
    return remember_time(s);
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
        TRY(settle_ties(s));
        if (s->job->verifies)
            report(s, "verifying the front");
        TRY(hwnas_session_verify(s, &is_right));
        TRY(remember_time(s));
        if (!is_right)
            hwnas_session_drop_wrong(s);
    }
    return HWNAS_OK;
}

/* Before the store that its table of latencies writes to is closed. */
static void part_from_store(hwnas_session *s)
{
    if (s->setup.evaluator && hwnas_evaluator_use_study(s->setup.evaluator, NULL) != HWNAS_OK)
        hwnas_error_clear();
}

static void close_study(hwnas_session *s)
{
    part_from_store(s);
    hwnas_store_close(s->store);
    hwnas_session_forget(s);
    hwnas_setup_close(&s->setup);
}

/* A new study that came to nothing leaves no file: without a trial, or with none but those that
 * failed because the job is wrong. */
static void discard(hwnas_session *s, hwnas_status why)
{
    bool is_job_wrong = hwnas_status_exit_code(why) == 2 && s->n_failed == s->n_done;
    if (s->n_done && !is_job_wrong)
        return;
    part_from_store(s);
    if (s->n_done)
        hwnas_store_remove(s->store);
    else
        hwnas_store_discard(s->store);
    s->store = NULL;
}

/* Opens the setup as the study's first session did, when there was one. */
static hwnas_status open_setup(hwnas_session *s)
{
    hwnas_choice_of_strategy choice = {0};
    bool is_there = false;
    if (s->options->resume && hwnas_file_exists(s->job->study)) {
        hwnas_store *store;
        TRY(hwnas_store_open(&store, s->job->study, HWNAS_STORE_READ));
        hwnas_status status = hwnas_facts_choice(&choice, &is_there, store);
        hwnas_store_close(store);
        TRY(status);
    }
    /* That the job names another strategy is told by comparing the facts. */
    is_there &= !strcmp(s->job->strategy, "auto") || !strcmp(s->job->strategy, choice.name);
    const hwnas_training_watch watch = {.tell = tell_training, .context = s};
    return hwnas_setup_open(&s->setup, s->job, is_there ? &choice : NULL, s->options->stop, &watch);
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

/* What limits can be met is no reason to train a network. */
static hwnas_status probe(hwnas_session *s)
{
    hwnas_evaluator_may_train(s->setup.evaluator, false);
    hwnas_status status =
        hwnas_probe_limits(s->setup.evaluator, s->job, s->setup.space, s->setup.walked);
    hwnas_evaluator_may_train(s->setup.evaluator, true);
    return status;
}

hwnas_status hwnas_study_run(hwnas_summary **out, const hwnas_job *job,
                             const hwnas_study_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_session s = {.job = job,
                       .options = options,
                       .front = {.n_objectives = job->goals.n_objectives},
                       .steady = {.n_objectives = job->goals.n_objectives},
                       .waiting = {.goals = &job->goals},
                       .next_round = FIRST_ROUND,
                       .started = hwnas_now()};
    TRY_OUT(open_setup(&s));
    /* Before the file is made, or one of the same name replaced. */
    if (!options->resume && (options->overwrite || !hwnas_file_exists(job->study)))
        TRY_OUT(probe(&s));
    TRY_OUT(hwnas_evaluator_train_first(s.setup.evaluator));
    TRY_OUT(hwnas_session_open_store(&s));
    TRY_OUT(hwnas_evaluator_use_study(s.setup.evaluator, s.store));
    status = hwnas_session_begin(&s);
    if (status == HWNAS_OK)
        status = search_and_verify(&s);
    if (status == HWNAS_E_INTERRUPTED)
        status = HWNAS_OK;
    if (status != HWNAS_OK) {
        if (!options->resume)
            discard(&s, status);
        goto out;
    }
    TRY_OUT(s.n_done ? hwnas_session_publish(&s) : check_draft(&s));
    TRY_OUT(remember_time(&s));
    TRY_OUT(hwnas_summary_load(out, s.store, job->study));
    (*out)->is_interrupted = hwnas_session_should_stop(&s);
    const char *note = hwnas_evaluator_note(s.setup.evaluator);
    (*out)->note = s.in_vain ? hwnas_strdup(s.in_vain) : note ? hwnas_strdup(note) : NULL;
out:
    free(s.in_vain);
    free(s.exhausted);
    close_study(&s);
    return status;
}
