/* test_steady.c: a run of an executable takes no memory. This program's malloc() counts the calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "graph/elaborate.h"

#if defined(__GLIBC__) && !defined(HWNAS_SANITIZED)
#define COUNTS 1
#endif

enum { LARGE = 4096 }; /* bytes: a buffer of values, not the list of a call's arguments */

static bool is_counting;
static size_t n_ours, n_large, n_small;

#ifdef COUNTS
extern char __executable_start[], etext[];
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

/* The library under test is part of this program, oneDNN is not. */
static void count(size_t size, const void *caller)
{
    if (!is_counting)
        return;
    const char *at = caller;
    n_ours += at >= __executable_start && at < etext;
    *(size >= LARGE ? &n_large : &n_small) += 1;
}

void *malloc(size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(n * size, __builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    count(size, __builtin_return_address(0));
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
#endif

static void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s: %s", hwnas_status_name(status), hwnas_last_error()->message);
}

static hwnas_graph *load(const char *name)
{
    hwnas_space *space;
    hwnas_arch *arch;
    hwnas_graph *graph, *folded;
    ok(hwnas_graph_load_space(&space, name));
    ok(hwnas_arch_parse(&arch, space, ""));
    ok(hwnas_graph_build(&graph, arch, 1));
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return folded;
}

/* 100 runs, of which the first two do not count. */
static void run_often(hwnas_exec *exec, const hwnas_graph *graph)
{
    float *inputs[4], *outputs[16];
    assert_true(graph->n_inputs <= 4 && graph->n_outputs <= 16);
    for (size_t i = 0; i < graph->n_inputs; i++)
        inputs[i] = hwnas_alloc((size_t)hwnas_tensor_bytes(&graph->tensors[graph->inputs[i]]));
    for (size_t i = 0; i < graph->n_outputs; i++)
        outputs[i] = hwnas_alloc((size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]));
    n_ours = n_large = n_small = 0;
    for (int i = 0; i < 102; i++) {
        is_counting = i >= 2;
        const hwnas_status status = exec->ops->run(exec, (const float *const *)inputs, outputs);
        is_counting = false;
        ok(status);
    }
    for (size_t i = 0; i < graph->n_inputs; i++)
        free(inputs[i]);
    for (size_t i = 0; i < graph->n_outputs; i++)
        free(outputs[i]);
}

/* oneDNN makes a table of a primitive's arguments whenever it runs one: small pieces, which the
 * allocator has at hand. Buffers it must not take, and we nothing. */
static void test_a_run_takes_no_memory(void **state)
{
    static const char *const networks[] = {"mnist_mlp",           "mnist_cnn",     "resnet32_cifar",
                                           "mobilenet_v3_large",  "imdb_fasttext", "imdb_bilstm",
                                           "lstm_text_generation"};
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    (void)state;
#ifndef COUNTS
    skip();
#endif
    ok(hwnas_device_open(&device, "cpu", &options));
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        hwnas_graph *graph = load(networks[i]);
        hwnas_exec *exec;
        const hwnas_exec_step *steps;
        ok(hwnas_device_compile(&exec, device, graph, NULL));
        run_often(exec, graph);
        print_message("# %s: %.1f small pieces in a step\n", networks[i],
                      (double)n_small / 100 / (double)exec->ops->steps(exec, &steps));
        assert_int_equal(n_ours, 0);
        assert_int_equal(n_large, 0);
        hwnas_exec_free(exec);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(device);
}

/* What an executable holds is its weights and what is live at one time. */
static void test_memory_is_weights_and_activations(void **state)
{
    static const char *const networks[] = {"resnet32_cifar", "mobilenet_v2", "efficientnet_b0",
                                           "mnist_cnn"};
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    (void)state;
    ok(hwnas_device_open(&device, "cpu", &options));
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        hwnas_graph *graph = load(networks[i]);
        hwnas_exec *exec;
        hwnas_costs costs;
        hwnas_graph_costs(&costs, graph);
        ok(hwnas_device_compile(&exec, device, graph, NULL));
        const double ratio = (double)exec->ops->memory(exec) / (double)costs.peak_bytes;
        print_message("# %s: %.3f of weights and peak of activations\n", networks[i], ratio);
        assert_true(ratio < 1.10);
        hwnas_exec_free(exec);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_takes_no_memory),
        cmocka_unit_test(test_memory_is_weights_and_activations),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("steady", tests, NULL, NULL);
}
