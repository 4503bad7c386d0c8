/* team.h: what the threads of a measurement can do together at this moment, against the best that
 * this machine has shown.
 *
 * Virtual cores move between physical ones. Two that are hyperthreads of one core for a while show
 * it only when both compute: each makes half as many additions in a cycle (pace.h). Two that are in
 * different core complexes, without a common cache, compute as fast as ever, but what one writes
 * takes several times as long to reach the other: a network with two threads took 1.6 times as long
 * so (docs/measuring.md). */
#ifndef HWNAS_MEASURE_TEAM_H
#define HWNAS_MEASURE_TEAM_H

#include "measure/pace.h"

typedef struct hwnas_team_reading {
    hwnas_pace pace; /* the calling thread's clock rate, and the least width of all */
    /* Seconds until a thread sees what another has written; NaN: there is one, or not a core for
     * each. */
    double hop;
} hwnas_team_reading;

/* Reads on all threads of an OpenMP team at once; takes some microseconds. */
hwnas_team_reading hwnas_team_read(int threads);

/* Ends the threads of the calling thread's OpenMP team, which would otherwise spin for minutes
 * where they are bound (runner_child.c). The next parallel region begins new ones, on the same
 * cores. */
void hwnas_team_dismiss(void);

typedef struct hwnas_team {
    int threads;
    hwnas_pace_best width;
    /* The least hop that all of some readings on end have reached, of this process or an earlier
     * one; 0: not known. */
    double hop;
    /* The same and the greatest width, of this process alone; 0: not known. */
    double own, own_width;
    double most, narrowest; /* of the present run of readings */
    int n;                  /* of them */
    /* Since when all processes have been far from the best, in seconds since 1970; 0: the last one
     * was not. */
    double missed;
} hwnas_team;

/* A team of which earlier processes may have seen the best: it is kept in the user's cache.
 * `threads` 0: not known, and one reads. Owns nothing. */
hwnas_team hwnas_team_open(int threads);
/* Keeps the best for others, where it is better than what they know. A best that nobody has come
 * near for an hour is another machine's, as virtual ones move: it is forgotten. One thread needs no
 * memory. */
void hwnas_team_keep(const hwnas_team *team);

/* Somebody takes part of the cores, or they are further apart than they have been. The reading may
 * raise the best, unless cores are shared: hyperthreads of one are nearer than two cores are. */
bool hwnas_team_is_disturbed(hwnas_team *team, hwnas_team_reading reading);

#endif
