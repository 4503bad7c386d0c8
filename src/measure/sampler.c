/* sampler.c: between the two readings of the clock there is nothing but the device; the memory of a
 * block's samples is taken and touched before it begins. */
#include "measure/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

enum {
    WINDOW_RUNS = 5,      /* a warm-up window has at least so many samples ... */
    WINDOW_SAMPLES = 512, /* ... and at most so many */
    MAX_RUNS = 1 << 20,   /* inferences in one sample */
    RUNS_AFTER_MOVE = 3,  /* fill the caches of another core */
    LONE_RUNS = 5,        /* each waited for, to see what a launch adds */
    RUNS_BEATEN = 2,      /* warm-up of a network that is beaten by far, after the first two runs */
};
static const double WINDOW_SECONDS = 0.01;  /* a warm-up window lasts at least so long */
static const double WARM = 0.02;            /* two windows agree within so much */
static const double WARM_UP_SHARE = 0.3;    /* of the budget, at most */
static const double BEATEN_BY = 0.25;       /* by far */
static const double SAMPLE_SECONDS = 20e-6; /* a sample is at least so long ... */
static const double DEVICE_SECONDS = 1e-3;  /* (by a device's clock, which ticks in 0.5 us) */
static const double CLOCK_SHARE = 0.01;     /* ... and the clock's own time this small a part */
static const double SLICE_SECONDS = 20e-3;  /* longer than a time slice of the scheduler */
static const double LOST_SHARE = 0.01;      /* losing more than this disturbs a sample */
static const double LOOK_SECONDS = 200e-6;  /* between two looks at the core, which take 4 us */

void hwnas_sampler_done(hwnas_sampler *s)
{
    hwnas_buffers_done(&s->buffers);
    hwnas_evictor_close(s->evictor);
    free(s->clean);
    free(s->aside);
    free(s->scratch);
    free(s->preempted);
}

hwnas_status hwnas_sampler_report(const hwnas_sampler *s, const char *phase)
{
    const hwnas_measure_options *o = s->options;
    if (o->progress)
        o->progress(o->context, phase);
    if (o->stop && *o->stop)
        return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while %s", phase);
    return HWNAS_OK;
}

hwnas_status hwnas_sampler_run(hwnas_sampler *s, int n)
{
    const float *const *inputs = (const float *const *)s->buffers.inputs;
    for (int i = 0; i < n; i++)
        TRY(s->exec->ops->run(s->exec, inputs, s->buffers.outputs));
    s->n_runs += (size_t)n;
    return HWNAS_OK;
}

/* What the sample's inferences take together: by the device's own clock where it has one, so that
 * the ways of inputs and outputs, which the first run has gone, do not count. */
static hwnas_status time_runs(double *seconds, hwnas_sampler *s)
{
    const hwnas_device_ops *ops = s->exec->ops;
    if (ops->time && s->has_inputs) {
        s->n_runs += (size_t)s->runs;
        return ops->time(s->exec, s->runs, seconds);
    }
    const double start = s->machine->now(s->machine);
    TRY(hwnas_sampler_run(s, s->runs));
    *seconds = s->machine->now(s->machine) - start;
    s->has_inputs = true;
    return HWNAS_OK;
}

/* One sample: `runs` inferences back to back. `seconds` is the time of one. */
static hwnas_status take(double *seconds, hwnas_sampler *s)
{
    if (s->is_warm && s->mode->before) {
        TRY(s->mode->before(s));
        hwnas_sampler_attend(s);
    }
    double elapsed;
    TRY(time_runs(&elapsed, s));
    s->run_seconds += elapsed;
    *seconds = elapsed / s->runs;
    return HWNAS_OK;
}

/* ---- Before the first sample ---- */

/* Sets s->runs so that the clock does not matter. A short inference that lost a time slice looks
 * long enough, so the best of three counts, up to a length that no lost slice explains. */
