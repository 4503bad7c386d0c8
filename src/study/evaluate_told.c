/* evaluate_told.c: values of devices that another program runs, as it tells them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/str.h"
#include "study/evaluator.h"
#include "trial/judge.h"

/* ---- What is told ---- */

/* What only a program can say: of a device that it runs, or an accuracy that nothing predicts. */
static bool is_told(const hwnas_job *job, const hwnas_goal *goal)
{
    return goal->device >= 0 ? hwnas_device_is_told(job->goals.devices.rows[goal->device].spelling)
                             : goal->metric->source == HWNAS_FROM_PREDICTOR && !job->predictor;
}

hwnas_status hwnas_job_check_own(const hwnas_job *job)
{
    for (const hwnas_job_device *d = job->goals.devices.rows;
         d < job->goals.devices.rows + job->goals.devices.n; d++)
        if (hwnas_device_is_told(d->spelling))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &d->place,
                                         "a search cannot run networks on the device '%s'",
                                         d->spelling),
                              "a program of yours asks for networks and tells what it measured, by "
                              "hwnas_study_open() (docs/library.md)");
    return HWNAS_OK;
}

/* Neither told nor remembered. */
static hwnas_status check_device(const hwnas_job_device *device)
{
    const hwnas_device_ops *ops;
    const char *argument;
    hwnas_status status = hwnas_device_find(&ops, &argument, device->spelling);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &device->place);
    if (!ops->open || ops->lookup)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &device->place,
                                 "the device '%s' is run by hwnas, not by who asks",
                                 device->spelling),
                      "write device: external, or let hwnas_search() run the job");
}

hwnas_status hwnas_job_check_told(const hwnas_job *job)
{
    const hwnas_place place = {.file = job->path};
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(goals, &job->goals);
    for (int i = 0; i < job->goals.devices.n; i++)
        TRY(check_device(&job->goals.devices.rows[i]));
    for (int i = 0; i < n; i++)
        if (is_told(job, goals[i]))
            return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "nothing of this job is told: all that it judges by is known"),
                      "hwnas_search() runs it; or write device: external, and objectives of it");
}

bool hwnas_evaluate_awaits(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(goals, &e->job->goals);
    for (int i = 0; i < n; i++)
        if (is_told(e->job, goals[i]) && !hwnas_trial_value(trial, goals[i]->name))
            return true;
    return false;
}

/* ---- Checking it ---- */

static hwnas_status refuse_known(const hwnas_goal *goal)
{
    const char *why = goal->metric->source == HWNAS_FROM_GRAPH       ? "it is counted"
                      : goal->metric->source == HWNAS_FROM_PREDICTOR ? "the job's predictor says it"
                                                                     : "the device remembers it";
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s is not told: %s", goal->name, why),
                      "leave it out");
}

static hwnas_status find_goal(hwnas_goal *out, const hwnas_evaluator *e, const char *name)
{
    hwnas_goal goals[HWNAS_MAX_DEVICES];
    hwnas_job_devices devices = e->job->goals.devices;
    const hwnas_place nowhere = {0};
    int n = 0;
    if (!name || !*name)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "a value without the name of a metric"),
                          "latency.p50, energy, ...: docs/searching.md lists them");
    devices.adds_phases = false;
    TRY(hwnas_goals_parse(goals, &n, HWNAS_MAX_DEVICES, name, &nowhere, false, &devices));
    if (n > 1)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%.60s on which device?", name),
                          "write '%s'", goals[0].name);
    *out = goals[0];
    return is_told(e->job, out) ? HWNAS_OK : refuse_known(out);
}

/* Both ends NaN, or both 0 as where nothing was written: there is no interval. */
static bool has_no_interval(const hwnas_metric_value *v)
{
    return (isnan(v->low) && isnan(v->high)) || (v->low == 0 && v->high == 0);
}

static hwnas_status check_numbers(const hwnas_goal *goal, const hwnas_metric_value *v)
{
    const char *name = goal->name;
    if (!isfinite(v->value))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s is not a number", name),
                          "tell a failure where nothing was measured");
    if (goal->device >= 0 && v->value <= 0)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "%s is %g, and must be above 0", name, v->value),
            "tell a failure where nothing was measured");
    if (v->unit && *v->unit && strcmp(v->unit, goal->metric->si) != 0)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s is told in %s, not in '%.20s'", name,
                                     goal->metric->si, v->unit),
                          "numbers are SI: seconds, joules, bytes");
    if (!has_no_interval(v) && !(v->low <= v->value && v->value <= v->high && isfinite(v->low) &&
                                 isfinite(v->high) && (goal->device < 0 || v->low > 0)))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "%s: %g is not within its interval [%g, %g]", name, v->value,
                                     v->low, v->high),
                          "low <= value <= high; NaN, or 0, for both: no interval");
    return HWNAS_OK;
}

static hwnas_reading reading_of(const hwnas_metric_value *v)
{
    return has_no_interval(v) ? (hwnas_reading){v->value, NAN, NAN}
                              : (hwnas_reading){v->value, v->low, v->high};
}

static hwnas_status add_told(hwnas_trial *trial, const hwnas_evaluator *e,
                             const hwnas_metric_value *v)
{
    hwnas_goal goal;
    TRY(find_goal(&goal, e, v->metric));
    TRY(check_numbers(&goal, v));
    if (hwnas_trial_value(trial, goal.name))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s is told twice", goal.name);
    const hwnas_reading r = reading_of(v);
    hwnas_value_row row = {.value = r.value, .low = r.low, .high = r.high, .source = HWNAS_TOLD};
    row.metric = hwnas_intern(goal.name);
    row.unit = goal.metric->si;
    hwnas_trial_add(trial, &row);
    return HWNAS_OK;
}

static hwnas_status require_told(const hwnas_evaluator *e, const hwnas_trial *trial)
{
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(goals, &e->job->goals);
    for (int i = 0; i < n; i++)
        if (is_told(e->job, goals[i]) && !hwnas_trial_value(trial, goals[i]->name))
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "trial %llu is told without %s, which the job judges by",
                                         (unsigned long long)trial->number, goals[i]->name),
                              "tell all values at once, or a failure");
    return HWNAS_OK;
}

static hwnas_status add_all(hwnas_trial *trial, const hwnas_evaluator *e, hwnas_settings settings,
                            const hwnas_metric_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        TRY(add_told(trial, e, &values[i]));
    /* What follows from them comes behind all of them: what is told itself stays as it is. */
    for (size_t i = 0; i < n; i++) {
        hwnas_goal goal;
        TRY(find_goal(&goal, e, values[i].metric));
        if (goal.device >= 0)
            hwnas_evaluate_add_given(trial, e, goal.device,
                                     batch_at(&e->sites[goal.device], settings.batch), HWNAS_TOLD,
                                     goal.metric, reading_of(&values[i]));
    }
    return require_told(e, trial);
}

hwnas_status hwnas_evaluate_tell(hwnas_trial *trial, hwnas_evaluator *e, hwnas_settings settings,
                                 const hwnas_metric_value *values, size_t n)
{
    const size_t n_before = trial->n_values;
    const hwnas_status status = add_all(trial, e, settings, values, n);
    if (status != HWNAS_OK)
        trial->n_values = n_before;
    else
        trial->violation = hwnas_trial_violation(trial, &e->job->goals, true);
    return status;
}
