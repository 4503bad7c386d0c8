/* test_parts.c: the walk that forms groups; the cut of a graph into parts: what makes two parts the
 * same, and that they are what oneDNN fuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "graph/elaborate.h"
#include "graph/fusion.h"
#include "graph/op.h"
#include "graph/parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const spaces[] = {"nas_bench_201", "ofa_mobilenet_v3", "accel_nasbench",
                                     "vit",           "yolo_like",        "lstm_text"};

static hwnas_graph *random_graph(const hwnas_space *space, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, 0);
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_graph *graph;
    hwnas_arch_sample(arch, &rng);
    assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
    hwnas_arch_free(arch);
    return graph;
}

/* BatchNorm, dropout and sums with zeros do not show, and the nodes of the folded graph are known.
 */
static void same_when_folded(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(spaces); s++) {
        hwnas_space *space;
        assert_int_equal(hwnas_graph_load_space(&space, spaces[s]), HWNAS_OK);
        for (uint64_t seed = 0; seed < 5; seed++) {
            hwnas_graph *raw = random_graph(space, seed), *folded;
            hwnas_parts a = {0}, b = {0};
            assert_int_equal(hwnas_graph_fold(&folded, raw), HWNAS_OK);
            hwnas_graph_cut(&a, raw);
            hwnas_graph_cut(&b, folded);
            assert_int_equal(a.n, b.n);
            assert_int_equal(a.n_folded, folded->n_nodes);
            for (size_t i = 0; i < a.n; i++) {
                assert_int_equal(a.parts[i].signature, b.parts[i].signature);
                assert_int_equal(a.parts[i].kind, b.parts[i].kind);
            }
            for (size_t n = 0; n < folded->n_nodes; n++)
                assert_int_equal(a.of_folded[n], b.of_node[n]);
            hwnas_parts_done(&a);
            hwnas_parts_done(&b);
            hwnas_graph_free(raw);
            hwnas_graph_free(folded);
        }
        hwnas_space_free(space);
    }
}

/* A product with a weight, or the linear layer that it is once a norm has gone into it. */
static void products_are_linear_layers(void **state)
{
    (void)state;
    for (int is_linear = 0; is_linear < 2; is_linear++) {
        hwnas_graph *graph = hwnas_graph_new("net", 7), *folded;
        const int64_t dims[] = {3, 8}, kernel[] = {8, 6};
        hwnas_attr attrs[2] = {{.is_set = true, .n = 1, .ints = {6}}, {.is_set = true, .n = 1}};
        int x, y, inputs[2];
        assert_int_equal(hwnas_graph_add_input(&inputs[0], graph, "x", HWNAS_FLOAT32, 2, dims),
                         HWNAS_OK);
        assert_int_equal(
            hwnas_graph_add_weight(&inputs[1], graph, "w", 2, kernel, HWNAS_INIT_FAN_IN, true),
            HWNAS_OK);
        const hwnas_op *op = hwnas_op_by_name(is_linear ? "linear" : "matmul");
        assert_int_equal(hwnas_graph_add_node(&x, graph, op, "product", is_linear ? attrs : NULL,
                                              2 - is_linear, inputs, true),
                         HWNAS_OK);
        assert_int_equal(hwnas_graph_add_node(&y, graph, hwnas_op_by_name("batch_norm"), "norm",
                                              NULL, 1, &x, true),
                         HWNAS_OK);
        assert_int_equal(
            hwnas_graph_add_node(&x, graph, hwnas_op_by_name("relu"), "relu", NULL, 1, &y, true),
            HWNAS_OK);
        hwnas_graph_add_output(graph, x);
        hwnas_parts a = {0}, b = {0};
        assert_int_equal(hwnas_graph_fold(&folded, graph), HWNAS_OK);
        hwnas_graph_cut(&a, graph);
        hwnas_graph_cut(&b, folded);
        assert_int_equal(folded->n_nodes, 2);
        assert_true(a.n == 1 && b.n == 1 && a.parts[0].macs == b.parts[0].macs);
        assert_int_equal(a.parts[0].signature, b.parts[0].signature);
        assert_int_equal(a.parts[0].kind, b.parts[0].kind);
        hwnas_parts_done(&a);
        hwnas_parts_done(&b);
        hwnas_graph_free(graph);
        hwnas_graph_free(folded);
    }
}

