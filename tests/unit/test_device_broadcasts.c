/* test_device_broadcasts.c: sums and products with tensors that are repeated along some dimensions,
 * and the softmax behind them, on `cpu` against `ref`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/unit/device_fixture.h"

/* Whether a step of our own loops has a node of this operator. */
static bool is_in_own_loops(hwnas_device *device, const hwnas_graph *graph, hwnas_op_id op)
{
    const hwnas_exec_step *steps;
    hwnas_exec *exec;
    bool is_found = false;
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    const size_t n = exec->ops->steps(exec, &steps);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            is_found |=
                graph->nodes[steps[i].nodes[k]].op->id == op && !strcmp(steps[i].how, "own loops");
    hwnas_exec_free(exec);
    return is_found;
}

/* With one thread and with two; what is looked for must run in our own loops. */
static void agrees(const char *what, const hwnas_graph *graph, hwnas_op_id op)
{
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 2; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        compare(what, cpu, graph, ref, graph, 1);
        assert_true(is_in_own_loops(cpu, graph, op));
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* Scores of attention: `length` queries and as many keys, at batch 2. */
static int scores_of(hwnas_graph *graph, int64_t heads, int64_t length)
{
    const int64_t q_dims[] = {2, heads, length, 8}, k_dims[] = {2, heads, 8, length};
    const int q = add_input(graph, q_dims), k = add_input(graph, k_dims);
    return add(graph, "matmul", "", q, k);
}

/* Softmax times values. */
static void end_attention(hwnas_graph *graph, int scores, int64_t heads, int64_t length)
{
    const int64_t v_dims[] = {2, heads, length, 8};
    const int v = add_input(graph, v_dims);
    hwnas_graph_add_output(graph,
                           add(graph, "matmul", "", add(graph, "softmax", "", scores, -1), v));
}

/* Rows shorter than a vector, of several vectors, and with a rest. */
static void rows_may_have_any_length(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 49, 64, 67};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const int64_t n = lengths[i], bias[] = {3, n, n, 0}, factor[] = {3, 1, 1, 0};
        hwnas_graph *graph = hwnas_graph_new("attention", 1);
        int x = scores_of(graph, 3, n);
        x = add(graph, "mul", "", x, add_input(graph, factor));
        x = add(graph, "add", "", x, add_input(graph, bias));
        end_attention(graph, x, 3, n);
        agrees("attention", graph, HWNAS_OP_SOFTMAX);
        hwnas_graph_free(graph);
    }
}

/* Shifted windows, two of three heads: reshaped for the mask, and back. */
static void a_reshape_may_stand_between(void **state)
{
    (void)state;
    const int64_t bias[] = {1, 6, 9, 9}, mask[] = {2, 1, 9, 9};
    hwnas_graph *graph = hwnas_graph_new("windows", 1);
    int x = add(graph, "add", "", scores_of(graph, 6, 9), add_input(graph, bias));
    x = add(graph, "reshape", "shape=2,3,9,9", x, -1);
    x = add(graph, "add", "", x, add_input(graph, mask));
    x = add(graph, "reshape", "shape=6,9,9", x, -1);
    end_attention(graph, x, 6, 9);
    agrees("windows", graph, HWNAS_OP_SOFTMAX);
    hwnas_graph_free(graph);
}

/* Both operands are one tensor, whose maker is no part of the step then. */
static void a_sum_of_one_tensor_twice(void **state)
{
    (void)state;
    static const char *const ops[] = {"add", "mul"};
    const int64_t factor[] = {3, 1, 1, 0};
    for (size_t i = 0; i < COUNT(ops); i++) {
        hwnas_graph *graph = hwnas_graph_new("twice", 1);
        const int x = add(graph, "mul", "", scores_of(graph, 3, 9), add_input(graph, factor));
        end_attention(graph, add(graph, ops[i], "", x, x), 3, 9);
        agrees(ops[i], graph, HWNAS_OP_SOFTMAX);
        hwnas_graph_free(graph);
    }
}

