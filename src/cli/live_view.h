/* live_view.h: what a search shows on a terminal while it runs: the front drawn in characters, how
 * far it is, the best network, what is measured, and how busy the machine is. */
#ifndef HWNAS_CLI_LIVE_VIEW_H
#define HWNAS_CLI_LIVE_VIEW_H

#include <stdio.h>

#include <hwnas.h>

/* How far a search is in one line: trials, their rate, the time left, failures, size of the front.
 */
void hwnas_say_pace(FILE *to, const hwnas_search_progress *progress);

/* The lines for a terminal of that size, for hwnas_frame_show(); a small one has one line. To be
 * given to free(); NULL: no memory. */
char *hwnas_live_view(const hwnas_search_progress *progress, int columns, int lines);

#endif