/* A convolution of the given attributes and a relu. */
static hwnas_part conv_part(int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                            int64_t batch, const char *activation)
{
    hwnas_graph *graph = hwnas_graph_new("net", 7);
    const int64_t dims[] = {batch, in, size, size};
    int x, y, z;
    assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 4, dims), HWNAS_OK);
    const hwnas_op *conv = hwnas_op_by_name("conv");
    hwnas_attr attrs[8] = {{.is_set = true, .n = 1, .ints = {out}},
                           {.is_set = true, .n = 2, .ints = {kernel, kernel}},
                           {.is_set = true, .n = 2, .ints = {stride, stride}},
                           {.is_set = true, .n = 4, .ints = {1, 1, 1, 1}}};
    assert_int_equal(hwnas_graph_add_node(&y, graph, conv, "conv", attrs, 1, &x, true), HWNAS_OK);
    const hwnas_op *act = hwnas_op_by_name(activation);
    assert_int_equal(hwnas_graph_add_node(&z, graph, act, "act", NULL, 1, &y, true), HWNAS_OK);
    hwnas_graph_add_output(graph, z);
    hwnas_parts parts = {0};
    hwnas_graph_cut(&parts, graph);
    assert_int_equal(parts.n, 1);
    const hwnas_part part = parts.parts[0];
    hwnas_parts_done(&parts);
    hwnas_graph_free(graph);
    return part;
}

static void signatures(void **state)
{
    (void)state;
    const hwnas_part part = conv_part(32, 16, 24, 3, 1, 1, "relu");
    const hwnas_part others[] = {
        conv_part(33, 16, 24, 3, 1, 1, "relu"),       conv_part(32, 17, 24, 3, 1, 1, "relu"),
        conv_part(32, 16, 25, 3, 1, 1, "relu"),       conv_part(32, 16, 24, 5, 1, 1, "relu"),
        conv_part(32, 16, 24, 3, 2, 1, "relu"),       conv_part(32, 16, 24, 3, 1, 2, "relu"),
        conv_part(32, 16, 24, 3, 1, 1, "hard_swish"),
    };
    assert_int_equal(part.signature, conv_part(32, 16, 24, 3, 1, 1, "relu").signature);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_int_not_equal(part.signature, others[i].signature);
    assert_int_equal(part.kind, others[0].kind); /* another size, other channels: the same kind */
    assert_int_equal(part.kind, others[2].kind);
    assert_int_not_equal(part.kind, others[3].kind);
    assert_int_not_equal(part.kind, others[6].kind);
    assert_int_equal((long)part.macs, 32L * 32 * 16 * 24 * 9);
    assert_int_equal((long)part.weight_bytes, 4L * 16 * 24 * 9);
    assert_int_equal((long)part.written_bytes, 4L * 32 * 32 * 24);
    /* What a file of today says must be found by the program of tomorrow: written down on
     * 2026-11-21. */
    assert_int_equal(part.signature, UINT64_C(0xed9d282bddd9d1db));
}

static hwnas_graph *graph_of(const char *name)
{
    hwnas_space *space;
    assert_int_equal(hwnas_graph_load_space(&space, name), HWNAS_OK);
    hwnas_graph *graph = random_graph(space, 1);
    hwnas_space_free(space);
    return graph;
}

/* What the CPU runs as one step is one part, neither more nor less. */
static void as_fused(void **state)
{
    static const char *const fused[] = {"accel_nasbench",   "darts", "nas_bench_201",
                                        "ofa_mobilenet_v3", "vit",   "mobilenet_v2"};
    (void)state;
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    assert_int_equal(hwnas_device_open(&device, "cpu", &options), HWNAS_OK);
    for (size_t s = 0; s < COUNT(fused); s++) {
        hwnas_exec *exec;
        const hwnas_exec_step *steps;
        hwnas_parts parts = {0};
        hwnas_graph *raw = graph_of(fused[s]), *graph;
        assert_int_equal(hwnas_graph_fold(&graph, raw), HWNAS_OK);
        assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_OK);
        hwnas_graph_cut(&parts, raw);
        const size_t n = device->ops->steps(exec, &steps);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < steps[i].n_nodes; k++)
                assert_int_equal(parts.of_folded[steps[i].nodes[k]],
                                 parts.of_folded[steps[i].nodes[0]]);
        assert_int_equal(n, parts.n);
        hwnas_parts_done(&parts);
        hwnas_exec_free(exec);
        hwnas_graph_free(graph);
        hwnas_graph_free(raw);
    }
    hwnas_device_close(device);
}

