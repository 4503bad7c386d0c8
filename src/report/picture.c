#include "report/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "trial/judge.h"

/* Two metrics of a study, in the units that they are shown in. */
typedef struct view {
    const hwnas_summary *summary;
    const hwnas_goal *x, *y;
} view;

static double shown(const hwnas_goal *goal, double value)
{
    return value / goal->metric->scale;
}

static const hwnas_value_row *value_of(const hwnas_trial *t, const hwnas_goal *goal)
{
    return hwnas_trial_value(t, goal->name);
}

static bool is_drawn(const view *v, const hwnas_trial *t)
{
    return t->is_finished && t->status == HWNAS_OK && value_of(t, v->x) && value_of(t, v->y);
}

static char *name_of(const hwnas_goal *goal)
{
    return hwnas_printf("%s%s%s", goal->name, *goal->metric->unit ? ", " : "", goal->metric->unit);
}

/* The objective that stands across: the first behind `y` that a device gives, else the first. */
static const hwnas_goal *across(const hwnas_goals *g)
{
    for (int i = 1; i < g->n_objectives; i++)
        if (g->objectives[i].metric->source == HWNAS_FROM_DEVICE)
            return &g->objectives[i];
    return g->n_objectives > 1 ? &g->objectives[1] : NULL;
}

static const hwnas_limit *limit_on(const hwnas_summary *s, const hwnas_goal *goal)
{
    for (int i = 0; i < s->job.goals.n_limits; i++)
        if (!strcmp(s->job.goals.limits[i].goal.name, goal->name))
            return &s->job.goals.limits[i];
    return NULL;
}

