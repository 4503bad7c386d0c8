#include "report/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/front_view.h"

static const hwnas_value_row *value_of(const hwnas_trial *t, const hwnas_goal *goal)
{
    return hwnas_trial_value(t, goal->name);
}

static double x_of(const hwnas_axes *a, const hwnas_front_view *v, double value)
{
    return hwnas_axes_x(a, hwnas_goal_shown(v->x, value));
}

static double y_of(const hwnas_axes *a, const hwnas_front_view *v, double value)
{
    return hwnas_axes_y(a, hwnas_goal_shown(v->y, value));
}

static void add_limits(const hwnas_axes *a, const hwnas_front_view *v)
{
    const hwnas_limit *x = hwnas_front_view_limit(v, v->x), *y = hwnas_front_view_limit(v, v->y);
    if (x) {
        const double at = x_of(a, v, x->value);
        hwnas_axes_line(a, "limit", at, 0, at, hwnas_axes_y(a, a->y_low));
        hwnas_axes_text(a, "word", at - 6, hwnas_axes_y(a, a->y_low) - 8, x->text);
    }
    if (y) {
        const double at = y_of(a, v, y->value);
        hwnas_axes_line(a, "limit", 0, at, hwnas_axes_x(a, a->x_high), at);
        hwnas_axes_text(a, "word", hwnas_axes_x(a, a->x_high) - 6, at - 6, y->text);
    }
}

static void add_trial(const hwnas_axes *a, const hwnas_front_view *v, const hwnas_trial *t,
                      hwnas_mark mark)
{
    const double x = x_of(a, v, value_of(t, v->x)->value);
    const double y = y_of(a, v, value_of(t, v->y)->value);
    if (mark == HWNAS_MARK_ESTIMATED) {
        hwnas_str_addf(a->out, "<path class=\"estimated\" d=\"M%.1f %.1fl3 3l-3 3l-3-3z\"/>\n", x,
                       y - 3);
    } else if (mark == HWNAS_MARK_MISSED) {
        hwnas_axes_line(a, "missed", x - 3, y - 3, x + 3, y + 3);
        hwnas_axes_line(a, "missed", x - 3, y + 3, x + 3, y - 3);
    } else {
        hwnas_str_addf(a->out, "<circle class=\"dominated\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n", x,
                       y);
    }
}

/* A network of the front, with the ends of its intervals. */
static void add_member(const hwnas_axes *a, const hwnas_front_view *v, const hwnas_trial *t)
{
    const hwnas_value_row *x = value_of(t, v->x), *y = value_of(t, v->y);
    const double at_x = x_of(a, v, x->value), at_y = y_of(a, v, y->value);
    if (hwnas_value_has_interval(x))
        hwnas_axes_line(a, "whisker", x_of(a, v, x->low), at_y, x_of(a, v, x->high), at_y);
    if (hwnas_value_has_interval(y))
        hwnas_axes_line(a, "whisker", at_x, y_of(a, v, y->low), at_x, y_of(a, v, y->high));
    hwnas_str_addf(a->out, "<circle class=\"front\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", at_x,
                   at_y);
}

static void add_winner(const hwnas_axes *a, const hwnas_front_view *v, const hwnas_trial *t)
{
    const double x = x_of(a, v, value_of(t, v->x)->value);
    const double y = y_of(a, v, value_of(t, v->y)->value);
    hwnas_str_addf(a->out, "<circle class=\"winner\" cx=\"%.1f\" cy=\"%.1f\" r=\"7.5\"/>\n", x, y);
    hwnas_axes_text(a, "word", x - 10, y - 9, "winner");
}

static void add_trials(const hwnas_axes *a, const hwnas_front_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->marks[i] != HWNAS_MARK_NONE && v->marks[i] < HWNAS_MARK_FRONT)
            add_trial(a, v, v->trials[i], v->marks[i]);
    for (size_t i = 0; i < v->n; i++)
        if (v->marks[i] >= HWNAS_MARK_FRONT)
            add_member(a, v, v->trials[i]);
    for (size_t i = 0; i < v->n; i++)
        if (v->marks[i] == HWNAS_MARK_WINNER)
            add_winner(a, v, v->trials[i]);
}

static hwnas_status fail_empty(const hwnas_summary *s, const char *what)
{
    const hwnas_place place = {.file = s->study};
    return hwnas_fail(HWNAS_E_INFEASIBLE, &place, "%s", what);
}

