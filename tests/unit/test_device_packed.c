/* test_device_packed.c: products with weights of 4 or 8 bits, on `cpu` and in files, against
 * `ref`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/pack_weights.h"
#include "onnx/onnx.h"
#include "tests/unit/device_fixture.h"

enum { GROUP = HWNAS_PACKED_GROUP };

static hwnas_device *ref;

/* `linear`, or with a third dimension `matmul`, of so many vectors. */
static hwnas_graph *product(int64_t n_vectors, int64_t n_in, int64_t n_out, bool is_sequence)
{
    hwnas_graph *graph = hwnas_graph_new("product", (uint64_t)(n_vectors * n_in * n_out));
    const int64_t rows[4] = {n_vectors, n_in}, sequence[4] = {1, n_vectors, n_in};
    char attrs[32];
    snprintf(attrs, sizeof attrs, "out=%d", (int)n_out);
    const int x = add(graph, "linear", attrs, add_input(graph, is_sequence ? sequence : rows), -1);
    hwnas_graph_add_output(graph, add(graph, "silu", "", x, -1));
    return graph;
}

/* Fails unless both graphs give the same, but for the order of sums. */
static void expect_same(const char *what, const float *got, const float *wanted, int64_t n)
{
    float largest = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmaxf(largest, fabsf(wanted[i]));
        off = fmaxf(off, fabsf(got[i] - wanted[i]));
    }
    if (!(off <= 2e-5f * largest))
        fail_msg("%s: off by %g of %g", what, (double)off, (double)largest);
}

static void check(hwnas_device *cpu, const hwnas_graph *graph, int bits, const char *what)
{
    hwnas_graph *packed;
    int *origin;
    ok(hwnas_graph_pack_weights(&packed, &origin, graph, bits));
    float *wanted = outcome(ref, packed, 3);
    float *got = outcome_in(bits == 4 ? HWNAS_W4 : HWNAS_W8, cpu, graph, 3);
    float *same = outcome(cpu, packed, 3); /* as a file brings it */
    expect_same(what, got, wanted, count_outputs(graph));
    assert_memory_equal(same, got, (size_t)count_outputs(graph) * sizeof *got);
    free(wanted);
    free(got);
    free(same);
    free(origin);
    hwnas_graph_free(packed);
}

static void cpu_multiplies_what_ref_dequantizes(void **state)
{
    static const int64_t ins[] = {GROUP, 200, 37, 1}, outs[] = {16, 33, 1, 400};
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        hwnas_device *cpu = open_device("cpu", threads);
        for (int64_t n_vectors = 1; n_vectors <= 5; n_vectors++)
            for (size_t i = 0; i < COUNT(ins); i++)
                for (int k = 0; k < 4; k++) {
                    char what[80];
                    hwnas_graph *graph = product(n_vectors, ins[i], outs[i], k % 2);
                    snprintf(what, sizeof what, "%d vectors, %d x %d, %d bits, %d threads",
                             (int)n_vectors, (int)ins[i], (int)outs[i], k < 2 ? 4 : 8, threads);
                    check(cpu, graph, k < 2 ? 4 : 8, what);
                    hwnas_graph_free(graph);
                }
        hwnas_device_close(cpu);
    }
}

/* Half of a scale is the most that rounding takes off or adds: that follows from the definition. */
static void weights_are_rounded_by_half_a_scale(void **state)
{
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4) {
        hwnas_graph *graph = product(1, 200, 33, false), *packed, *unpacked;
        int *origin, *back, *from;
        ok(hwnas_graph_pack_weights(&packed, &origin, graph, bits));
        assert_true(hwnas_graph_has_packed(packed));
        ok(hwnas_graph_unpack_weights(&unpacked, &back, &from, packed));
        assert_false(hwnas_graph_has_packed(unpacked));
        const hwnas_tensor *kernel = hwnas_node_input(unpacked, &unpacked->nodes[0], 1);
        float *exact = malloc((size_t)hwnas_tensor_bytes(kernel));
        float *rounded = malloc((size_t)hwnas_tensor_bytes(kernel));
        hwnas_tensor_fill(kernel, rounded);
        hwnas_tensor_fill(hwnas_node_input(graph, &graph->nodes[0], 1), exact);
        for (int64_t o = 0; o < 33; o++)
            for (int64_t first = 0; first < 200; first += GROUP) {
                const int64_t end = first + GROUP < 200 ? first + GROUP : 200;
                float largest = 0;
                for (int64_t i = o * 200 + first; i < o * 200 + end; i++)
                    largest = fmaxf(largest, fabsf(exact[i]));
                const float half = largest / (float)((1 << (bits - 1)) - 1) / 2;
                for (int64_t i = o * 200 + first; i < o * 200 + end; i++)
                    assert_true(fabsf(rounded[i] - exact[i]) <= 1.0001f * half);
            }
        assert_int_equal(origin[packed->n_nodes - 1], (int)graph->n_nodes - 1);
        assert_int_equal(back[unpacked->n_nodes - 1], (int)packed->n_nodes - 1);
        free(exact);
        free(rounded);
        free(origin);
        free(back);
        free(from);
        hwnas_graph_free(unpacked);
        hwnas_graph_free(packed);
        hwnas_graph_free(graph);
    }
}