static void include(double *low, double *high, double value)
{
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* Where all but the outermost 3 % of the trials are, the front's winner and the limit. */
static void find_range(double *low, double *high, const view *v, const hwnas_goal *goal)
{
    const hwnas_summary *s = v->summary;
    double *values = hwnas_alloc((s->n_trials + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; i < s->n_trials; i++)
        if (is_drawn(v, &s->trials[i]))
            values[n++] = shown(goal, value_of(&s->trials[i], goal)->value);
    hwnas_sort(values, n);
    *low = hwnas_quantile(values, n, 0.03);
    *high = hwnas_quantile(values, n, 0.97);
    free(values);
    const long winner = s->fronts[0].winner;
    if (winner >= 0 && is_drawn(v, &s->trials[winner])) {
        include(low, high, shown(goal, hwnas_value_low(value_of(&s->trials[winner], goal))));
        include(low, high, shown(goal, hwnas_value_high(value_of(&s->trials[winner], goal))));
    }
    if (limit_on(s, goal))
        include(low, high, shown(goal, limit_on(s, goal)->value));
    const double room = 0.09 * (*high - *low);
    *low -= room;
    *high += room;
}

static void add_limits(const hwnas_axes *a, const view *v)
{
    const hwnas_limit *x = limit_on(v->summary, v->x), *y = limit_on(v->summary, v->y);
    if (x) {
        const double at = hwnas_axes_x(a, shown(v->x, x->value));
        hwnas_axes_line(a, "limit", at, 0, at, hwnas_axes_y(a, a->y_low));
        hwnas_axes_text(a, "word", at - 6, hwnas_axes_y(a, a->y_low) - 8, x->text);
    }
    if (y) {
        const double at = hwnas_axes_y(a, shown(v->y, y->value));
        hwnas_axes_line(a, "limit", 0, at, hwnas_axes_x(a, a->x_high), at);
        hwnas_axes_text(a, "word", hwnas_axes_x(a, a->x_high) - 6, at - 6, y->text);
    }
}

static void add_trial(const hwnas_axes *a, const view *v, const hwnas_trial *t)
{
    const double x = hwnas_axes_x(a, shown(v->x, value_of(t, v->x)->value));
    const double y = hwnas_axes_y(a, shown(v->y, value_of(t, v->y)->value));
    if (hwnas_trial_is_estimated(t)) {
        hwnas_str_addf(a->out, "<path class=\"estimated\" d=\"M%.1f %.1fl3 3l-3 3l-3-3z\"/>\n", x,
                       y - 3);
    } else if (t->violation > 0) {
        hwnas_axes_line(a, "missed", x - 3, y - 3, x + 3, y + 3);
        hwnas_axes_line(a, "missed", x - 3, y + 3, x + 3, y - 3);
    } else {
        hwnas_str_addf(a->out, "<circle class=\"dominated\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n", x,
                       y);
    }
}

/* A network of the front, with the ends of its intervals. */
static void add_member(const hwnas_axes *a, const view *v, const hwnas_trial *t)
{
    const hwnas_value_row *x = value_of(t, v->x), *y = value_of(t, v->y);
    const double at_x = hwnas_axes_x(a, shown(v->x, x->value));
    const double at_y = hwnas_axes_y(a, shown(v->y, y->value));
    if (hwnas_value_has_interval(x))
        hwnas_axes_line(a, "whisker", hwnas_axes_x(a, shown(v->x, x->low)), at_y,
                        hwnas_axes_x(a, shown(v->x, x->high)), at_y);
    if (hwnas_value_has_interval(y))
        hwnas_axes_line(a, "whisker", at_x, hwnas_axes_y(a, shown(v->y, y->low)), at_x,
                        hwnas_axes_y(a, shown(v->y, y->high)));
    hwnas_str_addf(a->out, "<circle class=\"front\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", at_x,
                   at_y);
}

static void add_front(const hwnas_axes *a, const view *v)
{
    const hwnas_summary_front *front = &v->summary->fronts[0];
    for (size_t i = 0; i < front->n; i++)
        if (is_drawn(v, &v->summary->trials[front->trials[i]]))
            add_member(a, v, &v->summary->trials[front->trials[i]]);
    if (front->winner < 0 || !is_drawn(v, &v->summary->trials[front->winner]))
        return;
    const hwnas_trial *t = &v->summary->trials[front->winner];
    const double x = hwnas_axes_x(a, shown(v->x, value_of(t, v->x)->value));
    const double y = hwnas_axes_y(a, shown(v->y, value_of(t, v->y)->value));
    hwnas_str_addf(a->out, "<circle class=\"winner\" cx=\"%.1f\" cy=\"%.1f\" r=\"7.5\"/>\n", x, y);
    hwnas_axes_text(a, "word", x - 10, y - 9, "winner");
}

static hwnas_status fail_empty(const hwnas_summary *s, const char *what)
{
    const hwnas_place place = {.file = s->study};
    return hwnas_fail(HWNAS_E_INFEASIBLE, &place, "%s", what);
}

static hwnas_status draw_front(hwnas_str *out, const hwnas_summary *s)
{
    const view v = {.summary = s, .x = across(&s->job.goals), .y = &s->job.goals.objectives[0]};
    size_t n = 0;
    if (!v.x)
        return fail_empty(s, "a search with one objective has no front to draw; --svg curve "
                             "draws how it went");
    for (size_t i = 0; i < s->n_trials; i++)
        n += is_drawn(&v, &s->trials[i]);
    if (!n)
        return fail_empty(s, "no trial has values of both objectives yet");
    bool *is_on_front = hwnas_alloc(s->n_trials * sizeof *is_on_front);
    for (size_t i = 0; i < s->fronts[0].n; i++)
        is_on_front[s->fronts[0].trials[i]] = true;
    hwnas_axes a = {.out = out};
    find_range(&a.x_low, &a.x_high, &v, v.x);
    find_range(&a.y_low, &a.y_high, &v, v.y);
    char *x_name = name_of(v.x), *y_name = name_of(v.y);
    char *title = hwnas_printf("Pareto front: %zu network%s of %zu trials", s->fronts[0].n,
                               s->fronts[0].n == 1 ? "" : "s", s->n_trials);
    hwnas_axes_begin(&a, title, x_name, y_name, "× misses a limit, ◇ estimated");
    add_limits(&a, &v);
    for (size_t i = 0; i < s->n_trials; i++)
        if (!is_on_front[i] && is_drawn(&v, &s->trials[i]))
            add_trial(&a, &v, &s->trials[i]);
    add_front(&a, &v);
    hwnas_axes_end(&a);
    free(title);
    free(x_name);
    free(y_name);
    free(is_on_front);
    return HWNAS_OK;
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
            steps[n++] = (step){t->order, counts ? shown(goal, value->value) : NAN};
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
    for (size_t i = first; i < n; i++)
        include(&a.y_low, &a.y_high, steps[i].best);
    const double room = 0.05 * (a.y_high - a.y_low);
    a.y_low -= room;
    a.y_high += room;
    char *best_name = name_of(goal), *y_name = hwnas_printf("best %s", best_name);
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
