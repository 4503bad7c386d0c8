/* front_mixes.h: which networks of a front have a precision for each layer, and what it costs. */
#ifndef HWNAS_REPORT_FRONT_MIXES_H
#define HWNAS_REPORT_FRONT_MIXES_H

#include "base/str.h"
#include "study/summary.h"

/* A line for each network and device; nothing where layers have one precision. */
void hwnas_front_mixes_text(hwnas_str *out, const hwnas_summary *s);

#endif
