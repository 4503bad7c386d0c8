#include "cli/search_progress.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say_progress(const hwnas_search_progress *p)
{
    hwnas_say(stderr, "%llu", (unsigned long long)p->n_done);
    if (p->max_trials)
        hwnas_say(stderr, "/%llu", (unsigned long long)p->max_trials);
    hwnas_say(stderr, " trials, best %s, front %zu, %.0f trials/min",
              p->best ? p->best : "none feasible yet", p->n_front, p->trials_per_minute);
    if (p->n_failed)
        hwnas_say(stderr, ", %llu failed", (unsigned long long)p->n_failed);
    if (*p->phase)
        hwnas_say(stderr, ", %s", p->phase);
    else if (!isnan(p->seconds_left) && p->seconds_left >= 0)
        hwnas_say(stderr, ", %d:%02d left", (int)p->seconds_left / 60, (int)p->seconds_left % 60);
}

void hwnas_progress_show(void *context, const hwnas_search_progress *p)
{
    hwnas_progress_line *l = context;
    if (now() - l->last < (l->is_terminal ? 0.1 : 10))
        return;
    fputs(l->is_terminal ? "\r\033[K" : "hwnas: ", stderr);
    say_progress(p);
    if (!l->is_terminal)
        fputc('\n', stderr);
    l->last = now();
    l->is_shown = l->is_terminal;
}

void hwnas_progress_begin(hwnas_progress_line *out)
{
    *out = (hwnas_progress_line){.is_terminal = isatty(STDERR_FILENO)};
    out->last = out->is_terminal ? 0 : now();
}

void hwnas_progress_end(const hwnas_progress_line *line)
{
    if (line->is_shown)
        fputs("\r\033[K", stderr);
}
