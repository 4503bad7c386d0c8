/* verbosity.h: how much the program says on standard error besides its results: -q, -v, --log. */
#ifndef HWNAS_CLI_VERBOSITY_H
#define HWNAS_CLI_VERBOSITY_H

#include <hwnas.h>

/* From here on what the library has to tell is said, as much as was asked for. */
void hwnas_log_begin(void);

/* -v: each trial; twice, also what runners and programs that train say. */
void hwnas_log_more(void);
/* -q: neither progress nor notes. */
void hwnas_log_less(void);
bool hwnas_log_is_quiet(void);
/* --log: all of it, with the time, at the end of a file. */
HWNAS_CHECKED hwnas_status hwnas_log_open(const char *path);

#endif
