/* indicators_text.h: how good a front is, its knee, and why networks failed, as text and JSON. */
#ifndef HWNAS_REPORT_INDICATORS_TEXT_H
#define HWNAS_REPORT_INDICATORS_TEXT_H

#include "base/str.h"
#include "study/summary.h"

/* Lines of one front; none where it has one objective or no network. */
void hwnas_indicators_text(hwnas_str *out, const hwnas_summary *s,
                           const hwnas_summary_front *front);
/* {"value", "share", "share_error", "reference": {name: {"value", "unit"}}, "best": the same,
 * "knee": number of a trial or null}; null: the front is empty. A new reference. */
json_t *hwnas_indicators_json(const hwnas_summary *s, const hwnas_summary_front *front);

/* " (3 timeout, 1 crashed)", the most frequent first; nothing where none failed. */
void hwnas_failures_text(hwnas_str *out, const hwnas_summary *s);
/* How many failed, by the name of the status. A new reference. */
json_t *hwnas_failure_counts_json(const hwnas_summary *s);

#endif
