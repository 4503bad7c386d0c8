/* test_torch.c: the devices `torch` and `torch-cuda` with a stand-in for PyTorch: networks are
 * measured there by the common code, which a scripted machine shows. What PyTorch itself does is in
 * tests/cli/torch.bats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/torch/torch.h"
#include "measure/conclude.h"
#include "tests/unit/measure_fixture.h"

static struct {
    fake_machine *machine;
    size_t n_binds, n_frees;
    size_t bytes; /* of the ONNX file */
    char training[16], precision[8], losses[64];
    float *output;
    const char *isa;
    size_t n_timed;
    bool fails;
} standin;

static hwnas_status standin_open(const char *device, const char *argument, hwnas_device_info *info)
{
    if (strcmp(argument, "") != 0 && strcmp(argument, "0") != 0)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "no way '%s'", argument);
    snprintf(info->library, sizeof info->library, "a stand-in for %s, %d threads", device,
             info->threads);
    if (*argument)
        snprintf(info->isa, sizeof info->isa, "%s", standin.isa);
    return HWNAS_OK;
}

static hwnas_status standin_compile(int id, const void *onnx, size_t length, const char *training,
                                    const char *precision, const char *losses)
{
    (void)id, (void)onnx;
    standin.bytes = length;
    snprintf(standin.training, sizeof standin.training, "%s", training);
    snprintf(standin.precision, sizeof standin.precision, "%s", precision);
    snprintf(standin.losses, sizeof standin.losses, "%s", losses);
    return HWNAS_OK;
}

static hwnas_status standin_bind(int id, const float *const *inputs, float *const *outputs)
{
    (void)id, (void)inputs;
    standin.n_binds++;
    standin.output = outputs[0];
    return HWNAS_OK;
}

static hwnas_status standin_run(int id)
{
    fake_machine *m = standin.machine;
    (void)id;
    if (standin.fails)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "RuntimeError: no luck");
    standin.output[0] = 1;
    m->clock += m->script(m);
    m->n_runs++;
    return HWNAS_OK;
}

/* A GPU's clock: only a run that nobody times moves that of the host as well. */
static hwnas_status standin_time(int id, int runs, double *seconds)
{
    fake_machine *m = standin.machine;
    (void)id;
    *seconds = 0;
    for (int i = 0; i < runs; i++, m->n_runs++)
        *seconds += 2e-3;
    m->clock += 3 * *seconds;
    standin.n_timed += (size_t)runs;
    return HWNAS_OK;
}

static size_t standin_memory(int id)
{
    (void)id;
    return 12345;
}

static void standin_free(int id)
{
    (void)id;
    standin.n_frees++;
}

static const hwnas_torch_calls calls = {.open = standin_open,
                                        .compile = standin_compile,
                                        .bind = standin_bind,
                                        .run = standin_run,
                                        .time = standin_time,
                                        .memory = standin_memory,
                                        .free = standin_free};

static hwnas_device *open_by_name(const char *name, const char *isa)
{
    hwnas_device *device;
    memset(&standin, 0, sizeof standin);
    standin.isa = isa;
    hwnas_torch_use(&calls);
    assert_int_equal(
        hwnas_device_open(&device, name,
                          &(hwnas_device_options){.size = sizeof(hwnas_device_options), 3}),
        HWNAS_OK);
    return device;
}

static hwnas_device *open_torch(void)
{
    return open_by_name("torch", "");
}

static void test_without_pytorch(void **state)
{
    hwnas_device *device;
    (void)state;
    assert_true(hwnas_device_is_elsewhere("torch"));
    assert_true(hwnas_device_is_elsewhere("torch-cuda:0"));
    assert_int_equal(hwnas_device_open(&device, "torch", NULL), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "elsewhere"));
}

static void test_describe(void **state)
{
    hwnas_device_info info;
    hwnas_device *device = open_torch(), *other;
    (void)state;
    hwnas_device_describe(&info, device);
    assert_string_equal(info.library, "a stand-in for torch, 3 threads");
    assert_int_equal(info.threads, 3);
    assert_true(info.computes);
    hwnas_device_close(device);
    assert_int_equal(hwnas_device_open(&other, "torch:other", NULL), HWNAS_E_UNSUPPORTED);
    assert_string_equal(hwnas_last_error()->message, "no way 'other'");
}

