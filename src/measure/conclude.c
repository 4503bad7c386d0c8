#include "measure/conclude.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

/* Of the median's interval, where most samples were disturbed. */
static const double MAX_WIDTH = 0.05;
static const double MAX_DRIFT = 0.03; /* one step of a Xeon's clock rate was 2.8 % */

/* A quantile is carried when its upper 95 % bound lies within the sample: the probability that
 * all n samples fall below it is q^n, so n >= log(0.05) / log(q): 29 for p90, 299 for p99. */
int hwnas_quantile_needs(double q)
{
    return (int)ceil(log(0.05) / log(q));
}

static double carried_quantile(const double *sorted, size_t n, double q)
{
    return n >= (size_t)hwnas_quantile_needs(q) ? hwnas_quantile(sorted, n, q) : NAN;
}

/* 95 % interval of a quantile that the samples carry; NaN where they do not bound it. */
static void carried_interval(double *low, double *high, const double *sorted, size_t n, double q)
{
    if (!n || !hwnas_quantile_interval(sorted, n, q, low, high))
        *low = *high = NAN;
}

double hwnas_median(double *low, double *high, double *scratch, const double *values, size_t n)
{
    memcpy(scratch, values, n * sizeof *values);
    hwnas_sort(scratch, n);
    hwnas_quantile_interval(scratch, n, 0.5, low, high);
    return hwnas_quantile(scratch, n, 0.5);
}

double hwnas_find_trend(double *scratch, const double *samples, size_t n)
{
    size_t half = n / 2;
    double low[2], high[2], p50[2];
    if (half < HWNAS_CARRY_MEDIAN)
        return 0;
    for (int i = 0; i < 2; i++)
        p50[i] = hwnas_median(&low[i], &high[i], scratch, samples + (i ? n - half : 0), half);
    return low[1] > high[0] || low[0] > high[1] ? p50[1] / p50[0] - 1 : 0;
}

void hwnas_tell_quantiles(hwnas_measurement *out, const double *sorted, size_t n)
{
    out->min = out->p50 = out->p50_low = out->p50_high = NAN;
    if (n) {
        out->min = sorted[0];
        out->p50 = hwnas_quantile(sorted, n, 0.5);
        hwnas_quantile_interval(sorted, n, 0.5, &out->p50_low, &out->p50_high);
    }
    for (hwnas_tail *t = out->tails; t < out->tails + HWNAS_MAX_TAILS && t->of > 0; t++) {
        t->value = carried_quantile(sorted, n, t->of);
        carried_interval(&t->low, &t->high, sorted, n, t->of);
    }
}

void hwnas_ask_for_tails(hwnas_measurement *out, const hwnas_measure_options *options)
{
    for (int i = 0; i < HWNAS_MAX_TAILS; i++)
        out->tails[i].of = options->tails[i];
}

/* Medians of the first and the last tenth. */
static void compare_ends(hwnas_measurement *out, const hwnas_sampler *s)
{
    double low, high;
    size_t n = s->n_clean / 10;
    out->p50_first = out->p50_last = NAN;
    if (!s->mode->is_whole || n < 1)
        return;
    out->p50_first = hwnas_median(&low, &high, s->scratch, s->clean, n);
    out->p50_last = hwnas_median(&low, &high, s->scratch, s->clean + s->n_clean - n, n);
}

static double median_clock(const hwnas_sampler *s)
{
    double known[HWNAS_MAX_BLOCKS];
    size_t n = 0;
    for (size_t i = 0; i < s->n_blocks; i++)
        if (!isnan(s->hertz[i]))
            known[n++] = s->hertz[i];
    hwnas_sort(known, n);
    return n ? hwnas_quantile(known, n, 0.5) : NAN;
}

static void conclude_energy(hwnas_measurement *out, const hwnas_sampler *s)
{
    out->energy = out->energy_low = out->energy_high = NAN;
    if (s->n_energies >= HWNAS_CARRY_MEDIAN)
        out->energy =
            hwnas_median(&out->energy_low, &out->energy_high, s->scratch, s->energy, s->n_energies);
}