/* An operand is what is worked on as well, so the result does not take its place. */
static void a_sum_with_itself(void **state)
{
    (void)state;
    const int64_t bias[] = {3, 1, 7, 0};
    hwnas_graph *graph = hwnas_graph_new("itself", 1);
    const int64_t dims[] = {2, 3, 5, 7};
    const int in = add(graph, "tanh", "", add_input(graph, dims), -1);
    int x = add(graph, "mul", "", in, add_input(graph, bias));
    x = add(graph, "add", "", x, in);
    hwnas_graph_add_output(graph, add(graph, "softmax", "", x, -1));
    agrees("itself", graph, HWNAS_OP_SOFTMAX);
    hwnas_graph_free(graph);
}

/* What is far below the greatest value counts for nothing. */
static void masked_scores_vanish(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 2, 3, 20}, mask_dims[] = {2, 3, 20};
    float mask[120];
    for (int i = 0; i < 120; i++)
        mask[i] = i % 3 ? -100.0f : 0;
    hwnas_graph *graph = hwnas_graph_new("mask", 1);
    int constant;
    const int in = add_input(graph, dims);
    ok(hwnas_graph_add_constant(&constant, graph, "mask", 3, mask_dims, mask));
    const int out = add(graph, "softmax", "", add(graph, "add", "", in, constant), -1);
    hwnas_graph_add_output(graph, out);
    agrees("mask", graph, HWNAS_OP_SOFTMAX);
    hwnas_device *cpu = open_device("cpu", 1);
    float *got = outcome(cpu, graph, 1);
    for (int i = 0; i < 120; i++)
        assert_true(i % 3 ? got[i] == 0 : got[i] > 0);
    free(got);
    hwnas_device_close(cpu);
    hwnas_graph_free(graph);
}

/* Without a softmax: around an attention, where no primitive takes them. */
static void operands_may_be_repeated_anywhere(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{3, 4, 5},    {3, 4, 1},    {3, 1, 5},    {3, 1, 1},
                                        {1, 3, 4, 5}, {2, 3, 4, 1}, {2, 3, 1, 1}, {1, 3, 1, 5}};
    static const char *const ops[] = {"add", "sub", "mul", "div"};
    for (size_t i = 0; i < COUNT(shapes) * COUNT(ops); i++) {
        const int64_t dims[] = {2, 3, 4, 5};
        hwnas_graph *graph = hwnas_graph_new("operand", 1);
        const int x = scores_of(graph, 3, 4),
                  in = add(graph, "neg", "", add_input(graph, dims), -1);
        const int other = add(graph, "sigmoid", "", add_input(graph, shapes[i / COUNT(ops)]), -1);
        end_attention(graph, x, 3, 4);
        hwnas_graph_add_output(graph, add(graph, ops[i % COUNT(ops)], "", in, other));
        agrees(ops[i % COUNT(ops)], graph, hwnas_op_by_name(ops[i % COUNT(ops)])->id);
        hwnas_graph_free(graph);
    }
}

/* A convolution's output has its channels last: rows are not where these loops would read them. */
static void images_are_not_read_as_rows(void **state)
{
    (void)state;
    static const struct {
        const char *last;
        bool is_first; /* the image is the first operand */
    } cases[] = {{"add", true}, {"sub", true}, {"mul", false}, {"softmax", true}};
    const int64_t dims[] = {2, 16, 7, 7}, rows[] = {16, 7, 1, 0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = hwnas_graph_new("image", 1);
        const bool is_softmax = !strcmp(cases[i].last, "softmax");
        const int image = add(graph, "conv", "out=16 kernel=3 pad=1", add_input(graph, dims), -1);
        const int row = add(graph, "sigmoid", "", add_input(graph, rows), -1);
        int x = add(graph, is_softmax ? "add" : cases[i].last, "", cases[i].is_first ? image : row,
                    cases[i].is_first ? row : image);
        if (is_softmax)
            x = add(graph, "softmax", "", x, -1);
        hwnas_graph_add_output(graph, x);
        for (int threads = 1; threads <= 2; threads++) {
            hwnas_device *cpu = open_device("cpu", threads), *ref = open_device("ref", 1);
            compare(cases[i].last, cpu, graph, ref, graph, 1);
            hwnas_device_close(ref);
            hwnas_device_close(cpu);
        }
        hwnas_graph_free(graph);
    }
}

