/* running.h: networks on the stand-in for a GPU, held to `ref`. */
#ifndef TEST_GPU_RUNNING_H
#define TEST_GPU_RUNNING_H

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

static inline int n_replays(void)
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

/* "0:own": by kernels of ours alone. */
static hwnas_device *open_gpu_as(const char *argument)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device = NULL;
    ok(hwnas_cuda_ops.open(&device, argument, &options));
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
            b.inputs[i][k] = (float)(below       ? floor(u * (double)below)
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

static inline void run_on_both(const char *what, const char *argument, const hwnas_graph *graph,
                               double range, hwnas_precision precision, double tolerance)
{
    const hwnas_exec_options options = {.precision = precision};
    hwnas_device *gpu = open_gpu_as(argument);
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
static inline hwnas_graph *text_net(int batch)
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

/* Libraries are looked for in LD_LIBRARY_PATH as it was when the program began. */
static void begin_with_the_fake(char **argv)
{
    if (getenv("FAKE_GPU_DIRECTORY"))
        return;
    const char *build = getenv("HWNAS_FAKE_GPU"), *directory = build ? build : "tests/gpu/fake";
    char *path = hwnas_printf("%s:%s/cudnn", directory, directory);
    setenv("FAKE_GPU_DIRECTORY", directory, 1);
    setenv("LD_LIBRARY_PATH", path, 1);
    execv("/proc/self/exe", argv);
}

#endif
