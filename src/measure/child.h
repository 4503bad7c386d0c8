/* child.h: what the runner does to its own process (serve.c), as what it does there may crash, hang
 * or eat all memory. */
#ifndef HWNAS_MEASURE_CHILD_H
#define HWNAS_MEASURE_CHILD_H

#include <jansson.h>

#include "base/status.h"

/* A crash here is an answer, not an accident: no core file, and the first to go, before the search,
 * when the kernel runs out of memory. */
void hwnas_child_be_expendable(void);
/* Takes the standard streams for frames, so that a library that prints cannot break one. */
HWNAS_CHECKED hwnas_status hwnas_child_claim_streams(int *in, int *out);
/* Ends the process when the other end of `in`, which must live as long, is closed. */
HWNAS_CHECKED hwnas_status hwnas_child_watch_parent(int *in);
/* Bytes of data; 0: no limit. */
HWNAS_CHECKED hwnas_status hwnas_child_limit_memory(size_t bytes);
/* Keeps the threads that are not OpenMP's on the chosen cores as well. */
void hwnas_child_pin(const json_t *cores);

#endif
