/* other_limits_text.h: what is to be said where a study is asked for limits of others. */
#ifndef HWNAS_REPORT_OTHER_LIMITS_TEXT_H
#define HWNAS_REPORT_OTHER_LIMITS_TEXT_H

#include "base/str.h"
#include "study/summary.h"

/* Lines below those of the constraints; nothing where the limits are the job's. */
void hwnas_other_limits_text(hwnas_str *out, const hwnas_summary *summary);
/* An object, or null where the limits are the job's; docs/json.md describes it. A new reference. */
json_t *hwnas_other_limits_json(const hwnas_summary *summary);

#endif
