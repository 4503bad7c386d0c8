/* test_facts.c: src/predict/facts and encoding: what is said of a network, on cells worked out by
 * hand and on the cells that NAS-Bench-201's paper takes for equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/feature_encoding.h"
#include "predict/graph_facts.h"
#include "space/table.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static hwnas_space *cells, *accel;

static int set_up(void **state)
{
    (void)state;
    return hwnas_graph_load_space(&cells, "nas_bench_201") ||
           hwnas_graph_load_space(&accel, "accel_nasbench");
}

static int tear_down(void **state)
{
    (void)state;
    hwnas_space_free(cells);
    hwnas_space_free(accel);
    return 0;
}

static void list(hwnas_facts *out, const hwnas_space *space, const char *code)
{
    hwnas_arch *arch = NULL;
    hwnas_graph *graph = NULL;
    assert_int_equal(hwnas_arch_parse(&arch, space, code), HWNAS_OK);
    assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
    hwnas_facts_of(out, graph, NULL);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
}

static double fact(const hwnas_facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->n; i++)
        if (!strcmp(facts->list[i].name, name))
            return facts->list[i].value;
    return 0;
}

/* The cell 3|12|204: 0->1 conv3x3; 0->2 skip, 1->2 conv1x1; 0->3 conv1x1, 1->3 none, 2->3 pooling.
 * Its ways: conv1x1; skip, pooling; conv3x3, conv1x1, pooling. There are 15 of it. */
static void a_cell_by_hand(void **state)
{
    (void)state;
    hwnas_facts facts;
    list(&facts, cells, "312204");
    assert_true(fact(&facts, "path cell conv1x1") == 1);
    assert_true(fact(&facts, "path cell avg_pool3x3") == 1);
    assert_true(fact(&facts, "path cell conv3x3>conv1x1>avg_pool3x3") == 1);
    size_t n_paths = 0;
    for (size_t i = 0; i < facts.n; i++)
        n_paths += hwnas_starts_with(facts.list[i].name, "path cell ");
    assert_int_equal(n_paths, 3);
    /* Outside the cells: two reductions, of a way with two conv3x3 and one with conv1x1 behind a
     * pooling, and one conv3x3 at the start. */
    assert_true(fact(&facts, "count conv1x1") == 15 * 2 + 2);
    assert_true(fact(&facts, "count conv3x3") == 15 + 2 * 2 + 1);
    assert_true(fact(&facts, "count avg_pool3x3") == 15);
    assert_true(fact(&facts, "most avg_pool3x3") == 15);
    assert_true(fact(&facts, "least avg_pool3x3") == 0);
    assert_float_equal(fact(&facts, "mean avg_pool3x3"), 15 * 2.0 / 3, 1e-5);
    assert_float_equal(fact(&facts, "log paths"), 15 * log(3) + 2 * log(2), 1e-5);
    assert_true(fact(&facts, "depth") == 1 + 15 * 2 + 2 * 2 + 1);
    hwnas_facts_done(&facts);
}

static void a_dead_cell_has_no_way(void **state)
{
    (void)state;
    hwnas_facts facts;
    list(&facts, cells, "333000"); /* nothing reaches the last node */
    assert_true(fact(&facts, "log paths") == -1);
    assert_true(fact(&facts, "count conv3x3") == 0 && fact(&facts, "depth") == 0);
    hwnas_facts_done(&facts);
    list(&facts, cells, "330000"); /* the same network in other words */
    assert_true(fact(&facts, "log paths") == -1);
    hwnas_facts_done(&facts);
}

