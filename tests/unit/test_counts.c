/* Parameters and MACs of every row of the published tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/elaborate.h"
#include "space/table.h"
#include "tests/unit/amount.h"

/* Builds every row's network and compares with the columns. Rows that fail are printed. */
static void check_table(const char *space_name, const char *file, const char *macs_column,
                        size_t n_rows)
{
    hwnas_space *space;
    hwnas_table *table;
    size_t params, macs, wrong = 0;
    if (hwnas_graph_load_space(&space, space_name))
        fail_msg("%s:%d: %s", hwnas_last_error()->file, hwnas_last_error()->line,
                 hwnas_last_error()->message);
    if (hwnas_table_load(&table, space, file))
        fail_msg("%s", hwnas_last_error()->message);
    assert_int_equal(table->n, n_rows);
    assert_int_equal(hwnas_csv_require(&params, table->csv, "params_count"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&macs, table->csv, macs_column), HWNAS_OK);
    for (size_t row = 0; row < table->n; row += EVERY(20)) {
        hwnas_graph *graph;
        hwnas_costs costs;
        double expected_params, expected_macs;
        assert_int_equal(hwnas_graph_build(&graph, table->archs[row], 1), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&expected_params, table->csv, row, params), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&expected_macs, table->csv, row, macs), HWNAS_OK);
        hwnas_graph_costs(&costs, graph);
        if ((double)costs.params != expected_params || (double)costs.macs != expected_macs) {
            if (wrong++ < 5)
                print_message("# line %d: %lld params, %lld MACs; published %.0f, %.0f\n",
                              table->csv->lines[row], (long long)costs.params,
                              (long long)costs.macs, expected_params, expected_macs);
        }
        hwnas_graph_free(graph);
    }
    assert_int_equal(wrong, 0);
    hwnas_table_free(table);
    hwnas_space_free(space);
}

static void accel_nasbench_all_4110_rows(void **state)
{
    (void)state;
    check_table("accel_nasbench", HWNAS_TEST_DATA "/accel_nasbench.csv", "macs_count_conv_fc",
                4110);
}

static void nas_bench_macro_all_6561_rows(void **state)
{
    (void)state;
    check_table("nas_bench_macro", HWNAS_TEST_DATA "/nas_bench_macro.csv", "macs_count", 6561);
}

/* Rows of width 1 are sampled by searches, those of 1.2 at random and at all resolutions. */
static void once_for_all_2162_and_1000_rows(void **state)
{
    (void)state;
    check_table("ofa_mobilenet_v3", HWNAS_TEST_DATA "/ofa_mobilenet_v3.csv", "macs_count", 3162);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accel_nasbench_all_4110_rows),
        cmocka_unit_test(nas_bench_macro_all_6561_rows),
        cmocka_unit_test(once_for_all_2162_and_1000_rows),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
