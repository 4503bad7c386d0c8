/* test_streams.c: copies that run at the same time: the window of one on a scripted machine, what
 * several are together, and real ones. The program is its own runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/stats.h"
#include "graph/op.h"
#include "measure/streams.h"
#include "measure/wire.h"

static hwnas_graph *tiny;

static int make_tiny(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 4, 8, 8};
    int input, output;
    tiny = hwnas_graph_new("tiny", 1);
    if (hwnas_graph_add_input(&input, tiny, "input", HWNAS_FLOAT32, 4, dims) ||
        hwnas_graph_add_node(&output, tiny, hwnas_op_by_name("relu"), "relu", NULL, 1, &input,
                             true))
        return -1;
    hwnas_graph_add_output(tiny, output);
    return 0;
}

static int free_tiny(void **state)
{
    (void)state;
    hwnas_graph_free(tiny);
    return 0;
}

/* ---- One copy, on a machine where time passes only in an inference ---- */

typedef struct fake_machine {
    hwnas_machine base;
    hwnas_exec exec;
    double clock, waited, stolen;
    unsigned long preemptions;
    size_t n_runs;
    double (*script)(struct fake_machine *m); /* seconds of the next inference */
} fake_machine;

static const double WATTS = 10;

static double fake_now(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->clock;
}

static hwnas_status fake_take_priority(hwnas_machine *machine, const hwnas_measure_options *options)
{
    (void)machine;
    (void)options;
    return HWNAS_OK;
}

static bool fake_is_realtime(hwnas_machine *machine)
{
    (void)machine;
    return false;
}

static unsigned long fake_preemptions(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->preemptions;
}

static double fake_waited(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->waited;
}

static double fake_stolen(hwnas_machine *machine)
{
    return ((fake_machine *)machine)->stolen;
}

static double fake_joules(hwnas_machine *machine)
{
    return WATTS * ((fake_machine *)machine)->clock;
}

static void fake_watch(hwnas_machine *machine)
{
    (void)machine;
}

static hwnas_status fake_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    (void)inputs;
    (void)outputs;
    fake_machine *m = (fake_machine *)((char *)exec - offsetof(fake_machine, exec));
    m->clock += m->script(m);
    m->n_runs++;
    return HWNAS_OK;
}

static const hwnas_device_ops fake_ops = {.abi = HWNAS_DEVICE_ABI, .run = fake_run};

static hwnas_window run_window(fake_machine *m, double lead, double seconds)
{
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_copy copy;
    hwnas_window window;
    m->base = (hwnas_machine){.watch = fake_watch,
                              .now = fake_now,
                              .take_priority = fake_take_priority,
                              .is_realtime = fake_is_realtime,
                              .preemptions = fake_preemptions,
                              .waited = fake_waited,
                              .stolen = fake_stolen,
                              .joules = fake_joules};
    m->exec.ops = &fake_ops;
    assert_int_equal(hwnas_copy_open(&copy, &m->exec, tiny, &m->base), HWNAS_OK);
    assert_int_equal(hwnas_window_measure(&window, &copy, lead, seconds, &options), HWNAS_OK);
    hwnas_copy_done(&copy);
    return window;
}

static double steady(fake_machine *m)
{
    (void)m;
    return 1e-3;
}

static void test_steady(void **state)
{
    (void)state;
    fake_machine m = {.script = steady};
    hwnas_window w = run_window(&m, 0.1, 1);
    assert_in_range(w.m.n_samples, 999, 1001);
    assert_in_range(w.m.n_warm_up, 99, 101);
    assert_float_equal(w.m.p50, 1e-3, 1e-12);
    assert_float_equal(w.m.tails[HWNAS_P99].value, 1e-3, 1e-12);
    assert_float_equal(w.runs_per_second, 1000, 1e-6);
    assert_float_equal(w.m.energy, WATTS * 1e-3, 1e-9);
    assert_true(w.n == w.m.n_samples && !w.m.is_unstable);
    hwnas_window_done(&w);
}

/* The last inferences of the warm-up, at 0.1 s, were slow. */
static double slow_for_a_moment(fake_machine *m)
{
    return m->clock > 0.09 && m->clock < 0.1 ? 0.02 : 1e-3;
}

/* All but the warm-up was fast, eight times as fast. */
static double fast_in_the_end(fake_machine *m)
{
    return m->clock < 0.1 ? 8e-3 : 1e-3;
}

/* A copy that has no room for more samples is still a load for the others. */
static void test_goes_on_to_the_end(void **state)
{
    (void)state;
    fake_machine m = {.script = slow_for_a_moment};
    hwnas_window w = run_window(&m, 0.1, 1);
    assert_in_range(w.m.n_samples, 970, 1001);
    hwnas_window_done(&w);
    m = (fake_machine){.script = fast_in_the_end};
    w = run_window(&m, 0.1, 1);
    assert_true(m.clock >= 1.1 - 1e-9);
    assert_float_equal(w.runs_per_second, 1000, 1e-6);
    hwnas_window_done(&w);
}

