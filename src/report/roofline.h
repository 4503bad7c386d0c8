/* roofline.h: what a device can do at most, for people and programs. */
#ifndef HWNAS_REPORT_ROOFLINE_H
#define HWNAS_REPORT_ROOFLINE_H

#include <jansson.h>

#include "base/str.h"
#include "measure/roofline.h"

/* A table of `n` rooflines of one device, each line after `indent`. */
void hwnas_roofline_text(hwnas_str *out, const char *indent, const hwnas_roofline *rooflines,
                         size_t n);
json_t *hwnas_roofline_json(const hwnas_roofline *roofline); /* a new reference; docs/json.md */

#endif
