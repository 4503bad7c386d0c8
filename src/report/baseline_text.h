/* baseline_text.h: recorded against now, for people and for programs. */
#ifndef HWNAS_REPORT_BASELINE_TEXT_H
#define HWNAS_REPORT_BASELINE_TEXT_H

#include <jansson.h>

#include "base/str.h"
#include "profile/baseline.h"

void hwnas_baseline_text(hwnas_str *out, const hwnas_baseline *baseline);
json_t *hwnas_baseline_json(const hwnas_baseline *baseline); /* a new reference */

#endif
