/* priority.h: real-time priority for the time of a measurement.
 *
 * Under SCHED_FIFO no ordinary process takes the core from a thread that runs (sched(7)), so a busy
 * machine measures like a quiet one. The lowest real-time priority is enough, and leaves the
 * kernel's threads and audio above. Nothing can freeze the machine: the kernel keeps 5 % of each
 * second for others (sched_rt_runtime_us), and a process that has computed for too long without a
 * pause (RLIMIT_RTTIME) gets SIGXCPU, which brings it back to ordinary priority. */
#ifndef HWNAS_MEASURE_PRIORITY_H
#define HWNAS_MEASURE_PRIORITY_H

#include <stdbool.h>
#include <stddef.h>

#include "measure/measure.h"

/* Whether this process may have real-time priority: HWNAS_OK, or HWNAS_E_UNSUPPORTED with the
 * kernel's reason and, as the hint, the line that grants it. It tries for a moment. */
HWNAS_CHECKED hwnas_status hwnas_priority_check(void);

/* Gives all threads that this process has real-time priority, for at most about `seconds` of
 * computing. Threads that it starts later are ordinary until the next call. Where the process has
 * it already (chrt), everything stays as it is. HWNAS_E_UNSUPPORTED as above; nothing is changed
 * then. These functions are for the runner: one thread at a time calls them. */
HWNAS_CHECKED hwnas_status hwnas_priority_raise(double seconds);
/* Gives it back. */
void hwnas_priority_lower(void);
/* It was raised, and the time that it was raised for is not over. */
bool hwnas_priority_is_raised(void);

/* The calling thread, and those that it starts, are no part of what is measured: it is ordinary,
 * and they are and stay so, and nobody watches them. `cores`: all that it will ever be bound to,
 * none of which is computed on; by these the threads that it starts are known. One at a time. */
void hwnas_priority_stand_by(const int *cores, int n);
/* It has ended. */
void hwnas_priority_nobody_stands_by(void);
bool hwnas_priority_stands_by(int thread);
/* Whether any thread does. */
bool hwnas_priority_has_bystander(void);

/* What a thread had before it was ordinary for a while. */
typedef struct hwnas_kept_priority {
    int policy, priority;
} hwnas_kept_priority;

/* The calling thread is ordinary from here to there, whatever it was given by chrt. To wait for the
 * end of a child with real-time priority can hold the core for good: the kernel waits, without
 * letting go of it, until an ordinary program that reads the child's entry in /proc has had its
 * turn.
 */
hwnas_kept_priority hwnas_priority_leave(void);
void hwnas_priority_return(hwnas_kept_priority kept);

#endif
