#include "measure/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "measure/conclude.h"
#include "measure/device_energy.h"

enum {
    MAX_SAMPLES = 1 << 20,
    MAX_RUNS = 1 << 20,
    N_SPANS = 10, /* parts of the window whose energy is looked at apart */
};
static const double SAMPLE_SECONDS = 20e-6; /* a sample is at least so long; so there */
static const double DEVICE_SECONDS = 1e-3;  /* by a device's clock; so there */
static const double AHEAD_SECONDS = 20e-3;  /* of work that a device has waiting: a look at its
                                             * counter takes milliseconds */
static const double LOST_SHARE = 0.01;      /* losing more than this disturbs a sample; so there */
static const double METER_SECONDS = 1.2;    /* it moves every 100 ms */
static const double COUNTER_SECONDS = 5e-3; /* between two looks at a device's energy counter */

typedef struct looper {
    hwnas_copy *copy;
    hwnas_machine *machine;
    const hwnas_measure_options *options;
    int runs;        /* inferences in one sample */
    double expected; /* seconds of a sample, at best */
    size_t n_runs;
    size_t capacity, n_clean, n_aside;
    double *clean, *aside; /* in order of time */
    double clean_seconds, aside_seconds;
    unsigned long preemptions;
    double waited;
    double energy[N_SPANS]; /* joules of one run, in each span */
    int n_spans;
    double begin, end;       /* of the first sample and the last */
    hwnas_tick_meter *meter; /* of a device with a counter of its own, else NULL */
    /* At the beginning of the span: */
    double span_start, joules, stolen, span_clean_seconds;
    size_t span_runs, span_first;
} looper;

static hwnas_status take(double *seconds, const hwnas_copy *copy, int runs)
{
    const float *const *inputs = (const float *const *)copy->buffers.inputs;
    const double start = copy->machine->now(copy->machine);
    for (int i = 0; i < runs; i++)
        TRY(copy->exec->ops->run(copy->exec, inputs, copy->buffers.outputs));
    *seconds = copy->machine->now(copy->machine) - start;
    return HWNAS_OK;
}

/* As take(), of a device that keeps its own time: another sample is enqueued before the oldest is
 * waited for, so the device does not pause between them. */
static hwnas_status take_next(double *seconds, const hwnas_copy *copy, int runs)
{
    TRY(copy->exec->ops->start(copy->exec, runs));
    return copy->exec->ops->finish(copy->exec, seconds);
}

/* Samples that are enqueued beside the one that is waited for. */
static int samples_ahead(const looper *l)
{
    const double fit = AHEAD_SECONDS / l->expected;
    return fit < 1 ? 1 : fit < HWNAS_MOST_STARTED - 1 ? (int)fit : HWNAS_MOST_STARTED - 1;
}

static bool is_pipelined(const hwnas_copy *copy)
{
    return copy->exec->ops->start != NULL;
}

static hwnas_status take_warm_up(double *seconds, const hwnas_copy *copy, int runs)
{
    return copy->exec->ops->time ? copy->exec->ops->time(copy->exec, runs, seconds)
                                 : take(seconds, copy, runs);
}

hwnas_status hwnas_copy_open(hwnas_copy *out, hwnas_exec *exec, const hwnas_graph *graph,
                             hwnas_machine *machine)
{
    hwnas_status status = HWNAS_OK;
    hwnas_copy copy = {.exec = exec, .machine = machine};
    TRY_OUT(hwnas_buffers_open(&copy.buffers, graph));
    TRY_OUT(take(&copy.first_run_seconds, &copy, 1));
    TRY_OUT(take(&copy.run_seconds, &copy, 1));
    *out = copy;
    return HWNAS_OK;
out:
    hwnas_buffers_done(&copy.buffers);
    return status;
}

void hwnas_copy_done(hwnas_copy *copy)
{
    hwnas_buffers_done(&copy->buffers);
}

