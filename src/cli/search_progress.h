/* search_progress.h: how far a search is, on standard error. */
#ifndef HWNAS_CLI_SEARCH_PROGRESS_H
#define HWNAS_CLI_SEARCH_PROGRESS_H

#include <hwnas.h>

/* When something was shown, in seconds. What was finished and what begins have a clock each: a
 * measurement that lasts would else be told by what came just before it. */
typedef struct hwnas_progress_line {
    bool is_terminal;             /* where it is drawn again and again; else there are few lines */
    double next_done, next_begun; /* not before */
} hwnas_progress_line;

void hwnas_progress_begin(hwnas_progress_line *out);
/* For `progress` of a search's options, with a line as its context. */
void hwnas_progress_show(void *context, const hwnas_search_progress *p);
/* Both, unless the program is to be quiet. `line` must live until the search ends. */
void hwnas_progress_begin_search(hwnas_progress_line *line, hwnas_search_options *search);
void hwnas_progress_end(const hwnas_progress_line *line);

#endif
