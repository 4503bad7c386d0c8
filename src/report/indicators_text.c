#include "report/indicators_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/front.h"
#include "study/verified.h"
#include "trial/chosen.h"

/* ---- A front ---- */

static void add_value(hwnas_str *out, const hwnas_goal *goal, double value)
{
    const hwnas_metric m = hwnas_metric_shown(goal->metric, value);
    hwnas_str_addf(out, "%s %.*f%s%s", *m.unit ? goal->name : m.title, m.decimals, value / m.scale,
                   *m.unit ? " " : "", m.unit);
}

static void add_hypervolume(hwnas_str *out, const hwnas_indicators *of)
{
    hwnas_str_addf(out, "hypervolume %.1f %%", 100 * of->share);
    if (of->share_error > 0)
        hwnas_str_addf(out, " +- %.1f %%", 100 * of->share_error);
    hwnas_str_add(out, " of the box between the best of each objective and the worst feasible: ");
    for (int k = 0; k < of->n_objectives; k++) {
        hwnas_str_add(out, k ? ", " : "");
        add_value(out, of->goals[k], of->worst[k]);
    }
    hwnas_str_add(out, "\n");
}

/* A difference of percentages is one of points. */
static void add_difference(hwnas_str *out, const hwnas_goal *goal, double value)
{
    const hwnas_metric m = hwnas_metric_shown(goal->metric, value);
    hwnas_str_addf(out, "%s %.*f%s%s", *m.unit ? goal->name : m.title, m.decimals, value / m.scale,
                   *m.unit ? " " : "", strcmp(m.unit, "%") ? m.unit : "points");
}

/* By how much a front's predictions are too good in the mean, where they were chosen among several.
 */
static void add_expected(hwnas_str *out, const hwnas_summary *s, const hwnas_summary_front *front)
{
    const hwnas_indicators *of = &front->indicators;
    for (int k = 0; k < of->n_objectives && s->n_feasible > 1; k++) {
        double excess = 0;
        size_t n = 0;
        for (size_t i = 0; i < front->n; i++) {
            const hwnas_value_row *v =
                hwnas_trial_value(&s->trials[front->trials[i]], of->goals[k]->name);
            const double expected = v ? hwnas_value_when_chosen(v, of->goals[k]->metric) : NAN;
            if (isnan(expected))
                continue;
            excess += fabs(v->value - expected);
            n++;
        }
        if (!n)
            continue;
        hwnas_str_add(out, "expected    of the front");
        if (front->device >= 0)
            hwnas_str_addf(out, " on %s", s->job.goals.devices.rows[front->device].name);
        hwnas_str_add(out, n < front->n
                               ? ", where predicted of values that were learned, on average "
                               : " on average ");
        add_difference(out, of->goals[k], excess / (double)n);
        hwnas_str_addf(out, " %s than predicted: what is chosen is predicted too well\n",
                       of->goals[k]->metric->is_maximised ? "less" : "more");
    }
}

json_t *hwnas_expected_json(const hwnas_trial *trial, const hwnas_goals *goals)
{
    json_t *expected = json_object();
    for (int i = 0; i < goals->n_objectives; i++) {
        const hwnas_goal *goal = &goals->objectives[i];
        const hwnas_value_row *v = hwnas_trial_value(trial, goal->name);
        const double value = v ? hwnas_value_when_chosen(v, goal->metric) : NAN;
        if (!isnan(value))
            json_object_set_new(expected, goal->name, json_real(value / goal->metric->scale));
    }
    return expected;
}

void hwnas_indicators_text(hwnas_str *out, const hwnas_summary *s, const hwnas_summary_front *front)
{
    const hwnas_indicators *of = &front->indicators;
    add_expected(out, s, front);
    if (of->n_objectives > 1 && isfinite(of->share))
        add_hypervolume(out, of);
    if (of->knee < 0)
        return;
    const hwnas_trial *knee = &s->trials[of->knee];
    char *words = hwnas_trial_words(knee, &s->job.goals);
    hwnas_str_addf(out, "knee        trial %llu: %s\n            %s\n",
                   (unsigned long long)knee->number, words, knee->code);
    free(words);
}

