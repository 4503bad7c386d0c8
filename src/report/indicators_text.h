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

/* Of a trial on a front, {name: value} of the objectives that were predicted: what is to be
 * expected of it after the choice, in the unit of the value. A new reference. */
json_t *hwnas_expected_json(const hwnas_trial *trial, const hwnas_goals *goals);

/* " (3 timeout, 1 crashed)", the most frequent first, and how many are wrong on one device of
 * several with a front each; nothing where none is. */
void hwnas_failures_text(hwnas_str *out, const hwnas_summary *s);
/* Those that failed, and those whose result is wrong on one device of several with a front each,
 * with its name as `device`. A new reference. */
json_t *hwnas_failures_json(const hwnas_summary *s);
/* How many of these there are, by the name of the status. A new reference. */
json_t *hwnas_failure_counts_json(const hwnas_summary *s);

#endif
