/* measure.h: how a latency is measured, and by whom.
 *
 * The search process never runs a candidate. A child process, the runner, gets a graph as ONNX with
 * options and answers with a measurement, so a crash, a hang or a lack of memory costs one trial,
 * and thread count and pinning are set before the libraries start. docs/measuring.md argues for
 * the protocol. All times are seconds. */
#ifndef HWNAS_MEASURE_MEASURE_H
#define HWNAS_MEASURE_MEASURE_H

#include <signal.h>

#include "device/device.h"

/* In what state a sample finds the machine; modes.c has the table. */
typedef enum hwnas_mode {
    HWNAS_HOT,          /* caches as the inference before left them */
    HWNAS_COLD_WEIGHTS, /* what a run only reads is in no cache: weights, tables, code */
    HWNAS_COLD,         /* nothing is in any cache */
    HWNAS_AFTER_IDLE,   /* after a pause */
    HWNAS_SUSTAINED,    /* on and on for the whole budget */
    HWNAS_N_MODES
} hwnas_mode;

/* How the kernel schedules the threads of a measurement (priority.h). */
typedef enum hwnas_priority {
    HWNAS_PRIORITY_AUTO,     /* real-time where the kernel allows it */
    HWNAS_PRIORITY_REALTIME, /* HWNAS_E_UNSUPPORTED where it does not */
    HWNAS_PRIORITY_NORMAL,
    HWNAS_N_PRIORITIES
} hwnas_priority;

/* "auto", "realtime", "normal" */
const char *hwnas_priority_name(hwnas_priority priority);
/* HWNAS_E_INPUT with the known names. */
HWNAS_CHECKED hwnas_status hwnas_priority_find(hwnas_priority *out, const char *name);

/* Quantiles of a measurement beside its median, and where those are that it has unless others are
 * asked for. */
enum { HWNAS_MAX_TAILS = 8, HWNAS_P90 = 0, HWNAS_P99 };

typedef struct hwnas_measure_options {
    hwnas_exec_options exec; /* how to compile */
    hwnas_mode mode;
    hwnas_priority priority;
    double idle_seconds; /* the pause before each sample, in the mode that has one */
    double interval; /* stop when the 95 % interval of the median is this narrow, relative to it */
    double max_seconds;   /* time for warm-up and samples together; then the interval stays wider */
    double steps_seconds; /* time for steps, where those are asked for; 0: as much again */
    int steps_runs;       /* that they are timed in, at most; 0: as many as the interval needs */
    bool energy; /* of a device with a counter of its own, which takes a second more, is wanted */
    int min_samples;
    int fewest; /* samples that are taken even if they take twice max_seconds; 0: 6, which a
                   median's interval needs */
    double tails[HWNAS_MAX_TAILS]; /* quantiles to tell beside the median; 0 ends them */
    /* Seconds: enough is known when the whole interval of the median lies above; 0: that is never
     * enough. */
    double give_up;
    int max_attempts;    /* where the machine is disturbed; 0: some */
    double timeout;      /* silence longer than this while a request is served is a hang */
    size_t memory_limit; /* bytes of data that the runner may hold (RLIMIT_DATA); 0: none */
    /* (optional) Set by a signal handler: the measurement ends with HWNAS_E_INTERRUPTED. */
    const volatile sig_atomic_t *stop;
    /* (optional) Hears what is going on: "compiling", "sampling", ... several times a second. */
    void (*progress)(void *context, const char *phase);
    void *context;
} hwnas_measure_options;
/* 30 samples are the fewest round number that carries a p90; see docs/measuring.md. */
#define HWNAS_MEASURE_DEFAULTS                                                                     \
    {                                                                                              \
        .idle_seconds = 0.1, .interval = 0.01, .max_seconds = 1.0, .min_samples = 30,              \
        .tails = {0.9, 0.99}, .timeout = 60                                                        \
    }

