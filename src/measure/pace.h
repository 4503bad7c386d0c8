/* pace.h: how fast a core really goes at this moment, read off a few microseconds of additions.
 *
 * A chain in which each addition waits for the one before does one in a cycle: it tells the clock
 * rate. Additions that do not wait for each other go as many in a cycle as the core is wide: half
 * of that says that somebody else is on the same physical core. In a virtual machine no other
 * interference monitor sees that: the neighbour's hyperthread is neither our preemption nor stolen
 * time. */
#ifndef HWNAS_MEASURE_PACE_H
#define HWNAS_MEASURE_PACE_H

#include <stdbool.h>

typedef struct hwnas_pace {
    double hertz; /* cycles a second */
    double width; /* additions in a cycle; both NaN on a processor that we cannot read so */
} hwnas_pace;

hwnas_pace hwnas_pace_read(void);
/* The widest that some readings on end have reached. */
typedef struct hwnas_pace_best {
    double width; /* 0: not known */
    double least; /* of the present run of readings */
    int n;        /* of them */
} hwnas_pace_best;

/* A neighbour took part of a core, judged by the best so far, which the reading may raise. Without
 * any, `assumed` counts (hwnas_pace_assumed()), unless it is 0. */
bool hwnas_pace_is_shared(hwnas_pace_best *best, hwnas_pace pace, double assumed);
/* What a core of this processor is known to do at least; 0: nothing is known. Not for several
 * threads: where the machine does not say which of its cores are hyperthreads of one, they may
 * never do better than half of it. */
double hwnas_pace_assumed(void);

#endif
