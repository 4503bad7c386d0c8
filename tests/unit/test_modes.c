/* test_modes.c: in what state a sample finds the machine, and what is done about neighbours; on a
 * scripted machine, and for caches on the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/stats.h"
#include "fake_machine.h"
#include "measure/evict.h"
#include "measure/team.h"
#include "measure/wire.h"

static const hwnas_measure_options defaults = HWNAS_MEASURE_DEFAULTS;

static hwnas_measurement measure_on(fake_machine *m, const hwnas_measure_options *options)
{
    hwnas_measurement out;
    hwnas_graph *graph = make_graph();
    assert_int_equal(hwnas_measure_retry(&out, &m->exec, graph, options, &m->base), HWNAS_OK);
    hwnas_graph_free(graph);
    return out;
}

/* ---- Spelling ---- */

static void modes_are_spelled(void **state)
{
    (void)state;
    hwnas_measure_options o = defaults;
    for (int i = 0; i < HWNAS_N_MODES; i++) {
        assert_int_equal(hwnas_mode_parse(&o, hwnas_mode_name((hwnas_mode)i)), HWNAS_OK);
        assert_int_equal(o.mode, i);
    }
    assert_int_equal(hwnas_mode_parse(&o, "after-idle=0.5"), HWNAS_OK);
    assert_int_equal(o.mode, HWNAS_AFTER_IDLE);
    assert_true(o.idle_seconds == 0.5 && o.max_seconds == 1);
    assert_int_equal(hwnas_mode_parse(&o, "sustained=60"), HWNAS_OK);
    assert_int_equal(o.mode, HWNAS_SUSTAINED);
    assert_true(o.max_seconds == 60);
    static const char *const wrong[] = {"",
                                        "warm",
                                        "hot=1",
                                        "col",
                                        "cold=",
                                        "cold=0.1",
                                        "coldweights",
                                        "sustained=",
                                        "sustained=1s",
                                        "sustained=-1",
                                        "sustained=nan",
                                        "after-idle=0",
                                        "after-idle=1e9"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(hwnas_mode_parse(&o, wrong[i]), HWNAS_E_USAGE);
        assert_non_null(strstr(hwnas_last_error()->hint, "after-idle[=SECONDS]"));
    }
    assert_int_equal(o.mode, HWNAS_SUSTAINED);
}

static void modes_travel(void **state)
{
    (void)state;
    hwnas_measure_options o = defaults, back;
    o.mode = HWNAS_AFTER_IDLE;
    o.idle_seconds = 0.25;
    json_t *object = hwnas_wire_options(&o);
    assert_true(hwnas_wire_read_options(&back, object));
    assert_int_equal(back.mode, HWNAS_AFTER_IDLE);
    assert_true(back.idle_seconds == 0.25);
    json_object_set_new(object, "mode", json_integer(HWNAS_N_MODES));
    assert_false(hwnas_wire_read_options(&back, object));
    json_decref(object);
}

/* ---- Idle, sustained ---- */

/* The clock rate has fallen after a pause of more than 50 ms: 1 ms becomes 2. */
static double slow_after_a_pause(fake_machine *m)
{
    static double last;
    double idle = m->clock - last;
    last = m->clock + 1e-3;
    return idle > 0.05 && m->n_runs ? 2e-3 : 1e-3;
}

static void a_pause_goes_before_each_sample(void **state)
{
    (void)state;
    fake_machine m = make_machine(slow_after_a_pause);
    hwnas_measure_options o = defaults;
    assert_near(measure_on(&m, &o).p50, 1e-3, 1e-6);
    assert_true(m.paused == 0);
    o.mode = HWNAS_AFTER_IDLE;
    hwnas_measurement a = measure_on(&m, &o);
    assert_near(a.p50, 2e-3, 1e-6);
    assert_int_equal(a.runs_per_sample, 1);
    assert_int_equal(a.mode, HWNAS_AFTER_IDLE);
    assert_int_equal(a.stop, HWNAS_STOP_BUDGET); /* 30 pauses do not fit into it */
    assert_in_range(a.n_samples, 8, 10);
    assert_near(m.paused, 0.1 * (double)a.n_samples, 1e-9);
    o.max_seconds = 4;
    a = measure_on(&m, &o);
    assert_int_equal(a.stop, HWNAS_STOP_INTERVAL);
    assert_int_equal(a.n_samples, 30);
}

