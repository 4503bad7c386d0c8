/* sampler.h: samples of one executable, and the interference monitors beside each. protocol.c makes
 * a measurement of them, race.c a comparison. */
#ifndef HWNAS_MEASURE_SAMPLER_H
#define HWNAS_MEASURE_SAMPLER_H

#include "measure/buffers.h"
#include "measure/evict.h"
#include "measure/machine.h"
#include "measure/modes.h"

enum {
    HWNAS_CARRY_MEDIAN = 6,      /* fewest samples with a 95 % interval: 1 - 2 * 0.5^6 = 0.97 */
    HWNAS_MAX_SAMPLES = 1 << 20, /* 8 MiB of them; an interval is long narrow by then */
    HWNAS_MAX_BLOCKS = 4096,     /* whose energy and clock rate are kept */
};

/* A sample during which the one thread that computes waited for its core, without that wait. */
typedef struct hwnas_cpu_sample {
    double seconds;
    size_t after; /* so many clean samples */
} hwnas_cpu_sample;

typedef struct hwnas_sampler {
    hwnas_exec *exec;
    const hwnas_graph *graph;
    hwnas_machine *machine;
    const hwnas_measure_options *options;
    hwnas_buffers buffers;
    const hwnas_mode_row *mode;
    bool is_warm;           /* from then on each sample finds the state of its mode */
    hwnas_evictor *evictor; /* NULL: the mode needs none */

    double begin; /* of the budget: the first run, and waiting for the cores, are not part of it */
    double lone_seconds; /* of a run that a device is not kept busy around; NaN: as each sample */
    bool has_inputs;     /* the device has got them, by the first run */
    int runs;            /* inferences in one sample */
    size_t n_runs;       /* inferences so far */
    double run_seconds;  /* spent in them */

    unsigned long preemptions; /* at the end of the last sample */
    double waited;             /* when it was last asked for */
    double looked_when;        /* at the core */
    bool was_shared;           /* as that look saw it */
    size_t n_looks, n_shared;
    bool is_recorded;
    unsigned throttles; /* of a device's clock, in any look: a set of hwnas_throttle */

    size_t capacity;                 /* samples, at most */
    size_t room;                     /* of each of the four, in samples */
    double *clean, *aside, *scratch; /* in order of time; scratch: sorted */
    hwnas_cpu_sample *preempted;     /* in order of time */
    size_t n_clean, n_aside, n_preempted;
    size_t n_unsure; /* the last of the clean ones: the core has not been looked at since */
    double clean_seconds, aside_seconds, preempted_seconds;

    size_t n_blocks, n_energies;
    double energy[HWNAS_MAX_BLOCKS]; /* joules of a run, for each span of blocks */
    /* At the beginning of the present span: */
    double span_start, span_joules;
    size_t span_runs; /* that were done before */
    bool is_in_span;
    double hertz[HWNAS_MAX_BLOCKS]; /* clock rate at the end of it */
} hwnas_sampler;

/* Everything up to samples: buffers, the first run, whose time comes out, warm-up until `deadline`
 * at most. The sampler is to be done with even after a failure.
 */
HWNAS_CHECKED hwnas_status hwnas_sampler_open(double *first_run_seconds, hwnas_sampler *out,
                                              hwnas_exec *exec, const hwnas_graph *graph,
                                              const hwnas_measure_options *options,
                                              hwnas_machine *machine);
void hwnas_sampler_done(hwnas_sampler *s);

/* Says what is going on, and hears whether to go on. */
HWNAS_CHECKED hwnas_status hwnas_sampler_report(const hwnas_sampler *s, const char *phase);

/* Takes the interference monitors' present word as the beginning: what was before does not count.
 */
void hwnas_sampler_attend(hwnas_sampler *s);
/* Runs without taking samples, `n` inferences. */
HWNAS_CHECKED hwnas_status hwnas_sampler_run(hwnas_sampler *s, int n);
/* Room for `n` samples more, or as many as there may be: before they are taken. HWNAS_E_MEMORY. */
HWNAS_CHECKED hwnas_status hwnas_sampler_reserve(hwnas_sampler *s, size_t n);
/* Takes a sample, for which there is room, and puts it with the clean ones or aside. */
HWNAS_CHECKED hwnas_status hwnas_sampler_sample(hwnas_sampler *s);
/* Looks at the core: were the samples since the last look taken on a core of our own? */
void hwnas_sampler_look(hwnas_sampler *s);
/* Looks for a better core, and where there is one, gets the executable's data there. */
HWNAS_CHECKED hwnas_status hwnas_sampler_settle(hwnas_sampler *s);
/* Sets clean samples aside, from the `first` on. */
void hwnas_sampler_set_aside(hwnas_sampler *s, size_t first);
/* There may be one more. */
bool hwnas_sampler_has_room(const hwnas_sampler *s);

/* Most of the time was taken by others, so what the thread computed in samples that it was
 * preempted in counts as well: its CPU time. */
bool hwnas_sampler_counts_cpu_time(const hwnas_sampler *s);
/* Samples that count, and their median with its 95 % interval; uses `scratch`. */
size_t hwnas_sampler_n(const hwnas_sampler *s);
double hwnas_sampler_median(double *low, double *high, const hwnas_sampler *s);
/* Makes the preempted samples clean ones, in order of time. */
void hwnas_sampler_merge_preempted(hwnas_sampler *s);

/* Share of the sampling time whose samples do not count. */
double hwnas_sampler_disturbed_share(const hwnas_sampler *s);

#endif
