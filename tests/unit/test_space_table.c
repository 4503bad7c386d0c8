/* test_space_table.c: space/table: published tables, and the predictor that looks networks up in
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/str.h"
#include "predict/predict_priv.h"
#include "space/table.h"
#include "tests/unit/predict_fixture.h"

static void table_finds_every_row(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    assert_int_equal(hwnas_table_load(&table, macro, MACRO_CSV), HWNAS_OK);
    assert_int_equal(table->n, 6561);
    for (size_t row = 0; row < table->n; row++) {
        char *code = hwnas_arch_code(table->archs[row]);
        assert_string_equal(code, hwnas_csv_cell(table->csv, row, 0));
        assert_int_equal(hwnas_table_find(table, table->archs[row]), row);
        free(code);
    }
    hwnas_table_free(table);
}

static void table_finds_the_first_of_repeated_rows(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    write_text("t.csv", "code,x\n00000000,1\n11111111,2\n00000000,3\n");
    assert_int_equal(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_OK);
    assert_int_equal(hwnas_table_find(table, table->archs[2]), 0);
    hwnas_arch *absent = NULL;
    assert_int_equal(hwnas_arch_parse(&absent, macro, "22222222"), HWNAS_OK);
    assert_int_equal(hwnas_table_find(table, absent), -1);
    hwnas_arch_free(absent);
    hwnas_table_free(table);
}

/* A network that was trained several times has the mean of its rows. */
static void table_means_repeated_rows(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    double *values = NULL;
    write_text("t.csv", "code,x\n00000000,\n11111111,0.1\n00000000,1\n11111111,0.1\n"
                        "00000000,2.5\n11111111,0.1\n22222222,\n");
    assert_int_equal(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_OK);
    assert_int_equal(hwnas_table_values(&values, table, 1), HWNAS_OK);
    assert_true(values[0] == 1.75 && values[1] == 0.1);
    for (size_t row = 2; row < 7; row++)
        assert_true(isnan(values[row]));
    free(values);
    hwnas_table_free(table);
}

/* Columns that are called otherwise than choices, one for a choice or one for each position. */
static void table_takes_foreign_names(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    hwnas_space *mix;
    write_text(
        "mix.yaml",
        "hwnas: 1\nname: mix\ninput: {image: [3, 8, 8]}\nchoices:\n"
        "  width: {each_of: 2, values: [8, 16]}\n  act: {values: [relu, sigmoid]}\n"
        "network:\n  - conv: {out: \"width[0]\", kernel: 1}\n"
        "  - conv: {out: \"width[1]\", kernel: 1}\n  - switch: act\n    cases: {relu: [relu], "
        "sigmoid: [sigmoid]}\n");
    write_text("named.csv", "name,w_1,w_2,activation,acc\na,8,16,relu,1\nb,16,8,sigmoid,2\n");
    assert_int_equal(hwnas_space_load(&mix, in_dir("mix.yaml")), HWNAS_OK);
    char *path = hwnas_printf("%s?width=w_1+w_2,act=activation", in_dir("named.csv"));
    assert_int_equal(hwnas_table_load(&table, mix, path), HWNAS_OK);
    char *code = hwnas_arch_code(table->archs[1]);
    assert_string_equal(code, "width=16.8,act=sigmoid");
    free(code);
    hwnas_table_free(table);
    free(path);

    static const char *const wrong[][2] = {
        {"?width=w_1+w_2", "none for the choice 'act'"},
        {"?widht=w_1", "the space 'mix' has no choice 'widht'"},
        {"?width=w_1+w_2+w_1,act=activation", "another number of positions"},
        {"?width=w_3,act=activation", "there is no column 'w_3'"},
        {"?act=activation,act=activation", "'act' is named twice"},
        {"?width", "'width' names no choice and column"},
        {"?", "names no choice and column"},
        {"?code=name", "a"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        path = hwnas_printf("%s%s", in_dir("named.csv"), wrong[i][0]);
        assert_int_equal(hwnas_table_load(&table, mix, path), HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, wrong[i][1]));
        free(path);
    }
    write_text("odd?code=x.csv", "code,acc\n\"width=8.8,act=relu\",1\n"); /* a file's own name */
    assert_int_equal(hwnas_table_load(&table, mix, in_dir("odd?code=x.csv")), HWNAS_OK);
    hwnas_table_free(table);
    hwnas_space_free(mix);
}

