/* test_measure_disturbed.c: what the sampling protocol makes of a machine that drifts, that others
 * use, or that takes the core away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/measure_fixture.h"

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

/* Counts that move while a steady latency is measured explain nothing; where it is marked, the
 * quota comes before heat, and both before the governor. */
static double limited(fake_machine *m)
{
    m->conditions.quota_stops += m->watts > 1;
    m->conditions.heat_stops += m->watts > 0;
    return 1e-3;
}

static void test_limits_are_causes(void **state)
{
    (void)state;
    static const struct {
        double growth, which; /* of the reference; 2: quota and heat, 1: heat */
        const char *governor, *word;
    } rows[] = {{0, 2, "powersave", NULL},      {0.05, 2, "powersave", "quota"},
                {0.05, 1, "powersave", "heat"}, {0.05, 0, "powersave", "governor"},
                {0.05, 0, "performance", NULL}, {0.05, 0, "", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_machine machine = make_machine(limited);
        machine.watts = rows[i].which;
        machine.reference_growth = rows[i].growth;
        snprintf(machine.conditions.governor, sizeof machine.conditions.governor, "%s",
                 rows[i].governor);
        hwnas_measurement m = measure_on(&machine, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS);
        assert_int_equal(m.is_unstable, rows[i].growth > 0);
        const char *cause = hwnas_measurement_cause(&m);
        assert_int_equal(cause != NULL, rows[i].word != NULL);
        assert_true(!cause || strstr(cause, rows[i].word));
    }
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
    assert_near(m.tails[HWNAS_P90].value, 1e-3, 1e-7);
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
    assert_near(m.tails[HWNAS_P90].value, 1e-3, 1e-7);
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

/* What one thread computed in them is known: its CPU time counts, and it is said. */
static void test_cpu_time(void **state)
{
    (void)state;
    fake_machine machine = make_machine(always_preempted);
    machine.is_alone = true;
    hwnas_measurement m = measure_on(&machine, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_true(m.is_cpu_time);
    assert_false(m.is_mixed || m.is_unstable);
    assert_near(m.p50, 1e-3, 1e-7);
    assert_in_range(m.n_samples, 30, 40);
}

/* Where others take little, samples that were preempted are taken again, as ever. */
static void test_no_cpu_time_without_need(void **state)
{
    (void)state;
    fake_machine machine = make_machine(preempted_often);
    machine.is_alone = true;
    hwnas_measurement m = measure_on(&machine, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS);
    assert_false(m.is_cpu_time);
    assert_in_range(m.n_disturbed, 6, 8);
    assert_near(m.tails[HWNAS_P90].value, 1e-3, 1e-7);
}

static double drifting_and_preempted(fake_machine *m)
{
    const bool is_lost = m->n_runs % 8 != 0;
    m->preemptions += is_lost;
    m->waited += is_lost ? 5e-3 : 0;
    return drifting(m) + (is_lost ? 5e-3 : 0);
}

/* Clean and preempted samples together are in order of time: the trend shows. */
static void test_cpu_time_keeps_the_order(void **state)
{
    (void)state;
    fake_machine machine = make_machine(drifting_and_preempted);
    machine.is_alone = true;
    hwnas_measurement m = measure_on(
        &machine, (hwnas_measure_options){.interval = 0, .max_seconds = 1.5, .min_samples = 60});
    assert_true(m.is_cpu_time);
    assert_true(m.trend > 0.015);
    assert_near(m.min, 1e-3 * (1 + 2e-4 * (double)m.n_warm_up), 1e-4);
    assert_true(m.tails[HWNAS_P99].value < 1.2e-3 || isnan(m.tails[HWNAS_P99].value));
}

/* A priority that was asked for is told of the measurement. */
static void test_priority_is_told(void **state)
{
    (void)state;
    fake_machine machine = make_machine(constant);
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    options.priority = HWNAS_PRIORITY_REALTIME;
    assert_true(measure_on(&machine, options).is_realtime);
    machine = make_machine(constant);
    options.priority = HWNAS_PRIORITY_NORMAL;
    assert_false(measure_on(&machine, options).is_realtime);
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

/* The interference monitor cannot tell which samples of the block were hit, so all of them go. */
static void test_stolen_time(void **state)
{
    (void)state;
    hwnas_measurement m = measure_script(stolen_now_and_then);
    assert_int_equal(m.stop, HWNAS_STOP_INTERVAL);
    assert_true(m.n_disturbed >= 10);
    assert_near(m.tails[HWNAS_P90].value, 1e-3, 1e-7);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trend),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_limits_are_causes),
        cmocka_unit_test(test_disturbed_are_taken_again),
        cmocka_unit_test(test_harmless_preemptions),
        cmocka_unit_test(test_preemptions_of_unknown_damage),
        cmocka_unit_test(test_never_empty),
        cmocka_unit_test(test_cpu_time),
        cmocka_unit_test(test_no_cpu_time_without_need),
        cmocka_unit_test(test_cpu_time_keeps_the_order),
        cmocka_unit_test(test_priority_is_told),
        cmocka_unit_test(test_mostly_disturbed),
        cmocka_unit_test(test_mostly_disturbed_and_wide),
        cmocka_unit_test(test_nearly_always_disturbed),
        cmocka_unit_test(test_stolen_time),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