/* ---- The walk, by rules of the test's own ---- */

static const hwnas_fusion_row *row_of(const hwnas_fusion *f, const hwnas_node *node)
{
    static const hwnas_fusion_row conv = {.takes = HWNAS_FUSES_VALUES}, other,
                                  add = {.is = HWNAS_FUSES_BINARY},
                                  relu = {.is = HWNAS_FUSES_FUNCTION, .is_gate = true};
    (void)f;
    return node->op->id == HWNAS_OP_CONV   ? &conv
           : node->op->id == HWNAS_OP_ADD  ? &add
           : node->op->id == HWNAS_OP_RELU ? &relu
                                           : &other;
}

static bool begin(hwnas_fusion *f, void *group, int node)
{
    if (f->graph->nodes[node].op->id != HWNAS_OP_CONV)
        return false;
    hwnas_fusion_take(f, group, node);
    return true;
}

static bool follows(hwnas_fusion *f, void *group, const hwnas_node *node, const hwnas_node *gate)
{
    (void)f, (void)group, (void)node, (void)gate;
    return true;
}

static const hwnas_fusion_rules walk_rules = {
    .group_size = sizeof(hwnas_fusion_group),
    .longest = 5,
    .passes = (hwnas_fusion_begin *const[]){begin, NULL},
    .row = row_of,
    .follows = follows,
};

static int add(hwnas_graph *graph, hwnas_op_id op, const char *name, int a, int b)
{
    const hwnas_attr same[8] = {{.is_set = true, .n = 1, .ints = {4}},
                                {.is_set = true, .n = 2, .ints = {1, 1}}};
    int out;
    assert_int_equal(hwnas_graph_add_node(&out, graph, hwnas_ops[op], name,
                                          op == HWNAS_OP_CONV ? same : NULL, b < 0 ? 1 : 2,
                                          (const int[]){a, b}, true),
                     HWNAS_OK);
    return out;
}

/* "0 0 1 . 1": the group of each node. */
static void assert_groups(hwnas_graph *graph, const char *expected)
{
    char text[256];
    size_t n = 0;
    hwnas_fusion f = {.rules = &walk_rules, .graph = graph};
    hwnas_fusion_plan(&f);
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += (size_t)(f.group_of[i] < 0 ? snprintf(text + n, sizeof text - n, "%s.", i ? " " : "")
                                        : snprintf(text + n, sizeof text - n, "%s%d", i ? " " : "",
                                                   f.group_of[i]));
    assert_string_equal(text, expected);
    hwnas_fusion_done(&f);
    hwnas_graph_free(graph);
}

static hwnas_graph *new_graph(int *x)
{
    static const int64_t dims[] = {1, 4, 8, 8};
    hwnas_graph *graph = hwnas_graph_new("net", 1);
    assert_int_equal(hwnas_graph_add_input(x, graph, "x", HWNAS_FLOAT32, 4, dims), HWNAS_OK);
    return graph;
}

static void the_earlier_root_takes_a_sum(void **state)
{
    (void)state;
    int x, a, b;
    hwnas_graph *graph = new_graph(&x);
    a = add(graph, HWNAS_OP_CONV, "a", x, -1);
    b = add(graph, HWNAS_OP_RELU, "r", add(graph, HWNAS_OP_CONV, "b", x, -1), -1);
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_ADD, "sum", b, a));
    assert_groups(graph, "0 1 1 0");
}

static void an_output_ends_a_group(void **state)
{
    (void)state;
    int x, a;
    hwnas_graph *graph = new_graph(&x);
    a = add(graph, HWNAS_OP_CONV, "a", x, -1);
    hwnas_graph_add_output(graph, a);
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_RELU, "r", a, -1));
    assert_groups(graph, "0 .");
}

