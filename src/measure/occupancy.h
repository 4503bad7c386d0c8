/* occupancy.h: how much of each core others have had, by the scheduler's accounting. */
#ifndef HWNAS_MEASURE_OCCUPANCY_H
#define HWNAS_MEASURE_OCCUPANCY_H

#include "measure/cores.h"

/* Since the machine was started, in clock ticks. */
typedef struct hwnas_core_ticks {
    long core;
    unsigned long long busy;   /* processes and interrupts */
    unsigned long long stolen; /* by the hypervisor */
} hwnas_core_ticks;

/* Reads the next line of a core in a text of /proc/stat, "cpu0 user nice system idle iowait irq
 * softirq steal ..." (proc(5)). Returns where to go on; NULL: there is none. */
const char *hwnas_core_ticks_next(hwnas_core_ticks *out, const char *text);

/* When somebody looks, what he himself has had of the cores. */
typedef struct hwnas_look {
    double now; /* seconds */
    double own; /* seconds that this process has computed in all, since the last look on `core` */
    int core;
    double other; /* seconds that one has computed who only does so while this process waits,
                     anywhere */
} hwnas_look;

/* All zero at first. Of cores from HWNAS_MAX_CORES on nothing is known. */
typedef struct hwnas_occupancy {
    hwnas_look last;
    double seconds[HWNAS_MAX_CORES]; /* taken by anybody until then */
    double others[HWNAS_MAX_CORES];  /* shares of the time between the last two looks */
} hwnas_occupancy;

/* Another look; `hertz`: of the ticks in `text`. */
void hwnas_occupancy_look(hwnas_occupancy *o, const char *text, double hertz,
                          const hwnas_look *look);

#endif
