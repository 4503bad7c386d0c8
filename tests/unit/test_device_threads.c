/* test_device_threads.c: with how many threads `cpu` runs a step, that no library takes more, and
 * that what they share comes out as `ref` has it. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/onednn/onednn_exec.h"
#include "device/onednn/threads.h"
#include "graph/elaborate.h"
#include "graph/op.h"
#include "tests/unit/device_fixture.h"

/* A network whose steps need microseconds and milliseconds. */
static hwnas_graph *small_and_large(void)
{
    hwnas_graph *graph = hwnas_graph_new("sizes", 1);
    const int64_t dims[] = {1, 8, 96, 96};
    int x = add(graph, "conv", "out=64 kernel=3 pad=1", add_input(graph, dims), -1);
    x = add(graph, "max_pool", "kernel=8 stride=8", x, -1);
    x = add(graph, "conv", "out=4 kernel=1", x, -1);
    hwnas_graph_add_output(graph, add(graph, "softmax", "", add(graph, "flatten", "", x, -1), -1));
    return graph;
}

static void small_steps_have_one_thread(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        int threads;
    } wanted[] = {{"conv", 3}, {"max_pool", 3}, {"conv", 1}, {"softmax", 1}};
    hwnas_graph *graph = small_and_large();
    hwnas_device *cpu = open_device("cpu", 3);
    hwnas_exec *exec = NULL;
    size_t n_seen = 0;
    ok(hwnas_device_compile(&exec, cpu, graph, NULL));
    const onednn_exec *made = (const onednn_exec *)exec;
    for (size_t i = 0; i < made->n_steps; i++) {
        const hwnas_onednn_step *s = &made->steps[i];
        const char *op = graph->nodes[s->about.nodes[0]].op->name;
        if (!strcmp(op, "flatten"))
            continue;
        assert_true(n_seen < COUNT(wanted));
        assert_string_equal(op, wanted[n_seen].op);
        assert_int_equal(s->device->threads, wanted[n_seen++].threads);
    }
    assert_int_equal(n_seen, COUNT(wanted));
    hwnas_exec_free(exec);
    hwnas_device_close(cpu);
    hwnas_graph_free(graph);
}

/* What lies between the nodes of a step is not moved. */
static void a_step_moves_what_it_reads_and_writes(void **state)
{
    (void)state;
    hwnas_graph *graph = hwnas_graph_new("between", 1);
    const int64_t dims[] = {1, 10000, 0}; /* 40 kB; 6 us are 120 kB */
    int x = add_input(graph, dims);
    for (int i = 0; i < 4; i++)
        x = add(graph, "relu", "", x, -1);
    hwnas_graph_add_output(graph, add(graph, "add", "", x, add(graph, "relu", "", x, -1)));
    assert_false(hwnas_onednn_is_worth_threads(graph, (const int[]){0, 1, 2, 3}, 4));
    assert_true(hwnas_onednn_is_worth_threads(graph, (const int[]){5}, 1));
    hwnas_graph_free(graph);
}

/* Of a table only the rows that are taken: 8 of 40,000. */
static void a_table_is_not_read_whole(void **state)
{
    (void)state;
    hwnas_graph *graph = hwnas_graph_new("table", 1);
    const int64_t rows[] = {40000, 64, 0}, words[] = {8, 0};
    const int table = add_input(graph, rows);
    const int taken = add(graph, "gather", "", table, add_input_of(graph, HWNAS_INT64, words));
    hwnas_graph_add_output(graph, add(graph, "relu", "", table, -1));
    hwnas_graph_add_output(graph, taken);
    assert_false(hwnas_onednn_is_worth_threads(graph, (const int[]){0}, 1));
    assert_true(hwnas_onednn_is_worth_threads(graph, (const int[]){1}, 1));
    hwnas_graph_free(graph);
}

/* Squeeze and excite of a convolution's image, which is read by something else too where
 * `is_shared`. The factors come first as torchvision has it. */
