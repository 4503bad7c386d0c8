#include "study/other_limits.h"

#include <math.h>
#include <string.h>

#include "predict/predict.h"
#include "study/verified.h"

hwnas_status hwnas_other_limits_read(hwnas_job *job, const json_t *identity,
                                     const char *constraints)
{
    const hwnas_place place = {.file = "--constraints"};
    const char *accuracy = json_string_value(json_object_get(identity, "accuracy"));
    hwnas_goals *goals = &job->goals;
    goals->n_limits = 0;
    TRY(hwnas_limits_parse(goals->limits, &goals->n_limits, HWNAS_MAX_LIMITS, constraints, &place,
                           true, &goals->devices));
    if (accuracy && hwnas_predictor_name_ranks(accuracy))
        hwnas_limits_of_scores(goals->limits, goals->n_limits);
    return hwnas_limits_check(goals->limits, goals->n_limits);
}

/* Of some front it has all values that are judged. */
static bool is_whole(const hwnas_trial *trial, const hwnas_goals *goals)
{
    for (int f = 0; f < hwnas_n_fronts(goals); f++) {
        bool is_known = hwnas_front_violation(trial, goals, f, true) < INFINITY;
        for (int i = 0; i < goals->n_objectives && is_known; i++)
            is_known = !hwnas_goal_counts(&goals->objectives[i], goals, f) ||
                       hwnas_trial_value(trial, goals->objectives[i].name);
        if (is_known)
            return true;
    }
    return false;
}

static void judge(hwnas_summary *s, hwnas_trial *trial)
{
    const hwnas_goals *goals = &s->job.goals;
    for (int i = 0; i < goals->n_limits; i++)
        s->n_without[i] += !hwnas_trial_value(trial, goals->limits[i].goal.name);
    trial->violation = hwnas_trial_violation(trial, goals, false);
    if (trial->violation > 0)
        return;
    if (!is_whole(trial, goals))
        trial->violation = INFINITY;
    const bool is_known =
        trial->violation == 0 && !hwnas_trial_is_estimated(trial) && !hwnas_trial_is_partial(trial);
    s->n_left_open += !is_known && !trial->rung;
}

void hwnas_other_limits_judge(hwnas_summary *s)
{
    for (size_t i = 0; i < s->n_trials; i++)
        if (s->trials[i].is_finished && s->trials[i].status == HWNAS_OK)
            judge(s, &s->trials[i]);
}

bool hwnas_other_limits_leave_open(const hwnas_summary *s, const hwnas_trial *trial)
{
    return s->has_other_limits && trial->is_finished && trial->status == HWNAS_OK &&
           isinf(trial->violation) && !hwnas_verified_wrong(s->verified, trial->number);
}
