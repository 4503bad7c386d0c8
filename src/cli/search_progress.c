#include "cli/search_progress.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/terminal.h"
#include "cli/verbosity.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* " 66.12 %, 9.81 ms" of "accuracy 66.12 % (predicted), latency.p50 9.81 ms". */
static void say_values(FILE *to, const char *best)
{
    for (const char *part = best; *part;) {
        const char *value = part, *end = part + strcspn(part, ",(!");
        while (value < end &&
               !(*value == ' ' && (isdigit((unsigned char)value[1]) || value[1] == '-')))
            value++;
        while (end > value && end[-1] == ' ')
            end--;
        hwnas_say(to, "%s%.*s", part == best ? "" : ",", (int)(end - value), value);
        part += strcspn(part, ",");
        part += strspn(part, ", ");
    }
}

/* The longest part comes last, as a terminal may be too narrow for it. */
static void say_progress(FILE *to, const hwnas_search_progress *p, bool is_short)
{
    hwnas_say(to, "%llu", (unsigned long long)p->n_done);
    if (p->max_trials)
        hwnas_say(to, "/%llu", (unsigned long long)p->max_trials);
    hwnas_say(to, " trials, %.0f/min", p->trials_per_minute);
    if (*p->phase)
        hwnas_say(to, ", %s", p->phase);
    else if (!isnan(p->seconds_left) && p->seconds_left >= 0)
        hwnas_say(to, ", %d:%02d left", (int)p->seconds_left / 60, (int)p->seconds_left % 60);
    if (p->n_failed)
        hwnas_say(to, ", %llu failed", (unsigned long long)p->n_failed);
    hwnas_say(to, ", front %zu, best", p->n_front);
    if (p->best && is_short)
        say_values(to, p->best);
    else
        hwnas_say(to, " %s", p->best ? p->best : "none feasible yet");
}

/* Yours to free(). */
static char *words_of(const hwnas_search_progress *p, bool is_short)
{
    char *words = NULL;
    size_t n;
    FILE *to = open_memstream(&words, &n);
    if (!to)
        return NULL;
    say_progress(to, p, is_short);
    if (fclose(to)) {
        free(words);
        return NULL;
    }
    return words;
}

static void show_progress(const hwnas_search_progress *p)
{
    const int columns = hwnas_terminal_columns(STDERR_FILENO);
    char *words = words_of(p, false);
    if (words && columns && strlen(words) >= (size_t)columns) {
        free(words);
        words = words_of(p, true);
    }
    if (words)
        hwnas_show_progress(NULL, words);
    free(words);
}

void hwnas_progress_show(void *context, const hwnas_search_progress *p)
{
    hwnas_progress_line *l = context;
    if (now() - l->last < (l->is_terminal ? 0.1 : 10))
        return;
    if (l->is_terminal) {
        show_progress(p);
    } else {
        fputs("hwnas: ", stderr);
        say_progress(stderr, p, false);
        fputc('\n', stderr);
    }
    l->last = now();
    l->is_shown = l->is_terminal;
}

void hwnas_progress_begin(hwnas_progress_line *out)
{
    *out = (hwnas_progress_line){.is_terminal = isatty(STDERR_FILENO)};
    out->last = out->is_terminal ? 0 : now();
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
    if (line->is_shown)
        fputs("\r\033[K", stderr);
}
