/* goal.h: what a search is after: metrics of devices, and limits on them.
 *
 * A metric that is measured belongs to a device. Where a job has one device its name need not be
 * said; where it has several, "latency.p50 on pi" is one goal, and "latency.p50" is one for each.
 */
#ifndef HWNAS_TRIAL_GOAL_H
#define HWNAS_TRIAL_GOAL_H

#include "search/pareto.h"
#include "trial/metric.h"

enum { HWNAS_MAX_DEVICES = 8, HWNAS_MAX_LIMITS = 32, HWNAS_GOAL_NAME = 64 };

/* A device of a job, or one phase of the space's networks on it: a row of its own, which is
 * measured by itself. */
typedef struct hwnas_job_device {
    const char *name;             /* the spelling's first word unless the job names it */
    char phase[HWNAS_PHASE_NAME]; /* "": the network is as the space's settings say */
    const char *spelling;         /* "cpu", "replay:FILE#COLUMN" */
    hwnas_place place;            /* of a phase: of the goal that names it */
    int threads, batch, dtype; /* as in hwnas_settings; 0: the job's */
    double price;              /* an hour, in the user's money; NaN: not given */
} hwnas_job_device;

typedef struct hwnas_job_devices {
    int n;
    bool adds_phases; /* a goal may name a phase that has no row yet */
    hwnas_job_device rows[HWNAS_MAX_DEVICES];
} hwnas_job_devices;

/* What a row is called where each has a name: "pi", "decode" where there is one device,
 * "decode.pi".
 */
enum { HWNAS_ROW_NAME = HWNAS_PHASE_NAME + 64 };
typedef struct hwnas_row_name {
    char text[HWNAS_ROW_NAME];
} hwnas_row_name;
hwnas_row_name hwnas_job_row_name(const hwnas_job_devices *devices, int row);

typedef struct hwnas_goal {
    const hwnas_metric *metric;
    int device; /* index; -1: of the network, whatever runs it */
    char phase[HWNAS_PHASE_NAME]; /* of the space; "": none */
    /* As in the store and in JSON: "latency.p50", or "latency.p50 on pi" where there are several
     * devices; "decode.latency.p50" of a phase. */
    char name[HWNAS_GOAL_NAME];
} hwnas_goal;

/* The goal of a metric in a phase ("": none), whatever device runs the network. */
hwnas_goal hwnas_goal_in(const hwnas_metric *metric, const char *phase);
/* The goal of a metric on a device, in the phase of that row; -1: of no device and no phase. */
hwnas_goal hwnas_goal_of(const hwnas_metric *metric, int device, const hwnas_job_devices *devices);

/* Appends the goals that "latency.p50 on pi", "latency.p50" or "decode.latency" mean, and the rows
 * of `devices` that a phase needs. HWNAS_E_INPUT at the column, when `is_verbatim`: text[i] stands
 * i columns behind the place. */
HWNAS_CHECKED hwnas_status hwnas_goals_parse(hwnas_goal *goals, int *n, int max, const char *text,
                                             const hwnas_place *place, bool is_verbatim,
                                             hwnas_job_devices *devices);

/* "latency.p50 <= 10 ms on pi" */
typedef struct hwnas_limit {
    hwnas_goal goal;
    bool is_upper;  /* <= and <; otherwise >= and > */
    bool is_strict; /* < and > */
    double value;   /* SI */
    hwnas_place place;
    char text[128]; /* in words that can be parsed again */
} hwnas_limit;

/* Appends the limits of an expression: comparisons joined by `and` or a comma, each with a unit and
 * `on DEVICE` if need be. A limit without unit is read in the unit that the metric is shown in. */
HWNAS_CHECKED hwnas_status hwnas_limits_parse(hwnas_limit *limits, int *n, int max,
                                              const char *text, const hwnas_place *place,
                                              bool is_verbatim, hwnas_job_devices *devices);

/* What a search is after. */
typedef struct hwnas_goals {
    hwnas_job_devices devices; /* none: nothing is measured */
    int n_objectives, n_limits, n_targets;
    hwnas_goal objectives[HWNAS_MAX_OBJECTIVES];
    hwnas_limit limits[HWNAS_MAX_LIMITS];
    hwnas_limit targets[HWNAS_MAX_LIMITS]; /* the search ends when a network meets all of them */
    bool is_front_per_device; /* a front for each device, instead of one for all together */
    /* An estimate counts as it is, not by the best end of its interval: what may be good, but more
     * likely is not, is not measured. */
    bool is_aggressive;
} hwnas_goals;

/* Objectives, then what limits are on, then what targets are. Returns how many. */
enum { HWNAS_MOST_GOALS = HWNAS_MAX_OBJECTIVES + 2 * HWNAS_MAX_LIMITS };
int hwnas_goals_list(const hwnas_goal *out[HWNAS_MOST_GOALS], const hwnas_goals *goals);

/* Leaves out devices without a phase that no goal is of, where some goal names a phase: what is not
 * asked for is not measured. */
void hwnas_goals_drop_idle(hwnas_goals *goals);

/* Goals of the accuracy are meant for a proxy's score. */
void hwnas_goals_of_scores(hwnas_goal *goals, int n);
void hwnas_limits_of_scores(hwnas_limit *limits, int n);

/* HWNAS_E_INPUT for limits that no value can meet together, at the place of the later one. */
HWNAS_CHECKED hwnas_status hwnas_limits_check(const hwnas_limit *limits, int n);

/* 0 when [low, high] lies within the limit, else the relative excess of the worse end. */
double hwnas_limit_violation(const hwnas_limit *limit, double low, double high);

#endif
