/* protocol.c: from an executable to a latency that one can stand by. docs/measuring.md gives the
 * reasons; the order here is the order there: first run, warm-up, samples in blocks with the
 * machine's witnesses beside them, the stopping rule, the verdict.
 *
 * Between the two readings of the clock there is nothing but the device; all memory is taken and
 * touched before the first sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "measure/buffers.h"
#include "measure/machine.h"

enum {
    WINDOW_RUNS = 5,       /* a warm-up window has at least so many samples ... */
    WINDOW_SAMPLES = 512,  /* ... and at most so many */
    CARRY_MEDIAN = 6,      /* fewest samples with a 95 % interval: 1 - 2 * 0.5^6 = 0.97 */
    MAX_SAMPLES = 1 << 20, /* 8 MiB of them; an interval is long narrow by then */
    MAX_RUNS = 1 << 20,    /* inferences in one sample */
    MAX_BLOCKS = 4096,     /* whose energy is kept */
};
static const double WINDOW_SECONDS = 0.01;  /* a warm-up window lasts at least so long */
static const double WARM = 0.02;            /* two windows agree within so much */
static const double WARM_UP_SHARE = 0.3;    /* of the budget, at most */
static const double SAMPLE_SECONDS = 20e-6; /* a sample is at least so long ... */
static const double CLOCK_SHARE = 0.01;     /* ... and the clock's own time this small a part */
static const double SLICE_SECONDS = 20e-3;  /* longer than a time slice of the scheduler */
static const double BLOCK_SECONDS = 0.1;    /* the witness of stolen time ticks in 0.01 s */
static const double LOST_SHARE = 0.01;      /* losing more than this disturbs a sample */
static const double MAX_DISTURBED = 0.5;    /* of the sampling time */
static const double MAX_DRIFT = 0.03;       /* one step of a Xeon's clock rate was 2.8 % */

typedef struct sampler {
    hwnas_exec *exec;
    hwnas_machine *machine;
    const hwnas_measure_options *options;
    hwnas_buffers buffers;

    int runs;           /* inferences in one sample */
    size_t n_runs;      /* inferences so far */
    double run_seconds; /* spent in them */

    unsigned long preemptions; /* at the end of the last sample */
    double waited;             /* when it was last asked for */

    size_t capacity;                 /* of each of the three */
    double *clean, *aside, *scratch; /* in order of time; scratch: sorted */
    size_t n_clean, n_aside;
    double clean_seconds, aside_seconds;

    size_t n_blocks;
    double energy[MAX_BLOCKS]; /* joules of a run, for each block of samples */
} sampler;

static void sampler_done(sampler *s)
{
    hwnas_buffers_done(&s->buffers);
    free(s->clean);
    free(s->aside);
    free(s->scratch);
}

/* Says what is going on, and hears whether to go on. */
static hwnas_status report(const sampler *s, const char *phase)
{
    const hwnas_measure_options *o = s->options;
    if (o->progress)
        o->progress(o->context, phase);
    if (o->stop && *o->stop)
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while %s", phase);
    return HWNAS_OK;
}

/* One sample: `runs` inferences back to back. `seconds` is the time of one. */
static hwnas_status take(double *seconds, sampler *s)
{
    const float *const *inputs = (const float *const *)s->buffers.inputs;
    double start = s->machine->now(s->machine);
    for (int i = 0; i < s->runs; i++)
        TRY(s->exec->ops->run(s->exec, inputs, s->buffers.outputs));
    double elapsed = s->machine->now(s->machine) - start;
    s->run_seconds += elapsed;
    s->n_runs += (size_t)s->runs;
    *seconds = elapsed / s->runs;
    return HWNAS_OK;
}

/* Sets s->runs so that the clock does not matter. A short inference that lost a time slice looks
 * long enough, so the best of three counts, up to a length that no lost slice explains. */
