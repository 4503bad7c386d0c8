/* fake_clock.h: the time of the stand-in for a GPU: when its stream does what was enqueued, at
 * which clock rate, and with how much energy. All times are seconds.
 *
 * FAKE_GPU_SIMULATION, "kernel=20e-6,tick=0.1,...", sets the members of fake_settings that it
 * names. Without it kernels take as long as they do on the host. FAKE_GPU_SHARED names a file in
 * which several processes have one GPU. */
#ifndef TEST_GPU_FAKE_CLOCK_H
#define TEST_GPU_FAKE_CLOCK_H

#include <stdbool.h>

typedef struct fake_settings {
    double is_virtual; /* 1: time passes in calls and pauses alone; 0: the host's clock */
    double values;     /* 0: kernels compute nothing when they are replayed; -1: nothing at all */
    double kernel; /* a kernel of one block, at the full clock rate; 0: as long as on the host */
    double cold;   /* share that a kernel takes longer with nothing in the cache */
    double launch; /* of the host, for each kernel or graph that it launches */
    double delay;  /* from a launch to the first kernel, where the GPU is idle */
    double event;  /* by which an event within a graph makes it longer */
    double nvml;   /* of the host, for a call of NVML's */
    double tick;   /* between two updates of the energy counter; 0: none, it is always exact */
    double idle, busy; /* watts */
    double hertz;      /* the full clock rate */
    double ramp;       /* of work until an idle GPU has its full clock rate */
    double slowest;    /* where the ramp begins, 0 to 1 */
    double cap_from, cap_until,
        cap; /* seconds of work; share of the clock rate that power leaves */
    double heat_from, heat_until, heat; /* the same for heat */
} fake_settings;

const fake_settings *fake_simulation(void);

double fake_clock(void);         /* the host's time */
void fake_spend(double seconds); /* of the host, in a call */
void fake_wait(double until);    /* the host waits for the GPU */

/* Work on the stream: `seconds` at the full clock rate, behind all that came before. With
 * `is_first` it is a launch of its own, else part of one. */
void fake_work(double seconds, bool is_first);
double fake_stream_end(void); /* when the stream will have done all of it */

unsigned fake_limits(void); /* NVML's bits */
double fake_hertz(void);
double fake_joules(void); /* as the counter shows it now */

#endif
