/* profile_text.h: a profile as a table for people, as a CSV for spreadsheets. As JSON:
 * profile/record.h. */
#ifndef HWNAS_REPORT_PROFILE_TEXT_H
#define HWNAS_REPORT_PROFILE_TEXT_H

#include "base/str.h"
#include "profile/profile.h"

void hwnas_profile_text(hwnas_str *out, const hwnas_profile *profile);
/* Its rows, as a table of Markdown. */
void hwnas_profile_markdown(hwnas_str *out, const hwnas_profile *profile);
void hwnas_profile_csv(hwnas_str *out, const hwnas_profile *profile);
/* Says, where it matters, that a row's time is not that of a fast runtime; else nothing. */
void hwnas_slow_code_line(hwnas_str *out, const hwnas_profile_row *row);
/* One of its lines. */
void hwnas_profile_csv_row(hwnas_str *out, const hwnas_profile_row *row);

#endif