static void two_readers_follow_only_as_a_gate(void **state)
{
    (void)state;
    int x, a, b;
    hwnas_graph *graph = new_graph(&x); /* a + relu(a) */
    a = add(graph, HWNAS_OP_CONV, "a", x, -1);
    b = add(graph, HWNAS_OP_RELU, "r", a, -1);
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_ADD, "sum", a, b));
    assert_groups(graph, "0 0 0");
    graph = new_graph(&x); /* relu(a) is read by another as well */
    a = add(graph, HWNAS_OP_CONV, "a", x, -1);
    b = add(graph, HWNAS_OP_RELU, "r", a, -1);
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_ADD, "sum", a, b));
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_TANH, "t", b, -1));
    assert_groups(graph, "0 . . .");
}

static void a_group_has_a_longest_length_and_one_shape(void **state)
{
    (void)state;
    int x, a;
    hwnas_graph *graph = new_graph(&x);
    a = add(graph, HWNAS_OP_CONV, "a", x, -1);
    for (int i = 0; i < 6; i++) {
        const char name[] = {(char)('b' + i), 0};
        a = add(graph, HWNAS_OP_RELU, name, a, -1);
    }
    hwnas_graph_add_output(graph, a);
    assert_groups(graph, "0 0 0 0 . . ."); /* room for a gate and its product is left */
    graph = new_graph(&x);
    a = add(graph, HWNAS_OP_CONV, "a", x, -1);
    a = add(graph, HWNAS_OP_GLOBAL_AVG_POOL, "p", a, -1);
    a = add(graph, HWNAS_OP_CONV, "c", a, -1); /* 1 x 4 x 1 x 1 */
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_ADD, "sum", a, x));
    assert_groups(graph, "0 . 1 .");
}

/* softmax((a b) x) x, where a b is made of weights: a device has it as one, so it costs nothing. */
static void a_product_of_weights_is_no_attention(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 4, 8, 8};
    static const float values[1 * 4 * 8 * 8] = {1};
    int x, a, b, y;
    hwnas_parts parts = {0};
    hwnas_graph *graph = new_graph(&x);
    assert_int_equal(hwnas_graph_add_constant(&a, graph, "a", 4, dims, values), HWNAS_OK);
    assert_int_equal(hwnas_graph_add_constant(&b, graph, "b", 4, dims, values), HWNAS_OK);
    y = add(graph, HWNAS_OP_MATMUL, "product", a, b);
    y = add(graph, HWNAS_OP_SOFTMAX, "softmax", add(graph, HWNAS_OP_MUL, "mul", y, x), -1);
    hwnas_graph_add_output(graph, add(graph, HWNAS_OP_MATMUL, "last", y, x));
    hwnas_graph_cut(&parts, graph);
    assert_int_equal(parts.of_node[0], -1);
    assert_int_equal(parts.n, 3);
    hwnas_parts_done(&parts);
    hwnas_graph_free(graph);
}

/* Tables are indexed by identities; what is kept in files are names. */
static void an_operator_is_its_identity(void **state)
{
    static const char *const names[] = {
#define OP(name, NAME) [HWNAS_OP_##NAME] = #name,
#include "graph/op_list.h"
#undef OP
    };
    (void)state;
    for (int id = 0; id < HWNAS_N_OPS; id++) {
        assert_int_equal(hwnas_ops[id]->id, id);
        assert_string_equal(hwnas_ops[id]->name, names[id]);
        assert_ptr_equal(hwnas_op_by_name(names[id]), hwnas_ops[id]);
    }
    assert_null(hwnas_ops[HWNAS_N_OPS]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_is_its_identity),
        cmocka_unit_test(same_when_folded),
        cmocka_unit_test(products_are_linear_layers),
        cmocka_unit_test(signatures),
        cmocka_unit_test(as_fused),
        cmocka_unit_test(the_earlier_root_takes_a_sum),
        cmocka_unit_test(an_output_ends_a_group),
        cmocka_unit_test(two_readers_follow_only_as_a_gate),
        cmocka_unit_test(a_group_has_a_longest_length_and_one_shape),
        cmocka_unit_test(a_product_of_weights_is_no_attention),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