static void sizes_are_the_graphs(void **state)
{
    (void)state;
    hwnas_facts facts;
    /* EfficientNet-B0's shape, without squeeze and excitation, which has no height. */
    list(&facts, accel, "e=1666666,k=3353553,l=1223341,se=0000000");
    assert_float_equal(fact(&facts, "log resolution"), log(224), 1e-6);
    assert_float_equal(fact(&facts, "log width 1/32"), log(1280), 1e-6);
    assert_float_equal(fact(&facts, "log width 1/2"), log(96),
                       1e-6); /* the second stage's expansion */
    assert_true(fact(&facts, "count depthwise_conv3x3") == 1 + 2 + 3 + 1);
    assert_true(fact(&facts, "count depthwise_conv5x5") == 2 + 3 + 4);
    double sum = exp(fact(&facts, "log macs 1/2"));
    for (int s = 4; s <= 128; s *= 2) {
        char name[32];
        snprintf(name, sizeof name, "log macs 1/%d", s);
        sum += fact(&facts, name) > 0 ? exp(fact(&facts, name)) : 0;
    }
    /* All but the linear layer, which has no height: 1280 x 1000. */
    assert_float_equal(sum + 1280e3, exp(fact(&facts, "log macs")), 1e3);
    hwnas_facts_done(&facts);
}

static bool is_about_ways(const char *name)
{
    static const char *const starts[] = {"path cell", "most", "least", "mean", "log paths"};
    for (size_t i = 0; i < COUNT(starts); i++)
        if (hwnas_starts_with(name, starts[i]))
            return true;
    return false;
}

/* Cells that the paper takes for one function have the same ways from input to output. (What they
 * cost may differ: one may compute twice what the other uses twice.) */
static void equal_cells_have_equal_ways(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    size_t iso_class, n_pairs = 0;
    assert_int_equal(hwnas_table_load(&table, cells, HWNAS_TEST_DATA "/nas_bench_201.csv"),
                     HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&iso_class, table->csv, "iso_class"), HWNAS_OK);
    for (size_t row = 0; row < table->n; row += 7) {
        size_t first = (size_t)atol(hwnas_csv_cell(table->csv, row, iso_class));
        if (first == row)
            continue;
        hwnas_facts a, b;
        list(&a, cells, hwnas_csv_cell(table->csv, row, 0));
        list(&b, cells, hwnas_csv_cell(table->csv, first, 0));
        for (size_t i = 0; i < a.n + b.n; i++) {
            const char *name = i < a.n ? a.list[i].name : b.list[i - a.n].name;
            if (is_about_ways(name) && fabs(fact(&a, name) - fact(&b, name)) > 2e-6)
                fail_msg("%s and %s: %s is %g and %g", hwnas_csv_cell(table->csv, row, 0),
                         hwnas_csv_cell(table->csv, first, 0), name, fact(&a, name),
                         fact(&b, name));
        }
        hwnas_facts_done(&a);
        hwnas_facts_done(&b);
        n_pairs++;
    }
    assert_true(n_pairs > 1000);
    hwnas_table_free(table);
}

static void an_encoding_finds_what_differs(void **state)
{
    (void)state;
    hwnas_feature_encoding *e = NULL;
    assert_int_equal(hwnas_feature_encoding_find(&e, accel, NULL, 0), HWNAS_OK);
    bool has_macs = false;
    for (size_t c = e->first[HWNAS_COLUMN_FACT]; c < e->n_columns; c++) {
        has_macs |= !strcmp(e->columns[c].name, "log macs");
        assert_string_not_equal(e->columns[c].name, "log resolution"); /* the same for all */
        assert_true(c == e->first[HWNAS_COLUMN_FACT] ||
                    strcmp(e->columns[c - 1].name, e->columns[c].name) < 0);
    }
    assert_true(has_macs);
    /* Without the facts, a row has the choices alone and they are the same. */
    hwnas_arch *arch = hwnas_arch_new(accel);
    double *with = hwnas_alloc(2 * e->n_columns * sizeof *with), *without = with + e->n_columns;
    assert_int_equal(hwnas_feature_encoding_row(e, with, arch, true), HWNAS_OK);
    assert_int_equal(hwnas_feature_encoding_row(e, without, arch, false), HWNAS_OK);
    assert_memory_equal(with, without, e->first[HWNAS_COLUMN_FACT] * sizeof *with);
    free(with);
    hwnas_arch_free(arch);
    hwnas_feature_encoding_free(e);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_by_hand),
        cmocka_unit_test(a_dead_cell_has_no_way),
        cmocka_unit_test(sizes_are_the_graphs),
        cmocka_unit_test(equal_cells_have_equal_ways),
        cmocka_unit_test(an_encoding_finds_what_differs),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