static void draw_view(hwnas_str *out, const hwnas_front_view *v)
{
    hwnas_axes a = {.out = out};
    hwnas_front_view_range(&a.x_low, &a.x_high, v, v->x);
    hwnas_front_view_range(&a.y_low, &a.y_high, v, v->y);
    char *x_name = hwnas_goal_title(v->x), *y_name = hwnas_goal_title(v->y);
    char *title = hwnas_printf("Pareto front: %zu network%s of %zu trials", v->n_front,
                               v->n_front == 1 ? "" : "s", v->n);
    hwnas_axes_begin(&a, title, x_name, y_name, "× misses a limit, ◇ estimated");
    add_limits(&a, v);
    add_trials(&a, v);
    hwnas_axes_end(&a);
    free(title);
    free(x_name);
    free(y_name);
}

static hwnas_status draw_front(hwnas_str *out, const hwnas_summary *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_front_view v;
    hwnas_front_view_of(&v, s);
    if (!v.x)
        status = fail_empty(s, "a search with one objective has no front to draw; --svg curve "
                               "draws how it went");
    else if (!v.n_drawn)
        status = fail_empty(s, "no trial has values of both objectives yet");
    else
        draw_view(out, &v);
    hwnas_front_view_done(&v);
    return status;
}

/* ---- How the search went ---- */

typedef struct step {
    int64_t order;
    double best;
} step;

static int by_order(const void *a, const void *b)
{
    const step *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* The best value so far at each finished trial; before the first feasible one there is none. */
static size_t find_steps(step *steps, const hwnas_summary *s, const hwnas_goal *goal)
{
    size_t n = 0;
    double best = NAN;
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_trial *t = &s->trials[i];
        const hwnas_value_row *value = value_of(t, goal);
        const bool counts = t->status == HWNAS_OK && !(t->violation > 0) && !t->rung && value &&
                            !hwnas_trial_is_estimated(t);
        if (t->is_finished)
            steps[n++] = (step){t->order, counts ? hwnas_goal_shown(goal, value->value) : NAN};
    }
    qsort(steps, n, sizeof *steps, by_order);
    for (size_t i = 0; i < n; i++) {
        const double now = steps[i].best;
        if (isnan(best) || (goal->metric->is_maximised ? now > best : now < best))
            best = isnan(now) ? best : now;
        steps[i].best = best;
    }
    return n;
}

static hwnas_status draw_curve(hwnas_str *out, const hwnas_summary *s)
{
    const hwnas_goal *goal = &s->job.goals.objectives[0];
    step *steps = hwnas_alloc((s->n_trials + 1) * sizeof *steps);
    const size_t n = find_steps(steps, s, goal);
    size_t first = 0;
    while (first < n && isnan(steps[first].best))
        first++;
    if (first == n) {
        free(steps);
        return fail_empty(s, "no trial meets the constraints yet");
    }
    hwnas_axes a = {.out = out, .x_high = (double)n, .y_low = INFINITY, .y_high = -INFINITY};
    for (size_t i = first; i < n; i++) {
        a.y_low = fmin(a.y_low, steps[i].best);
        a.y_high = fmax(a.y_high, steps[i].best);
    }
    const double room = 0.05 * (a.y_high - a.y_low);
    a.y_low -= room;
    a.y_high += room;
    char *best_name = hwnas_goal_title(goal), *y_name = hwnas_printf("best %s", best_name);
    hwnas_axes_begin(&a, "Best network so far", "trials", y_name, "");
    hwnas_str_add(out, "<path class=\"path\" d=\"");
    for (size_t i = first; i < n; i++) {
        const double y = hwnas_axes_y(&a, steps[i].best);
        if (i == first)
            hwnas_str_addf(out, "M%.1f %.1f", hwnas_axes_x(&a, (double)(i + 1)), y);
        else if (steps[i].best != steps[i - 1].best || i + 1 == n)
            hwnas_str_addf(out, "H%.1fV%.1f", hwnas_axes_x(&a, (double)(i + 1)), y);
    }
    hwnas_str_add(out, "\"/>\n");
    hwnas_axes_end(&a);
    free(y_name);
    free(best_name);
    free(steps);
    return HWNAS_OK;
}

const hwnas_picture_kind hwnas_pictures[] = {
    {"front", draw_front}, {"curve", draw_curve}, {NULL, NULL}};

hwnas_status hwnas_picture_draw(hwnas_str *out, const hwnas_summary *s, const char *name)
{
    for (const hwnas_picture_kind *kind = hwnas_pictures; kind->name; kind++)
        if (!strcmp(kind->name, name))
            return kind->draw(out, s);
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "there is no picture '%.40s'", name),
                      "'front' or 'curve'");
}