/* Every fifth inference loses 4 ms to another process, as the interference monitors say. */
static double often_interrupted(fake_machine *m)
{
    if (m->n_runs % 5)
        return 1e-3;
    m->preemptions++;
    m->waited += 4e-3;
    return 5e-3;
}

static void test_interrupted(void **state)
{
    (void)state;
    fake_machine m = {.script = often_interrupted};
    hwnas_window w = run_window(&m, 0.1, 1);
    assert_float_equal(w.runs_per_second, 1000, 1e-6);
    assert_float_equal(w.m.tails[HWNAS_P99].value, 1e-3, 1e-12);
    assert_float_equal(w.m.disturbed_share, 5. / 9, 0.01);
    assert_in_range(w.m.n_disturbed, 110, 112);
    assert_false(w.m.is_unstable); /* what is left agrees */
    hwnas_window_done(&w);
}

/* The hypervisor takes 20 ms once. */
static double stolen_once(fake_machine *m)
{
    if (m->clock < 0.5 || m->stolen > 0)
        return 1e-3;
    m->stolen = 0.02;
    return 21e-3;
}

static void test_stolen(void **state)
{
    (void)state;
    fake_machine m = {.script = stolen_once};
    hwnas_window w = run_window(&m, 0.1, 1);
    assert_float_equal(w.runs_per_second, 1000, 1e-6); /* a tenth of the window is set aside */
    assert_in_range(w.m.n_disturbed, 70, 110);
    assert_true(!w.m.is_unstable);
    hwnas_window_done(&w);
}

static double slow(fake_machine *m)
{
    (void)m;
    return 3;
}

static double a_nanosecond(fake_machine *m)
{
    (void)m;
    return 1e-9;
}

static void test_too_slow_and_too_fast(void **state)
{
    (void)state;
    fake_machine m = {.script = slow};
    hwnas_window w = run_window(&m, 0.1, 1);
    assert_int_equal(w.m.n_samples, 6); /* never empty */
    assert_float_equal(w.runs_per_second, 1 / 3., 1e-9);
    assert_true(isnan(w.m.tails[HWNAS_P90].value) && isnan(w.m.tails[HWNAS_P99].value));
    hwnas_window_done(&w);
    m = (fake_machine){.script = a_nanosecond};
    w = run_window(&m, 0.3, 1);
    assert_in_range(w.m.runs_per_sample, 20000, 40000); /* 20 us at least */
    assert_float_equal(w.runs_per_second, 1e9, 1);
    assert_int_equal(w.n, HWNAS_WINDOW_SAMPLES);
    assert_true(w.m.n_samples > w.n);
    hwnas_window_done(&w);
}

/* ---- Several together ---- */

static hwnas_window window_of(size_t n, double from, double step, size_t n_samples)
{
    hwnas_window w = {.n = n,
                      .samples = hwnas_alloc(n * sizeof(double)),
                      .m.tails = {{.of = 0.9}, {.of = 0.99}, {.of = 0.95}}};
    for (size_t i = 0; i < n; i++)
        w.samples[i] = from + step * (double)i;
    w.m.n_samples = n_samples;
    w.m.energy = w.m.energy_low = w.m.energy_high = NAN;
    return w;
}

static void test_pool(void **state)
{
    (void)state;
    hwnas_window both[] = {window_of(1000, 1e-3, 1e-6, 1000), window_of(500, 2e-3, 1e-6, 500)},
                 pool;
    double all[1500];
    memcpy(all, both[0].samples, 1000 * sizeof *all);
    memcpy(all + 1000, both[1].samples, 500 * sizeof *all);
    hwnas_sort(all, 1500);
    both[0].runs_per_second = 1000;
    both[1].runs_per_second = 500;
    both[0].m.energy = both[0].m.energy_low = both[0].m.energy_high = WATTS / 1000;
    both[1].m.energy = both[1].m.energy_low = both[1].m.energy_high = WATTS / 500;
    both[0].m.memory_bytes = both[1].m.memory_bytes = 100;
    both[1].m.trend = -0.05;
    assert_int_equal(hwnas_window_pool(&pool, both, 2), HWNAS_OK);
    assert_float_equal(pool.runs_per_second, 1500, 1e-9);
    assert_float_equal(pool.m.energy, WATTS / 1500, 1e-12); /* one machine, 1500 inferences */
    assert_float_equal(pool.m.p50, hwnas_quantile(all, 1500, 0.5), 1e-12);
    assert_float_equal(pool.m.tails[HWNAS_P99].value, hwnas_quantile(all, 1500, 0.99), 1e-12);
    assert_float_equal(pool.m.tails[2].value, hwnas_quantile(all, 1500, 0.95), 1e-12);
    assert_int_equal(pool.m.memory_bytes, 200);
    assert_int_equal(pool.m.n_samples, 1500);
    assert_true(pool.m.is_unstable); /* as one of them was */
    hwnas_window_done(&both[0]);
    hwnas_window_done(&both[1]);
}

/* A copy that took 60,000 samples counts three times one that took 20,000, though both send as
 * many. */