static void table_reads_one_column_for_each_choice(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    assert_int_equal(hwnas_table_load(&table, accel, ACCEL_CSV), HWNAS_OK);
    assert_int_equal(table->n, 4110);
    char *code = hwnas_arch_code(table->archs[0]);
    assert_string_equal(code, "e=6466611,k=3535533,l=1233222,se=0000000");
    free(code);
    hwnas_table_free(table);
}

/* As other programs write lists and numbers. */
static void table_takes_lists(void **state)
{
    (void)state;
    static const char *const good[] = {"16.8,relu",       "16 8,relu",     "\"[16, 8]\",relu",
                                       "\"(16,8)\",relu", "16.0;8.0,relu", "  16\t8 ,relu"};
    static const char *const wrong[][2] = {
        {"16 8 8,relu", "'width' has more than 2 values"},
        {"16,relu", "'width' has 1 of 2 values that are needed"},
        {"16 9,relu", "'9' is not a value of 'width' at position 2"},
        {"16.5 8,relu", "is not a value of 'width' at position"},
    };
    static const char *const codes[][2] = {
        {"214", "depth=214,size=8"}, {"2.1.4", "depth=214,size=8"}, {"2 1 4", "depth=214,size=8"}};
    hwnas_table *table = NULL;
    hwnas_space *mix = NULL, *deep = NULL;
    write_text(
        "lists.yaml",
        "hwnas: 1\nname: lists\ninput: {image: [3, 8, 8]}\nchoices:\n  width: {each_of: 2, "
        "values: [8, 16]}\n  act: {values: [relu, sigmoid]}\nnetwork:\n"
        "  - conv: {out: \"width[0]\", kernel: 1}\n  - conv: {out: \"width[1]\", kernel: 1}\n"
        "  - switch: act\n    cases: {relu: [relu], sigmoid: [sigmoid]}\n");
    assert_int_equal(hwnas_space_load(&mix, in_dir("lists.yaml")), HWNAS_OK);
    for (size_t i = 0; i < COUNT(good); i++) {
        char *text = hwnas_printf("width,act,acc\n%s,1\n", good[i]);
        write_text("lists.csv", text);
        free(text);
        assert_int_equal(hwnas_table_load(&table, mix, in_dir("lists.csv")), HWNAS_OK);
        char *code = hwnas_arch_code(table->archs[0]);
        assert_string_equal(code, "width=16.8,act=relu");
        free(code);
        hwnas_table_free(table);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *text = hwnas_printf("width,act,acc\n%s,1\n", wrong[i][0]);
        write_text("lists.csv", text);
        free(text);
        assert_failed(hwnas_table_load(&table, mix, in_dir("lists.csv")), HWNAS_E_INPUT,
                      wrong[i][1], "");
    }
    hwnas_space_free(mix);

    write_text("deep.yaml",
               "hwnas: 1\nname: deep\ninput: {image: [3, 8, 8]}\nchoices:\n  depth: {each_of: 3, "
               "values: [1, 2, 4]}\n  size: {values: [8, 16]}\nnetwork:\n  - repeat: depth[0]\n"
               "    do: [{conv: {out: size, kernel: 1}}]\n");
    assert_int_equal(hwnas_space_load(&deep, in_dir("deep.yaml")), HWNAS_OK);
    for (size_t i = 0; i < COUNT(codes); i++) {
        char *text = hwnas_printf("depth,size,acc\n%s,8.0,1\n", codes[i][0]);
        write_text("lists.csv", text);
        free(text);
        assert_int_equal(hwnas_table_load(&table, deep, in_dir("lists.csv")), HWNAS_OK);
        char *code = hwnas_arch_code(table->archs[0]);
        assert_string_equal(code, codes[i][1]);
        free(code);
        hwnas_table_free(table);
    }
    hwnas_space_free(deep);
}

static void table_refuses(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    write_text("t.csv", "code,x\n00000000,1\n00000003,2\n");
    assert_failed(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_E_INPUT,
                  "'3' is not a value of 'op'", "looks like");
    assert_int_equal(hwnas_last_error()->line, 3);
    assert_string_equal(hwnas_last_error()->file, in_dir("t.csv"));
    write_text("t.csv", "x,y\n1,2\n");
    assert_failed(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_E_INPUT, "no 'code'",
                  "give one column");
    assert_null(table);
}

