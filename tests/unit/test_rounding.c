/* test_rounding.c: products of bfloat16, told by casts: `cpu` against `ref`, and as files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "graph/op.h"
#include "graph/rewrite.h"
#include "graph/rounding.h"
#include "onnx/onnx.h"
#include "tests/unit/device_fixture.h"

/* All products with weights, rounded. */
static hwnas_graph *rounded(const hwnas_graph *graph)
{
    hwnas_graph *out;
    bool *is_rounded = hwnas_alloc((graph->n_nodes + 1) * sizeof *is_rounded);
    for (size_t n = 0; n < graph->n_nodes; n++)
        is_rounded[n] = graph->nodes[n].op->class == HWNAS_CLASS_PRODUCT &&
                        hwnas_node_input(graph, &graph->nodes[n], 1)->kind == HWNAS_TENSOR_WEIGHT;
    ok(hwnas_graph_round_products(&out, graph, is_rounded));
    free(is_rounded);
    return out;
}

static int round_by_cast(hwnas_graph *graph, int tensor)
{
    const hwnas_attr to = hwnas_attr_int(HWNAS_BFLOAT16);
    int out;
    ok(hwnas_graph_add_node(&out, graph, hwnas_ops[HWNAS_OP_CAST], "round", &to, 1, &tensor,
                            false));
    return out;
}

static bool has_bf16(void)
{
    hwnas_device *cpu = open_device("cpu", 1);
    hwnas_device_info info = {0};
    cpu->ops->describe(cpu, &info);
    hwnas_device_close(cpu);
    return info.native & 1U << HWNAS_BF16;
}

/* Whether each cast is part of a step that multiplies. */
static bool is_done_by_products(hwnas_device *device, const hwnas_graph *graph)
{
    const hwnas_exec_step *steps;
    hwnas_exec *exec;
    bool is_all = true;
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    for (size_t i = 0, n = exec->ops->steps(exec, &steps); i < n; i++) {
        bool rounds = false, multiplies = false;
        for (size_t k = 0; k < steps[i].n_nodes; k++) {
            const hwnas_node *node = &graph->nodes[steps[i].nodes[k]];
            rounds |= hwnas_rounds(node);
            multiplies |= node->op->class == HWNAS_CLASS_PRODUCT;
        }
        is_all &= !rounds || multiplies;
    }
    hwnas_exec_free(exec);
    return is_all;
}

/* With one thread and with two. */
static void agrees(const char *what, const hwnas_graph *graph)
{
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 2; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        compare(what, cpu, graph, ref, graph, 1);
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* By hand, from the definition: the nearest of 8 bits of fraction, of two the even one. */
static void values_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    static const float cases[][2] = {
        {1, 1},
        {1 + 0x1p-9f, 1},
        {1 + 0x1p-8f, 1},
        {1 + 0x1.8p-8f, 1 + 0x1p-7f},
        {1 + 0x3p-8f, 1 + 0x1p-6f},
        {-1 - 0x3p-8f, -1 - 0x1p-6f},
        {0x1.ffp127f, INFINITY},
        {0x1p-133f, 0x1p-133f},
        {0x1p-135f, 0},
        {0, 0},
    };
    const int64_t dims[] = {COUNT(cases)};
    float in[COUNT(cases)], out[COUNT(cases)], *const outputs[] = {out};
    hwnas_graph *graph = hwnas_graph_new("values", 1);
    hwnas_graph_add_output(graph, round_by_cast(graph, add_input(graph, (int64_t[]){dims[0], 0})));
    for (size_t i = 0; i < COUNT(cases); i++)
        in[i] = cases[i][0];
    static const char *const devices[] = {"ref", "cpu"};
    for (size_t d = 0; d < COUNT(devices); d++) {
        hwnas_device *device = open_device(devices[d], 1);
        hwnas_exec *exec;
        const float *const inputs[] = {in};
        ok(hwnas_device_compile(&exec, device, graph, NULL));
        ok(exec->ops->run(exec, inputs, outputs));
        for (size_t i = 0; i < COUNT(cases); i++)
            assert_true(out[i] == cases[i][1]);
        hwnas_exec_free(exec);
        hwnas_device_close(device);
    }
    hwnas_graph_free(graph);
}

