/* budget.c: what a session may still spend, and when it is over. */
#include "study/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "study/evidence.h"
#include "study/standstill.h"

enum {
    MAX_FAILURES_IN_A_ROW = 5, /* so many failures in a row, for a reason of the machine, end a
                                  study without any success */
    CHECK_EVERY = 10,          /* trials between two looks at whether the front stands still */
    LEAST_SEEKING = 100        /* trials before a search says that nothing is feasible */
};

/* Of the trials or the minutes: without anything feasible by then the search ends. The first
 * network within the fastest hundredth of a published device took at most 21 trials with
 * `bayesian`, 55 with `local-search` and 68 with `nsga2` (27 devices of NAS-Bench-201, 6 seeds
 * each). */
static const double SEEKING_SHARE = 0.2;

uint64_t hwnas_session_n_own(const hwnas_session *s)
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

double hwnas_session_search_seconds(const hwnas_session *s)
{
    if (!(s->job->max_minutes > 0))
        return INFINITY;
    /* The same for all workers, whether they measure or train. */
    const hwnas_tasks runs =
        hwnas_evaluator_tasks(s->setup.evaluator) & ~(1U << HWNAS_TASK_TRAINING);
    const double share = runs ? s->job->ties + s->job->confirm : 0;
    return (60 * s->job->max_minutes - reserved_seconds(s)) / (1 + share);
}

double hwnas_session_seconds(const hwnas_session *s)
{
    return s->earlier_seconds + hwnas_now() - s->started;
}

double hwnas_session_seconds_left(const hwnas_session *s)
{
    return hwnas_session_search_seconds(s) - hwnas_session_seconds(s);
}

hwnas_status hwnas_session_recall_time(hwnas_session *s)
{
    char *text = NULL;
    TRY(hwnas_store_get(&text, s->store, "wall_seconds"));
    const double ahead = (text ? atof(text) : 0) - hwnas_session_seconds(s);
    free(text);
    if (ahead > 0)
        s->earlier_seconds += ahead;
    return HWNAS_OK;
}

hwnas_status hwnas_session_remember_time(hwnas_session *s)
{
    char text[32];
    if (s->is_shared)
        TRY(hwnas_session_recall_time(s));
    snprintf(text, sizeof text, "%.3f", hwnas_session_seconds(s));
    return hwnas_store_set(s->store, "wall_seconds", text);
}

/* Whether so much of the time is over, as far as that is ours to say. */
static bool is_time_over(const hwnas_session *s, double share)
{
    return s->job->max_minutes > 0 && !s->leaves_time &&
           hwnas_session_seconds(s) >= share * hwnas_session_search_seconds(s);
}

/* The share of the budget in which something feasible is looked for has been spent in vain. A
 * search on a machine that was too busy goes on: it may become quieter. */
static bool is_infeasible(const hwnas_session *s)
{
    const hwnas_job *job = s->job;
    const double n = (double)hwnas_session_n_own(s);
    if (!job->goals.n_limits || s->front.n || n < LEAST_SEEKING ||
        !s->setup.strategy->ops->seeks_feasible)
        return false;
    const bool is_spent = (job->max_trials && n >= SEEKING_SHARE * (double)job->max_trials) ||
                          is_time_over(s, SEEKING_SHARE);
    return is_spent && !hwnas_evidence_is_bad(&s->evidence);
}

char *hwnas_session_end(const hwnas_session *s)
{
    const hwnas_job *job = s->job;
    size_t window = hwnas_standstill_window(s->n_done);
    if (s->is_target_met)
        return hwnas_strdup("the target is met");
    if (s->exhausted)
        return hwnas_strdup(s->exhausted);
    if (is_infeasible(s))
        return hwnas_printf("none of %llu networks met the constraints, and a fifth of the budget "
                            "is spent",
                            (unsigned long long)hwnas_session_n_own(s));
    if (job->max_trials && hwnas_session_n_own(s) + s->n_asked >= (uint64_t)job->max_trials)
        return hwnas_strdup("all trials were made");
    if (is_time_over(s, 1))
        return isnan(job->hourly) ? hwnas_strdup("the time is over")
                                  : hwnas_printf("the money is spent: %.4g at %.4g an hour",
                                                 job->money, job->hourly);
    if (job->improvement > 0 && s->n_done && s->n_done % CHECK_EVERY == 0 &&
        hwnas_improvement(&s->scores, s->n_done, window) < job->improvement)
        return hwnas_printf("the front improved by less than %.4g %% over the last %zu trials",
                            100 * job->improvement, window);
    return NULL;
}

hwnas_status hwnas_session_check_hope(const hwnas_session *s)
{
    if (s->n_failures_in_a_row != MAX_FAILURES_IN_A_ROW || s->n_failed != s->n_done || s->went_on)
        return HWNAS_OK;
    hwnas_error error = *hwnas_last_error();
    hwnas_place place = {.file = error.file, .line = error.line, .column = error.column};
    return hwnas_hint(hwnas_fail(s->last_status, *error.file ? &place : NULL,
                                 "each of the first %zu trials failed, last error: %s", s->n_done,
                                 error.message),
                      "%s", error.hint);
}
