/* cores.h: which cores the runner's threads are bound to. */
#ifndef HWNAS_MEASURE_CORES_H
#define HWNAS_MEASURE_CORES_H

enum { HWNAS_MAX_CORES = 1024 };

/* The best `threads` of the cores that this process may use, best first; fewer when there are
 * fewer. Returns how many. */
int hwnas_cores_choose(int out[HWNAS_MAX_CORES], int threads);

#endif
