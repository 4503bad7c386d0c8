/* pace.h: how fast a core really goes at this moment, read off a few microseconds of additions.
 *
 * A chain in which each addition waits for the one before does one in a cycle: it tells the clock
 * rate. Additions that do not wait for each other go as many in a cycle as the core is wide: half
 * of that says that somebody else is on the same physical core. In a virtual machine no other
 * interference monitor sees that: the neighbour's hyperthread is neither our preemption nor stolen time. */
#ifndef HWNAS_MEASURE_PACE_H
#define HWNAS_MEASURE_PACE_H

#include <stdbool.h>

typedef struct hwnas_pace {
    double hertz; /* cycles a second */
    double width; /* additions in a cycle; both NaN on a processor that we cannot read so */
} hwnas_pace;

hwnas_pace hwnas_pace_read(void);

/* A neighbour took part of the core, judged by the widest that some readings on end have reached in
 * this process. `may_assume`: before that, what every x86 core with hyperthreads can do counts; not
 * with several threads, whose own waiting may sit on the hyperthread beside. */
bool hwnas_pace_is_shared(hwnas_pace pace, bool may_assume);

#endif
