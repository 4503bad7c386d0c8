/* study_handle.h: the report of what a study has found. */
#ifndef HWNAS_API_STUDY_HANDLE_H
#define HWNAS_API_STUDY_HANDLE_H

#include "study/summary.h"

struct hwnas_store *hwnas_study_store(const struct hwnas_study *study); /* borrowed */

/* Takes the summary. */
hwnas_report *hwnas_report_of_study(hwnas_summary *summary);

#endif
