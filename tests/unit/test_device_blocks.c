/* test_device_blocks.c: small networks on `cpu` against `ref`: what once came out wrong, and its
 * relatives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "graph/op.h"
#include "tests/unit/device_fixture.h"

/* Builds a space that is written as text, which has one network. */
static hwnas_graph *network(const char *text, int batch)
{
    hwnas_space *space = NULL;
    hwnas_graph *graph = NULL, *folded = NULL;
    ok(hwnas_space_parse(&space, "text", text, strlen(text), NULL));
    ok(hwnas_graph_check(space));
    hwnas_arch *arch = hwnas_arch_new(space);
    ok(hwnas_graph_build(&graph, arch, batch));
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return folded;
}

/* At batch 1 and 2; rows.c takes few vectors, so some cases have many. */
static void agrees(const char *input, const char *statements)
{
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (int batch = 1; batch <= 2; batch++) {
        char text[4096];
        snprintf(text, sizeof text, "hwnas: 1\nname: block\ninput: %s\n%s", input, statements);
        hwnas_graph *graph = network(text, batch);
        compare(statements, cpu, graph, ref, graph, 1);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* ---- Biases ---- */

/* W = 0, b = 10, then 1 is added. */
static void a_constant_does_not_take_the_place_of_a_bias(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 9};
    hwnas_device *cpu = open_device("cpu", 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const int64_t dims[] = {rows[i], 4, 0}, w_dims[] = {2, 4}, b_dims[] = {2};
        const float w[8] = {0}, b[] = {10, 20}, more[] = {1, 2};
        hwnas_graph *graph = hwnas_graph_new("bias", 1);
        int inputs[3], constant, out;
        inputs[0] = add_input(graph, dims);
        ok(hwnas_graph_add_constant(&inputs[1], graph, "w", 2, w_dims, w));
        ok(hwnas_graph_add_constant(&inputs[2], graph, "b", 1, b_dims, b));
        ok(hwnas_graph_add_constant(&constant, graph, "more", 1, b_dims, more));
        ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("linear"), "linear", NULL, 3, inputs,
                                false));
        hwnas_graph_add_output(graph, add(graph, "add", "", out, constant));
        float *got = outcome(cpu, graph, 1);
        for (int64_t k = 0; k < rows[i]; k++) {
            assert_true(got[2 * k] == 11);
            assert_true(got[2 * k + 1] == 22);
        }
        free(got);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

static void biases_and_constants_add_up(void **state)
{
    (void)state;
    static const char *const constants[] = {"[6]", "[1, 6]", "[1]", "[5, 6]", "[5, 1]"};
    for (size_t i = 0; i < COUNT(constants); i++)
        for (int has_bias = 0; has_bias < 2; has_bias++)
            for (int is_function = 0; is_function < 2; is_function++) {
                char text[512];
                snprintf(text, sizeof text,
                         "network:\n  - linear: {out: 6, bias: %s}\n%s"
                         "  - add:\n      - []\n      - - weight: {shape: %s}\n",
                         has_bias ? "true" : "false", is_function ? "  - tanh\n" : "",
                         constants[i]);
                agrees("{x: [5, 9]}", text);
                snprintf(text, sizeof text,
                         "network:\n  - flatten\n  - linear: {out: 6, bias: %s}\n%s"
                         "  - add:\n      - []\n      - - weight: {shape: %s}\n",
                         has_bias ? "true" : "false", is_function ? "  - tanh\n" : "",
                         i < 3 ? constants[i] : "[6]");
                agrees("{x: [5, 9]}", text);
            }
}

/* From one vector to one more than rows.c takes; results that are no multiple of what it makes at a
 * time, and what may be behind them. */
static void few_vectors_times_a_matrix(void **state)
{
    (void)state;
    static const int lengths[] = {1, 6, 33}, widths[] = {1, 16, 37};
    static const char *const functions[] = {"relu", "gelu", "silu", "tanh"};
    for (int vectors = 1; vectors <= 5; vectors++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            for (size_t k = 0; k < COUNT(widths); k++) {
                char input[64], text[512];
                snprintf(input, sizeof input, "{x: [%d, %d]}", vectors, lengths[i]);
                snprintf(text, sizeof text,
                         "network:\n  - add:\n      - - linear: {out: %d}\n        - %s\n"
                         "      - - linear: {out: %d, bias: false}\n"
                         "  - mul:\n      - [linear: {out: %d}]\n      - []\n",
                         widths[k], functions[(i + k) % COUNT(functions)], widths[k], widths[k]);
                agrees(input, text);
            }
}

/* A bias that the network computes is not a weight. */
static void a_bias_may_be_an_activation(void **state)
{
    (void)state;
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    const int64_t dims[] = {7, 5, 0}, w_dims[] = {3, 5}, b_dims[] = {3, 0};
    hwnas_graph *graph = hwnas_graph_new("bias", 1);
    int inputs[3], out;
    inputs[0] = add_input(graph, dims);
    inputs[2] = add(graph, "tanh", "", add_input(graph, b_dims), -1);
    ok(hwnas_graph_add_weight(&inputs[1], graph, "w", 2, w_dims, HWNAS_INIT_FAN_IN, true));
    ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("linear"), "linear", NULL, 3, inputs,
                            false));
    hwnas_graph_add_output(graph, out);
    compare("linear with a bias that is computed", cpu, graph, ref, graph, 1);
    hwnas_graph_free(graph);
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* ---- Images ---- */

static void slices_of_images_reach_what_is_no_image(void **state)
{
    (void)state;
    static const char *const slices[] = {
        "{begin: 2, end: 6}",
        "{begin: 1, axis: 2, end: 5}",
        "{begin: -4, axis: 3}",
        "{begin: 1, axis: 1, step: 3}",
    };
    static const char *const readers[] = {
        "  - flatten\n  - linear: {out: 10}\n",
        "  - mean: {axes: [2, 3]}\n",
        "  - mean: {axes: 1, keep: true}\n",
        "  - transpose: {order: [0, 2, 3, 1]}\n",
        "  - softmax: {axis: 1}\n",
        "  - softmax\n",
        "  - reshape: {shape: [-1]}\n",
        "",
        "  - slice: {begin: 1}\n",
        "  - slice: {begin: 1}\n  - flatten\n",
        "  - relu\n  - slice: {begin: 1}\n  - conv: {out: 4}\n",
        "  - add:\n      - [mean: {axes: 1, keep: true}]\n      - [conv: {out: 3}]\n",
        "  - concat:\n      - [slice: {end: 1}, flatten]\n      - [slice: {begin: 1}, flatten]\n",
    };
    for (size_t s = 0; s < COUNT(slices); s++)
        for (size_t r = 0; r < COUNT(readers); r++) {
            char text[512];
            snprintf(text, sizeof text,
                     "network:\n  - conv: {out: 8, kernel: 3, pad: 1}\n  - slice: %s\n%s",
                     slices[s], readers[r]);
            agrees("{image: [5, 7, 6]}", text);
        }
}

/* Two slices of one image, of which one alone goes on as an image. */
static void halves_of_an_image_go_their_ways(void **state)
{
    (void)state;
    agrees("{image: [5, 7, 6]}", "network:\n"
                                 "  - conv: {out: 8, kernel: 3, pad: 1}\n"
                                 "  - as: x\n"
                                 "  - slice: {end: 4}\n"
                                 "  - slice: {begin: 1, axis: 2}\n"
                                 "  - conv: {out: 4}\n"
                                 "  - flatten\n"
                                 "  - as: a\n"
                                 "  - from: x\n"
                                 "  - slice: {begin: 4}\n"
                                 "  - flatten\n"
                                 "  - concat: [[], [from: a]]\n");
}

/* A learned tensor, with as many dimensions as there are before a 0. */
static int weight_of(hwnas_graph *graph, const int64_t *dims, const char *name)
{
    int rank = 0, out = -1;
    while (rank < 4 && dims[rank])
        rank++;
    ok(hwnas_graph_add_weight(&out, graph, name, rank, dims, HWNAS_INIT_NEAR_ONE, true));
    return out;
}

static void images_take_operands_of_every_rank(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {0},       {1},       {6},       {7, 6}, {7, 1},       {8, 7, 6},    {8, 1, 1},   {8, 7, 1},
        {8, 1, 6}, {1, 7, 6}, {1, 1, 6}, {1, 6}, {1, 8, 7, 6}, {2, 8, 1, 1}, {2, 8, 7, 6}};
    static const char *const joins[] = {"add", "mul", "sub", "div"};
    static const char *const makers[][2] = {{"conv", "out=8"}, {"max_pool", "kernel=1"}};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (size_t i = 0; i < COUNT(shapes) * COUNT(makers) * COUNT(joins) * 4; i++) {
        const bool is_first = i % 2, goes_on = i / 2 % 2;
        const char *const *maker = makers[i / 4 % COUNT(makers)];
        const char *join = joins[i / 4 / COUNT(makers) % COUNT(joins)];
        const int64_t *shape = shapes[i / 4 / COUNT(makers) / COUNT(joins)], dims[] = {2, 8, 7, 6};
        hwnas_graph *graph = hwnas_graph_new("operands", i);
        int x = add(graph, maker[0], maker[1], add_input(graph, dims), -1);
        const int operand = weight_of(graph, shape, "operand");
        if (!strcmp(join, "div") && is_first)
            x = add(graph, "sigmoid", "", x, -1); /* not near zero */
        x = is_first ? add(graph, join, "", operand, x) : add(graph, join, "", x, operand);
        x = goes_on ? add(graph, "conv", "out=3 kernel=3", x, -1) : add(graph, "relu", "", x, -1);
        hwnas_graph_add_output(graph, x);
        char what[96];
        snprintf(what, sizeof what, "case %zu: %s behind %s", i, join, maker[0]);
        compare(what, cpu, graph, ref, graph, 1);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* ---- Attention ---- */

#define ATTENTION                                                                                  \
    "templates:\n"                                                                                 \
    "  heads:\n"                                                                                   \
    "    - linear: {out: in}\n"                                                                    \
    "    - reshape: {shape: [10, 3, 8]}\n"                                                         \
    "    - transpose: {order: [0, 2, 1, 3]}\n"                                                     \
    "  attention:\n"                                                                               \
    "    - as: t\n"                                                                                \
    "    - heads\n"                                                                                \
    "    - transpose: {order: [0, 1, 3, 2]}\n"                                                     \
    "    - as: k\n"                                                                                \
    "    - from: t\n"                                                                              \
    "    - heads\n"                                                                                \
    "    - as: v\n"                                                                                \
    "    - from: t\n"                                                                              \
    "    - heads\n"                                                                                \
    "    - matmul: [[], [from: k]]\n"                                                              \
    "    - softmax\n"                                                                              \
    "    - matmul: [[], [from: v]]\n"                                                              \
    "    - transpose: {order: [0, 2, 1, 3]}\n"                                                     \
    "    - reshape: {shape: [-1, 24]}\n"                                                           \
    "    - linear: {out: 24}\n"

static void sums_behind_norms_stay(void **state)
{
    (void)state;
    static const char *const blocks[] = {
        "  - residual: [attention, layer_norm]\n",
        "  - residual: [attention, layer_norm: {bias: false}]\n",
        "  - add:\n      - [attention, layer_norm]\n      - [linear: {out: 24}, layer_norm]\n",
        "  - residual: [layer_norm, attention, layer_norm]\n  - layer_norm\n",
        "  - residual: [attention, layer_norm, relu]\n",
        "  - residual: [attention, layer_norm, tanh, scale: {by: 0.5}]\n",
        ("  - attention\n  - layer_norm\n  - add:\n      - []\n"
         "      - - weight: {shape: [10, 24]}\n"),
        "  - attention\n  - layer_norm\n  - add:\n      - []\n      - - weight: {shape: [24]}\n",
        "  - residual: [attention, layer_norm]\n  - residual: [linear: {out: 24}, layer_norm]\n",
    };
    for (size_t i = 0; i < COUNT(blocks); i++) {
        char text[2048];
        snprintf(text, sizeof text, "%snetwork:\n%s", ATTENTION, blocks[i]);
        agrees("{x: [10, 24]}", text);
    }
}

/* Softmax of q k' with something added, times v; `is_weight`: what is added is not an input. */
static hwnas_graph *biased_attention(const int64_t *shape, bool is_weight, bool is_scaled)
{
    const int64_t q_dims[] = {2, 3, 10, 8}, k_dims[] = {2, 3, 8, 10};
    hwnas_graph *graph = hwnas_graph_new("attention", 1);
    const int q = add_input(graph, q_dims), k = add_input(graph, k_dims);
    const int v = add_input(graph, q_dims);
    int scores = add(graph, "matmul", "", q, k);
    if (is_scaled)
        scores = add(graph, "scale", "by=0.25", scores, -1);
    const int bias = is_weight ? weight_of(graph, shape, "operand")
                               : add(graph, "sigmoid", "", add_input(graph, shape), -1);
    const int sum = add(graph, "add", "", scores, bias);
    int x = add(graph, "matmul", "", add(graph, "softmax", "", sum, -1), v);
    x = add(graph, "transpose", "order=0,2,1,3", x, -1);
    hwnas_graph_add_output(graph, add(graph, "reshape", "shape=10,24", x, -1));
    return graph;
}

static void attention_takes_a_bias_of_every_rank(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {1},           {10},           {10, 10},       {10, 1},
        {1, 10},       {3, 10, 10},    {3, 1, 10},     {3, 1, 1},
        {1, 10, 10},   {3, 10, 1},     {2, 3, 10, 10}, {1, 3, 10, 10},
        {2, 1, 1, 10}, {2, 1, 10, 10}, {1, 1, 10, 10}, {2, 3, 1, 10},
        {2, 3, 1, 1},
    };
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (size_t i = 0; i < COUNT(shapes) * 4; i++) {
        hwnas_graph *graph = biased_attention(shapes[i / 4], i % 2, i / 2 % 2);
        char what[96];
        snprintf(what, sizeof what, "attention, case %zu", i);
        compare(what, cpu, graph, ref, graph, 1);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* The step that a node is in. */
static const hwnas_exec_step *step_of(hwnas_exec *exec, const hwnas_graph *graph, hwnas_op_id op)
{
    const hwnas_exec_step *steps, *found = NULL;
    for (size_t i = 0, n = exec->ops->steps(exec, &steps); i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            if (graph->nodes[steps[i].nodes[k]].op->id == op)
                found = &steps[i];
    assert_non_null(found);
    return found;
}

/* One head of images: its result is turned, then reshaped. In one partition with both oneDNN would
 * compute the attention by its reference code, 400 times slower. */
static void a_reshape_behind_turned_attention_stays_outside(void **state)
{
    (void)state;
    static const struct {
        const char *order, *shape;
    } cases[] = {{"order=0,2,1", "shape=4,8,9"}, {"order=2,0,1", "shape=2,8,9"}};
    const int64_t q_dims[] = {2, 72, 4, 0}, k_dims[] = {2, 4, 72, 0};
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        const bool is_scaled = i % 2;
        hwnas_graph *graph = hwnas_graph_new("turned", 1);
        hwnas_exec *exec;
        int x = add(graph, "matmul", "", add_input(graph, q_dims), add_input(graph, k_dims));
        if (is_scaled)
            x = add(graph, "mul", "", x, add_input(graph, (int64_t[]){1, 0}));
        x = add(graph, "softmax", "", x, -1);
        x = add(graph, "matmul", "", x, add_input(graph, q_dims));
        x = add(graph, "transpose", cases[i / 2].order, x, -1);
        hwnas_graph_add_output(graph, add(graph, "reshape", cases[i / 2].shape, x, -1));
        hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
        compare(cases[i / 2].order, cpu, graph, ref, graph, 1);
        ok(hwnas_device_compile(&exec, cpu, graph, NULL));
        assert_ptr_not_equal(step_of(exec, graph, HWNAS_OP_RESHAPE),
                             step_of(exec, graph, HWNAS_OP_MATMUL));
        hwnas_exec_free(exec);
        hwnas_device_close(cpu);
        hwnas_device_close(ref);
        hwnas_graph_free(graph);
    }
}

/* ---- bf16 ---- */

/* In a precision that the processor may lack: within some roundings of the largest value. */
static void check_in(hwnas_precision precision, const char *what, const hwnas_graph *graph)
{
    const double limit = 0.04;
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    hwnas_device_info info;
    cpu->ops->describe(cpu, &info);
    if ((info.native | info.emulated) & 1U << precision) {
        const int64_t n = count_outputs(graph);
        float *wanted = outcome(ref, graph, 0), *got = outcome_in(precision, cpu, graph, 0);
        double largest = 0, error = 0;
        for (int64_t i = 0; i < n; i++) {
            largest = fmax(largest, fabs((double)wanted[i]));
            error = fmax(error, fabs((double)wanted[i] - got[i]));
        }
        if (!(error <= limit * largest))
            fail_msg("%s in %s: off by %g of %g", what, hwnas_precision_name(precision), error,
                     largest);
        free(got);
        free(wanted);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* Here oneDNN's graphs do everything. */
static void check_bf16(const char *what, const hwnas_graph *graph)
{
    check_in(HWNAS_BF16, what, graph);
}

static void what_bf16_must_not_fuse(void **state)
{
    (void)state;
    static const char *const blocks[] = {
        "  - residual:\n      - avg_pool: {kernel: 3, pad: 1}\n",
        "  - residual:\n      - max_pool: {kernel: 3, pad: 1}\n",
        "  - conv: {out: 3}\n  - residual: [sigmoid]\n",
        "  - relu\n  - residual: [sigmoid]\n  - mul: [[], [tanh]]\n",
        "  - conv: {out: 1}\n  - conv: {out: 1, kernel: 3, pad: 1}\n",
        "  - conv: {out: 8}\n  - relu\n  - conv: {out: 8, kernel: 3, pad: 1, groups: 8}\n",
        ("  - softmax: {axis: 1}\n  - sub:\n      - []\n      - - weight: {shape: [6, 1, 1]}\n"
         "        - sigmoid\n"),
    };
    for (size_t i = 0; i < COUNT(blocks); i++) {
        char text[512];
        snprintf(text, sizeof text, "hwnas: 1\nname: b\ninput: {image: [6, 5, 7]}\nnetwork:\n%s",
                 blocks[i]);
        hwnas_graph *graph = network(text, 2);
        check_bf16(blocks[i], graph);
        hwnas_graph_free(graph);
    }
}

/* A product of rows, all dimensions but the last being one, with an operand that repeats some. */
static void bf16_products_of_rows_take_operands(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {
        {3, 1, 1, 16}, {4, 1, 16}, {1, 4, 1, 1}, {16}, {3, 4, 2, 16}};
    for (size_t i = 0; i < COUNT(shapes) * 2; i++) {
        const int64_t dims[] = {3, 4, 2, 5}, matrix[4] = {5, 16};
        hwnas_graph *graph = hwnas_graph_new("rows", i);
        int x = add(graph, "matmul", "", add_input(graph, dims), weight_of(graph, matrix, "w"));
        x = i % 2 ? add(graph, "relu", "", x, -1) : x;
        x = add(graph, "add", "", x, weight_of(graph, shapes[i / 2], "operand"));
        hwnas_graph_add_output(graph, x);
        check_bf16("rows", graph);
        hwnas_graph_free(graph);
    }
}

/* A sum behind a difference, with an operand that is repeated. */
static void bf16_sums_take_operands(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{9, 1}, {1, 1}, {3, 1, 1}, {3, 9, 1}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const int64_t dims[4] = {3, 9, 1};
        hwnas_graph *graph = hwnas_graph_new("sums", i);
        int x = add_input(graph, dims);
        x = add(graph, "sub", "", x, weight_of(graph, dims, "w"));
        hwnas_graph_add_output(graph, add(graph, "add", "", x, weight_of(graph, shapes[i], "v")));
        check_bf16("sums", graph);
        hwnas_graph_free(graph);
    }
}

/* Bytes made of floats and back, for a convolution with a kernel of floats. */
static void bf16_takes_bytes_that_meet_floats(void **state)
{
    (void)state;
    static const char *const readers[][2] = {{"conv", "out=8 kernel=3 pad=1"},
                                             {"zero", "stride=2"}};
    for (size_t i = 0; i < COUNT(readers); i++) {
        const int64_t dims[] = {2, 8, 5, 7};
        const float scale = 0.02F, zero = 128;
        hwnas_attr axis[2] = {{.is_set = true, .n = 1}};
        hwnas_graph *graph = hwnas_graph_new("bytes", i);
        int inputs[3] = {add_input(graph, dims)}, x;
        ok(hwnas_graph_add_constant(&inputs[1], graph, "scale", 0, dims, &scale));
        ok(hwnas_graph_add_constant(&inputs[2], graph, "zero", 0, dims, &zero));
        graph->tensors[inputs[2]].dtype = HWNAS_UINT8;
        ok(hwnas_graph_add_node(&inputs[0], graph, hwnas_op_by_name("quantize_linear"), "q", axis,
                                3, inputs, false));
        ok(hwnas_graph_add_node(&x, graph, hwnas_op_by_name("dequantize_linear"), "r", axis, 3,
                                inputs, false));
        hwnas_graph_add_output(graph, add(graph, readers[i][0], readers[i][1], x, -1));
        check_bf16("bytes", graph);
        hwnas_graph_free(graph);
    }
}

/* oneDNN gives the partition of an attention whose scores others read, too, behind what reads its
 * result. */
static void partitions_run_behind_what_they_read(void **state)
{
    (void)state;
    static const int64_t rows[] = {2, 1, 7, 16}, columns[] = {2, 1, 16, 7}, w_dims[] = {7, 33};
    hwnas_graph *graph = hwnas_graph_new("shared scores", 1);
    int w;
    ok(hwnas_graph_add_weight(&w, graph, "w", 2, w_dims, HWNAS_INIT_FAN_IN, true));
    int x = add(graph, "matmul", "", add_input(graph, rows), add_input(graph, columns));
    const int scores = add(graph, "scale", "by=0.35", x, -1);
    x = add(graph, "matmul", "", add(graph, "softmax", "", scores, -1), add_input(graph, rows));
    x = add(graph, "transpose", "order=0,2,1,3", x, -1);
    x = add(graph, "reshape", "shape=7,16", x, -1);
    hwnas_graph_add_output(graph, add(graph, "slice", "begin=4 end=14 axis=2 step=1", x, -1));
    x = add(graph, "matmul", "", add(graph, "softmax", "axis=1", scores, -1), w);
    hwnas_graph_add_output(graph, add(graph, "transpose", "order=0,2,1,3", x, -1));
    check_bf16("attention whose scores are shared", graph);
    hwnas_graph_free(graph);
}

/* ---- Convolutions that make one column ---- */

static void convolutions_make_columns(void **state)
{
    (void)state;
    static const struct column {
        int64_t dims[4];
        const char *attrs;
    } columns[] = {
        {{2, 1, 9, 1}, "out=17 kernel=3 pad=1 stride=2"},
        {{3, 4, 12, 1}, "out=17 kernel=3 pad=1 stride=2"},
        {{3, 1, 11, 1}, "out=24 kernel=2 pad=0,0,0,1 stride=1,3"},
        {{2, 23, 9, 1}, "out=18 kernel=3,2 pad=1,0,1,1 stride=1,2"},
        {{3, 10, 27, 5}, "out=14 kernel=6 pad=3,1,3,1 stride=4"},
        {{4, 3, 30, 5}, "out=36 kernel=3 pad=1,0,1,0 stride=3 dilation=2"},
        {{4, 34, 39, 4}, "out=15 kernel=3 stride=4"}, /* the last column is not read */
        {{4, 4, 10, 4}, "out=16 kernel=2,3 pad=0,1,0,0 stride=1,3"},
        {{2, 6, 21, 4}, "out=6 kernel=3 stride=2 groups=2"},
        {{2, 6, 21, 4}, "out=6 kernel=3 stride=2 groups=6"},
        {{2, 6, 21, 2}, "out=6 stride=2"},
        {{3, 78, 21, 1}, "out=2 kernel=3,1 pad=1,0,0,0"},
        {{1, 58, 3, 1}, "out=20 kernel=4,1 pad=1,0,3,0 stride=2"},
        {{3, 40, 23, 3}, "out=2 kernel=3,1 pad=0,0,2,0 stride=2,3"},
    };
    for (size_t i = 0; i < COUNT(columns) * HWNAS_N_PRECISIONS; i++) {
        const struct column *c = &columns[i / HWNAS_N_PRECISIONS];
        hwnas_graph *graph = hwnas_graph_new("column", i);
        hwnas_graph_add_output(graph, add(graph, "conv", c->attrs, add_input(graph, c->dims), -1));
        check_in((hwnas_precision)(i % HWNAS_N_PRECISIONS), c->attrs, graph);
        hwnas_graph_free(graph);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_does_not_take_the_place_of_a_bias),
        cmocka_unit_test(biases_and_constants_add_up),
        cmocka_unit_test(few_vectors_times_a_matrix),
        cmocka_unit_test(a_bias_may_be_an_activation),
        cmocka_unit_test(slices_of_images_reach_what_is_no_image),
        cmocka_unit_test(halves_of_an_image_go_their_ways),
        cmocka_unit_test(images_take_operands_of_every_rank),
        cmocka_unit_test(sums_behind_norms_stay),
        cmocka_unit_test(attention_takes_a_bias_of_every_rank),
        cmocka_unit_test(a_reshape_behind_turned_attention_stays_outside),
        cmocka_unit_test(what_bf16_must_not_fuse),
        cmocka_unit_test(bf16_products_of_rows_take_operands),
        cmocka_unit_test(bf16_sums_take_operands),
        cmocka_unit_test(bf16_takes_bytes_that_meet_floats),
        cmocka_unit_test(partitions_run_behind_what_they_read),
        cmocka_unit_test(convolutions_make_columns),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
