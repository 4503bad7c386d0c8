/* test_roofline.c: what a machine can do at most, of measurements that this file makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/roofline.h"

/* Every run takes so long, but the fastest of the smallest, which is nothing but the call. */
static const double RUN = 1e-3, CALL = 10e-6;
static double held_up; /* the median of the call */

hwnas_status __wrap_hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                         const hwnas_graph *graph,
                                         const hwnas_measure_options *options);
hwnas_status __wrap_hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner);

hwnas_status __wrap_hwnas_runner_measure(hwnas_measurement *out, hwnas_runner *runner,
                                         const hwnas_graph *graph,
                                         const hwnas_measure_options *options)
{
    (void)runner;
    (void)options;
    const bool is_call = hwnas_tensor_count(&graph->tensors[0]) < 100;
    const double p50 = is_call ? held_up : RUN;
    *out = (hwnas_measurement){.p50 = p50, .p50_low = p50, .p50_high = p50, .min = RUN};
    if (is_call)
        out->min = CALL;
    return HWNAS_OK;
}

hwnas_status __wrap_hwnas_runner_describe(hwnas_device_info *out, hwnas_runner *runner)
{
    (void)runner;
    *out = (hwnas_device_info){.threads = 1};
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

/* 2 * 512^3 of the largest product, in 990 us; ten times as much where 4 ms counted as the call. */
static void test_calls_that_were_held_up(void **state)
{
    (void)state;
    const double flops = 2 * 512. * 512 * 512 / (RUN - CALL);
    assert_true(fabs(best_flops(CALL) / flops - 1) < 1e-9);
    assert_true(fabs(best_flops(4e-3) / flops - 1) < 1e-9);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls_that_were_held_up)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
