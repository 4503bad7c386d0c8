/* test_parts.c: the cut of a graph into parts: what makes two parts the same, and that the cut is
 * what oneDNN fuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "graph/elaborate.h"
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

/* Each step of oneDNN's is a part. */
static void as_fused(void **state)
{
    (void)state;
    static const char *const fused[] = {"nas_bench_macro", "accel_nasbench"};
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    assert_int_equal(hwnas_device_open(&device, "cpu", &options), HWNAS_OK);
    for (size_t s = 0; s < COUNT(fused); s++) {
        hwnas_space *space;
        hwnas_exec *exec;
        const hwnas_exec_step *steps;
        hwnas_parts parts = {0};
        assert_int_equal(hwnas_graph_load_space(&space, fused[s]), HWNAS_OK);
        hwnas_graph *raw = random_graph(space, 1), *graph;
        assert_int_equal(hwnas_graph_fold(&graph, raw), HWNAS_OK);
        assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_OK);
        hwnas_graph_cut(&parts, raw);
        const size_t n = device->ops->steps(exec, &steps);
        size_t n_good = 0;
        for (size_t i = 0; i < n; i++) {
            bool is_good = true;
            for (size_t k = 0; k < steps[i].n_nodes; k++)
                is_good &= parts.of_folded[steps[i].nodes[k]] == parts.of_folded[steps[i].nodes[0]];
            n_good += is_good;
        }
        assert_true(n >= parts.n); /* a part may be several steps */
        assert_int_equal(n_good, n);
        hwnas_parts_done(&parts);
        hwnas_exec_free(exec);
        hwnas_graph_free(graph);
        hwnas_graph_free(raw);
        hwnas_space_free(space);
    }
    hwnas_device_close(device);
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
        cmocka_unit_test(signatures),
        cmocka_unit_test(as_fused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