static hwnas_status choose_runs(sampler *s)
{
    const int n_readings = 64;
    double start = s->machine->now(s->machine), end = start;
    for (int i = 0; i < n_readings; i++)
        end = s->machine->now(s->machine);
    double enough = fmax(SAMPLE_SECONDS, (end - start) / n_readings / CLOCK_SHARE);
    for (s->runs = 1; s->runs < MAX_RUNS; s->runs *= 2) {
        double best = INFINITY, seconds = 0;
        for (int i = 0; i < 3 && best >= enough && seconds < SLICE_SECONDS; i++) {
            TRY(take(&seconds, s));
            seconds *= s->runs;
            best = fmin(best, seconds);
        }
        if (best >= enough)
            break;
    }
    return HWNAS_OK;
}

/* Median of one window; `is_over` when the time for warm-up ended it. */
static hwnas_status warm_window(double *median, bool *is_over, sampler *s, double deadline)
{
    double window[WINDOW_SAMPLES], sum = 0;
    int n = 0;
    *is_over = false;
    while (!*is_over && n < WINDOW_SAMPLES && (n < WINDOW_RUNS || sum < WINDOW_SECONDS)) {
        TRY(report(s, "warming up"));
        TRY(take(&window[n], s));
        sum += window[n++] * s->runs;
        *is_over = s->machine->now(s->machine) >= deadline;
    }
    hwnas_sort(window, (size_t)n);
    *median = hwnas_quantile(window, (size_t)n, 0.5);
    return HWNAS_OK;
}

/* Until the medians of two successive windows agree, or the time for it is over. */
static hwnas_status warm_up(double *median, sampler *s, double deadline)
{
    double last = 0;
    bool is_over = false;
    TRY(choose_runs(s));
    do {
        TRY(warm_window(median, &is_over, s, deadline));
        if (fabs(*median - last) <= WARM * last)
            break;
        last = *median;
    } while (!is_over);
    return HWNAS_OK;
}

/* Room for what the remaining time can hold when samples come four times as fast as in warm-up. */
static hwnas_status make_room(sampler *s, double expected, double seconds)
{
    double fit = 4 * fmax(seconds, 0) / fmax(expected * s->runs, 1e-9);
    double least = fmax(CARRY_MEDIAN, s->options->min_samples);
    s->capacity = (size_t)fmin(fmax(fit, 2 * least), MAX_SAMPLES);
    double **arrays[] = {&s->clean, &s->aside, &s->scratch};
    for (int i = 0; i < 3; i++) {
        void *array;
        TRY(hwnas_try_alloc(&array, s->capacity * sizeof **arrays[i], "the samples"));
        *arrays[i] = array;
    }
    return HWNAS_OK;
}

/* Was the sample that has just ended disturbed? A preemption is the sign; the time that threads
 * waited for a core is the damage, as a kernel thread that wants a core for 20 us is no harm to a
 * sample of 20 ms. Where the kernel does not tell the damage, the sign is enough. */
static bool was_disturbed(sampler *s, double seconds)
{
    unsigned long preemptions = s->machine->preemptions(s->machine);
    if (preemptions == s->preemptions)
        return false;
    s->preemptions = preemptions;
    double waited = s->machine->waited(s->machine), lost = waited - s->waited;
    s->waited = waited;
    return isnan(lost) || lost > LOST_SHARE * seconds;
}

/* Takes samples, one at least, until the block is full. Its clean ones are set aside together when
 * the hypervisor took time from our cores meanwhile: which of them it hit cannot be known. */
static hwnas_status take_block(sampler *s, double deadline)
{
    hwnas_machine *m = s->machine;
    size_t least = (s->n_clean + s->n_aside) / 8, first = s->n_clean, n = 0;
    double stolen = m->stolen(m), joules = m->joules(m), start = m->now(m), elapsed = 0;
    double clean_seconds = 0;
    size_t n_runs = s->n_runs;
    if (least < 10)
        least = 10;
    s->preemptions = m->preemptions(m);
    s->waited = m->waited(m);
    do {
        double one;
        TRY(take(&one, s));
        double seconds = one * s->runs;
        if (was_disturbed(s, seconds)) {
            s->aside[s->n_aside++] = one;
            s->aside_seconds += seconds;
        } else {
            s->clean[s->n_clean++] = one;
            clean_seconds += seconds;
        }
        elapsed = m->now(m) - start;
    } while (++n < least && elapsed < BLOCK_SECONDS && start + elapsed < deadline &&
             s->n_clean + s->n_aside < s->capacity);
    joules = (m->joules(m) - joules) / (double)(s->n_runs - n_runs);
    if (!isnan(joules) && s->n_blocks < MAX_BLOCKS)
        s->energy[s->n_blocks++] = joules;
    if (m->stolen(m) - stolen > LOST_SHARE * elapsed) {
        while (s->n_clean > first)
            s->aside[s->n_aside++] = s->clean[--s->n_clean];
        s->aside_seconds += clean_seconds;
    } else {
        s->clean_seconds += clean_seconds;
    }
    return HWNAS_OK;
}