/* Whole numbers from `low` to `high`, with a zero point that is not in their middle, and with
 * `fraction` no whole number. */
static hwnas_graph *with_zeros(int64_t n_vectors, int low, int high, float fraction, int block)
{
    enum { IN = 96, OUT = 21, MOST_BLOCKS = 8 };
    const int64_t x_dims[4] = {n_vectors, IN}, dims[] = {OUT, IN}, per_block[] = {OUT, IN / block};
    static float codes[OUT * IN], scales[OUT * MOST_BLOCKS], zeros[OUT * MOST_BLOCKS];
    hwnas_graph *graph = hwnas_graph_new("zeros", 1);
    int inputs[3], kernel, y;
    const int x = add_input(graph, x_dims);
    for (int i = 0; i < OUT * IN; i++)
        codes[i] = (float)(low + i * 37 % (high - low + 1));
    for (int i = 0; i < OUT * IN / block; i++) {
        scales[i] = 0.01f * (float)(1 + i % 7);
        zeros[i] = (float)(low + i % 5) + fraction;
    }
    ok(hwnas_graph_add_constant(&inputs[0], graph, "codes", 2, dims, codes));
    ok(hwnas_graph_add_constant(&inputs[1], graph, "scales", 2, per_block, scales));
    ok(hwnas_graph_add_constant(&inputs[2], graph, "zeros", 2, per_block, zeros));
    graph->tensors[inputs[0]].dtype = HWNAS_INT8;
    if (fraction == 0)
        graph->tensors[inputs[2]].dtype = HWNAS_INT8;
    const hwnas_attr attrs[] = {hwnas_attr_int(1), hwnas_attr_int(block)};
    ok(hwnas_graph_add_node(&kernel, graph, hwnas_ops[HWNAS_OP_DEQUANTIZE_LINEAR], "kernel", attrs,
                            3, inputs, false));
    const hwnas_attr out[] = {hwnas_attr_int(OUT), hwnas_attr_int(0)};
    ok(hwnas_graph_add_node(&y, graph, hwnas_ops[HWNAS_OP_LINEAR], "product", out, 2,
                            (int[]){x, kernel}, false));
    hwnas_graph_add_output(graph, y);
    return graph;
}

