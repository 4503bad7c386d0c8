/* plan_text.h: the plan of a search, for people and for programs. */
#ifndef HWNAS_REPORT_PLAN_TEXT_H
#define HWNAS_REPORT_PLAN_TEXT_H

#include "base/str.h"
#include "study/plan.h"

void hwnas_plan_text(hwnas_str *out, const hwnas_plan *plan, const hwnas_job *job);
/* One object, format "hwnas.dry_run" version 1; docs/json.md describes it. A new reference. */
json_t *hwnas_plan_json(const hwnas_plan *plan, const hwnas_job *job);

#endif
