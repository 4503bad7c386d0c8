/* Spaces of cells: parameters and MACs of the published tables and networks, how many networks
 * differ, and that what is left out of a deployed cell changes nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "device/device.h"
#include "graph/elaborate.h"
#include "graph/op.h"
#include "space/table.h"
#include "tests/unit/amount.h"

static void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s:%d: %s (%s)", hwnas_last_error()->file, hwnas_last_error()->line,
                 hwnas_last_error()->message, hwnas_last_error()->hint);
}

static hwnas_graph *build(const hwnas_space *space, const char *code)
{
    hwnas_arch *arch;
    hwnas_graph *graph;
    ok(hwnas_arch_parse(&arch, space, code));
    ok(hwnas_graph_build(&graph, arch, 1));
    hwnas_arch_free(arch);
    return graph;
}

/* ---- Tables ---- */

/* Every row's network has the published costs; the published MACs count `bias` additions of the
 * last layer besides, ours never do. */
static void check_table(const char *name, const char *file, size_t n_rows, int bias)
{
    hwnas_space *space;
    hwnas_table *table;
    size_t params, macs, wrong = 0;
    ok(hwnas_graph_load_space(&space, name));
    ok(hwnas_table_load(&table, space, file));
    ok(hwnas_csv_require(&params, table->csv, "params_count"));
    ok(hwnas_csv_require(&macs, table->csv, "macs_count"));
    assert_int_equal(table->n, n_rows);
    for (size_t row = 0; row < table->n; row += EVERY(20)) {
        hwnas_graph *graph;
        hwnas_costs costs;
        double expected_params, expected_macs;
        ok(hwnas_graph_build(&graph, table->archs[row], 1));
        ok(hwnas_csv_number(&expected_params, table->csv, row, params));
        ok(hwnas_csv_number(&expected_macs, table->csv, row, macs));
        hwnas_graph_costs(&costs, graph);
        if (((double)costs.params != expected_params ||
             (double)(costs.macs + bias) != expected_macs) &&
            wrong++ < 5)
            print_message("# line %d: %lld params, %lld + %d MACs; published %.0f, %.0f\n",
                          table->csv->lines[row], (long long)costs.params, (long long)costs.macs,
                          bias, expected_params, expected_macs);
        hwnas_graph_free(graph);
    }
    assert_int_equal(wrong, 0);
    hwnas_table_free(table);
    hwnas_space_free(space);
}

static void nas_bench_201_all_15625_rows(void **state)
{
    (void)state;
    check_table("nas_bench_201", HWNAS_TEST_DATA "/nas_bench_201.csv", 15625, 10);
}

static void transnas_micro_all_711_rows(void **state)
{
    (void)state;
    check_table("transnas_micro", HWNAS_TEST_DATA "/transnas_micro.csv", 711, 100);
}

static void transnas_macro_all_725_rows(void **state)
{
    (void)state;
    check_table("transnas_macro", HWNAS_TEST_DATA "/transnas_macro.csv", 725, 100);
}

static void darts_all_725_rows(void **state)
{
    (void)state;
    check_table("darts:cells=8,width=32", HWNAS_TEST_DATA "/darts_nb301.csv", 725, 0);
}

/* ---- Single networks ---- */

#define DARTS_V2                                                                                   \
    "normal_inputs=12.12.12.13,normal_ops=sep3.sep3.sep3.sep3.skip.sep3.skip.dil3,"                \
    "reduce_inputs=12.23.13.23,reduce_ops=max3.max3.max3.skip.max3.skip.max3.skip"

