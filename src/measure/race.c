#include "measure/race.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/stats.h"
#include "measure/conclude.h"

enum {
    TURN_SAMPLES = 3,  /* a turn has at least so many samples ... */
    TURN_TRIES = 3,    /* and is taken so often before its block is given up */
    TURN_MOST = 1024,  /* samples of a turn whose median is taken */
    FIRST_VERDICT = 8, /* blocks; then each time there are half as many more */
};
static const double TURN_SECONDS = 5e-3; /* ... and lasts at least so long */
static const double LOST_SHARE = 0.01;   /* stolen from a turn: more disturbs it */

void hwnas_race_done(hwnas_race *race)
{
    free(race->measurements);
    free(race->blocks);
    *race = (hwnas_race){0};
}

hwnas_judgement hwnas_race_judge(const hwnas_race *race, int before, int after, double tolerance)
{
    double ratios[HWNAS_RACE_BLOCKS];
    const size_t n = (size_t)race->n_blocks;
    hwnas_judgement out = {
        .verdict = HWNAS_AMBIGUOUS, .ratio = NAN, .low = NAN, .high = NAN};
    for (size_t b = 0; b < n; b++) {
        const double *block = race->blocks + b * (size_t)race->n;
        ratios[b] = block[after] / block[before];
    }
    hwnas_sort(ratios, n);
    if (n)
        out.ratio = hwnas_quantile(ratios, n, 0.5);
    if (!n || !hwnas_quantile_interval(ratios, n, 0.5, &out.low, &out.high))
        return out;
    if (race->n_aside <= race->n_blocks)
        out.verdict = hwnas_verdict_of(out.low, out.high, tolerance);
    return out;
}

typedef struct field {
    hwnas_sampler *samplers;
    hwnas_machine *machine;
    hwnas_rng rng;
    int n, order[HWNAS_RACE_MOST];
} field;

/* One turn: an inference to have its own data in the caches again, then samples. NaN: nothing of it
 * was undisturbed. */
static hwnas_status take_turn(double *median, hwnas_sampler *s)
{
    hwnas_machine *m = s->machine;
    const size_t first = s->n_clean;
    const double start = m->now(m), stolen = m->stolen(m);
    TRY(hwnas_sampler_report(s, "comparing"));
    TRY(hwnas_sampler_reserve(s, TURN_MOST));
    TRY(hwnas_sampler_run(s, 1));
    hwnas_sampler_attend(s);
    for (int i = 0; hwnas_sampler_has_room(s) && i < TURN_MOST &&
                    (i < TURN_SAMPLES || m->now(m) - start < TURN_SECONDS);
         i++)
        TRY(hwnas_sampler_sample(s));
    hwnas_sampler_look(s);
    if (m->stolen(m) - stolen > LOST_SHARE * (m->now(m) - start))
        hwnas_sampler_set_aside(s, first);
    double low, high;
    *median = s->n_clean > first ? hwnas_median(&low, &high, s->scratch, s->clean + first,
                                                s->n_clean - first)
                                 : NAN;
    return HWNAS_OK;
}

static hwnas_status take_turn_again(double *median, hwnas_sampler *s)
{
    *median = NAN;
    for (int i = 0; i < TURN_TRIES && isnan(*median) && hwnas_sampler_has_room(s); i++) {
        if (i)
            TRY(hwnas_sampler_settle(s));
        TRY(take_turn(median, s));
    }
    return HWNAS_OK;
}

/* Fisher and Yates. */
static void shuffle(field *f)
{
    for (int i = f->n - 1; i > 0; i--) {
        const int j = (int)hwnas_rng_below(&f->rng, (uint32_t)i + 1);
        const int other = f->order[i];
        f->order[i] = f->order[j];
        f->order[j] = other;
    }
}

/* `values`: the geometric mean of each network's two turns; a disturbed turn gives the block up. */
static hwnas_status take_block(double *values, bool *is_clean, field *f)
{
    shuffle(f);
    *is_clean = true;
    for (int i = 0; i < f->n; i++)
        values[i] = 1;
    for (int turn = 0; turn < 2 * f->n && *is_clean; turn++) {
        const int who = f->order[turn < f->n ? turn : 2 * f->n - 1 - turn];
        double median;
        TRY(take_turn_again(&median, &f->samplers[who]));
        values[who] *= sqrt(median);
        *is_clean = !isnan(median);
    }
    return HWNAS_OK;
}

