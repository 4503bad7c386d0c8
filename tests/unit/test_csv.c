/* test_csv.c: tables as people and programs write them, and what is wrong with them. */
#include <math.h>
#include <stdlib.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/unit/base_fixture.h"

/* A scratch directory for each case. */

static char *scratch;

static int make_scratch(void **state)
{
    (void)state;
    scratch = hwnas_strdup("/tmp/hwnas-test-csv.XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    char *command = hwnas_printf("rm -rf '%s'", scratch);
    int failed = system(command);
    free(command);
    free(scratch);
    return failed;
}

static char *in_scratch(const char *name)
{
    return hwnas_printf("%s/%s", scratch, name);
}

static hwnas_status load_text(hwnas_csv **out, const char *text, size_t n)
{
    char *path = in_scratch("table.csv");
    assert_int_equal(hwnas_file_write(path, text, n), HWNAS_OK);
    hwnas_status status = hwnas_csv_load(out, path);
    if (status != HWNAS_OK)
        assert_string_equal(hwnas_last_error()->file, path);
    free(path);
    return status;
}

static void csv_spellings(void **state)
{
    (void)state;
    /* One table, spelled in several ways. */
    static const char *const texts[] = {
        "a,b\n1,x\n2,\n",
        "a,b\n1,x\n2,",
        "a,b\r\n1,x\r\n2,\r\n",
        "a,b\r1,x\r2,\r",
        ("\xef\xbb\xbf" /* apart: 'a' would be a digit of it */
         "a,b\n1,x\n2,\n"),
        "\"a\",\"b\"\n\"1\",\"x\"\n\"2\",\"\"\n",
        " a , b\n1 ,\tx\n2, \n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        hwnas_csv *csv = NULL;
        assert_int_equal(load_text(&csv, texts[i], strlen(texts[i])), HWNAS_OK);
        assert_int_equal(csv->n_columns, 2);
        assert_int_equal(csv->n_rows, 2);
        assert_string_equal(csv->names[0], "a");
        assert_string_equal(csv->names[1], "b");
        assert_string_equal(hwnas_csv_cell(csv, 0, 0), "1");
        assert_string_equal(hwnas_csv_cell(csv, 0, 1), "x");
        assert_string_equal(hwnas_csv_cell(csv, 1, 0), "2");
        assert_string_equal(hwnas_csv_cell(csv, 1, 1), "");
        assert_int_equal(csv->lines[0], 2);
        assert_int_equal(csv->lines[1], 3);
        assert_int_equal(hwnas_csv_column(csv, "b"), 1);
        assert_int_equal(hwnas_csv_column(csv, "c"), -1);
        hwnas_csv_free(csv);
    }
    hwnas_csv_free(NULL);
}

/* What stands between cells is told by the header; with a semicolon or a tab a comma is a decimal
 * one, unless there is a point. */
static void csv_separators(void **state)
{
    (void)state;
    static const struct {
        const char *text, *cell;
        double number;
    } rows[] = {
        {"a;b\n1;93,5\n", "93,5", 93.5},
        {"a\tb\n1\t-0,25e1\n", "-0,25e1", -2.5},
        {"a\tb\r\n1\t93.5\r\n", "93.5", 93.5},
        {" a ; b \n 1 ; 93.5 \n", "93.5", 93.5},
        {"\"a\";\"b\"\n\"1\";\"2,5\"\n", "2,5", 2.5},
        {"a,b\n1,\"2;5\"\n", "2;5", NAN},
        {"\"a;\",b\n1,\"2,5\"\n", "2,5", NAN},
        {"a;b\n1;1,234.5\n", "1,234.5", NAN},
        {"a;b\n1;1,2,3\n", "1,2,3", NAN},
        {"a\tb\n1\t\n", "", NAN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_csv *csv = NULL;
        double number = NAN;
        assert_int_equal(load_text(&csv, rows[i].text, strlen(rows[i].text)), HWNAS_OK);
        assert_int_equal(csv->n_columns, 2);
        assert_string_equal(csv->names[1], "b");
        assert_string_equal(hwnas_csv_cell(csv, 0, 0), "1");
        assert_string_equal(hwnas_csv_cell(csv, 0, 1), rows[i].cell);
        const hwnas_status status = hwnas_csv_number(&number, csv, 0, 1);
        assert_int_equal(status, isnan(rows[i].number) ? HWNAS_E_INPUT : HWNAS_OK);
        if (status == HWNAS_OK)
            assert_true(number == rows[i].number);
        hwnas_csv_free(csv);
    }
}

static void csv_lines_of_rows(void **state)
{
    (void)state;
    static const char text[] = "\na,b\n\n1,\"two\nlines, \"\"quoted\"\"\"\n  \n3,4\r\n\r\n\"\n\",6";
    static const int lines[] = {4, 7, 9};
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, text, strlen(text)), HWNAS_OK);
    assert_int_equal(csv->n_rows, COUNT(lines));
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(csv->lines[i], lines[i]);
    assert_string_equal(hwnas_csv_cell(csv, 0, 1), "two\nlines, \"quoted\"");
    assert_string_equal(hwnas_csv_cell(csv, 2, 0), "\n");
    hwnas_csv_free(csv);
}

