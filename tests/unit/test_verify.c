/* test_verify.c: results of a device against a reference: what counts as wrong, and the runner that
 * is asked. The program is its own runner: `test_verify runner` serves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "device/devices.h"
#include "graph/elaborate.h"
#include "measure/verify.h"
#include "tests/unit/device_fixture.h"

/* ---- A device that is wrong on purpose ---- */

static void (*spoil)(float *output, int64_t n);

static hwnas_status spoilt_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    TRY(hwnas_ref_device.run(exec, inputs, outputs));
    spoil(outputs[0], 4);
    return HWNAS_OK;
}

static hwnas_status verify(hwnas_verified *out, const hwnas_graph *graph, hwnas_precision precision)
{
    hwnas_device_ops ops = hwnas_ref_device;
    hwnas_device *device = open_device("ref", 1);
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    options.exec.precision = precision;
    ops.name = "spoilt";
    ops.run = spoilt_run;
    ops.precisions = ~0U;
    device->ops = &ops;
    ok(hwnas_verify(out, device, graph, HWNAS_VERIFY_REF_SECONDS, &options));
    hwnas_device_close(device);
    return hwnas_verified_judge(out, "spoilt", precision);
}

/* Four values: x w, with a bias that is large beside them. */
static hwnas_graph *small(void)
{
    hwnas_graph *graph = hwnas_graph_new("small", 7);
    const int64_t dims[4] = {1, 6};
    hwnas_graph_add_output(graph, add(graph, "linear", "out=4", add_input(graph, dims), -1));
    return graph;
}

static void nothing(float *output, int64_t n)
{
    (void)output;
    (void)n;
}

static void one_value(float *output, int64_t n)
{
    (void)n;
    output[2] += 1;
}

static void a_rounding(float *output, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        output[i] *= 1 + 0x1p-9f;
}

static void no_number(float *output, int64_t n)
{
    output[n - 1] = NAN;
}

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    hwnas_verified v;
    hwnas_graph *graph = small();
    spoil = nothing;
    assert_int_equal(verify(&v, graph, HWNAS_F32), HWNAS_OK);
    assert_string_equal(v.against, "ref");
    assert_true(v.error == 0 && v.tolerance == 1e-4);

    spoil = one_value;
    assert_int_equal(verify(&v, graph, HWNAS_F32), HWNAS_E_WRONG_RESULT);
    assert_int_equal(v.at, 2);
    assert_true(fabs(v.got - v.wanted - 1) < 1e-6 && v.error > 0.1);
    const char *message = hwnas_last_error()->message;
    assert_non_null(strstr(message, "number 2 of 'linear_0'"));
    assert_non_null(strstr(message, "on spoilt in f32"));

    spoil = no_number;
    assert_int_equal(verify(&v, graph, HWNAS_BF16), HWNAS_E_WRONG_RESULT);
    assert_true(isinf(v.error) && isnan(v.got) && v.at == 3);
    hwnas_graph_free(graph);
}

/* What one precision may do is wrong in another. */
static void rounding_is_judged_by_the_precision(void **state)
{
    (void)state;
    hwnas_verified v;
    hwnas_graph *graph = small();
    spoil = a_rounding;
    assert_int_equal(verify(&v, graph, HWNAS_F32), HWNAS_E_WRONG_RESULT);
    assert_int_equal(verify(&v, graph, HWNAS_TF32), HWNAS_OK);
    assert_int_equal(verify(&v, graph, HWNAS_F16), HWNAS_OK);
    assert_int_equal(verify(&v, graph, HWNAS_BF16), HWNAS_OK);
    assert_true(v.error > 1e-3 && v.error < 3e-3);
    spoil = one_value;
    assert_int_equal(verify(&v, graph, HWNAS_BF16), HWNAS_E_WRONG_RESULT);
    hwnas_graph_free(graph);
}

/* x + (1000 - 1000.5) and the like: what remains of large numbers that cancel is as uncertain as
 * they are, and that is found by rounding, not by a constant. */