/* 20 % slower from the third second on. */
static double throttling(fake_machine *m)
{
    return m->clock < 1003 ? 1e-3 : 1.2e-3;
}

static double slower_and_slower(fake_machine *m)
{
    return 1e-3 * (1 + 0.05 * (m->clock - 1000));
}

/* Samples beside a neighbour are taken for want of others, in the order of time like those. */
static void ends_are_not_swapped_where_all_was_disturbed(void **state)
{
    (void)state;
    hwnas_measure_options o = defaults;
    o.max_attempts = 1;
    assert_int_equal(hwnas_mode_parse(&o, "sustained=10"), HWNAS_OK);
    fake_machine m = make_machine(slower_and_slower);
    m.is_shared = true;
    hwnas_measurement a = measure_on(&m, &o);
    assert_true(a.is_mixed && a.is_unstable);
    assert_true(a.p50_last > 1.2 * a.p50_first);
}

static void sustained_goes_on_and_compares_the_ends(void **state)
{
    (void)state;
    fake_machine m = make_machine(throttling);
    hwnas_measure_options o = defaults;
    hwnas_measurement a = measure_on(&m, &o);
    assert_int_equal(a.n_samples, 30);
    assert_true(isnan(a.p50_first) && isnan(a.p50_last));
    m = make_machine(throttling);
    assert_int_equal(hwnas_mode_parse(&o, "sustained=10"), HWNAS_OK);
    a = measure_on(&m, &o);
    assert_near(m.clock, 1010, 0.1);
    assert_near(a.p50_first, 1e-3, 1e-6);
    assert_near(a.p50_last, 1.2e-3, 1e-6);
    assert_false(a.is_unstable); /* it is what was asked for */
    assert_int_equal(a.n_attempts, 1);
}

/* ---- Caches ---- */

/* How long a walk over memory takes, the shortest of some. */
static double walk(const char *memory, size_t n, hwnas_evictor *e, int n_tries)
{
    double best = INFINITY;
    static volatile char sink;
    for (int i = 0; i < n_tries; i++) {
        if (e)
            assert_int_equal(hwnas_evict_constants(e), HWNAS_OK);
        double start = hwnas_now();
        for (size_t k = 0; k < n; k += 64)
            sink = memory[k];
        best = fmin(best, hwnas_now() - start);
    }
    (void)sink;
    return best;
}

/* Memory that holds the same in both notes goes, memory that changed stays: the times are shown,
 * not judged, as neighbours evict too. What memory holds never changes. */
static void what_is_constant_is_evicted(void **state)
{
    (void)state;
    enum { BYTES = 512 << 10 };
    hwnas_evictor *e;
    if (hwnas_evictor_open(&e) == HWNAS_E_UNSUPPORTED) {
        print_message("# skipped: %s\n", hwnas_last_error()->message);
        skip();
    }
    char *constant = aligned_alloc(4096, BYTES), *changing = aligned_alloc(4096, BYTES);
    memset(constant, 1, BYTES);
    memset(changing, 1, BYTES);
    assert_int_equal(hwnas_evictor_note(e), HWNAS_OK);
    memset(changing, 2, BYTES);
    assert_int_equal(hwnas_evictor_note(e), HWNAS_OK);
    double warm = walk(constant, BYTES, NULL, 20), cold = walk(constant, BYTES, e, 20);
    walk(changing, BYTES, NULL, 1);
    double kept = walk(changing, BYTES, e, 20);
    print_message("# 512 KiB: %.1f us in the caches, %.1f us evicted, %.1f us skipped\n",
                  1e6 * warm, 1e6 * cold, 1e6 * kept);
    for (int i = 0; i < BYTES; i++)
        assert_true(constant[i] == 1 && changing[i] == 2);
    assert_int_equal(hwnas_evict_all(e), HWNAS_OK);
    hwnas_evictor_close(e);
    hwnas_evictor_close(NULL);
    free(constant);
    free(changing);
}

/* ---- Neighbours ---- */

/* On the same physical core for 15 of 40 ms: 1 ms becomes 1.5. */
static double with_a_neighbour(fake_machine *m)
{
    m->is_shared = fmod(m->clock, 0.04) < 0.015;
    return m->is_shared ? 1.5e-3 : 1e-3;
}