static void table_predictor_looks_up(void **state)
{
    (void)state;
    hwnas_predictor *predictor = NULL;
    assert_int_equal(
        hwnas_predictor_load(&predictor, "table:" MACRO_CSV "#acc_top1_pct_mean", macro), HWNAS_OK);
    assert_string_equal(hwnas_predictor_kind(predictor), "table");
    assert_string_equal(hwnas_predictor_target(predictor), "acc_top1_pct_mean");
    assert_string_equal(hwnas_predictor_unit(predictor), "%");
    hwnas_arch *arch = NULL;
    hwnas_estimate estimate;
    assert_int_equal(hwnas_arch_parse(&arch, macro, "22212220"), HWNAS_OK);
    assert_int_equal(
        hwnas_predictor_score(&estimate, predictor, (const hwnas_arch *const *)&arch, 1), HWNAS_OK);
    assert_true(estimate.mean == 93.1267 && estimate.sd == 0);
    hwnas_arch_free(arch);

    hwnas_predictor_scores scores;
    assert_int_equal(hwnas_predictor_eval(&scores, predictor, macro, MACRO_CSV, NULL), HWNAS_OK);
    assert_int_equal(scores.n_rows, 6561);
    assert_true(scores.kendall_tau > 0.9999 && scores.rmse == 0 && isnan(scores.coverage_90));
    hwnas_predictor_free(predictor);
}

static void table_predictor_refuses(void **state)
{
    (void)state;
    hwnas_predictor *predictor = NULL;
    assert_failed(hwnas_predictor_load(&predictor, "table:" MACRO_CSV, macro), HWNAS_E_INPUT,
                  "names no file and column", "FILE#COLUMN");
    assert_failed(hwnas_predictor_load(&predictor, "table:" MACRO_CSV "#acc_top1_pct_men", macro),
                  HWNAS_E_INPUT, "no column", "did you mean 'acc_top1_pct_mean'?");
    assert_failed(hwnas_predictor_load(&predictor, "table:/no/such.csv#x", macro),
                  HWNAS_E_NOT_FOUND, "cannot open", "");
    write_text("t.csv", "code,x_ms\n00000000,1\n11111111,\n22222222,two\n");
    char *name = hwnas_printf("table:%s#x_ms", in_dir("t.csv"));
    assert_failed(hwnas_predictor_load(&predictor, name, macro), HWNAS_E_INPUT, "not a number", "");
    assert_int_equal(hwnas_last_error()->line, 4);
    write_text("t.csv", "code,x_ms\n00000000,1\n11111111,\n");
    assert_int_equal(hwnas_predictor_load(&predictor, name, macro), HWNAS_OK);
    assert_string_equal(hwnas_predictor_unit(predictor), "ms");
    free(name);
    hwnas_arch *archs[2] = {NULL};
    hwnas_estimate estimates[2];
    assert_int_equal(hwnas_arch_parse(&archs[0], macro, "00000000"), HWNAS_OK);
    assert_int_equal(hwnas_arch_parse(&archs[1], macro, "11111111"), HWNAS_OK);
    const hwnas_arch *const *list = (const hwnas_arch *const *)archs;
    assert_failed(hwnas_predictor_score(estimates, predictor, list, 2), HWNAS_E_NOT_FOUND,
                  "'x_ms' is empty for 11111111", "predictor fit");
    hwnas_arch_free(archs[1]);
    assert_int_equal(hwnas_arch_parse(&archs[1], macro, "01010101"), HWNAS_OK);
    assert_failed(hwnas_predictor_score(estimates, predictor, list, 2), HWNAS_E_NOT_FOUND,
                  "no row for 01010101", "predictor fit");
    hwnas_arch_free(archs[0]);
    hwnas_arch_free(archs[1]);
    hwnas_predictor_free(predictor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_finds_every_row),
        cmocka_unit_test(table_finds_the_first_of_repeated_rows),
        cmocka_unit_test(table_means_repeated_rows),
        cmocka_unit_test(table_takes_foreign_names),
        cmocka_unit_test(table_reads_one_column_for_each_choice),
        cmocka_unit_test(table_takes_lists),
        cmocka_unit_test(table_refuses),
        cmocka_unit_test(table_predictor_looks_up),
        cmocka_unit_test(table_predictor_refuses),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
