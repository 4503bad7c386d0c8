/* roofline_text.h: what a device can do at most, for people. */
#ifndef HWNAS_REPORT_ROOFLINE_TEXT_H
#define HWNAS_REPORT_ROOFLINE_TEXT_H

#include "base/str.h"
#include "measure/roofline.h"

/* A table of n > 0 rooflines of one device. */
void hwnas_roofline_text(hwnas_str *out, const hwnas_roofline *rooflines, size_t n);

#endif
