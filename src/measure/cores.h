/* cores.h: which cores the runner's threads are bound to. The machine is what hwloc says that it
 * is: $HWLOC_XMLFILE and $HWLOC_SYNTHETIC put another in its place. */
#ifndef HWNAS_MEASURE_CORES_H
#define HWNAS_MEASURE_CORES_H

#include <stdbool.h>

enum { HWNAS_MAX_CORES = 1024 };

/* The best `threads` of the cores that this process may use, best first; fewer when there are
 * fewer. Returns how many. */
int hwnas_cores_choose(int out[HWNAS_MAX_CORES], int threads);

/* Bytes of a cache of the last level, from the second on; 0: unknown. */
double hwnas_cores_last_cache(void);

/* Memory that this thread, and those that it starts from now on, touch first comes from the NUMA
 * nodes of these cores in turns where they are of several; of one it is that one's anyway, as Linux
 * takes what is near the thread. Returns how many nodes they are of; 0: not known. */
int hwnas_cores_spread_memory(const int *cores, int n);

/* Cores as above, and held, of one NUMA node where one has enough that are free: another program of
 * ours on this machine takes other cores while there are some. A core is held by a socket that has
 * its name, so it goes with the process; where no free ones are left, or nothing can be locked, the
 * best are shared. */
typedef struct hwnas_cores {
    int n, numbers[HWNAS_MAX_CORES];
    int n_locks, locks[HWNAS_MAX_CORES]; /* sockets */
} hwnas_cores;
void hwnas_cores_take(hwnas_cores *out, int threads);
void hwnas_cores_release(hwnas_cores *cores);
/* Others may take them; and they are held again: false, and nothing is, where somebody has one of
 * them or they were never held. */
void hwnas_cores_lend(hwnas_cores *cores);
bool hwnas_cores_reclaim(hwnas_cores *cores);

/* Runners that share cores because there are too few measure one after the other: threads with the
 * same real-time priority would otherwise keep each other from the core for seconds. Takes all of
 * the cores for a measurement, or none: false. Where nothing can be locked, it is true. */
typedef struct hwnas_turn {
    int n_locks, locks[HWNAS_MAX_CORES]; /* sockets */
} hwnas_turn;
bool hwnas_turn_take(hwnas_turn *out, const int *cores, int n);
void hwnas_turn_end(hwnas_turn *turn);

/* Takes one core: a socket that holds it until it is closed; HWNAS_CORE_TAKEN: somebody else
 * has it; -2: nothing can be locked. */
enum { HWNAS_CORE_TAKEN = -1 };
int hwnas_core_lock(int number);
/* Whether anybody, this process too, holds the core or measures on it; takes nothing. */
bool hwnas_core_is_in_use(int number);

#endif