static void csv_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *message;
    } rows[] = {
        {"", 0, "the file is empty"},
        {"\n\n", 0, "the file is empty"},
        {"\xef\xbb\xbf", 0, "the file is empty"},
        {"a,b\n", 0, "no row"},
        {"a,b\n1,2\n3\n", 3, "the row has 1 cells, the header has 2"},
        {"a,b\n1,2\n3,4,5\n6,7\n", 3, "more cells than the header, which has 2"},
        {"a,b\n1,2\n\n\n3", 5, "the row has 1 cells"},
        {"a,b\n1,\"2\n3\"\n4\n", 4, "the row has 1 cells"},
        {"a,b\n\"1\n1\n1\"\n", 2, "the row has 1 cells"},
        {"a,b,a\n1,2,3\n", 1, "columns 1 and 3 are both called 'a'"},
        {"\na,,c\n1,2,3\n", 2, "column 2 has no name"},
        {"a,b\n1,2\n3,x\"y\n", 3, "a quote inside a cell"},
        {"a,b\n1,\"2\"3\n", 2, "a quote inside a cell"},
        {"a,b\n1,2\n3,\"4\n5,6\n7,8\n", 3, "never closed"},
        {"a,b\n1,2\n\"x\",\"4", 3, "never closed"},
        {"a,b\n\"1\n2\",\"3\n", 3, "never closed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_csv *csv = NULL;
        assert_int_equal(load_text(&csv, rows[i].text, strlen(rows[i].text)), HWNAS_E_INPUT);
        assert_null(csv);
        assert_contains(hwnas_last_error()->message, rows[i].message);
        assert_int_equal(hwnas_last_error()->line, rows[i].line);
    }
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, "a,b\n1,\0\n", 8), HWNAS_E_INPUT);
    assert_contains(hwnas_last_error()->message, "zero byte");
    assert_int_equal(hwnas_last_error()->line, 2);
    assert_int_equal(hwnas_csv_load(&csv, "/nowhere/none.csv"), HWNAS_E_NOT_FOUND);
    assert_int_equal(hwnas_csv_load(&csv, scratch), HWNAS_E_INPUT);
}

static void csv_too_many_columns(void **state)
{
    (void)state;
    hwnas_str text = {0};
    for (int i = 0; i < 5000; i++)
        hwnas_str_addf(&text, "%sc%d", i ? "," : "", i);
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, text.s, text.n), HWNAS_E_INPUT);
    assert_contains(hwnas_last_error()->message, "columns");
    assert_int_equal(hwnas_last_error()->line, 1);
    hwnas_str_done(&text);
}

static void csv_require_suggests(void **state)
{
    (void)state;
    static const char text[] = "latency_ms,accuracy\n1,2\n";
    hwnas_csv *csv = NULL;
    size_t column = 9;
    assert_int_equal(load_text(&csv, text, strlen(text)), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&column, csv, "accuracy"), HWNAS_OK);
    assert_int_equal(column, 1);
    assert_int_equal(hwnas_csv_require(&column, csv, "acuracy"), HWNAS_E_INPUT);
    assert_int_equal(column, 1);
    assert_contains(hwnas_last_error()->message, "no column 'acuracy'");
    assert_contains(hwnas_last_error()->hint, "did you mean 'accuracy'?");
    assert_int_equal(hwnas_csv_require(&column, csv, "energy"), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->hint, "the columns are latency_ms, accuracy");
    hwnas_csv_free(csv);
}

static void csv_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *cell, *message; /* NULL: a number */
        double expected;
    } rows[] = {
        {"12", NULL, 12},
        {"-0.5e-3", NULL, -0.0005},
        {"+7.", NULL, 7},
        {"1e-400", NULL, 0},
        {"", "column 'x' is empty", 0},
        {"abc", "column 'x': 'abc' is not a number", 0},
        {"1 2", "not a number", 0},
        {"5ms", "not a number", 0},
        {"nan", "not a number", 0},
        {"inf", "not a number", 0},
        {"0x10", "not a number", 0},
        {"-", "not a number", 0},
        {".", "not a number", 0},
        {"\" 5\"", "not a number", 0},
        {"1e999", "1e999 is too large", 0},
    };
    hwnas_str text = {0};
    hwnas_str_add(&text, "x,y\n");
    for (size_t i = 0; i < COUNT(rows); i++)
        hwnas_str_addf(&text, "%s,0\n", rows[i].cell);
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, text.s, text.n), HWNAS_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        double number = -1;
        hwnas_status status = hwnas_csv_number(&number, csv, i, 0);
        if (!rows[i].message) {
            assert_int_equal(status, HWNAS_OK);
            assert_near(number, rows[i].expected, 1e-15);
            continue;
        }
        assert_int_equal(status, HWNAS_E_INPUT);
        assert_contains(hwnas_last_error()->message, rows[i].message);
        assert_int_equal(hwnas_last_error()->line, (int)i + 2);
        assert_near(number, -1, 0);
    }
    hwnas_csv_free(csv);
    hwnas_str_done(&text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(csv_spellings), CASE(csv_separators),       CASE(csv_lines_of_rows),
        CASE(csv_errors),    CASE(csv_too_many_columns), CASE(csv_require_suggests),
        CASE(csv_numbers),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
