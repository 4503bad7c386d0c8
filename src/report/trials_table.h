/* trials_table.h: every trial of a study, a row each. */
#ifndef HWNAS_REPORT_TRIALS_TABLE_H
#define HWNAS_REPORT_TRIALS_TABLE_H

#include "base/str.h"
#include "study/summary.h"

/* The metrics that some trial has, in the order in which they come up first. */
enum { HWNAS_TRIAL_METRICS = 64 };
typedef struct hwnas_trial_metrics {
    size_t n;
    const char *names[HWNAS_TRIAL_METRICS]; /* borrowed from the trials */
    const hwnas_metric *kinds[HWNAS_TRIAL_METRICS];
} hwnas_trial_metrics;
hwnas_trial_metrics hwnas_trial_metrics_find(const hwnas_summary *summary);
/* By trial: whether it is on a front. Yours to free(). */
bool *hwnas_trials_on_fronts(const hwnas_summary *summary);

void hwnas_trials_text(hwnas_str *out, const hwnas_summary *summary);
/* A header, then a line for each trial: each metric with both ends of its interval and what it
 * rests on, in the units that the header names; what a trial does not have is empty. */
void hwnas_trials_csv(hwnas_str *out, const hwnas_summary *summary);
/* A line for each trial: a member of `trials` of hwnas_trials_json(). */
void hwnas_trials_jsonl(hwnas_str *out, const hwnas_summary *summary);
/* The front, then all trials, as tables of Markdown. */
void hwnas_trials_markdown(hwnas_str *out, const hwnas_summary *summary);
/* One object, format "hwnas.trials" version 1; docs/json.md describes it. A new reference. */
json_t *hwnas_trials_json(const hwnas_summary *summary);

#endif
