/* test_gpu_threads.c: a thread makes plans ahead while another compiles and runs networks on the
 * same device, a stand-in for a GPU. Built with ThreadSanitizer, and the device with it. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT, sched_getaffinity() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "device/helpers.h"
#include "tests/gpu/running.h"

typedef struct ahead {
    hwnas_device *device;
    pthread_barrier_t *begin;
    int n;
    hwnas_graph **graphs;
    hwnas_precision precision;
    int n_asked;
    int most; /* so often it goes on; 0: always */
} ahead;

static bool goes_on(void *context)
{
    ahead *a = context;
    a->n_asked++;
    return !a->most || a->n_asked <= a->most;
}

static void *prepare(void *context)
{
    ahead *a = context;
    const hwnas_exec_options options = {.precision = a->precision};
    pthread_barrier_wait(a->begin);
    for (int i = 0; i < a->n; i++)
        hwnas_device_prepare(a->device, a->graphs[i], &options, goes_on, a);
    return NULL;
}

/* Both at once, the same networks; results are those of `ref`. */
static void run_beside(const char *argument, hwnas_precision precision, double tolerance)
{
    const hwnas_exec_options options = {.precision = precision};
    hwnas_graph *graphs[] = {image_net(1), text_net(1), image_net(2), text_net(3), image_net(4)};
    pthread_barrier_t begin;
    pthread_t thread;
    pthread_barrier_init(&begin, NULL, 2);
    ahead a = {.device = open_gpu_as(argument),
               .begin = &begin,
               .n = COUNT(graphs),
               .graphs = graphs,
               .precision = precision};
    assert_int_equal(pthread_create(&thread, NULL, prepare, &a), 0);
    pthread_barrier_wait(&begin);
    for (size_t i = 0; i < COUNT(graphs); i++) {
        buffers b = new_buffers(graphs[i], 0), wanted = new_buffers(graphs[i], 0);
        hwnas_exec *exec = NULL;
        run_ref(graphs[i], &wanted);
        ok(hwnas_device_compile(&exec, a.device, graphs[i], &options));
        ok(exec->ops->run(exec, (const float *const *)b.inputs, b.outputs));
        compare(graphs[i]->name, graphs[i], b.outputs, wanted.outputs, tolerance);
        hwnas_exec_free(exec);
        free_buffers(&b);
        free_buffers(&wanted);
    }
    pthread_join(thread, NULL);
    assert_true(a.n_asked > 0);
    hwnas_device_close(a.device);
    pthread_barrier_destroy(&begin);
    for (size_t i = 0; i < COUNT(graphs); i++)
        hwnas_graph_free(graphs[i]);
    nothing_is_left();
}

static void plans_are_made_beside(void **state)
{
    (void)state;
    run_beside("0:quick", HWNAS_F32, 1e-5);
    run_beside("0:quick", HWNAS_F16, 1e-2);
}

/* They are found to fail by the thread that runs them, while the other may look at them. */
static void plans_are_refused_beside(void **state)
{
    (void)state;
    setenv("FAKE_CUDNN_FAULT", "run", 1);
    run_beside("0:quick", HWNAS_F32, 1e-5);
    unsetenv("FAKE_CUDNN_FAULT");
}

static int *counted(const char *name)
{
    return dlsym(dlopen("libcudnn.so.9", RTLD_NOW), name);
}

static int n_compiled(void)
{
    return *counted("fake_cudnn_compiled");
}

/* What was prepared is not made again, and what was left is made in its turn. */
static void what_is_prepared_is_there(void **state)
{
    (void)state;
    setenv("FAKE_CUDNN_COMPILES", "1", 1);
    const hwnas_exec_options options = {.precision = HWNAS_F32}, bytes = {.precision = HWNAS_S8};
    hwnas_graph *graph = image_net(1);
    int n_all = 0;
    for (int most = 0; most < 4; most += 3) {
        ahead a = {.device = open_gpu_as("0:quick"), .most = most};
        hwnas_exec *exec = NULL;
        const int before = n_compiled();
        hwnas_device_prepare(a.device, graph, &bytes, goes_on, &a);
        assert_int_equal(a.n_asked, 0); /* ranges come from runs */
        hwnas_device_prepare(a.device, graph, &options, goes_on, &a);
        const int prepared = n_compiled();
        ok(hwnas_device_compile(&exec, a.device, graph, &options));
        if (most) {
            assert_int_equal(a.n_asked, most + 1);
            assert_true(prepared - before < n_all);
            assert_int_equal(n_compiled() - before, n_all);
        } else {
            n_all = prepared - before;
            assert_true(n_all > 2);
            assert_int_equal(n_compiled(), prepared);
        }
        hwnas_exec_free(exec);
        hwnas_device_close(a.device);
    }
    hwnas_graph_free(graph);
    unsetenv("FAKE_CUDNN_COMPILES");
    nothing_is_left();
}

