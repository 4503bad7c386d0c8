/* verified_text.h: what a summary says of the results of the front's networks. */
#ifndef HWNAS_REPORT_VERIFIED_TEXT_H
#define HWNAS_REPORT_VERIFIED_TEXT_H

#include "base/str.h"
#include "study/summary.h"

/* "verified    12 networks of the front against ref, largest error 3e-06", with what was not and
 * why; nothing without a front. */
void hwnas_verified_text(hwnas_str *out, const hwnas_summary *summary);

/* {networks, right, wrong, largest_error, skipped}; docs/json.md. A new reference. */
json_t *hwnas_verified_json(const hwnas_summary *summary);

/* "slow code   2 of the front's times; ...": networks of the front whose times are not those of a
 * fast runtime (profile/slow.h), with the worst of them; nothing where there is none. */
void hwnas_slow_ones_text(hwnas_str *out, const hwnas_summary *summary);
/* A list of them; a new reference. */
json_t *hwnas_slow_ones_json(const hwnas_summary *summary);

#endif
