/* test_measure_sampling.c: the sampling protocol on a scripted machine with a clock of its own, so
 * that every count is exact; devices that have a clock themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>

#include "measure/conclude.h"
#include "tests/unit/measure_fixture.h"

static void test_constant(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(constant);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_int_equal(m.n_samples, 30);
    assert_int_equal(m.runs_per_sample, 1);
    assert_int_equal(m.n_disturbed, 0);
    assert_int_equal(m.n_warm_up, 3 + 2 * 10); /* choosing runs, two windows of 10 ms */
    assert_near(m.p50, 1e-3, 1e-7);
    assert_near(m.p50_high - m.p50_low, 0, 1e-9);
    assert_near(m.tails[HWNAS_P90].value, 1e-3, 1e-7);
    assert_true(isnan(m.tails[HWNAS_P99].value));
    assert_near(m.first_run_seconds, 0.25, 1e-6);
    assert_near(m.run_seconds, 53e-3, 1e-5);
    assert_near(m.total_seconds, 0.25 + 53e-3, 1e-4);
    assert_false(m.is_unstable);
    assert_false(m.is_mixed);
}

/* The rule looks at the interval after each block and stops at a narrow one, which costs coverage:
 * how much is seen here, and quoted in docs/measuring.md. */
static void test_coverage(void **state)
{
    (void)state;
    const int n = 1000;
    int n_covered = 0, n_narrow = 0;
    double samples = 0;
    for (int i = 0; i < n; i++) {
        fake_machine machine = make_machine(noisy);
        machine.rng = hwnas_rng_new((uint64_t)i, 7);
        hwnas_measurement m = measure_on(
            &machine,
            (hwnas_measure_options){.interval = 0.02, .max_seconds = 3, .min_samples = 30});
        n_covered += m.p50_low <= 1e-3 && 1e-3 <= m.p50_high;
        n_narrow += m.stop == HWNAS_STOP_INTERVAL && m.p50_high - m.p50_low <= 0.02 * m.p50;
        samples += (double)m.n_samples / n;
    }
    print_message("# median covered by %d of %d intervals; %.0f samples each\n", n_covered, n,
                  samples);
    assert_int_equal(n_narrow, n);
    assert_in_range(n_covered, 0.88 * n, n);
}

/* A network that is beaten need not be known exactly; one that may not be is, however near. */
static void test_gives_up(void **state)
{
    (void)state;
    const struct {
        double give_up;
        hwnas_stop stop;
    } cases[] = {{0, HWNAS_STOP_INTERVAL},
                 {0.9e-3, HWNAS_STOP_ABOVE},
                 {0.999e-3, HWNAS_STOP_INTERVAL},
                 {1.1e-3, HWNAS_STOP_INTERVAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_machine machine = make_machine(noisy);
        hwnas_measurement m =
            measure_on(&machine, (hwnas_measure_options){.interval = 0.02,
                                                         .max_seconds = 3,
                                                         .min_samples = 30,
                                                         .give_up = cases[i].give_up});
        assert_int_equal(m.stop, cases[i].stop);
        assert_true(m.stop == HWNAS_STOP_ABOVE ? m.p50_low > cases[i].give_up && m.n_samples < 30
                                               : m.n_samples >= 30);
    }
    assert_string_equal(hwnas_stop_name(HWNAS_STOP_ABOVE), "above");
}

/* Nor is it warmed up to the end, where it is beaten by far. */
static void test_hardly_warms_up(void **state)
{
    (void)state;
    static const struct {
        double give_up;
        bool is_short;
    } rows[] = {{0, false}, {0.7e-3, true}, {0.9e-3, false}, {1.2e-3, false}};
    fake_machine whole = make_machine(constant);
    const size_t n = measure_on(&whole, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS).n_warm_up;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_machine machine = make_machine(constant);
        hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
        options.give_up = rows[i].give_up;
        hwnas_measurement m = measure_on(&machine, options);
        assert_true(rows[i].is_short ? m.n_warm_up <= 5 && m.n_warm_up < n : m.n_warm_up == n);
        assert_near(m.p50, 1e-3, 1e-6);
    }
}

static double slower_than_the_budget(fake_machine *m)
{
    (void)m;
    return 4;
}

static double rather_slow(fake_machine *m)
{
    (void)m;
    return 0.02;
}

