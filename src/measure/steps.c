/* steps.c: what the parts of a run take.
 *
 * Runs step by step take turns with runs as deployed, so both saw the same machine: a change of its
 * clock rate between them does not look like a part that is missing from the sum. What is known of
 * disturbance is treated as in protocol.c: a pair of runs in which the threads lost their cores, or
 * shared one, is set aside.
 *
 * A run that a device has recorded has marks between the steps, and each of them takes time: the
 * step before it has to end before the next begins. What the sum is longer than the whole by is
 * shared out evenly among the steps and taken off; on an H100 that was nearly the same for a mark
 * of every network (docs/gpu.md). No step loses more than half. */
#include "measure/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "measure/buffers.h"

enum {
    CARRY_MEDIAN = 6,      /* fewest samples with a 95 % interval: 1 - 2 * 0.5^6 = 0.97 */
    MAX_PAIRS = 4096,      /* each step's median is long known by then */
    MAX_VALUES = 16 << 20, /* times that are kept, 128 MiB of them */
    DEVICE_RUNS = 4,       /* tell how many make DEVICE_SECONDS */
    MAX_RUNS = 1 << 20,
};
static const double DEVICE_SECONDS = 1e-3; /* as in sampler.c */
static const double LOST_SHARE = 0.01;     /* of a pair's time: losing more disturbs it */
static const double BEAT_SECONDS = 0.5;    /* without a word of progress, but for a pair */

typedef struct stepper {
    hwnas_exec *exec;
    hwnas_machine *machine;
    const hwnas_measure_options *options;
    hwnas_buffers buffers;
    size_t n_steps, width; /* of a row: the columns below, then each step */
    size_t n_clean, n_aside, capacity;
    size_t least; /* pairs that are taken however long they take */
    bool has_marks;
    int runs;        /* as deployed, in a pair: more than one where a device's clock wants it */
    double *rows;    /* clean ones from the front, those set aside from the back */
    double *scratch; /* a column */
    unsigned long preemptions;
    double waited;
    bool was_shared; /* the core, as the last pair's end saw it */
} stepper;

enum {
    WHOLE,
    TIMED, /* the sum of the steps as they were timed */
    RATIO, /* of that to the whole */
    MARK,  /* what was taken off each */
    SUM,   /* of what is left */
    FIRST_STEP
};

/* A run as deployed, by the clock that the steps are timed with. */
static hwnas_status take_whole(double *seconds, stepper *s)
{
    const float *const *inputs = (const float *const *)s->buffers.inputs;
    hwnas_machine *m = s->machine;
    if (s->exec->ops->time) {
        TRY(s->exec->ops->time(s->exec, s->runs, seconds));
        *seconds /= s->runs;
        return HWNAS_OK;
    }
    const double start = m->now(m);
    TRY(s->exec->ops->run(s->exec, inputs, s->buffers.outputs));
    *seconds = m->now(m) - start;
    return HWNAS_OK;
}

/* So many runs that a device's clock and the launch of the first do not matter. */
static hwnas_status choose_runs(stepper *s)
{
    double seconds = 0;
    s->runs = 1;
    if (!s->exec->ops->time)
        return HWNAS_OK;
    /* Steps that are timed right after compiling have had no run that gives them inputs. */
    TRY(s->exec->ops->run(s->exec, (const float *const *)s->buffers.inputs, s->buffers.outputs));
    TRY(s->exec->ops->time(s->exec, DEVICE_RUNS, &seconds));
    if (seconds > 0 && seconds < DEVICE_RUNS * DEVICE_SECONDS)
        s->runs = (int)fmin(ceil(DEVICE_RUNS * DEVICE_SECONDS / seconds), MAX_RUNS);
    return HWNAS_OK;
}

static double sum_of_steps(const stepper *s, const double *row)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_steps; i++)
        sum += row[FIRST_STEP + i];
    return sum;
}

