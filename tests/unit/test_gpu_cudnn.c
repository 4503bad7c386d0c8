/* test_gpu_cudnn.c: what is given to cuDNN, run: networks as plans and recurrent layers on a stand-in for
 * it (tests/gpu/fake_cudnn.c), held to `ref`. What the real one takes is test_plans.c's. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gpu/running.h"

static const struct row {
    hwnas_precision precision;
    double tolerance;
} rows[] = {{HWNAS_F32, 1e-5}, {HWNAS_F16, 1e-2}, {HWNAS_BF16, 5e-2}};

static void every_operator(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of(&cases[i]);
        run_on_both(cases[i].op, "0", graph, cases[i].range, HWNAS_F32, 1e-5);
        hwnas_graph_free(graph);
    }
}

static void whole_networks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int batch = 1; batch <= 3; batch += 2) {
            hwnas_graph *nets[] = {image_net(batch), text_net(batch)};
            for (int k = 0; k < 2; k++) {
                const int before = n_replays();
                run_on_both(nets[k]->name, "0", nets[k], 0, rows[i].precision, rows[i].tolerance);
                assert_int_equal(n_replays() - before, 2); /* plans are recorded as well */
                hwnas_graph_free(nets[k]);
            }
        }
}

/* Straight from the network's input, which is fp32 in every precision. */
static void recurrent_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (strcmp(cases[i].op, "lstm") && strcmp(cases[i].op, "gru"))
            continue;
        for (size_t k = 0; k < COUNT(rows); k++) {
            hwnas_graph *graph = graph_of(&cases[i]);
            run_on_both(cases[i].inputs, "0", graph, 0, rows[k].precision, rows[k].tolerance);
            hwnas_graph_free(graph);
        }
    }
}

/* The product behind one softmax is the one before the next: it is in one plan alone. */
static void attention_behind_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = hwnas_graph_new("attention", 9);
        int x;
        ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 4, (int64_t[]){2, 3, 16, 16}));
        const int turned = add(graph, "transpose", "order=0,1,3,2", x, -1);
        int y = add(graph, "matmul", "", x, turned);
        for (int k = 0; k < 3; k++)
            y = add(graph, "matmul", "", add(graph, "softmax", "", y, -1), k % 2 ? x : turned);
        hwnas_graph_add_output(graph, y);
        run_on_both("attention", "0", graph, 0, rows[i].precision, rows[i].tolerance);
        hwnas_graph_free(graph);
    }
}

/* Of two engines the second is the fast one. */
static void the_faster_plan_is_kept(void **state)
{
    (void)state;
    int *runs = dlsym(dlopen("libcudnn.so.9", RTLD_NOW), "fake_cudnn_runs");
    hwnas_graph *graph = image_net(1);
    const double tolerance = rows[0].tolerance;
    runs[0] = runs[1] = 0;
    run_on_both("as ranked", "0", graph, 0, HWNAS_F32, tolerance);
    assert_true(runs[0] > 0 && runs[1] == 0);
    runs[0] = 0;
    run_on_both("timed", "0:tune", graph, 0, HWNAS_F32, tolerance);
    assert_true(runs[0] > 0 && runs[0] < runs[1]);
    hwnas_graph_free(graph);
}

/* Also where it is cuDNN that notices: the next network needs a new process. */
static void the_gpu_is_lost(void **state)
{
    (void)state;
    for (int at = 1; at < 80; at += 5) {
        hwnas_graph *nets[] = {image_net(1), text_net(1)}, *graph = nets[at % 2];
        char fault[32];
        hwnas_device *gpu = open_gpu_as("0");
        hwnas_exec *exec = NULL;
        buffers b = new_buffers(graph, 0);
        snprintf(fault, sizeof fault, "lost:%d", at);
        set_fault(fault);
        hwnas_status status = hwnas_device_compile(&exec, gpu, graph, NULL);
        for (int i = 0; i < 4 && status == HWNAS_OK; i++)
            status = exec->ops->run(exec, (const float *const *)b.inputs, b.outputs);
        assert_int_equal(status, HWNAS_E_CRASHED);
        hwnas_exec_free(exec);
        hwnas_device_close(gpu);
        nothing_is_left();
        free_buffers(&b);
        for (int i = 0; i < 2; i++)
            hwnas_graph_free(nets[i]);
    }
    set_fault(NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    setenv("HWNAS_PLANS", "", 1);
    begin_with_the_fake(argv);
    find_fake();
    set_fault(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator),
        cmocka_unit_test(whole_networks),
        cmocka_unit_test(recurrent_layers),
        cmocka_unit_test(attention_behind_attention),
        cmocka_unit_test(the_faster_plan_is_kept),
        cmocka_unit_test(the_gpu_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
