#include "report/front_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "base/str.h"

double hwnas_goal_shown(const hwnas_goal *goal, double value)
{
    return value / goal->metric->scale;
}

char *hwnas_goal_title(const hwnas_goal *goal)
{
    return hwnas_printf("%s%s%s", goal->name, *goal->metric->unit ? ", " : "", goal->metric->unit);
}

static const hwnas_goal *across(const hwnas_goals *g)
{
    for (int i = 1; i < g->n_objectives; i++)
        if (g->objectives[i].metric->source == HWNAS_FROM_DEVICE)
            return &g->objectives[i];
    return g->n_objectives > 1 ? &g->objectives[1] : NULL;
}

void hwnas_front_view_init(hwnas_front_view *out, const hwnas_goals *goals, size_t n_trials)
{
    *out = (hwnas_front_view){.goals = goals,
                              .x = across(goals),
                              .y = &goals->objectives[0],
                              .trials = hwnas_alloc((n_trials + 1) * sizeof *out->trials),
                              .marks = hwnas_alloc((n_trials + 1) * sizeof *out->marks)};
}

static bool is_drawn(const hwnas_front_view *v, const hwnas_trial *t)
{
    return v->x && t->is_finished && t->status == HWNAS_OK && hwnas_trial_value(t, v->x->name) &&
           hwnas_trial_value(t, v->y->name);
}

void hwnas_front_view_add(hwnas_front_view *v, const hwnas_trial *t, bool is_on_front,
                          bool is_winner)
{
    v->marks[v->n] = !is_drawn(v, t)               ? HWNAS_MARK_NONE
                     : is_winner                   ? HWNAS_MARK_WINNER
                     : is_on_front                 ? HWNAS_MARK_FRONT
                     : hwnas_trial_is_estimated(t) ? HWNAS_MARK_ESTIMATED
                     : t->violation > 0            ? HWNAS_MARK_MISSED
                                                   : HWNAS_MARK_DOMINATED;
    v->n_front += is_on_front;
    v->n_drawn += v->marks[v->n] != HWNAS_MARK_NONE;
    v->trials[v->n++] = t;
}

void hwnas_front_view_of(hwnas_front_view *out, const hwnas_summary *s)
{
    const hwnas_summary_front *front = &s->fronts[0];
    bool *is_on_front = hwnas_alloc((s->n_trials + 1) * sizeof *is_on_front);
    for (size_t i = 0; i < front->n; i++)
        is_on_front[front->trials[i]] = true;
    hwnas_front_view_init(out, &s->job.goals, s->n_trials);
    for (size_t i = 0; i < s->n_trials; i++)
        hwnas_front_view_add(out, &s->trials[i], is_on_front[i], (long)i == front->winner);
    free(is_on_front);
}

void hwnas_front_view_done(hwnas_front_view *v)
{
    free(v->trials);
    free(v->marks);
}

const hwnas_limit *hwnas_front_view_limit(const hwnas_front_view *v, const hwnas_goal *goal)
{
    for (int i = 0; i < v->goals->n_limits; i++)
        if (!strcmp(v->goals->limits[i].goal.name, goal->name))
            return &v->goals->limits[i];
    return NULL;
}

static void include(double *low, double *high, double value)
{
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

void hwnas_front_view_range(double *low, double *high, const hwnas_front_view *v,
                            const hwnas_goal *goal)
{
    double *values = hwnas_alloc((v->n + 1) * sizeof *values);
    const hwnas_limit *limit = hwnas_front_view_limit(v, goal);
    const hwnas_value_row *winner = NULL;
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (v->marks[i] == HWNAS_MARK_NONE)
            continue;
        const hwnas_value_row *value = hwnas_trial_value(v->trials[i], goal->name);
        values[n++] = hwnas_goal_shown(goal, value->value);
        winner = v->marks[i] == HWNAS_MARK_WINNER ? value : winner;
    }
    hwnas_sort(values, n);
    *low = hwnas_quantile(values, n, 0.03);
    *high = hwnas_quantile(values, n, 0.97);
    free(values);
    if (winner) {
        include(low, high, hwnas_goal_shown(goal, hwnas_value_low(winner)));
        include(low, high, hwnas_goal_shown(goal, hwnas_value_high(winner)));
    }
    if (limit)
        include(low, high, hwnas_goal_shown(goal, limit->value));
    const double room = 0.09 * (*high - *low);
    *low -= room;
    *high += room;
}
