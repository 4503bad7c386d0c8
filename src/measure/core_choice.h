/* core_choice.h: on which core a runner of one thread runs. Neighbours on the hyperthreads of a
 * shared machine come and go, as other processes do, and not on all cores at once: the thread goes
 * where it is alone. */
#ifndef HWNAS_MEASURE_CORE_CHOICE_H
#define HWNAS_MEASURE_CORE_CHOICE_H

#include <stdbool.h>

#include "measure/cores.h"

/* The cores that this process was bound to, and those that it may move between. Without a call, or
 * with more than one thread, it stays where it is. */
void hwnas_place_bind(const int *cores, int n);
void hwnas_place_allow(const int *cores, int n, int threads);
/* The cores that this process computes on; returns how many, 0: not known. */
int hwnas_place_cores(const int **out);
/* That this process computes with; 0: not known. */
int hwnas_place_threads(void);
/* Of the cores that it may move between those that no measurement holds: writes `most` at most,
 * returns how many. */
int hwnas_place_free(int *cores, int most);
/* Looks at each allowed core for a millisecond, but those that other runners hold, and at the
 * scheduler's accounting, and stays on the one where others would spoil the fewest samples. true: that is
 * another than before, with caches of its own. */
bool hwnas_place_settle(void);
/* Takes all cores that this process computes on for a measurement, or none: false, somebody else
 * measures on one of them. One thread goes to another allowed core where nobody does. */
bool hwnas_place_take_turn(hwnas_turn *out);
/* Sleeps for a millisecond on one of these cores, another at each call. true: it took so much
 * longer that a thread of real-time priority must have computed there. */
bool hwnas_place_nap(void);

#endif