/* The stopping rule's question. */
static bool is_narrow(const sampler *s)
{
    double low, high, p50;
    if (s->n_clean < CARRY_MEDIAN || s->n_clean < (size_t)fmax(s->options->min_samples, 0))
        return false;
    memcpy(s->scratch, s->clean, s->n_clean * sizeof *s->clean);
    hwnas_sort(s->scratch, s->n_clean);
    p50 = hwnas_quantile(s->scratch, s->n_clean, 0.5);
    return hwnas_quantile_interval(s->scratch, s->n_clean, 0.5, &low, &high) &&
           high - low <= s->options->interval * p50;
}

static double disturbed_share(const sampler *s)
{
    double sampling = s->clean_seconds + s->aside_seconds;
    return sampling > 0 ? s->aside_seconds / sampling : 0;
}

static hwnas_status sample(hwnas_stop *stop, sampler *s, double deadline)
{
    for (;;) {
        TRY(report(s, "sampling"));
        TRY(take_block(s, deadline));
        /* What was mostly disturbed so far may be so no longer in a moment. */
        if (is_narrow(s) && disturbed_share(s) <= MAX_DISTURBED) {
            *stop = HWNAS_STOP_INTERVAL;
            return HWNAS_OK;
        }
        size_t n = s->n_clean + s->n_aside;
        bool is_over = s->machine->now(s->machine) >= deadline && n >= CARRY_MEDIAN;
        if (is_over || n == s->capacity) {
            *stop = HWNAS_STOP_BUDGET;
            return HWNAS_OK;
        }
    }
}

/* A quantile is carried when its upper 95 % bound lies within the sample: the probability that
 * all n samples fall below it is q^n, so n >= log(0.05) / log(q): 29 for p90, 299 for p99. */
static double carried_quantile(const double *sorted, size_t n, double q)
{
    return pow(q, (double)n) <= 0.05 ? hwnas_quantile(sorted, n, q) : NAN;
}

/* 95 % interval of a quantile that the samples carry; NaN where they do not bound it. */
static void carried_interval(double *low, double *high, const double *sorted, size_t n, double q)
{
    if (!hwnas_quantile_interval(sorted, n, q, low, high))
        *low = *high = NAN;
}

static double median_interval(double *low, double *high, double *scratch, const double *values,
                              size_t n)
{
    memcpy(scratch, values, n * sizeof *values);
    hwnas_sort(scratch, n);
    hwnas_quantile_interval(scratch, n, 0.5, low, high);
    return hwnas_quantile(scratch, n, 0.5);
}

/* Second half of the samples against the first: 0 when their intervals overlap, so that chance is
 * no trend. */
static double find_trend(const sampler *s)
{
    size_t half = s->n_clean / 2;
    double low[2], high[2], p50[2];
    if (half < CARRY_MEDIAN)
        return 0;
    for (int i = 0; i < 2; i++)
        p50[i] = median_interval(&low[i], &high[i], s->scratch,
                                 s->clean + (i ? s->n_clean - half : 0), half);
    return low[1] > high[0] || low[0] > high[1] ? p50[1] / p50[0] - 1 : 0;
}

