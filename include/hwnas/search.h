/* search.h: a search in one call, and the keys of its job. */
#ifndef HWNAS_PUBLIC_SEARCH_H
#define HWNAS_PUBLIC_SEARCH_H

#include <hwnas/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a front is drawn from, while the search waits. */
typedef struct hwnas_search_front hwnas_search_front;

/* How far a search is. Fields may follow in later versions. */
typedef struct hwnas_search_progress {
    uint64_t n_done, n_failed; /* trials */
    uint64_t max_trials;       /* 0: only time is limited */
    size_t n_front;            /* networks on the front so far */
    double seconds;            /* spent, of all sessions */
    double seconds_left;       /* NaN: not known yet */
    const char *winner;        /* code of the best so far; NULL: none is feasible yet */
    const char *phase;         /* what is being done; "": the next trial */
    double trials_per_minute;
    const char *best; /* the winner's objectives, "accuracy 66.12 %, latency.p50 9.810 ms"; NULL */
    double seconds_left_low, seconds_left_high; /* 95 % interval of seconds_left; NaN: not known */
    const char *measured;             /* code of the network that is measured now; NULL: none is */
    uint64_t n_measured, n_disturbed; /* measurements so far; of these while the machine was busy */
    const hwnas_search_front *front;  /* for hwnas_search_chart(), as long as the call lasts */
} hwnas_search_progress;

/* A chart in characters. */
typedef struct hwnas_chart {
    char *text; /* lines; yours: hwnas_free() */
    /* Marks stand in `height` lines below `top` others, from column `left` on; all else are words,
     * some of them names that others gave, without power over a terminal. */
    int top, left, height;
} hwnas_chart;

/* Draws the front so far, among all trials, into so many lines and columns at most, in ASCII but
 * for names: '*' the winner, 'o' the front, '-' their intervals, '.' dominated, '~' estimated, 'x'
 * misses a limit, ':' and '-' limits. Only within `progress` of a search's options. false: there is
 * nothing to draw, as no trial has values of two objectives, or not the room (40 x 10). */
HWNAS_API bool hwnas_search_chart(hwnas_chart *out, const hwnas_search_progress *progress,
                                  int columns, int lines);

/* A key of a job, docs/searching.md, that may be said outside of its file as well. */
typedef struct hwnas_job_key_info {
    const char *name;     /* "budget.trials" of the file is "trials" here */
    char letter;          /* short form on the command line; 0: none */
    bool is_rare;         /* seldom needed: --help names it without explaining it */
    const char *argument; /* "N", "FILE" */
    const char *help;     /* a line */
} hwnas_job_key_info;

/* Key number i, from 0; false: there is none. Static texts. */
HWNAS_API bool hwnas_job_key_list(hwnas_job_key_info *out, size_t i);

/* The value of a key, in the place of the file's, as it would stand on the command line. */
typedef struct hwnas_job_flag {
    const char *name; /* of a key; NULL ends a list */
    const char *value;
} hwnas_job_flag;

typedef struct hwnas_search_options {
    size_t size;
    const char *study;  /* SQLite file; NULL: the job's */
    bool resume;        /* go on with an existing study */
    int64_t max_trials; /* 0: the job's */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the search ends soon and
     * what is finished is kept. Borrowed during the call. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told after each trial, and before each measurement, in the calling thread. */
    void (*progress)(void *context, const hwnas_search_progress *progress);
    void *context;
    bool overwrite; /* put a new study in the place of an existing one */
    /* (optional) Values of the job's keys, up to one without a name. A mistake in one has the place
     * "--NAME". */
    const hwnas_job_flag *flags;
    /* Other processes search with this one: on this machine, or, where the study is an address in
     * PostgreSQL, on others. It is begun or gone on with. */
    bool is_worker;
    int n_workers; /* of these on this machine, this one included; 0: one */
    /* (optional) A worker does these tasks of a trial alone, and leaves the rest to others:
     * "measure", "train", or names of devices of the job, with commas between. */
    const char *only;
} hwnas_search_options;
#define HWNAS_SEARCH_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_search_options), NULL, false, 0, NULL, NULL, NULL, false, NULL, false, 0,     \
            NULL                                                                                   \
    }

/* Runs a job (a YAML file; NULL: flags say it all), writes the winner to the files of its `export`,
 * and reports what the study found: text, JSON ("hwnas.study"), and the files. The report concludes
 * with HWNAS_E_INFEASIBLE, or HWNAS_E_DISTURBED, where no network is known to be within the limits
 * (its message names the closest), with HWNAS_E_INTERRUPTED after `cancel`, and with what kept an
 * export from being written. An export that cannot be written is told before anything is searched.
 * Takes what the job's budget says. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_search(hwnas_report **out, const char *job,
                                                  const hwnas_search_options *options);
/* Searches with others on a study that one of them began, as its job says, which the study keeps:
 * of the options, `study`, `resume`, `overwrite`, `max_trials` and `flags` have no meaning here.
 * Exports nothing. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_search_join(hwnas_report **out, const char *study,
                                                       const hwnas_search_options *options);
/* What hwnas_search() would do, and how long it would take: opens all that the job needs, and
 * measures three networks. HWNAS_E_INFEASIBLE where no network can meet the limits. Writes nothing.
 * Text, JSON ("hwnas.dry_run"). Seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_search_plan(hwnas_report **out, const char *job,
                                                       const hwnas_search_options *options);

#ifdef __cplusplus
}
#endif
#endif
