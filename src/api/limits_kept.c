#include "api/limits_kept.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/multiples.h"
#include "base/mem.h"
#include "study/summary.h"

static const char p50[] = "latency.p50";

hwnas_status hwnas_limit_excess(double *out, const char *constraints, const hwnas_optimized *found)
{
    hwnas_job_devices devices = {.n = 1, .rows = {{.name = "device"}}};
    static const hwnas_place nowhere = {0};
    hwnas_status status = HWNAS_OK;
    hwnas_optimized medians = *found;
    hwnas_limit limits[HWNAS_MAX_LIMITS];
    hwnas_str text = {0};
    int n = 0;
    *out = 0;
    if (!constraints)
        return HWNAS_OK;
    medians.original.latency.low = found->original.latency.value;
    TRY_OUT(hwnas_multiples_resolve(&text, constraints, &medians, false));
    TRY_OUT(hwnas_limits_parse(limits, &n, HWNAS_MAX_LIMITS, text.s, &nowhere, false, &devices));
    for (int i = 0; i < n; i++)
        if (!strcmp(limits[i].goal.metric->name, p50))
            *out = fmax(*out, hwnas_limit_violation(&limits[i], found->best.latency.value,
                                                    found->best.latency.value));
out:
    hwnas_str_done(&text);
    return status;
}

static hwnas_front_row candidate_of(const hwnas_trial *trial)
{
    const hwnas_value_row *accuracy = hwnas_trial_value(trial, "accuracy");
    const hwnas_value_row *latency = hwnas_trial_value(trial, p50);
    hwnas_front_row c = {(int64_t)trial->number, {NAN, NAN, NAN}, latency ? latency->value : NAN};
    if (accuracy)
        c.accuracy = (hwnas_estimate_95){accuracy->value, accuracy->low, accuracy->high};
    return c;
}

hwnas_status hwnas_front_below(hwnas_front_row **out, size_t *n, const char *study, double most)
{
    const hwnas_place place = {.file = study};
    hwnas_status status = HWNAS_OK;
    hwnas_store *store = NULL;
    hwnas_summary *summary = NULL;
    size_t *front = NULL;
    char text[64];
    TRY_OUT(hwnas_store_open(&store, study, HWNAS_STORE_READ));
    TRY_OUT(hwnas_summary_load(&summary, store, study));
    hwnas_goals *goals = &summary->job.goals;
    if (isfinite(most)) {
        snprintf(text, sizeof text, "%s <= %.9g s", p50, most);
        TRY_OUT(hwnas_limits_parse(goals->limits, &goals->n_limits, HWNAS_MAX_LIMITS, text, &place,
                                   false, &goals->devices));
    }
    front = hwnas_alloc((summary->n_trials + 1) * sizeof *front);
    *n = hwnas_front_find(front, summary->trials, summary->n_trials, goals, 0);
    *out = hwnas_alloc((*n + 1) * sizeof **out);
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = candidate_of(&summary->trials[front[i]]);
out:
    free(front);
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}