/* "hot", "cold-weights", "cold", "after-idle", "sustained" */
const char *hwnas_mode_name(hwnas_mode mode);
/* Sets the mode of `options`; "after-idle=0.5" sets the pause too, "sustained=60" the budget. An
 * unknown name is HWNAS_E_USAGE with the known ones. */
HWNAS_CHECKED hwnas_status hwnas_mode_parse(hwnas_measure_options *options, const char *text);

/* The seconds that belong to the mode of `options`: the pause, the budget; NaN where it has none.
 */
double hwnas_mode_seconds(const hwnas_measure_options *options);

typedef enum hwnas_stop {
    HWNAS_STOP_INTERVAL, /* the interval became as narrow as asked */
    HWNAS_STOP_BUDGET,   /* the time was over */
    HWNAS_STOP_ABOVE,    /* the interval lay above `give_up` */
} hwnas_stop;

/* "interval", "budget", "above" */
const char *hwnas_stop_name(hwnas_stop stop);

/* A quantile and its 95 % interval; NaN where the samples do not carry it, or do not bound it on
 * both sides. */
typedef struct hwnas_tail {
    double of; /* 0.9; 0: there is none */
    double value, low, high;
} hwnas_tail;

typedef struct hwnas_measurement {
    size_t n_samples;              /* those that the quantiles below stand on */
    size_t n_disturbed;            /* samples that were set aside and taken again */
    size_t n_warm_up;              /* inferences before the first sample */
    int runs_per_sample;           /* more than 1 where one inference is too short for the clock */
    double p50, p50_low, p50_high; /* median and its 95 % interval */
    double min;
    hwnas_tail tails[HWNAS_MAX_TAILS]; /* as the options name them */
    /* Joules of one run, by the counters of the whole machine: median over blocks of samples and
     * its 95 % interval; NaN where there is no counter, or too few blocks. Of a device with a
     * counter of its own: device_energy.h, if it was asked for. */
    double energy, energy_low, energy_high;
    double compile_seconds, first_run_seconds;
    double run_seconds;   /* inside runs: warm-up, samples, disturbed ones */
    double total_seconds; /* from request to answer, as the caller saw it */
    size_t memory_bytes;  /* held by the executable */
    /* Of what the device compiles and keeps: how many pieces it looked up, and how many were there;
     * 0: it keeps none. */
    size_t cache_lookups, cache_hits;
    size_t peak_bytes;    /* that the runner's process held at most meanwhile; 0: not known */
    hwnas_stop stop;
    /* What hwnas_measurement_doubt() says in words; then the figures stand, but on shaky ground. */
    bool is_unstable;
    bool is_mixed;          /* too few undisturbed samples: the disturbed ones are among them */
    double disturbed_share; /* of the sampling time, 0 to 1 */
    double drift;           /* reference workload after / before, minus 1 */
    double trend;           /* median of the second half of the samples / of the first, minus 1 */
    double shared_share; /* of the looks at the core: somebody else was on it too; NaN: no look */
    double hertz; /* clock rate of the core or device between samples, median; NaN: not known */
    /* Of a device with a clock of its own: seconds that a lone run takes beside the latency, until its
     * launch has come there; NaN: a sample is a lone run, or no such device. */
    double launch_seconds;
    bool is_recorded; /* there, a run is launched whole */
    unsigned throttles; /* what held a device's clock down meanwhile: a set of hwnas_throttle */
    /* Medians of the first and the last tenth of the samples; NaN but in the mode `sustained`. */
    double p50_first, p50_last;
    int n_attempts; /* how often it was measured before the machine was quiet enough, or we gave up
                     */
    hwnas_mode mode;
    bool is_realtime; /* the threads had real-time priority all the time */
    /* Others had the core most of the time: samples in which the one thread waited for it count
     * with its CPU time, which is 1 to 3 % longer than the latency of a quiet machine. */
    bool is_cpu_time;
    /* Meanwhile (conditions.h): periods in which the control group had used up its CPU quota, times
     * that the processor slowed down for heat; and the frequency governor is another than
     * "performance". */
    int quota_stops, heat_stops;
    bool is_governed;
} hwnas_measurement;