static void test_pool_of_thinned(void **state)
{
    (void)state;
    const size_t n = HWNAS_WINDOW_SAMPLES;
    hwnas_window both[] = {window_of(n, 1e-3, 1e-9, 60000), window_of(n, 2e-3, 1e-9, 20000)}, pool;
    assert_int_equal(hwnas_window_pool(&pool, both, 2), HWNAS_OK);
    /* The upper quarter is the second copy's: the 90th percentile is 0.6 of the way in it. */
    assert_float_equal(pool.m.tails[HWNAS_P90].value, 2e-3 + 0.6 * 1e-9 * (double)n, 1e-7);
    assert_float_equal(pool.m.p50, 1e-3 + 2 / 3. * 1e-9 * (double)n, 1e-7);
    assert_true(isnan(pool.m.energy));
    hwnas_window_done(&both[0]);
    hwnas_window_done(&both[1]);
}

/* A GPU that does 1000 runs in a second at 400 W: the first copy has it alone for 0.2 s, both for 1
 * s, then the second for 0.2 s. */
static void test_pool_of_one_device(void **state)
{
    (void)state;
    hwnas_window both[] = {window_of(10, 1e-3, 1e-6, 10), window_of(10, 1e-3, 1e-6, 10)}, pool;
    for (int i = 0; i < 2; i++) {
        both[i].begin = 100 + 0.2 * i;
        both[i].end = both[i].begin + 1.2;
        both[i].runs_per_second = 700 / 1.2;
        both[i].m.energy = both[i].m.energy_low = both[i].m.energy_high = 400 * 1.2 / 700;
    }
    assert_int_equal(hwnas_window_pool(&pool, both, 2), HWNAS_OK);
    assert_float_equal(pool.runs_per_second, 1000, 1e-6);
    assert_float_equal(pool.m.energy, 0.4, 1e-9);
    assert_float_equal(pool.m.energy_high, 0.4, 1e-9);
    hwnas_window_done(&both[0]);
    hwnas_window_done(&both[1]);
}

static void test_wire(void **state)
{
    (void)state;
    hwnas_window w = window_of(3, 0.1, 0.2, 3), back;
    w.runs_per_second = 7;
    w.begin = 0.1 + 1e6;
    w.end = 1.3 + 1e6;
    json_t *json = hwnas_wire_window(&w);
    assert_true(hwnas_wire_read_window(&back, json));
    assert_true(back.n == 3 && back.samples[2] == w.samples[2] && back.runs_per_second == 7);
    assert_true(back.begin == w.begin && back.end == w.end);
    hwnas_window_done(&back);
    json_array_set_new(json_object_get(json, "samples"), 1, json_string("?"));
    assert_false(hwnas_wire_read_window(&back, json));
    json_array_clear(json_object_get(json, "samples"));
    assert_false(hwnas_wire_read_window(&back, json));
    json_decref(json);
    hwnas_window_done(&w);
}

/* ---- Real ones ---- */

static const hwnas_measure_options quick = {
    .interval = 0.01, .max_seconds = 0.1, .min_samples = 30, .timeout = 60};

static void test_real_copies(void **state)
{
    (void)state;
    const int n = hwnas_device_cores() > 1 ? 2 : 1;
    hwnas_streams *streams;
    hwnas_measurement m;
    double rate;
    assert_int_equal(hwnas_streams_open(&streams, "ref", 1, n), HWNAS_OK);
    assert_int_equal(hwnas_streams_measure(&m, &rate, streams, tiny, &quick), HWNAS_OK);
    assert_true(m.n_samples >= 6 * (size_t)n && m.p50 > 0 && rate > 0);
    /* A copy that dies fails the measurement, and the next works. */
    hwnas_streams_close(streams);
    setenv("HWNAS_RUNNER_FAULT", "crash", 1);
    assert_int_equal(hwnas_streams_open(&streams, "null", 1, n), HWNAS_OK);
    assert_int_equal(hwnas_streams_measure(&m, &rate, streams, tiny, &quick), HWNAS_E_CRASHED);
    assert_non_null(strstr(hwnas_last_error()->message, "SIGSEGV"));
    unsetenv("HWNAS_RUNNER_FAULT");
    assert_int_equal(hwnas_streams_measure(&m, &rate, streams, tiny, &quick), HWNAS_OK);
    hwnas_streams_close(streams);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void test_more_than_cores(void **state)
{
    (void)state;
    hwnas_streams *streams;
    assert_int_equal(hwnas_streams_open(&streams, "null", 1, hwnas_device_cores() + 1),
                     HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "cores"));
    assert_int_equal(hwnas_streams_open(&streams, "null", hwnas_device_cores(), 2),
                     HWNAS_E_UNSUPPORTED);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_goes_on_to_the_end),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_stolen),
        cmocka_unit_test(test_too_slow_and_too_fast),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_of_thinned),
        cmocka_unit_test(test_pool_of_one_device),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_real_copies),
        cmocka_unit_test(test_more_than_cores),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_tiny, free_tiny);
}