static hwnas_status report(const looper *l, const char *phase)
{
    const hwnas_measure_options *o = l->options;
    if (o->progress)
        o->progress(o->context, phase);
    if (o->stop && *o->stop)
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while %s", phase);
    return HWNAS_OK;
}

/* Until everybody has settled; chooses how many inferences make a sample. */
static hwnas_status settle(looper *l, double until, size_t *n_warm_up)
{
    double seconds;
    bool is_new = true; /* this number of runs */
    const double least = l->copy->exec->ops->time ? DEVICE_SECONDS : SAMPLE_SECONDS;
    *n_warm_up = 0;
    l->expected = l->copy->run_seconds;
    for (l->runs = 1; l->machine->now(l->machine) < until;) {
        TRY(report(l, "warming up"));
        TRY(take_warm_up(&seconds, l->copy, l->runs));
        *n_warm_up += (size_t)l->runs;
        l->expected = is_new ? seconds : fmin(l->expected, seconds);
        is_new = l->runs < MAX_RUNS && seconds < least;
        l->runs *= is_new ? 2 : 1;
    }
    return HWNAS_OK;
}

/* As in protocol.c: a preemption is the sign, waiting for a core the damage. */
static bool was_disturbed(looper *l, double seconds)
{
    const unsigned long preemptions = l->machine->preemptions(l->machine);
    if (preemptions == l->preemptions)
        return false;
    l->preemptions = preemptions;
    const double waited = l->machine->waited(l->machine), lost = waited - l->waited;
    l->waited = waited;
    return isnan(lost) || lost > LOST_SHARE * seconds;
}

static void begin_span(looper *l, double now)
{
    l->span_start = now;
    l->joules = l->machine->joules(l->machine);
    l->stolen = l->machine->stolen(l->machine);
    l->span_runs = l->n_runs;
    l->span_first = l->n_clean;
    l->span_clean_seconds = l->clean_seconds;
}

/* Energy and stolen time are not known of single samples. What the hypervisor hit is set aside. */
static void end_span(looper *l, double now)
{
    const double joules = l->machine->joules(l->machine) - l->joules;
    const double stolen = l->machine->stolen(l->machine) - l->stolen;
    if (l->n_spans < N_SPANS)
        l->energy[l->n_spans++] = joules / (double)(l->n_runs - l->span_runs);
    if (stolen > LOST_SHARE * (now - l->span_start)) {
        while (l->n_clean > l->span_first)
            l->aside[l->n_aside++] = l->clean[--l->n_clean];
        l->aside_seconds += l->clean_seconds - l->span_clean_seconds;
        l->clean_seconds = l->span_clean_seconds;
    }
    begin_span(l, now);
}

static bool has_room(const looper *l)
{
    return l->n_clean + l->n_aside < l->capacity;
}

static void keep(looper *l, double seconds)
{
    if (was_disturbed(l, seconds)) {
        l->aside[l->n_aside++] = seconds / l->runs;
        l->aside_seconds += seconds;
    } else {
        l->clean[l->n_clean++] = seconds / l->runs;
        l->clean_seconds += seconds;
    }
}

/* Samples that must be there, so long after the window's end. */
static size_t fewest_by(const looper *l, double late)
{
    const hwnas_measure_options *o = l->options;
    return o->fewest > 0 && late >= o->max_seconds ? (size_t)o->fewest : HWNAS_CARRY_MEDIAN;
}

static void read_counter(const looper *l, double now)
{
    const hwnas_exec *exec = l->copy->exec;
    if (!l->meter || now - l->meter->when < COUNTER_SECONDS)
        return;
    const double joules = exec->ops->joules(l->copy->exec);
    hwnas_tick_meter_read(l->meter, l->machine->now(l->machine), joules);
}

static void take_in(looper *l, double seconds)
{
    l->n_runs += (size_t)l->runs;
    if (has_room(l))
        keep(l, seconds);
    l->end = l->machine->now(l->machine);
}

