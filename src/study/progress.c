/* progress.c: how far a session is, for whoever watches it. */
#include <math.h>

#include "base/clock.h"
#include "study/budget.h"

/* By trials and by time, whichever is over first. */
static void add_time_left(hwnas_progress *p, hwnas_session *s, uint64_t n_new)
{
    const double n_left = (double)p->max_trials - (double)p->n_done;
    if (!s->left.block)
        hwnas_time_left_begin(&s->left, s->started);
    while (s->left.n < n_new)
        hwnas_time_left_add(&s->left, hwnas_now());
    if (n_new > 0)
        p->trials_per_minute = 60 * (double)n_new / (hwnas_now() - s->started);
    if (s->is_over)
        return;
    if (n_new > 0 && p->max_trials)
        p->seconds_left = 60 * n_left / p->trials_per_minute;
    if (p->max_trials)
        hwnas_time_left_find(&p->seconds_left_low, &p->seconds_left_high, &s->left, n_left,
                             hwnas_now());
    if (s->job->max_minutes > 0 && s->setup.evaluator) {
        const double left = hwnas_session_search_seconds(s) - p->seconds;
        p->seconds_left = fmin(left, p->seconds_left); /* the one that is known, if one is */
        p->seconds_left_low = p->max_trials ? fmin(left, p->seconds_left_low) : left;
        p->seconds_left_high = p->max_trials ? fmin(left, p->seconds_left_high) : left;
    }
}

void hwnas_session_report(hwnas_session *s, const char *phase)
{
    if (!s->options->progress)
        return;
    hwnas_progress p = {.n_done = hwnas_session_n_own(s),
                        .n_failed = s->n_failed,
                        .max_trials = (uint64_t)s->job->max_trials,
                        .n_front = s->front.n,
                        .seconds = hwnas_session_seconds(s),
                        .seconds_left = NAN,
                        .seconds_left_low = NAN,
                        .seconds_left_high = NAN,
                        .phase = phase,
                        .n_measured = s->n_measured,
                        .n_disturbed = s->n_disturbed,
                        .measured = s->tried,
                        .session = s};
    add_time_left(&p, s, s->n_done - s->session_first);
    if (s->front.n)
        p.winner = hwnas_session_winner(s);
    s->options->progress(s->options->context, &p);
}

hwnas_status hwnas_session_outlines(hwnas_trial **out, bool **is_on_front, size_t *n,
                                    const hwnas_session *s)
{
    TRY(hwnas_summary_outlines(out, n, s->store, &s->job->goals));
    *is_on_front = hwnas_alloc((*n + 1) * sizeof **is_on_front);
    for (size_t i = 0; i < s->front.n; i++) {
        const uint64_t number = s->done[s->front.points[i].id].number;
        if (number < *n)
            (*is_on_front)[number] = true;
    }
    return HWNAS_OK;
}

/* One that was finished before was estimated. */
void hwnas_session_tell_run(void *session)
{
    hwnas_session *s = session;
    if (s->tried)
        hwnas_session_report(s, s->tried->is_finished ? "measuring what was estimated" : "");
}
