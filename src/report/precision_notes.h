/* precision_notes.h: what is to be said plainly of precisions that bring less than their name
 * promises. */
#ifndef HWNAS_REPORT_PRECISION_NOTES_H
#define HWNAS_REPORT_PRECISION_NOTES_H

#include "base/str.h"
#include "profile/profile.h"

/* A line for each precision of the profile that a device emulates, one where f32 is without the
 * units for products that tf32 has, and for each row that took
 * longer than the same in f32, by intervals that do not meet. */
void hwnas_precision_notes(hwnas_str *out, const hwnas_profile *profile);

/* Of a mixed row that was measured: which of its layers are in which precision, by which inputs
 * that was chosen and, a line behind the margin, with labels what it loses. */
void hwnas_mixed_words(hwnas_str *out, const char *margin, const hwnas_profile_row *row);

#endif
