/* crowd.h: which other programs use the processor, and how much of it. */
#ifndef HWNAS_MEASURE_CROWD_H
#define HWNAS_MEASURE_CROWD_H

#include "measure/measure.h"

/* What each process has used so far, by /proc/PID/stat (proc(5)). */
typedef struct hwnas_crowd hwnas_crowd;

/* All processes that there are under `root`, but this one and those that it has started. */
hwnas_crowd *hwnas_crowd_look(const char *root);
void hwnas_crowd_free(hwnas_crowd *crowd); /* accepts NULL */

/* Cores' worth of time that others had between two looks, `seconds` apart. `words` (NULL: not
 * wanted) gets the programs that had most, "cc1 1.25, python3 0.50, 7 others 0.10"; yours to
 * free(). */
double hwnas_crowd_used(char **words, const hwnas_crowd *before, const hwnas_crowd *after,
                        double seconds);

/* Several threads at ordinary priority wait for each other whenever one of them loses its core, and
 * no accounting can take that out. Says so, with what takes the cores, where less than all but a
 * tenth of a core is left for each thread; NULL where there is room, there is one thread, or
 * measurements have real-time priority. Takes a third of a second. Yours to free(). */
char *hwnas_crowd_warning(int threads, hwnas_priority priority);

#endif