static void published_cells(void **state)
{
    static const struct {
        const char *space, *code;
        int64_t params, macs;
        double published, rounding; /* MACs and the last digit given */
    } networks[] = {
        /* The paper's table 1: 3.3 M; 3,349,342 without the auxiliary head and 528 M
         * multiply-accumulates are the figures by which it is often quoted. */
        {"darts", DARTS_V2, 3349342, 528359040, 528e6, 1e6},
        /* Parameters: keras.applications, trainable. MACs: Zoph et al. 2018. */
        {"nasnet_mobile", "", 5289978, 563638816, 564e6, 1e6},
        {"nasnet_large", "", 88753150, 23783414658, 23.8e9, 1e8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        hwnas_space *space;
        hwnas_costs costs;
        ok(hwnas_graph_load_space(&space, networks[i].space));
        hwnas_graph *graph = build(space, networks[i].code);
        hwnas_graph_costs(&costs, graph);
        if (costs.params != networks[i].params || costs.macs != networks[i].macs)
            fail_msg("%s: %lld params, %lld MACs; expected %lld, %lld", networks[i].space,
                     (long long)costs.params, (long long)costs.macs, (long long)networks[i].params,
                     (long long)networks[i].macs);
        assert_true(fabs((double)costs.macs - networks[i].published) <= networks[i].rounding / 2);
        hwnas_graph_free(graph);
        hwnas_space_free(space);
    }
}

#define REDUCE ",reduce_inputs=12.23.13.23,reduce_ops=max3.max3.max3.skip.max3.skip.max3.skip"

/* An edge that is "none" adds nothing, wherever it comes from, in a reduction cell too; a tensor
 * that is taken twice costs what two of its shape do. */
static void darts_takes_none_and_a_tensor_twice(void **state)
{
    static const struct {
        const char *a, *b;
        bool is_same; /* one network; else two of the same costs */
    } pairs[] = {
        {"normal_inputs=12.12.12.13,normal_ops=sep3.none.sep3.sep3.skip.sep3.skip.dil3" REDUCE,
         "normal_inputs=11.12.12.13,normal_ops=sep3.none.sep3.sep3.skip.sep3.skip.dil3" REDUCE,
         true},
        {"normal_inputs=12.12.12.12,normal_ops=sep3.sep3.sep3.sep3.skip.sep3.skip.dil3,"
         "reduce_inputs=12.13.13.13,reduce_ops=max3.max3.none.sep3.max3.skip.max3.skip",
         "normal_inputs=12.12.12.12,normal_ops=sep3.sep3.sep3.sep3.skip.sep3.skip.dil3,"
         "reduce_inputs=12.33.13.13,reduce_ops=max3.max3.none.sep3.max3.skip.max3.skip",
         true},
        {"normal_inputs=12.12.12.12,normal_ops=sep3.sep5.sep3.dil3.dil5.sep3.sep3.dil3" REDUCE,
         "normal_inputs=22.11.22.22,normal_ops=sep3.sep5.sep3.dil3.dil5.sep3.sep3.dil3" REDUCE,
         false},
    };
    hwnas_space *space;
    (void)state;
    ok(hwnas_graph_load_space(&space, "darts_wide:cells=5"));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hwnas_graph *a = build(space, pairs[i].a), *b = build(space, pairs[i].b);
        hwnas_costs of_a, of_b;
        hwnas_graph_costs(&of_a, a);
        hwnas_graph_costs(&of_b, b);
        assert_int_equal(!strcmp(hwnas_graph_digest(a).hex, hwnas_graph_digest(b).hex),
                         pairs[i].is_same);
        assert_true(of_a.params == of_b.params && of_a.macs == of_b.macs);
        hwnas_graph_free(a);
        hwnas_graph_free(b);
    }
    hwnas_space_free(space);
}

/* ---- How many ---- */

static void sizes_of_the_spaces(void **state)
{
    static const struct {
        const char *space, *count;
    } spaces[] = {
        {"nas_bench_201", "15625"},               /* the paper */
        {"darts", "1076746950455072400"},         /* (180 * 7^8)^2: "10^18" */
        {"darts_wide", "2051952580220682240000"}, /* (3 * 6 * 10 * 15 * 8^8)^2 */
        {"transnas_micro", "4096"},               /* the paper */
        {"transnas_macro", "3256"},               /* the paper */
    };
    (void)state;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        hwnas_space *space;
        bool is_exact;
        ok(hwnas_graph_load_space(&space, spaces[i].space));
        char *count = hwnas_space_count(space, &is_exact);
        assert_string_equal(count, spaces[i].count);
        assert_true(is_exact);
        free(count);
        hwnas_space_free(space);
    }
}

static int compare_digests(const void *a, const void *b)
{
    return strcmp(((const hwnas_digest *)a)->hex, ((const hwnas_digest *)b)->hex);
}

static size_t count_distinct(const char *name, size_t n_expected)
{
    if (EVERY(2) > 1)
        skip();
    hwnas_space *space;
    size_t n = 0, distinct = 0;
    ok(hwnas_graph_load_space(&space, name));
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_digest *digests = hwnas_alloc(n_expected * sizeof *digests);
    do {
        hwnas_graph *graph;
        assert_true(n < n_expected);
        ok(hwnas_graph_build(&graph, arch, 1));
        digests[n++] = hwnas_graph_digest(graph);
        hwnas_graph_free(graph);
    } while (hwnas_arch_next(arch));
    assert_int_equal(n, n_expected);
    qsort(digests, n, sizeof *digests, compare_digests);
    for (size_t i = 0; i < n; i++)
        distinct += i == 0 || compare_digests(&digests[i], &digests[i - 1]) != 0;
    free(digests);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return distinct;
}