/* Fills in everything that follows from the samples. */
static void conclude(hwnas_measurement *out, sampler *s)
{
    out->n_disturbed = s->n_aside;
    out->disturbed_share = disturbed_share(s);
    out->trend = find_trend(s);
    out->is_mixed = s->n_clean < CARRY_MEDIAN && s->n_aside > 0;
    if (out->is_mixed)
        while (s->n_aside > 0)
            s->clean[s->n_clean++] = s->aside[--s->n_aside];
    size_t n = out->n_samples = s->n_clean;
    out->p50 = median_interval(&out->p50_low, &out->p50_high, s->scratch, s->clean, n);
    out->p90 = carried_quantile(s->scratch, n, 0.9);
    out->p99 = carried_quantile(s->scratch, n, 0.99);
    out->min = s->scratch[0];
    carried_interval(&out->p90_low, &out->p90_high, s->scratch, n, 0.9);
    carried_interval(&out->p99_low, &out->p99_high, s->scratch, n, 0.99);
    out->energy = out->energy_low = out->energy_high = NAN;
    if (s->n_blocks >= CARRY_MEDIAN)
        out->energy = median_interval(&out->energy_low, &out->energy_high, s->scratch, s->energy,
                                      s->n_blocks);
    out->is_unstable = hwnas_measurement_doubt(out) != NULL;
}

const char *hwnas_measurement_doubt(const hwnas_measurement *m)
{
    if (m->is_mixed)
        return "the cores were never ours for long enough; disturbed samples are among the samples";
    if (m->disturbed_share > MAX_DISTURBED)
        return "other work took the cores during more than half of the time";
    if (fabs(m->drift) > MAX_DRIFT)
        return "the machine's own speed changed by more than 3 % meanwhile";
    if (fabs(m->trend) > MAX_DRIFT)
        return "the latency itself moved by more than 3 % while it was sampled";
    return NULL;
}

hwnas_status hwnas_measure_on(hwnas_measurement *out, hwnas_exec *exec, const hwnas_graph *graph,
                              const hwnas_measure_options *options, hwnas_machine *machine)
{
    hwnas_status status = HWNAS_OK;
    hwnas_measurement m = {0};
    sampler s = {.exec = exec, .machine = machine, .options = options, .runs = 1};
    double begin = machine->now(machine);
    TRY_OUT(hwnas_buffers_open(&s.buffers, graph));

    TRY_OUT(report(&s, "running once"));
    TRY_OUT(take(&m.first_run_seconds, &s));
    s.run_seconds = 0;
    s.n_runs = 0;

    double start = machine->now(machine), expected;
    double deadline = start + options->max_seconds;
    TRY_OUT(warm_up(&expected, &s, start + WARM_UP_SHARE * options->max_seconds));
    m.n_warm_up = s.n_runs;
    m.runs_per_sample = s.runs;

    TRY_OUT(make_room(&s, expected, deadline - machine->now(machine)));
    machine->watch(machine);
    double before = machine->reference(machine);
    TRY_OUT(sample(&m.stop, &s, deadline));
    m.drift = machine->reference(machine) / before - 1;

    conclude(&m, &s);
    m.run_seconds = s.run_seconds;
    m.memory_bytes = exec->ops->memory ? exec->ops->memory(exec) : 0;
    m.total_seconds = machine->now(machine) - begin;
    *out = m;
out:
    sampler_done(&s);
    return status;
}

static double relative_width(const hwnas_measurement *m)
{
    return (m->p50_high - m->p50_low) / m->p50;
}

/* Where the machine was disturbed, measures once more: the steadier of the two counts, and if both are
 * shaky the one with the narrower interval, still marked. */
hwnas_status hwnas_measure_exec(hwnas_measurement *out, hwnas_exec *exec, const hwnas_graph *graph,
                                const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_machine *machine = hwnas_machine_open();
    hwnas_measurement first, again;
    TRY_OUT(hwnas_measure_on(&first, exec, graph, options, machine));
    *out = first;
    if (!first.is_unstable)
        goto out;
    TRY_OUT(hwnas_measure_on(&again, exec, graph, options, machine));
    if (!again.is_unstable || relative_width(&again) < relative_width(&first))
        *out = again;
    out->first_run_seconds = first.first_run_seconds;
    out->run_seconds = first.run_seconds + again.run_seconds;
    out->total_seconds = first.total_seconds + again.total_seconds;
out:
    hwnas_machine_close(machine);
    return status;
}
