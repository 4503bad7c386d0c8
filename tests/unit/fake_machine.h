/* fake_machine.h: a machine where time passes only in an inference, as its script says, and 20 ns
 * at each look at the clock; so every count is exact. Several networks may run on it. */
#ifndef HWNAS_TESTS_FAKE_MACHINE_H
#define HWNAS_TESTS_FAKE_MACHINE_H

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/rng.h"
#include "graph/op.h"
#include "measure/machine.h"

#define assert_near(x, y, tolerance) assert_true(fabs((x) - (y)) <= (tolerance))

/* A ReLU of a tensor of these dimensions. */
static inline hwnas_graph *make_relu(int rank, const int64_t *dims)
{
    int input, output;
    hwnas_graph *graph = hwnas_graph_new("tiny", 1);
    assert_int_equal(hwnas_graph_add_input(&input, graph, "input", HWNAS_FLOAT32, rank, dims),
                     HWNAS_OK);
    assert_int_equal(hwnas_graph_add_node(&output, graph, hwnas_op_by_name("relu"), "relu", NULL, 1,
                                          &input, true),
                     HWNAS_OK);
    hwnas_graph_add_output(graph, output);
    return graph;
}

static inline hwnas_graph *make_graph(void)
{
    return make_relu(4, (const int64_t[]){1, 4, 8, 8});
}

typedef struct fake_machine {
    hwnas_machine base;
    hwnas_exec exec;
    double clock, waited, stolen;
    unsigned long preemptions;
    double watts;            /* 0: no counter */
    double speed;            /* of the reference workload: seconds */
    double reference_growth; /* each time it is asked */
    size_t n_runs, n_watches;
    bool is_shared;          /* its core, with a neighbour */
    bool has_better_core, is_moved;
    size_t n_settles;
    hwnas_conditions conditions;
    double paused;           /* seconds of all pauses */
    bool is_realtime, is_alone; /* alone: one thread, whose CPU time is the clock's without `waited` */
    hwnas_rng rng;
    /* Seconds of the next inference; may change everything above. */
    double (*script)(struct fake_machine *m);
} fake_machine;

static double fake_now(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->clock += 20e-9;
}

static unsigned long fake_preemptions(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->preemptions;
}

static double fake_waited(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->waited;
}

/* /proc/stat counts in hundredths. */
static double fake_stolen(hwnas_machine *machine)
{
    return floor(100 * ((fake_machine *)machine)->stolen) / 100;
}

static double fake_cpu_time(hwnas_machine *machine)
{
    const fake_machine *m = (fake_machine *)machine;
    return m->is_alone ? m->clock - m->waited : NAN;
}

static double fake_joules(hwnas_machine *machine)
{
    fake_machine *m = (fake_machine *)machine;
    return m->watts > 0 ? m->watts * m->clock : NAN;
}

static double fake_reference(hwnas_machine *machine)
{
    fake_machine *m = (fake_machine *)machine;
    double seconds = m->speed;
    m->speed *= 1 + m->reference_growth;
    return seconds;
}

static void fake_watch(hwnas_machine *machine)
{
    ((fake_machine *)machine)->n_watches++;
}

static bool fake_is_shared(hwnas_machine *machine, double *hertz)
{
    *hertz = 3e9;
    return ((fake_machine *)machine)->is_shared;
}

static hwnas_conditions fake_conditions(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->conditions;
}

static void fake_pause(hwnas_machine *machine, double seconds)
{
    ((fake_machine *)machine)->clock += seconds;
    ((fake_machine *)machine)->paused += seconds;
}

static hwnas_status fake_take_priority(hwnas_machine *machine, const hwnas_measure_options *options)
{
    ((fake_machine *)machine)->is_realtime = options->priority == HWNAS_PRIORITY_REALTIME;
    return HWNAS_OK;
}

static bool fake_is_realtime(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->is_realtime;
}

static bool fake_settle(hwnas_machine *machine)
{
    fake_machine *m = (fake_machine *)machine;
    m->n_settles++;
    if (!m->has_better_core)
        return false;
    m->has_better_core = m->is_shared = false;
    m->is_moved = true;
    return true;
}

static hwnas_status fake_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    fake_machine *m = (fake_machine *)((char *)exec - offsetof(fake_machine, exec));
    assert_true(inputs[0][0] >= -1 && inputs[0][255] < 1);
    outputs[0][255] = 1;
    m->clock += m->script(m);
    m->n_runs++;
    return HWNAS_OK;
}

static size_t fake_memory(const hwnas_exec *exec)
{
    (void)exec;
    return 12345;
}

static const hwnas_device_ops fake_ops = {
    .abi = HWNAS_DEVICE_ABI, .name = "fake", .run = fake_run, .memory = fake_memory};

static inline fake_machine make_machine(double (*script)(fake_machine *m))
{
    return (fake_machine){.base = {.watch = fake_watch,
                                   .now = fake_now,
                                   .preemptions = fake_preemptions,
                                   .waited = fake_waited,
                                   .stolen = fake_stolen,
                                   .cpu_time = fake_cpu_time,
                                   .joules = fake_joules,
                                   .reference = fake_reference,
                                   .is_shared = fake_is_shared,
                                   .conditions = fake_conditions,
                                   .pause = fake_pause,
                                   .take_priority = fake_take_priority,
                                   .is_realtime = fake_is_realtime,
                                   .settle = fake_settle},
                          .exec = {.ops = &fake_ops},
                          .clock = 1000,
                          .speed = 1e-4,
                          .rng = hwnas_rng_new(1, 2),
                          .script = script};
}

#endif