/* The measurement of a script on `torch`, and that on a device of C, which is the same. */
static void compare_script(double (*script)(fake_machine *m))
{
    hwnas_measurement m;
    hwnas_exec *exec;
    hwnas_device *device = open_torch();
    hwnas_graph *graph = make_graph();
    fake_machine machine = make_machine(script);
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    standin.machine = &machine;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_OK);
    assert_int_equal(hwnas_measure_on(&m, exec, graph, &options, &machine.base), HWNAS_OK);
    const hwnas_measurement c = measure_script(script);
    assert_int_equal(m.stop, c.stop);
    assert_int_equal(m.n_samples, c.n_samples);
    assert_int_equal(m.n_disturbed, c.n_disturbed);
    assert_int_equal(m.is_unstable, c.is_unstable);
    assert_int_equal(m.memory_bytes, 12345);
    assert_near(m.p50, c.p50, 1e-12);
    assert_near(m.shared_share, c.shared_share, 1e-12);
    assert_int_equal(standin.n_binds, 1);
    hwnas_exec_free(exec);
    assert_int_equal(standin.n_frees, 1);
    hwnas_graph_free(graph);
    hwnas_device_close(device);
}

/* Every fourth run loses its core for long enough to count. */
static double preempted(fake_machine *m)
{
    const bool loses = m->n_runs % 4 == 3;
    m->preemptions += loses;
    m->waited += loses ? 1e-3 : 0;
    return loses ? 2e-3 : 1e-3;
}

/* A neighbour on the core, all the time. */
static double shared(fake_machine *m)
{
    m->is_shared = true;
    return 1e-3;
}

static void test_measured_as_all(void **state)
{
    (void)state;
    compare_script(constant);
    compare_script(noisy);
    compare_script(preempted);
    compare_script(shared);
    fake_machine machine = make_machine(preempted);
    assert_true(measure_on(&machine, (hwnas_measure_options)HWNAS_MEASURE_DEFAULTS).n_disturbed);
}

static void test_other_arrays(void **state)
{
    float given[2][256] = {{0}}, found[2][256] = {{0}};
    hwnas_exec *exec;
    hwnas_device *device = open_torch();
    hwnas_graph *graph = make_graph();
    fake_machine machine = make_machine(constant);
    (void)state;
    standin.machine = &machine;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_OK);
    for (int i = 0; i < 6; i++) {
        const float *in = given[i / 2 % 2];
        float *out = found[i / 3];
        assert_int_equal(hwnas_exec_run(exec, &in, &out), HWNAS_OK);
        assert_true(out[0] == 1);
    }
    assert_int_equal(standin.n_binds, 4); /* when either has changed */
    standin.fails = true;
    const float *in = given[0];
    float *out = found[1];
    assert_int_equal(hwnas_exec_run(exec, &in, &out), HWNAS_E_UNSUPPORTED);
    assert_string_equal(hwnas_last_error()->message, "RuntimeError: no luck");
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    hwnas_device_close(device);
}

static void test_training(void **state)
{
    hwnas_exec *exec;
    hwnas_device *device = open_torch();
    hwnas_graph *graph = make_graph();
    hwnas_exec_options options = {.precision = HWNAS_BF16};
    (void)state;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, &options), HWNAS_E_UNSUPPORTED);
    options.training = HWNAS_ADAMW;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, &options), HWNAS_OK);
    assert_true(standin.bytes > 0);
    assert_string_equal(standin.training, "adamw");
    assert_string_equal(standin.precision, "bf16");
    assert_string_equal(standin.losses, "squares");
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    hwnas_device_close(device);
}

static void test_gpu(void **state)
{
    const unsigned old = 1 << HWNAS_F32 | 1 << HWNAS_F16;
    hwnas_device_info info;
    hwnas_measurement m;
    hwnas_exec *exec;
    hwnas_device *device = open_by_name("torch-cuda:0", "sm_75");
    hwnas_graph *graph = make_graph();
    fake_machine machine = make_machine(constant);
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_exec_options how = {.precision = HWNAS_F16};
    (void)state;
    hwnas_device_describe(&info, device);
    assert_int_equal(info.native, old);
    assert_string_equal(info.library, "a stand-in for torch-cuda, 3 threads");
    hwnas_device_close(device);
    device = open_by_name("torch-cuda:0", "sm_80");
    hwnas_device_describe(&info, device);
    assert_int_equal(info.native, old | 1 << HWNAS_TF32 | 1 << HWNAS_BF16);
    standin.machine = &machine;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, &how), HWNAS_OK);
    assert_string_equal(standin.precision, "f16");
    assert_int_equal(hwnas_measure_on(&m, exec, graph, &options, &machine.base), HWNAS_OK);
    assert_near(m.p50, 2e-3, 1e-12);
    assert_true(isnan(m.energy)); /* the processor's is not the GPU's */
    assert_true(standin.n_timed >= m.n_samples);
    hwnas_exec_free(exec);
    how.training = HWNAS_SGD;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, &how), HWNAS_E_UNSUPPORTED);
    assert_string_equal(hwnas_last_error()->message,
                        "the device 'torch-cuda' does not train in f16");
    hwnas_graph_free(graph);
    hwnas_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_pytorch), /* first: later it is there */
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_measured_as_all),
        cmocka_unit_test(test_other_arrays),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