static void networks_that_let_errors_grow_get_their_due(void **state)
{
    (void)state;
    hwnas_verified v;
    hwnas_graph *graph = hwnas_graph_new("cancels", 7);
    const int64_t dims[4] = {1, 4}, one[] = {1};
    const float offset = 4096;
    int large, x = add_input(graph, dims), far, near;
    ok(hwnas_graph_add_constant(&large, graph, "large", 1, one, &offset));
    far = add(graph, "add", "", x, large);
    near = add(graph, "sub", "", far, large);
    hwnas_graph_add_output(graph, near);
    spoil = a_rounding;
    assert_int_equal(verify(&v, graph, HWNAS_F32), HWNAS_OK);
    assert_true(v.error > 1e-4 && v.tolerance > v.error);
    spoil = one_value;
    assert_int_equal(verify(&v, graph, HWNAS_F32), HWNAS_E_WRONG_RESULT);
    hwnas_graph_free(graph);
}

/* x * 1e6 / 1e6: f16 has no room for what is between, and that is no fault of the device. What
 * stays within its range is compared as ever. */
static void what_f16_has_no_room_for_is_not_compared(void **state)
{
    (void)state;
    hwnas_verified v;
    const int64_t dims[4] = {1, 4}, four[] = {4};
    const float up[] = {1, 1, 1, 1e6F}, down[] = {1, 1, 1, 1e-6F};
    hwnas_graph *graph = hwnas_graph_new("grows", 7);
    int large, small;
    ok(hwnas_graph_add_constant(&large, graph, "large", 1, four, up));
    ok(hwnas_graph_add_constant(&small, graph, "small", 1, four, down));
    const int grown = add(graph, "mul", "", add_input(graph, dims), large);
    hwnas_graph_add_output(graph, add(graph, "mul", "", grown, small));
    spoil = no_number;
    assert_int_equal(verify(&v, graph, HWNAS_F16), HWNAS_OK);
    assert_string_equal(v.against, "ref, where values fit f16");
    assert_int_equal(verify(&v, graph, HWNAS_BF16), HWNAS_E_WRONG_RESULT);
    assert_int_equal(verify(&v, graph, HWNAS_F32), HWNAS_E_WRONG_RESULT);
    spoil = one_value;
    assert_int_equal(verify(&v, graph, HWNAS_F16), HWNAS_E_WRONG_RESULT);
    assert_int_equal(v.at, 2);
    hwnas_graph_free(graph);
}

/* ---- References ---- */

static double difference(const hwnas_graph *graph, const hwnas_buffers *a, const hwnas_buffers *b)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count_outputs(graph); i++) {
        worst = fmax(worst, fabs((double)a->outputs[0][i] - b->outputs[0][i]));
        largest = fmax(largest, fabs((double)b->outputs[0][i]));
    }
    return worst / largest;
}

static void references_agree(void **state)
{
    (void)state;
    hwnas_space *space;
    hwnas_graph *graph;
    hwnas_expected by_ref, by_layers;
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_device *cpu = open_device("cpu", 1);
    ok(hwnas_graph_load_space(&space, "nas_bench_201"));
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_arch_settle(arch);
    ok(hwnas_graph_build(&graph, arch, 1));
    ok(hwnas_expected_open(&by_ref, cpu, graph, HUGE_VAL, &options));
    ok(hwnas_expected_open(&by_layers, cpu, graph, 0, &options)); /* too slow: not tried */
    assert_null(by_ref.how.device);
    assert_ptr_equal(by_layers.how.device, cpu);
    const double error = difference(graph, &by_layers.buffers, &by_ref.buffers);
    assert_true(error > 0 && error < 1e-5);

    /* The result of the whole network, against either. */
    hwnas_verified v;
    ok(hwnas_expected_compare(&v, &by_layers, by_ref.buffers.outputs, graph, &options));
    assert_string_equal(v.against, "cpu, each layer by itself");
    ok(hwnas_verified_judge(&v, "cpu", HWNAS_F32));
    hwnas_expected_done(&by_ref);
    hwnas_expected_done(&by_layers);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    hwnas_device_close(cpu);
}

