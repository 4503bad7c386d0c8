/* front.h: what a study found, for people and for programs. */
#ifndef HWNAS_REPORT_FRONT_H
#define HWNAS_REPORT_FRONT_H

#include "base/str.h"
#include "study/summary.h"

/* The front as a table, constraints, winner and statistics, a screen of text. */
void hwnas_front_text(hwnas_str *out, const hwnas_summary *summary);

/* One object, format "hwnas.study" version 1; docs/json.md describes it. A new reference. */
json_t *hwnas_front_json(const hwnas_summary *summary);

/* One trial, one value, as they stand in that object. New references. */
json_t *hwnas_trial_json(const hwnas_trial *trial, const hwnas_job *job);
json_t *hwnas_value_json(const hwnas_value_row *value);

/* "accuracy 66.12 %, latency.p50 9.810 ms": the objectives of a trial in a few words; yours to
 * free(). */
char *hwnas_trial_words(const hwnas_trial *trial, const hwnas_goals *goals);
/* The same of the values that constraints ask for. */
char *hwnas_limit_words(const hwnas_trial *trial, const hwnas_goals *goals);

#endif
