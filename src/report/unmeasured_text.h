/* unmeasured_text.h: which networks a search did not measure, or not train, to the end, and which of
 * them still wait for it. */
#ifndef HWNAS_REPORT_UNMEASURED_TEXT_H
#define HWNAS_REPORT_UNMEASURED_TEXT_H

#include "base/str.h"
#include "study/summary.h"

/* Up to three lines, each of which begins with its newline. */
void hwnas_unmeasured_text(hwnas_str *out, const hwnas_summary *summary);

#endif
