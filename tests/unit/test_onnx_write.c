/* test_onnx_write.c: what src/onnx writes comes back as it was. tests/cli/onnx.bats asks other
 * programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "graph/elaborate.h"
#include "graph/op.h"
#include "graph/rewrite.h"
#include "onnx/onnx_priv.h"
#include "tests/unit/onnx_fixture.h"

static void comes_back_with_values(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    assert_comes_back(graph, HWNAS_ONNX_VALUES);
    hwnas_graph_free(graph);
}

static void comes_back_with_seeds(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    assert_comes_back(graph, HWNAS_ONNX_SEEDS);
    hwnas_graph_free(graph);
}

static void given_data_survives_in_both_forms(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network(), *folded = NULL;
    assert_int_equal(hwnas_graph_fold(&folded, graph), HWNAS_OK);
    assert_comes_back(folded, HWNAS_ONNX_VALUES);
    assert_comes_back(folded, HWNAS_ONNX_SEEDS);
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
}

/* Networks of tests/data/sequences.yaml: tokens, several inputs and outputs, layers of
 * many nodes. */
static hwnas_graph *make_sequences(const char *settings, const char *code)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    hwnas_graph *graph = NULL;
    char *name = hwnas_printf("%s/sequences.yaml%s", HWNAS_TEST_DATA, settings);
    if (hwnas_graph_load_space(&space, name) || hwnas_arch_parse(&arch, space, code) ||
        hwnas_graph_build(&graph, arch, 2))
        fail_msg("%s", hwnas_last_error()->message);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    free(name);
    return graph;
}

static void sequences_come_back(void **state)
{
    static const char *const rows[][2] = {
        {"", "hidden=12,heads=2,directions=1"},
        {":positions=4", "hidden=16,heads=4,directions=2"},
        {":phase=step,positions=2", "hidden=12,heads=4,directions=1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = make_sequences(rows[i][0], rows[i][1]);
        assert_comes_back(graph, HWNAS_ONNX_VALUES);
        assert_comes_back(graph, HWNAS_ONNX_SEEDS);
        hwnas_graph_free(graph);
    }
}

/* Sums say their axes as an input; a TopK has both outputs, and only the one that is read comes
 * back. */
static void sums_and_top_k_come_back(void **state)
{
    (void)state;
    hwnas_graph *graph = hwnas_graph_new("chosen", 1);
    const int64_t dims[] = {2, 5};
    int x;
    assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 2, dims), HWNAS_OK);
    for (int is_places = 0; is_places < 2; is_places++)
        hwnas_graph_add_output(
            graph, add(graph, "top_k", is_places ? "places" : "values", x, -1,
                       (hwnas_attr[]){integers(1, 1, 0, 0, 0), integers(1, 3, 0, 0, 0),
                                      integers(1, 1, 0, 0, 0), integers(1, is_places, 0, 0, 0)}));
    for (int keeps = 0; keeps < 2; keeps++)
        hwnas_graph_add_output(graph, add(graph, "reduce_sum", keeps ? "kept" : "sum", x, -1,
                                          (hwnas_attr[]){integers(1 + keeps, 0, 1, 0, 0),
                                                         integers(1, keeps, 0, 0, 0)}));
    assert_comes_back(graph, HWNAS_ONNX_VALUES);
    assert_comes_back(graph, HWNAS_ONNX_SEEDS);

    void *bytes = NULL;
    size_t length;
    Onnx__ModelProto *model = NULL;
    assert_int_equal(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES), HWNAS_OK);
    assert_int_equal(hwnas_onnx_unpack(&model, bytes, length), HWNAS_OK);
    assert_int_equal(model->graph->n_node, 4);
    for (size_t i = 0; i < 4; i++) {
        const Onnx__NodeProto *node = model->graph->node[i];
        assert_int_equal(node->n_input, 2);
        assert_int_equal(node->n_output, i < 2 ? 2 : 1);
        for (size_t k = 0; k < node->n_output; k++)
            assert_true(*node->output[k]);
        for (size_t k = 0; k < node->n_attribute; k++)
            assert_string_not_equal(node->attribute[k]->name, "axes");
    }
    onnx__model_proto__free_unpacked(model, NULL);
    free(bytes);
    hwnas_graph_free(graph);
}

