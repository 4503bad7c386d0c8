/* test_gpu_clock.c: what is measured of a GPU, held to what a stand-in simulated
 * (tests/gpu/fake_clock.c): latency, layers, energy, throughput, clock rate and doubts. Time is
 * virtual, so the host's speed is no part of it. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/device_energy.h"
#include "measure/steps.h"
#include "measure/window.h"
#include "tests/gpu/running.h"
#include "tests/unit/fake_machine.h"

/* ---- The stand-in's clock ---- */

static double (*gpu_clock)(void);
static void (*gpu_pause)(double);
static void (*gpu_restart)(void);
static int *n_logged, *nvml_calls;
static double *logged;

static void find_clock(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&gpu_clock = dlsym(library, "fake_gpu_clock");
    *(void **)&gpu_pause = dlsym(library, "fake_gpu_pause");
    *(void **)&gpu_restart = dlsym(library, "fake_gpu_restart");
    n_logged = dlsym(library, "fake_gpu_n_logged");
    logged = dlsym(library, "fake_gpu_log");
    nvml_calls = dlsym(dlopen("libnvidia-ml.so.1", RTLD_NOW), "fake_nvml_calls");
    assert_true(gpu_clock && gpu_pause && gpu_restart && n_logged && logged && nvml_calls);
}

static double virtual_now(hwnas_machine *machine)
{
    (void)machine;
    gpu_pause(20e-9); /* a look at the clock takes some time, so no loop is without end */
    return gpu_clock();
}

static void virtual_pause(hwnas_machine *machine, double seconds)
{
    (void)machine;
    gpu_pause(seconds);
}

static double no_script(fake_machine *m)
{
    (void)m;
    return 0;
}

static fake_machine virtual_machine(void)
{
    fake_machine m = make_machine(no_script);
    m.base.now = virtual_now;
    m.base.pause = virtual_pause;
    m.reference_growth = 0.5; /* the processor's own speed drifts, which is nothing to a GPU */
    return m;
}

/* ---- A network on it ---- */

typedef struct bench {
    fake_machine machine;
    hwnas_graph *graph;
    hwnas_device *gpu;
    hwnas_exec *exec;
} bench;

#define BASE "is_virtual=1,values=0,kernel=20e-6,launch=10e-6,delay=10e-6,nvml=1e-3,tick=0.1"

static bench open_bench(const char *argument, const char *more)
{
    char *settings = hwnas_printf(BASE "%s", more);
    bench b = {.machine = virtual_machine(), .graph = image_net(1)};
    set_fault(NULL);
    setenv("FAKE_GPU_SIMULATION", settings, 1);
    gpu_restart();
    free(settings);
    b.gpu = open_gpu_as(argument);
    ok(hwnas_device_compile(&b.exec, b.gpu, b.graph, NULL));
    return b;
}

static void close_bench(bench *b)
{
    hwnas_exec_free(b->exec);
    hwnas_device_close(b->gpu);
    hwnas_graph_free(b->graph);
    unsetenv("FAKE_GPU_SIMULATION");
    nothing_is_left();
}

/* Seconds of a run at the full clock rate, as they were simulated. */
static double simulated_run(void)
{
    double sum = 0;
    for (int i = 0; i < *n_logged; i++)
        sum += logged[i] < 0 ? 0 : logged[i];
    assert_true(sum > 0);
    return sum;
}

static hwnas_measurement measure(bench *b, hwnas_measure_options options)
{
    hwnas_measurement m;
    ok(hwnas_measure_on(&m, b->exec, b->graph, &options, &b->machine.base));
    return m;
}

static const hwnas_measure_options usual = HWNAS_MEASURE_DEFAULTS;