/* Odd sizes, several windows, images and rows; at batch 2. */
static void products_agree(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"conv", "out=24 kernel=3 pad=1", {{2, 16, 9, 9}}},
        {"conv", "out=17 kernel=3 stride=2 pad=1", {{2, 3, 15, 11}}},
        {"conv", "out=64 kernel=1", {{1, 32, 7, 7}}},
        {"conv", "out=32 kernel=3 pad=2 dilation=2 groups=4", {{2, 16, 9, 9}}},
        {"conv", "out=48 kernel=5 pad=2 groups=48", {{1, 48, 10, 10}}},
        {"conv", "out=8 kernel=7 stride=4 pad=3", {{1, 1, 28, 28}}},
        {"linear", "out=40", {{2, 33}}},
        {"linear", "out=1", {{1, 256}}},
        {"linear", "out=64", {{2, 7, 96}}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *plain = graph_of_op(&cases[i]), *graph = rounded(plain);
        hwnas_device *cpu = open_device("cpu", 1), *ref = open_device("ref", 1);
        agrees(cases[i].attrs, graph);
        if (has_bf16())
            assert_true(is_done_by_products(cpu, graph));
        /* And rounding is seen. */
        const int64_t n = count_outputs(plain);
        float *a = outcome(ref, plain, 1), *b = outcome(cpu, graph, 1), largest = 0;
        for (int64_t k = 0; k < n; k++)
            largest = fmaxf(largest, fabsf(a[k] - b[k]));
        assert_true(largest > 1e-5);
        free(a);
        free(b);
        hwnas_device_close(ref);
        hwnas_device_close(cpu);
        hwnas_graph_free(graph);
        hwnas_graph_free(plain);
    }
}

/* What follows a product is fused with it as elsewhere; one rounding may serve several products. */
static void products_share_what_they_read(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 9, 48, 0};
    hwnas_graph *plain = hwnas_graph_new("shared", 1);
    const int x = add_input(plain, dims);
    const int q = add(plain, "relu", "", add(plain, "linear", "out=48", x, -1), -1);
    const int k = add(plain, "add", "", add(plain, "linear", "out=48", x, -1), x);
    const int v = add(plain, "gelu", "", add(plain, "linear", "out=48", x, -1), -1);
    hwnas_graph_add_output(plain, add(plain, "mul", "", add(plain, "sub", "", q, k), v));
    hwnas_graph *graph = rounded(plain);
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += hwnas_rounds(&graph->nodes[i]);
    assert_int_equal(n, 4); /* of x, and of three kernels */
    agrees("shared", graph);
    hwnas_device *cpu = open_device("cpu", 1);
    if (has_bf16())
        assert_true(is_done_by_products(cpu, graph));
    hwnas_device_close(cpu);
    hwnas_graph_free(graph);
    hwnas_graph_free(plain);
}

/* Rounded values that others read as well have to be there. */
static void others_may_read_what_is_rounded(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 16, 8, 8};
    for (int kind = 0; kind < 3; kind++) {
        hwnas_graph *plain = hwnas_graph_new("others", 1);
        const int x = round_by_cast(plain, add(plain, "relu", "", add_input(plain, dims), -1));
        const int y = add(plain, "conv", "out=16 kernel=3 pad=1", x, -1);
        if (kind == 1)
            hwnas_graph_add_output(plain, x);
        hwnas_graph_add_output(plain, kind == 2 ? y : add(plain, "add", "", y, x));
        hwnas_graph *graph = rounded(plain);
        agrees("others", graph);
        agrees("of the operand alone", plain);
        hwnas_graph_free(graph);
        hwnas_graph_free(plain);
    }
}

/* A chain of images: nothing between two convolutions is brought into another layout. */
static void images_keep_their_layout(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 16, 12, 12};
    hwnas_graph *plain = hwnas_graph_new("images", 1);
    int x = add(plain, "conv", "out=32 kernel=3 pad=1", add_input(plain, dims), -1);
    const int skip = x = add(plain, "relu", "", x, -1);
    x = add(plain, "relu", "", add(plain, "conv", "out=32 kernel=1", x, -1), -1);
    x = add(plain, "conv", "out=32 kernel=3 pad=1", x, -1);
    x = add(plain, "max_pool", "kernel=2 stride=2", add(plain, "add", "", x, skip), -1);
    hwnas_graph_add_output(plain, add(plain, "global_avg_pool", "", x, -1));
    hwnas_graph *graph = rounded(plain);
    agrees("images", graph);
    hwnas_device *cpu = open_device("cpu", 1);
    if (has_bf16())
        assert_true(is_done_by_products(cpu, graph));
    hwnas_device_close(cpu);
    hwnas_graph_free(graph);
    hwnas_graph_free(plain);
}

/* Without the steps, of which none has the casts that are not run. NULL: the processor has no such
 * precision. */