static hwnas_graph *squeeze(const int64_t *dims, bool is_first, bool is_shared)
{
    hwnas_graph *graph = hwnas_graph_new("squeeze", 5);
    const int x = add(graph, "conv", "out=37 kernel=3 pad=1", add_input(graph, dims), -1);
    int s = add(graph, "conv", "out=37", add(graph, "global_avg_pool", "", x, -1), -1);
    s = add(graph, "sigmoid", "", s, -1);
    const int y = is_first ? add(graph, "mul", "", s, x) : add(graph, "mul", "", x, s);
    hwnas_graph_add_output(graph, add(graph, "conv", "out=5", y, -1));
    if (is_shared)
        hwnas_graph_add_output(graph, add(graph, "conv", "out=3 kernel=3", x, -1));
    return graph;
}

static void squeeze_and_excite(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {1, 5, 61, 47}, {1, 3, 5, 3}, {2, 4, 40, 31}, {3, 4, 30, 31}, {5, 2, 26, 24}};
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 4; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        for (size_t i = 0; i < COUNT(shapes) * 4; i++) {
            hwnas_graph *graph = squeeze(shapes[i / 4], i % 2, i / 2 % 2);
            char what[64];
            snprintf(what, sizeof what, "case %zu, %d threads", i, threads);
            compare(what, cpu, graph, ref, graph, i);
            hwnas_graph_free(graph);
        }
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* They are loops of ours, whichever operand comes first. */
static void squeeze_and_excite_is_ours(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 5, 61, 47};
    hwnas_device *cpu = open_device("cpu", 2);
    for (int is_first = 0; is_first < 2; is_first++) {
        hwnas_graph *graph = squeeze(dims, is_first, false);
        const hwnas_exec_step *steps;
        hwnas_exec *exec = NULL;
        int n = 0;
        ok(hwnas_device_compile(&exec, cpu, graph, NULL));
        for (size_t i = 0, n_steps = exec->ops->steps(exec, &steps); i < n_steps; i++) {
            const hwnas_op_id op = graph->nodes[steps[i].nodes[0]].op->id;
            if (op == HWNAS_OP_MUL || op == HWNAS_OP_GLOBAL_AVG_POOL) {
                assert_string_equal(steps[i].how, "own loops");
                n++;
            }
        }
        assert_int_equal(n, 2);
        hwnas_exec_free(exec);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

/* ---- No more threads than asked for ---- */

static unsigned most_threads; /* of a team, since it was last set */

void GOMP_parallel(void (*work)(void *), void *data, unsigned n_threads, unsigned flags);

/* Stands before libgomp's, for oneDNN too, whose teams all begin here. */
void GOMP_parallel(void (*work)(void *), void *data, unsigned n_threads, unsigned flags)
{
    static void (*real)(void (*)(void *), void *, unsigned, unsigned);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "GOMP_parallel");
    most_threads = n_threads > most_threads ? n_threads : most_threads;
    real(work, data, n_threads, flags);
}

/* Counts the threads that share a sequence: only they agree on one of them. */
static int n_sharing;

bool GOMP_single_start(void);
bool GOMP_single_start(void)
{
    static bool (*real)(void);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "GOMP_single_start");
    __atomic_fetch_add(&n_sharing, 1, __ATOMIC_RELAXED);
    return real();
}

static void assert_two_threads(const char *what, hwnas_device *cpu, const hwnas_graph *graph)
{
    most_threads = 0;
    free(outcome(cpu, graph, 1));
    if (most_threads > 2)
        fail_msg("%s: a team of %u threads where 2 were asked for", what, most_threads);
}

/* Where more threads are wanted than there are cores, those that wait keep a core from those that
 * work; at a real-time priority for good. */