static void samples_beside_a_neighbour_are_set_aside(void **state)
{
    (void)state;
    fake_machine m = make_machine(with_a_neighbour);
    hwnas_measurement a = measure_on(&m, &defaults);
    assert_near(a.p50, 1e-3, 1e-6);
    assert_near(a.tails[HWNAS_P90].value, 1e-3, 1e-6);
    assert_in_range(a.n_disturbed, 10, 60);
    assert_true(a.shared_share > 0.2 && a.shared_share < 0.8);
    assert_near(a.hertz, 3e9, 1);
    assert_int_equal(a.n_samples + a.n_disturbed > 30, 1);
}

/* A slow minute, or rather two seconds of it. */
static double slow_at_first(fake_machine *m)
{
    m->is_shared = m->clock < 1002;
    return m->is_shared ? 1.5e-3 : 1e-3;
}

static void a_slow_minute_is_not_a_slow_network(void **state)
{
    (void)state;
    fake_machine m = make_machine(slow_at_first);
    hwnas_measurement a = measure_on(&m, &defaults);
    assert_in_range(a.n_attempts, 2, 3);
    assert_false(a.is_unstable);
    assert_near(a.p50, 1e-3, 1e-6);
    assert_true(m.paused > 0);
    assert_true(a.run_seconds > 1 && a.total_seconds > a.run_seconds);
}

static double always_shared(fake_machine *m)
{
    m->is_shared = true;
    return 1.5e-3;
}

static double shared_after_a_while(fake_machine *m)
{
    if (m->clock > 1000.05 && !m->is_moved && !m->has_better_core)
        m->is_shared = m->has_better_core = true;
    return m->is_shared ? 1.5e-3 : 1e-3;
}

/* From one block to the next it is elsewhere. */
static void it_moves_to_a_better_core(void **state)
{
    (void)state;
    hwnas_measure_options o = defaults;
    o.min_samples = 200;
    fake_machine m = make_machine(shared_after_a_while);
    hwnas_measurement a = measure_on(&m, &o);
    assert_true(m.is_moved && m.n_settles >= 2);
    assert_int_equal(a.n_attempts, 1);
    assert_false(a.is_unstable);
    assert_near(a.p50, 1e-3, 1e-6);
    assert_in_range(a.n_samples, 200, 260);
}

/* It ends, with a number, marked. */
static void after_three_attempts_it_is_unstable(void **state)
{
    (void)state;
    fake_machine m = make_machine(always_shared);
    hwnas_measurement a = measure_on(&m, &defaults);
    assert_int_equal(a.n_attempts, 3);
    assert_true(a.is_unstable && a.is_mixed);
    assert_near(a.p50, 1.5e-3, 1e-6);
    assert_near(a.total_seconds, 3 + 0.25 + 0.5, 0.05);
    assert_non_null(hwnas_measurement_doubt(&a));
}

