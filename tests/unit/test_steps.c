/* test_steps.c: the times of a run's steps. What they are of is checked on real networks, how they
 * are counted on a machine where time passes only as a script says. The program is its
 * own runner. */
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

static const char *const networks[] = {
    "mnist_cnn", "resnet32_cifar", "mobilenet_v3_large",  "imdb_bilstm",
    "deit_tiny", "yolov5s",        "lstm_text_generation"};
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

/* A machine where time passes only in runs, as a script says. */

typedef struct fake {
    hwnas_machine machine;
    hwnas_exec exec;
    double clock, waited;
    unsigned long preemptions;
    int n_runs;       /* whole and step by step */
    int disturb_each; /* every so manieth run loses its core for 10 ms; 0: none */
    int share_each;   /* a neighbour comes and goes after so many runs, which take twice as long */
} fake;

static fake *of_exec(hwnas_exec *exec)
{
    return (fake *)((char *)exec - offsetof(fake, exec));
}

static double fake_now(hwnas_machine *machine)
{
    return ((fake *)machine)->clock;
}

static unsigned long fake_preemptions(hwnas_machine *machine)
{
    return ((fake *)machine)->preemptions;
}

static double fake_waited(hwnas_machine *machine)
{
    return ((fake *)machine)->waited;
}

static bool has_neighbour(const fake *f)
{
    return f->share_each && f->n_runs / f->share_each % 2;
}

static bool fake_is_shared(hwnas_machine *machine, double *hertz)
{
    *hertz = 3e9;
    return has_neighbour((fake *)machine);
}

static hwnas_status fake_take_priority(hwnas_machine *machine, const hwnas_measure_options *options)
{
    (void)machine;
    (void)options;
    return HWNAS_OK;
}

static void fake_watch(hwnas_machine *machine)
{
    (void)machine;
}

/* Seconds that the run loses of those that it would take. */
static double disturb(fake *f, double seconds)
{
    f->n_runs++;
    if (has_neighbour(f))
        return seconds;
    if (!f->disturb_each || f->n_runs % f->disturb_each)
        return 0;
    f->preemptions++;
    f->waited += 0.01;
    return 0.01;
}

static hwnas_status fake_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs)
{
    (void)inputs;
    (void)outputs;
    of_exec(exec)->clock += 3e-3 + disturb(of_exec(exec), 3e-3);
    return HWNAS_OK;
}

static hwnas_status fake_run_steps(hwnas_exec *exec, const float *const *inputs,
                                   float *const *outputs, double *seconds)
{
    (void)inputs;
    (void)outputs;
    seconds[0] = 1e-3;
    seconds[1] = 2.1e-3 + disturb(of_exec(exec), 3.1e-3);
    of_exec(exec)->clock += seconds[0] + seconds[1];
    return HWNAS_OK;
}

static size_t fake_steps(const hwnas_exec *exec, const hwnas_exec_step **out)
{
    static const int nodes[] = {0, 1, 2};
    static const hwnas_exec_step steps[] = {{2, nodes, "fused"}, {1, nodes + 2, "loops"}};
    (void)exec;
    *out = steps;
    return 2;
}

static const hwnas_device_ops fake_ops = {.abi = HWNAS_DEVICE_ABI,
                                          .name = "fake",
                                          .run = fake_run,
                                          .steps = fake_steps,
                                          .run_steps = fake_run_steps};
static const hwnas_device_ops silent_ops = {
    .abi = HWNAS_DEVICE_ABI, .name = "silent", .run = fake_run};

static fake make_fake(const hwnas_device_ops *ops, int disturb_each)
{
    return (fake){.machine = {.watch = fake_watch,
                              .now = fake_now,
                              .take_priority = fake_take_priority,
                              .preemptions = fake_preemptions,
                              .waited = fake_waited,
                              .is_shared = fake_is_shared},
                  .exec = {.ops = ops},
                  .disturb_each = disturb_each};
}

/* input -> relu -> relu_1 -> relu_2 -> output, 1x4 */
static hwnas_graph *make_chain(void)
{
    const int64_t dims[] = {1, 4};
    int tensor;
    hwnas_graph *graph = hwnas_graph_new("chain", 1);
    assert_ok(hwnas_graph_add_input(&tensor, graph, "input", HWNAS_FLOAT32, 2, dims));
    const char *const names[] = {"a/relu", "a/relu_1", "b"};
    for (int i = 0; i < 3; i++)
        assert_ok(hwnas_graph_add_node(&tensor, graph, hwnas_op_by_name("relu"), names[i], NULL, 1,
                                       &tensor, true));
    hwnas_graph_add_output(graph, tensor);
    return graph;
}

static hwnas_step_times time_fake(fake *f)
{
    const hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_graph *graph = make_chain();
    hwnas_step_times times;
    assert_ok(hwnas_measure_steps_on(&times, &f->exec, graph, &options, &f->machine));
    hwnas_graph_free(graph);
    return times;
}

static void check_fake(const hwnas_step_times *times)
{
    assert_int_equal(times->n, 2);
    assert_int_equal(times->steps[0].n_nodes, 2);
    assert_int_equal(times->steps[1].nodes[0], 2);
    assert_string_equal(times->steps[0].how, "fused");
    assert_near(times->steps[0].time.p50, 1e-3, 1e-12);
    assert_near(times->steps[1].time.p50, 2.1e-3, 1e-12);
    assert_near(times->whole.p50, 3e-3, 1e-9);
    assert_near(times->sum.p50, 3.1e-3, 1e-9);
    assert_near(times->ratio.p50, 3.1 / 3, 1e-6);
}

static void test_counts_what_passes(void **state)
{
    (void)state;
    fake f = make_fake(&fake_ops, 0);
    hwnas_step_times times = time_fake(&f);
    check_fake(&times);
    assert_int_equal(times.n_samples, 30);
    hwnas_step_times_done(&times);
}

/* Every third run is disturbed, so two of three pairs are; what is left says the same. */
static void test_disturbed_runs_do_not_count(void **state)
{
    (void)state;
    fake f = make_fake(&fake_ops, 3);
    hwnas_step_times times = time_fake(&f);
    check_fake(&times);
    assert_near(times.whole.high, 3e-3, 1e-9);
    assert_near(times.steps[1].time.high, 2.1e-3, 1e-12);
    hwnas_step_times_done(&times);
}

/* What ran beside a neighbour on the core is not a time of a step either. */
static void test_shared_runs_do_not_count(void **state)
{
    (void)state;
    fake f = make_fake(&fake_ops, 0);
    f.share_each = 7;
    hwnas_step_times times = time_fake(&f);
    check_fake(&times);
    assert_near(times.whole.high, 3e-3, 1e-9);
    assert_near(times.steps[1].time.high, 2.1e-3, 1e-12);
    hwnas_step_times_done(&times);
}

static void test_a_device_may_keep_silent(void **state)
{
    (void)state;
    fake f = make_fake(&silent_ops, 0);
    hwnas_step_times times = time_fake(&f);
    assert_int_equal(times.n, 0);
    hwnas_step_times_done(&times);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "runner"))
        return hwnas_runner_serve() == HWNAS_OK ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_sides_have_the_same_nodes),
        cmocka_unit_test(test_steps_cover_the_network),
        cmocka_unit_test(test_counts_what_passes),
        cmocka_unit_test(test_disturbed_runs_do_not_count),
        cmocka_unit_test(test_shared_runs_do_not_count),
        cmocka_unit_test(test_a_device_may_keep_silent),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
