/* machine.h: what the sampling protocol sees of the machine: a clock, and interference monitors of
 * disturbance.
 *
 * It is a table of functions so that tests can put a scripted machine in its place. */
#ifndef HWNAS_MEASURE_MACHINE_H
#define HWNAS_MEASURE_MACHINE_H

#include "measure/conditions.h"
#include "measure/measure.h"

typedef struct hwnas_machine hwnas_machine;
struct hwnas_machine {
    /* Called once, when the device has started its threads and before the first sample. */
    void (*watch)(hwnas_machine *machine);
    double (*now)(hwnas_machine *machine);
    /* How often a thread of this process was made to give up its core. */
    unsigned long (*preemptions)(hwnas_machine *machine);
    /* Seconds that the threads were ready but had no core; NaN when the kernel does not tell. */
    double (*waited)(hwnas_machine *machine);
    /* Seconds that the hypervisor took from our cores, in steps of 10 ms. */
    double (*stolen)(hwnas_machine *machine);
    /* CPU seconds that the calling thread has used; NaN when others compute as well. */
    double (*cpu_time)(hwnas_machine *machine);
    /* Joules that the machine has used, from any beginning; NaN when it does not tell. */
    double (*joules)(hwnas_machine *machine);
    /* Seconds of a small fixed workload. */
    double (*reference)(hwnas_machine *machine);
    /* Somebody else is on this thread's physical core right now. Sets the core's clock rate; NaN
     * when it cannot be told. Takes a few microseconds. */
    bool (*is_shared)(hwnas_machine *machine, double *hertz);
    /* The limits that it is under at the moment. */
    hwnas_conditions (*conditions)(hwnas_machine *machine);
    void (*pause)(hwnas_machine *machine, double seconds);
    /* Called when the device has started its threads: raises their priority as the options say,
     * until the machine is closed. HWNAS_E_UNSUPPORTED: they insist on what the kernel refuses. */
    hwnas_status (*take_priority)(hwnas_machine *machine, const hwnas_measure_options *options);
    /* The threads have had real-time priority since then. */
    bool (*is_realtime)(hwnas_machine *machine);
    /* Looks for a core that nobody shares. true: the thread has moved to another one. */
    bool (*settle)(hwnas_machine *machine);
};

/* This machine. */
hwnas_machine *hwnas_machine_open(void);
void hwnas_machine_close(hwnas_machine *machine); /* accepts NULL */

/* hwnas_measure_exec() on a given machine. */
HWNAS_CHECKED hwnas_status hwnas_measure_on(hwnas_measurement *out, hwnas_exec *exec,
                                            const hwnas_graph *graph,
                                            const hwnas_measure_options *options,
                                            hwnas_machine *machine);

/* The same, again and again after pauses while the machine is disturbed; hwnas_measure_exec() is
 * this on the machine that we have. */
HWNAS_CHECKED hwnas_status hwnas_measure_retry(hwnas_measurement *out, hwnas_exec *exec,
                                               const hwnas_graph *graph,
                                               const hwnas_measure_options *options,
                                               hwnas_machine *machine);

#endif
