/* test_steps.c: the times of a run's steps. What they are of is checked on real networks, how they are
 * counted on a machine where time passes only as a script says. The program is its own runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "graph/op.h"
#include "measure/steps.h"
#include "onnx/onnx.h"

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != HWNAS_OK)                                                                    \
            fail_msg("%s: %s", #call, hwnas_last_error()->message);                                \
    } while (0)
#define assert_near(x, y, tolerance) assert_true(fabs((x) - (y)) <= (tolerance))

static hwnas_graph *load(const char *name)
{
    hwnas_space *space;
    hwnas_arch *arch;
    hwnas_graph *graph;
    assert_ok(hwnas_graph_load_space(&space, name));
    assert_ok(hwnas_arch_parse(&arch, space, ""));
    assert_ok(hwnas_graph_build(&graph, arch, 1));
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return graph;
}

static const char *const networks[] = {"mnist_cnn",          "resnet32_cifar", "mobilenet_v3_large",
                                       "imdb_bilstm",        "deit_tiny",      "yolov5s",
                                       "lstm_text_generation"};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

/* The runner sees a graph that went through ONNX, the caller's did not: both must speak of the same
 * nodes. */
static void test_both_sides_have_the_same_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < N_NETWORKS; i++) {
        hwnas_graph *graph = load(networks[i]), *mine, *read, *its;
        void *onnx;
        size_t length;
        assert_ok(hwnas_graph_fold(&mine, graph));
        assert_ok(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_SEEDS));
        assert_ok(hwnas_onnx_read(&read, "there", onnx, length));
        assert_ok(hwnas_graph_fold(&its, read));
        assert_int_equal(mine->n_nodes, its->n_nodes);
        for (size_t k = 0; k < mine->n_nodes; k++) {
            assert_string_equal(mine->nodes[k].name, its->nodes[k].name);
            assert_ptr_equal(mine->nodes[k].op, its->nodes[k].op);
        }
        free(onnx);
        hwnas_graph_free(its);
        hwnas_graph_free(read);
        hwnas_graph_free(mine);
        hwnas_graph_free(graph);
    }
}

/* Every node of the network as it is deployed is in one step. */
static void test_steps_cover_the_network(void **state)
{
    (void)state;
    const hwnas_measure_options options = {
        .interval = 0.5, .max_seconds = 0.2, .min_samples = 6, .timeout = 60};
    hwnas_runner *runner;
    assert_ok(hwnas_runner_open(&runner, "cpu", 1));
    for (int i = 0; i < N_NETWORKS; i++) {
        hwnas_graph *graph = load(networks[i]), *folded;
        hwnas_measurement m;
        hwnas_step_times times;
        assert_ok(hwnas_graph_fold(&folded, graph));
        assert_ok(hwnas_runner_measure_steps(&m, &times, runner, graph, &options));
        int *seen = calloc(folded->n_nodes, sizeof *seen);
        double sum = 0;
        for (size_t k = 0; k < times.n; k++) {
            const hwnas_step_time *step = &times.steps[k];
            assert_true(step->n_nodes > 0);
            assert_true(step->time.low <= step->time.p50 && step->time.p50 <= step->time.high);
            for (size_t j = 0; j < step->n_nodes; j++)
                seen[step->nodes[j]]++;
            sum += step->time.p50;
        }
        for (size_t k = 0; k < folded->n_nodes; k++)
            assert_int_equal(seen[k], 1);
        if (getenv("HWNAS_TEST_PRINT"))
            print_message("# %s: %zu steps, whole %g ms, sum %.4f, sum of medians %.4f\n",
                          networks[i], times.n, 1e3 * times.whole.p50,
                          times.sum.p50 / times.whole.p50, sum / times.whole.p50);
        free(seen);
        hwnas_step_times_done(&times);
        hwnas_graph_free(folded);
        hwnas_graph_free(graph);
    }
    hwnas_runner_close(runner);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_sides_have_the_same_nodes),
        cmocka_unit_test(test_steps_cover_the_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