/* A median with its 95 % interval, in seconds. */
typedef struct hwnas_timing {
    double p50, low, high;
} hwnas_timing;

/* A piece of a run that the device does as one. */
typedef struct hwnas_step_time {
    size_t n_nodes;
    int *nodes;      /* that it computes, of hwnas_graph_fold(graph) */
    const char *how; /* what computes it: "partition", "loops" */
    hwnas_timing time;
} hwnas_step_time;

/* Of what a run consists, in the order of running; the arena has everything in it. */
typedef struct hwnas_step_times {
    hwnas_arena *arena;
    size_t n, n_samples; /* n: 0 where the device does not tell */
    hwnas_step_time *steps;
    hwnas_timing whole; /* runs as deployed, which took turns with those step by step */
    hwnas_timing sum;   /* of all steps of a run, each less `mark` */
    hwnas_timing ratio; /* of a run as its steps were timed to the whole beside it; no seconds */
    double mark; /* seconds taken off each step: what the event behind it takes; 0: no events */
} hwnas_step_times;

void hwnas_step_times_done(hwnas_step_times *times); /* accepts what is all zero */

/* Why a measurement is unstable, as half a sentence; NULL when it is not. Borrowed, static. */
const char *hwnas_measurement_doubt(const hwnas_measurement *measurement);
/* What of the machine's own limits explains that doubt, or in the mode `sustained` a latency that
 * rises, as half a sentence; NULL: nothing that is known. Borrowed, static. */
const char *hwnas_measurement_cause(const hwnas_measurement *measurement);
/* What held the device's clock down, in words: "power", "heat"; NULL: nothing. Borrowed, static. */
const char *hwnas_measurement_throttle(const hwnas_measurement *measurement);

typedef struct hwnas_runner hwnas_runner;

/* Nothing is started yet: the child comes with the first request and is replaced after a failure.
 * A runner belongs to one thread at a time. `threads` 0: all cores that this process may use. */
HWNAS_CHECKED hwnas_status hwnas_runner_open(hwnas_runner **out, const char *device, int threads);
void hwnas_runner_close(hwnas_runner *runner); /* accepts NULL */

/* The program that is started with the argument `runner`, unless $HWNAS_RUNNER names another.
 * Without a call: the running program itself, which then must be hwnas. Borrowed. */
void hwnas_runner_use(const char *program);

/* Measures a graph (not folded yet). A crash, hang or lack of memory in the child is a status with
 * a message, and the next call works again. */
HWNAS_CHECKED hwnas_status hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                                const hwnas_graph *graph,
                                                const hwnas_measure_options *options);

/* As hwnas_runner_measure(), and then the time of each step, for up to max_seconds more. `out` is
 * as deployed; `steps` is to be done with. Steps that were timed in fewer than six runs have the
 * shortest and the longest time in the place of an interval. */
HWNAS_CHECKED hwnas_status hwnas_runner_measure_steps(hwnas_measurement *out,
                                                      hwnas_step_times *steps, hwnas_runner *runner,
                                                      const hwnas_graph *graph,
                                                      const hwnas_measure_options *options);

/* What the child's device says of itself. */
HWNAS_CHECKED hwnas_status hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner);

/* The child's side, `hwnas runner`: serves requests from standard input until it ends. */
HWNAS_CHECKED hwnas_status hwnas_runner_serve(void);

/* The sampling protocol itself, in this process; the runner's core. */
HWNAS_CHECKED hwnas_status hwnas_measure_exec(hwnas_measurement *out, hwnas_exec *exec,
                                              const hwnas_graph *graph,
                                              const hwnas_measure_options *options);

#endif
