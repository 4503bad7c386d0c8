/* test_measure.c: the sampling protocol on a scripted machine with a clock of its own, so that
 * every count is exact; and the runner with each of the bad ends that a child can have. The program
 * is its own runner: `test_measure runner` serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "graph/op.h"
#include "measure/cores.h"
#include "measure/occupancy.h"
#include "measure/energy.h"
#include "measure/machine.h"
#include "measure/runner.h"
#include "measure/wire.h"
#include "fake_machine.h"

static hwnas_measurement measure_on(fake_machine *m, hwnas_measure_options options)
{
    hwnas_measurement out;
    hwnas_graph *graph = make_graph();
    double start = m->clock;
    assert_int_equal(hwnas_measure_on(&out, &m->exec, graph, &options, &m->base), HWNAS_OK);
    hwnas_graph_free(graph);
    assert_true(out.n_samples >= 6);
    assert_true(out.min <= out.p50_low && out.p50_low <= out.p50 && out.p50 <= out.p50_high);
    assert_true(out.run_seconds <= out.total_seconds);
    assert_true(out.total_seconds <= m->clock - start);
    assert_int_equal(out.is_unstable, hwnas_measurement_doubt(&out) != NULL);
    assert_int_equal(out.memory_bytes, 12345);
    assert_int_equal(m->n_watches, 1);
    return out;
}

static hwnas_measurement measure_script(double (*script)(fake_machine *m))
{
    fake_machine m = make_machine(script);
    return measure_on(&m, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS);
}

#define assert_near(x, y, tolerance) assert_true(fabs((x) - (y)) <= (tolerance))

static double constant(fake_machine *m)
{
    return m->n_runs ? 1e-3 : 0.25;
}

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
    assert_near(m.p90, 1e-3, 1e-7);
    assert_true(isnan(m.p99));
    assert_near(m.first_run_seconds, 0.25, 1e-6);
    assert_near(m.run_seconds, 53e-3, 1e-5);
    assert_near(m.total_seconds, 0.25 + 53e-3, 1e-4);
    assert_false(m.is_unstable);
    assert_false(m.is_mixed);
}

/* Three uniform ones: nearly normal, deviation 0.1. */
static double noise(fake_machine *m)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += hwnas_rng_double(&m->rng);
    return 0.2 * (sum - 1.5);
}

static double noisy(fake_machine *m)
{
    return 1e-3 * (1 + noise(m));
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
        hwnas_measurement m = measure_on(&machine, (hwnas_measure_options){.interval = 0.02,
                                                                           .max_seconds = 3,
                                                                           .min_samples = 30,
                                                                           .give_up = cases[i].give_up});
        assert_int_equal(m.stop, cases[i].stop);
        assert_true(m.stop == HWNAS_STOP_ABOVE ? m.p50_low > cases[i].give_up && m.n_samples < 30
                                               : m.n_samples >= 30);
    }
    assert_string_equal(hwnas_stop_name(HWNAS_STOP_ABOVE), "above");
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
    assert_false(isnan(m.p99));
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
    assert_near(m.p90, 5e-3, 1e-6);
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

static double drifting(fake_machine *m)
{
    return 1e-3 * (1 + 2e-4 * (double)m->n_runs);
}

static void test_trend(void **state)
{
    (void)state;
    fake_machine machine = make_machine(drifting);
    hwnas_measurement m = measure_on(
        &machine, (hwnas_measure_options){.interval = 0, .max_seconds = 1, .min_samples = 30});
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    assert_true(m.trend > 0.03);
    assert_true(m.is_unstable);
    assert_non_null(strstr(hwnas_measurement_doubt(&m), "latency itself"));
}

static void test_drift(void **state)
{
    (void)state;
    fake_machine machine = make_machine(constant);
    machine.reference_growth = 0.05;
    hwnas_measurement m = measure_on(&machine, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS);
    assert_near(m.drift, 0.05, 1e-9);
    assert_true(m.is_unstable);
    assert_non_null(strstr(hwnas_measurement_doubt(&m), "speed"));
}

