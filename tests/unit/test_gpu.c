/* test_gpu.c: what runs on a GPU, on a stand-in for one (tests/gpu/fake_gpu.c) and with kernels of
 * ours alone: whole networks against `ref`, the memory that they take and give back, and everything
 * that can go wrong. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "device/cudnn/cuda_device.h"
#include "device/device.h"
#include "graph/elaborate.h"
#include "tests/gpu/cases.h"

/* ---- The stand-in's own functions ---- */

static void (*fake_reset)(void);
static void (*fake_count)(int *live, int *broken, int *replays);

static void find_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(library);
    *(void **)&fake_reset = dlsym(library, "fake_gpu_reset");
    *(void **)&fake_count = dlsym(library, "fake_gpu_count");
    assert_true(fake_reset && fake_count); /* else a real driver was found */
}

static int n_replays(void)
{
    int live, broken, replays;
    fake_count(&live, &broken, &replays);
    return replays;
}

static void nothing_is_left(void)
{
    int live, broken, replays;
    fake_count(&live, &broken, &replays);
    assert_int_equal(live, 0);
    assert_int_equal(broken, 0);
}

static void set_fault(const char *fault)
{
    fake_reset();
    if (fault)
        setenv("FAKE_GPU_FAULT", fault, 1);
    else
        unsetenv("FAKE_GPU_FAULT");
}

/* ---- Running ---- */

static hwnas_device *open_gpu(void)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device = NULL;
    ok(hwnas_cuda_ops.open(&device, "0:own", &options));
    device->ops = &hwnas_cuda_ops;
    return device;
}

typedef struct buffers {
    float *inputs[16], *outputs[16];
} buffers;

static buffers new_buffers(const hwnas_graph *graph, double range)
{
    buffers b = {{NULL}, {NULL}};
    hwnas_rng rng = hwnas_rng_new(3, 14);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *t = &graph->tensors[graph->inputs[i]];
        const int64_t n = hwnas_tensor_count(t),
                      below = hwnas_graph_input_below(graph, graph->inputs[i]);
        b.inputs[i] = hwnas_alloc((size_t)n * sizeof(float));
        for (int64_t k = 0; k < n; k++) {
            const double u = hwnas_rng_double(&rng);
            b.inputs[i][k] = (float)(below ? floor(u * (double)below)
                                     : range < 0 ? -range * (u + 0.02)
                                                 : (range > 0 ? range : 1) * (2 * u - 1));
        }
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        b.outputs[i] = hwnas_alloc((size_t)hwnas_tensor_count(&graph->tensors[graph->outputs[i]]) *
                                   sizeof(float));
    return b;
}

static void free_buffers(buffers *b)
{
    for (int i = 0; i < 16; i++) {
        free(b->inputs[i]);
        free(b->outputs[i]);
    }
}

static void run_ref(const hwnas_graph *graph, buffers *b)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *ref = NULL;
    hwnas_exec *exec = NULL;
    ok(hwnas_device_open(&ref, "ref", &options));
    ok(hwnas_device_compile(&exec, ref, graph, NULL));
    ok(exec->ops->run(exec, (const float *const *)b->inputs, b->outputs));
    hwnas_exec_free(exec);
    hwnas_device_close(ref);
}

static void compare(const char *what, const hwnas_graph *graph, float *const *got,
                    float *const *wanted, double tolerance)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        double worst = 0, scale = 0;
        const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
        for (int64_t k = 0; k < n; k++) {
            const double error = fabs((double)got[i][k] - wanted[i][k]);
            if (isnan(wanted[i][k]) ? isnan(got[i][k]) : got[i][k] == wanted[i][k])
                continue;
            worst = error <= worst ? worst : error;
            scale = fmax(scale, fabs((double)wanted[i][k]));
        }
        if (!(worst <= tolerance * (scale > 0 ? scale : 1)))
            fail_msg("%s: output %zu has a relative error of %g", what, i, worst / scale);
    }
}