/* oneDNN has reference code for these, twenty to a thousand times slower. */
static void one_value_for_each_row(void **state)
{
    (void)state;
    static const int64_t operands[][4] = {{64, 1}, {1, 64, 1}, {2, 1, 64, 1}, {2, 1, 1, 1}};
    for (size_t i = 0; i < COUNT(operands); i++) {
        hwnas_graph *graph = hwnas_graph_new("rows", 1);
        const int x = scores_of(graph, 3, 64), y = add_input(graph, operands[i]);
        hwnas_graph_add_output(graph, add(graph, "add", "", x, y));
        agrees("one value for each row", graph, HWNAS_OP_ADD);
        hwnas_graph_free(graph);
    }
}

/* One token of a decoder: heads, their scores, and what lies between products. */
static void what_is_little_needs_no_partition(void **state)
{
    (void)state;
    const int64_t token[] = {1, 1, 72, 0}, keys[] = {1, 9, 8, 33}, values[] = {1, 9, 33, 8};
    const int64_t angles[] = {1, 1, 1, 8}, mask[] = {1, 1, 1, 33};
    hwnas_graph *graph = hwnas_graph_new("token", 1);
    int q = add(graph, "reshape", "shape=1,9,8", add_input(graph, token), -1);
    q = add(graph, "transpose", "order=0,2,1,3", q, -1);
    q = add(graph, "mul", "", q, add_input(graph, angles));
    int x = add(graph, "matmul", "", q, add_input(graph, keys));
    x = add(graph, "softmax", "", add(graph, "add", "", x, add_input(graph, mask)), -1);
    x = add(graph, "matmul", "", x, add_input(graph, values));
    x = add(graph, "reshape", "shape=1,72", add(graph, "transpose", "order=0,2,1,3", x, -1), -1);
    hwnas_graph_add_output(graph, add(graph, "add", "", x, add_input(graph, token)));
    agrees("a token", graph, HWNAS_OP_SOFTMAX);
    hwnas_device *cpu = open_device("cpu", 1);
    const hwnas_exec_step *steps;
    hwnas_exec *exec;
    ok(hwnas_device_compile(&exec, cpu, graph, NULL));
    for (size_t i = 0, n = exec->ops->steps(exec, &steps); i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            if (graph->nodes[steps[i].nodes[k]].op->id != HWNAS_OP_MATMUL)
                assert_string_not_equal(steps[i].how, "partition");
    hwnas_exec_free(exec);
    hwnas_device_close(cpu);
    hwnas_graph_free(graph);
}

/* Whether all steps with a node of this operator are fast: neither a partition of oneDNN's nor a
 * primitive that is its reference code. */
static bool is_fast(hwnas_device *device, const hwnas_graph *graph, hwnas_op_id op)
{
    const hwnas_exec_step *steps;
    hwnas_exec *exec;
    bool is_all = true;
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    for (size_t i = 0, n = exec->ops->steps(exec, &steps); i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            if (graph->nodes[steps[i].nodes[k]].op->id == op)
                is_all &= strcmp(steps[i].how, "partition") != 0 &&
                          strcmp(steps[i].how, HWNAS_HOW_REFERENCE) != 0;
    hwnas_exec_free(exec);
    return is_all;
}

/* With one thread and with two. */
static void agrees_and_is_fast(const char *op, const hwnas_graph *graph)
{
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 2; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        compare(op, cpu, graph, ref, graph, 1);
        assert_true(is_fast(cpu, graph, hwnas_op_by_name(op)->id));
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* Each dimension is in both operands, or repeated in the first or in the second: one for each
 * digit of `ways` to the base of 3. */
static void repeat(int64_t *a, int64_t *b, const int64_t *dims, int rank, int ways)
{
    for (int i = 0; i < rank; i++, ways /= 3) {
        a[i] = ways % 3 == 1 ? 1 : dims[i];
        b[i] = ways % 3 == 2 ? 1 : dims[i];
    }
}

static const char *const binaries[] = {"add", "sub", "mul", "div"};

/* More values than a partition needs to be worth its beginning; rows shorter than a vector, and
 * longer ones. */
static void both_operands_may_be_repeated(void **state)
{
    (void)state;
    enum { WAYS = 81 };
    static const int64_t sizes[][4] = {{2, 8, 24, 35}, {12, 31, 8, 3}};
    for (size_t i = 0; i < COUNT(sizes) * COUNT(binaries) * WAYS; i++) {
        int64_t a[4], b[4];
        const char *op = binaries[i / WAYS % COUNT(binaries)];
        hwnas_graph *graph = hwnas_graph_new("both", 1);
        repeat(a, b, sizes[i / WAYS / COUNT(binaries)], 4, i % WAYS);
        const int first = add_input(graph, a), second = add_input(graph, b);
        hwnas_graph_add_output(graph, add(graph, op, "", first, second));
        agrees_and_is_fast(op, graph);
        hwnas_graph_free(graph);
    }
}

/* Fewer dimensions, one of them an operand of a network's own. */
static void an_operand_may_be_a_weight(void **state)
{
    (void)state;
    static const struct {
        int64_t a[4], w[4]; /* as add_input() has them */
        int rank;           /* of `w` */
    } cases[] = {{{1, 8, 56, 64}, {8, 56, 1}, 3}, {{1, 8, 56, 64}, {8, 1, 64}, 3},
                 {{1, 256}, {256, 1}, 2},         {{256, 1}, {256}, 1},
                 {{1, 1, 56, 1}, {8, 56, 64}, 3}, {{300, 31}, {300, 1}, 2}};
    for (size_t i = 0; i < COUNT(cases) * COUNT(binaries) * 2; i++) {
        const int c = (int)(i / COUNT(binaries) / 2);
        const bool is_first = i % 2;
        const char *op = binaries[i / 2 % COUNT(binaries)];
        hwnas_graph *graph = hwnas_graph_new("weight", 1);
        int w;
        const int x = add_input(graph, cases[c].a);
        int64_t n = 1;
        for (int k = 0; k < cases[c].rank; k++)
            n *= cases[c].w[k];
        float *values = random_values(n, 3);
        ok(hwnas_graph_add_constant(&w, graph, "w", cases[c].rank, cases[c].w, values));
        free(values);
        hwnas_graph_add_output(graph, add(graph, op, "", is_first ? w : x, is_first ? x : w));
        agrees_and_is_fast(op, graph);
        hwnas_graph_free(graph);
    }
}

/* The result of a convolution, of which the channels come last. */
static int image_of(hwnas_graph *graph, const int64_t *dims)
{
    const int64_t in[] = {dims[0], 4, dims[2], dims[3]};
    return add(graph, "conv", dims[1] == 1 ? "out=1 kernel=1" : "out=24 kernel=1",
               add_input(graph, in), -1);
}

/* One operand or both are images, and what comes out is one or is not. */
static void images_may_be_repeated(void **state)
{
    (void)state;
    enum { WAYS = 27, HAS_PLAIN = 1, ENDS_PLAIN = 2, IS_TURNED = 4, FORMS = 8 };
    static const int64_t dims[] = {24, 6, 17};
    for (int i = 0; i < WAYS * FORMS; i++) {
        int64_t a[4] = {2}, b[4] = {2};
        const int form = i % FORMS;
        const char *op = binaries[i % 3]; /* no quotients by next to nothing */
        hwnas_graph *graph = hwnas_graph_new("images", 1);
        repeat(a + 1, b + 1, dims, 3, i / FORMS);
        const int image = image_of(graph, a);
        const int other = form & HAS_PLAIN ? add_input(graph, b) : image_of(graph, b);
        int x =
            add(graph, op, "", form & IS_TURNED ? other : image, form & IS_TURNED ? image : other);
        if (!(form & ENDS_PLAIN))
            x = add(graph, "conv", "out=8 kernel=3 pad=1", x, -1);
        hwnas_graph_add_output(graph, x);
        agrees_and_is_fast(op, graph);
        hwnas_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_for_each_row),
        cmocka_unit_test(rows_may_have_any_length),
        cmocka_unit_test(a_reshape_may_stand_between),
        cmocka_unit_test(a_sum_of_one_tensor_twice),
        cmocka_unit_test(a_sum_with_itself),
        cmocka_unit_test(masked_scores_vanish),
        cmocka_unit_test(operands_may_be_repeated_anywhere),
        cmocka_unit_test(images_are_not_read_as_rows),
        cmocka_unit_test(what_is_little_needs_no_partition),
        cmocka_unit_test(both_operands_may_be_repeated),
        cmocka_unit_test(an_operand_may_be_a_weight),
        cmocka_unit_test(images_may_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