static double preempted_often(fake_machine *m)
{
    if (m->n_runs % 6)
        return 1e-3;
    m->preemptions++;
    m->waited += 3e-3;
    return 4e-3;
}

static void test_disturbed_are_taken_again(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(preempted_often);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_in_range(m.n_samples, 30, 40);
    assert_in_range(m.n_disturbed, 6, 8);
    assert_near(m.p50, 1e-3, 1e-7);
    assert_near(m.p90, 1e-3, 1e-7);
    assert_near(m.disturbed_share, 4. / 9, 0.05);
    assert_false(m.is_mixed);
}

static double preempted_briefly(fake_machine *m)
{
    m->preemptions++;
    m->waited += 5e-6;
    return 1e-3;
}

static void test_harmless_preemptions(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(preempted_briefly);
    assert_int_equal(m.n_samples, 30);
    assert_int_equal(m.n_disturbed, 0);
}

static double preempted_unknown(fake_machine *m)
{
    m->waited = NAN;
    m->preemptions += m->n_runs % 5 == 0;
    return m->n_runs % 5 ? 1e-3 : 1.1e-3;
}

static void test_preemptions_of_unknown_damage(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(preempted_unknown);
    assert_true(m.n_disturbed >= 7);
    assert_near(m.p90, 1e-3, 1e-7);
}

static double always_preempted(fake_machine *m)
{
    m->preemptions++;
    m->waited += 1e-3;
    return 2e-3;
}

/* Nothing but disturbed samples: they are used, and it is said. */
static void test_never_empty(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(always_preempted);
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    assert_near(m.total_seconds, 1, 0.01);
    assert_true(m.is_mixed && m.is_unstable);
    assert_near(m.disturbed_share, 1, 0);
    assert_int_equal(m.n_samples, m.n_disturbed);
    assert_near(m.p50, 2e-3, 1e-7);
}

static double mostly_preempted(fake_machine *m)
{
    return m->n_runs % 4 == 0 ? 1e-3 : always_preempted(m);
}

/* Enough clean ones that agree: they alone count, though the time is used up in hope of more. */
static void test_mostly_disturbed(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(mostly_preempted);
    assert_int_equal(m.stop, HWNAS_STOP_BUDGET);
    assert_near(m.p50, 1e-3, 1e-7);
    assert_true(m.disturbed_share > 0.5);
    assert_false(m.is_mixed || m.is_unstable);
}

static double mostly_preempted_and_scattered(fake_machine *m)
{
    return mostly_preempted(m) * (1 + 0.5 * hwnas_rng_double(&m->rng));
}

/* Of the same machine, but the clean ones do not agree. */
static void test_mostly_disturbed_and_wide(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(mostly_preempted_and_scattered);
    assert_true(m.disturbed_share > 0.5 && m.disturbed_share < 0.9);
    assert_false(m.is_mixed);
    assert_true(m.is_unstable);
    assert_non_null(strstr(hwnas_measurement_doubt(&m), "differs by more than 5 %"));
}

static double nearly_always_preempted(fake_machine *m)
{
    return m->n_runs % 12 == 0 ? 1e-3 : always_preempted(m);
}

static void test_nearly_always_disturbed(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(nearly_always_preempted);
    assert_true(m.n_samples >= 6 && m.disturbed_share > 0.9);
    assert_false(m.is_mixed);
    assert_true(m.is_unstable);
}

static double stolen_now_and_then(fake_machine *m)
{
    if (m->clock < 1000.03 || m->clock > 1000.06)
        return 1e-3;
    m->stolen += 10.1e-3;
    return 11e-3;
}

