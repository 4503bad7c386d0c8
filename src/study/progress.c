/* progress.c: how far a session is, for whoever watches it. */
#include <math.h>

#include "base/clock.h"
#include "study/budget.h"

void hwnas_session_report(hwnas_session *s, const char *phase)
{
    if (!s->options->progress)
        return;
    uint64_t n_new = s->n_done - s->session_first;
    hwnas_progress p = {.n_done = hwnas_session_n_own(s),
                        .n_failed = s->n_failed,
                        .max_trials = (uint64_t)s->job->max_trials,
                        .n_front = s->front.n,
                        .seconds = hwnas_session_seconds(s),
                        .seconds_left = NAN,
                        .phase = phase};
    if (n_new > 0) {
        p.trials_per_minute = 60 * (double)n_new / (hwnas_now() - s->started);
        if (s->job->max_trials)
            p.seconds_left = 60 * ((double)p.max_trials - (double)p.n_done) / p.trials_per_minute;
    }
    if (s->job->max_minutes > 0 && s->setup.evaluator)
        p.seconds_left = fmin(hwnas_session_search_seconds(s) - p.seconds,
                              isnan(p.seconds_left) ? INFINITY : p.seconds_left);
    if (s->front.n)
        p.winner = s->done[s->front.points[0].id];
    s->options->progress(s->options->context, &p);
}