static hwnas_status choose_runs(hwnas_sampler *s)
{
    const int n_readings = 64;
    double start = s->machine->now(s->machine), end = start;
    for (int i = 0; i < n_readings; i++)
        end = s->machine->now(s->machine);
    double enough = fmax(SAMPLE_SECONDS, (end - start) / n_readings / CLOCK_SHARE);
    if (s->exec->ops->time)
        enough = fmax(enough, DEVICE_SECONDS);
    if (s->mode->is_whole) /* all of the budget must find room */
        enough = fmax(enough, 2 * s->options->max_seconds / HWNAS_MAX_SAMPLES);
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

/* Median of one window; `is_over` when the time for warm-up ended it, or it is clear that the
 * network is beaten: being warm would not make so much of a difference, and samples are still to
 * follow. */
static hwnas_status warm_window(double *median, bool *is_over, hwnas_sampler *s, double deadline)
{
    double window[WINDOW_SAMPLES], sum = 0, fastest = INFINITY;
    const double beaten = (1 + BEATEN_BY) * s->options->give_up;
    int n = 0;
    *is_over = false;
    while (!*is_over && n < WINDOW_SAMPLES && (n < WINDOW_RUNS || sum < WINDOW_SECONDS)) {
        TRY(hwnas_sampler_report(s, "warming up"));
        TRY(take(&window[n], s));
        fastest = fmin(fastest, window[n]);
        sum += window[n++] * s->runs;
        *is_over = s->machine->now(s->machine) >= deadline ||
                   (beaten > 0 && n >= RUNS_BEATEN && fastest > beaten);
    }
    hwnas_sort(window, (size_t)n);
    *median = hwnas_quantile(window, (size_t)n, 0.5);
    return HWNAS_OK;
}

/* Until the medians of two successive windows agree, or the time for it is over. */
static hwnas_status warm_up(double *median, hwnas_sampler *s, double deadline)
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

/* What the launch adds where the device has nothing to do meanwhile. */
static hwnas_status time_lone_runs(hwnas_sampler *s)
{
    double seconds[LONE_RUNS];
    s->lone_seconds = NAN;
    if (!s->exec->ops->time || s->runs == 1)
        return HWNAS_OK;
    for (int i = 0; i < LONE_RUNS; i++)
        TRY(s->exec->ops->time(s->exec, 1, &seconds[i]));
    s->n_runs += LONE_RUNS;
    hwnas_sort(seconds, LONE_RUNS);
    s->lone_seconds = hwnas_quantile(seconds, LONE_RUNS, 0.5);
    return HWNAS_OK;
}

/* What the remaining time can hold when samples come four times as fast as in warm-up. */
static size_t most_samples(const hwnas_sampler *s, double expected, double seconds)
{
    const double fit = 4 * fmax(seconds, 0) / fmax(expected * s->runs, 1e-9);
    const double least = fmax(HWNAS_CARRY_MEDIAN, s->options->min_samples);
    return (size_t)fmin(fmax(fit, 2 * least), HWNAS_MAX_SAMPLES);
}

hwnas_status hwnas_sampler_open(double *first_run_seconds, hwnas_sampler *out, hwnas_exec *exec,
                                const hwnas_graph *graph, const hwnas_measure_options *options,
                                hwnas_machine *machine)
{
    hwnas_sampler *s = out;
    *s = (hwnas_sampler){.exec = exec,
                         .graph = graph,
                         .machine = machine,
                         .options = options,
                         .mode = &hwnas_modes[options->mode],
                         .runs = 1};
    TRY(hwnas_buffers_open(&s->buffers, graph));
    machine->settle(machine);
    TRY(hwnas_sampler_report(s, "running once"));
    TRY(take(first_run_seconds, s));
    TRY(machine->take_priority(machine, options));
    s->run_seconds = 0;
    s->n_runs = 0;

    double expected = *first_run_seconds;
    const double start = s->begin = machine->now(machine);
    /* The first run has taken the time for warm-up, and more. */
    if (options->fewest <= 0 || *first_run_seconds < options->max_seconds)
        TRY(warm_up(&expected, s, start + WARM_UP_SHARE * options->max_seconds));
    /* They were chosen while the device's clock was still rising. */
    if (s->exec->ops->time && expected * s->runs < DEVICE_SECONDS)
        s->runs = (int)fmin(ceil(DEVICE_SECONDS / expected), MAX_RUNS);
    TRY(time_lone_runs(s));
    if (s->mode->before)
        s->runs = 1;
    s->capacity = most_samples(s, expected, start + options->max_seconds - machine->now(machine));
    TRY(hwnas_sampler_reserve(s, WINDOW_SAMPLES));
    machine->watch(machine);
    if (s->mode->begin)
        TRY(s->mode->begin(s));
    s->is_warm = true;
    return HWNAS_OK;
}

/* ---- Samples and interference monitors ---- */

/* Whether the samples' ground is not ours alone: for a device with a clock of its own, whether
 * something beside its power limit holds that down; else whether someone shares our core. */
static bool is_shared(hwnas_sampler *s, double *hertz)
{
    if (!s->exec->ops->state)
        return s->machine->is_shared(s->machine, hertz);
    hwnas_device_state state;
    s->exec->ops->state(s->exec, &state);
    *hertz = state.hertz;
    s->throttles |= state.throttles;
    s->is_recorded = state.is_recorded;
    return state.throttles & ~(unsigned)HWNAS_THROTTLE_POWER;
}

void hwnas_sampler_attend(hwnas_sampler *s)
{
    double hertz;
    s->preemptions = s->machine->preemptions(s->machine);
    s->waited = s->machine->waited(s->machine);
    /* A device takes milliseconds to tell how it does: the end of a block is the next one's
     * beginning. */
    if (!s->exec->ops->state || !s->n_looks)
        s->was_shared = is_shared(s, &hertz);
    s->n_unsure = 0;
    s->looked_when = s->machine->now(s->machine);
}

/* Was the sample that has just ended disturbed? A preemption is the sign; the time that threads
 * waited for a core is the damage, as a kernel thread that wants a core for 20 us is no harm to a
 * sample of 20 ms. Where the kernel does not tell the damage, the sign is enough. */
static bool was_disturbed(hwnas_sampler *s, double seconds)
{
    unsigned long preemptions = s->machine->preemptions(s->machine);
    if (preemptions == s->preemptions)
        return false;
    s->preemptions = preemptions;
    double waited = s->machine->waited(s->machine), lost = waited - s->waited;
    s->waited = waited;
    return isnan(lost) || lost > LOST_SHARE * seconds;
}

/* CPU time of the thread so far, where nobody else computes: neither other threads nor a device
 * with a clock of its own. Else NaN. */
static double cpu_time(const hwnas_sampler *s)
{
    return s->exec->ops->time ? NAN : s->machine->cpu_time(s->machine);
}

void hwnas_sampler_set_aside(hwnas_sampler *s, size_t first)
{
    while (s->n_clean > first) {
        double one = s->clean[--s->n_clean];
        s->aside[s->n_aside++] = one;
        s->clean_seconds -= one * s->runs;
        s->aside_seconds += one * s->runs;
    }
    s->n_unsure = 0;
}

void hwnas_sampler_look(hwnas_sampler *s)
{
    double *hertz = &s->hertz[s->n_blocks < HWNAS_MAX_BLOCKS ? s->n_blocks : HWNAS_MAX_BLOCKS - 1];
    const bool shared = is_shared(s, hertz);
    s->n_looks++;
    s->n_shared += shared;
    if (shared || s->was_shared)
        hwnas_sampler_set_aside(s, s->n_clean - s->n_unsure);
    s->n_unsure = 0;
    s->was_shared = shared;
    s->looked_when = s->machine->now(s->machine);
}

hwnas_status hwnas_sampler_settle(hwnas_sampler *s)
{
    return s->machine->settle(s->machine) ? hwnas_sampler_run(s, RUNS_AFTER_MOVE) : HWNAS_OK;
}

bool hwnas_sampler_has_room(const hwnas_sampler *s)
{
    return s->n_clean + s->n_aside + s->n_preempted < s->capacity;
}

/* An array of `size` bytes that begins as the old one, of which `used` are in use. */
static hwnas_status enlarge(void **out, void *old, size_t used, size_t size)
{
    TRY(hwnas_try_alloc(out, size, "the samples"));
    if (used)
        memcpy(*out, old, used);
    free(old);
    return HWNAS_OK;
}

hwnas_status hwnas_sampler_reserve(hwnas_sampler *s, size_t n)
{
    const size_t taken = s->n_clean + s->n_aside + s->n_preempted;
    const size_t wanted = taken + n < s->capacity ? taken + n : s->capacity;
    if (wanted <= s->room)
        return HWNAS_OK;
    const size_t twice = 2 * s->room < s->capacity ? 2 * s->room : s->capacity;
    const size_t room = wanted > twice ? wanted : twice;
    double **arrays[] = {&s->clean, &s->aside, &s->scratch};
    const size_t used[] = {s->n_clean, s->n_aside, 0};
    void *to;
    for (int i = 0; i < 3; i++) {
        TRY(enlarge(&to, *arrays[i], used[i] * sizeof **arrays[i], room * sizeof **arrays[i]));
        *arrays[i] = to;
    }
    TRY(enlarge(&to, s->preempted, s->n_preempted * sizeof *s->preempted,
                room * sizeof *s->preempted));
    s->preempted = to;
    s->room = room;
    return HWNAS_OK;
}

hwnas_status hwnas_sampler_sample(hwnas_sampler *s)
{
    double one;
    const double begin = cpu_time(s);
    TRY(take(&one, s));
    const double seconds = one * s->runs, computed = cpu_time(s) - begin;
    if (!was_disturbed(s, seconds)) {
        s->clean[s->n_clean++] = one;
        s->clean_seconds += seconds;
        s->n_unsure++;
    } else if (!isnan(computed)) {
        s->preempted[s->n_preempted++] =
            (hwnas_cpu_sample){.seconds = computed / s->runs, .after = s->n_clean};
        s->preempted_seconds += seconds;
    } else {
        s->aside[s->n_aside++] = one;
        s->aside_seconds += seconds;
    }
    if (!s->exec->ops->state &&
        (s->mode->before || s->machine->now(s->machine) - s->looked_when >= LOOK_SECONDS))
        hwnas_sampler_look(s);
    return HWNAS_OK;
}

bool hwnas_sampler_counts_cpu_time(const hwnas_sampler *s)
{
    const bool is_mostly_preempted = s->preempted_seconds > s->clean_seconds;
    return s->n_preempted && (s->n_clean < HWNAS_CARRY_MEDIAN ||
                              (is_mostly_preempted && (int)s->n_clean < s->options->min_samples));
}

size_t hwnas_sampler_n(const hwnas_sampler *s)
{
    return s->n_clean + (hwnas_sampler_counts_cpu_time(s) ? s->n_preempted : 0);
}

/* The samples that count into `out`, in order of time. */
static void gather(double *out, const hwnas_sampler *s)
{
    const size_t n_preempted = hwnas_sampler_counts_cpu_time(s) ? s->n_preempted : 0;
    size_t k = 0;
    for (size_t i = 0; i <= s->n_clean; i++) {
        /* Clean ones that were set aside later are no longer before it. */
        for (; k < n_preempted && (s->preempted[k].after <= i || i == s->n_clean); k++)
            *out++ = s->preempted[k].seconds;
        if (i < s->n_clean)
            *out++ = s->clean[i];
    }
}

double hwnas_sampler_median(double *low, double *high, const hwnas_sampler *s)
{
    const size_t n = hwnas_sampler_n(s);
    gather(s->scratch, s);
    hwnas_sort(s->scratch, n);
    hwnas_quantile_interval(s->scratch, n, 0.5, low, high);
    return hwnas_quantile(s->scratch, n, 0.5);
}

void hwnas_sampler_merge_preempted(hwnas_sampler *s)
{
    const size_t n = hwnas_sampler_n(s);
    if (n == s->n_clean)
        return;
    gather(s->scratch, s);
    double *const clean = s->clean;
    s->clean = s->scratch;
    s->scratch = clean;
    s->n_clean = n;
    s->n_preempted = 0;
}

double hwnas_sampler_disturbed_share(const hwnas_sampler *s)
{
    const double sampling = s->clean_seconds + s->aside_seconds + s->preempted_seconds;
    const double lost =
        s->aside_seconds + (hwnas_sampler_counts_cpu_time(s) ? 0 : s->preempted_seconds);
    return sampling > 0 ? lost / sampling : 0;
}
