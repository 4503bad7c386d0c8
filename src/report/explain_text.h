/* explain_text.h: an explanation, for people and for programs. */
#ifndef HWNAS_REPORT_EXPLAIN_TEXT_H
#define HWNAS_REPORT_EXPLAIN_TEXT_H

#include "base/str.h"
#include "study/explain.h"

void hwnas_explain_text(hwnas_str *out, const hwnas_explanation *explanation);
/* One object, format "hwnas.explanation" version 1; docs/json.md describes it. A new reference. */
json_t *hwnas_explain_json(const hwnas_explanation *explanation);

#endif
