/* confirmed_text.h: what fresh measurements said of the front's end (study/confirm.h). */
#ifndef HWNAS_REPORT_CONFIRMED_TEXT_H
#define HWNAS_REPORT_CONFIRMED_TEXT_H

#include "base/str.h"
#include "study/summary.h"

/* A line for each winner that was confirmed, after one for the front of a quick device. */
void hwnas_confirmed_text(hwnas_str *out, const hwnas_summary *summary);
/* Lists of what was found of each network, docs/json.md. */
json_t *hwnas_thorough_json(const hwnas_summary *summary);
json_t *hwnas_confirmed_json(const hwnas_summary *summary);

#endif
