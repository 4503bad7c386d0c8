/* study.h: the loop, the one place where the stages meet: ask, build, estimate, measure, tell,
 * store. */
#ifndef HWNAS_STUDY_STUDY_H
#define HWNAS_STUDY_STUDY_H

#include <signal.h>

#include "search/search.h"
#include "study/summary.h"

typedef struct hwnas_progress {
    uint64_t n_done, n_failed, max_trials; /* max_trials 0: only time is limited */
    size_t n_front;
    double seconds, trials_per_minute;
    double seconds_left;       /* NaN: not known yet */
    const hwnas_trial *winner; /* best so far; NULL: none is feasible yet */
    const char *phase;         /* what the current trial is doing */
} hwnas_progress;

typedef struct hwnas_session_options {
    bool resume;                       /* go on with an existing study */
    bool overwrite;                    /* put a new one in the place of an existing one */
    const volatile sig_atomic_t *stop; /* set by a signal handler; NULL: none */
    void (*progress)(void *context, const hwnas_progress *progress); /* NULL: none */
    void *context;
} hwnas_session_options;

/* Runs a job until its budget is spent, the space is exhausted, or `stop` is set (then the summary
 * says so). Finished trials are in the store when this returns, however it returns. */
HWNAS_CHECKED hwnas_status hwnas_study_run(hwnas_summary **out, const hwnas_job *job,
                                           const hwnas_session_options *options);

#endif