static void zero_points_count(void **state)
{
    static const int ranges[][2] = {{-8, 7}, {-128, 127}, {-128, 100}};
    (void)state;
    hwnas_device *cpu = open_device("cpu", 1);
    for (size_t k = 0; k < 2 * COUNT(ranges); k++) {
        const size_t i = k / 2;
        hwnas_graph *graph =
            with_zeros(k % 2 ? 70 : 2, ranges[i][0], ranges[i][1], i ? 0 : 0.3f, 32);
        float *got = outcome(cpu, graph, 5), *wanted = outcome(ref, graph, 5);
        expect_same("zero points", got, wanted, count_outputs(graph));
        free(got);
        free(wanted);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

/* Reads a written graph again: it must give the same, and have packed weights if `is_packed`. */
static void check_file(const hwnas_graph *graph, hwnas_onnx_weights how, bool is_packed)
{
    hwnas_graph *read;
    void *bytes;
    size_t length;
    ok(hwnas_onnx_write(&bytes, &length, graph, how));
    ok(hwnas_onnx_read(&read, "packed", bytes, length));
    assert_int_equal(hwnas_graph_has_packed(read), is_packed);
    if (how == HWNAS_ONNX_SEEDS)
        assert_int_equal(read->n_nodes, graph->n_nodes);
    float *got = outcome(ref, read, 7), *wanted = outcome(ref, graph, 7);
    expect_same("read again", got, wanted, count_outputs(graph)); /* a bias is added last */
    free(got);
    free(wanted);
    free(bytes);
    hwnas_graph_free(read);
}

/* A file has the same numbers in another order; for our own runner it has the same nodes. */
static void files_keep_every_weight(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        hwnas_graph *plain = product(2, i < 2 ? 200 : 64, 33, i % 2), *graph;
        int *origin;
        ok(hwnas_graph_pack_weights(&graph, &origin, plain, i < 2 ? 4 : 8));
        check_file(graph, HWNAS_ONNX_SEEDS, true);
        check_file(graph, HWNAS_ONNX_VALUES, true);
        free(origin);
        hwnas_graph_free(plain);
        hwnas_graph_free(graph);
    }
}

static void files_keep_every_zero_point(void **state)
{
    static const struct {
        int low, high, block;
        float fraction;
        bool is_packed; /* MatMulNBits can say it */
    } rows[] = {{-8, 7, 32, 0, true},      {-128, 127, 32, 0, true}, {-8, 7, 32, 0.3f, true},
                {-128, 127, 32, 0.3f, true}, {-8, 7, 24, 0, false},    {-8, 3, 12, 0.3f, false}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph =
            with_zeros(2, rows[i].low, rows[i].high, rows[i].fraction, rows[i].block);
        check_file(graph, HWNAS_ONNX_SEEDS, true);
        check_file(graph, HWNAS_ONNX_VALUES, rows[i].is_packed);
        hwnas_graph_free(graph);
    }
}

/* Scales along the results, and scales that the network is given: no packed weights, but right. */
static void other_blocks_are_no_packed_weights(void **state)
{
    enum { IN = 16, OUT = 64 };
    static const int64_t x_dims[4] = {1, IN}, dims[] = {IN, OUT}, scale_dims[4] = {IN, 1},
                         given_dims[4] = {1, OUT};
    static float codes[IN * OUT], scales[IN];
    (void)state;
    hwnas_device *cpu = open_device("cpu", 1);
    for (int i = 0; i < IN * OUT; i++)
        codes[i] = (float)(i * 37 % 15 - 7);
    for (int i = 0; i < IN; i++)
        scales[i] = 0.01f * (float)(1 + i);
    for (int is_given = 0; is_given < 2; is_given++) {
        hwnas_graph *graph = hwnas_graph_new("other", 1);
        int inputs[2], kernel, y;
        const int x = add_input(graph, x_dims);
        ok(hwnas_graph_add_constant(&inputs[0], graph, "codes", 2, dims, codes));
        graph->tensors[inputs[0]].dtype = HWNAS_INT8;
        if (is_given)
            inputs[1] = add_input(graph, given_dims);
        else
            ok(hwnas_graph_add_constant(&inputs[1], graph, "scales", 2, scale_dims, scales));
        const hwnas_attr attrs[] = {hwnas_attr_int(!is_given), hwnas_attr_int(64)};
        ok(hwnas_graph_add_node(&kernel, graph, hwnas_ops[HWNAS_OP_DEQUANTIZE_LINEAR], "kernel",
                                attrs, 2, inputs, false));
        ok(hwnas_graph_add_node(&y, graph, hwnas_ops[HWNAS_OP_MATMUL], "product", NULL, 2,
                                (int[]){x, kernel}, false));
        hwnas_graph_add_output(graph, y);
        assert_false(hwnas_graph_has_packed(graph));
        float *got = outcome(cpu, graph, 5), *wanted = outcome(ref, graph, 5);
        expect_same("other blocks", got, wanted, count_outputs(graph));
        check_file(graph, HWNAS_ONNX_SEEDS, false);
        free(got);
        free(wanted);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

/* So small that their scale would be 0. */
static void smallest_weights_stay_finite(void **state)
{
    (void)state;
    hwnas_graph *graph = product(1, 64, 16, false), *packed;
    int *origin;
    float *weights = malloc(64 * 16 * sizeof *weights);
    for (int i = 0; i < 64 * 16; i++)
        weights[i] = 1e-45f;
    graph->tensors[graph->nodes[0].inputs[1]].data = weights;
    ok(hwnas_graph_pack_weights(&packed, &origin, graph, 8));
    float *got = outcome(ref, packed, 1);
    for (int64_t i = 0; i < count_outputs(packed); i++)
        assert_true(isfinite(got[i]));
    free(got);
    free(origin);
    free(weights);
    hwnas_graph_free(packed);
    hwnas_graph_free(graph);
}

/* Of one vector and of many, as a prompt has them. */
static void an_executable_keeps_its_weights_packed(void **state)
{
    enum { IN = 512, OUT = 640, N = IN * OUT };
    (void)state;
    hwnas_device *cpu = open_device("cpu", 2);
    for (int k = 0; k < 4; k++) {
        const hwnas_exec_options options = {.precision = k % 2 ? HWNAS_W4 : HWNAS_W8};
        const int bits = k % 2 ? 4 : 8;
        hwnas_graph *graph = product(k < 2 ? 1 : 32, IN, OUT, false);
        hwnas_exec *exec;
        ok(hwnas_device_compile(&exec, cpu, graph, &options));
        const size_t panels = k < 2 ? 0 : (size_t)2 * IN * 64 * sizeof(float); /* one a thread */
        const size_t vectors = (k < 2 ? 1 : 32) * (size_t)(IN + 2 * OUT) * sizeof(float);
        assert_in_range(cpu->ops->memory(exec), N * bits / 8,
                        N * bits / 8 + N / 8 + panels + 2 * vectors);
        hwnas_exec_free(exec);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

static size_t allocated(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* In the graph, in the one whose weights are floats when they are read, and in one that a file
 * brings: all is less than the floats alone would take. (An arena asks for up to twice as much as
 * it has next.) Files have one byte or half a byte a weight, and a float for each group. */
static void weights_are_bytes_and_no_floats(void **state)
{
    enum { IN = 1024, OUT = 2048, N = IN * OUT };
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4) {
        hwnas_graph *graph = product(1, IN, OUT, bits == 8), *packed, *unpacked, *read;
        int *origin;
        void *file;
        size_t length;
        const size_t before = allocated();
        ok(hwnas_graph_pack_weights(&packed, &origin, graph, bits));
        const size_t with_packed = allocated();
        assert_in_range(with_packed - before, 0, 4 * N - 1);
        ok(hwnas_graph_unpack_weights(&unpacked, NULL, NULL, packed));
        assert_in_range(allocated() - with_packed, 0, N);
        ok(hwnas_onnx_write(&file, &length, packed, HWNAS_ONNX_SEEDS));
        assert_in_range(length, N, N + N / 8);
        free(file);
        ok(hwnas_onnx_write(&file, &length, packed, HWNAS_ONNX_VALUES));
        assert_in_range(length, N * bits / 8, N * bits / 8 + N / 8);
        const size_t with_file = allocated();
        ok(hwnas_onnx_read(&read, "packed", file, length));
        assert_in_range(allocated() - with_file, 0, 4 * N - 1);
        free(file);
        free(origin);
        hwnas_graph_free(read);
        hwnas_graph_free(unpacked);
        hwnas_graph_free(packed);
        hwnas_graph_free(graph);
    }
}

static int open_ref(void **state)
{
    (void)state;
    ref = open_device("ref", 1);
    return 0;
}

static int close_ref(void **state)
{
    (void)state;
    hwnas_device_close(ref);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_multiplies_what_ref_dequantizes),
        cmocka_unit_test(weights_are_rounded_by_half_a_scale),
        cmocka_unit_test(zero_points_count),
        cmocka_unit_test(files_keep_every_weight),
        cmocka_unit_test(files_keep_every_zero_point),
        cmocka_unit_test(other_blocks_are_no_packed_weights),
        cmocka_unit_test(smallest_weights_stay_finite),
        cmocka_unit_test(weights_are_bytes_and_no_floats),
        cmocka_unit_test(an_executable_keeps_its_weights_packed),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_ref, close_ref);
}