/* The paper counts 6466. Its rule has a + 0 differ from a, and takes the convolution of a zero for
 * zero, although the BatchNorm after it adds a bias. */
static void distinct_networks_of_nas_bench_201(void **state)
{
    (void)state;
    assert_int_equal(count_distinct("nas_bench_201", 15625), 6423);
}

static void same_and_different_cells(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"000100", "100010", true},  /* the input, by way of node 1 */
        {"000300", "300010", true},  /* one convolution, on another edge */
        {"000300", "030001", true},  /* 0 + (0 + convolution) */
        {"000300", "123300", true},  /* nobody takes nodes 1 and 2 */
        {"030021", "030001", false}, /* and not nothing */
        {"000300", "000200", false},
        {"333000", "421000", false}, /* 0 + 0 + 0 at node 3: what the zeros are of is computed */
    };
    hwnas_space *space;
    (void)state;
    ok(hwnas_graph_load_space(&space, "nas_bench_201"));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        hwnas_graph *a = build(space, pairs[i].a), *b = build(space, pairs[i].b);
        bool same = !strcmp(hwnas_graph_digest(a).hex, hwnas_graph_digest(b).hex);
        if (same != pairs[i].same)
            fail_msg("%s and %s are %s", pairs[i].a, pairs[i].b, same ? "the same" : "different");
        hwnas_graph_free(a);
        hwnas_graph_free(b);
    }
    hwnas_space_free(space);
}

/* ---- What is deployed ---- */

static float *run(hwnas_device *device, const hwnas_graph *graph, const float *input)
{
    hwnas_exec *exec;
    float *output = hwnas_alloc((size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[0]]));
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    ok(device->ops->run(exec, &input, &output));
    device->ops->free_exec(exec);
    return output;
}

static size_t count_nodes(const hwnas_graph *graph, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += !strcmp(graph->nodes[i].op->name, op);
    return n;
}

/* Deployed cells lose their zeros and what only those used, and compute the same. */
static void zeros_are_not_deployed(void **state)
{
    static const struct {
        const char *code;
        size_t zeros, convs; /* of the deployed network */
    } cells[] = {
        {"000100", 0, 7},       /* the stem, and three convolutions for each of two reductions */
        {"200100", 0, 7},       /* nobody takes node 1 */
        {"002102", 15, 7 + 30}, /* a convolution of zeros: its bias goes on */
        {"204111", 0, 7 + 15},
        {"333000", 45, 5 + 45}, /* 0 + 0 + 0 at node 3 stays, and what the zeros are of; the
                                   shortcuts of the reductions are zeros that are added */
    };
    hwnas_space *space;
    hwnas_device *device;
    const hwnas_device_options options = {0};
    enum { N_INPUT = 3 * 32 * 32 };
    float *input = hwnas_alloc(N_INPUT * sizeof *input);
    hwnas_rng rng = hwnas_rng_new(7, 0);
    (void)state;
    for (int i = 0; i < N_INPUT; i++)
        input[i] = (float)hwnas_rng_double(&rng);
    ok(hwnas_device_open(&device, "ref", &options));
    ok(hwnas_graph_load_space(&space, "nas_bench_201"));
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        hwnas_graph *graph = build(space, cells[i].code), *folded;
        ok(hwnas_graph_fold(&folded, graph));
        if (count_nodes(folded, "zero") != cells[i].zeros ||
            count_nodes(folded, "conv") != cells[i].convs)
            fail_msg("%s: %zu zeros, %zu convolutions", cells[i].code, count_nodes(folded, "zero"),
                     count_nodes(folded, "conv"));
        float *expected = run(device, graph, input), *got = run(device, folded, input);
        for (int k = 0; k < 10; k++)
            assert_true(fabsf(expected[k] - got[k]) <= 1e-4f * (1 + fabsf(expected[k])));
        free(expected);
        free(got);
        hwnas_graph_free(folded);
        hwnas_graph_free(graph);
    }
    hwnas_space_free(space);
    hwnas_device_close(device);
    free(input);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nas_bench_201_all_15625_rows),
        cmocka_unit_test(transnas_micro_all_711_rows),
        cmocka_unit_test(transnas_macro_all_725_rows),
        cmocka_unit_test(darts_all_725_rows),
        cmocka_unit_test(darts_takes_none_and_a_tensor_twice),
        cmocka_unit_test(published_cells),
        cmocka_unit_test(sizes_of_the_spaces),
        cmocka_unit_test(distinct_networks_of_nas_bench_201),
        cmocka_unit_test(same_and_different_cells),
        cmocka_unit_test(zeros_are_not_deployed),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