/* A product that is not a gelu, but for one number, is left as it is. */
static void only_gelu_is_fused(void **state)
{
    static const struct {
        double factor;
        size_t n_nodes;
    } rows[] = {{0.70710678, 1}, {0.7, 5}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = hwnas_graph_new("gelu", 1), *fused = NULL;
        const int64_t dims[] = {2, 5};
        const float numbers[] = {0.5f, 1, (float)rows[i].factor};
        int x, constants[3];
        assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 2, dims), HWNAS_OK);
        for (int k = 0; k < 3; k++)
            assert_int_equal(hwnas_graph_add_constant(&constants[k], graph,
                                                      (const char *[]){"half", "one", "root"}[k], 0,
                                                      NULL, &numbers[k]),
                             HWNAS_OK);
        int y = add(graph, "mul", "scaled", constants[2], x, NULL);
        y = add(graph, "erf", "erf", y, -1, NULL);
        y = add(graph, "add", "sum", constants[1], y, NULL);
        y = add(graph, "mul", "gated", y, add(graph, "mul", "halved", x, constants[0], NULL), NULL);
        hwnas_graph_add_output(graph, y);
        assert_int_equal(hwnas_graph_fuse(&fused, graph), HWNAS_OK);
        if (rows[i].n_nodes == 1) {
            assert_int_equal(fused->n_nodes, 1);
            assert_string_equal(fused->nodes[0].op->name, "gelu");
            float **a = compute(graph), **b = compute(fused);
            for (int k = 0; k < 10; k++)
                assert_float_equal(a[y][k], b[fused->outputs[0]][k], 1e-6);
            free_values(a, graph);
            free_values(b, fused);
        } else {
            assert_null(fused);
        }
        hwnas_graph_free(fused);
        hwnas_graph_free(graph);
    }
}

static bool has_operator(const hwnas_graph *graph, const hwnas_op *op)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == op)
            return true;
    return false;
}

static void every_operator_is_tried(void **state)
{
    (void)state;
    hwnas_graph *images = make_network();
    hwnas_graph *sequences = make_sequences("", "hidden=12,heads=2,directions=1");
    for (const hwnas_op *const *op = hwnas_ops; *op; op++)
        if ((*op)->onnx && !(*op)->is_internal && !has_operator(images, *op) &&
            !has_operator(sequences, *op))
            fail_msg("'%s' is in no network of this test", (*op)->name);
    hwnas_graph_free(sequences);
    hwnas_graph_free(images);
}

static void writing_is_deterministic(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    void *a = NULL, *b = NULL;
    size_t n_a, n_b;
    assert_int_equal(hwnas_onnx_write(&a, &n_a, graph, HWNAS_ONNX_VALUES), HWNAS_OK);
    assert_int_equal(hwnas_onnx_write(&b, &n_b, graph, HWNAS_ONNX_VALUES), HWNAS_OK);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    free(a);
    free(b);
    hwnas_graph_free(graph);
}

static void more_than_two_gib_are_refused(void **state)
{
    (void)state;
    hwnas_graph *graph = hwnas_graph_new("large", 1);
    int64_t dims[] = {1, 1 << 15};
    int x;
    assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 2, dims), HWNAS_OK);
    x = add(graph, "linear", "head", x, -1,
            (hwnas_attr[]){integers(1, 1 << 15, 0, 0, 0), integers(1, 0, 0, 0, 0)});
    hwnas_graph_add_output(graph, x);
    void *bytes = NULL;
    size_t length;
    assert_int_equal(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES),
                     HWNAS_E_UNSUPPORTED);
    assert_null(bytes);
    hwnas_graph_free(written_and_read(graph, HWNAS_ONNX_SEEDS, &length));
    hwnas_graph_free(graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_with_values),
        cmocka_unit_test(comes_back_with_seeds),
        cmocka_unit_test(given_data_survives_in_both_forms),
        cmocka_unit_test(every_operator_is_tried),
        cmocka_unit_test(sequences_come_back),
        cmocka_unit_test(sums_and_top_k_come_back),
        cmocka_unit_test(only_gelu_is_fused),
        cmocka_unit_test(writing_is_deterministic),
        cmocka_unit_test(more_than_two_gib_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
