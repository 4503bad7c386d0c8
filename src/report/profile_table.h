/* profile_table.h: the table of a profile's rows: which columns it has, in which units. */
#ifndef HWNAS_REPORT_PROFILE_TABLE_H
#define HWNAS_REPORT_PROFILE_TABLE_H

#include "base/str.h"
#include "profile/profile.h"
#include "report/grid.h"

/* A row for each of the profile's; columns that would say nothing new are left out. */
void hwnas_profile_table(hwnas_grid *grid, const hwnas_profile *profile);
/* A line: what stands in its columns. */
void hwnas_profile_legend(hwnas_str *out, const hwnas_profile *profile);
/* Whether the time was over before the median's interval was as narrow as asked: marked "~". */
bool hwnas_profile_is_wide(const hwnas_profile_row *row);

#endif
