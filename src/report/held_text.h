/* held_text.h: which choices a search does not search in full, and why. */
#ifndef HWNAS_REPORT_HELD_TEXT_H
#define HWNAS_REPORT_HELD_TEXT_H

#include <jansson.h>

#include "base/str.h"

/* A line for each choice that is held (study/held.h), from column `indent` on; NULL: none is. */
void hwnas_held_text(hwnas_str *out, const json_t *held, int indent);
struct hwnas_sizes; /* predict/domain.h */

/* A line that tells which sizes a search stays among; NULL or none: all. */
void hwnas_sizes_text(hwnas_str *out, const struct hwnas_sizes *sizes, int indent);
/* Behind a line, one that tells how many trials were of others; 0: none. */
void hwnas_left_out_text(hwnas_str *out, size_t n, int indent);
/* A line where a search stays among the networks that its tables have; 0: it does not. */
void hwnas_among_text(hwnas_str *out, uint64_t n_among, int indent);

#endif