/* One run as deployed and one step by step, into a row. */
static hwnas_status take_pair(double *row, stepper *s)
{
    const float *const *inputs = (const float *const *)s->buffers.inputs;
    TRY(take_whole(&row[WHOLE], s));
    TRY(s->exec->ops->run_steps(s->exec, inputs, s->buffers.outputs, row + FIRST_STEP));
    row[TIMED] = sum_of_steps(s, row);
    row[RATIO] = row[TIMED] / row[WHOLE];
    row[MARK] = s->has_marks ? fmax(row[TIMED] - row[WHOLE], 0) / (double)s->n_steps : 0;
    for (size_t i = 0; i < s->n_steps; i++) {
        double *step = &row[FIRST_STEP + i];
        *step -= fmin(row[MARK], *step / 2);
    }
    row[SUM] = sum_of_steps(s, row);
    return HWNAS_OK;
}

/* Whether somebody was on our core before the pair or after it. A device with memory of its own
 * does not run on it. */
static bool was_shared(stepper *s)
{
    double hertz;
    const bool before = s->was_shared;
    s->was_shared = !s->exec->ops->time && s->machine->is_shared(s->machine, &hertz);
    return before || s->was_shared;
}

static bool was_preempted(stepper *s, const double *row)
{
    const unsigned long preemptions = s->machine->preemptions(s->machine);
    if (preemptions == s->preemptions)
        return false;
    s->preemptions = preemptions;
    const double waited = s->machine->waited(s->machine), lost = waited - s->waited;
    s->waited = waited;
    return isnan(lost) || lost > LOST_SHARE * (row[WHOLE] + row[TIMED]);
}

static double *row_at(const stepper *s, size_t i)
{
    return s->rows + i * s->width;
}

/* Takes a pair to the clean ones or to those set aside. */
static hwnas_status sample(stepper *s)
{
    double *row = row_at(s, s->n_clean);
    TRY(take_pair(row, s));
    const bool shared = was_shared(s);
    if (was_preempted(s, row) || shared)
        memmove(row_at(s, s->capacity - ++s->n_aside), row, s->width * sizeof *row);
    else
        s->n_clean++;
    return HWNAS_OK;
}

/* Of a column of the clean rows. */
static hwnas_timing median(const stepper *s, size_t column)
{
    hwnas_timing t;
    for (size_t i = 0; i < s->n_clean; i++)
        s->scratch[i] = row_at(s, i)[column];
    hwnas_sort(s->scratch, s->n_clean);
    t.p50 = hwnas_quantile(s->scratch, s->n_clean, 0.5);
    if (s->n_clean >= CARRY_MEDIAN) {
        hwnas_quantile_interval(s->scratch, s->n_clean, 0.5, &t.low, &t.high);
    } else {
        t.low = s->scratch[0];
        t.high = s->scratch[s->n_clean - 1];
    }
    return t;
}

/* The sum's own median, as it was timed, is as narrow as asked, and so is the whole's. */
static bool is_narrow(const stepper *s)
{
    if (s->n_clean < CARRY_MEDIAN || s->n_clean < (size_t)fmax(s->options->min_samples, 0))
        return false;
    for (size_t column = WHOLE; column <= TIMED; column++) {
        const hwnas_timing t = median(s, column);
        if (t.high - t.low > s->options->interval * t.p50)
            return false;
    }
    return true;
}

static hwnas_status sample_all(stepper *s)
{
    const hwnas_measure_options *o = s->options;
    hwnas_machine *m = s->machine;
    const double seconds = o->steps_seconds > 0 ? o->steps_seconds : o->max_seconds;
    const double deadline = m->now(m) + seconds, last = deadline + seconds;
    bool is_over = false;
    s->preemptions = m->preemptions(m);
    s->waited = m->waited(m);
    was_shared(s);
    while (!is_over) {
        const size_t n = s->n_clean + s->n_aside, block = n / 8 > 5 ? n / 8 : 5;
        if (o->progress)
            o->progress(o->context, "timing steps");
        if (o->stop && *o->stop)
            return hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while timing steps");
        const double start = m->now(m);
        for (size_t i = 0; i < block && !is_over && m->now(m) - start < BEAT_SECONDS; i++) {
            TRY(sample(s));
            const size_t taken = s->n_clean + s->n_aside;
            is_over = taken == s->capacity || (m->now(m) >= deadline && taken >= s->least) ||
                      (o->fewest > 0 && m->now(m) >= last);
        }
        is_over |= is_narrow(s);
    }
    /* The cores were never ours for long enough: disturbed pairs are better than none. */
    if (s->n_clean < s->least)
        for (; s->n_aside > 0; s->n_aside--)
            memmove(row_at(s, s->n_clean++), row_at(s, s->capacity - s->n_aside),
                    s->width * sizeof *s->rows);
    return HWNAS_OK;
}

