#include "study/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

hwnas_score hwnas_trial_score(const hwnas_trial *trial, const hwnas_job *goals)
{
    hwnas_score score = {.violation = INFINITY};
    if (trial->status != HWNAS_OK)
        return score;
    score.violation = trial->violation;
    for (int i = 0; i < goals->n_objectives; i++) {
        const hwnas_metric *metric = goals->objectives[i];
        const hwnas_value_row *v = hwnas_trial_value(trial, metric->name);
        /* Not measured because it is infeasible anyway; a feasible trial without the value has
         * failed. */
        if (!v && score.violation == 0)
            score.violation = INFINITY;
        score.objectives[i] = !v ? 0 : metric->is_maximised ? -v->value : v->value;
    }
    return score;
}

bool hwnas_trial_is_feasible(const hwnas_trial *trial, const hwnas_job *goals)
{
    return trial->is_finished && hwnas_trial_score(trial, goals).violation == 0;
}

static json_t *detail_of(const hwnas_trial *trial)
{
    return trial->detail ? json_loads(trial->detail, 0, NULL) : NULL;
}

bool hwnas_trial_is_unstable(const hwnas_trial *trial)
{
    json_t *detail = detail_of(trial);
    bool is_unstable = json_is_true(json_object_get(detail, "unstable"));
    json_decref(detail);
    return is_unstable;
}

static double run_seconds(const hwnas_trial *trial)
{
    json_t *detail = detail_of(trial);
    double seconds = json_number_value(json_object_get(detail, "run_seconds"));
    json_decref(detail);
    return seconds;
}

static void find_front(hwnas_summary *s)
{
    hwnas_front front = {.n_objectives = s->goals.n_objectives};
    double least = INFINITY;
    s->winner = s->closest = -1;
    for (size_t i = 0; i < s->n_trials; i++) {
        const hwnas_trial *trial = &s->trials[i];
        if (!trial->is_finished)
            continue;
        s->n_finished++;
        s->n_failed += trial->status != HWNAS_OK;
        s->run_seconds += run_seconds(trial);
        hwnas_score score = hwnas_trial_score(trial, &s->goals);
        if (score.violation == 0) {
            hwnas_point point = {.id = i};
            memcpy(point.objectives, score.objectives, sizeof point.objectives);
            s->n_feasible++;
            hwnas_front_insert(&front, &point);
        } else if (score.violation < least) {
            least = score.violation;
            s->closest = (long)i;
        }
    }
    s->n_front = front.n;
    s->front = hwnas_alloc((front.n + 1) * sizeof *s->front);
    for (size_t i = 0; i < front.n; i++)
        s->front[i] = front.points[i].id;
    if (front.n)
        s->winner = (long)s->front[0]; /* the archive is sorted by the first objective */
    hwnas_front_done(&front);
}

/* A fact that is JSON; NULL when it was never set. */
static hwnas_status get_json(json_t **out, hwnas_store *store, const char *key)
{
    char *text = NULL;
    TRY(hwnas_store_get(&text, store, key));
    *out = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    return HWNAS_OK;
}

hwnas_status hwnas_summary_load(hwnas_summary **out, hwnas_store *store, const char *study)
{
    hwnas_status status = HWNAS_OK;
    hwnas_summary *s = hwnas_alloc(sizeof *s);
    json_t *wall = NULL;
    s->study = hwnas_strdup(study);
    TRY_OUT(get_json(&s->identity, store, "job"));
    if (!s->identity) {
        hwnas_place place = {.file = study};
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "the search was ended before it began"),
                       "'hwnas search JOB.yaml --study %s --resume' begins it", study);
        goto out;
    }
    TRY_OUT(get_json(&s->device, store, "device"));
    TRY_OUT(get_json(&wall, store, "wall_seconds"));
    s->wall_seconds = json_number_value(wall);
    TRY_OUT(hwnas_job_goals(&s->goals, s->identity));
    TRY_OUT(hwnas_store_trials(&s->trials, &s->n_trials, store));
    find_front(s);
    *out = s;
    s = NULL;
out:
    json_decref(wall);
    hwnas_summary_free(s);
    return status;
}

void hwnas_summary_free(hwnas_summary *s)
{
    if (!s)
        return;
    hwnas_trials_free(s->trials, s->n_trials);
    json_decref(s->identity);
    json_decref(s->device);
    free(s->front);
    free(s->study);
    free(s);
}
