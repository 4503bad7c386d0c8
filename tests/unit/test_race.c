/* test_race.c: networks measured in turns, and the verdicts on them: on a scripted machine, and in
 * a runner. The program is its own runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fake_machine.h"
#include "measure/race.h"
#include "measure/runner.h"

static const hwnas_measure_options defaults = HWNAS_MEASURE_DEFAULTS;

/* ---- Verdicts ---- */

static void intervals_are_held_against_a_tolerance(void **state)
{
    (void)state;
    static const struct {
        double low, high, tolerance;
        hwnas_verdict verdict;
    } rows[] = {
        {1.04, 1.06, 0.03, HWNAS_SLOWER},    {0.93, 0.96, 0.03, HWNAS_FASTER},
        {0.99, 1.01, 0.03, HWNAS_SAME},      {0.99, 1.05, 0.03, HWNAS_AMBIGUOUS},
        {0.90, 1.10, 0.03, HWNAS_AMBIGUOUS}, {1.01, 1.02, 0.03, HWNAS_SAME},
        {1.01, 1.02, 0, HWNAS_SLOWER},       {0.96, 0.98, 0.03, HWNAS_AMBIGUOUS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(hwnas_verdict_of(rows[i].low, rows[i].high, rows[i].tolerance),
                         rows[i].verdict);
    assert_string_equal(hwnas_verdict_name(HWNAS_AMBIGUOUS), "ambiguous");
}

/* 3 % and 4 % of half width make 5 %. */
static void widths_add_up_as_squares(void **state)
{
    (void)state;
    const hwnas_timing before = {.p50 = 1, .low = exp(-0.03), .high = exp(0.03)};
    const hwnas_timing after = {.p50 = 1.2, .low = 1.2 * exp(-0.04), .high = 1.2 * exp(0.04)};
    hwnas_judgement j = hwnas_judge_timings(before, after, 0.05);
    assert_near(j.ratio, 1.2, 1e-12);
    assert_near(j.low, 1.2 * exp(-0.05), 1e-12);
    assert_near(j.high, 1.2 * exp(0.05), 1e-12);
    assert_int_equal(j.verdict, HWNAS_SLOWER);
    assert_int_equal(hwnas_judge_timings(after, before, 0.05).verdict, HWNAS_FASTER);
    assert_int_equal(hwnas_judge_timings(after, before, 0.18).verdict, HWNAS_AMBIGUOUS);
}

static void a_doubtful_number_accuses_nobody(void **state)
{
    (void)state;
    const hwnas_timing before = {.p50 = 1, .low = 0.999, .high = 1.001};
    hwnas_measurement now = {.p50 = 1.2, .p50_low = 1.19, .p50_high = 1.21};
    assert_int_equal(hwnas_judge_baseline(before, false, &now, 0.03).verdict, HWNAS_SLOWER);
    assert_int_equal(hwnas_judge_baseline(before, true, &now, 0.03).verdict, HWNAS_AMBIGUOUS);
    now.is_unstable = true;
    assert_int_equal(hwnas_judge_baseline(before, false, &now, 0.03).verdict, HWNAS_AMBIGUOUS);
    now.p50 = 1, now.p50_low = 0.999, now.p50_high = 1.001;
    assert_int_equal(hwnas_judge_baseline(before, false, &now, 0.03).verdict, HWNAS_SAME);
}

/* ---- Races on a machine of which everything is known ---- */

enum { MOST = 4, MOST_RUNS = 1 << 16 };

typedef struct course {
    fake_machine machine;
    struct rival {
        hwnas_exec exec; /* first, as devices do */
        struct course *course;
        double seconds;
    } rivals[MOST];
    double noise;
    /* By which the machine is slower at this time. */
    double (*slowness)(double clock);
    char log[MOST_RUNS]; /* who ran */
    size_t n_log;
} course;

static hwnas_status run_rival(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    (void)inputs;
    (void)outputs;
    const struct rival *r = (const struct rival *)exec;
    course *c = r->course;
    double noise = 1 + c->noise * (2 * hwnas_rng_double(&c->machine.rng) - 1);
    c->machine.clock += r->seconds * noise * (c->slowness ? c->slowness(c->machine.clock) : 1);
    if (c->n_log < MOST_RUNS)
        c->log[c->n_log++] = (char)(r - c->rivals);
    return HWNAS_OK;
}

static const hwnas_device_ops rival_ops = {
    .abi = HWNAS_DEVICE_ABI, .name = "rival", .run = run_rival};

static course *make_course(const double *seconds, int n)
{
    course *c = hwnas_alloc(sizeof *c);
    c->machine = make_machine(NULL);
    for (int i = 0; i < n; i++)
        c->rivals[i] = (struct rival){{&rival_ops}, c, seconds[i]};
    return c;
}

static hwnas_race run_course(course *c, int n, const hwnas_measure_options *options)
{
    hwnas_race race;
    hwnas_exec *execs[MOST];
    hwnas_graph *graph = make_graph();
    const hwnas_graph *graphs[MOST];
    for (int i = 0; i < n; i++) {
        execs[i] = &c->rivals[i].exec;
        graphs[i] = graph;
    }
    assert_int_equal(hwnas_race_run(&race, execs, graphs, n, options, &c->machine.base), HWNAS_OK);
    assert_int_equal(race.n, n);
    hwnas_graph_free(graph);
    return race;
}

/* Two equal networks with 3 % of noise are to be told apart in 5 % of the races at most, though
 * each race looks at its interval more than once. How often it was is quoted
 * in docs/measuring.md. */
static void equal_ones_are_not_told_apart(void **state)
{
    (void)state;
    const double seconds[] = {1e-3, 1e-3};
    int n_apart = 0, n_same = 0, n = 400;
    for (int i = 0; i < n; i++) {
        course *c = make_course(seconds, 2);
        c->noise = 0.03;
        c->machine.rng = hwnas_rng_new((uint64_t)i, 3);
        hwnas_race race = run_course(c, 2, &defaults);
        hwnas_verdict verdict = hwnas_race_judge(&race, 0, 1, 0).verdict;
        n_apart += verdict == HWNAS_FASTER || verdict == HWNAS_SLOWER;
        n_same += hwnas_race_judge(&race, 0, 1, defaults.interval).verdict == HWNAS_SAME;
        hwnas_race_done(&race);
        free(c);
    }
    print_message("# of %d races of equals %d left out a ratio of 1, %d were judged same\n", n,
                  n_apart, n_same);
    assert_in_range(n_apart, 0, n * 10 / 100);
    assert_in_range(n_same, n * 9 / 10, n);
}

/* It takes a fifth longer, and goes on doing so for a while, again and again. */
static double slow_minutes(double clock)
{
    return fmod(clock, 0.7) < 0.35 ? 1.2 : 1;
}

static void a_difference_is_seen_through_slow_minutes(void **state)
{
    (void)state;
    const double seconds[] = {1e-3, 1.03e-3};
    for (int swap = 0; swap < 2; swap++) {
        course *c = make_course(seconds, 2);
        c->noise = 0.02;
        c->slowness = slow_minutes;
        hwnas_race race = run_course(c, 2, &defaults);
        hwnas_judgement j = hwnas_race_judge(&race, swap, 1 - swap, 0.01);
        assert_int_equal(j.verdict, swap ? HWNAS_FASTER : HWNAS_SLOWER);
        assert_near(j.ratio, swap ? 1 / 1.03 : 1.03, 0.01);
        assert_true(j.low <= j.ratio && j.ratio <= j.high && j.high - j.low < 0.03);
        assert_true(race.measurements[0].p50 > 0.9e-3 && race.measurements[0].n_samples > 20);
        hwnas_race_done(&race);
        free(c);
    }
}

static double drift_of(double clock)
{
    return 1 + 0.1 * (clock - 1000);
}

static void a_steady_drift_cancels_out(void **state)
{
    (void)state;
    const double seconds[] = {1e-3, 1e-3, 1.05e-3};
    course *c = make_course(seconds, 3);
    c->slowness = drift_of;
    hwnas_race race = run_course(c, 3, &defaults);
    assert_int_equal(hwnas_race_judge(&race, 0, 1, 0.01).verdict, HWNAS_SAME);
    assert_int_equal(hwnas_race_judge(&race, 1, 2, 0.01).verdict, HWNAS_SLOWER);
    assert_near(hwnas_race_judge(&race, 0, 1, 0.01).ratio, 1, 1e-3);
    hwnas_race_done(&race);
    free(c);
}

/* Orders differ between blocks, and are the same on the next day. */
static void orders_are_random_and_repeatable(void **state)
{
    (void)state;
    const double seconds[] = {6e-3, 6e-3};
    char first[2][64] = {{0}};
    for (int k = 0; k < 2; k++) {
        course *c = make_course(seconds, 2);
        c->noise = 0.3;
        hwnas_race race = run_course(c, 2, &defaults);
        size_t n = 0, starts[2] = {0, 0}, n_turns = 0;
        for (size_t i = 1; i < c->n_log; i++)
            if (c->log[i] != c->log[i - 1]) {
                starts[(size_t)c->log[i]]++;
                n_turns++;
                if (n < sizeof first[0])
                    first[k][n++] = (char)(i % 100);
            }
        assert_true(race.n_blocks >= 8 && n_turns >= (size_t)race.n_blocks);
        hwnas_race_done(&race);
        free(c);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
}

static double half_shared(fake_machine *m)
{
    m->is_shared = fmod(m->clock, 1) < 0.3;
    return 0;
}

static double shared_slowness(double clock)
{
    return fmod(clock, 1) < 0.3 ? 1.6 : 1;
}

static bool shared_look(hwnas_machine *machine, double *hertz)
{
    fake_machine *m = (fake_machine *)machine;
    *hertz = 3e9;
    half_shared(m);
    return m->is_shared;
}

/* 30 % of the time a neighbour is there: turns beside it are taken again, or their block goes. */
static void disturbed_turns_do_not_count(void **state)
{
    (void)state;
    const double seconds[] = {1e-3, 1.04e-3};
    course *c = make_course(seconds, 2);
    c->noise = 0.02;
    c->slowness = shared_slowness;
    c->machine.base.is_shared = shared_look;
    hwnas_race race = run_course(c, 2, &defaults);
    assert_int_equal(hwnas_race_judge(&race, 0, 1, 0.01).verdict, HWNAS_SLOWER);
    assert_near(race.measurements[0].p50, 1e-3, 2e-5);
    for (int i = 0; i < race.n_blocks; i++)
        assert_true(race.blocks[2 * i] < 1.2e-3);
    hwnas_race_done(&race);
    free(c);
}

static bool always_shared(hwnas_machine *machine, double *hertz)
{
    (void)machine;
    *hertz = NAN;
    return true;
}

static void it_ends_though_nothing_is_clean(void **state)
{
    (void)state;
    const double seconds[] = {1e-3, 2e-3};
    course *c = make_course(seconds, 2);
    c->machine.base.is_shared = always_shared;
    hwnas_race race = run_course(c, 2, &defaults);
    assert_int_equal(race.n_blocks, 0);
    assert_true(race.n_aside > 0 && race.measurements[0].is_unstable);
    assert_int_equal(hwnas_race_judge(&race, 0, 1, 0.01).verdict, HWNAS_AMBIGUOUS);
    assert_near(race.measurements[1].p50, 2e-3, 1e-6); /* and it is not empty */
    assert_near(c->machine.clock - 1000, 4, 0.5);
    hwnas_race_done(&race);
    free(c);
}

/* The time is over after the first one's turn: of the others there is no number to tell. */
static void who_never_had_a_turn_has_no_number(void **state)
{
    (void)state;
    const double seconds[] = {2, 2.1, 2.2, 2.3};
    course *c = make_course(seconds, 4);
    c->machine.base.is_shared = always_shared;
    const hwnas_measure_options short_of_time = {.interval = 0.01, .max_seconds = 0.1};
    hwnas_race race = run_course(c, 4, &short_of_time);
    int n_without = 0;
    for (int i = 0; i < 4; i++) {
        const hwnas_measurement *m = &race.measurements[i];
        assert_true(m->is_unstable);
        if (m->n_samples)
            assert_true(m->p50 >= 2);
        else
            assert_true(isnan(m->p50) && isnan(m->p50_low) && isnan(m->min));
        n_without += !m->n_samples;
    }
    assert_int_equal(n_without, 3);
    hwnas_race_done(&race);
    free(c);
}

/* ---- In a runner ---- */

static const hwnas_measure_options quick = {
    .interval = 0.1, .max_seconds = 0.1, .min_samples = 6, .timeout = 60};

static void a_runner_holds_races(void **state)
{
    (void)state;
    hwnas_runner *runner;
    hwnas_graph *graph = make_graph();
    const hwnas_graph *graphs[] = {graph, graph, graph};
    hwnas_race race;
    hwnas_measurement m;
    assert_int_equal(hwnas_runner_open(&runner, "ref", 1), HWNAS_OK);
    assert_int_equal(hwnas_runner_race(&race, runner, graphs, NULL, 3, &quick), HWNAS_OK);
    assert_int_equal(race.n, 3);
    assert_true(race.n_blocks + race.n_aside > 0);
    for (int i = 0; i < 3; i++)
        assert_true(race.measurements[i].p50 > 0 && race.measurements[i].compile_seconds > 0);
    hwnas_race_done(&race);
    pid_t pid = hwnas_runner_pid(runner);
    assert_int_equal(hwnas_runner_measure(&m, runner, graph, &quick), HWNAS_OK);
    assert_int_equal(hwnas_runner_pid(runner), pid); /* one child for both */
    assert_int_equal(hwnas_runner_race(&race, runner, graphs, NULL, 0, &quick), HWNAS_E_INPUT);
    /* Each in its own precision: the last one is none of this device's. */
    assert_int_equal(
        hwnas_runner_race(&race, runner, graphs, (hwnas_precision[]){0, 0, HWNAS_F16}, 3, &quick),
        HWNAS_E_UNSUPPORTED);
    assert_int_equal(
        hwnas_runner_race(&race, runner, graphs, (hwnas_precision[]){0, 0, HWNAS_F16}, 2, &quick),
        HWNAS_OK);
    hwnas_race_done(&race);
    hwnas_runner_close(runner);
    hwnas_graph_free(graph);
}

static hwnas_runner *victim;

static void kill_it(void *context, const char *phase)
{
    if (!strcmp(phase, context))
        kill(hwnas_runner_pid(victim), SIGKILL);
}

static void killed_in_the_middle_it_is_told_and_works_again(void **state)
{
    (void)state;
    hwnas_graph *graph = make_graph();
    const hwnas_graph *graphs[] = {graph, graph};
    hwnas_measure_options options = quick;
    hwnas_race race;
    options.interval = NAN; /* never decided */
    options.max_seconds = 30;
    options.progress = kill_it;
    options.context = (void *)"comparing";
    assert_int_equal(hwnas_runner_open(&victim, "null", 1), HWNAS_OK);
    assert_int_equal(hwnas_runner_race(&race, victim, graphs, NULL, 2, &options), HWNAS_E_MEMORY);
    assert_non_null(strstr(hwnas_last_error()->message, "while comparing"));
    assert_int_equal(hwnas_runner_race(&race, victim, graphs, NULL, 2, &quick), HWNAS_OK);
    hwnas_race_done(&race);
    hwnas_runner_close(victim);
    hwnas_graph_free(graph);
}

static void what_travels_is_checked(void **state)
{
    (void)state;
    const double seconds[] = {1e-3, 1.1e-3};
    course *c = make_course(seconds, 2);
    hwnas_race race = run_course(c, 2, &defaults), back;
    json_t *object = hwnas_wire_race(&race);
    assert_true(hwnas_wire_read_race(&back, object));
    assert_int_equal(back.n_blocks, race.n_blocks);
    assert_true(back.blocks[1] == race.blocks[1]);
    hwnas_race_done(&back);
    json_object_set_new(object, "n_aside", json_integer((json_int_t)1 << 32));
    assert_false(hwnas_wire_read_race(&back, object));
    json_object_set_new(object, "n_aside", json_integer(0));
    json_array_append_new(json_object_get(object, "blocks"), json_real(1));
    assert_false(hwnas_wire_read_race(&back, object));
    json_array_append_new(json_object_get(object, "blocks"), json_real(-1));
    assert_false(hwnas_wire_read_race(&back, object));
    json_object_del(object, "measurements");
    assert_false(hwnas_wire_read_race(&back, object));
    json_decref(object);
    hwnas_race_done(&race);
    free(c);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_held_against_a_tolerance),
        cmocka_unit_test(widths_add_up_as_squares),
        cmocka_unit_test(a_doubtful_number_accuses_nobody),
        cmocka_unit_test(equal_ones_are_not_told_apart),
        cmocka_unit_test(a_difference_is_seen_through_slow_minutes),
        cmocka_unit_test(a_steady_drift_cancels_out),
        cmocka_unit_test(orders_are_random_and_repeatable),
        cmocka_unit_test(disturbed_turns_do_not_count),
        cmocka_unit_test(it_ends_though_nothing_is_clean),
        cmocka_unit_test(who_never_had_a_turn_has_no_number),
        cmocka_unit_test(a_runner_holds_races),
        cmocka_unit_test(killed_in_the_middle_it_is_told_and_works_again),
        cmocka_unit_test(what_travels_is_checked),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