/* What the network itself makes NaN of is not the device's fault. */
static void a_value_that_is_none_is_the_networks(void **state)
{
    (void)state;
    hwnas_verified v = {
        .against = "ref", .error = INFINITY, .tolerance = 1e-4, .output = "y", .wanted = NAN};
    assert_int_equal(hwnas_verified_judge(&v, "cpu", HWNAS_F32), HWNAS_E_WRONG_RESULT);
    assert_non_null(strstr(hwnas_last_error()->hint, "the network itself makes values"));
    v.wanted = 1;
    assert_int_equal(hwnas_verified_judge(&v, "cpu", HWNAS_F32), HWNAS_E_WRONG_RESULT);
    assert_non_null(strstr(hwnas_last_error()->hint, "fault of the device's code"));
}

/* ---- The runner ---- */

static void a_runner_verifies(void **state)
{
    (void)state;
    hwnas_runner *runner;
    hwnas_verified v;
    hwnas_measurement m;
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    const volatile sig_atomic_t stop = 1;
    hwnas_graph *graph = small();
    options.max_seconds = 0.01;
#ifndef HWNAS_SANITIZED /* its shadow memory is beyond any limit */
    options.memory_limit = (size_t)1 << 30;
#endif
    ok(hwnas_runner_open(&runner, "cpu", 1));
    for (int p = HWNAS_F32; p < HWNAS_N_PRECISIONS; p++) {
        options.exec.precision = (hwnas_precision)p;
        const hwnas_status status =
            hwnas_runner_verify(&v, runner, graph, HWNAS_VERIFY_REF_SECONDS, &options);
        if (status == HWNAS_E_UNSUPPORTED)
            continue;
        ok(status);
        ok(hwnas_verified_judge(&v, "cpu", (hwnas_precision)p));
        assert_string_equal(v.output, "linear_0");
        assert_true(isfinite(v.got) && isfinite(v.wanted));
    }
    options.exec.precision = HWNAS_F32;
    options.stop = &stop;
    assert_int_equal(hwnas_runner_verify(&v, runner, graph, HWNAS_VERIFY_REF_SECONDS, &options),
                     HWNAS_E_INTERRUPTED);
    options.stop = NULL;
    setenv("HWNAS_RUNNER_FAULT", "crash", 1);
    assert_int_equal(hwnas_runner_verify(&v, runner, graph, HWNAS_VERIFY_REF_SECONDS, &options),
                     HWNAS_E_CRASHED);
    unsetenv("HWNAS_RUNNER_FAULT");
    ok(hwnas_runner_verify(&v, runner, graph, HWNAS_VERIFY_REF_SECONDS,
                           &options)); /* by another child */
    ok(hwnas_runner_measure(&m, runner, graph, &options));
    hwnas_runner_close(runner);
    hwnas_graph_free(graph);
}

static void the_wire_refuses_half_an_answer(void **state)
{
    (void)state;
    static const char *const members[] = {"against", "error", "tolerance", "output",
                                          "at",      "got",   "wanted",    "may_overflow"};
    hwnas_verified v = {.against = "ref",
                        .error = INFINITY,
                        .tolerance = 1e-4,
                        .output = "y",
                        .at = 3,
                        .got = NAN,
                        .wanted = 2},
                   back;
    json_t *object = hwnas_wire_verified(&v);
    assert_true(hwnas_wire_read_verified(&back, object));
    assert_true(isinf(back.error) && isnan(back.got) && back.wanted == 2 && back.at == 3);
    for (size_t i = 0; i < COUNT(members); i++) {
        json_t *half = json_copy(object);
        json_object_del(half, members[i]);
        assert_false(hwnas_wire_read_verified(&back, half));
        json_object_set_new(half, members[i], json_array());
        assert_false(hwnas_wire_read_verified(&back, half));
        json_decref(half);
    }
    json_decref(object);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(rounding_is_judged_by_the_precision),
        cmocka_unit_test(networks_that_let_errors_grow_get_their_due),
        cmocka_unit_test(what_f16_has_no_room_for_is_not_compared),
        cmocka_unit_test(references_agree),
        cmocka_unit_test(a_value_that_is_none_is_the_networks),
        cmocka_unit_test(a_runner_verifies),
        cmocka_unit_test(the_wire_refuses_half_an_answer),
    };
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() != HWNAS_OK;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
