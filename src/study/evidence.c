#include "study/evidence.h"

/* Every limit of a front that the trial is known to miss is on a measured value. */
static bool misses_by_measurement(const hwnas_trial *trial, const hwnas_goals *goals, int front)
{
    bool misses = false;
    for (int i = 0; i < goals->n_limits; i++) {
        const hwnas_limit *limit = &goals->limits[i];
        const hwnas_value_row *v = hwnas_trial_value(trial, limit->goal.name);
        if (!v || !hwnas_goal_counts(&limit->goal, goals, front) ||
            !(hwnas_limit_violation(limit, hwnas_value_low(v), hwnas_value_high(v)) > 0))
            continue;
        if (v->source != HWNAS_MEASURED)
            return false;
        misses = true;
    }
    return misses;
}

void hwnas_evidence_add(hwnas_evidence *evidence, const hwnas_trial *trial,
                        const hwnas_goals *goals)
{
    bool counts = false;
    if (!trial->is_finished || trial->status != HWNAS_OK)
        return;
    for (int f = 0; f < hwnas_n_fronts(goals); f++)
        counts |= misses_by_measurement(trial, goals, f);
    evidence->n_missed += counts;
    evidence->n_disturbed += counts && trial->is_unstable;
}

bool hwnas_evidence_is_bad(const hwnas_evidence *evidence)
{
    return 2 * evidence->n_disturbed > evidence->n_missed;
}

hwnas_status hwnas_evidence_check(const hwnas_evidence *evidence)
{
    if (!hwnas_evidence_is_bad(evidence))
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_DISTURBED, NULL,
                   "the machine was too busy to tell whether a network meets the constraints: %zu "
                   "of the %zu measurements that missed them were disturbed",
                   evidence->n_disturbed, evidence->n_missed),
        "'hwnas devices' says whether measurements may have real-time priority, and how to allow "
        "it; or search on with --resume when the machine is quieter");
}