/* To the end of the window, as a load for the others even when there is no room for more. */
static hwnas_status sample(looper *l, double seconds)
{
    hwnas_machine *m = l->machine;
    const double begin = m->now(m);
    double now = begin, one;
    l->begin = begin;
    l->preemptions = m->preemptions(m);
    l->waited = m->waited(m);
    begin_span(l, begin);
    const int ahead = is_pipelined(l->copy) ? samples_ahead(l) : 0;
    for (int i = 0; i < ahead; i++)
        TRY(l->copy->exec->ops->start(l->copy->exec, l->runs));
    while (now < begin + seconds || l->n_clean + l->n_aside < fewest_by(l, now - begin - seconds)) {
        TRY(report(l, "sampling"));
        TRY(is_pipelined(l->copy) ? take_next(&one, l->copy, l->runs)
                                  : take(&one, l->copy, l->runs));
        take_in(l, one);
        now = l->end;
        read_counter(l, now);
        if (now - begin >= seconds * (l->n_spans + 1) / N_SPANS)
            end_span(l, now);
    }
    for (int i = 0; i < ahead; i++) { /* the device has done them, so they count */
        TRY(l->copy->exec->ops->finish(l->copy->exec, &one));
        take_in(l, one);
    }
    return HWNAS_OK;
}

/* The disturbed ones are used when, and only when, there are too few others. */
static bool mix(looper *l)
{
    if (l->n_clean >= HWNAS_CARRY_MEDIAN || !l->n_aside)
        return false;
    memcpy(l->clean + l->n_clean, l->aside, l->n_aside * sizeof *l->aside);
    l->n_clean += l->n_aside;
    l->n_aside = 0;
    l->clean_seconds += l->aside_seconds;
    return true;
}

static void tell_energy(hwnas_measurement *m, looper *l)
{
    m->energy = m->energy_low = m->energy_high = NAN;
    if (l->meter) {
        const double run = (l->end - l->begin) / (double)l->n_runs;
        m->energy = run * hwnas_tick_meter_watts(&m->energy_low, &m->energy_high, l->meter);
        m->energy_low *= run;
        m->energy_high *= run;
        return;
    }
    if (l->n_spans < HWNAS_CARRY_MEDIAN || isnan(l->joules))
        return;
    hwnas_sort(l->energy, (size_t)l->n_spans);
    m->energy = hwnas_quantile(l->energy, (size_t)l->n_spans, 0.5);
    hwnas_quantile_interval(l->energy, (size_t)l->n_spans, 0.5, &m->energy_low, &m->energy_high);
}

/* Evenly spaced order statistics: the first `n` of the array become so. */
static void thin(double *sorted, size_t from, size_t n)
{
    for (size_t i = 0; i < n && n > 1; i++)
        sorted[i] = sorted[(size_t)((double)i * (double)(from - 1) / (double)(n - 1) + 0.5)];
}

/* How the device does at the end of the window. */
static void tell_state(hwnas_measurement *m, hwnas_exec *exec)
{
    hwnas_device_state state = {.hertz = NAN};
    if (exec->ops->state)
        exec->ops->state(exec, &state);
    m->hertz = state.hertz;
    m->throttles = state.throttles;
    m->is_recorded = state.is_recorded;
}

static void conclude(hwnas_window *out, looper *l)
{
    hwnas_measurement *m = &out->m;
    tell_state(m, l->copy->exec);
    const double all = l->clean_seconds + l->aside_seconds;
    m->disturbed_share = all > 0 ? l->aside_seconds / all : 0;
    m->n_disturbed = l->n_aside;
    m->is_mixed = mix(l);
    m->trend = hwnas_find_trend(l->aside, l->clean, l->n_clean);
    m->n_samples = l->n_clean;
    m->runs_per_sample = l->runs;
    m->run_seconds = all;
    m->stop = HWNAS_STOP_BUDGET;
    tell_energy(m, l);
    /* The clean time alone, so that others' work does not count against the network. But a device
     * that is shared does the other copies' work while this one is late with its next sample, which
     * no sample's own time shows: together they would do more than the device can. */
    out->runs_per_second = (double)l->n_clean * l->runs / l->clean_seconds;
    if (is_pipelined(l->copy)) {
        out->begin = l->begin;
        out->end = l->end;
        out->runs_per_second = (double)l->n_runs / (l->end - l->begin);
    }
    hwnas_sort(l->clean, l->n_clean);
    hwnas_ask_for_tails(m, l->options);
    hwnas_tell_quantiles(m, l->clean, l->n_clean);
    out->n = l->n_clean < HWNAS_WINDOW_SAMPLES ? l->n_clean : HWNAS_WINDOW_SAMPLES;
    if (out->n < l->n_clean)
        thin(l->clean, l->n_clean, out->n);
    out->samples = l->clean;
    l->clean = NULL;
}