static hwnas_status make_room(stepper *s)
{
    void *rows, *scratch;
    const size_t fit = MAX_VALUES / s->width, asked = (size_t)fmax(s->options->steps_runs, 0);
    s->capacity = fit < MAX_PAIRS ? fit : MAX_PAIRS;
    s->least = asked ? 1 : CARRY_MEDIAN;
    if (s->capacity < 2 * CARRY_MEDIAN)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%zu steps are too many to be timed each",
                          s->n_steps);
    if (asked && asked < s->capacity)
        s->capacity = asked;
    TRY(hwnas_try_alloc(&rows, s->capacity * s->width * sizeof *s->rows, "the times of steps"));
    s->rows = rows;
    TRY(hwnas_try_alloc(&scratch, s->capacity * sizeof *s->scratch, "the times of steps"));
    s->scratch = scratch;
    return HWNAS_OK;
}

/* What the rows say, with the steps as the device tells them. */
static void conclude(hwnas_step_times *out, const stepper *s, const hwnas_exec_step *about)
{
    out->n_samples = s->n_clean;
    out->whole = median(s, WHOLE);
    out->sum = median(s, SUM);
    out->ratio = median(s, RATIO);
    out->mark = median(s, MARK).p50;
    out->n = s->n_steps;
    out->steps = hwnas_arena_alloc(out->arena, out->n * sizeof *out->steps);
    for (size_t i = 0; i < out->n; i++)
        out->steps[i] =
            (hwnas_step_time){.n_nodes = about[i].n_nodes,
                              .nodes = hwnas_arena_copy(out->arena, about[i].nodes,
                                                        about[i].n_nodes * sizeof *about[i].nodes),
                              .how = hwnas_arena_printf(out->arena, "%s", about[i].how),
                              .time = median(s, FIRST_STEP + i)};
}

static bool is_recorded(hwnas_exec *exec)
{
    hwnas_device_state state = {.hertz = NAN};
    if (exec->ops->time && exec->ops->state)
        exec->ops->state(exec, &state);
    return state.is_recorded;
}

hwnas_status hwnas_measure_steps_on(hwnas_step_times *out, hwnas_exec *exec,
                                    const hwnas_graph *graph, const hwnas_measure_options *options,
                                    hwnas_machine *machine)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_exec_step *about;
    hwnas_step_times times = {.arena = hwnas_arena_new()};
    stepper s = {.exec = exec, .machine = machine, .options = options};
    if (exec->ops->steps && exec->ops->run_steps)
        s.n_steps = exec->ops->steps(exec, &about);
    s.width = FIRST_STEP + s.n_steps;
    if (s.n_steps) {
        TRY_OUT(hwnas_buffers_open(&s.buffers, graph));
        TRY_OUT(make_room(&s));
        TRY_OUT(choose_runs(&s));
        s.has_marks = is_recorded(exec);
        if (!options->steps_runs) /* warm: the plain measurement has run before */
            TRY_OUT(take_pair(s.rows, &s));
        TRY_OUT(machine->take_priority(machine, options));
        machine->watch(machine);
        TRY_OUT(sample_all(&s));
        conclude(&times, &s, about);
    }
    *out = times;
    times.arena = NULL;
out:
    hwnas_step_times_done(&times);
    hwnas_buffers_done(&s.buffers);
    free(s.rows);
    free(s.scratch);
    return status;
}

hwnas_status hwnas_measure_steps(hwnas_step_times *out, hwnas_exec *exec, const hwnas_graph *graph,
                                 const hwnas_measure_options *options)
{
    hwnas_machine *machine = hwnas_machine_open();
    hwnas_status status = hwnas_measure_steps_on(out, exec, graph, options, machine);
    hwnas_machine_close(machine);
    return status;
}

void hwnas_step_times_done(hwnas_step_times *times)
{
    hwnas_arena_free(times->arena);
    *times = (hwnas_step_times){0};
}
