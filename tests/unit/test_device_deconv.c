/* test_device_deconv.c: transposed convolutions and what follows them, on `cpu` against `ref`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/unit/attributes.h"
#include "tests/unit/device_fixture.h"

typedef struct deconv_case {
    int64_t dims[4];    /* of the input */
    int64_t weights[4]; /* input channels, output channels of a group, height, width */
    const char *attrs;
    bool is_plain; /* oneDNN has reference code alone, so the operator's own loops run it */
} deconv_case;

static const deconv_case cases[] = {
    {{1, 16, 7, 6}, {16, 24, 2, 2}, "kernel=2 stride=2", false},
    {{2, 8, 5, 9}, {8, 8, 4, 4}, "kernel=4 stride=2 pad=1", false},
    {{1, 5, 6, 6}, {5, 3, 3, 3}, "kernel=3", false},
    {{1, 16, 6, 5}, {16, 16, 3, 3}, "kernel=3 stride=2 pad=1 more=1", false},
    {{1, 16, 6, 5}, {16, 16, 3, 3}, "kernel=3 stride=3 pad=0 more=2,1", false},
    {{1, 16, 6, 5}, {16, 16, 3, 2}, "kernel=3,2 stride=2,1 pad=1,0,2,1", false},
    {{1, 16, 6, 5}, {16, 16, 3, 3}, "kernel=3 dilation=2 pad=2", false},
    {{1, 32, 6, 5}, {32, 16, 3, 3}, "kernel=3 stride=2 pad=1 groups=2", false},
    {{1, 16, 6, 5}, {16, 1, 4, 4}, "kernel=4 stride=2 pad=1 groups=16", false},
    {{1, 6, 6, 5}, {6, 2, 3, 3}, "kernel=3 stride=2 groups=3 more=1", false},
    {{1, 16, 1, 33}, {16, 8, 1, 5}, "kernel=1,5 stride=1,3 pad=0,1,0,1", false}, /* of a signal */
    {{1, 16, 8, 8}, {16, 8, 1, 1}, "kernel=1", false},
};

/* What computes the transposed convolution. */
static const char *how_is_it_computed(hwnas_device *device, const hwnas_graph *graph)
{
    const hwnas_exec_step *steps;
    hwnas_exec *exec;
    const char *how = "";
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    const size_t n = exec->ops->steps(exec, &steps);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            if (graph->nodes[steps[i].nodes[k]].op->id == HWNAS_OP_CONV_TRANSPOSE)
                how = steps[i].how; /* a word of the program's */
    exec->ops->free_exec(exec);
    return how;
}

static int deconv_of(hwnas_graph *graph, const deconv_case *c, bool has_bias)
{
    const hwnas_op *op = hwnas_op_by_name("conv_transpose");
    const char *groups = strstr(c->attrs, "groups=");
    const int64_t bias_dims[1] = {c->weights[1] * (groups ? atoi(groups + strlen("groups=")) : 1)};
    int inputs[3], out;
    hwnas_attr *attrs = attributes(op, c->attrs);
    inputs[0] = add(graph, "tanh", "", add_input(graph, c->dims), -1);
    ok(hwnas_graph_add_weight(&inputs[1], graph, "w", 4, c->weights, HWNAS_INIT_FAN_IN, true));
    ok(hwnas_graph_add_weight(&inputs[2], graph, "b", 1, bias_dims, HWNAS_INIT_NEAR_ONE, true));
    ok(hwnas_graph_add_node(&out, graph, op, "deconv", attrs, has_bias ? 3 : 2, inputs, false));
    free(attrs);
    return out;
}

static void agrees(const char *what, const hwnas_graph *graph, const char *how)
{
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 2; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        compare(what, cpu, graph, ref, graph, 1);
        assert_string_equal(how_is_it_computed(cpu, graph), how);
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

static void every_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        const deconv_case *c = &cases[i / 2];
        hwnas_graph *graph = hwnas_graph_new("deconv", 1);
        hwnas_graph_add_output(graph, deconv_of(graph, c, i % 2));
        agrees(c->attrs, graph, c->is_plain ? "plain loops" : "primitive");
        hwnas_graph_free(graph);
    }
}

/* A function, a sum with an image, and one value for each channel. */
static void what_follows_is_done_with_it(void **state)
{
    (void)state;
    static const char *const functions[] = {"relu", "hard_swish", "sigmoid", "leaky_relu"};
    for (size_t i = 0; i < COUNT(functions); i++) {
        const deconv_case *c = &cases[i % 2];
        hwnas_graph *graph = hwnas_graph_new("deconv", 1);
        int x = deconv_of(graph, c, i % 2), scale;
        const int64_t per_channel[] = {c->weights[1], 1, 1};
        ok(hwnas_graph_add_weight(&scale, graph, "scale", 3, per_channel, HWNAS_INIT_NEAR_ONE,
                                  true));
        x = add(graph, "mul", "", x, scale);
        x = add(graph, functions[i], "", x, -1);
        const int other = add(graph, "tanh", "", add_input(graph, graph->tensors[x].dims), -1);
        hwnas_graph_add_output(graph, add(graph, "add", "", x, other));
        agrees(functions[i], graph, "primitive");
        hwnas_graph_free(graph);
    }
}

/* Weights that the network computes go to the operator's own loops, and so does bf16. */
static void computed_weights(void **state)
{
    (void)state;
    const deconv_case *c = &cases[0];
    hwnas_graph *graph = hwnas_graph_new("deconv", 1);
    const hwnas_op *op = hwnas_op_by_name("conv_transpose");
    hwnas_attr *attrs = attributes(op, c->attrs);
    int inputs[2] = {add_input(graph, c->dims)}, out;
    inputs[1] = add(graph, "tanh", "", add_input(graph, c->weights), -1);
    inputs[0] = add(graph, "conv", "out=16 kernel=3 pad=1", inputs[0], -1);
    ok(hwnas_graph_add_node(&out, graph, op, "deconv", attrs, 2, inputs, false));
    hwnas_graph_add_output(graph, add(graph, "conv", "out=5", out, -1));
    agrees("computed weights", graph, "plain loops");
    free(attrs);
    hwnas_graph_free(graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_window),
        cmocka_unit_test(what_follows_is_done_with_it),
        cmocka_unit_test(computed_weights),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