/* What was far too slow each time is not worth another attempt; what was not, is. */
static void what_is_beaten_is_not_tried_again(void **state)
{
    (void)state;
    static const struct {
        double give_up;
        int n_attempts;
    } rows[] = {{1.3e-3, 1}, {1.4e-3, 3}, {1.6e-3, 3}, {0, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_machine m = make_machine(always_shared); /* 1.5 ms */
        hwnas_measure_options o = defaults;
        o.give_up = rows[i].give_up;
        hwnas_measurement a = measure_on(&m, &o);
        assert_int_equal(a.n_attempts, rows[i].n_attempts);
        assert_true(a.is_unstable);
    }
}

/* The rule for a reading; the reading itself where the processor can be read. */
static void half_the_width_is_a_shared_core(void **state)
{
    (void)state;
    hwnas_pace_best best = {0};
    hwnas_pace pace = hwnas_pace_read();
    if (!isnan(pace.width))
        assert_true(pace.hertz > 1e8 && pace.hertz < 2e10 && pace.width > 0);
    assert_false(hwnas_pace_is_shared(&best, (hwnas_pace){.width = NAN, .hertz = NAN}, 3.6));
    for (int i = 0; i < 8; i++) /* the first run tells what there is */
        assert_false(hwnas_pace_is_shared(&best, (hwnas_pace){.width = 3.7, .hertz = 3e9}, 0));
    assert_true(hwnas_pace_is_shared(&best, (hwnas_pace){.width = 2.3, .hertz = 3e9}, 0));
    /* Readings that are too wide, each by less than a fifth than the one before, do nothing ... */
    for (double width = 4; width < 40; width *= 1.1) {
        assert_false(hwnas_pace_is_shared(&best, (hwnas_pace){.width = width, .hertz = 2e9}, 0));
        for (int i = 0; i < 9; i++)
            assert_false(hwnas_pace_is_shared(&best, (hwnas_pace){.width = 3.66, .hertz = 3e9}, 0));
    }
    /* ... a wider core does. */
    assert_false(hwnas_pace_is_shared(&best, (hwnas_pace){.width = 3.3, .hertz = 3e9}, 0));
    for (int i = 0; i < 16; i++)
        assert_false(hwnas_pace_is_shared(&best, (hwnas_pace){.width = 5.7, .hertz = 3e9}, 0));
    assert_true(hwnas_pace_is_shared(&best, (hwnas_pace){.width = 3.3, .hertz = 3e9}, 0));
}

static const hwnas_team_reading near_by = {{.width = 3.8, .hertz = 3e9}, .hop = 30e-9},
                                far_apart = {{.width = 3.8, .hertz = 3e9}, .hop = 150e-9},
                                one_core = {{.width = 1.9, .hertz = 3e9}, .hop = 20e-9};

/* A user's cache that is empty, for one test. */
typedef struct private_cache {
    char folder[sizeof "test_modes.XXXXXX"];
    char *before; /* what the variable said; NULL: nothing */
} private_cache;

static private_cache make_cache(void)
{
    private_cache cache = {.folder = "test_modes.XXXXXX"};
    cache.before = getenv("XDG_CACHE_HOME") ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    assert_non_null(mkdtemp(cache.folder));
    char *whole = realpath(cache.folder, NULL); /* a relative one would not count */
    setenv("XDG_CACHE_HOME", whole, 1);
    free(whole);
    return cache;
}

static void drop_cache(private_cache *cache)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", cache->folder);
    assert_int_equal(system(command), 0);
    if (cache->before)
        setenv("XDG_CACHE_HOME", cache->before, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(cache->before);
}

/* Nothing is known of two threads until some readings agree; what is known by then, by this process
 * or another, counts. */
static void what_threads_can_do_together_is_remembered(void **state)
{
    (void)state;
    private_cache cache = make_cache();

    hwnas_team team = hwnas_team_open(2);
    assert_false(hwnas_team_is_disturbed(&team, far_apart));
    assert_false(hwnas_team_is_disturbed(&team, one_core)); /* lucky or not: one reading */
    for (int i = 0; i < 16; i++)
        assert_false(hwnas_team_is_disturbed(&team, near_by));
    assert_true(hwnas_team_is_disturbed(&team, far_apart));
    assert_true(hwnas_team_is_disturbed(&team, one_core));
    assert_false(hwnas_team_is_disturbed(&team, near_by));
    hwnas_team_keep(&team);

    team = hwnas_team_open(2);
    assert_true(hwnas_team_is_disturbed(&team, far_apart));
    team = hwnas_team_open(4);
    for (int i = 0; i < 16; i++)
        assert_false(hwnas_team_is_disturbed(&team, far_apart));
    team.threads = 2;
    hwnas_team_keep(&team); /* further apart: what is known stays */
    team = hwnas_team_open(2);
    assert_float_equal(team.hop, 30e-9, 1e-15);
    assert_float_equal(team.width.width, 3.8, 1e-9);

    drop_cache(&cache);
}

/* What earlier processes have seen of two threads. */
static void write_best(double width, double hop, double missed)
{
    glob_t found;
    char pattern[100];
    snprintf(pattern, sizeof pattern, "%s/hwnas/team-*-2", getenv("XDG_CACHE_HOME"));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    FILE *file = fopen(found.gl_pathv[0], "w");
    fprintf(file, "%.3f %.3g %.0f\n", width, hop, missed);
    fclose(file);
    globfree(&found);
}

/* A virtual machine moves: for a while its two cores were hyperthreads of one, or it is on another
 * processor now. What is never reached again must not make every measurement a disturbed one. */
static void what_threads_could_do_elsewhere_is_forgotten(void **state)
{
    (void)state;
    private_cache cache = make_cache();
    if (hwnas_pace_assumed() > 0) {
        hwnas_team team = hwnas_team_open(2);
        for (int i = 0; i < 16; i++)
            assert_false(hwnas_team_is_disturbed(&team, one_core)); /* nothing better is known */
        hwnas_team_keep(&team);
        for (int i = 0; i < 16; i++)
            assert_false(hwnas_team_is_disturbed(&team, far_apart));
        hwnas_team_keep(&team);
        assert_float_equal(hwnas_team_open(2).hop, 150e-9, 1e-15);
    }

    hwnas_team team = hwnas_team_open(2);
    for (int i = 0; i < 16; i++)
        hwnas_team_is_disturbed(&team, near_by);
    hwnas_team_keep(&team);
    team = hwnas_team_open(2);
    for (int i = 0; i < 16; i++)
        assert_true(hwnas_team_is_disturbed(&team, far_apart));
    hwnas_team_keep(&team);
    team = hwnas_team_open(2);
    assert_float_equal(team.hop, 30e-9, 1e-15); /* a minute is no proof */
    assert_true(fabs(team.missed - (double)time(NULL)) < 600);

    /* As if that had been two hours ago, on such cores or on wider ones. */
    const double missed = team.missed;
    for (int i = 0; i < 2; i++) {
        write_best(i ? 5 : 3.8, 30e-9, missed - 7200);
        team = hwnas_team_open(2);
        for (int k = 0; k < 16; k++)
            hwnas_team_is_disturbed(&team, far_apart);
        hwnas_team_keep(&team);
        team = hwnas_team_open(2);
        assert_false(hwnas_team_is_disturbed(&team, far_apart));
        assert_float_equal(team.hop, 150e-9, 1e-15);
        assert_float_equal(team.width.width, 3.8, 1e-9);
    }
    /* A clock that was set back does not keep it longer. */
    write_best(5, 150e-9, missed + 7200);
    team = hwnas_team_open(2);
    for (int k = 0; k < 16; k++)
        hwnas_team_is_disturbed(&team, far_apart);
    hwnas_team_keep(&team);
    assert_true(hwnas_team_open(2).missed < missed + 3600);
    drop_cache(&cache);
}

/* Readings on several threads at once; the figures are the machine's affair. */
static void all_threads_are_read(void **state)
{
    (void)state;
    const hwnas_team_reading one = hwnas_team_read(1), all = hwnas_team_read(3);
    assert_true(isnan(one.hop));
    /* Three at real-time priority on two cores would wait for each other for ever. */
    assert_int_equal(isnan(all.hop), omp_get_num_procs() < 3);
    assert_true(isnan(all.hop) || (all.hop > 0 && all.hop < 10));
    if (omp_get_num_procs() > 1)
        assert_true(hwnas_team_read(2).hop > 0);
    assert_int_equal(isnan(one.pace.width), isnan(all.pace.width));
    if (!isnan(all.pace.width))
        assert_true(all.pace.width > 0 && all.pace.width < 100 && all.pace.hertz > 1e7);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_threads_can_do_together_is_remembered),
        cmocka_unit_test(what_threads_could_do_elsewhere_is_forgotten),
        cmocka_unit_test(all_threads_are_read),
        cmocka_unit_test(modes_are_spelled),
        cmocka_unit_test(modes_travel),
        cmocka_unit_test(a_pause_goes_before_each_sample),
        cmocka_unit_test(sustained_goes_on_and_compares_the_ends),
        cmocka_unit_test(ends_are_not_swapped_where_all_was_disturbed),
        cmocka_unit_test(what_is_constant_is_evicted),
        cmocka_unit_test(samples_beside_a_neighbour_are_set_aside),
        cmocka_unit_test(a_slow_minute_is_not_a_slow_network),
        cmocka_unit_test(it_moves_to_a_better_core),
        cmocka_unit_test(after_three_attempts_it_is_unstable),
        cmocka_unit_test(what_is_beaten_is_not_tried_again),
        cmocka_unit_test(half_the_width_is_a_shared_core),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
