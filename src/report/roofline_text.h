/* roofline_text.h: what a device can do at most, for people and programs. */
#ifndef HWNAS_REPORT_ROOFLINE_TEXT_H
#define HWNAS_REPORT_ROOFLINE_TEXT_H

#include <jansson.h>

#include "base/str.h"
#include "measure/roofline.h"

/* A table of n > 0 rooflines of one device. */
void hwnas_roofline_text(hwnas_str *out, const hwnas_roofline *rooflines, size_t n);
json_t *hwnas_roofline_json(const hwnas_roofline *roofline); /* a new reference; docs/json.md */

#endif
