#include "cli/search_progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/frame.h"
#include "cli/live_view.h"
#include "cli/terminal.h"
#include "cli/verbosity.h"

/* Seconds between two of them; drawing takes a share of the time at most, as it is on the machine
 * that measures, and the front of a large study is drawn among all of its trials. */
static const double ON_TERMINAL = 0.1, ELSEWHERE = 10, SHARE = 0.02;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void draw(const hwnas_search_progress *p)
{
    char *view = hwnas_live_view(p, hwnas_terminal_columns(STDERR_FILENO),
                                 hwnas_terminal_lines(STDERR_FILENO));
    if (view)
        hwnas_frame_show(view);
    free(view);
}

static void print_line(const hwnas_search_progress *p)
{
    fputs("hwnas: ", stderr);
    hwnas_say_pace(stderr, p);
    if (*p->phase)
        hwnas_say(stderr, ", %s", p->phase);
    if (p->n_disturbed)
        hwnas_say(stderr, ", %llu of %llu measurements disturbed",
                  (unsigned long long)p->n_disturbed, (unsigned long long)p->n_measured);
    hwnas_say(stderr, ", best %s\n", p->best ? p->best : "none feasible yet");
}

void hwnas_progress_show(void *context, const hwnas_search_progress *p)
{
    hwnas_progress_line *l = context;
    double *next = l->is_terminal && p->measured ? &l->next_begun : &l->next_done;
    const double begun = now();
    if (begun < *next)
        return;
    if (l->is_terminal)
        draw(p);
    else
        print_line(p);
    *next = begun + fmax(l->is_terminal ? ON_TERMINAL : ELSEWHERE, (now() - begun) / SHARE);
}

void hwnas_progress_begin(hwnas_progress_line *out)
{
    *out = (hwnas_progress_line){.is_terminal = hwnas_frame_is_possible()};
    out->next_done = out->is_terminal ? 0 : now() + ELSEWHERE;
}

void hwnas_progress_begin_search(hwnas_progress_line *line, hwnas_search_options *search)
{
    hwnas_progress_begin(line);
    if (hwnas_log_is_quiet())
        return;
    search->progress = hwnas_progress_show;
    search->context = line;
}

void hwnas_progress_end(const hwnas_progress_line *line)
{
    if (line->is_terminal)
        hwnas_frame_show(NULL);
}
