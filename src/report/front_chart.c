#include "report/front_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/picture.h"

/* What may stand in a cell, from the least to what covers all others. */
typedef enum cell {
    EMPTY,
    LIMIT_ACROSS,
    LIMIT_UP,
    WHISKER,
    MISSED,
    ESTIMATED,
    DOMINATED,
    FRONT,
    WINNER,
    N_CELLS
} cell;

static const struct cell_kind {
    char mark;
    const char *words; /* of the legend; NULL: it has none, or others */
} cell_kinds[N_CELLS] = {
    [EMPTY] = {' ', NULL},
    [LIMIT_ACROSS] = {'-', NULL},
    [LIMIT_UP] = {':', NULL},
    [WHISKER] = {'-', NULL},
    [MISSED] = {'x', "misses a limit"},
    [ESTIMATED] = {'~', "estimated"},
    [DOMINATED] = {'.', "dominated"},
    [FRONT] = {'o', "front"},
    [WINNER] = {'*', "winner"},
};

static const cell cells[] = {
    [HWNAS_MARK_NONE] = EMPTY,          [HWNAS_MARK_MISSED] = MISSED,
    [HWNAS_MARK_ESTIMATED] = ESTIMATED, [HWNAS_MARK_DOMINATED] = DOMINATED,
    [HWNAS_MARK_FRONT] = FRONT,         [HWNAS_MARK_WINNER] = WINNER,
};

typedef struct axis {
    double low, high, step; /* step: between two ticks */
    int n;                  /* cells */
} axis;

typedef struct chart {
    const hwnas_front_view *view;
    axis x, y;
    int left;    /* columns before the cells */
    cell *cells; /* y.n lines of x.n */
} chart;

/* ---- Axes ---- */

static void scale(axis *a, const hwnas_front_view *view, const hwnas_goal *goal)
{
    hwnas_front_view_range(&a->low, &a->high, view, goal);
    hwnas_axes_widen(&a->low, &a->high, false);
}

/* -1: it lies outside. */
static int cell_of(const axis *a, double value)
{
    const double at = (value - a->low) / (a->high - a->low) * (a->n - 1);
    return at > -0.5 && at < a->n - 0.5 ? (int)lround(at) : -1;
}

static char *tick_word(double value)
{
    return hwnas_printf("%.10g", value + 0.0) /* no -0 */;
}

static int first_tick(const axis *a)
{
    return (int)ceil(a->low / a->step);
}

/* The longest of the words at the ticks. */
static int word_width(const axis *a)
{
    int width = 0;
    for (int k = first_tick(a); k * a->step <= a->high; k++) {
        char *word = tick_word(k * a->step);
        width = (int)strlen(word) > width ? (int)strlen(word) : width;
        free(word);
    }
    return width;
}

/* The tick in a line of the chart; NaN: there is none. */
static double tick_in(const axis *a, int line)
{
    for (int k = first_tick(a); k * a->step <= a->high; k++)
        if (cell_of(a, k * a->step) == line)
            return k * a->step;
    return NAN;
}

/* ---- Marks ---- */

static void put(chart *c, int x, int y, cell what)
{
    if (x < 0 || y < 0)
        return;
    cell *at = &c->cells[y * c->x.n + x];
    *at = what > *at ? what : *at;
}

static double shown(const hwnas_trial *t, const hwnas_goal *goal)
{
    return hwnas_goal_shown(goal, hwnas_trial_value(t, goal->name)->value);
}

/* From one end of the interval to the other, as far as it lies inside. */
static void put_whisker(chart *c, const hwnas_trial *t, int y)
{
    const hwnas_value_row *v = hwnas_trial_value(t, c->view->x->name);
    if (!hwnas_value_has_interval(v))
        return;
    const double low = fmax(hwnas_goal_shown(c->view->x, v->low), c->x.low);
    const double high = fmin(hwnas_goal_shown(c->view->x, v->high), c->x.high);
    for (int x = cell_of(&c->x, low); x >= 0 && x <= cell_of(&c->x, high); x++)
        put(c, x, y, WHISKER);
}