/* Every node is in one step, every step took some time. */
static void check_steps(hwnas_exec *exec, const hwnas_graph *graph, buffers *b)
{
    const hwnas_exec_step *steps;
    const size_t n = exec->ops->steps(exec, &steps);
    double *seconds = hwnas_alloc((n + 1) * sizeof *seconds);
    int *seen = hwnas_alloc((graph->n_nodes + 1) * sizeof *seen);
    ok(exec->ops->run_steps(exec, (const float *const *)b->inputs, b->outputs, seconds));
    for (size_t i = 0; i < n; i++) {
        assert_true(seconds[i] >= 0);
        assert_non_null(steps[i].how);
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            seen[steps[i].nodes[k]]++;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        assert_true(seen[i] <= 1);
    free(seen);
    free(seconds);
}

static void run_on_both(const char *what, const hwnas_graph *graph, double range,
                        hwnas_precision precision, double tolerance)
{
    const hwnas_exec_options options = {.precision = precision};
    hwnas_device *gpu = open_gpu();
    hwnas_exec *exec = NULL;
    buffers b = new_buffers(graph, range), wanted = new_buffers(graph, range);
    run_ref(graph, &wanted);
    ok(hwnas_device_compile(&exec, gpu, graph, &options));
    assert_true(exec->ops->memory(exec) > 0);
    for (int i = 0; i < 2; i++) { /* the second run must not see what the first left */
        for (size_t k = 0; k < graph->n_outputs; k++)
            b.outputs[k][0] = 12345;
        ok(exec->ops->run(exec, (const float *const *)b.inputs, b.outputs));
        compare(what, graph, b.outputs, wanted.outputs, tolerance);
    }
    check_steps(exec, graph, &b);
    compare(what, graph, b.outputs, wanted.outputs, tolerance);
    free_buffers(&b);
    free_buffers(&wanted);
    hwnas_exec_free(exec);
    hwnas_device_close(gpu);
    nothing_is_left();
}

static void every_operator(void **state)
{
    (void)state;
    set_fault(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of(&cases[i]);
        run_on_both(cases[i].op, graph, cases[i].range, HWNAS_F32, 1e-5);
        hwnas_graph_free(graph);
    }
}

/* ---- Networks ---- */

static int add(hwnas_graph *graph, const char *op_name, const char *attrs_text, int a, int b)
{
    const hwnas_op *op = hwnas_op_by_name(op_name);
    const int inputs[] = {a, b};
    char name[64];
    int out = -1;
    hwnas_attr *attrs = attributes(op, attrs_text);
    snprintf(name, sizeof name, "%s_%zu", op_name, graph->n_nodes);
    ok(hwnas_graph_add_node(&out, graph, op, name, attrs, b < 0 ? 1 : 2, inputs, true));
    free(attrs);
    return out;
}

/* An inverted residual with a gate, a concatenation, a head, and a second output. */
static hwnas_graph *image_net(int batch)
{
    hwnas_graph *graph = hwnas_graph_new("image_net", 9), *folded = NULL;
    int in, x, y, gate;
    ok(hwnas_graph_add_input(&in, graph, "x", HWNAS_FLOAT32, 4, (int64_t[]){batch, 3, 16, 16}));
    x = add(graph, "relu", "", add(graph, "conv", "out=16 kernel=3 stride=2 pad=1", in, -1), -1);
    y = add(graph, "conv", "out=48 kernel=1", x, -1);
    y = add(graph, "hard_swish", "", add(graph, "batch_norm", "", y, -1), -1);
    y = add(graph, "conv", "out=48 kernel=3 pad=1 groups=48", y, -1);
    gate = add(graph, "conv", "out=48 kernel=1", add(graph, "global_avg_pool", "", y, -1), -1);
    y = add(graph, "mul", "", y, add(graph, "sigmoid", "", gate, -1));
    x = add(graph, "add", "", add(graph, "conv", "out=16 kernel=1", y, -1), x);
    x = add(graph, "concat", "", add(graph, "max_pool", "kernel=2 stride=2", x, -1),
            add(graph, "avg_pool", "kernel=2 stride=2", x, -1));
    hwnas_graph_add_output(graph, x);
    x = add(graph, "flatten", "", add(graph, "global_avg_pool", "", x, -1), -1);
    hwnas_graph_add_output(graph,
                           add(graph, "softmax", "", add(graph, "linear", "out=10", x, -1), -1));
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    return folded;
}

/* Words, one attention head, a recurrent layer. */
static hwnas_graph *text_net(int batch)
{
    hwnas_graph *graph = hwnas_graph_new("text_net", 9);
    int in, x, y;
    ok(hwnas_graph_add_input(&in, graph, "x", HWNAS_INT64, 2, (int64_t[]){batch, 6}));
    x = add(graph, "embedding", "entries=40 out=16", in, -1);
    y = add(graph, "layer_norm", "", x, -1);
    y = add(graph, "matmul", "",
            add(graph, "softmax", "",
                add(graph, "matmul", "", y, add(graph, "transpose", "order=0,2,1", y, -1)), -1),
            y);
    x = add(graph, "gelu", "", add(graph, "add", "", x, y), -1);
    x = add(graph, "lstm", "out=8 bidirectional=1 last=1", x, -1);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=3", x, -1));
    return graph;
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
                run_on_both(nets[k]->name, nets[k], 0, rows[i].precision, rows[i].tolerance);
                hwnas_graph_free(nets[k]);
            }
        }
}