static json_t *point_json(const hwnas_indicators *of, const double *values)
{
    json_t *point = json_object();
    for (int k = 0; k < of->n_objectives; k++)
        json_object_set_new(point, of->goals[k]->name,
                            json_pack("{s:f, s:s}", "value",
                                      values[k] / of->goals[k]->metric->scale, "unit",
                                      of->goals[k]->metric->unit));
    return point;
}

json_t *hwnas_indicators_json(const hwnas_summary *s, const hwnas_summary_front *front)
{
    const hwnas_indicators *of = &front->indicators;
    double scale = 1;
    if (!of->n_objectives)
        return json_null();
    for (int k = 0; k < of->n_objectives; k++)
        scale *= of->goals[k]->metric->scale;
    return json_pack(
        "{s:f, s:o, s:f, s:o, s:o, s:o}", "value", of->hypervolume / scale, "share",
        isfinite(of->share) ? json_real(of->share) : json_null(), "share_error", of->share_error,
        "reference", point_json(of, of->worst), "best", point_json(of, of->best), "knee",
        of->knee < 0 ? json_null() : json_integer((json_int_t)s->trials[of->knee].number));
}

/* ---- Failures ---- */

typedef struct failure {
    const char *status, *message;
    bool is_partial; /* its result is wrong only on some devices; else it failed as a whole */
} failure;

static bool find_failure(failure *out, const hwnas_summary *s, const hwnas_trial *trial)
{
    const char *wrong = hwnas_verified_wrong(s->verified, trial->number);
    if (!trial->is_finished || (trial->status == HWNAS_OK && !wrong))
        return false;
    *out = trial->status == HWNAS_OK
               ? (failure){hwnas_status_name(HWNAS_E_WRONG_RESULT), wrong, true}
               : (failure){hwnas_status_name(trial->status), trial->message ? trial->message : "",
                           false};
    return true;
}

static json_t *failure_json(const failure *f, const hwnas_summary *s, const hwnas_trial *trial)
{
    json_t *json = json_pack("{s:I, s:s, s:s, s:s}", "trial", (json_int_t)trial->number, "arch",
                             trial->code, "status", f->status, "message", f->message);
    if (f->is_partial) {
        json_t *devices = hwnas_verified_wrong_on(s->verified, trial->number);
        json_object_set(json, "device", json_array_get(devices, 0));
        json_object_set_new(json, "devices", devices);
    }
    return json;
}

json_t *hwnas_failures_json(const hwnas_summary *s)
{
    json_t *failures = json_array();
    failure f;
    for (size_t i = 0; i < s->n_trials; i++)
        if (find_failure(&f, s, &s->trials[i]))
            json_array_append_new(failures, failure_json(&f, s, &s->trials[i]));
    return failures;
}

json_t *hwnas_failure_counts_json(const hwnas_summary *s)
{
    json_t *counts = json_object();
    failure f;
    for (size_t i = 0; i < s->n_trials; i++)
        if (find_failure(&f, s, &s->trials[i]))
            json_object_set_new(
                counts, f.status,
                json_integer(1 + json_integer_value(json_object_get(counts, f.status))));
    return counts;
}

/* The most frequent first. */
static void add_reasons(hwnas_str *out, const size_t counts[HWNAS_N_STATUS])
{
    size_t n[HWNAS_N_STATUS];
    bool is_first = true;
    memcpy(n, counts, sizeof n);
    for (;; is_first = false) {
        int most = 0;
        for (int i = 0; i < HWNAS_N_STATUS; i++)
            most = n[i] > n[most] ? i : most;
        if (!n[most])
            break;
        hwnas_str_addf(out, "%s%zu %s", is_first ? " (" : ", ", n[most],
                       hwnas_status_name((hwnas_status)most));
        n[most] = 0;
    }
    hwnas_str_add(out, is_first ? "" : ")");
}

void hwnas_failures_text(hwnas_str *out, const hwnas_summary *s)
{
    size_t n[HWNAS_N_STATUS] = {0}, n_partial = 0;
    failure f;
    for (size_t i = 0; i < s->n_trials; i++) {
        if (!find_failure(&f, s, &s->trials[i]))
            continue;
        if (f.is_partial)
            n_partial++;
        else
            n[s->trials[i].status]++;
    }
    add_reasons(out, n);
    if (n_partial)
        hwnas_str_addf(out, ", %zu with a wrong result only on some devices", n_partial);
}