static void put_trials(chart *c)
{
    const hwnas_front_view *v = c->view;
    for (size_t i = 0; i < v->n; i++) {
        if (v->marks[i] == HWNAS_MARK_NONE)
            continue;
        const int y = cell_of(&c->y, shown(v->trials[i], v->y));
        put(c, cell_of(&c->x, shown(v->trials[i], v->x)), y, cells[v->marks[i]]);
        if (v->marks[i] >= HWNAS_MARK_FRONT)
            put_whisker(c, v->trials[i], y);
    }
}

static void put_limits(chart *c)
{
    const hwnas_limit *x = hwnas_front_view_limit(c->view, c->view->x);
    const hwnas_limit *y = hwnas_front_view_limit(c->view, c->view->y);
    for (int i = 0; x && i < c->y.n; i++)
        put(c, cell_of(&c->x, hwnas_goal_shown(c->view->x, x->value)), i, LIMIT_UP);
    for (int i = 0; y && i < c->x.n; i += 2)
        put(c, i, cell_of(&c->y, hwnas_goal_shown(c->view->y, y->value)), LIMIT_ACROSS);
}

/* ---- Words ---- */

/* Words in lines, one behind the other while there is room. */
typedef struct legend {
    hwnas_str text;
    int columns, left, at, n_lines;
} legend;

static void say(legend *l, const char *format, const char *a, const char *b)
{
    char *words = hwnas_printf(format, a, b);
    const int width = (int)strlen(words);
    if (l->at + 3 + width > l->columns || !l->n_lines) {
        hwnas_str_addf(&l->text, "%s%*s", l->n_lines ? "\n" : "", l->left, "");
        l->n_lines++;
        l->at = l->left;
    } else {
        hwnas_str_add(&l->text, "   ");
        l->at += 3;
    }
    hwnas_str_addf(&l->text, "%.*s", l->columns - l->left, words);
    l->at += width;
    free(words);
}

static void say_limit(legend *l, const hwnas_front_view *v, const hwnas_goal *goal, cell what)
{
    const hwnas_limit *limit = hwnas_front_view_limit(v, goal);
    const char mark[2] = {cell_kinds[what].mark};
    if (limit)
        say(l, "%s %s", mark, limit->text);
}

static legend make_legend(const hwnas_front_view *v, int left, int columns)
{
    bool is_there[N_CELLS] = {false};
    legend l = {.columns = columns, .left = left};
    char *title = hwnas_goal_title(v->x);
    for (size_t i = 0; i < v->n; i++)
        is_there[cells[v->marks[i]]] = true;
    say(&l, "%s%s", title, "");
    for (int i = N_CELLS - 1; i > EMPTY; i--) {
        const char mark[2] = {cell_kinds[i].mark};
        if (is_there[i] && cell_kinds[i].words)
            say(&l, "%s %s", mark, cell_kinds[i].words);
    }
    say_limit(&l, v, v->x, LIMIT_UP);
    say_limit(&l, v, v->y, LIMIT_ACROSS);
    free(title);
    return l;
}

/* A line without blanks at its end. */
static void add_line(hwnas_str *out, char *line)
{
    size_t n = strlen(line);
    while (n && line[n - 1] == ' ')
        n--;
    hwnas_str_addf(out, "%.*s\n", (int)n, line);
    free(line);
}

static void add_cells(hwnas_str *out, const chart *c)
{
    for (int y = c->y.n - 1; y >= 0; y--) {
        const double tick = tick_in(&c->y, y);
        char *word = isnan(tick) ? hwnas_strdup("") : tick_word(tick);
        char *line =
            hwnas_printf("%*s %c%*s", c->left - 2, word, isnan(tick) ? '|' : '+', c->x.n, "");
        for (int x = 0; x < c->x.n; x++)
            line[c->left + x] = cell_kinds[c->cells[y * c->x.n + x]].mark;
        add_line(out, line);
        free(word);
    }
}

