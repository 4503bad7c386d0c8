/* test_device_networks.c: blocks, cells and whole networks of the spaces that ship on `cpu` against
 * `ref`, folded (src/graph/fold.c) and not, several beside each other. */
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
#include "graph/rewrite.h"
#include "tests/unit/device_fixture.h"

/* A convolution with BatchNorm; ReLU where asked. */
static int conv_bn(hwnas_graph *graph, int x, const char *attrs, bool relu)
{
    x = add(graph, "batch_norm", "", add(graph, "conv", attrs, x, -1), -1);
    return relu ? add(graph, "relu", "", x, -1) : x;
}

/* A residual block with squeeze-excite: what the operators become together. */
static hwnas_graph *block(int batch, uint64_t seed)
{
    hwnas_graph *graph = hwnas_graph_new("block", seed);
    const int64_t dims[] = {batch, 16, 13, 11};
    int x = conv_bn(graph, add_input(graph, dims), "out=24 kernel=1 bias=0", false), in = x;
    x = conv_bn(graph, x, "out=96 kernel=1 bias=0", true);
    x = conv_bn(graph, x, "out=96 kernel=3 pad=1 groups=96", true);
    int s = add(graph, "global_avg_pool", "", x, -1);
    s = add(graph, "relu", "", add(graph, "conv", "out=6", s, -1), -1);
    s = add(graph, "hard_sigmoid", "", add(graph, "conv", "out=96", s, -1), -1);
    x = conv_bn(graph, add(graph, "mul", "", x, s), "out=24 kernel=1 bias=0", false);
    x = add(graph, "add", "", in, x);
    const int64_t constant_dims[] = {1, 3, 13, 11};
    int constant;
    ok(hwnas_graph_add_weight(&constant, graph, "constant", 4, constant_dims, HWNAS_INIT_FAN_FIRST,
                              true));
    x = add(graph, "add", "", x, conv_bn(graph, constant, "out=24 kernel=1", false));
    x = add(graph, "batch_norm", "", x, -1); /* follows no convolution: stays */
    x = add(graph, "dropout", "", add(graph, "flatten", "", x, -1), -1);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=10", x, -1));
    return graph;
}

/* A cell as NAS-Bench-201 and DARTS have them: edges that each do something else, summed and put
 * one after the other, one of them twice. */
static hwnas_graph *cell(int batch)
{
    hwnas_graph *graph = hwnas_graph_new("cell", 4);
    const int64_t dims[] = {batch, 6, 9, 7};
    int in = add_input(graph, dims), out = -1;
    int a = add(graph, "max_pool", "kernel=3 pad=1", in, -1);
    int b = add(graph, "avg_pool", "kernel=3 pad=1", add(graph, "relu", "", in, -1), -1);
    int c = add(graph, "batch_norm", "affine=0",
                add(graph, "conv", "out=6 kernel=3 pad=1 bias=0", b, -1), -1);
    int d = add(graph, "add", "", add(graph, "zero", "", c, -1), a);
    int e = add(graph, "hard_swish", "", add(graph, "add", "", c, d), -1);
    const int ends[] = {b, d, e, d, add(graph, "zero", "", a, -1)};
    ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("concat"), "concat", NULL, 5, ends,
                            true));
    out = conv_bn(graph, out, "out=5 kernel=1 stride=2", true);
    in = add(graph, "conv", "out=5", add(graph, "zero", "stride=2", in, -1), -1);
    hwnas_graph_add_output(graph, add(graph, "concat", "", out, in));
    return graph;
}

static size_t count_nodes(const hwnas_graph *graph, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += !strcmp(graph->nodes[i].op->name, op);
    return n;
}