static void nothing_takes_more_threads_than_asked(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"batch_norm", "", {{1, 84, 83, 83}}},
        {"batch_norm", "", {{1, 64, 56, 56}}},
        {"batch_norm", "", {{2, 84, 9000}}},
        {"batch_norm", "", {{9000, 84}}},
        {"max_pool", "kernel=3 stride=2", {{1, 84, 83, 83}}},
        {"avg_pool", "kernel=3 stride=2", {{1, 84, 83, 83}}},
        {"conv", "out=84 kernel=3 groups=84", {{1, 84, 83, 83}}},
        {"conv", "out=85 kernel=1", {{1, 84, 83, 83}}},
        {"layer_norm", "", {{900, 84}}},
        {"softmax", "", {{9000, 84}}},
        {"add", "", {{1, 84, 83, 83}, {1, 84, 83, 83}}},
    };
    hwnas_device *cpu = open_device("cpu", 2);
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of_op(&cases[i]);
        assert_two_threads(cases[i].op, cpu, graph);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

/* Threads that share the units of one sequence wait for each other after each step, and add up in
 * the order of one. */
static void a_sequence_is_shared(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"lstm", "out=128", {{1, 40, 57}}},
        {"lstm", "out=160 last=1", {{1, 40, 57}}},
        {"gru", "out=128 last=1", {{1, 40, 57}}},
    };
    hwnas_device *alone = open_device("cpu", 1), *ref = open_device("ref", 1);
    for (int threads = 2; threads <= 4; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        for (size_t i = 0; i < COUNT(cases); i++) {
            hwnas_graph *graph = graph_of_op(&cases[i]);
            const size_t bytes = (size_t)count_outputs(graph) * sizeof(float);
            float *wanted = outcome(alone, graph, i);
            compare(cases[i].attrs, cpu, graph, ref, graph, i);
            for (int k = 0; k < 10; k++) {
                most_threads = 0;
                n_sharing = 0;
                float *got = outcome(cpu, graph, i);
                assert_memory_equal(got, wanted, bytes);
                assert_in_range(most_threads, 2, threads);
#ifndef __clang__ /* which calls it by another name */
                assert_in_range(n_sharing, 2 * 2, 2 * threads); /* it runs twice */
#endif
                free(got);
            }
            free(wanted);
            hwnas_graph_free(graph);
        }
        hwnas_device_close(cpu);
    }
    hwnas_device_close(alone);
    hwnas_device_close(ref);
}

static int is_yaml(const struct dirent *entry)
{
    return hwnas_ends_with(entry->d_name, ".yaml");
}

/* All but the largest, with the weights and inputs of a seed. */
static void nothing_in_the_zoo_does(void **state)
{
    (void)state;
    enum { MOST_MACS = 1500000000 };
    struct dirent **list;
    hwnas_device *cpu = open_device("cpu", 2);
    const int n = scandir(HWNAS_SOURCE_DIR "/search_spaces/zoo", &list, is_yaml, alphasort);
    int n_run = 0;
    for (int i = 0; i < n; i++) {
        char *path = hwnas_printf(HWNAS_SOURCE_DIR "/search_spaces/zoo/%s", list[i]->d_name);
        hwnas_space *space;
        hwnas_graph *graph;
        hwnas_costs costs;
        ok(hwnas_graph_load_space(&space, path));
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_arch_settle(arch);
        ok(hwnas_graph_build(&graph, arch, 1));
        hwnas_graph_costs(&costs, graph);
        if (costs.macs < MOST_MACS) {
            assert_two_threads(list[i]->d_name, cpu, graph);
            n_run++;
        }
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
        free(path);
        free(list[i]);
    }
    free(list);
    hwnas_device_close(cpu);
    assert_true(n_run > 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_steps_have_one_thread),
        cmocka_unit_test(nothing_takes_more_threads_than_asked),
        cmocka_unit_test(nothing_in_the_zoo_does),
        cmocka_unit_test(a_sequence_is_shared),
        cmocka_unit_test(a_step_moves_what_it_reads_and_writes),
        cmocka_unit_test(a_table_is_not_read_whole),
        cmocka_unit_test(squeeze_and_excite),
        cmocka_unit_test(squeeze_and_excite_is_ours),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
