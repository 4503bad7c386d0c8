/* held_text.h: which choices a search does not search in full, and why. */
#ifndef HWNAS_REPORT_HELD_TEXT_H
#define HWNAS_REPORT_HELD_TEXT_H

#include <jansson.h>

#include "base/str.h"

/* A line for each choice that is held (study/held.h), from column `indent` on; NULL: none is. */
void hwnas_held_text(hwnas_str *out, const json_t *held, int indent);

#endif