/* The witness cannot tell which samples of the block were hit, so all of them go. */
static void test_stolen_time(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(stolen_now_and_then);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_true(m.n_disturbed >= 10);
    assert_near(m.p90, 1e-3, 1e-7);
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
    assert_true(isnan(m.p90));
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

/* p99 wants 299 samples, p90 29. */
static void test_quantiles_that_n_carries(void **state)
{
    (void)state;
    const struct {
        int n;
        bool has_p90, has_p99;
    } cases[] = {{28, false, false}, {29, true, false}, {298, true, false}, {299, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_machine machine = make_machine(very_slow);
        hwnas_measurement m =
            measure_on(&machine, (hwnas_measure_options){.interval = 0,
                                                         .min_samples = cases[i].n,
                                                         .max_seconds = 2 * cases[i].n + 1});
        /* Two inferences warm it up at least; the rest are samples. */
        size_t expected = (size_t)cases[i].n + 1 - m.n_warm_up;
        assert_int_equal(m.n_samples, expected);
        assert_int_equal(!isnan(m.p90), m.n_samples >= 29);
        assert_int_equal(!isnan(m.p99), m.n_samples >= 299);
    }
    hwnas_measurement m = measure_script(noisy_and_long);
    assert_true(!isnan(m.p99) && m.p99 > m.p90 && m.p90 > m.p50);
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

/* The real witnesses move the right way; no figures. */
static void test_real_machine(void **state)
{
    (void)state;
    hwnas_machine *m = hwnas_machine_open();
    m->watch(m);
    double start = m->now(m), reference = m->reference(m);
    assert_true(reference > 0 && m->now(m) - start >= reference);
    assert_true(m->stolen(m) >= 0);
    double waited = m->waited(m);
    assert_true(isnan(waited) || waited >= 0);
    hwnas_machine_close(m);
    hwnas_machine_close(NULL);
}

/* Lines as proc(5) has them, in hundredths of a second. */
static void test_occupancy(void **state)
{
    (void)state;
    static const char before[] = "cpu  300 0 100 1000 0 0 0 7 0 0\n"
                                 "cpu0 100 10 50 500 20 1 2 3 0 0\n"
                                 "cpu1 200 0 50 500 0 0 0 4 0 0\n"
                                 "cpu1000000 1 1 1 1 1 1 1 1 0 0\n"
                                 "intr 12345 0 0\n";
    static const char after[] = "cpu  400 0 200 1000 0 0 0 7 0 0\n"
                                "cpu0 130 20 60 550 25 3 5 8 0 0\n" /* 60 more, 5 of them stolen */
                                "cpu1 290 0 55 505 0 0 0 4 0 0\n"   /* 95 more */
                                "intr 12345 0 0\n";
    hwnas_core_ticks t;
    const char *at = hwnas_core_ticks_next(&t, before);
    assert_int_equal(t.core, 0);
    assert_int_equal(t.busy, 100 + 10 + 50 + 1 + 2);
    assert_int_equal(t.stolen, 3);
    at = hwnas_core_ticks_next(&t, at);
    assert_int_equal(t.core, 1);
    at = hwnas_core_ticks_next(&t, at);
    assert_int_equal(t.core, 1000000);
    assert_null(hwnas_core_ticks_next(&t, at));
    assert_null(hwnas_core_ticks_next(&t, ""));
    assert_non_null(hwnas_core_ticks_next(&t, "cpu3"));
    assert_int_equal(t.busy, 0);

    hwnas_occupancy o = {0};
    hwnas_occupancy_look(&o, before, 100, &(hwnas_look){.now = 50, .own = 2, .core = 1, .other = 1});
    assert_true(o.others[0] == 0 && o.others[1] == 0); /* nothing to compare with */
    hwnas_occupancy_look(&o, after, 100,
                         &(hwnas_look){.now = 51, .own = 2.7, .core = 1, .other = 1.1});
    assert_float_equal(o.others[0], 0.6 - 0.1, 1e-9);
    assert_float_equal(o.others[1], 0.95 - 0.7 - 0.1, 1e-9);
    hwnas_occupancy_look(&o, after, 100,
                         &(hwnas_look){.now = 52, .own = 3.7, .core = 1, .other = 1.1});
    assert_true(o.others[0] == 0 && o.others[1] == 0); /* ticks that are yet to come are no debt */
}

static void test_cores(void **state)
{
    (void)state;
    int one[HWNAS_MAX_CORES], all[HWNAS_MAX_CORES];
    int n = hwnas_cores_choose(all, HWNAS_MAX_CORES);
    assert_int_equal(n, hwnas_device_cores());
    assert_int_equal(hwnas_cores_choose(one, 1), 1);
    assert_int_equal(one[0], all[0]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(all[i], all[j]);
}

/* What one has taken the next does not get, while there are others. */
static void test_cores_are_held(void **state)
{
    (void)state;
    hwnas_cores a, b, both;
    int n = hwnas_device_cores();
    hwnas_cores_take(&a, 1);
    hwnas_cores_take(&b, 1);
    assert_int_equal(a.n, 1);
    assert_int_equal(b.n, 1);
    /* Another program may hold some of them meanwhile. */
    if (a.n_locks && b.n_locks)
        assert_int_not_equal(a.numbers[0], b.numbers[0]);
    hwnas_cores_take(&both, n + 1); /* more than there are, and some are taken: all the same */
    assert_int_equal(both.n, n);
    hwnas_cores_release(&both);
    hwnas_cores_release(&a);
    hwnas_cores_release(&b);
    assert_int_equal(b.n_locks, 0);
}

static void write_text(const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Two packages and a part of one, as the kernel's documentation shows them. */
static void test_energy_counters(void **state)
{
    (void)state;
    char root[] = "/tmp/hwnas-powercap-XXXXXX", zones[3][300];
    const char *const names[] = {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1"};
    assert_non_null(mkdtemp(root));
    assert_null(hwnas_energy_open(root));
    for (int i = 0; i < 3; i++) {
        snprintf(zones[i], sizeof zones[i], "%s/%s", root, names[i]);
        assert_int_equal(mkdir(zones[i], 0700), 0);
        write_text(zones[i], "name", i == 0 ? "package-0\n" : i == 1 ? "core\n" : "package-1\n");
        write_text(zones[i], "max_energy_range_uj", "262143328850\n");
        write_text(zones[i], "energy_uj", "262143000000\n");
    }
    hwnas_energy *energy = hwnas_energy_open(root);
    assert_non_null(energy);
    assert_true(hwnas_energy_joules(energy) == 0);
    write_text(zones[0], "energy_uj", "262143300000\n");
    write_text(zones[1], "energy_uj", "262143200000\n"); /* a part: not counted twice */
    assert_near(hwnas_energy_joules(energy), 0.3, 1e-9);
    write_text(zones[2], "energy_uj", "671150\n"); /* it has begun again */
    assert_near(hwnas_energy_joules(energy), 0.3 + 1, 1e-9);
    hwnas_energy_close(energy);
    hwnas_energy_close(NULL);
    for (int i = 0; i < 3; i++) {
        static const char *const files[] = {"name", "max_energy_range_uj", "energy_uj"};
        for (int k = 0; k < 3; k++) {
            char path[1300];
            snprintf(path, sizeof path, "%s/%s", zones[i], files[k]);
            unlink(path);
        }
        rmdir(zones[i]);
    }
    rmdir(root);
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
        assert_int_equal(!isnan(m.p90_high), rows[i].has_p90);
        assert_int_equal(!isnan(m.p99_high), rows[i].has_p99);
        if (rows[i].has_p90)
            assert_true(m.p90_low <= m.p90 && m.p90 <= m.p90_high && m.p90_low > m.p50);
        if (rows[i].has_p99)
            assert_true(m.p99_low <= m.p99 && m.p99 <= m.p99_high && m.p99_low > m.p90);
    }
}

static void test_wire(void **state)
{
    (void)state;
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_frame frame;
    hwnas_frame_encode(head, (hwnas_frame){.type = HWNAS_FRAME_GRAPH, .length = 1 << 25});
    assert_true(hwnas_frame_decode(&frame, head));
    assert_int_equal(frame.type, HWNAS_FRAME_GRAPH);
    assert_int_equal(frame.length, 1 << 25);
    head[4] = HWNAS_FRAME_ANSWER; /* too long for words */
    assert_false(hwnas_frame_decode(&frame, head));
    head[0] = 'H';
    assert_false(hwnas_frame_decode(&frame, head));

    hwnas_measurement m = measure_script(noisy), back;
    json_t *object = hwnas_wire_measurement(&m);
    assert_true(hwnas_wire_read_measurement(&back, object));
    assert_true(m.p50 == back.p50 && m.p50_low == back.p50_low && m.drift == back.drift);
    assert_true(isnan(m.p99) == isnan(back.p99) && m.stop == back.stop);
    assert_int_equal(m.n_samples, back.n_samples);
    json_object_del(object, "drift");
    assert_false(hwnas_wire_read_measurement(&back, object));
    json_decref(object);
}

/* The runner. */

static hwnas_runner *runner;
static hwnas_graph *tiny;

static int open_runner(void **state)
{
    (void)state;
    tiny = make_graph();
    return hwnas_runner_open(&runner, "null", 1);
}

static int close_runner(void **state)
{
    (void)state;
    hwnas_runner_close(runner);
    hwnas_graph_free(tiny);
    unsetenv("HWNAS_RUNNER");
    unsetenv("HWNAS_RUNNER_FAULT");
    return waitpid(-1, NULL, WNOHANG) == -1 ? 0 : -1; /* no child is left */
}

static hwnas_status measure_tiny(hwnas_measure_options options)
{
    hwnas_measurement m = {0};
    hwnas_status status = hwnas_runner_measure(&m, runner, tiny, &options);
    assert_int_equal(m.p50 > 0, status == HWNAS_OK);
    assert_int_equal(hwnas_last_error()->message[0] != 0, status != HWNAS_OK);
    return status;
}

static const hwnas_measure_options quick = {
    .interval = 0.1, .max_seconds = 0.05, .min_samples = 6, .timeout = 60};

static void assert_works(void)
{
    hwnas_error_clear();
    assert_int_equal(measure_tiny(quick), HWNAS_OK);
}

static void test_measures(void **state)
{
    (void)state;
    hwnas_device_info info;
    assert_int_equal(hwnas_runner_pid(runner), 0);
    assert_int_equal(hwnas_runner_describe(&info, runner), HWNAS_OK);
    assert_int_not_equal(info.name[0], 0);
    pid_t pid = hwnas_runner_pid(runner);
    assert_int_not_equal(pid, 0);
    for (int i = 0; i < 3; i++)
        assert_works();
    assert_int_equal(hwnas_runner_pid(runner), pid); /* one child for all */
}

static void test_faults(void **state)
{
    (void)state;
    const struct {
        const char *fault;
        hwnas_status status;
        const char *words;
        double timeout;
        size_t memory_limit;
    } cases[] = {
        {"crash", HWNAS_E_CRASHED, "SIGSEGV while compiling: fault: crash", 60, 0},
        {"hang", HWNAS_E_TIMEOUT, "said nothing for 0.5 s while", 0.5, 0},
        {"killed", HWNAS_E_MEMORY, "out-of-memory killer", 60, 0},
        {"oom", HWNAS_E_MEMORY, "no memory for a fault", 60, 512 << 20},
        {"alloc", HWNAS_E_MEMORY, "hwnas: out of memory", 60, 512 << 20},
        {"unchecked", HWNAS_E_MEMORY, "nearly used up: out of memory", 60, 512 << 20},
        {"exit", HWNAS_E_CRASHED, "status 3 while compiling: fault: exit", 60, 0},
        {"garbage", HWNAS_E_CRASHED, "no answer", 60, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hwnas_measure_options options = quick;
#ifdef __SANITIZE_ADDRESS__ /* its shadow memory is beyond any limit */
        if (cases[i].memory_limit)
            continue;
#endif
        options.timeout = cases[i].timeout;
        options.memory_limit = cases[i].memory_limit;
        setenv("HWNAS_RUNNER_FAULT", cases[i].fault, 1);
        hwnas_status status = measure_tiny(options);
        if (status != cases[i].status || !strstr(hwnas_last_error()->message, cases[i].words))
            fail_msg("fault %s: status %s, %s", cases[i].fault, hwnas_status_name(status),
                     hwnas_last_error()->message);
        assert_int_equal(hwnas_runner_pid(runner), 0);
        unsetenv("HWNAS_RUNNER_FAULT");
        assert_works();
        hwnas_runner_close(runner); /* the next child must see the next fault */
        assert_int_equal(hwnas_runner_open(&runner, "null", 1), HWNAS_OK);
    }
}

static void kill_at(void *context, const char *phase)
{
    if (!strcmp(phase, context))
        kill(hwnas_runner_pid(runner), SIGKILL);
}

static void test_killed_from_outside(void **state)
{
    (void)state;
    hwnas_measure_options options = quick;
    options.interval = 0;
    options.max_seconds = 30;
    options.progress = kill_at;
    options.context = (void *)"sampling";
    assert_int_equal(measure_tiny(options), HWNAS_E_MEMORY);
    assert_non_null(strstr(hwnas_last_error()->message, "while sampling"));
    assert_works();
    kill(hwnas_runner_pid(runner), SIGKILL); /* idle */
    assert_int_equal(measure_tiny(quick), HWNAS_E_MEMORY);
    assert_works();
}

static volatile sig_atomic_t stop_flag;

static void stop_at(void *context, const char *phase)
{
    if (!strcmp(phase, context))
        stop_flag = 1;
}

static void test_interrupted(void **state)
{
    (void)state;
    hwnas_measure_options options = quick;
    options.interval = 0;
    options.max_seconds = 30;
    options.progress = stop_at;
    options.context = (void *)"sampling";
    options.stop = &stop_flag;
    stop_flag = 0;
    assert_int_equal(measure_tiny(options), HWNAS_E_INTERRUPTED);
    assert_works();
}

/* Ctrl-C reaches the whole process group; the child leaves it to us. */
static void test_sigint_is_not_for_the_child(void **state)
{
    (void)state;
    assert_works();
    pid_t pid = hwnas_runner_pid(runner);
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    assert_works();
    assert_int_equal(hwnas_runner_pid(runner), pid);
}

static void test_heartbeat_outlasts_the_timeout(void **state)
{
    (void)state;
    hwnas_measure_options options = quick;
    options.interval = 0;
    options.max_seconds = 1.5;
    options.timeout = 1;
    assert_int_equal(measure_tiny(options), HWNAS_OK);
}

static void test_wrong_programs(void **state)
{
    (void)state;
    const struct {
        const char *program;
        hwnas_status status;
        const char *words;
    } cases[] = {
        {"/nonexistent/hwnas", HWNAS_E_IO, "'/nonexistent/hwnas': No such file"},
        {"/bin/true", HWNAS_E_CRASHED, "status 0 while starting"},
        {"/bin/echo", HWNAS_E_CRASHED, "while starting"}, /* too short for a head */
        {"/bin/ls", HWNAS_E_CRASHED, "runner"},           /* complains of its argument */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("HWNAS_RUNNER", cases[i].program, 1);
        hwnas_status status = measure_tiny(quick);
        if (status != cases[i].status || !strstr(hwnas_last_error()->message, cases[i].words))
            fail_msg("%s: status %s, %s", cases[i].program, hwnas_status_name(status),
                     hwnas_last_error()->message);
    }
    unsetenv("HWNAS_RUNNER");
    assert_works();
}

/* What the child says of itself arrives as it is, and a child that only cannot is kept. */
static void test_own_words(void **state)
{
    (void)state;
    hwnas_runner *wrong;
    hwnas_device_info info;
    assert_int_equal(hwnas_runner_open(&wrong, "nul", 1), HWNAS_OK);
    assert_int_equal(hwnas_runner_describe(&info, wrong), HWNAS_E_NOT_FOUND);
    assert_non_null(strstr(hwnas_last_error()->message, "nul"));
    assert_non_null(strstr(hwnas_last_error()->hint, "null"));
    hwnas_runner_close(wrong);
    assert_int_equal(hwnas_runner_open(&wrong, "null", -1), HWNAS_E_INPUT);
}

/* The child must not outlive a parent that is killed in the middle. */
static void test_child_dies_with_its_parent(void **state)
{
    (void)state;
    int fds[2];
    pid_t child = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        setenv("HWNAS_RUNNER_FAULT", "hang", 1);
        hwnas_runner *own;
        hwnas_device_info info;
        if (hwnas_runner_open(&own, "null", 1) || hwnas_runner_describe(&info, own))
            _exit(1);
        pid_t pid = hwnas_runner_pid(own);
        hwnas_measurement m;
        if (write(fds[1], &pid, sizeof pid) == sizeof pid &&
            hwnas_runner_measure(&m, own, tiny, &quick))
            _exit(1);
        _exit(0);
    }
    assert_int_equal(read(fds[0], &child, sizeof child), sizeof child);
    usleep(200000); /* the child hangs by now, or will find its parent gone: both are fine */
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    double start = hwnas_now();
    while (!kill(child, 0) && hwnas_now() - start < 20) {
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
        FILE *f = fopen(path, "r"); /* a zombie is dead; who reaps it is not our affair */
        bool is_zombie = !f || (fgets(text, sizeof text, f) && strstr(text, ") Z "));
        if (f)
            fclose(f);
        if (is_zombie)
            break;
        usleep(10000);
    }
    assert_true(hwnas_now() - start < 20);
    close(fds[0]);
    close(fds[1]);
}

#define WITH_RUNNER(test) cmocka_unit_test_setup_teardown(test, open_runner, close_runner)

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

static const char *hot_at_times(hwnas_exec *exec)
{
    return machine_of(exec)->n_runs % 100 < 10 ? "hot" : NULL;
}

static double joules_of_device(hwnas_exec *exec)
{
    return 0.5 * (double)machine_of(exec)->n_runs;
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
                                  .slowed = hot_at_times,
                                  .joules = joules_of_device};
    fake_machine machine = make_machine(too_slow);
    machine.exec.ops = &ops;
    hwnas_measurement m = measure_on(
        &machine, (hwnas_measure_options){.interval = 0, .max_seconds = 2, .min_samples = 500});
    assert_near(m.first_run_seconds, 7, 1e-3);
    assert_near(m.p50, 1e-3, 1e-9);
    assert_near(m.energy, 0.5, 1e-9);
    assert_true(m.n_disturbed > 50); /* it is hot for a tenth of the time, and looks come between samples */
    assert_true(m.n_disturbed < m.n_samples);
    assert_false(m.is_mixed);
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
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_bimodal),
        cmocka_unit_test(test_sometimes_slow),
        cmocka_unit_test(test_warm_up_waits),
        cmocka_unit_test(test_trend),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_disturbed_are_taken_again),
        cmocka_unit_test(test_harmless_preemptions),
        cmocka_unit_test(test_preemptions_of_unknown_damage),
        cmocka_unit_test(test_never_empty),
        cmocka_unit_test(test_device_with_a_clock),
        cmocka_unit_test(test_device_with_a_clock_is_not_cold),
        cmocka_unit_test(test_mostly_disturbed),
        cmocka_unit_test(test_mostly_disturbed_and_wide),
        cmocka_unit_test(test_nearly_always_disturbed),
        cmocka_unit_test(test_stolen_time),
        cmocka_unit_test(test_slower_than_the_budget),
        cmocka_unit_test(test_faster_than_the_clock),
        cmocka_unit_test(test_quantiles_that_n_carries),
        cmocka_unit_test(test_stop_flag),
        cmocka_unit_test(test_failing_run),
        cmocka_unit_test(test_real_machine),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_cores_are_held),
        cmocka_unit_test(test_energy_counters),
        cmocka_unit_test(test_energy_of_a_run),
        cmocka_unit_test(test_intervals_of_quantiles),
        cmocka_unit_test(test_wire),
        WITH_RUNNER(test_measures),
        WITH_RUNNER(test_faults),
        WITH_RUNNER(test_killed_from_outside),
        WITH_RUNNER(test_interrupted),
        WITH_RUNNER(test_sigint_is_not_for_the_child),
        WITH_RUNNER(test_heartbeat_outlasts_the_timeout),
        WITH_RUNNER(test_wrong_programs),
        WITH_RUNNER(test_own_words),
        WITH_RUNNER(test_child_dies_with_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
