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
    static const hwnas_job_devices devices = {.n = 1, .rows = {{.name = "device"}}};
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

hwnas_status hwnas_best_below(int64_t *number, double *median, const char *study, double most)
{
    const hwnas_place place = {.file = study};
    hwnas_status status = HWNAS_OK;
    hwnas_store *store = NULL;
    hwnas_summary *summary = NULL;
    size_t *front = NULL;
    char text[64];
    *number = -1;
    TRY_OUT(hwnas_store_open(&store, study, HWNAS_STORE_READ));
    TRY_OUT(hwnas_summary_load(&summary, store, study));
    hwnas_goals *goals = &summary->job.goals;
    if (isfinite(most)) {
        snprintf(text, sizeof text, "%s <= %.9g s", p50, most);
        TRY_OUT(hwnas_limits_parse(goals->limits, &goals->n_limits, HWNAS_MAX_LIMITS, text, &place,
                                   false, &goals->devices));
    }
    front = hwnas_alloc((summary->n_trials + 1) * sizeof *front);
    if (hwnas_front_find(front, summary->trials, summary->n_trials, goals, 0)) {
        const hwnas_value_row *value = hwnas_trial_value(&summary->trials[front[0]], p50);
        *number = (int64_t)front[0];
        *median = value ? value->value : NAN;
    }
out:
    free(front);
    hwnas_summary_free(summary);
    hwnas_store_close(store);
    return status;
}
