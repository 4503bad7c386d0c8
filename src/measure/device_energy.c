#include "measure/device_energy.h"

#include <math.h>

#include "base/stats.h"

static const double BATCH_SECONDS = 0.02; /* of work that is enqueued at once; two are */
static const double LOOK_SECONDS = 1e-3;  /* between two readings */
static const double LOOK_SHARE = 0.7;     /* of a batch; then the next one is enqueued */
static const double LONGEST = 5;          /* until a counter that does not move is given up */
static const double Z = 1.96;             /* of 95 % */

void hwnas_tick_meter_read(hwnas_tick_meter *m, double when, double joules)
{
    const bool has_moved = m->has_any && joules > m->joules;
    if (isnan(joules))
        return;
    if (has_moved) {
        /* The last place is that of the last tick. */
        const int at = m->n < HWNAS_MAX_TICKS ? m->n++ : HWNAS_MAX_TICKS - 1;
        m->ticks[at].when = (m->when + when) / 2;
        m->ticks[at].doubt = (when - m->when) / 2;
        m->ticks[at].joules = joules;
    }
    m->has_any = true;
    m->when = when;
    m->joules = joules;
}

double hwnas_tick_meter_seconds(const hwnas_tick_meter *m)
{
    return m->n > 1 ? m->ticks[m->n - 1].when - m->ticks[0].when : 0;
}

/* Half of the interval that the power between one tick and the next gives, as a share. */
static double scatter(const hwnas_tick_meter *m, double watts)
{
    double sum = 0;
    for (int i = 1; i < m->n; i++) {
        const double one = (m->ticks[i].joules - m->ticks[i - 1].joules) /
                           (m->ticks[i].when - m->ticks[i - 1].when);
        sum += (one / watts - 1) * (one / watts - 1);
    }
    return m->n > 2 ? Z * sqrt(sum / (m->n - 2) / (m->n - 1)) : INFINITY;
}

double hwnas_tick_meter_watts(double *low, double *high, const hwnas_tick_meter *m)
{
    const double seconds = hwnas_tick_meter_seconds(m);
    *low = *high = NAN;
    if (seconds <= 0)
        return NAN;
    const double watts = (m->ticks[m->n - 1].joules - m->ticks[0].joules) / seconds;
    const double doubt = (m->ticks[m->n - 1].doubt + m->ticks[0].doubt) / seconds;
    const double half = fmax(doubt, scatter(m, watts));
    if (isfinite(half)) {
        *low = watts * fmax(1 - half, 0);
        *high = watts * (1 + half);
    }
    return watts;
}

bool hwnas_has_device_energy(const hwnas_exec *exec)
{
    return exec->ops->joules && exec->ops->start;
}

/* Reads the counter until so much of the batch is done that the next one must come. */
static hwnas_status watch(hwnas_tick_meter *meter, hwnas_sampler *s, double until)
{
    hwnas_machine *m = s->machine;
    do {
        TRY(hwnas_sampler_report(s, "measuring energy"));
        const double joules = s->exec->ops->joules(s->exec);
        hwnas_tick_meter_read(meter, m->now(m), joules);
        m->pause(m, LOOK_SECONDS);
    } while (m->now(m) < until);
    return HWNAS_OK;
}

static hwnas_status finish(double *seconds, hwnas_sampler *s)
{
    double one;
    TRY(s->exec->ops->finish(s->exec, &one));
    *seconds += one;
    return HWNAS_OK;
}

hwnas_status hwnas_device_energy(hwnas_measurement *out, hwnas_sampler *s)
{
    hwnas_machine *m = s->machine;
    const double start = m->now(m), run = out->p50;
    const int runs = run < BATCH_SECONDS ? (int)ceil(BATCH_SECONDS / run) : 1;
    hwnas_tick_meter meter = {0};
    double low, high, busy = 0;
    size_t n = 0; /* batches that were finished */
    out->energy = out->energy_low = out->energy_high = NAN;
    if (!(run > 0) || isnan(s->exec->ops->joules(s->exec)))
        return HWNAS_OK;
    TRY(s->exec->ops->start(s->exec, runs));
    for (double now = start;
         hwnas_tick_meter_seconds(&meter) < HWNAS_ENERGY_SECONDS && now < start + LONGEST + 2 * run;
         n++) {
        TRY(s->exec->ops->start(s->exec, runs));
        TRY(watch(&meter, s, now + LOOK_SHARE * runs * run));
        TRY(finish(&busy, s));
        now = m->now(m);
    }
    TRY(finish(&busy, s));
    const double seconds = busy / (double)((n + 1) * (size_t)runs);
    s->n_runs += (n + 1) * (size_t)runs;
    s->run_seconds += busy;
    out->run_seconds = s->run_seconds;
    if (hwnas_tick_meter_seconds(&meter) < HWNAS_ENERGY_SECONDS)
        return HWNAS_OK;
    out->energy = seconds * hwnas_tick_meter_watts(&low, &high, &meter);
    out->energy_low = seconds * low;
    out->energy_high = seconds * high;
    return HWNAS_OK;
}
