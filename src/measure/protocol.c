/* protocol.c: from an executable to a latency that one can stand by. docs/measuring.md gives the
 * reasons; the order here is the order there: samples in blocks with the machine's interference
 * monitors beside them, the stopping rule, the verdict, and another attempt where that was a bad
 * one. */
#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "measure/conclude.h"
#include "measure/device_energy.h"
#include "measure/sampler.h"

/* At most so many attempts in all, with a pause of so much of the budget before the second, then
 * twice it. */
enum { MAX_ATTEMPTS = 3 };
static const double PAUSE_SHARE = 0.25;
/* By so much the fastest sample is beaten where no other attempt is worth it. */
static const double BEATEN_BY = 0.1;
enum { FEWEST = 10 };                    /* samples of a block */
static const double LOST_SHARE = 0.01;   /* losing more than this disturbs a block */
static const double BLOCK_SECONDS = 0.1; /* the monitor of stolen time ticks in 0.01 s */
/* RAPL's counters move about once a millisecond (Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 3, 15.10): in less than some of them energy is 0 or that of others. */
static const double SPAN_SECONDS = 5e-3;

static void begin_span(hwnas_sampler *s)
{
    s->span_start = s->machine->now(s->machine);
    s->span_joules = s->machine->joules(s->machine);
    s->span_runs = s->n_runs;
    s->is_in_span = true;
}

/* Energy is told for so many blocks as take a while, as counters do not move all the time. */
static void end_span(hwnas_sampler *s)
{
    if (s->machine->now(s->machine) - s->span_start < SPAN_SECONDS)
        return;
    const double joules = s->machine->joules(s->machine) - s->span_joules;
    /* What was done between samples took energy too. */
    if (!isnan(joules) && s->n_energies < HWNAS_MAX_BLOCKS && !s->mode->before)
        s->energy[s->n_energies++] = joules / (double)(s->n_runs - s->span_runs);
    s->is_in_span = false;
}

/* Takes samples, one at least, until the block is full. Its clean ones are set aside together when
 * the hypervisor took time from our cores meanwhile: which of them it hit cannot be known. */
static hwnas_status take_block(hwnas_sampler *s, double deadline)
{
    hwnas_machine *m = s->machine;
    size_t least = (s->n_clean + s->n_aside + s->n_preempted) / 8, first = s->n_clean, n = 0;
    double stolen = m->stolen(m), start = m->now(m), elapsed = 0;
    if (least < FEWEST)
        least = s->options->give_up > 0 ? HWNAS_CARRY_MEDIAN : FEWEST;
    TRY(hwnas_sampler_reserve(s, least));
    const bool has_spans = !s->exec->ops->joules; /* a device's counter moves too seldom */
    if (has_spans && !s->is_in_span)
        begin_span(s);
    hwnas_sampler_attend(s);
    do {
        TRY(hwnas_sampler_sample(s));
        elapsed = m->now(m) - start;
    } while (++n < least && elapsed < BLOCK_SECONDS && start + elapsed < deadline &&
             hwnas_sampler_has_room(s));
    if (has_spans)
        end_span(s);
    hwnas_sampler_look(s);
    if (m->stolen(m) - stolen > LOST_SHARE * elapsed)
        hwnas_sampler_set_aside(s, first);
    s->n_blocks += s->n_blocks < HWNAS_MAX_BLOCKS;
    return HWNAS_OK;
}

/* The stopping rule's question; *stop says what for it is enough. */
static bool is_enough(hwnas_stop *stop, const hwnas_sampler *s)
{
    double low, high;
    const size_t n = hwnas_sampler_n(s);
    if (s->mode->is_whole || n < HWNAS_CARRY_MEDIAN)
        return false;
    const double p50 = hwnas_sampler_median(&low, &high, s);
    const double disturbed = hwnas_sampler_disturbed_share(s);
    /* What was mostly disturbed so far may be so no longer in a moment. */
    const bool is_narrow = high - low <= s->options->interval * p50 &&
                           n >= (size_t)fmax(s->options->min_samples, 0) &&
                           disturbed <= HWNAS_MOSTLY_DISTURBED;
    *stop = is_narrow ? HWNAS_STOP_INTERVAL : HWNAS_STOP_ABOVE;
    return is_narrow || (s->options->give_up > 0 && low > s->options->give_up &&
                         disturbed <= HWNAS_MAX_DISTURBED);
}

static hwnas_status sample(hwnas_stop *stop, hwnas_sampler *s, double deadline)
{
    const size_t fewest = s->options->fewest > 0 ? (size_t)s->options->fewest : HWNAS_CARRY_MEDIAN;
    const double last = deadline + s->options->max_seconds;
    for (;;) {
        const size_t n = hwnas_sampler_n(s);
        TRY(hwnas_sampler_report(s, "sampling"));
        TRY(take_block(s, deadline));
        if (hwnas_sampler_n(s) <= n)
            TRY(hwnas_sampler_settle(s));
        if (is_enough(stop, s))
            return HWNAS_OK;
        const double now = s->machine->now(s->machine);
        const size_t taken = s->n_clean + s->n_aside + s->n_preempted;
        const bool is_over = now >= deadline && taken >= (now < last ? HWNAS_CARRY_MEDIAN : fewest);
        if (is_over || !hwnas_sampler_has_room(s)) {
            *stop = HWNAS_STOP_BUDGET;
            return HWNAS_OK;
        }
    }
}

