/* profile_report.h: a profile as a report. */
#ifndef HWNAS_API_PROFILE_REPORT_H
#define HWNAS_API_PROFILE_REPORT_H

#include "profile/record.h"

/* Takes the profile. `with_layers`: they are what a table has, and Markdown has none. */
hwnas_report *hwnas_report_of_profile(hwnas_profile *profile, bool with_layers);

#endif