/* With `fewest` the time is a bound: one run more where the first takes all of it, and six as long
 * as they take less than twice of it. */
static void test_time_is_a_bound(void **state)
{
    (void)state;
    hwnas_measure_options options = {.interval = 0.01, .max_seconds = 0.3, .min_samples = 30};
    fake_machine patient = make_machine(slower_than_the_budget);
    assert_int_equal(measure_on(&patient, options).n_samples, 6);
    options.fewest = 1;
    fake_machine bounded = make_machine(slower_than_the_budget);
    const hwnas_measurement m = measure_on(&bounded, options);
    assert_int_equal(m.n_samples, 1);
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    assert_near(m.p50, 4, 1e-6);
    assert_int_equal(bounded.n_runs, 2);
    fake_machine slow = make_machine(rather_slow);
    options.max_seconds = 0.1;
    assert_int_equal(measure_on(&slow, options).n_samples, 6);
    assert_true(hwnas_is_spent(4, &options));
    assert_false(hwnas_is_spent(0.2, &options));
    options.fewest = 0;
    assert_false(hwnas_is_spent(4, &options));
}

static double bimodal(fake_machine *m)
{
    return hwnas_rng_u32(&m->rng) % 2 ? 1e-3 : 1.5e-3;
}

static void test_bimodal(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(bimodal);
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    assert_near(m.p50_low, 1e-3, 1e-6);
    assert_near(m.p50_high, 1.5e-3, 1e-6);
    assert_near(m.total_seconds, 1, 0.005);
    assert_false(isnan(m.tails[HWNAS_P99].value));
}

static double sometimes_slow(fake_machine *m)
{
    return m->n_runs % 6 == 5 ? 5e-3 : 1e-3;
}

/* Slow for reasons of its own: nothing is set aside, and the tail shows it. */
static void test_sometimes_slow(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(sometimes_slow);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_int_equal(m.n_disturbed, 0);
    assert_near(m.p50, 1e-3, 1e-7);
    assert_near(m.tails[HWNAS_P90].value, 5e-3, 1e-6);
}

static double warming(fake_machine *m)
{
    return 1e-3 * (1 + exp(-(double)m->n_runs / 20));
}

static void test_warm_up_waits(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(warming);
    assert_true(m.n_warm_up > 50);
    assert_near(m.p50, 1e-3, 3e-5);
}

static double very_slow(fake_machine *m)
{
    (void)m;
    return 2;
}

/* Slower than the budget: as few as carry an interval. */
static void test_slower_than_the_budget(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(very_slow);
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    assert_int_equal(m.n_samples, 6);
    assert_true(m.n_warm_up <= 2);
    assert_near(m.p50, 2, 1e-6);
    assert_true(isnan(m.tails[HWNAS_P90].value));
}

static double very_fast(fake_machine *m)
{
    (void)m;
    return 50e-9;
}

static void test_faster_than_the_clock(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(very_fast);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_true(m.runs_per_sample * 50e-9 >= 20e-6);
    assert_near(m.p50, 50e-9, 0.5e-9); /* 1 % */
}

static double noisy_and_long(fake_machine *m)
{
    return m->n_runs < 3 ? 1e-3 : 1e-4 * (1 + noise(m));
}