/* What limited the machine between two readings. */
static void tell_limits(hwnas_measurement *m, const hwnas_conditions *before,
                        const hwnas_conditions *after)
{
    m->quota_stops = (int)hwnas_conditions_count(before->quota_stops, after->quota_stops);
    m->heat_stops = (int)hwnas_conditions_count(before->heat_stops, after->heat_stops);
    m->is_governed = *after->governor && strcmp(after->governor, "performance") != 0;
}

static hwnas_status sample_on_processor(hwnas_measurement *m, hwnas_sampler *s, double deadline)
{
    hwnas_machine *machine = s->machine;
    const hwnas_conditions limits = machine->conditions(machine);
    const double before = machine->reference(machine);
    TRY(sample(&m->stop, s, deadline));
    m->drift = machine->reference(machine) / before - 1;
    const hwnas_conditions now = machine->conditions(machine);
    tell_limits(m, &limits, &now);
    return HWNAS_OK;
}

hwnas_status hwnas_measure_on(hwnas_measurement *out, hwnas_exec *exec, const hwnas_graph *graph,
                              const hwnas_measure_options *options, hwnas_machine *machine)
{
    hwnas_status status;
    hwnas_measurement m = {.n_attempts = 1};
    hwnas_sampler s;
    double begin = machine->now(machine);
    TRY_OUT(hwnas_sampler_open(&m.first_run_seconds, &s, exec, graph, options, machine));
    const double deadline = s.begin + options->max_seconds;
    m.n_warm_up = s.n_runs;
    /* What the processor does is no concern of a device with a clock of its own. */
    if (exec->ops->time)
        TRY_OUT(sample(&m.stop, &s, deadline));
    else
        TRY_OUT(sample_on_processor(&m, &s, deadline));
    hwnas_conclude(&m, &s);
    /* What happens before each sample takes energy too. */
    if (options->energy && !s.mode->before && hwnas_has_device_energy(exec))
        TRY_OUT(hwnas_device_energy(&m, &s));
    hwnas_tell_compiled(&m, exec);
    m.total_seconds = machine->now(machine) - begin;
    *out = m;
out:
    hwnas_sampler_done(&s);
    return status;
}

bool hwnas_is_steadier(const hwnas_measurement *a, const hwnas_measurement *b)
{
    if (a->is_unstable != b->is_unstable)
        return b->is_unstable;
    if (a->is_mixed != b->is_mixed)
        return b->is_mixed;
    return (a->p50_high - a->p50_low) / a->p50 < (b->p50_high - b->p50_low) / b->p50;
}

int hwnas_attempts(const hwnas_measure_options *options)
{
    return options->max_attempts > 0 ? options->max_attempts : MAX_ATTEMPTS;
}

double hwnas_attempt_pause(const hwnas_measure_options *options, int n)
{
    return PAUSE_SHARE * n * options->max_seconds;
}

bool hwnas_is_spent(double seconds, const hwnas_measure_options *options)
{
    return options->fewest > 0 && seconds > hwnas_attempts(options) * options->max_seconds;
}

/* However disturbed, it has never been seen anywhere near as fast as it would have to be. */
static bool is_beaten(const hwnas_measurement *m, const hwnas_measure_options *options)
{
    return options->give_up > 0 && m->min > (1 + BEATEN_BY) * options->give_up;
}

/* Where the machine was disturbed, measures again, after a pause, in the hope that what disturbs is
 * over then: the steadiest attempt counts, still marked if it is shaky. */
hwnas_status hwnas_measure_retry(hwnas_measurement *out, hwnas_exec *exec, const hwnas_graph *graph,
                                 const hwnas_measure_options *options, hwnas_machine *machine)
{
    hwnas_measurement best, again;
    double start = machine->now(machine);
    TRY(hwnas_measure_on(&best, exec, graph, options, machine));
    double first_run = best.first_run_seconds, run = best.run_seconds;
    const int most = hwnas_attempts(options);
    int n = 1;
    for (; n < most && best.is_unstable && !is_beaten(&best, options) &&
           !hwnas_is_spent(machine->now(machine) - start, options);
         n++) {
        machine->pause(machine, hwnas_attempt_pause(options, n));
        TRY(hwnas_measure_on(&again, exec, graph, options, machine));
        run += again.run_seconds;
        if (hwnas_is_steadier(&again, &best))
            best = again;
    }
    best.first_run_seconds = first_run;
    best.run_seconds = run;
    best.n_attempts = n;
    best.total_seconds = machine->now(machine) - start;
    *out = best;
    return HWNAS_OK;
}

hwnas_status hwnas_measure_exec(hwnas_measurement *out, hwnas_exec *exec, const hwnas_graph *graph,
                                const hwnas_measure_options *options)
{
    hwnas_machine *machine = hwnas_machine_open();
    hwnas_status status = hwnas_measure_retry(out, exec, graph, options, machine);
    hwnas_machine_close(machine);
    return status;
}
