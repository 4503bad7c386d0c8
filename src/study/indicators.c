#include "study/indicators.h"

#include <math.h>

#include "search/pareto.h"

static double sign_of(const hwnas_goal *goal)
{
    return goal->metric->is_maximised ? -1 : 1;
}

/* All to be minimised; false: one is not known. */
static bool read_objectives(double *out, const hwnas_indicators *of, const hwnas_trial *trial)
{
    for (int k = 0; k < of->n_objectives; k++) {
        const hwnas_value_row *v = hwnas_trial_value(trial, of->goals[k]->name);
        if (!v || !isfinite(v->value))
            return false;
        out[k] = sign_of(of->goals[k]) * v->value;
    }
    return true;
}

static void find_knee(hwnas_indicators *out, const hwnas_trial *trials, const size_t *front,
                      size_t n_front, const double *low, const double *high)
{
    double values[HWNAS_MAX_OBJECTIVES], least = INFINITY;
    for (size_t i = 0; i < n_front && n_front > 2 && out->n_objectives > 1; i++) {
        double sum = 0;
        if (!read_objectives(values, out, &trials[front[i]]))
            continue;
        for (int k = 0; k < out->n_objectives; k++)
            sum += high[k] > low[k] ? (values[k] - low[k]) / (high[k] - low[k]) : 0;
        if (sum < least) {
            least = sum;
            out->knee = (long)front[i];
        }
    }
}

void hwnas_indicators_find(hwnas_indicators *out, const hwnas_trial *trials, size_t n,
                           const size_t *front, size_t n_front, const hwnas_goals *goals, int f)
{
    double low[HWNAS_MAX_OBJECTIVES], high[HWNAS_MAX_OBJECTIVES], reference[HWNAS_MAX_OBJECTIVES];
    hwnas_point point = {0};
    *out = (hwnas_indicators){.knee = -1, .share = NAN};
    for (int i = 0; n_front && i < goals->n_objectives; i++)
        if (hwnas_goal_counts(&goals->objectives[i], goals, f))
            out->goals[out->n_objectives++] = &goals->objectives[i];
    if (!out->n_objectives) /* all are of other devices, or nothing is on the front */
        return;
    hwnas_front kept = {.n_objectives = out->n_objectives};
    for (int k = 0; k < out->n_objectives; k++) {
        low[k] = INFINITY;
        high[k] = reference[k] = -INFINITY;
    }
    for (size_t i = 0; i < n_front; i++) {
        if (!read_objectives(point.objectives, out, &trials[front[i]]))
            continue;
        for (int k = 0; k < out->n_objectives; k++) {
            low[k] = fmin(low[k], point.objectives[k]);
            high[k] = fmax(high[k], point.objectives[k]);
        }
        hwnas_front_insert(&kept, &point);
    }
    for (size_t i = 0; i < n && n_front; i++)
        if (hwnas_trial_is_feasible(&trials[i], goals, f) &&
            read_objectives(point.objectives, out, &trials[i]))
            for (int k = 0; k < out->n_objectives; k++)
                reference[k] = fmax(reference[k], point.objectives[k]);
    if (kept.n) {
        double error, whole = 1;
        out->hypervolume = hwnas_hypervolume(&error, &kept, reference);
        for (int k = 0; k < out->n_objectives; k++)
            whole *= reference[k] - low[k];
        if (whole > 0) {
            out->share = out->hypervolume / whole;
            out->share_error = error / whole;
        }
        find_knee(out, trials, front, n_front, low, high);
    } else {
        out->n_objectives = 0;
    }
    for (int k = 0; k < out->n_objectives; k++) {
        out->best[k] = sign_of(out->goals[k]) * low[k];
        out->worst[k] = sign_of(out->goals[k]) * reference[k];
    }
    hwnas_front_done(&kept);
}