/* ---- Time, energy, heat ---- */

static void runs_are_replayed_and_timed(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    hwnas_device *gpu = open_gpu();
    hwnas_exec *exec = NULL;
    hwnas_device_info info;
    buffers b = new_buffers(graph, 0);
    double seconds = 0;
    set_fault(NULL);
    ok(hwnas_device_compile(&exec, gpu, graph, NULL));
    ok(exec->ops->run(exec, (const float *const *)b.inputs, b.outputs));
    const int before = n_replays();
    const double joules = exec->ops->joules(exec);
    ok(exec->ops->time(exec, 5, &seconds));
    assert_int_equal(n_replays() - before, 5);
    assert_true(seconds > 0);
    assert_true(exec->ops->joules(exec) > joules);
    assert_null(exec->ops->slowed(exec));
    setenv("FAKE_GPU_SLOWED", "1", 1);
    assert_non_null(exec->ops->slowed(exec));
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
    run_on_both("after it", graph, 0, HWNAS_F32, 1e-5);
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

/* Steps are enqueued one by one then. */
static void a_run_cannot_be_recorded(void **state)
{
    (void)state;
    hwnas_graph *graph = image_net(1);
    set_fault("record");
    const int before = n_replays();
    run_on_both("not recorded", graph, 0, HWNAS_F32, 1e-5);
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

/* Libraries are looked for in LD_LIBRARY_PATH as it was when the program began. */
static void begin_with_the_fake(char **argv)
{
    if (getenv("FAKE_GPU_DIRECTORY"))
        return;
    const char *build = getenv("HWNAS_FAKE_GPU");
    setenv("FAKE_GPU_DIRECTORY", build ? build : "tests/gpu/fake", 1);
    setenv("LD_LIBRARY_PATH", getenv("FAKE_GPU_DIRECTORY"), 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    begin_with_the_fake(argv);
    find_fake();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),
        cmocka_unit_test(every_operator),
        cmocka_unit_test(whole_networks),
        cmocka_unit_test(runs_are_replayed_and_timed),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(the_gpu_is_lost),
        cmocka_unit_test(a_run_cannot_be_recorded),
        cmocka_unit_test(kernels_are_for_another_gpu),
        cmocka_unit_test(networks_do_not_disturb_each_other),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