#define assert_close(got, wanted, share)                                                           \
    do {                                                                                           \
        const double got_ = (got), wanted_ = (wanted);                                             \
        if (!(fabs(got_ - wanted_) <= (share)*fabs(wanted_)))                                      \
            fail_msg("%s is %g, simulated was %g", #got, got_, wanted_);                           \
    } while (0)

static void latency_is_what_was_simulated(void **state)
{
    (void)state;
    bench b = open_bench("0:own", "");
    const hwnas_measurement m = measure(&b, usual);
    const double run = simulated_run();
    assert_close(m.p50, run, 0.002);
    assert_close(m.tails[HWNAS_P90].value, run, 0.002);
    assert_true(m.runs_per_sample * m.p50 >= 1e-3);
    assert_close(m.hertz, 1.5e9, 1e-6);
    assert_false(m.is_unstable);
    assert_null(hwnas_measurement_throttle(&m));
    assert_true(m.drift == 0);
    assert_close(m.launch_seconds, 20e-6, 0.1); /* of the host, and on the way */
    assert_true(m.is_recorded);
    close_bench(&b);
}

/* The GPU begins with a third of its clock rate, and rises for 200 ms. */
static void a_gpu_is_warm_before_it_counts(void **state)
{
    (void)state;
    bench b = open_bench("0:own", ",ramp=0.2,slowest=0.33");
    const hwnas_measurement m = measure(&b, usual);
    assert_close(m.p50, simulated_run(), 0.01);
    assert_true(m.runs_per_sample * m.p50 >= 1e-3); /* of the warm GPU */
    close_bench(&b);
}

/* Once a block and once before: NVML has the GPU wait. */
static void nvml_is_asked_seldom(void **state)
{
    (void)state;
    hwnas_measure_options options = usual;
    options.min_samples = 400;
    bench b = open_bench("0:own", ",nvml=5e-3");
    const int before = *nvml_calls;
    const hwnas_measurement m = measure(&b, options);
    const int calls = *nvml_calls - before;
    assert_true(m.n_samples > 300);
    assert_true(calls <= 2 * 40); /* the state is two calls */
    assert_close(m.p50, simulated_run(), 0.002);
    close_bench(&b);
}

static void judge_layers(const char *more, double mark)
{
    bench b = open_bench("0:own", more);
    hwnas_step_times times;
    ok(hwnas_measure_steps_on(&times, b.exec, b.graph, &usual, &b.machine.base));
    /* The last replay had an event before each step and behind the last. */
    double wanted[64] = {0};
    int at = -1;
    for (int i = 0; i < *n_logged; i++)
        if (logged[i] < 0)
            at++;
        else if (at >= 0 && at < 64)
            wanted[at] += logged[i];
    assert_int_equal(at, times.n);
    for (size_t i = 0; i < times.n; i++)
        assert_close(times.steps[i].time.p50, wanted[i], 0.005);
    assert_close(times.whole.p50, simulated_run(), 0.005);
    assert_close(times.sum.p50, simulated_run(), 0.005);
    assert_close(times.ratio.p50, 1 + mark * (double)times.n / simulated_run(), 0.005);
    assert_true(fabs(times.mark - mark) < 1e-8);
    hwnas_step_times_done(&times);
    close_bench(&b);
}

/* An event between two steps takes 2.6 us on an H100. */
static void layers_are_what_was_simulated(void **state)
{
    (void)state;
    judge_layers("", 0);
    judge_layers(",event=2.6e-6", 2.6e-6);
}

static void energy_is_what_was_simulated(void **state)
{
    (void)state;
    static const char *const ticks[] = {",tick=0.1", ",tick=0.02", ",tick=0.07,nvml=4e-3",
                                        ",tick=0"};
    hwnas_measure_options options = usual;
    options.energy = true;
    for (size_t i = 0; i < COUNT(ticks); i++) {
        char *settings = hwnas_printf(",idle=70,busy=500%s", ticks[i]);
        bench b = open_bench("0:own", settings);
        const hwnas_measurement m = measure(&b, options);
        const double wanted = 500 * simulated_run();
        assert_close(m.energy, wanted, 0.01);
        assert_true(m.energy_low <= wanted && wanted <= m.energy_high);
        assert_true(m.energy_high - m.energy_low < 0.1 * wanted);
        free(settings);
        close_bench(&b);
    }
    bench b = open_bench("0:own", "");
    const hwnas_measurement m = measure(&b, usual); /* nobody asked */
    assert_true(isnan(m.energy));
    close_bench(&b);
}

/* A GPU under its power limit is as it is sold. */
static void a_power_limit_is_told_and_disturbs_nothing(void **state)
{
    (void)state;
    bench b = open_bench("0:own", ",cap_until=1e9,cap=0.8");
    const hwnas_measurement m = measure(&b, usual);
    assert_close(m.p50, simulated_run() / 0.8, 0.002);
    assert_close(m.hertz, 0.8 * 1.5e9, 1e-3);
    assert_string_equal(hwnas_measurement_throttle(&m), "power");
    assert_int_equal(m.n_disturbed, 0);
    assert_false(m.is_unstable);
    close_bench(&b);
}

static void heat_disturbs(void **state)
{
    (void)state;
    hwnas_measure_options options = usual;
    options.min_samples = 700;
    /* For a fifth of the time. */
    bench b = open_bench("0:own", ",heat_from=0.6,heat_until=0.8,heat=0.5");
    hwnas_measurement m = measure(&b, options);
    assert_close(m.p50, simulated_run(), 0.002);
    assert_true(m.n_disturbed > 0);
    assert_string_equal(hwnas_measurement_throttle(&m), "heat");
    close_bench(&b);
    /* All of the time. */
    b = open_bench("0:own", ",heat_until=1e9,heat=0.5");
    m = measure(&b, options);
    assert_true(m.is_unstable);
    assert_non_null(strstr(hwnas_measurement_doubt(&m), "heat held the device's clock down"));
    assert_null(strstr(hwnas_measurement_doubt(&m), "cores"));
    assert_non_null(strstr(hwnas_measurement_cause(&m), "heat"));
    close_bench(&b);
}

/* Each run finds nothing in the GPU's cache. */
static void cold_is_what_was_simulated(void **state)
{
    (void)state;
    hwnas_measure_options options = usual;
    options.mode = HWNAS_COLD;
    options.energy = true;
    bench b = open_bench("0:own", ",cold=0.5");
    const hwnas_measurement m = measure(&b, options);
    assert_close(m.p50, 1.5 * simulated_run(), 0.005);
    assert_true(isnan(m.energy)); /* that of hot runs would be another one */
    close_bench(&b);
}

/* Several copies are one process each; what one of them sees of a GPU that is its own. */
static void judge_window(const char *settings)
{
    bench b = open_bench("0:own", settings);
    hwnas_copy copy;
    hwnas_window w;
    hwnas_measure_options options = usual;
    options.energy = true;
    ok(hwnas_copy_open(&copy, b.exec, b.graph, &b.machine.base));
    ok(hwnas_window_measure(&w, &copy, 0.3, 1.2, &options));
    const double run = simulated_run();
    assert_close(w.m.p50, run, 0.01);
    assert_close(w.runs_per_second, 1 / run, 0.01);
    assert_close(w.m.energy, 400 * run, 0.01);
    hwnas_window_done(&w);
    hwnas_copy_done(&copy);
    close_bench(&b);
}

/* A look at the energy counter of an H100 took up to 6 ms, of which the GPU must notice nothing. */
static void a_window_is_timed_by_the_gpu(void **state)
{
    (void)state;
    judge_window(",idle=70,busy=400");
    judge_window(",idle=70,busy=400,nvml=6e-3");
}

/* Of which the others make use: a sample's own time does not show it, but the GPU's energy and what
 * it does in the window do. */
static void pause_for_long(void *context, const char *phase)
{
    (void)context;
    if (!strcmp(phase, "sampling"))
        gpu_pause(4e-3);
}

static void a_late_host_counts_against_a_copy(void **state)
{
    (void)state;
    bench b = open_bench("0:own", ",idle=70,busy=400,nvml=0");
    hwnas_copy copy;
    hwnas_window w;
    hwnas_measure_options options = usual;
    options.energy = true;
    options.progress = pause_for_long;
    ok(hwnas_copy_open(&copy, b.exec, b.graph, &b.machine.base));
    ok(hwnas_window_measure(&w, &copy, 0.3, 1.2, &options));
    const double run = simulated_run(), sample = w.m.runs_per_sample * run;
    assert_true(sample < 3e-3);       /* before the next one comes */
    assert_close(w.m.p50, run, 0.02); /* a launch is in it, for which the GPU waits */
    const double each = w.m.runs_per_sample / w.runs_per_second; /* from one sample to the next */
    assert_close(each, 4e-3, 0.07); /* those at the begin and the end follow each other */
    const double watts = 70 + 330 * sample / 4e-3;
    assert_close(w.m.energy, watts * each / w.m.runs_per_sample, 0.02);
    hwnas_window_done(&w);
    hwnas_copy_done(&copy);
    close_bench(&b);
}

int main(int argc, char **argv)
{
    begin_with_the_fake(argv);
    find_fake();
    find_clock();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_is_what_was_simulated),
        cmocka_unit_test(a_gpu_is_warm_before_it_counts),
        cmocka_unit_test(nvml_is_asked_seldom),
        cmocka_unit_test(layers_are_what_was_simulated),
        cmocka_unit_test(energy_is_what_was_simulated),
        cmocka_unit_test(a_power_limit_is_told_and_disturbs_nothing),
        cmocka_unit_test(heat_disturbs),
        cmocka_unit_test(cold_is_what_was_simulated),
        cmocka_unit_test(a_window_is_timed_by_the_gpu),
        cmocka_unit_test(a_late_host_counts_against_a_copy),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
