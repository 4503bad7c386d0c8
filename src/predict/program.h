/* program.h: programs of the user's, run side by side, each for one answer.
 *
 * Whatever a program started ends with it, and it ends with us (predict/supervise.h). Its last line
 * on standard output is the answer; of its standard error the last line goes into a message. */
#ifndef HWNAS_PREDICT_PROGRAM_H
#define HWNAS_PREDICT_PROGRAM_H

#include <signal.h>
#include <stdbool.h>

#include "base/status.h"

/* begin() may leave a run for later, to be asked again in a moment, or see that it is over, because
 * its answer is there. */
typedef enum hwnas_run_state { HWNAS_RUN_LATER, HWNAS_RUN_READY, HWNAS_RUN_OVER } hwnas_run_state;

/* One run: begin() fills in the first part, hwnas_programs_run() the rest. */
typedef struct hwnas_run {
    hwnas_run_state state;
    char **arguments;   /* [0] is the program, sought in $PATH; NULL-terminated; borrowed */
    const char *name;   /* what messages call it; NULL: its first argument; borrowed */
    char **environment; /* NULL-terminated; borrowed */

    hwnas_error error; /* of the last attempt; status HWNAS_OK: none */
    double mean, sd;   /* sd NaN: the program gave none */
    bool is_percent;   /* it put % behind */
    double seconds;    /* of the last attempt */
    bool is_enough;    /* says() may set it: what was said is enough, and the program is ended;
                          then the run has neither an error nor an answer */
} hwnas_run;

typedef struct hwnas_programs {
    size_t jobs;    /* at most so many at a time, at least 1 */
    int retries;    /* of a program that ended badly; one that was too slow or spoke nonsense would
                       again */
    double timeout; /* seconds; then the group is told to end (SIGTERM), 2 s later killed */
    const volatile sig_atomic_t *stop; /* (optional) becomes nonzero: all are ended */
    /* Called before a run's first attempt; sets its state. */
    hwnas_status (*begin)(void *context, hwnas_run *run);
    /* (optional) Called before each further attempt at a run. */
    void (*again)(void *context);
    /* Called once for each run that was READY or whose begin() failed, when it is over. It may
     * change the run's message. */
    hwnas_status (*done)(void *context, hwnas_run *run);
    /* (optional) Each line of its standard output, as it comes. */
    void (*says)(void *context, hwnas_run *run, const char *line);
    /* (optional) What the last line that it printed means, instead of an accuracy. */
    hwnas_status (*read)(void *context, const char *line);
    /* (optional) Called many times a second while something runs or is left for later. */
    void (*tick)(void *context);
    void *context;
} hwnas_programs;

/* After the first failure no further run is begun, but those under way may finish: a training is
 * worth it. Returns that failure. */
HWNAS_CHECKED hwnas_status hwnas_programs_run(const hwnas_programs *programs, hwnas_run *runs,
                                              size_t n);

#endif