/* p99 wants 299 samples, p95 59, p90 29. */
static void test_quantiles_that_n_carries(void **state)
{
    (void)state;
    const struct {
        int n;
        bool has_p90, has_p99;
    } cases[] = {{28, false, false}, {29, true, false},  {58, true, false},
                 {59, true, false},  {298, true, false}, {299, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_machine machine = make_machine(very_slow);
        hwnas_measurement m =
            measure_on(&machine, (hwnas_measure_options){.interval = 0,
                                                         .min_samples = cases[i].n,
                                                         .tails = {0.9, 0.99, 0.95},
                                                         .max_seconds = 2 * cases[i].n + 1});
        /* Two inferences warm it up at least; the rest are samples. */
        size_t expected = (size_t)cases[i].n + 1 - m.n_warm_up;
        assert_int_equal(m.n_samples, expected);
        assert_int_equal(!isnan(m.tails[HWNAS_P90].value), m.n_samples >= 29);
        assert_int_equal(!isnan(m.tails[HWNAS_P99].value), m.n_samples >= 299);
        assert_int_equal(!isnan(m.tails[2].value), m.n_samples >= 59);
        assert_true(m.tails[2].of == 0.95 && m.tails[3].of == 0);
    }
    hwnas_measurement m = measure_script(noisy_and_long);
    assert_true(!isnan(m.tails[HWNAS_P99].value) &&
                m.tails[HWNAS_P99].value > m.tails[HWNAS_P90].value &&
                m.tails[HWNAS_P90].value > m.p50);
}

/* As RAPL's, which moves once a millisecond. */
static double joules_by_the_millisecond(hwnas_machine *machine)
{
    return 50 * 1e-3 * floor(1e3 * ((fake_machine *)machine)->clock);
}

static double short_and_noisy(fake_machine *m)
{
    return 25e-6 * (0.9 + 0.2 * hwnas_rng_double(&m->rng));
}

/* 50 W for 25 us: four of five of the first blocks see a counter that stands still. */
static void test_energy_by_a_slow_counter(void **state)
{
    (void)state;
    fake_machine machine = make_machine(short_and_noisy);
    machine.base.joules = joules_by_the_millisecond;
    hwnas_measurement m = measure_on(
        &machine, (hwnas_measure_options){.interval = 0, .max_seconds = 0.2, .min_samples = 30});
    assert_near(m.energy, 50 * 25e-6, 0.1 * 50 * 25e-6);
    machine = make_machine(short_and_noisy);
    machine.base.joules = joules_by_the_millisecond;
    m = measure_on(&machine,
                   (hwnas_measure_options){.interval = 0.1, .max_seconds = 1, .min_samples = 100});
    assert_true(isnan(m.energy)); /* some milliseconds say nothing, least of all nothing at all */
}

/* An interval of a quantile needs samples on either side of it: 0.9^n and 0.99^n below 2.5 %. */
static void test_intervals_of_quantiles(void **state)
{
    (void)state;
    static const struct {
        int n;
        bool has_p90, has_p99;
    } rows[] = {{30, false, false}, {40, true, false}, {300, true, false}, {500, true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
        fake_machine machine = make_machine(noisy);
        options.min_samples = rows[i].n;
        options.interval = 1;
        hwnas_measurement m = measure_on(&machine, options);
        assert_int_equal(!isnan(m.tails[HWNAS_P90].high), rows[i].has_p90);
        assert_int_equal(!isnan(m.tails[HWNAS_P99].high), rows[i].has_p99);
        if (rows[i].has_p90)
            assert_true(m.tails[HWNAS_P90].low <= m.tails[HWNAS_P90].value &&
                        m.tails[HWNAS_P90].value <= m.tails[HWNAS_P90].high &&
                        m.tails[HWNAS_P90].low > m.p50);
        if (rows[i].has_p99)
            assert_true(m.tails[HWNAS_P99].low <= m.tails[HWNAS_P99].value &&
                        m.tails[HWNAS_P99].value <= m.tails[HWNAS_P99].high &&
                        m.tails[HWNAS_P99].low > m.tails[HWNAS_P90].value);
    }
}

static void test_stop_flag(void **state)
{
    (void)state;
    const volatile sig_atomic_t stop = 1;
    fake_machine m = make_machine(constant);
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_measurement out;
    hwnas_graph *graph = make_graph();
    options.stop = &stop;
    assert_int_equal(hwnas_measure_on(&out, &m.exec, graph, &options, &m.base),
                     HWNAS_E_INTERRUPTED);
    hwnas_graph_free(graph);
}

static hwnas_status failing_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    (void)exec;
    (void)inputs;
    (void)outputs;
    return hwnas_fail(HWNAS_E_LIBRARY, NULL, "it broke");
}

static void test_failing_run(void **state)
{
    (void)state;
    const hwnas_device_ops ops = {.abi = HWNAS_DEVICE_ABI, .name = "broken", .run = failing_run};
    hwnas_exec exec = {.ops = &ops};
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_measurement out;
    hwnas_graph *graph = make_graph();
    assert_int_equal(hwnas_measure_exec(&out, &exec, graph, &options), HWNAS_E_LIBRARY);
    assert_string_equal(hwnas_last_error()->message, "it broke");
    hwnas_graph_free(graph);
}

/* 50 W for 1 ms. */
static void test_energy_of_a_run(void **state)
{
    (void)state;
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    fake_machine machine = make_machine(constant);
    hwnas_measurement m = measure_on(&machine, options);
    assert_true(isnan(m.energy));
    machine = make_machine(constant);
    machine.watts = 50;
    m = measure_on(&machine, options);
    assert_true(isnan(m.energy)); /* three blocks say nothing */
    machine = make_machine(constant);
    machine.watts = 50;
    options.min_samples = 60;
    m = measure_on(&machine, options);
    assert_near(m.energy, 0.05, 1e-4);
    assert_true(m.energy_low <= m.energy && m.energy <= m.energy_high);
    assert_near(m.energy_high - m.energy_low, 0, 1e-4);
}

/* ---- A device with a clock, a counter of energy and heat of its own ---- */

static fake_machine *machine_of(hwnas_exec *exec)
{
    return (fake_machine *)((char *)exec - offsetof(fake_machine, exec));
}

/* The ways of inputs and outputs are 0.2 ms, which its own clock does not see. */
static hwnas_status time_of_device(hwnas_exec *exec, int runs, double *seconds)
{
    machine_of(exec)->clock += runs * 1.2e-3;
    machine_of(exec)->n_runs += (size_t)runs;
    *seconds = runs * 1e-3;
    return HWNAS_OK;
}

/* Every eighth look, or less, finds it so. */
static void hot_at_times(hwnas_exec *exec, hwnas_device_state *out)
{
    const bool is_hot = machine_of(exec)->n_settles++ % 8 == 0;
    *out = (hwnas_device_state){.hertz = 1e9, .throttles = is_hot ? HWNAS_THROTTLE_HEAT : 0};
}

static double too_slow(fake_machine *m)
{
    (void)m;
    return 7;
}

static void test_device_with_a_clock(void **state)
{
    (void)state;
    const hwnas_device_ops ops = {.abi = HWNAS_DEVICE_ABI,
                                  .name = "gpu",
                                  .run = fake_run,
                                  .memory = fake_memory,
                                  .time = time_of_device,
                                  .state = hot_at_times};
    fake_machine machine = make_machine(too_slow);
    machine.exec.ops = &ops;
    hwnas_measurement m = measure_on(
        &machine, (hwnas_measure_options){.interval = 0, .max_seconds = 2, .min_samples = 500});
    assert_near(m.first_run_seconds, 7, 1e-3);
    assert_near(m.p50, 1e-3, 1e-9);
    assert_near(m.hertz, 1e9, 1);
    /* A look disturbs the blocks on both sides of it. */
    assert_true(m.n_disturbed > 50);
    assert_true(m.n_disturbed < 2 * m.n_samples);
    assert_false(m.is_mixed);
    assert_string_equal(hwnas_measurement_throttle(&m), "heat");
}

/* Nobody empties its caches. */
static void test_device_with_a_clock_is_not_cold(void **state)
{
    (void)state;
    const hwnas_device_ops ops = {
        .abi = HWNAS_DEVICE_ABI, .name = "gpu", .run = fake_run, .time = time_of_device};
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    fake_machine machine = make_machine(constant);
    hwnas_graph *graph = make_graph();
    hwnas_measurement m;
    options.mode = HWNAS_COLD;
    machine.exec.ops = &ops;
    assert_int_equal(hwnas_measure_on(&m, &machine.exec, graph, &options, &machine.base),
                     HWNAS_E_UNSUPPORTED);
    hwnas_graph_free(graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_hardly_warms_up),
        cmocka_unit_test(test_time_is_a_bound),
        cmocka_unit_test(test_bimodal),
        cmocka_unit_test(test_sometimes_slow),
        cmocka_unit_test(test_warm_up_waits),
        cmocka_unit_test(test_device_with_a_clock),
        cmocka_unit_test(test_device_with_a_clock_is_not_cold),
        cmocka_unit_test(test_slower_than_the_budget),
        cmocka_unit_test(test_faster_than_the_clock),
        cmocka_unit_test(test_quantiles_that_n_carries),
        cmocka_unit_test(test_stop_flag),
        cmocka_unit_test(test_failing_run),
        cmocka_unit_test(test_energy_of_a_run),
        cmocka_unit_test(test_energy_by_a_slow_counter),
        cmocka_unit_test(test_intervals_of_quantiles),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
