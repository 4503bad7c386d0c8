#include "cli/live_view.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/terminal.h"

/* ---- Colours ---- */

static const struct colour {
    char mark;
    const char *code;
} colours[] = {
    {'*', "\033[1;31m"}, {'o', "\033[36m"}, {'.', "\033[90m"},
    {'x', "\033[33m"},   {'~', "\033[35m"}, {':', "\033[31m"},
};

/* https://no-color.org */
static bool has_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return !(no && *no);
}

static const char *colour_of(char mark)
{
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (colours[i].mark == mark)
            return colours[i].code;
    return NULL;
}

/* One line of marks, neighbours of one kind in one sequence. */
static void add_marks(FILE *to, const char *marks, size_t n)
{
    const char *now = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *code = colour_of(marks[i]);
        if (now && code != now)
            fputs("\033[0m", to);
        if (code && code != now)
            fputs(code, to);
        fputc(marks[i], to);
        now = code;
    }
    if (now)
        fputs("\033[0m", to);
}

static void add_chart(FILE *to, const hwnas_chart *chart)
{
    const bool is_coloured = has_colours();
    int number = 0;
    for (const char *line = chart->text; *line; number++) {
        const size_t n = strcspn(line, "\n"), left = (size_t)chart->left;
        const bool has_marks = number >= chart->top && number < chart->top + chart->height;
        if (is_coloured && has_marks && n > left) {
            fprintf(to, "%.*s", (int)left, line);
            add_marks(to, line + left, n - left);
        } else {
            fprintf(to, "%.*s", (int)n, line);
        }
        fputc('\n', to);
        line += n + (line[n] == '\n');
    }
}

/* ---- Words ---- */

static void say_time(FILE *to, double seconds)
{
    const long s = lround(fmax(0, seconds));
    if (s >= 3600)
        hwnas_say(to, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        hwnas_say(to, "%ld:%02ld", s / 60, s % 60);
}

/* The interval, where it is one. */
static void say_time_left(FILE *to, const hwnas_search_progress *p)
{
    const double low = p->seconds_left_low, high = p->seconds_left_high;
    if (isnan(p->seconds_left) || p->seconds_left < 0)
        return;
    fputs(", ", to);
    if (high - low >= 2) { /* not of NaN */
        say_time(to, low);
        fputs(" to ", to);
        say_time(to, high);
    } else {
        say_time(to, p->seconds_left);
    }
    fputs(" left", to);
}

void hwnas_say_pace(FILE *to, const hwnas_search_progress *p)
{
    hwnas_say(to, "%llu", (unsigned long long)p->n_done);
    if (p->max_trials)
        hwnas_say(to, "/%llu", (unsigned long long)p->max_trials);
    hwnas_say(to, " trials, %.0f/min", p->trials_per_minute);
    say_time_left(to, p);
    if (p->n_failed)
        hwnas_say(to, ", %llu failed", (unsigned long long)p->n_failed);
    hwnas_say(to, ", front %zu", p->n_front);
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

/* ---- Lines ---- */

/* A text that is being written; it stays where it is. */
typedef struct text {
    char *s;
    size_t n;
    FILE *to;
} text;

/* false: no memory. */
static bool begin(text *t)
{
    *t = (text){0};
    t->to = open_memstream(&t->s, &t->n);
    return t->to != NULL;
}

/* NULL: no memory. */
static char *end(text *t)
{
    if (!fclose(t->to))
        return t->s;
    free(t->s);
    return NULL;
}

static void add_line(FILE *to, text *words, int columns)
{
    char *line = end(words), *cut = line ? hwnas_cut_line(line, columns) : NULL;
    fprintf(to, "%s", cut ? cut : "");
    free(cut);
    free(line);
}

static void add_pace(FILE *to, const hwnas_search_progress *p, int columns)
{
    text t;
    if (!begin(&t))
        return;
    hwnas_say_pace(t.to, p);
    add_line(to, &t, columns);
}

static void add_best(FILE *to, const hwnas_search_progress *p, int columns)
{
    const char *key = "best     ";
    text t;
    if (!begin(&t))
        return;
    if (!p->best)
        hwnas_say(t.to, "%snone meets the limits yet", key);
    else if (columns && strlen(key) + strlen(p->best) >= (size_t)columns)
        fputs("best    ", t.to), say_values(t.to, p->best);
    else
        hwnas_say(t.to, "%s%s", key, p->best);
    add_line(to, &t, columns);
}

static void add_doing(FILE *to, const hwnas_search_progress *p, int columns)
{
    text t;
    if (!begin(&t))
        return;
    hwnas_say(t.to, "now      ");
    if (p->measured && *p->phase)
        hwnas_say(t.to, "%s: %s", p->phase, p->measured);
    else if (p->measured)
        hwnas_say(t.to, "measuring %s", p->measured);
    else
        hwnas_say(t.to, "%s", *p->phase ? p->phase : "proposing networks");
    add_line(to, &t, columns);
}

static void add_machine(FILE *to, const hwnas_search_progress *p, int columns)
{
    text t;
    if (!begin(&t))
        return;
    if (p->n_disturbed)
        hwnas_say(t.to, "machine  busy: %llu of %llu measurements disturbed",
                  (unsigned long long)p->n_disturbed, (unsigned long long)p->n_measured);
    else
        hwnas_say(t.to, "machine  quiet: none of %llu measurements disturbed",
                  (unsigned long long)p->n_measured);
    add_line(to, &t, columns);
}

/* All of it in one line; the longest part comes last, as a terminal may be too narrow for it. */
static char *one_line(const hwnas_search_progress *p, int columns, bool is_short)
{
    text t;
    if (!begin(&t))
        return NULL;
    hwnas_say_pace(t.to, p);
    if (*p->phase)
        hwnas_say(t.to, ", %s", p->phase);
    hwnas_say(t.to, ", best");
    if (p->best && is_short)
        say_values(t.to, p->best);
    else
        hwnas_say(t.to, " %s", p->best ? p->best : "none feasible yet");
    char *line = end(&t), *cut;
    if (line && !is_short && columns && strlen(line) >= (size_t)columns)
        cut = one_line(p, columns, true);
    else
        cut = line ? hwnas_cut_line(line, columns) : NULL;
    free(line);
    return cut;
}

char *hwnas_live_view(const hwnas_search_progress *p, int columns, int lines)
{
    enum { WORD_LINES = 4, MOST_COLUMNS = 100, MOST_CHART_LINES = 24 };
    hwnas_chart chart;
    if (lines < 2 * WORD_LINES)
        return one_line(p, columns, false);
    const int room = lines - WORD_LINES - 1;
    text t;
    if (!begin(&t))
        return NULL;
    if (hwnas_search_chart(&chart, p, columns > MOST_COLUMNS ? MOST_COLUMNS : columns - 1,
                           room < MOST_CHART_LINES ? room : MOST_CHART_LINES)) {
        add_chart(t.to, &chart);
        hwnas_free(chart.text);
    }
    add_pace(t.to, p, columns);
    fputc('\n', t.to);
    add_best(t.to, p, columns);
    if (p->n_measured || p->measured || *p->phase) {
        fputc('\n', t.to);
        add_doing(t.to, p, columns);
    }
    if (p->n_measured) {
        fputc('\n', t.to);
        add_machine(t.to, p, columns);
    }
    return end(&t);
}