static void folding_changes_nothing(void **state)
{
    (void)state;
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (int batch = 1; batch <= 3; batch += 2) {
        hwnas_graph *graph = block(batch, 3), *folded = NULL, *copy = NULL, *original = NULL;
        ok(hwnas_graph_copy(&original, graph));
        ok(hwnas_graph_copy(&copy, graph));
        ok(hwnas_graph_fold(&folded, graph));
        hwnas_graph_free(graph); /* the others share nothing with it */
        assert_string_equal(hwnas_graph_digest(copy).hex, hwnas_graph_digest(original).hex);
        assert_int_equal(count_nodes(copy, "batch_norm"), 6);
        assert_int_equal(count_nodes(folded, "batch_norm"), 1);
        assert_int_equal(count_nodes(folded, "dropout"), 0);
        assert_int_equal(count_nodes(folded, "conv"), 6);
        compare("copy", ref, copy, ref, original, 1);
        compare("folded", ref, folded, ref, original, 1);
        compare("folded on cpu", cpu, folded, ref, original, 1);
        hwnas_graph_free(original);
        hwnas_graph_free(copy);
        hwnas_graph_free(folded);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

static void cells_with_all_kinds_of_edges(void **state)
{
    (void)state;
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 2);
    for (int batch = 1; batch <= 3; batch += 2) {
        hwnas_graph *graph = cell(batch), *folded = NULL;
        ok(hwnas_graph_fold(&folded, graph));
        assert_int_equal(count_nodes(folded, "batch_norm"), 0);
        hwnas_costs costs;
        hwnas_graph_costs(&costs, graph);
        /* Neither the zeros nor the scale and bias of the first batch_norm are learned. */
        assert_int_equal(costs.params, 6 * 6 * 9 + 5 * 30 + 5 + 2 * 5 + 5 * 6 + 5);
        compare("cell", cpu, graph, ref, graph, 3);
        compare("folded cell", cpu, folded, ref, graph, 3);
        hwnas_graph_free(graph);
        hwnas_graph_free(folded);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* A BatchNorm whose convolution is also read by something else, or is an output, must stay. */
static void folding_leaves_shared_convolutions(void **state)
{
    (void)state;
    hwnas_device *ref = open_device("ref", 1);
    for (int is_output = 0; is_output < 2; is_output++) {
        hwnas_graph *graph = hwnas_graph_new("shared", 1), *folded = NULL;
        const int64_t dims[] = {1, 3, 5, 5};
        int conv = add(graph, "conv", "out=4 kernel=3", add_input(graph, dims), -1);
        int norm = add(graph, "batch_norm", "", conv, -1);
        hwnas_graph_add_output(graph, is_output ? norm : add(graph, "add", "", norm, conv));
        if (is_output)
            hwnas_graph_add_output(graph, conv);
        ok(hwnas_graph_fold(&folded, graph));
        assert_int_equal(count_nodes(folded, "batch_norm"), 1);
        if (!is_output)
            compare("shared", ref, folded, ref, graph, 2);
        hwnas_graph_free(graph);
        hwnas_graph_free(folded);
    }
    hwnas_device_close(ref);
}

/* A weight stands in for the sum of it with zeros, and for what dropout makes of it. */
static void folding_keeps_the_values_of_weights(void **state)
{
    (void)state;
    static const char *const ops[] = {"add", "dropout"};
    hwnas_device *ref = open_device("ref", 1);
    for (size_t i = 0; i < COUNT(ops); i++) {
        hwnas_graph *graph = hwnas_graph_new("weight", 1), *folded = NULL;
        const int64_t dims[] = {3, 4, 0};
        int weight = -1;
        const int zero = add(graph, "zero", "", add_input(graph, dims), -1);
        ok(hwnas_graph_add_weight(&weight, graph, "w", 2, dims, HWNAS_INIT_NEAR_ONE, true));
        hwnas_graph_add_output(graph, add(graph, ops[i], "", weight, i ? -1 : zero));
        ok(hwnas_graph_fold(&folded, graph));
        compare(ops[i], ref, folded, ref, graph, 1);
        hwnas_graph_free(folded);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(ref);
}

/* Those that follow no layer, of images and of rows, with what runs in one step with them. */
static void norms_by_themselves(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {1, 84, 9, 7}, {2, 32, 8, 8}, {7, 19, 0}, {1, 40, 0}, {3, 16, 5, 0}};
    hwnas_device *cpu = open_device("cpu", 2), *ref = open_device("ref", 1);
    for (size_t i = 0; i < COUNT(shapes) * 2; i++) {
        const int64_t *dims = shapes[i / 2];
        hwnas_graph *graph = hwnas_graph_new("norms", 3 + i), *folded = NULL;
        const int in = add_input(graph, dims), other = add_input(graph, dims);
        int x = add(graph, "relu", "", add(graph, "batch_norm", "", in, -1), -1);
        if (i % 2)
            x = add(graph, "mul", "", add(graph, "add", "", x, other), other);
        hwnas_graph_add_output(graph, x);
        ok(hwnas_graph_fold(&folded, graph));
        compare("norms", cpu, folded, ref, graph, i);
        hwnas_graph_free(graph);
        hwnas_graph_free(folded);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* Of linear layers with and without a bias, and of products with a weight, which are such; those of
 * sequences stay, whose features are not the norm's channels. */
static void norms_go_into_linear_layers(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{5, 7, 0}, {2, 6, 7, 0}};
    enum { WITH_BIAS, WITHOUT_BIAS, PRODUCT, KINDS };
    hwnas_device *cpu = open_device("cpu", 1), *ref = open_device("ref", 1);
    for (size_t i = 0; i < COUNT(shapes) * KINDS; i++) {
        hwnas_graph *graph = hwnas_graph_new("linear", 3 + i), *folded = NULL;
        const int64_t dims[] = {7, 6};
        const int in = add_input(graph, shapes[i / KINDS]), kind = i % KINDS;
        int weight = -1;
        if (kind == PRODUCT)
            ok(hwnas_graph_add_weight(&weight, graph, "w", 2, dims, HWNAS_INIT_FAN_FIRST, true));
        const int x = kind == PRODUCT
                          ? add(graph, "matmul", "", in, weight)
                          : add(graph, "linear", kind ? "out=6 bias=0" : "out=6", in, -1);
        hwnas_graph_add_output(graph, add(graph, "batch_norm", "", x, -1));
        ok(hwnas_graph_fold(&folded, graph));
        assert_int_equal(count_nodes(folded, "batch_norm"), i / KINDS);
        assert_int_equal(count_nodes(folded, "linear"), !(i / KINDS));
        compare("linear", ref, folded, ref, graph, i);
        compare("linear", cpu, folded, ref, graph, i);
        hwnas_graph_free(graph);
        hwnas_graph_free(folded);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* What stands between a convolution of as many channels as lines and columns, and a norm that goes
 * into it or does not. */
static void only_norms_of_channels_are_folded(void **state)
{
    (void)state;
    static const struct {
        const char *between[4]; /* operator, attributes */
        bool is_output;         /* what lies between is one, too */
        size_t n_norms;         /* that are left */
    } rows[] = {
        {{"transpose", "order=0,2,1,3"}, false, 1}, /* of lines */
        {{"transpose", "order=0,1,3,2"}, false, 0},
        {{"transpose", "order=0,2,1,3", "transpose", "order=0,2,1,3"}, false, 0},
        {{"transpose", "order=0,2,3,1", "transpose", "order=0,2,1,3"}, false, 1}, /* of columns */
        {{"reshape", "shape=6,1,6,6"}, false, 0},
        {{"reshape", "shape=6,1,6,6"}, true, 1},
        {{"reshape", "shape=36,6"}, false, 1},
    };
    hwnas_device *ref = open_device("ref", 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = hwnas_graph_new("between", 5 + i), *folded = NULL;
        const int64_t dims[] = {2, 3, 6, 6};
        int x = add(graph, "conv", "out=6 kernel=3 pad=1", add_input(graph, dims), -1);
        for (int k = 0; k < 4 && rows[i].between[k]; k += 2)
            x = add(graph, rows[i].between[k], rows[i].between[k + 1], x, -1);
        if (rows[i].is_output)
            hwnas_graph_add_output(graph, x);
        hwnas_graph_add_output(graph, add(graph, "batch_norm", "", x, -1));
        ok(hwnas_graph_fold(&folded, graph));
        assert_int_equal(count_nodes(folded, "batch_norm"), rows[i].n_norms);
        compare(rows[i].between[1], ref, folded, ref, graph, i);
        hwnas_graph_free(graph);
        hwnas_graph_free(folded);
    }
    hwnas_device_close(ref);
}

static hwnas_graph *folded_block(uint64_t seed)
{
    hwnas_graph *graph = block(1, seed), *folded = NULL;
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    return folded;
}

/* oneDNN keeps weights under their address. Networks of one shape whose weights differ, freed in
 * between so that addresses come again, must each compute with their own. */
static void weights_do_not_survive_their_network(void **state)
{
    (void)state;
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    hwnas_graph *stays = folded_block(99);
    hwnas_exec *exec = NULL;
    float *input = random_values(16 * 13 * 11, 0), before[10], after[10];
    float *out[] = {before, after};
    ok(hwnas_device_compile(&exec, cpu, stays, NULL));
    hwnas_costs costs;
    hwnas_graph_costs(&costs, stays);
    assert_true(exec->ops->memory(exec) >= (size_t)costs.weight_bytes);
    ok(exec->ops->run(exec, (const float *const *)&input, &out[0]));
    for (uint64_t seed = 0; seed < 12; seed++) {
        hwnas_graph *graph = folded_block(seed);
        compare("same shape, other weights", cpu, graph, ref, graph, 0);
        hwnas_graph_free(graph);
    }
    ok(exec->ops->run(exec, (const float *const *)&input, &out[1]));
    assert_memory_equal(before, after, sizeof before);
    exec->ops->free_exec(exec);
    free(input);
    hwnas_graph_free(stays);
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* Bytes of a scale and floats again, between transposes that oneDNN's partitions compute. */
static hwnas_graph *through_bytes(const int64_t *dims, int n_before)
{
    static const float scale = 0.02F, zero = 0;
    hwnas_graph *graph = hwnas_graph_new("bytes", 1);
    int x = add_input(graph, dims), with[3];
    for (int i = 0; i < n_before; i++)
        x = add(graph, "transpose", "order=1,0", x, -1);
    with[0] = x;
    ok(hwnas_graph_add_constant(&with[1], graph, "scale", 0, NULL, &scale));
    ok(hwnas_graph_add_constant(&with[2], graph, "zero", 0, NULL, &zero));
    graph->tensors[with[2]].dtype = HWNAS_INT8;
    ok(hwnas_graph_add_node(&with[0], graph, hwnas_ops[HWNAS_OP_QUANTIZE_LINEAR], "to_bytes", NULL, 3,
                            with, false));
    ok(hwnas_graph_add_node(&x, graph, hwnas_ops[HWNAS_OP_DEQUANTIZE_LINEAR], "to_floats", NULL, 3,
                            with, false));
    for (int i = 0; i < n_before; i++)
        x = add(graph, "transpose", "order=1,0", x, -1);
    hwnas_graph_add_output(graph, x);
    return graph;
}

/* oneDNN's cache of constants takes scales of one partition for those of another, in one of some
 * thousand graphs: numbers of partitions decide, which count in the process. */
static void scales_stay_with_their_partition(void **state)
{
    (void)state;
    enum { N = 6 * 8, N_TRIES = 1000 };
    const int64_t dims[] = {6, 8, 0, 0};
    hwnas_device *cpu = open_device("cpu", 1);
    hwnas_graph *graphs[] = {through_bytes(dims, 1), through_bytes(dims, 2)};
    float *input = random_values(N, 0), output[N];
    for (int i = 0; i < N_TRIES; i++) {
        hwnas_exec *exec = NULL;
        ok(hwnas_device_compile(&exec, cpu, graphs[i % 2], NULL));
        ok(exec->ops->run(exec, (const float *const *)&input, &(float *){output}));
        for (int k = 0; k < N; k++)
            assert_float_equal(output[k], input[k], 0.0101);
        hwnas_exec_free(exec);
    }
    free(input);
    hwnas_graph_free(graphs[0]);
    hwnas_graph_free(graphs[1]);
    hwnas_device_close(cpu);
}

/* Several executables of one device, taken in turn, give what
 * each gives alone. */
static void executables_do_not_disturb_each_other(void **state)
{
    (void)state;
    enum { ROUNDS = 4 };
    static const op_case cases[] = {
        {"lstm", "out=17 bidirectional=1", {{3, 7, 12}}},
        {"gru", "out=9 bidirectional=1 last=1", {{3, 7, 12}}},
        {"layer_norm", "bias=0", {{3, 7, 12}}},
        {"gelu", "tanh=1", {{3, 7, 12}}},
    };
    hwnas_device *cpu = open_device("cpu", 1);
    hwnas_exec *execs[COUNT(cases)] = {NULL};
    float *alone[COUNT(cases)], *input = random_values(3 * 7 * 12, 0);
    int64_t n[COUNT(cases)];
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of_op(&cases[i]);
        n[i] = count_outputs(graph);
        alone[i] = outcome(cpu, graph, 0);
        ok(hwnas_device_compile(&execs[i], cpu, graph, NULL));
        hwnas_graph_free(graph); /* nothing of it is needed any more */
    }
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            float *got = hwnas_alloc((size_t)n[i] * sizeof *got);
            ok(cpu->ops->run(execs[i], (const float *const *)&input, &got));
            assert_memory_equal(got, alone[i], (size_t)n[i] * sizeof *got);
            free(got);
        }
    for (size_t i = 0; i < COUNT(cases); i++) {
        execs[i]->ops->free_exec(execs[i]);
        free(alone[i]);
    }
    free(input);
    hwnas_device_close(cpu);
}

static void whole_networks(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n_networks, batch;
    } spaces[] = {
        {"nas_bench_macro", 25, 1},
        {"accel_nasbench", 25, 1},
        {HWNAS_TEST_DATA "/sequences.yaml", 6, 1},
        {HWNAS_TEST_DATA "/sequences.yaml", 6, 3},
        {HWNAS_TEST_DATA "/sequences.yaml:phase=step", 6, 1},
        {HWNAS_TEST_DATA "/sequences.yaml:phase=step,positions=1", 6, 3},
    };
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (size_t i = 0; i < COUNT(spaces); i++) {
        hwnas_space *space = NULL;
        ok(hwnas_graph_load_space(&space, spaces[i].name));
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(2024, i);
        double worst = 0;
        for (int k = 0; k < spaces[i].n_networks; k++) {
            hwnas_graph *graph = NULL, *folded = NULL;
            hwnas_arch_sample(arch, &rng);
            char *code = hwnas_arch_code(arch);
            ok(hwnas_graph_build(&graph, arch, spaces[i].batch));
            ok(hwnas_graph_fold(&folded, graph));
            /* The unfolded network is the truth, so that folding is judged as well. */
            worst = fmax(worst, compare(code, cpu, folded, ref, graph, (uint64_t)k));
            free(code);
            hwnas_graph_free(graph);
            hwnas_graph_free(folded);
        }
        print_message("# %s: %d networks, worst relative error %.2g\n", spaces[i].name,
                      spaces[i].n_networks, worst);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_changes_nothing),
        cmocka_unit_test(only_norms_of_channels_are_folded),
        cmocka_unit_test(norms_by_themselves),
        cmocka_unit_test(norms_go_into_linear_layers),
        cmocka_unit_test(cells_with_all_kinds_of_edges),
        cmocka_unit_test(folding_leaves_shared_convolutions),
        cmocka_unit_test(folding_keeps_the_values_of_weights),
        cmocka_unit_test(weights_do_not_survive_their_network),
        cmocka_unit_test(scales_stay_with_their_partition),
        cmocka_unit_test(executables_do_not_disturb_each_other),
        cmocka_unit_test(whole_networks),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