static hwnas_status make_room(looper *l, double seconds)
{
    void *clean, *aside;
    const double fit = 4 * seconds / fmax(l->expected, SAMPLE_SECONDS);
    l->capacity = (size_t)fmin(fmax(fit, 2 * HWNAS_CARRY_MEDIAN), MAX_SAMPLES);
    TRY(hwnas_try_alloc(&clean, l->capacity * sizeof *l->clean, "the samples"));
    l->clean = clean;
    TRY(hwnas_try_alloc(&aside, l->capacity * sizeof *l->aside, "the samples"));
    l->aside = aside;
    return HWNAS_OK;
}

hwnas_status hwnas_window_measure(hwnas_window *out, hwnas_copy *copy, double lead, double seconds,
                                  const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_machine *machine = copy->machine;
    const double begin = machine->now(machine);
    hwnas_window window = {.m = {.first_run_seconds = copy->first_run_seconds,
                                 .shared_share = NAN, /* nobody looked */
                                 .hertz = NAN,
                                 .launch_seconds = NAN,
                                 .p50_first = NAN,
                                 .p50_last = NAN,
                                 .n_attempts = 1}};
    looper l = {.copy = copy, .machine = machine, .options = options};
    if (options->energy && hwnas_has_device_energy(copy->exec)) {
        l.meter = hwnas_alloc(sizeof *l.meter);
        seconds = fmax(seconds, METER_SECONDS); /* as the other copies do */
    }
    TRY_OUT(machine->take_priority(machine, options));
    machine->watch(machine);
    TRY_OUT(settle(&l, begin + lead, &window.m.n_warm_up));
    TRY_OUT(make_room(&l, seconds));
    TRY_OUT(sample(&l, begin + lead + seconds - machine->now(machine)));
    conclude(&window, &l);
    hwnas_tell_compiled(&window.m, copy->exec);
    window.m.total_seconds = machine->now(machine) - begin;
    window.m.is_realtime = machine->is_realtime(machine);
    window.m.is_unstable = hwnas_measurement_doubt(&window.m) != NULL;
    *out = window;
out:
    free(l.clean);
    free(l.aside);
    free(l.meter);
    return status;
}

void hwnas_window_done(hwnas_window *window)
{
    free(window->samples);
    *window = (hwnas_window){0};
}

/* Copies of one device that did not begin together had it for themselves at the ends, so what they
 * did is over the time from the first one's begin to the last one's end. Returns how much longer
 * that is for one run than by the sum of their rates: 1 of other devices. */
static double share_time(hwnas_window *out, const hwnas_window *windows, int n)
{
    const double sum = out->runs_per_second;
    double begin = INFINITY, end = 0, runs = 0;
    for (int i = 0; i < n; i++) {
        const double seconds = windows[i].end - windows[i].begin;
        if (!(seconds > 0))
            return 1;
        begin = fmin(begin, windows[i].begin);
        end = fmax(end, windows[i].end);
        runs += windows[i].runs_per_second * seconds;
    }
    out->runs_per_second = runs / (end - begin);
    return sum / out->runs_per_second;
}