static float *outcome_of_run(hwnas_precision precision, hwnas_device *device,
                             const hwnas_graph *graph)
{
    const hwnas_exec_options how = {.precision = precision};
    hwnas_device_info info = {0};
    device->ops->describe(device, &info);
    if (!((info.native | info.emulated) & 1U << precision))
        return NULL;
    float *in = random_values(hwnas_tensor_count(&graph->tensors[graph->inputs[0]]), 2);
    float *out = hwnas_alloc((size_t)count_outputs(graph) * sizeof *out);
    hwnas_exec *exec;
    ok(hwnas_device_compile(&exec, device, graph, &how));
    ok(exec->ops->run(exec, (const float *const[]){in}, (float *const[]){out}));
    hwnas_exec_free(exec);
    free(in);
    return out;
}

/* What is in another precision as a whole needs no roundings, and is as near as it would be. */
static void other_precisions_do_without(void **state)
{
    (void)state;
    static const struct {
        hwnas_precision precision;
        double most;
    } cases[] = {{HWNAS_BF16, 0.03}, {HWNAS_F16, 0.02}, {HWNAS_S8, 0.06}, {HWNAS_W8, 0.06}};
    const int64_t dims[] = {2, 9, 48, 0};
    hwnas_graph *plain = hwnas_graph_new("low", 1);
    int x = add(plain, "linear", "out=64", add_input(plain, dims), -1);
    x = add(plain, "linear", "out=32", add(plain, "reshape", "shape=9,64", x, -1), -1);
    hwnas_graph_add_output(plain, x);
    hwnas_graph *graph = rounded(plain);
    hwnas_device *cpu = open_device("cpu", 1), *ref = open_device("ref", 1);
    const int64_t n = count_outputs(graph);
    float *right = outcome_of_run(HWNAS_F32, ref, graph);
    for (size_t i = 0; i < COUNT(cases); i++) {
        float *got = outcome_of_run(cases[i].precision, cpu, graph), off = 0, largest = 0;
        for (int64_t k = 0; k < n && got; k++) {
            off = fmaxf(off, fabsf(got[k] - right[k]));
            largest = fmaxf(largest, fabsf(right[k]));
        }
        assert_true(!got || off < cases[i].most * largest);
        free(got);
    }
    free(right);
    hwnas_device_close(ref);
    hwnas_device_close(cpu);
    hwnas_graph_free(graph);
    hwnas_graph_free(plain);
}

/* Folding computes what is constant, but no kernel of a product; a file says it and is read as what
 * was written, node by node. */
static void folding_and_files_keep_it(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 8, 6, 6};
    hwnas_graph *plain = hwnas_graph_new("file", 1);
    int x = add(plain, "conv", "out=8 kernel=3 pad=1", add_input(plain, dims), -1);
    x = add(plain, "linear", "out=5", add(plain, "flatten", "", x, -1), -1);
    hwnas_graph_add_output(plain, x);
    hwnas_graph *graph = rounded(plain), *folded, *back, *again;
    ok(hwnas_graph_fold(&folded, graph));
    assert_int_equal(folded->n_nodes, graph->n_nodes);
    void *bytes;
    size_t length;
    ok(hwnas_onnx_write(&bytes, &length, folded, HWNAS_ONNX_VALUES));
    ok(hwnas_onnx_read(&back, "file", bytes, length));
    ok(hwnas_graph_fold(&again, back));
    assert_int_equal(again->n_nodes, folded->n_nodes);
    for (size_t i = 0; i < again->n_nodes; i++) {
        assert_string_equal(again->nodes[i].name, folded->nodes[i].name);
        assert_ptr_equal(again->nodes[i].op, folded->nodes[i].op);
    }
    assert_string_equal(hwnas_graph_digest(again).hex, hwnas_graph_digest(folded).hex);
    assert_string_not_equal(hwnas_graph_digest(again).hex, hwnas_graph_digest(plain).hex);
    hwnas_device *ref = open_device("ref", 1);
    compare("a file", ref, again, ref, folded, 1);
    hwnas_device_close(ref);
    free(bytes);
    hwnas_graph_free(again);
    hwnas_graph_free(back);
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
    hwnas_graph_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_rounded_to_the_nearest),
        cmocka_unit_test(products_agree),
        cmocka_unit_test(products_share_what_they_read),
        cmocka_unit_test(others_may_read_what_is_rounded),
        cmocka_unit_test(images_keep_their_layout),
        cmocka_unit_test(other_precisions_do_without),
        cmocka_unit_test(folding_and_files_keep_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