/* The line with its ticks, and the words below, each in the middle of its tick where it fits. */
static void add_x_axis(hwnas_str *out, const chart *c)
{
    char *line = hwnas_printf("%*s+%*s", c->left - 1, "", c->x.n, "");
    char *words = hwnas_printf("%*s", c->left + c->x.n, "");
    int end = 0;
    memset(line + c->left, '-', (size_t)c->x.n);
    for (int k = first_tick(&c->x); k * c->x.step <= c->x.high; k++) {
        char *word = tick_word(k * c->x.step);
        const int at = c->left + cell_of(&c->x, k * c->x.step), width = (int)strlen(word);
        const int from = at - width / 2;
        if (at >= c->left && from >= end && from + width <= c->left + c->x.n) {
            line[at] = '+';
            memcpy(words + from, word, (size_t)width);
            end = from + width + 1;
        }
        free(word);
    }
    add_line(out, line);
    add_line(out, words);
}

/* ---- All of it ---- */

bool hwnas_front_chart_draw(hwnas_front_chart *out, const hwnas_front_view *view, int columns,
                            int lines)
{
    enum { WORD_LINES = 3, LINES_A_TICK = 3, COLUMNS_A_TICK = 12 };
    chart c = {.view = view};
    if (!view->n_drawn || columns < HWNAS_CHART_COLUMNS || lines < HWNAS_CHART_LINES)
        return false;
    scale(&c.x, view, view->x);
    scale(&c.y, view, view->y);
    c.y.step = hwnas_axes_step(c.y.low, c.y.high, lines / LINES_A_TICK);
    c.left = word_width(&c.y) + 3;
    c.x.n = columns - c.left;
    c.x.step = hwnas_axes_step(c.x.low, c.x.high, c.x.n / COLUMNS_A_TICK);
    legend l = make_legend(view, c.left, columns);
    c.y.n = lines - WORD_LINES - l.n_lines;
    if (c.y.n < 2 || c.x.n < 2) {
        hwnas_str_done(&l.text);
        return false;
    }
    c.cells = hwnas_alloc((size_t)c.x.n * (size_t)c.y.n * sizeof *c.cells);
    put_limits(&c);
    put_trials(&c);
    *out = (hwnas_front_chart){.top = 1, .left = c.left, .height = c.y.n};
    char *title = hwnas_goal_title(view->y);
    hwnas_str_addf(&out->text, "%*s%.*s\n", c.left - 1, "", c.x.n, title);
    add_cells(&out->text, &c);
    add_x_axis(&out->text, &c);
    hwnas_str_addf(&out->text, "%s\n", l.text.s);
    hwnas_str_done(&l.text);
    free(title);
    free(c.cells);
    return true;
}

void hwnas_front_chart_text(hwnas_str *out, const hwnas_summary *s, int columns)
{
    enum { USUAL_COLUMNS = 80, MOST_COLUMNS = 120 };
    hwnas_front_view view;
    hwnas_front_chart drawn;
    columns = !columns ? USUAL_COLUMNS : columns > MOST_COLUMNS ? MOST_COLUMNS : columns;
    columns = columns < HWNAS_CHART_COLUMNS ? HWNAS_CHART_COLUMNS : columns;
    hwnas_front_view_of(&view, s);
    hwnas_str_addf(out, "Pareto front: %zu network%s of %zu trial%s\n\n", view.n_front,
                   view.n_front == 1 ? "" : "s", view.n, view.n == 1 ? "" : "s");
    if (hwnas_front_chart_draw(&drawn, &view, columns, columns / 4 + 2)) {
        hwnas_str_add(out, drawn.text.s);
        hwnas_str_done(&drawn.text);
    } else {
        hwnas_str_add(out, view.x ? "No trial has values of both objectives yet.\n"
                                  : "A search with one objective has no front to draw; `hwnas "
                                    "report --svg curve` draws how it went.\n");
    }
    hwnas_front_view_done(&view);
}
