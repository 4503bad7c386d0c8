/* session_options.h: how a search is run, beside what its job says, and what it tells on the way.
 */
#ifndef HWNAS_STUDY_SESSION_OPTIONS_H
#define HWNAS_STUDY_SESSION_OPTIONS_H

#include <signal.h>

#include "study/tasks.h"
#include "trial/trial.h"

typedef struct hwnas_progress {
    uint64_t n_done, n_failed, max_trials; /* max_trials 0: only time is limited */
    size_t n_front;
    double seconds, trials_per_minute;
    double seconds_left;                        /* NaN: not known yet */
    const hwnas_trial *winner;                  /* best so far; NULL: none is feasible yet */
    const char *phase;                          /* what the current trial is doing */
    double seconds_left_low, seconds_left_high; /* 95 % interval of that; NaN: not known */
    uint64_t n_measured, n_disturbed; /* measurements of this session; of these on a busy machine */
    const hwnas_trial *measured;      /* its network is measured now; NULL: none is */
    struct hwnas_session *session;    /* for hwnas_session_outlines() */
} hwnas_progress;

typedef struct hwnas_session_options {
    bool resume;    /* go on with an existing study */
    bool overwrite; /* put a new one in the place of an existing one */
    int n_workers;  /* of a worker: so many are on this machine; 0: one, as far as is known */
    hwnas_tasks tasks;                 /* of a worker: those of a trial that it does; 0: all */
    const volatile sig_atomic_t *stop; /* set by a signal handler; NULL: none */
    void (*progress)(void *context, const hwnas_progress *progress); /* NULL: none */
    void *context;
} hwnas_session_options;

#endif
