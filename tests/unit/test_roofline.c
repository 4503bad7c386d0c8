/* test_roofline.c: what a machine can do at most, of measurements that this file makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/cores.h"
#include "measure/roofline.h"

/* Every run takes so long, but the fastest of the smallest, which is nothing but the call, and what
 * a device with a rate computes. */
static const double RUN = 2e-3, CALL = 10e-6;
static double held_up; /* the median of the call */
static hwnas_device_info described;
static double flops_per_second; /* 0: it has no rate */
static int64_t largest_side, largest_array;
static bool is_disturbed;
static int n_measured, n_retried; /* in one attempt, or in more where the machine is disturbed */

static double seconds_of(const hwnas_graph *graph)
{
    const int64_t rows = graph->tensors[0].dims[0], n = hwnas_tensor_count(&graph->tensors[0]);
    const bool is_product = graph->n_inputs == 1;
    if (is_product)
        largest_side = rows > largest_side ? rows : largest_side;
    else
        largest_array = n > largest_array ? n : largest_array;
    return is_product && flops_per_second > 0 ? 2 * pow((double)rows, 3) / flops_per_second : RUN;
}

hwnas_status __wrap_hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                         const hwnas_graph *graph,
                                         const hwnas_measure_options *options);
hwnas_status __wrap_hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner);

hwnas_status __wrap_hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                         const hwnas_graph *graph,
                                         const hwnas_measure_options *options)
{
    (void)runner;
    n_measured++;
    n_retried += options->max_attempts != 1;
    const bool is_call = hwnas_tensor_count(&graph->tensors[0]) < 100;
    const double p50 = is_call ? held_up : seconds_of(graph);
    *out = (hwnas_measurement){
        .p50 = p50, .p50_low = p50, .p50_high = p50, .min = RUN, .is_unstable = is_disturbed};
    if (is_call)
        out->min = CALL;
    return HWNAS_OK;
}

hwnas_status __wrap_hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner)
{
    (void)runner;
    *out = described;
    return HWNAS_OK;
}

static double best_flops(double call)
{
    hwnas_roofline roofline;
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    held_up = call;
    assert_int_equal(hwnas_roofline_get(&roofline, NULL, "made up", HWNAS_F32, true, &options),
                     HWNAS_OK);
    return roofline.flops.p50;
}

/* 2 * 256^3 of the first product, in 1990 us; ten times as much where 4 ms counted as the call. */
static void test_calls_that_were_held_up(void **state)
{
    (void)state;
    const double flops = 2 * 256. * 256 * 256 / (RUN - CALL);
    described = (hwnas_device_info){.threads = 1};
    flops_per_second = 0;
    assert_true(fabs(best_flops(CALL) / flops - 1) < 1e-9);
    assert_true(fabs(best_flops(4e-3) / flops - 1) < 1e-9);
}

static void measures(double rate, const hwnas_device_info *info, int64_t side, int64_t array)
{
    described = *info;
    flops_per_second = rate;
    largest_side = largest_array = 0;
    best_flops(CALL);
    assert_int_equal(largest_side, side);
    assert_true(llabs(largest_array - array) < 1000); /* whole rows */
}

/* A core with AVX-512 needs 1.9 ms for 512 rows. An H200 makes 8192 in less, and its cache of 60 MB
 * is a quarter of what is summed; no product takes more than an eighth of a small GPU's memory. */
static void test_sizes_fit_the_device(void **state)
{
    (void)state;
    const hwnas_device_info core = {.threads = 1},
                            h200 = {.threads = 1, .memory_bytes = 150e9, .cache_bytes = 60e6},
                            small = {.threads = 1, .memory_bytes = 1e9, .cache_bytes = 1e6};
    const double bytes = fmax(384e6, 4 * hwnas_cores_last_cache());
    measures(144e9, &core, 512, (int64_t)(bytes / 12));
    measures(700e12, &h200, 8192, (int64_t)(240e6 / 12));
    measures(700e12, &small, 2048, (int64_t)(2 * 24576e3 / 12));
}

/* The attempts at the first part have told that the machine is disturbed: all is marked by then. */
static void test_a_disturbed_machine_is_found_out_once(void **state)
{
    (void)state;
    described = (hwnas_device_info){.threads = 1};
    flops_per_second = 0;
    n_measured = n_retried = 0;
    best_flops(CALL);
    assert_true(n_measured > HWNAS_N_BANDWIDTHS);
    assert_int_equal(n_retried, n_measured);
    is_disturbed = true;
    n_retried = 0;
    best_flops(CALL);
    assert_int_equal(n_retried, 1);
    is_disturbed = false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_that_were_held_up), cmocka_unit_test(test_sizes_fit_the_device),
        cmocka_unit_test(test_a_disturbed_machine_is_found_out_once)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
