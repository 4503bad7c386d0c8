/* thread_notes.h: how many threads pay, where a profile has several numbers of them. */
#ifndef HWNAS_REPORT_THREAD_NOTES_H
#define HWNAS_REPORT_THREAD_NOTES_H

#include "base/str.h"
#include "profile/profile.h"

/* Of one core's work, what each thread more has to add so that it pays. */
#define HWNAS_THREAD_PAYS 0.5

/* A line for each network and setting that was measured with several numbers of threads: how many
 * pay, and what more would add. Rows that failed or are unstable are left out. */
void hwnas_thread_notes(hwnas_str *out, const hwnas_profile *profile);

#endif
