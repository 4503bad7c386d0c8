#include "trial/skip.h"

#include <math.h>
#include <string.h>

#include "trial/judge.h"

static bool is_surely_missed(const hwnas_trial *trial, const hwnas_limit *limit)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
    if (!v || v->source != HWNAS_ESTIMATED)
        return false;
    const double best = limit->is_upper ? v->low : v->high;
    return hwnas_limit_violation(limit, best, best) > 0;
}

/* The best that an objective can be, minimised; false: it is not known. An accuracy may still come
 * of a training. */
static bool find_best(double *out, const hwnas_trial *trial, const hwnas_goals *goals,
                      const hwnas_goal *goal)
{
    const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
    *out = -INFINITY;
    if (!v)
        return goal->metric == hwnas_metric_of(HWNAS_ACCURACY);
    const bool is_maximised = goal->metric->is_maximised;
    const double best = v->source != HWNAS_ESTIMATED || goals->is_aggressive ? v->value
                        : is_maximised                                       ? v->high
                                                                             : v->low;
    *out = is_maximised ? -best : best;
    return true;
}

bool hwnas_trial_best_objectives(double *out, const hwnas_trial *trial, const hwnas_goals *goals)
{
    for (int i = 0; i < goals->n_objectives; i++)
        if (!find_best(&out[i], trial, goals, &goals->objectives[i]))
            return false;
    return true;
}

bool hwnas_trial_cannot_improve(const hwnas_trial *trial, const hwnas_goals *goals,
                                const hwnas_front *front)
{
    double best[HWNAS_MAX_OBJECTIVES];
    if (hwnas_n_fronts(goals) > 1)
        return false;
    for (int i = 0; i < goals->n_limits; i++)
        if (is_surely_missed(trial, &goals->limits[i]))
            return true;
    if (!front || !hwnas_trial_best_objectives(best, trial, goals))
        return false;
    for (size_t i = 0; i < front->n; i++)
        if (hwnas_dominates(front->points[i].objectives, best, goals->n_objectives))
            return true;
    return false;
}

/* In all objectives but one. */
static bool is_as_good(const double *member, const double *objectives, int n, int axis)
{
    for (int k = 0; k < n; k++)
        if (k != axis && member[k] > objectives[k])
            return false;
    return true;
}

double hwnas_trial_accuracy_floor(const hwnas_trial *trial, const hwnas_goals *goals,
                                  const hwnas_front *front)
{
    const hwnas_metric *accuracy = hwnas_metric_of(HWNAS_ACCURACY);
    double floor = -INFINITY, best[HWNAS_MAX_OBJECTIVES];
    int axis = -1;
    if (hwnas_n_fronts(goals) > 1)
        return floor;
    for (int i = 0; i < goals->n_limits; i++)
        if (goals->limits[i].goal.metric == accuracy && !goals->limits[i].is_upper)
            floor = fmax(floor, goals->limits[i].value);
    for (int i = 0; i < goals->n_objectives; i++)
        if (goals->objectives[i].metric == accuracy)
            axis = i;
        else if (!find_best(&best[i], trial, goals, &goals->objectives[i]))
            return floor;
    for (size_t i = 0; front && axis >= 0 && i < front->n; i++) {
        const double *member = front->points[i].objectives;
        if (is_as_good(member, best, goals->n_objectives, axis))
            floor = fmax(floor, -member[axis]);
    }
    return floor;
}

/* What the job asks for is known, but for one value; of what devices give, or of all. */
static bool is_known_but(const hwnas_trial *trial, const hwnas_goals *goals, const char *name,
                         bool of_devices)
{
    const hwnas_goal *all[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(all, goals);
    for (int i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) && !hwnas_trial_value(trial, all[i]->name) &&
            (!of_devices || all[i]->metric->source == HWNAS_FROM_DEVICE))
            return false;
    return true;
}

bool hwnas_trial_is_known(const hwnas_trial *trial, const hwnas_goals *goals,
                          const hwnas_metric *but)
{
    return is_known_but(trial, goals, but ? but->name : "", false);
}

double hwnas_trial_give_up(const hwnas_trial *trial, const hwnas_goals *goals,
                           const hwnas_front *front, const char *latency)
{
    double least = INFINITY, best[HWNAS_MAX_OBJECTIVES];
    int axis = -1;
    /* What the same run gives beside would be lost; an accuracy that comes later would not be asked
     * for. */
    if (hwnas_n_fronts(goals) > 1 || !is_known_but(trial, goals, latency, true))
        return 0;
    for (int i = 0; i < goals->n_limits; i++)
        if (goals->limits[i].is_upper && !strcmp(goals->limits[i].goal.name, latency))
            least = fmin(least, goals->limits[i].value);
    if (!is_known_but(trial, goals, latency, false))
        return isinf(least) ? 0 : least;
    for (int i = 0; i < goals->n_objectives; i++) {
        const hwnas_value_row *v = hwnas_trial_value(trial, goals->objectives[i].name);
        if (!strcmp(goals->objectives[i].name, latency))
            axis = i;
        else
            best[i] = goals->objectives[i].metric->is_maximised ? -v->value : v->value;
    }
    for (size_t i = 0; front && axis >= 0 && i < front->n; i++) {
        const double *member = front->points[i].objectives;
        if (is_as_good(member, best, goals->n_objectives, axis))
            least = fmin(least, member[axis]);
    }
    return isinf(least) ? 0 : least;
}