void hwnas_conclude(hwnas_measurement *out, hwnas_sampler *s)
{
    out->mode = s->options->mode;
    out->is_realtime = s->machine->is_realtime(s->machine);
    out->runs_per_sample = s->runs;
    out->run_seconds = s->run_seconds;
    out->is_cpu_time = hwnas_sampler_counts_cpu_time(s);
    out->n_disturbed = s->n_aside + s->n_preempted;
    out->disturbed_share = hwnas_sampler_disturbed_share(s);
    hwnas_sampler_merge_preempted(s);
    out->shared_share = s->n_looks ? (double)s->n_shared / (double)s->n_looks : 0;
    out->hertz = median_clock(s);
    out->throttles = s->throttles;
    out->is_recorded = s->is_recorded;
    out->trend = hwnas_find_trend(s->scratch, s->clean, s->n_clean);
    /* Without any: a race was over before its turn. */
    out->is_mixed = s->n_clean < HWNAS_CARRY_MEDIAN && (s->n_aside > 0 || !s->n_clean);
    if (out->is_mixed) { /* in the order of time still, give or take a block */
        memcpy(s->clean + s->n_clean, s->aside, s->n_aside * sizeof *s->aside);
        s->n_clean += s->n_aside;
        s->n_aside = 0;
    }
    compare_ends(out, s);
    size_t n = out->n_samples = s->n_clean;
    memcpy(s->scratch, s->clean, n * sizeof *s->clean);
    hwnas_sort(s->scratch, n);
    hwnas_ask_for_tails(out, s->options);
    hwnas_tell_quantiles(out, s->scratch, n);
    out->launch_seconds = fmax(s->lone_seconds - out->p50, 0);
    if (isnan(s->lone_seconds))
        out->launch_seconds = NAN;
    conclude_energy(out, s);
    out->is_unstable = hwnas_measurement_doubt(out) != NULL;
}

const char *hwnas_stop_name(hwnas_stop stop)
{
    static const char *const names[] = {
        [HWNAS_STOP_INTERVAL] = "interval",
        [HWNAS_STOP_BUDGET] = "budget",
        [HWNAS_STOP_ABOVE] = "above",
    };
    return names[stop];
}

/* The first that is set is told. */
static const struct {
    hwnas_throttle bit;
    const char *name, *cause, *doubt, *mixed; /* NULL: it raises no doubt */
} throttles[] = {
#define DISTURBED(what)                                                                            \
    what " held the device's clock down meanwhile",                                                \
        what " held the device's clock down most of the time",                                     \
        what " held the device's clock down all the time; throttled samples are among the samples"
    {HWNAS_THROTTLE_HEAT, "heat", DISTURBED("heat")},
    {HWNAS_THROTTLE_BRAKE, "brake", DISTURBED("an external power brake")},
    {HWNAS_THROTTLE_HARDWARE, "hardware", DISTURBED("its hardware")},
    {HWNAS_THROTTLE_POWER, "power", "the device's power limit held its clock down meanwhile", NULL,
     NULL},
    {0},
};

static int throttle_of(const hwnas_measurement *m)
{
    int i = 0;
    while (throttles[i].bit && !(m->throttles & throttles[i].bit))
        i++;
    return i;
}

const char *hwnas_measurement_throttle(const hwnas_measurement *m)
{
    return throttles[throttle_of(m)].name;
}

const char *hwnas_measurement_cause(const hwnas_measurement *m)
{
    const int at = throttle_of(m);
    if (!m->is_unstable && !hwnas_modes[m->mode].is_whole)
        return NULL;
    if (throttles[at].bit)
        return throttles[at].cause;
    if (m->quota_stops > 0)
        return "the control group had used up its CPU quota meanwhile, so its threads were stopped";
    if (m->heat_stops > 0)
        return "the processor slowed down for heat meanwhile";
    if (m->is_governed && (fabs(m->drift) > MAX_DRIFT || fabs(m->trend) > MAX_DRIFT))
        return "the frequency governor is not 'performance', so the clock rate follows the load";
    return NULL;
}

/* So that what is left is not to be trusted, or does not agree. */
static bool is_mostly_disturbed(const hwnas_measurement *m)
{
    return m->disturbed_share > HWNAS_MAX_DISTURBED ||
           (m->disturbed_share > HWNAS_MOSTLY_DISTURBED &&
            m->p50_high - m->p50_low > MAX_WIDTH * m->p50);
}

const char *hwnas_measurement_doubt(const hwnas_measurement *m)
{
    const int at = throttle_of(m);
    if (m->is_mixed && throttles[at].mixed)
        return throttles[at].mixed;
    if (is_mostly_disturbed(m) && throttles[at].doubt)
        return throttles[at].doubt;
    if (m->is_mixed)
        return "the cores were never ours for long enough; disturbed samples are among the samples";
    if (m->disturbed_share > HWNAS_MAX_DISTURBED)
        return "other work took the cores, or a part of them, nearly all of the time";
    if (is_mostly_disturbed(m))
        return "other work took the cores most of the time, and what was left differs by more than "
               "5 %";
    if (hwnas_modes[m->mode].is_whole) /* how it changes is what was asked for */
        return NULL;
    if (fabs(m->drift) > MAX_DRIFT)
        return "the machine's own speed changed by more than 3 % meanwhile";
    if (fabs(m->trend) > MAX_DRIFT)
        return "the latency itself moved by more than 3 % while it was sampled";
    return NULL;
}

void hwnas_tell_compiled(hwnas_measurement *out, const hwnas_exec *exec)
{
    hwnas_footprint f = {0};
    if (exec->ops->footprint)
        exec->ops->footprint(exec, &f);
    out->memory_bytes = exec->ops->memory ? exec->ops->memory(exec) : 0;
    out->cache_lookups = f.n_lookups;
    out->cache_hits = f.n_hits;
}