static bool is_decided(const hwnas_race *race, double tolerance)
{
    for (int i = 0; i < race->n; i++)
        for (int j = 0; j < i; j++)
            if (hwnas_race_judge(race, j, i, tolerance).verdict == HWNAS_AMBIGUOUS)
                return false;
    return true;
}

static bool has_room(const field *f)
{
    for (int i = 0; i < f->n; i++)
        if (!hwnas_sampler_has_room(&f->samplers[i]))
            return false;
    return true;
}

/* Each look at an interval is a chance to stop at a lucky one, so there are few looks. */
static hwnas_status run_blocks(hwnas_race *race, hwnas_stop *stop, field *f,
                               const hwnas_measure_options *options, double deadline, double end)
{
    int next_look = FIRST_VERDICT;
    *stop = HWNAS_STOP_BUDGET;
    while (race->n_blocks < HWNAS_RACE_BLOCKS && has_room(f)) {
        bool is_clean;
        TRY(take_block(race->blocks + race->n_blocks * race->n, &is_clean, f));
        race->n_blocks += is_clean;
        race->n_aside += !is_clean;
        const double now = f->machine->now(f->machine);
        if (now >= (race->n_blocks < HWNAS_CARRY_MEDIAN ? end : deadline))
            break;
        if (race->n_blocks < next_look)
            continue;
        next_look += next_look / 2;
        if (is_decided(race, options->interval)) {
            *stop = HWNAS_STOP_INTERVAL;
            break;
        }
    }
    return HWNAS_OK;
}

static void conclude(hwnas_race *race, field *f, hwnas_stop stop)
{
    for (int i = 0; i < race->n; i++) {
        hwnas_measurement *m = &race->measurements[i];
        hwnas_conclude(m, &f->samplers[i]);
        m->stop = stop;
        m->trend = 0; /* the turns of one network are far from each other */
        m->n_attempts = 1;
        m->is_unstable = hwnas_measurement_doubt(m) != NULL;
    }
}

hwnas_status hwnas_race_run(hwnas_race *out, hwnas_exec *const *execs,
                            const hwnas_graph *const *graphs, int n,
                            const hwnas_measure_options *options, hwnas_machine *machine)
{
    hwnas_status status = HWNAS_OK;
    hwnas_race race = {.n = n};
    field f = {.machine = machine, .rng = hwnas_rng_new(graphs[0]->seed, 0x72616365)};
    hwnas_stop stop;
    hwnas_measure_options own = *options;
    own.max_seconds *= 2; /* room for the samples of twice the budget; the blocks keep the time */
    race.measurements = hwnas_alloc((size_t)n * sizeof *race.measurements);
    race.blocks = hwnas_alloc((size_t)(n * HWNAS_RACE_BLOCKS) * sizeof *race.blocks);
    f.samplers = hwnas_alloc((size_t)n * sizeof *f.samplers);
    const double start = machine->now(machine), budget = n * options->max_seconds;
    for (; f.n < n; f.n++) {
        hwnas_measurement *m = &race.measurements[f.n];
        f.order[f.n] = f.n;
        status = hwnas_sampler_open(&m->first_run_seconds, &f.samplers[f.n], execs[f.n],
                                    graphs[f.n], &own, machine);
        m->n_warm_up = f.samplers[f.n].n_runs;
        hwnas_tell_compiled(m, execs[f.n]);
        if (status != HWNAS_OK) {
            hwnas_sampler_done(&f.samplers[f.n]);
            goto out;
        }
    }
    TRY_OUT(run_blocks(&race, &stop, &f, options, start + budget, start + 2 * budget));
    conclude(&race, &f, stop);
    *out = race;
    race = (hwnas_race){0};
out:
    for (int i = 0; i < f.n; i++)
        hwnas_sampler_done(&f.samplers[i]);
    free(f.samplers);
    hwnas_race_done(&race);
    return status;
}