/* What adds up, and the worst of what does not. */
static void add_up(hwnas_window *out, const hwnas_window *windows, int n)
{
    hwnas_measurement *sum = &out->m;
    double runs_a_joule = 0, low = 0, high = 0;
    for (int i = 0; i < n; i++) {
        const hwnas_measurement *m = &windows[i].m;
        out->runs_per_second += windows[i].runs_per_second;
        sum->n_samples += m->n_samples;
        sum->n_disturbed += m->n_disturbed;
        sum->n_warm_up += m->n_warm_up;
        sum->memory_bytes += m->memory_bytes;
        sum->peak_bytes += m->peak_bytes;
        sum->cache_lookups += m->cache_lookups;
        sum->cache_hits += m->cache_hits;
        sum->run_seconds += m->run_seconds;
        sum->disturbed_share += m->disturbed_share / n;
        sum->is_mixed |= m->is_mixed;
        sum->is_realtime = m->is_realtime && (!i || sum->is_realtime);
        sum->throttles |= m->throttles;
        sum->is_recorded = m->is_recorded && (!i || sum->is_recorded);
        sum->hertz = fmin(m->hertz, sum->hertz); /* of a number and NaN the number */
        sum->trend = fabs(m->trend) > fabs(sum->trend) ? m->trend : sum->trend;
        sum->compile_seconds = fmax(sum->compile_seconds, m->compile_seconds);
        sum->first_run_seconds = fmax(sum->first_run_seconds, m->first_run_seconds);
        sum->total_seconds = fmax(sum->total_seconds, m->total_seconds);
        sum->runs_per_sample =
            m->runs_per_sample > sum->runs_per_sample ? m->runs_per_sample : sum->runs_per_sample;
        /* Each has divided the joules of the whole machine by its own runs only. */
        runs_a_joule += 1 / m->energy;
        low += 1 / m->energy_high;
        high += 1 / m->energy_low;
    }
    const double longer = share_time(out, windows, n);
    sum->stop = HWNAS_STOP_BUDGET;
    sum->energy = longer / runs_a_joule;
    sum->energy_low = longer / high;
    sum->energy_high = longer / low;
}

/* How many samples of a copy stand for all it took, so that each counts as much as another's. */
static size_t count_share(const hwnas_window *window, size_t most)
{
    if (most <= HWNAS_WINDOW_SAMPLES)
        return window->n;
    const double share = (double)window->m.n_samples / (double)most;
    const size_t n = (size_t)(share * HWNAS_WINDOW_SAMPLES);
    return n < 1 ? 1 : n < window->n ? n : window->n;
}

hwnas_status hwnas_window_pool(hwnas_window *out, const hwnas_window *windows, int n)
{
    hwnas_window pool = {.m = {.shared_share = NAN,
                               .hertz = NAN,
                               .launch_seconds = NAN,
                               .p50_first = NAN,
                               .p50_last = NAN,
                               .n_attempts = 1}};
    size_t most = 0;
    void *samples;
    for (int i = 0; i < n; i++) {
        most = windows[i].m.n_samples > most ? windows[i].m.n_samples : most;
        pool.n += windows[i].n;
    }
    TRY(hwnas_try_alloc(&samples, pool.n * sizeof *pool.samples, "the samples"));
    pool.samples = samples;
    pool.n = 0;
    for (int i = 0; i < n; i++) {
        double *at = pool.samples + pool.n;
        const size_t share = count_share(&windows[i], most);
        memcpy(at, windows[i].samples, windows[i].n * sizeof *at);
        if (share < windows[i].n)
            thin(at, windows[i].n, share);
        pool.n += share;
    }
    add_up(&pool, windows, n);
    memcpy(pool.m.tails, windows[0].m.tails, sizeof pool.m.tails);
    hwnas_sort(pool.samples, pool.n);
    hwnas_tell_quantiles(&pool.m, pool.samples, pool.n);
    pool.m.is_unstable = hwnas_measurement_doubt(&pool.m) != NULL;
    free(pool.samples);
    pool.samples = NULL;
    pool.n = 0;
    *out = pool;
    return HWNAS_OK;
}