/* A plan that cannot be made beside a network that runs is made in its turn, and the same one. */
static void what_is_refused_ahead_is_not_refused(void **state)
{
    (void)state;
    setenv("FAKE_CUDNN_COMPILES", "1", 1);
    const hwnas_exec_options options = {.precision = HWNAS_F32};
    hwnas_graph *graph = image_net(1);
    int n_all = 0;
    for (int is_full = 0; is_full < 2; is_full++) {
        pthread_barrier_t begin;
        pthread_t thread;
        hwnas_exec *exec = NULL;
        pthread_barrier_init(&begin, NULL, 2);
        ahead a = {.device = open_gpu_as("0:quick"),
                   .begin = &begin,
                   .n = is_full,
                   .graphs = &graph,
                   .precision = HWNAS_F32};
        if (is_full)
            setenv("FAKE_CUDNN_FAULT", "full", 1);
        assert_int_equal(pthread_create(&thread, NULL, prepare, &a), 0);
        pthread_barrier_wait(&begin);
        pthread_join(thread, NULL);
        assert_int_equal(a.n_asked > 0, is_full);
        unsetenv("FAKE_CUDNN_FAULT");
        const int before = n_compiled();
        ok(hwnas_device_compile(&exec, a.device, graph, &options));
        if (is_full)
            assert_int_equal(n_compiled() - before, n_all);
        else
            n_all = n_compiled() - before;
        assert_true(n_all > 2);
        hwnas_exec_free(exec);
        hwnas_device_close(a.device);
        pthread_barrier_destroy(&begin);
    }
    hwnas_graph_free(graph);
    unsetenv("FAKE_CUDNN_COMPILES");
    nothing_is_left();
}

static int none(int *cores, int most)
{
    (void)cores;
    (void)most;
    return 0;
}

/* Without quick plans those of one network are made by as many threads as there are cores, each
 * once, and the results are the same. */
static int all_cores(int *cores, int most)
{
    cpu_set_t set;
    int n = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE && n < most; i++)
        if (CPU_ISSET((size_t)i, &set))
            cores[n++] = i;
    return n;
}

static void plans_of_a_network_are_made_at_once(void **state)
{
    (void)state;
    int n_made[2];
    for (int i = 0; i < 2; i++) {
        hwnas_helpers_set_room(i ? all_cores : none);
        hwnas_graph *graph = image_net(2);
        const hwnas_exec_options options = {.precision = HWNAS_F32};
        hwnas_device *device = open_gpu_as("0");
        hwnas_exec *exec = NULL;
        buffers b = new_buffers(graph, 0), wanted = new_buffers(graph, 0);
        const int before = n_compiled();
        *counted("fake_cudnn_most_at_once") = 0;
        setenv("FAKE_CUDNN_COMPILES", "1", 1);
        setenv("FAKE_CUDNN_SECONDS", "0.3", 1);
        run_ref(graph, &wanted);
        ok(hwnas_device_compile(&exec, device, graph, &options));
        unsetenv("FAKE_CUDNN_SECONDS");
        n_made[i] = n_compiled() - before;
        assert_int_equal(*counted("fake_cudnn_most_at_once") > 1, i && hwnas_device_cores() > 1);
        ok(exec->ops->run(exec, (const float *const *)b.inputs, b.outputs));
        compare(graph->name, graph, b.outputs, wanted.outputs, 1e-5);
        unsetenv("FAKE_CUDNN_COMPILES");
        hwnas_exec_free(exec);
        free_buffers(&b);
        free_buffers(&wanted);
        hwnas_device_close(device);
        hwnas_graph_free(graph);
        nothing_is_left();
    }
    hwnas_helpers_set_room(NULL);
    assert_true(n_made[0] > 2);
    assert_int_equal(n_made[1], n_made[0]);
}

static int forget_plans(void **state)
{
    (void)state;
    return setenv("HWNAS_PLANS", "", 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    begin_with_the_fake(argv);
    find_fake();
    set_fault(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_made_beside),
        cmocka_unit_test(plans_are_refused_beside),
        cmocka_unit_test(what_is_prepared_is_there),
        cmocka_unit_test(what_is_refused_ahead_is_not_refused),
        cmocka_unit_test(plans_of_a_network_are_made_at_once),
    };
    return cmocka_run_group_tests(tests, forget_plans, NULL);
}
