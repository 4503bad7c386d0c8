/* test_gpu.c: what runs on a GPU, on a stand-in for one (tests/gpu/fake_gpu.c) and with kernels of
 * ours alone: whole networks against `ref`, the memory that they take and give back, and everything
 * that can go wrong. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cudnn/driver.h"
#include "tests/gpu/running.h"

static hwnas_device *open_gpu(void)
{
    return open_gpu_as("0:own");
}

static void every_operator(void **state)
{
    (void)state;
    set_fault(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of(&cases[i]);
        run_on_both(cases[i].op, "0:own", graph, cases[i].range, HWNAS_F32, 1e-5);
        hwnas_graph_free(graph);
    }
}

static void whole_networks(void **state)
{
    (void)state;
    static const struct {
        hwnas_precision precision;
        double tolerance;
    } rows[] = {{HWNAS_F32, 1e-5}, {HWNAS_F16, 1e-2}, {HWNAS_BF16, 5e-2}};
    set_fault(NULL);
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int batch = 1; batch <= 3; batch += 2) {
            hwnas_graph *nets[] = {image_net(batch), text_net(batch)};
            for (int k = 0; k < 2; k++) {
                run_on_both(nets[k]->name, "0:own", nets[k], 0, rows[i].precision,
                            rows[i].tolerance);
                hwnas_graph_free(nets[k]);
            }
        }
}

/* A measurement has real-time priority, so waiting must not keep a core. */
static void who_waits_for_the_gpu_sleeps(void **state)
{
    (void)state;
    unsigned *flags = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fake_gpu_flags");
    assert_non_null(flags);
    *flags = 0;
    hwnas_device_close(open_gpu());
    assert_int_equal(*flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
}

/* ---- Time, energy, heat ---- */

static void runs_are_replayed_and_timed(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    hwnas_device *gpu = open_gpu();
    hwnas_exec *exec = NULL;
    hwnas_device_info info;
    hwnas_device_state how;
    buffers b = new_buffers(graph, 0);
    double seconds = 0;
    set_fault(NULL);
    ok(hwnas_device_compile(&exec, gpu, graph, NULL));
    ok(exec->ops->run(exec, (const float *const *)b.inputs, b.outputs));
    const int before = n_replays();
    const double joules = exec->ops->joules(exec);
    ok(exec->ops->time(exec, 5, &seconds));
    assert_int_equal(n_replays() - before, 6); /* one goes before those that are timed */
    assert_true(seconds > 0);
    assert_true(exec->ops->joules(exec) >= joules);
    exec->ops->state(exec, &how);
    assert_true(how.is_recorded && how.throttles == 0 && how.hertz > 0);
    setenv("FAKE_GPU_SLOWED", "1", 1);
    exec->ops->state(exec, &how);
    assert_int_equal(how.throttles, HWNAS_THROTTLE_HEAT);
    unsetenv("FAKE_GPU_SLOWED");
    gpu->ops->describe(gpu, &info);
    assert_string_equal(info.isa, "sm_90");
    assert_true(info.has_energy);
    free_buffers(&b);
    hwnas_exec_free(exec);
    hwnas_device_close(gpu);
    hwnas_graph_free(graph);
}

/* ---- What goes wrong ---- */

/* Each allocation fails once; all that was taken is given back, and the next network runs. */
static void memory_runs_out(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    int n_failed = 0;
    for (hwnas_status status = HWNAS_E_MEMORY; status != HWNAS_OK; n_failed++) {
        char fault[32];
        hwnas_device *gpu = open_gpu();
        hwnas_exec *exec = NULL;
        snprintf(fault, sizeof fault, "memory:%d", n_failed + 1);
        set_fault(fault);
        status = hwnas_device_compile(&exec, gpu, graph, NULL);
        assert_true(status == HWNAS_OK || status == HWNAS_E_MEMORY);
        if (status != HWNAS_OK)
            assert_non_null(strstr(hwnas_last_error()->message, "MiB"));
        hwnas_exec_free(exec);
        hwnas_device_close(gpu);
        nothing_is_left();
    }
    assert_in_range(n_failed, 4,
                    7); /* the last of them was none: weights, activations, inputs, outputs */
    set_fault(NULL);
    run_on_both("after it", "0:own", graph, 0, HWNAS_F32, 1e-5);
    hwnas_graph_free(graph);
}

static void the_gpu_is_lost(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    for (int at = 1; at < 60; at += 7) {
        char fault[32];
        hwnas_device *gpu = open_gpu();
        hwnas_exec *exec = NULL;
        buffers b = new_buffers(graph, 0);
        hwnas_status status;
        double seconds;
        snprintf(fault, sizeof fault, "lost:%d", at);
        set_fault(fault);
        status = hwnas_device_compile(&exec, gpu, graph, NULL);
        for (int i = 0; i < 4 && status == HWNAS_OK; i++)
            status = exec->ops->run(exec, (const float *const *)b.inputs, b.outputs);
        assert_int_equal(status, HWNAS_E_CRASHED);
        assert_non_null(strstr(hwnas_last_error()->message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        if (exec)
            assert_int_equal(exec->ops->time(exec, 1, &seconds), HWNAS_E_CRASHED);
        hwnas_exec_free(exec);
        hwnas_device_close(gpu);
        nothing_is_left();
        free_buffers(&b);
    }
    set_fault(NULL);
    hwnas_graph_free(graph);
}

/* What was recorded until then is given back. */
static void the_gpu_is_lost_while_a_run_is_recorded(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    for (int at = 1; at < 10; at += 4) {
        char fault[32];
        hwnas_device *gpu = open_gpu();
        hwnas_exec *exec = NULL;
        snprintf(fault, sizeof fault, "unrecorded:%d", at);
        set_fault(fault);
        assert_int_equal(hwnas_device_compile(&exec, gpu, graph, NULL), HWNAS_E_CRASHED);
        assert_non_null(strstr(hwnas_last_error()->message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        hwnas_device_close(gpu);
        nothing_is_left();
    }
    set_fault(NULL);
    hwnas_graph_free(graph);
}

/* After these nothing works until the process is another one, as cuda.h has it. */
static void errors_that_stay(void **state)
{
    (void)state;
    static const int lost[] = {226, 700, 702, 714, 715, 716, 717, 718, 719, 721, 810, 911};
    const hwnas_cuda_api *api;
    ok(hwnas_cuda_open(&api));
    for (size_t i = 0; i < COUNT(lost); i++)
        assert_int_equal(hwnas_cuda_status(api, (CUresult)lost[i], "run", "it"), HWNAS_E_CRASHED);
    assert_int_equal(hwnas_cuda_status(api, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "run", "it"),
                     HWNAS_E_LIBRARY);
}

/* Steps are enqueued one by one then. */
static void a_run_cannot_be_recorded(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    set_fault("record");
    const int before = n_replays();
    run_on_both("not recorded", "0:own", graph, 0, HWNAS_F32, 1e-5);
    assert_int_equal(n_replays(), before);
    set_fault(NULL);
    hwnas_graph_free(graph);
}

static void kernels_are_for_another_gpu(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    hwnas_device *gpu = open_gpu();
    hwnas_exec *exec = NULL;
    set_fault("old");
    assert_int_equal(hwnas_device_compile(&exec, gpu, graph, NULL), HWNAS_E_LIBRARY);
    assert_non_null(strstr(hwnas_last_error()->message, "NO_BINARY"));
    set_fault(NULL);
    hwnas_device_close(gpu);
    nothing_is_left();
    hwnas_graph_free(graph);
}

/* Kernels that this process has not made yet; nothing is kept on disk. */
static hwnas_status make_image(const hwnas_image **out, const char *fault)
{
    static int n_made;
    const char *plans = getenv("HWNAS_PLANS");
    char *before = plans ? hwnas_strdup(plans) : NULL;
    char *options = hwnas_printf("-DWANT_hwnas_reduce=,\n-DNUMBER=%d", n_made++);
    setenv("HWNAS_PLANS", "", 1);
    set_fault(fault);
    const hwnas_status status = hwnas_image_make(out, "hwnas_reduce", "lines", options, 90);
    set_fault(NULL);
    if (before)
        setenv("HWNAS_PLANS", before, 1);
    else
        unsetenv("HWNAS_PLANS");
    free(options);
    free(before);
    return status;
}

/* Of PTX for an older one the driver makes what it needs. */
static void the_gpu_is_newer_than_nvrtc(void **state)
{
    (void)state;
    const hwnas_image *image = NULL;
    ok(make_image(&image, NULL));
    assert_string_equal(image->bytes, "fake sm_90 hwnas_reduce");
    ok(make_image(&image, "newer"));
    assert_string_equal(image->bytes, "fake compute_80 hwnas_reduce");
    assert_int_equal(image->n_bytes, sizeof "fake compute_80 hwnas_reduce");
}

static void nvrtc_gives_no_image(void **state)
{
    (void)state;
    const hwnas_image *image = NULL;
    assert_int_equal(make_image(&image, "unmade"), HWNAS_E_LIBRARY);
    assert_non_null(strstr(hwnas_last_error()->message, "internal error"));
    assert_null(image);
}

/* Two networks at once on one GPU. */
static void networks_do_not_disturb_each_other(void **state)
{
    (void)state;
    set_fault(NULL);
    hwnas_graph *graphs[] = {image_net(1), text_net(2)};
    hwnas_device *gpu = open_gpu();
    hwnas_exec *execs[2] = {NULL};
    buffers b[2], wanted[2];
    for (int i = 0; i < 2; i++) {
        b[i] = new_buffers(graphs[i], 0);
        wanted[i] = new_buffers(graphs[i], 0);
        run_ref(graphs[i], &wanted[i]);
        ok(hwnas_device_compile(&execs[i], gpu, graphs[i], NULL));
    }
    for (int i = 0; i < 4; i++) {
        const int k = i % 2;
        ok(execs[k]->ops->run(execs[k], (const float *const *)b[k].inputs, b[k].outputs));
        compare(graphs[k]->name, graphs[k], b[k].outputs, wanted[k].outputs, 1e-5);
    }
    for (int i = 0; i < 2; i++) {
        hwnas_exec_free(execs[i]);
        free_buffers(&b[i]);
        free_buffers(&wanted[i]);
        hwnas_graph_free(graphs[i]);
    }
    hwnas_device_close(gpu);
    nothing_is_left();
}

static void spellings(void **state)
{
    (void)state;
    static const struct {
        const char *argument;
        hwnas_status status;
    } rows[] = {{"", HWNAS_OK},           {"0:own", HWNAS_OK},        {"0:own:tune", HWNAS_OK},
                {"1:own", HWNAS_E_NOT_FOUND}, {"x", HWNAS_E_INPUT},   {"0:", HWNAS_E_INPUT},
                {"0:fast", HWNAS_E_INPUT},    {"-1", HWNAS_E_INPUT},  {"0own", HWNAS_E_INPUT}};
    const hwnas_device_options options = {.threads = 1};
    for (size_t i = 1; i < COUNT(rows); i++) { /* the first wants cuDNN */
        hwnas_device *device = NULL;
        assert_int_equal(hwnas_cuda_ops.open(&device, rows[i].argument, &options), rows[i].status);
        if (device)
            hwnas_cuda_ops.close(device);
    }
}

int main(int argc, char **argv)
{
    begin_with_the_fake(argv);
    find_fake();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),
        cmocka_unit_test(every_operator),
        cmocka_unit_test(whole_networks),
        cmocka_unit_test(who_waits_for_the_gpu_sleeps),
        cmocka_unit_test(runs_are_replayed_and_timed),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(the_gpu_is_lost),
        cmocka_unit_test(the_gpu_is_lost_while_a_run_is_recorded),
        cmocka_unit_test(errors_that_stay),
        cmocka_unit_test(a_run_cannot_be_recorded),
        cmocka_unit_test(kernels_are_for_another_gpu),
        cmocka_unit_test(the_gpu_is_newer_than_nvrtc),
        cmocka_unit_test(nvrtc_gives_no_image),
        cmocka_unit_test(networks_do_not_disturb_each_other),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
