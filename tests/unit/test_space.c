/* test_space.c: the space language: expressions, architectures and their codes, the digest of what
 * comes out, and everything that a user can write wrongly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "graph/op.h"
#include "space/scope.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *describe(void)
{
    static char text[2048];
    const hwnas_error *e = hwnas_last_error();
    snprintf(text, sizeof text, "%s:%d:%d: %s\n#   hint: %s", e->file, e->line, e->column,
             e->message, e->hint);
    return text;
}

static hwnas_space *parse_text(const char *text)
{
    hwnas_space *space = NULL;
    hwnas_status status = hwnas_space_parse(&space, "test.yaml", text, strlen(text), NULL);
    if (status == HWNAS_OK)
        status = hwnas_graph_check(space);
    if (status != HWNAS_OK)
        fail_msg("%s", describe());
    return space;
}

static hwnas_space *load(const char *name)
{
    hwnas_space *space = NULL;
    if (hwnas_graph_load_space(&space, name) != HWNAS_OK)
        fail_msg("%s", describe());
    return space;
}

/* ---- Expressions ---- */

/* What the expressions below can see: these choices, a variable `v` = 4 and a tensor of 16x8x6. */
static const char fixture_text[] = "hwnas: 1\nname: fixture\ninput: {image: [16, 8, 6]}\n"
                                   "choices:\n"
                                   "  k: {each_of: 3, values: [3, 5, 7]}\n"
                                   "  kind: {values: [pool, conv]}\n"
                                   "  w: {values: [0.5, 1.0]}\n"
                                   "network:\n  - relu\n  - let: {used: [k, kind, w]}\n";

/* The value of `text` as text (yours to free), or NULL. */
static char *evaluate(const char *text)
{
    hwnas_space *space = parse_text(fixture_text);
    const char *names[] = {"v"};
    bool is_visible[] = {true};
    hwnas_scope scope = {.space = space, .n = 1, .names = names, .is_visible = is_visible};
    hwnas_value kernels[] = {{.kind = HWNAS_VALUE_INT, .i = 3},
                             {.kind = HWNAS_VALUE_INT, .i = 5},
                             {.kind = HWNAS_VALUE_INT, .i = 7}};
    hwnas_value choices[] = {{.kind = HWNAS_VALUE_LIST, .list = {kernels, 3}},
                             {.kind = HWNAS_VALUE_SYMBOL, .s = "conv"},
                             {.kind = HWNAS_VALUE_REAL, .r = 0.5}};
    hwnas_value slots[] = {{.kind = HWNAS_VALUE_INT, .i = 4}}, value;
    int64_t dims[] = {16, 8, 6};
    hwnas_frame frame = {.slots = slots, .choices = choices, .dims = dims, .n_dims = 3};
    hwnas_place place = {"expr", 1, 1};
    hwnas_expr *expr;
    hwnas_arena *scratch = hwnas_arena_new();
    char *out = NULL;
    if (hwnas_expr_parse(&expr, &scope, text, &place, true) == HWNAS_OK &&
        hwnas_expr_eval(&value, expr, &frame, scratch) == HWNAS_OK)
        out = hwnas_value_text(&value);
    hwnas_arena_free(scratch);
    hwnas_space_free(space);
    return out;
}

static void expressions_have_their_values(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"1 + 2 * 3", "7"},
        {"(1 + 2) * 3", "9"},
        {"2 * 3 % 4", "2"},
        {"10 - 4 - 3", "3"},
        {"64 // 8 // 2", "4"},
        {"7 // 2", "3"},
        {"-7 // 2", "-4"}, /* (-7) // 2, floor as in Python */
        {"7 // -2", "-4"},
        {"-7 % 3", "2"},
        {"7 % -3", "-2"},
        {"-6 // 2", "-3"},
        {"7 / 2", "3.5"},
        {"6 / 2", "3"},
        {"7.5 // 2", "3.0"},
        {"-7.5 % 2", "0.5"},
        {"1.5 * 4", "6.0"},
        {"2e3", "2000.0"},
        {".5 + .25", "0.75"},
        {"- - 3", "3"},
        {"2 - -1", "3"},
        {"-k[0]", "-3"},
        {"1 < 2", "1"},
        {"2 <= 1", "0"},
        {"1 == 1.0", "1"},
        {"1 != 2", "1"},
        {"9007199254740993 > 9007199254740992", "1"}, /* beyond what a double tells apart */
        {"max(9007199254740992, 9007199254740993)", "9007199254740993"},
        {"not 1 == 2", "1"},
        {"not 0 and 0", "0"},
        {"1 or 0 and 0", "1"},
        {"0 and 1 // 0", "0"}, /* what does not matter is not looked at */
        {"1 or 1 // 0", "1"},
        {"1 ? 2 : 1 // 0", "2"},
        {"0 ? 1 : 0 ? 2 : 3", "3"},
        {"1 ? 0 ? 1 : 2 : 3", "2"},
        {"1 + 1 == 2 ? 10 : 20", "10"},
        {"true + yes", "2"},
        {"false or no", "0"},
        {"[1, 2 + 3, [4]]", "[1, 5, [4]]"},
        {"[]", "[]"},
        {"[10, 20, 30][1]", "20"},
        {"[[1, 2], [3, 4]][1][0]", "3"},
        {"k", "[3, 5, 7]"},
        {"k[2] // 2", "3"},
        {"k[v - 2]", "7"},
        {"kind", "conv"},
        {"kind == conv", "1"},
        {"kind == pool", "0"},
        {"kind != conv ? 1 : 2", "2"},
        {"k == [3, 5, 7]", "1"},
        {"in * v", "64"},
        {"height * width", "48"},
        {"w * 32", "16.0"},
        {"min(3, 1, 2)", "1"},
        {"max(1, 2.5)", "2.5"},
        {"max(4)", "4"},
        {"round(2.5)", "2"}, /* to even, as in Python */
        {"round(3.5)", "4"},
        {"round(-2.4)", "-2"},
        {"round(5)", "5"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775807 - 1", "-9223372036854775808"},
        {"orchid", "orchid"}, /* no 'or' in it */
        {"android == android", "1"},
        {" 1+2 ", "3"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = evaluate(cases[i][0]);
        if (!text)
            fail_msg("%s: %s", cases[i][0], describe());
        if (strcmp(text, cases[i][1]))
            fail_msg("%s is %s, not %s", cases[i][0], text, cases[i][1]);
        free(text);
    }
}

/* Channels of MobileNetV2 (Sandler et al. 2018; the reference code rounds 16, 24, 32, 64, 96, 160,
 * 320 times the width to multiples of 8) at the published widths, and squeeze-excite of
 * MobileNetV3. */
static void channels_round_as_published(void **state)
{
    (void)state;
    static const struct {
        double value;
        int divisor, rounded;
    } cases[] = {
        /* width 0.35: keras mobilenet_v2_0.35 */
        {32 * 0.35, 8, 16},
        {16 * 0.35, 8, 8},
        {24 * 0.35, 8, 8},
        {64 * 0.35, 8, 24},
        {96 * 0.35, 8, 32},
        {160 * 0.35, 8, 56},
        {320 * 0.35, 8, 112},
        /* width 0.75 */
        {32 * 0.75, 8, 24},
        {16 * 0.75, 8, 16},
        {24 * 0.75, 8, 24},
        {64 * 0.75, 8, 48},
        {96 * 0.75, 8, 72},
        {160 * 0.75, 8, 120},
        {320 * 0.75, 8, 240},
        /* width 1.4 */
        {32 * 1.4, 8, 48},
        {16 * 1.4, 8, 24},
        {24 * 1.4, 8, 32},
        {64 * 1.4, 8, 88},
        {96 * 1.4, 8, 136},
        {160 * 1.4, 8, 224},
        {320 * 1.4, 8, 448},
        {1280 * 1.4, 8, 1792},
        /* MobileNetV3-Large's squeeze: expanded / 4 */
        {72 / 4.0, 8, 24},
        {120 / 4.0, 8, 32},
        {480 / 4.0, 8, 120},
        {672 / 4.0, 8, 168},
        {960 / 4.0, 8, 240},
        {1, 8, 8},
        {0, 8, 8},
        {7, 1, 7},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64], expected[16];
        snprintf(text, sizeof text, "make_divisible(%.6f, %d)", cases[i].value, cases[i].divisor);
        snprintf(expected, sizeof expected, "%d", cases[i].rounded);
        char *rounded = evaluate(text);
        if (!rounded)
            fail_msg("%s: %s", text, describe());
        if (strcmp(rounded, expected))
            fail_msg("%s is %s, not %s", text, rounded, expected);
        free(rounded);
    }
}

static void expressions_fail_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int column;
        const char *word;
    } cases[] = {
        {"9223372036854775807 + 1", 1, "64 bits"},
        {"1 + 3037000500 * 3037000500", 5, "64 bits"},
        {"-9223372036854775807 - 2", 1, "64 bits"},
        {"-(-9223372036854775807 - 1)", 1, "64 bits"},
        {"(-9223372036854775807 - 1) // -1", 1, "64 bits"},
        {"9223372036854775808", 1, "64 bits"},
        {"1e400", 1, "too large"},
        {"1e308 * 10", 1, "64 bits"},
        {"1e308 / 1e-308", 1, "64 bits"},
        {"2 + 1 // 0", 5, "division by zero"},
        {"1 % 0", 1, "division by zero"},
        {"1 / 0.0", 1, "division by zero"},
        {"round(1e300)", 1, "64 bits"},
        {"make_divisible(10, 0)", 1, "no answer"},
        {"make_divisible(10, 2.5)", 1, "no answer"},
        {"make_divisible(10, 1e300)", 1, "no answer"},
        {"k[3]", 1, "no position 3 in a list of 3"},
        {"k[-1]", 1, "no position -1"},
        {"k[0][0]", 1, "a whole number has no positions"},
        {"k + 1", 1, "not a list"},
        {"kind * 2", 1, "a number was expected, not a name 'conv'"},
        {"kind ? 1 : 2", 1, "a condition is true or false, not a name 'conv'"},
        {"not k", 5, "a condition is true or false, not a list"},
        {"kind < 3", 1, "not a name"},
        {"1 + ", 5, "at the end"},
        {"(1 + 2", 7, "')' was expected at the end"},
        {"[1, 2", 6, "']' was expected"},
        {"1 2", 3, "an operator was expected"},
        {"1 ? 2", 6, "':' was expected"},
        {"a = 1", 3, "'= 1'"},
        {"1 && 2", 3, "&& 2"},
        {"!v", 1, "!v"},
        {"2 ** 3", 4, "* 3"},
        {"1 < 2 < 3", 1, "do not chain"},
        {"1.2.3", 4, ".3"},
        {"12px", 3, "px"},
        {"$v", 1, "$v"},
        {"maxx(1, 2)", 1, "no function 'maxx'"},
        {"foo(1)", 1, "no function 'foo'"},
        {"round(1, 2)", 1, "takes 1 value, not 2"},
        {"make_divisible(8)", 1, "takes 2 values, not 1"},
        {"min()", 1, "takes 1 or more values, not 0"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = evaluate(cases[i].text);
        const hwnas_error *e = hwnas_last_error();
        if (text)
            fail_msg("%s is %s", cases[i].text, text);
        if (e->status != HWNAS_E_INPUT || e->line != 1 || e->column != cases[i].column ||
            !strstr(e->message, cases[i].word))
            fail_msg("%s: expected column %d, '%s': %s", cases[i].text, cases[i].column,
                     cases[i].word, describe());
    }
    free(evaluate("maxx(1, 2)"));
    assert_string_equal(hwnas_last_error()->hint, "did you mean 'max'?");
    free(evaluate("v = 1"));
    assert_string_equal(hwnas_last_error()->hint, "write ==");
}

/* A chain or a nest of any length ends in a message, not at the end of the stack. */
static void long_expressions_end(void **state)
{
    (void)state;
    static const char *const parts[][2] = {{"1+", "1"},   {"(", "1"},     {"-", "1"},
                                           {"not ", "1"}, {"[", "]"},     {"1?", "1"},
                                           {"max(", "1"}, {"1 and ", "1"}};
    for (size_t i = 0; i < COUNT(parts); i++) {
        hwnas_str text = {0};
        for (int n = 0; n < 200000; n++)
            hwnas_str_add(&text, parts[i][0]);
        hwnas_str_add(&text, parts[i][1]);
        assert_null(evaluate(text.s));
        assert_non_null(strstr(hwnas_last_error()->message, "too long"));
        hwnas_str_done(&text);
    }
    hwnas_str text = {0};
    hwnas_str_add(&text, "k");
    for (int n = 0; n < 200000; n++)
        hwnas_str_add(&text, "[0]");
    assert_null(evaluate(text.s));
    assert_non_null(strstr(hwnas_last_error()->message, "too long"));
    hwnas_str_done(&text);
}

/* ---- Architectures ---- */

static void check_code(const hwnas_space *space, const char *code)
{
    hwnas_arch *arch = NULL;
    if (hwnas_arch_parse(&arch, space, code) != HWNAS_OK)
        fail_msg("%s", describe());
    char *again = hwnas_arch_code(arch);
    assert_string_equal(code, again);
    free(again);
    hwnas_arch_free(arch);
}

static void codes_are_those_of_the_data_sets(void **state)
{
    (void)state;
    static const struct {
        const char *space, *file;
    } cases[] = {{"accel_nasbench", HWNAS_TEST_DATA "/accel_nasbench.csv"},
                 {"nas_bench_macro", HWNAS_TEST_DATA "/nas_bench_macro.csv"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_space *space = load(cases[i].space);
        hwnas_csv *csv;
        assert_int_equal(hwnas_csv_load(&csv, cases[i].file), HWNAS_OK);
        for (size_t row = 0; row < csv->n_rows; row++) {
            char *code = NULL;
            long arch = hwnas_csv_column(csv, "arch");
            if (arch >= 0)
                code = hwnas_strdup(hwnas_csv_cell(csv, row, (size_t)arch));
            else
                code = hwnas_printf("e=%s,k=%s,l=%s,se=%s",
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "e")),
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "k")),
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "l")),
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "se")));
            check_code(space, code);
            free(code);
        }
        hwnas_csv_free(csv);
        hwnas_space_free(space);
    }
}

static void codes_of_long_labels_are_separated(void **state)
{
    (void)state;
    hwnas_space *space = parse_text("hwnas: 1\nname: labels\ninput: {image: [3, 8, 8]}\n"
                                    "choices:\n"
                                    "  w: {each_of: 3, values: [0.5, 1, 1.5, 5, 1e-3]}\n"
                                    "  c: {each_of: 2, values: [8, 16, -1]}\n"
                                    "  d: {values: [[1, 2], [10, 20, 30]]}\n"
                                    "network:\n  - relu\n  - let: {used: [w, c, d]}\n");
    check_code(space, "w=0.5:1:1.5,c=8.16,d=1.10");
    check_code(space, "w=1:5:1.5,c=-1.-1,d=2.30");
    check_code(space, "w=1.5:1:5,c=8.8,d=2.20");
    check_code(space, "w=1e-3:1e-3:5,c=8.8,d=2.20");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(1, 1);
    for (int n = 0; n < 1000; n++) {
        hwnas_arch_sample(arch, &rng);
        char *code = hwnas_arch_code(arch);
        check_code(space, code);
        free(code);
    }
    hwnas_arch_free(arch);
    /* Choices may come in any order, and a single one needs no name. */
    hwnas_arch *other = NULL;
    assert_int_equal(hwnas_arch_parse(&arch, space, "w=0.5:1:1.5,c=8.16,d=1.10"), HWNAS_OK);
    assert_int_equal(hwnas_arch_parse(&other, space, "d=1.10,w=0.5:1:1.5,c=8.16"), HWNAS_OK);
    assert_true(hwnas_arch_equal(arch, other));
    assert_int_equal(hwnas_arch_hash(arch), hwnas_arch_hash(other));
    hwnas_arch_free(arch);
    hwnas_arch_free(other);
    hwnas_space_free(space);
}

/* What does not count may be left out at a choice's end, or with the whole choice. */
static void codes_without_what_does_not_count(void **state)
{
    static const char *const pairs[][2] = {
        {"embed=50,layers=0", "embed=50,layers=0,cell=lstm,units=32.32.32,both=0,read=mean"},
        {"embed=64,layers=1,cell=gru,units=96,both=1,read=last",
         "embed=64,layers=1,cell=gru,units=96.32.32,both=1,read=last"},
        {"embed=64,layers=2,cell=gru,units=96.256.256,both=1,read=last",
         "embed=64,layers=2,cell=gru,units=96.256.32,both=1,read=last"},
    };
    (void)state;
    hwnas_space *space = load("lstm_text");
    for (size_t i = 0; i < COUNT(pairs); i++) {
        hwnas_arch *arch;
        if (hwnas_arch_parse(&arch, space, pairs[i][0]))
            fail_msg("%s: %s", pairs[i][0], describe());
        char *code = hwnas_arch_code(arch);
        assert_string_equal(code, pairs[i][1]);
        free(code);
        hwnas_arch_free(arch);
    }
    hwnas_space_free(space);
}

static void wrong_codes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *space, *code, *word;
    } cases[] = {
        {"nas_bench_macro", "", "'op' has 0 values, 8 are needed"},
        {"nas_bench_macro", "0000000", "'op' has 7 values, 8 are needed"},
        {"nas_bench_macro", "000000000", "more than 8 values"},
        {"nas_bench_macro", "00000003", "'3' is no value of 'op' at position 8"},
        {"nas_bench_macro", "0000 000", "' ' is no value"},
        {"nas_bench_macro", "op=0000000", "'op' has 7 values"},
        {"nas_bench_macro", "k=00000000", "'k=00000000' is no choice"},
        {"accel_nasbench", "", "'e' is missing"},
        {"accel_nasbench", "1666666", "'1666666' is no choice"},
        {"accel_nasbench", "e=1666666,k=3353553,l=1223341", "'se' is missing"},
        {"accel_nasbench", "e=1666666,k=3353553,l=1223341,se=1111111,e=1666666", "given twice"},
        {"accel_nasbench", "e=1666666,k=3353553,l=1223341,se=1111111,", "ends with ','"},
        {"accel_nasbench", "e=1666666,,k=3353553,l=1223341,se=1111111", "'' is no choice"},
        {"accel_nasbench", "e=1666666,k=3353553,l=4223341,se=1111111", "'4' is no value of 'l'"},
        {"accel_nasbench", "e=1666666,k=335355,l=1223341,se=1111111", "'k' has 6 values"},
        {"accel_nasbench", "E=1666666,k=3353553,l=1223341,se=1111111", "is no choice"},
        {"lstm_text", "embed=50,layers=1,cell=gru,both=0,read=last", "'units' is missing"},
        {"lstm_text", "embed=50,layers=2,cell=gru,units=64,both=0,read=last",
         "'units' has 1 values, 2 are needed"},
        {"lstm_text", "embed=50,layers=1,cell=gru,units=64.,both=0,read=last", "'' is no value of 'units'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_space *space = load(cases[i].space);
        hwnas_arch *arch = NULL;
        assert_int_equal(hwnas_arch_parse(&arch, space, cases[i].code), HWNAS_E_INPUT);
        assert_null(arch);
        if (!strstr(hwnas_last_error()->message, cases[i].word) ||
            !strstr(hwnas_last_error()->hint, "looks like"))
            fail_msg("'%s': expected '%s': %s", cases[i].code, cases[i].word, describe());
        hwnas_space_free(space);
    }
}

/* Pearson's statistic of each gene. Its mean is d (the degrees of freedom) and its variance 2 d, so
 * d + 5 sqrt(2 d) is five standard deviations; the tail of chi-square beyond that is below 1e-3
 * even for d = 1 or 2 and the seed is fixed, so a pass once is a pass for ever. */
static void sampling_is_uniform(void **state)
{
    (void)state;
    static const char *const names[] = {"accel_nasbench", "nas_bench_macro"};
    enum { N = 20000 };
    for (size_t s = 0; s < COUNT(names); s++) {
        hwnas_space *space = load(names[s]);
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(2026, 7);
        size_t(*counts)[8] = hwnas_alloc(space->n_genes * sizeof *counts);
        size_t pairs[9] = {0}; /* of the first two genes, which have two or three values */
        for (int n = 0; n < N; n++) {
            hwnas_arch_sample(arch, &rng);
            for (size_t g = 0; g < space->n_genes; g++)
                counts[g][arch->genes[g]]++;
            pairs[arch->genes[0] * 3 + arch->genes[1]]++;
        }
        for (size_t g = 0; g < space->n_genes; g++) {
            double d = (double)space->genes[g].n_values - 1;
            double expected = (double)N / (d + 1), chi = 0;
            for (size_t v = 0; v < space->genes[g].n_values; v++)
                chi += pow((double)counts[g][v] - expected, 2) / expected;
            if (chi > d + 5 * sqrt(2 * d))
                fail_msg("%s: gene %zu: chi-square %.1f with %.0f degrees", names[s], g, chi, d);
        }
        double chi = 0;
        for (size_t p = 0; p < 9; p++)
            chi += pow((double)pairs[p] - N / 9.0, 2) / (N / 9.0);
        assert_true(chi < 8 + 5 * sqrt(2 * 8)); /* and neighbours do not depend on each other */
        free(counts);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

static bool is_inside(const hwnas_arch *arch)
{
    for (size_t g = 0; g < arch->space->n_genes; g++)
        if (arch->genes[g] >= arch->space->genes[g].n_values)
            return false;
    return true;
}

static void mutation_changes_and_stays_inside(void **state)
{
    (void)state;
    hwnas_space *space = load("accel_nasbench");
    hwnas_arch *arch = hwnas_arch_new(space), *child = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(3, 3);
    static const double rates[] = {0, 1.0 / 28, 0.5, 1};
    for (size_t r = 0; r < COUNT(rates); r++) {
        size_t changed = 0;
        enum { N = 2000 };
        for (int n = 0; n < N; n++) {
            hwnas_arch_sample(arch, &rng);
            hwnas_arch_assign(child, arch);
            hwnas_arch_mutate(child, rates[r], &rng);
            assert_true(is_inside(child));
            assert_false(hwnas_arch_equal(arch, child));
            for (size_t g = 0; g < space->n_genes; g++)
                changed += arch->genes[g] != child->genes[g];
        }
        if (rates[r] == 0)
            assert_int_equal(changed, N);
        else if (rates[r] == 1)
            assert_int_equal(changed, N * space->n_genes);
        else if (rates[r] ==
                 0.5) /* binomial: mean 14, deviation sqrt(28) / 2; five of the mean's */
            assert_float_equal((double)changed / N, 14, 5 * sqrt(28.0) / 2 / sqrt(N));
    }
    hwnas_arch_free(arch);
    hwnas_arch_free(child);
    hwnas_space_free(space);

    /* What cannot change is left alone. */
    space = parse_text("hwnas: 1\nname: one\ninput: {image: [3, 8, 8]}\n"
                       "choices: {a: {values: [1]}, b: {values: [1, 2]}}\n"
                       "network:\n  - relu\n  - let: {used: a + b}\n");
    arch = hwnas_arch_new(space);
    for (int n = 0; n < 100; n++) {
        uint16_t before = arch->genes[1];
        hwnas_arch_mutate(arch, 0, &rng);
        assert_int_equal(arch->genes[0], 0);
        assert_int_not_equal(arch->genes[1], before);
    }
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static void crossing_takes_each_gene_from_a_parent(void **state)
{
    (void)state;
    hwnas_space *space = load("accel_nasbench");
    hwnas_arch *a = hwnas_arch_new(space), *b = hwnas_arch_new(space),
               *child = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(4, 4);
    size_t from_a = 0, differ = 0;
    for (int n = 0; n < 5000; n++) {
        hwnas_arch_sample(a, &rng);
        hwnas_arch_sample(b, &rng);
        hwnas_arch_cross(child, a, b, &rng);
        for (size_t g = 0; g < space->n_genes; g++) {
            assert_true(child->genes[g] == a->genes[g] || child->genes[g] == b->genes[g]);
            differ += a->genes[g] != b->genes[g];
            from_a += a->genes[g] != b->genes[g] && child->genes[g] == a->genes[g];
        }
    }
    assert_float_equal((double)from_a, (double)differ / 2, 5 * sqrt((double)differ) / 2);
    hwnas_arch_free(a);
    hwnas_arch_free(b);
    hwnas_arch_free(child);
    hwnas_space_free(space);
}

static void ten_thousand_samples_build(void **state)
{
    (void)state;
    static const char *const names[] = {"accel_nasbench", "nas_bench_macro"};
    for (size_t s = 0; s < COUNT(names); s++) {
        hwnas_space *space = load(names[s]);
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(5, 5);
        for (int n = 0; n < 10000; n++) {
            hwnas_graph *graph = NULL;
            hwnas_arch_sample(arch, &rng);
            if (hwnas_graph_build(&graph, arch, 1) != HWNAS_OK)
                fail_msg("%s", describe());
            hwnas_graph_free(graph);
        }
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

static void counts_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *choices, *count;
    } cases[] = {
        {"a: {values: [1]}", "1"},
        {"a: {each_of: 8, values: [0, 1, 2]}", "6561"},
        {"a: {values: [[1, 2], [1, 2, 3]]}", "6"},
        {"a: {each_of: 100, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}",
         "1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "0000000000"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = hwnas_printf("hwnas: 1\nname: x\ninput: {image: [1]}\nchoices: {%s}\n"
                                  "network: [relu, let: {used: a}]\n",
                                  cases[i].choices);
        hwnas_space *space = parse_text(text);
        char *count = hwnas_space_count(space, NULL);
        assert_string_equal(count, cases[i].count);
        free(count);
        free(text);
        hwnas_space_free(space);
    }
}

/* ---- The digest, held to the data set's own notion of the same network ---- */

typedef struct seen {
    hwnas_digest digest;
    const char *canonical;
} seen;

static int compare_seen(const void *a, const void *b)
{
    return strcmp(((const seen *)a)->digest.hex, ((const seen *)b)->digest.hex);
}

static int compare_canonical(const void *a, const void *b)
{
    return strcmp(((const seen *)a)->canonical, ((const seen *)b)->canonical);
}

static size_t count_different(const seen *rows, size_t n,
                              int (*compare)(const void *, const void *))
{
    size_t different = n > 0;
    for (size_t i = 1; i < n; i++)
        different += compare(&rows[i - 1], &rows[i]) != 0;
    return different;
}

/* Counted by hand: depth 1, 2, 3 leaves 2, 4, 8 kernels; 8 sides; half of the pairs of the first two
 * differ: (2 + 4 + 8) * 8 / 2 = 56. */
static void rules_decide_what_counts(void **state)
{
    (void)state;
    hwnas_space *space = parse_text(
        "hwnas: 1\nname: rules\ninput: {image: [3, size, size]}\nchoices:\n"
        "  size: {values: [8]}\n"
        "  depth: {values: [1, 2, 3]}\n"
        "  kernel: {each_of: 3, values: [1, 3], when: i < depth}\n"
        "  side: {each_of: 3, values: [1, 3]}\n"
        "constraints:\n  - kernel[0] != side[0]\n"
        "network:\n  - repeat: depth\n    do:\n      - conv: {out: 4, kernel: \"kernel[i]\", pad: 1}\n");
    bool is_exact = false;
    char *count = hwnas_space_count(space, &is_exact);
    assert_true(is_exact);
    assert_string_equal(count, "56");
    free(count);
    assert_int_equal(hwnas_space_count_up_to(space, 100), 56);
    assert_int_equal(hwnas_space_count_up_to(space, 55), 0);

    hwnas_arch *arch = hwnas_arch_new(space), *copy = hwnas_arch_new(space);
    size_t n = hwnas_arch_settle(arch);
    while (hwnas_arch_next(arch))
        n++;
    assert_int_equal(n, 56);

    hwnas_rng rng = hwnas_rng_new(5, 0);
    for (int i = 0; i < 1000; i++) {
        hwnas_arch_sample(arch, &rng);
        for (int step = 0; step < 2; step++) { /* as sampled, and changed */
            hwnas_arch_assign(copy, arch);
            assert_true(hwnas_arch_settle(copy) && hwnas_arch_equal(copy, arch));
            for (size_t g = 0; g < space->n_genes; g++)
                assert_true(hwnas_arch_is_active(arch, g) || arch->genes[g] == 0);
            hwnas_arch_mutate(arch, 0, &rng);
            assert_false(hwnas_arch_equal(copy, arch));
        }
    }
    hwnas_arch *none = NULL;
    assert_int_equal(hwnas_arch_parse(&none, space, "size=8,depth=1,kernel=111,side=111"),
                     HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "a constraint of the space does not hold"));
    assert_int_equal(hwnas_arch_parse(&none, space, "size=8,depth=1,kernel=133,side=311"), HWNAS_OK);
    char *code = hwnas_arch_code(none); /* what does not count is put to its first value */
    assert_string_equal(code, "size=8,depth=1,kernel=111,side=311");
    free(code);
    hwnas_arch_free(none);
    hwnas_arch_free(copy);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static void equal_digests_are_equal_networks(void **state)
{
    (void)state;
    hwnas_space *space = load("nas_bench_macro");
    hwnas_csv *csv;
    size_t canonical, code;
    assert_int_equal(hwnas_csv_load(&csv, HWNAS_TEST_DATA "/nas_bench_macro.csv"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&canonical, csv, "canonical_arch"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&code, csv, "arch"), HWNAS_OK);
    assert_int_equal(csv->n_rows, 6561);
    seen *rows = hwnas_alloc(csv->n_rows * sizeof *rows);
    hwnas_arch *arch = hwnas_arch_new(space);
    size_t n = 0;
    do { /* next() goes through the rows of the table in their order */
        char *text = hwnas_arch_code(arch);
        hwnas_graph *graph = NULL;
        assert_true(n < csv->n_rows);
        assert_string_equal(text, hwnas_csv_cell(csv, n, code));
        assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
        rows[n].digest = hwnas_graph_digest(graph);
        rows[n].canonical = hwnas_csv_cell(csv, n, canonical);
        n++;
        hwnas_graph_free(graph);
        free(text);
    } while (hwnas_arch_next(arch));
    assert_int_equal(n, 6561);
    for (size_t g = 0; g < space->n_genes; g++)
        assert_int_equal(arch->genes[g], 0); /* and begins again */

    qsort(rows, n, sizeof *rows, compare_canonical);
    assert_int_equal(count_different(rows, n, compare_canonical), 3969);
    for (size_t i = 1; i < n; i++)
        assert_true(compare_canonical(&rows[i - 1], &rows[i]) ||
                    !compare_seen(&rows[i - 1], &rows[i]));
    qsort(rows, n, sizeof *rows, compare_seen);
    assert_int_equal(count_different(rows, n, compare_seen), 3969);
    for (size_t i = 1; i < n; i++)
        assert_true(compare_seen(&rows[i - 1], &rows[i]) ||
                    !compare_canonical(&rows[i - 1], &rows[i]));
    hwnas_arch_free(arch);
    free(rows);
    hwnas_csv_free(csv);
    hwnas_space_free(space);
}

/* ---- The meaning of statements ---- */

/* Each space's only network, as "conv 8x4x4, relu 8x4x4". */
static void statements_do_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *templates, *network, *layers;
    } cases[] = {
        {"", "[relu, {conv: {out: 8}}]", "relu 3x8x8, conv 8x8x8"},
        {"", "[{conv: {out: in * 2, kernel: [1, 3], pad: [0, 1], stride: [2, 1]}}]", "conv 6x4x8"},
        {"", "[{let: {a: 2, b: a * 3}}, {conv: {out: b}}]", "conv 6x8x8"},
        {"", "[{let: {a: 2}}, {let: {a: a + 1}}, {conv: {out: a}}]", "conv 3x8x8"},
        {"", "[{if: in == 3, then: [relu], else: [flatten]}]", "relu 3x8x8"},
        {"", "[{then: [relu], if: in > 3, else: [flatten]}]", "flatten 192"},
        {"", "[{if: 0.5, then: [relu]}, {if: 0, then: [flatten]}]", "relu 3x8x8"},
        {"", "[{switch: in // 2, cases: {0: [flatten], 1: [relu], 2: []}}]", "relu 3x8x8"},
        {"", "[{repeat: 2, do: [{conv: {out: in + i + 1}}]}]", "conv 4x8x8, conv 6x8x8"},
        {"", "[{repeat: 2, index: n, do: [{repeat: 1, do: [{conv: {out: 9 + n + i}}]}]}]",
         "conv 9x8x8, conv 10x8x8"},
        {"", "[{repeat: 0, do: [flatten]}, relu]", "relu 3x8x8"},
        {"", "[{for: {a: [4, 5], b: [1, 2]}, do: [{conv: {out: a, stride: b}}]}]",
         "conv 4x8x8, conv 5x4x4"},
        {"", "[{for: {p: '[[4, 1], [5, 2]]'}, do: [{conv: {out: 'p[0]', stride: 'p[1]'}}]}]",
         "conv 4x8x8, conv 5x4x4"},
        {"", "[{add: [[relu], []]}]", "relu 3x8x8, add 3x8x8"},
        {"", "[{mul: [[], [global_avg_pool, {conv: {out: in}}]]}]",
         "global_avg_pool 3x1x1, conv 3x1x1, mul 3x8x8"},
        {"", "[{residual: [relu]}]", "relu 3x8x8, add 3x8x8"},
        {"", "[{residual: [relu], when: height > 8}]", "relu 3x8x8"},
        {"t(a, b = a + 1, c = max(b, 2)):\n    - conv: {out: a + b + c}", "[{t: {a: 1}}]",
         "conv 5x8x8"},
        {"t(a, b = a + 1, c = max(b, 2)):\n    - conv: {out: a + b + c}", "[{t: {a: 1, c: 10}}]",
         "conv 13x8x8"},
        {"t(n = in):\n    - conv: {out: n * 2}", "[t, t]", "conv 6x8x8, conv 12x8x8"},
        {"t:\n    - relu\n  u:\n    - t\n    - t", "[u]", "relu 3x8x8, relu 3x8x8"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = hwnas_printf(
            "hwnas: 1\nname: x\ninput: {image: [3, 8, 8]}\n%s%s\nnetwork: %s\n",
            *cases[i].templates ? "templates:\n  " : "", cases[i].templates, cases[i].network);
        hwnas_space *space = parse_text(text);
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_graph *graph = NULL;
        hwnas_str layers = {0};
        assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
        for (size_t n = 0; n < graph->n_nodes; n++)
            hwnas_str_addf(&layers, "%s%s %s", n ? ", " : "", graph->nodes[n].op->name,
                           hwnas_tensor_shape(&graph->tensors[graph->nodes[n].output]).s + 2);
        assert_string_equal(layers.s, cases[i].layers);
        hwnas_str_done(&layers);
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
        free(text);
    }
}

/* ---- Bad input ---- */

/* Reads and checks; the failure, or HWNAS_OK. */
static hwnas_status try_text(const char *text, size_t length)
{
    hwnas_space *space = NULL;
    hwnas_status status = hwnas_space_parse(&space, "test.yaml", text, length, NULL);
    if (status == HWNAS_OK)
        status = hwnas_graph_check(space);
    else
        assert_null(space);
    hwnas_space_free(space);
    return status;
}

/* Counts what is not as expected; HWNAS_SHOW prints every message, to be judged by a reader. */
static int n_wrong;

static void expect_failure(const char *text, size_t length, int line, int column, const char *word,
                           const char *hint)
{
    clock_t start = clock();
    hwnas_status status = try_text(text, length);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    const hwnas_error *e = hwnas_last_error();
    if (getenv("HWNAS_SHOW"))
        fprintf(stderr, "%s\n\n", status == HWNAS_OK ? "nothing" : describe());
    bool right = status == HWNAS_E_INPUT && !strcmp(e->file, "test.yaml") && e->line == line &&
                 e->column == column && strstr(e->message, word) &&
                 (!hint || strstr(e->hint, hint)) && !strchr(e->message, '\n') &&
                 !strchr(e->hint, '\n') && seconds < 10; /* one, and room for sanitizers */
    if (right)
        return;
    n_wrong++;
    print_message("# expected %d:%d '%s' '%s', got after %.1f s:\n# %s\n# of: %.300s\n", line,
                  column, word, hint ? hint : "", seconds,
                  status == HWNAS_OK ? "no failure" : describe(), text);
}

#define HEAD "hwnas: 1\nname: bad\ninput: {image: [3, 8, 8]}\n" /* three lines */
#define NET HEAD "network:\n"                                   /* four lines */
#define SEQUENCE "hwnas: 1\nname: bad\ninput: {x: [16, 64]}\n"      /* three lines */
#define CHOICES(text) HEAD "choices:\n" text "network:\n  - relu\n"
#define TEMPLATES(text) HEAD "templates:\n" text "network:\n  - relu\n"

static const struct bad_input {
    const char *text;
    int line, column;
    const char *word, *hint;
} bad_inputs[] = {
    /* The file */
    {"", 1, 1, "the file is empty", NULL},
    {"# nothing\n", 1, 1, "the file is empty", NULL},
    {"just a text\n", 1, 1, "a space must be a mapping", NULL},
    {"- a\n- b\n", 1, 1, "a space must be a mapping", NULL},
    {"hwnas: 1\nname: x\n", 1, 1, "a space needs 'input:'", NULL},
    {"name: x\ninput: {image: [3]}\nnetwork: [relu]\n", 1, 1, "a space needs 'hwnas:'", "hwnas: 1"},
    {"hwnas: 2\nname: x\nfuture: y\n", 1, 8, "reads version 1 of the language, not 2", NULL},
    {"hwnas: one\n", 1, 8, "must be a whole number", NULL},
    {"hwnas: -1\n", 1, 8, "not -1", NULL},
    {HEAD "netwrok:\n  - relu\n", 4, 1, "a space has no key 'netwrok'", "did you mean 'network'?"},
    {HEAD "zzz: 1\n", 4, 1, "a space has no key 'zzz'", "its keys are hwnas, name"},
    {"hwnas: 1\nname: x\nname: y\n", 3, 1, "the key 'name' is already on line 2", NULL},
    {"hwnas: 1\nname: 3d-net\ninput: {image: [3]}\nnetwork: [relu]\n", 2, 7, "cannot be the name",
     "letters, digits"},
    {"hwnas: 1\nname:\ninput: {image: [3]}\nnetwork: [relu]\n", 2, 6, "name is empty", NULL},
    {"hwnas: 1\nname: [x]\ninput: {image: [3]}\nnetwork: [relu]\n", 2, 7, "must be a single value",
     NULL},
    /* YAML */
    {HEAD "network:\n\t- relu\n", 5, 1, "a tab may not indent", "blanks"},
    {HEAD "network:\n  - relu\n---\nhwnas: 1\n", 6, 1, "a second document", NULL},
    {HEAD "network: &x\n  - relu\n", 4, 10, "anchors", "template"},
    {HEAD "network:\n  - *x\n", 5, 5, "aliases", "template"},
    {HEAD "network:\n  - !relu x\n", 5, 5, "tags", NULL},
    {HEAD "network:\n  - <<: {}\n", 5, 5, "no layer '<<'", NULL},
    {HEAD "network:\n  - [relu\n", 6, 1, "this is no YAML", NULL},
    {HEAD "network:\n  - conv: {out: in > 3 ? 1 : 2}\n", 5, 28, "this is no YAML", "quote"},
    {HEAD "network:\n  - conv:\n      out: 3\n     pad: 1\n", 7, 6, "this is no YAML",
     "indentation"},
    {HEAD "network:\n  - \"relu\n", 6, 1, "this is no YAML", NULL},
    {HEAD "? [a]\n: b\n", 4, 3, "a key must be a single word", NULL},
    {"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", 1, 4, "anchors", NULL}, /* laughs no more */
    /* Input */
    {"hwnas: 1\nname: x\ninput: [3, 8, 8]\nnetwork: [relu]\n", 3, 8, "input must be a mapping",
     NULL},
    {"hwnas: 1\nname: x\ninput: {a: [3], b: [3]}\nnetwork: [relu]\n", 3, 20,
     "nothing reads the input 'b'", "write - from: b"},
    {"hwnas: 1\nname: x\ninput: {image: []}\nnetwork: [relu]\n", 3, 16, "1 to 7 dimensions", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [1,1,1,1,1,1,1,1]}\nnetwork: [relu]\n", 3, 16,
     "1 to 7 dimensions", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [3, 0, 8]}\nnetwork: [relu]\n", 3, 20, "between 1 and",
     NULL},
    {"hwnas: 1\nname: x\ninput: {image: [3, -8, 8]}\nnetwork: [relu]\n", 3, 20, "not -8", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [3, 99999999999999999999]}\nnetwork: [relu]\n", 3, 20,
     "does not fit into 64 bits", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [1073741824, 1073741824, 1073741824]}\nnetwork: [relu]\n",
     3, 16, "more than 2^40 elements", NULL},
    {"hwnas: 1\nname: x\ninput: {image: 3x8x8}\nnetwork: [relu]\n", 3, 16,
     "the shape of the input must be a list", NULL},
    {"hwnas: 1\nname: x\ninput: {im age: [3]}\nnetwork: [relu]\n", 3, 9,
     "cannot be the name of an input", NULL},
    /* Choices */
    {CHOICES("  k: [3, 5]\n"), 5, 6, "a choice must be a mapping", "write k: {values: [1, 2, 3]}"},
    {CHOICES("  k: {value: [3, 5]}\n"), 5, 7, "a choice has no key 'value'",
     "did you mean 'values'?"},
    {CHOICES("  k: {each_of: 3}\n"), 5, 6, "'k' has no values", "{values: [1, 2, 3]}"},
    {CHOICES("  k: {values: 3}\n"), 5, 15, "values must be a list", NULL},
    {CHOICES("  k: {values: []}\n"), 5, 15, "needs 1 to 4096 values, not 0", NULL},
    {CHOICES("  k: {values: [[1], []]}\n"), 5, 21, "needs 1 to 4096 values, not 0", NULL},
    {CHOICES("  k: {values: [[1], 2]}\n"), 5, 21, "the values of a position must be a list", NULL},
    {CHOICES("  k: {values: [3, 5, 3]}\n"), 5, 22, "this value twice: '3' and '3'", NULL},
    {CHOICES("  k: {values: [1, true]}\n"), 5, 19, "'1' and 'true'", NULL},
    {CHOICES("  k: {values: [[1, 2]], each_of: 2}\n"), 5, 34, "for each position already", NULL},
    {CHOICES("  k: {values: [1, 2], each_of: 0}\n"), 5, 32, "between 1 and 4096", NULL},
    {CHOICES("  k: {values: [1, 2], each_of: 100000}\n"), 5, 32, "between 1 and 4096", NULL},
    {CHOICES("  k: {values: [1, 2], each_of: 4000}\n  l: {values: [1, 2], each_of: 97}\n"), 6, 6,
     "at most 4096 positions", NULL},
    {CHOICES("  k: {values: [in, out]}\n"), 5, 16, "must be constant, 'in'", NULL},
    {CHOICES("  k: {values: [a b]}\n"), 5, 18, "an operator was expected", NULL},
    {CHOICES("  k: {values: ['1 + 1', 2]}\n"), 5, 16, "may not hold a blank", NULL},
    {CHOICES("  k: {values: [{a: 1}]}\n"), 5, 16, "a value of a choice must be a single value",
     NULL},
    {CHOICES("  in: {values: [1, 2]}\n"), 5, 3, "has a meaning of its own", "current tensor"},
    {CHOICES("  a-b: {values: [1, 2]}\n"), 5, 3, "cannot be the name of a choice", NULL},
    {CHOICES("  pool: {values: [1, 2]}\n  op: {values: [conv, pool]}\n"), 6, 23,
     "must be constant, 'pool' is a choice", NULL},
    {CHOICES("  op: {values: [conv, pool]}\n  pool: {values: [1, 2]}\n"), 6, 3,
     "name of a choice and a value of one", NULL},
    {CHOICES("  a: {each_of: 2, values: [1, 2], when: b > 1}\n  b: {values: [1, 2]}\n"), 5, 41,
     "the choice 'b' is not known yet", "put it above"},
    {CHOICES("  a: {values: [1, 2], when: a > 1}\n"), 5, 29, "the choice 'a' is not known yet", NULL},
    {HEAD "choices:\n  a: {values: [1, 2]}\n  b: {values: [1, 2], when: 1 // (a - 1)}\nnetwork: [relu, let: {c: b}]\n", 6, 29,
     "division by zero", NULL},
    {CHOICES("  a: {values: [1, 2]}\nconstraints: [a > 2]\n"), 6, 15,
     "no architecture was found that meets the constraints", NULL},
    {CHOICES("  a: {values: [1, 2]}\nconstraints: [c > 2]\n"), 6, 15, "'c' is no name", NULL},
    {CHOICES("  a: {values: [1, 2]}\nconstraints: a > 2\n"), 6, 14, "constraints must be a list", NULL},
    {HEAD "choices: [k]\nnetwork: [relu]\n", 4, 10, "choices must be a mapping", NULL},
    /* Templates */
    {TEMPLATES("  t(a, a):\n    - relu\n"), 5, 8, "the parameter 'a' stands twice", NULL},
    {TEMPLATES("  t(a:\n    - relu\n"), 5, 3, "do not end with ')'", "write NAME(a, b = 1)"},
    {TEMPLATES("  t(a) b:\n    - relu\n"), 5, 3, "do not end with ')'", NULL},
    {TEMPLATES("  t(a b):\n    - relu\n"), 5, 5, "cannot be the name of a parameter", NULL},
    {TEMPLATES("  t(in):\n    - relu\n"), 5, 5, "has a meaning of its own", NULL},
    {TEMPLATES("  t(a, b = 1 +):\n    - relu\n"), 5, 15, "at the end of '1 +'", NULL},
    {TEMPLATES("  t(b = a, a = 1):\n    - conv: {out: b}\n"), 5, 9, "'a' is no name",
     "defaults behind it"},
    {TEMPLATES("  t:\n    - relu\n  t():\n    - relu\n"), 7, 3, "template 't' is already on line 5",
     NULL},
    {TEMPLATES("  conv(a):\n    - relu\n"), 5, 3, "'conv' is an operator", NULL},
    {TEMPLATES("  repeat(a):\n    - relu\n"), 5, 3, "a word of the language", NULL},
    {TEMPLATES("  t:\n    relu\n"), 6, 5, "a template must be a list", NULL},
    {TEMPLATES("  t:\n    - t\n"), 6, 7, "'t' contains itself", "repeat"},
    {TEMPLATES("  a:\n    - b\n  b:\n    - residual:\n        - c\n  c:\n    - a\n"), 11, 7,
     "'a' contains itself", "through 'c'"},
    {HEAD "templates:\n  t(n):\n    - conv: {out: n}\nnetwork:\n  - t\n", 8, 5, "'t' needs 'n'",
     "write t: {n: ...}"},
    {HEAD "templates:\n  t(size):\n    - conv: {out: size}\nnetwork:\n  - t: {sise: 3}\n", 8, 9,
     "'t' has no parameter 'sise'", "did you mean 'size'?"},
    {HEAD "templates:\n  t:\n    - relu\nnetwork:\n  - t: {n: 3}\n", 8, 9, "no parameter 'n'",
     "its parameters: none"},
    {HEAD "templates:\n  t:\n    - relu\nnetwork:\n  - t: [[relu]]\n", 8, 8, "a template takes",
     NULL},
    {HEAD "choices:\n  op: {values: [conv, pool]}\ntemplates:\n  t(pool):\n    - relu\nnetwork:\n"
          "  - relu\n",
     7, 5, "'pool' is a value of a choice", NULL},
    /* Layers */
    {HEAD "network:\n", 4, 9, "the network has no layer", NULL},
    {HEAD "network: []\n", 4, 10, "the network has no layer", NULL},
    {HEAD "network: relu\n", 4, 10, "network must be a list", NULL},
    {NET "  - cnov: {out: 3}\n", 5, 5, "there is no layer 'cnov'", "did you mean 'conv'?"},
    {NET "  - maxpool3000\n", 5, 5, "there is no layer 'maxpool3000'", "there are add, avg_pool"},
    {NET "  - resid: [relu]\n", 5, 13, "a branch must be a list", "write resid: [[...], [...]]"},
    {NET "  - conv: {out: 3, kernal: 3}\n", 5, 20, "'conv' has no argument 'kernal'",
     "did you mean 'kernel'?"},
    {NET "  - relu: {slope: 3}\n", 5, 12, "'relu' has no argument 'slope'", "it has none"},
    {NET "  - conv\n", 5, 5, "'conv' needs 'out': output channels", "write conv: {out: ...}"},
    {NET "  - relu\n  - if: 0\n    then:\n      - linear\n", 8, 9, "'linear' needs 'out'", NULL},
    {NET "  - conv: 3\n", 5, 11, "'conv' takes 'name: value', not '3'", "write conv: {NAME: 3}"},
    {NET "  - conv: {out: 3}\n    kernel: 3\n", 6, 5, "the layer 'conv' does not know 'kernel'",
     "indent"},
    {NET "  -\n", 5, 4, "a layer is empty", NULL},
    {NET "  - [relu]\n", 5, 5, "a layer was expected", NULL},
    {NET "  - {}\n", 5, 5, "a layer was expected", NULL},
    {NET "  - conv: {out: 3, out: 4}\n", 5, 20, "the key 'out' is already on line 5", NULL},
    {NET "  - conv: {out: }\n", 5, 17, "'out' is empty", NULL},
    {NET "  - conv: {out: {a: 1}}\n", 5, 17, "'out' must be a single value", NULL},
    {NET "  - conv: {out: three}\n", 5, 17, "'three' is no name that is known here", NULL},
    {NET "  - let: {channels: 4}\n  - conv: {out: chanels * 2}\n", 6, 17, "'chanels' is no name",
     "did you mean 'channels'?"},
    {NET "  - conv: {out: 3.5}\n", 5, 17, "'out' of 'conv' must be a whole number, not '3.5'",
     NULL},
    {NET "  - conv: {out: in / 2}\n", 5, 17, "must be a whole number, not '1.5'", NULL},
    {NET "  - conv: {out: [1, 2]}\n", 5, 17, "must be a whole number, not '[1, 2]'", NULL},
    {NET "  - conv: {out: 0}\n", 5, 17, "between 1 and 1073741824, not 0", "output channels"},
    {NET "  - conv: {out: -3}\n", 5, 17, "not -3", NULL},
    {NET "  - conv: {out: 3, kernel: 0}\n", 5, 28, "'kernel' of 'conv' must be between 1", NULL},
    {NET "  - conv: {out: 3, kernel: [3, 3, 3]}\n", 5, 28, "takes 1 or 2 values, not 3", NULL},
    {NET "  - conv: {out: 3, pad: [1, 1, 1]}\n", 5, 25, "takes 1, 2 or 4 values, not 3", NULL},
    {NET "  - conv: {out: 3, bias: 2}\n", 5, 26, "must be true or false, not '2'", NULL},
    {NET "  - conv: {out: 3, bias: ture}\n", 5, 26, "'ture' is no name", "did you mean 'true'?"},
    {NET "  - dropout: {rate: 1.5}\n", 5, 21, "between 0 and 1, not 1.5", NULL},
    {NET "  - conv: {out: 9223372036854775807 * 2}\n", 5, 17, "64 bits", NULL},
    {NET "  - conv: {out: 1073741824, kernel: 8}\n  - conv: {out: 1073741824}\n", 6, 5,
     "more than 2^40 elements", NULL},
    {NET "  - conv: {out: depth}\n", 5, 17, "'depth' is no name", NULL},
    {NET "  - flatten\n  - conv: {out: 3}\n", 6, 5, "'conv' needs an image", NULL},
    {NET "  - flatten\n  - linear: {out: height}\n", 6, 19, "the current tensor has no 'height'",
     NULL},
    /* Shapes that cannot be */
    {NET "  - conv: {out: 4, kernel: 9}\n", 5, 5, "larger than its padded input of 8", NULL},
    {NET "  - conv: {out: 4, groups: 2}\n", 5, 5, "groups", NULL},
    {NET "  - conv: {out: 4, groups: 3}\n", 5, 5,
     "3 groups do not divide both 3 input and 4 output channels", NULL},
    {NET "  - linear: {out: 10}\n", 5, 5, "'linear' needs batch x features", "flatten"},
    {NET "  - residual:\n      - conv: {out: 4}\n", 5, 5,
     "'add' cannot join the shapes 1x4x8x8 and "
     "1x3x8x8",
     "when:"},
    {NET "  - add: [[], [flatten]]\n", 5, 5, "cannot join the shapes", NULL},
    {NET "  - flatten: {axis: 7}\n", 5, 5, "axis 7", NULL},
    {HEAD "templates:\n  block(k):\n    - conv: {out: 4, kernel: k}\nnetwork:\n  - block: {k: 3}\n"
          "  - block: {k: 7}\n",
     6, 7, "in block_1: 'conv': a kernel that reaches over 7", NULL},
    {HEAD "choices:\n  k: {values: [1, 9]}\nnetwork:\n  - conv: {out: 4, kernel: k}\n", 7, 5,
     "architecture 9: 'conv'", NULL},
    /* Joins */
    {NET "  - add\n", 5, 5, "'add' needs branches", "write add: [[...], [...]]"},
    {NET "  - add: [[relu]]\n", 5, 5, "'add' joins 2 to 64 branches, not 1", NULL},
    {NET "  - from: x\n", 5, 11, "no 'as' gives a tensor the name 'x'", "write - as: x"},
    {NET "  - as: stem\n  - relu\n  - from: stam\n", 7, 11, "no 'as' gives a tensor the name 'stam'",
     "did you mean 'stem'?"},
    {NET "  - from: x\n  - relu\n  - as: x\n", 5, 5, "'x' names no tensor yet", "before it is used"},
    {NET "  - as: x[1\n", 5, 9, "does not end with ']'", "NAME[INDEX]"},
    {NET "  - as: x[5000]\n  - relu\n", 5, 11, "an index is 0 to 4095", NULL},
    {NET "  - frm: x\n", 5, 10, "'frm' takes 'name: value', not 'x'", "did you mean 'from'?"},
    {NET "  - frm\n", 5, 5, "there is no layer 'frm'", "did you mean 'from'?"},
    {CHOICES("  a: {values: [1, 2]}\n"), 5, 3, "nothing uses the choice 'a'", "leave it out"},
    {NET "  - output: x\n", 5, 5, "the output 'x' is not computed: it is 'image'", NULL},
    {NET "  - relu\n  - output: x\n  - output: y\n", 7, 5, "'y' is the output 'x' already", NULL},
    {NET "  - relu\n  - output: x\n  - tanh\n  - output: x\n", 8, 5, "a tensor 'x' already",
     "x[i]"},
    {NET "  - relu\n  - from: image\n", 5, 3, "ends with 'image', which is not computed", NULL},
    {NET "  - relu\n  - as: image\n", 6, 9, "'image' is an input of the network", NULL},
    {NET "  - relu\n  - from: image[0]\n", 6, 11, "there is one 'image'", "write image"},
    {NET "  - transpose: {order: [0, 1]}\n", 5, 5, "each of the dimensions 0 to 3", NULL},
    {NET "  - reshape: {shape: [7, 9]}\n", 5, 5, "do not fit into 1x7x9", NULL},
    {NET "  - slice: {begin: 3}\n", 5, 5, "takes nothing", NULL},
    {NET "  - matmul: [[], [conv: {out: 2}]]\n", 5, 5, "cannot multiply the shapes", NULL},
    {NET "  - embedding: {entries: 9, out: 4}\n", 5, 5, "holds no whole numbers", "type: int64"},
    {NET "  - tied_linear\n", 5, 5, "no embedding of length 8", NULL},
    {NET "  - concat: [[], []]\n    axs: 2\n", 6, 5, "has no argument 'axs'", "did you mean 'axis'"},
    {NET "  - as: 3\n", 5, 9, "'3' cannot be the name of a tensor", NULL},
    {NET "  - add: [relu, relu]\n", 5, 11, "a branch must be a list", NULL},
    {NET "  - conv: [[relu], [relu]]\n", 5, 5, "'conv' does not join branches", "no list"},
    /* Statements */
    {NET "  - if: in > 2\n", 5, 5, "'if' needs 'then:'", NULL},
    {NET "  - if: in > 2\n    then: [relu]\n    elif: [relu]\n", 7, 5, "if has no key 'elif'",
     NULL},
    {NET "  - if: in > 2\n    then: relu\n", 6, 11, "then must be a list", NULL},
    {NET "  - if: big\n    then: [relu]\n", 5, 9, "'big' is no name", NULL},
    {NET "  - if: [1]\n    then: [relu]\n", 5, 9, "a condition is true or false, not a list", NULL},
    {HEAD "choices:\n  op: {values: [conv, pool]}\nnetwork:\n  - if: op\n    then: [relu]\n", 7, 9,
     "a condition is true or false, not a name 'conv'", "a == b"},
    {HEAD "choices:\n  op: {values: [conv, pool]}\nnetwork:\n  - if: op == pol\n    then: [relu]\n",
     7, 15, "nothing can be equal to 'pol'", "did you mean 'pool'?"},
    {NET "  - if\n", 5, 5, "'if' stands alone", NULL},
    {NET "  - switch: in\n", 5, 5, "'switch' needs 'cases:'", NULL},
    {NET "  - switch: in\n    cases: [relu]\n", 6, 12, "cases must be a mapping", NULL},
    {NET "  - switch: in\n    cases: {1: [relu], 2: [relu]}\n", 5, 13, "there is no case for '3'",
     "the cases are 1, 2"},
    {NET "  - switch: in\n    cases: {3: [relu], 3.0: [relu]}\n", 6, 24,
     "'3' and '3.0' have the same", NULL},
    {NET "  - switch: in\n    cases: {in: [relu]}\n", 6, 13, "a case must be constant", NULL},
    {HEAD "choices:\n  op: {values: [1, 2]}\nnetwork:\n  - switch: op\n    cases: {op: [relu]}\n",
     8, 13, "a case must be constant, 'op' is a choice", NULL},
    {NET "  - for: {a: [1, 2], b: [1, 2, 3]}\n    do: [relu]\n", 5, 25,
     "equally long: 'a' has 2, 'b' 3", NULL},
    {NET "  - for: {a: 3}\n    do: [relu]\n", 5, 14,
     "must walk over a list, this is a whole number", "repeat"},
    {NET "  - for: {}\n    do: [relu]\n", 5, 10, "'for' needs a list", NULL},
    {NET "  - for: {a: [1, 2]}\n", 5, 5, "'for' needs 'do:'", NULL},
    {NET "  - for: {a: [1]}\n    do: []\n  - conv: {out: a}\n", 7, 17, "'a' is no name", NULL},
    {NET "  - repeat: 1000000000\n    do: [relu]\n", 5, 13, "cannot repeat 1000000000 times", NULL},
    {NET "  - repeat: -1\n    do: [relu]\n", 5, 13, "cannot repeat -1 times", NULL},
    {NET "  - repeat: 1.5\n    do: [relu]\n", 5, 13, "a whole number was expected, not 1.5", "//"},
    {NET "  - repeat: 100000\n    do: [relu, relu]\n", 6, 10, "more than 100000 layers", NULL},
    {NET "  - repeat: 100000\n    do: [{repeat: 100000, do: []}]\n", 6, 10, "steps to build",
     "loops"},
    {NET "  - repeat: 3\n    index: 3\n    do: [relu]\n", 6, 12, "cannot be the name", NULL},
    {NET "  - let: 3\n", 5, 10, "let must be a mapping", NULL},
    {NET "  - let: {in: 3}\n", 5, 11, "has a meaning of its own", NULL},
    {NET "  - let: {a: b, b: 1}\n  - conv: {out: a}\n", 5, 14, "'b' is no name", NULL},
    {NET "  - residual: relu\n", 5, 15, "residual must be a list", NULL},
    {NET "  - residual: [relu]\n    wen: 1\n", 6, 5, "residual has no key 'wen'",
     "did you mean 'when'?"},
    /* Cells, heads, conditions */
    {NET "  - add:\n      - - from: x\n      - - relu\n  - as: x\n", 6, 11, "'x' names no tensor yet",
     "nothing is made of itself"},
    {NET "  - as: n[0]\n  - repeat: 2\n    do:\n      - add: [[from: \"n[i]\"], [from: \"n[i + 1]\"]]\n"
         "      - as: n[i + 1]\n",
     8, 32, "'n[1]' names no tensor yet", "nothing is made of itself"},
    {SEQUENCE "choices:\n  heads: {values: [4, 5]}\nnetwork:\n"
              "  - reshape: {shape: [length, heads, in // heads]}\n",
     7, 5, "the 1024 values of the shape 1x16x64 do not fit into 1x16x5x12", "hidden % heads == 0"},
    {SEQUENCE "choices:\n  heads: {values: [4, 5]}\nnetwork:\n"
              "  - reshape: {shape: [length, heads, in / heads]}\n",
     7, 22, "must be a whole number or a list of them, not '12.8'", NULL},
    {CHOICES("  a: {values: [1, 2], when: b == 1}\n  b: {values: [1, 2], when: a == 1}\n"), 5, 29,
     "a condition sees the choices above", "in a circle"},
    /* Sizes beyond 64 bits */
    {NET "  - conv: {out: 99999999999999999999}\n", 5, 17, "does not fit into 64 bits", NULL},
    {NET "  - conv: {out: 4294967296 * 4294967296}\n", 5, 17, "does not fit into 64 bits", NULL},
    {NET "  - conv: {out: 9223372036854775807}\n", 5, 17, "must be between 1 and 1073741824",
     "output channels"},
    {NET "  - upsample: {by: 1048576}\n  - upsample: {by: 1048576}\n", 5, 5,
     "more than 2^40 elements", NULL},
    {NET "  - conv: {out: 1073741824}\n  - conv: {out: 1073741824}\n", 6, 5,
     "'conv_1.weight' would have more than 2^40 elements", NULL},
    {NET "  - flatten\n  - reshape: {shape: [1073741824, 1073741824, 1073741824]}\n", 6, 5,
     "do not fit into 1x1073741824x1073741824x1073741824", NULL},
    {"hwnas: 1\nname: bad\ninput: {x: {shape: [8], each: 99999999999}}\nnetwork: [relu]\n", 3, 31,
     "an input comes 0 to 4095 times", NULL},
    {NET "  - conv: {out: \"in + \\\n      foo\"}\n", 5, 17, "'foo' is no name",
     NULL}, /* no columns */
};

static void bad_input_is_explained(void **state)
{
    (void)state;
    n_wrong = 0;
    for (size_t i = 0; i < COUNT(bad_inputs); i++) {
        const struct bad_input *bad = &bad_inputs[i];
        expect_failure(bad->text, strlen(bad->text), bad->line, bad->column, bad->word, bad->hint);
    }
    assert_int_equal(n_wrong, 0);
}

static void bytes_that_are_no_text(void **state)
{
    (void)state;
    n_wrong = 0;
    static const struct {
        const char *text;
        size_t length;
        int line, column;
        const char *word;
    } cases[] = {
        {"hwnas: 1\nname: \xff\xfe\n", 17, 2, 7, "no text in UTF-8"},
        {"hwnas: 1\nname: a\0b\n", 19, 2, 8, "may not hold the byte 0x00"},
        {"hwnas: 1\nname: a\033b\n", 19, 2, 8, "may not hold the byte 0x1b"},
        {"hwnas: 1\nname: \"a\\0b\"\n", 22, 2, 7, "zero byte"},
        {"h\0w\0n\0a\0s\0", 10, 1, 2, "may not hold the byte 0x00"}, /* UTF-16 */
        {"\xef\xbb\xbfhwnas: 3\n", 12, 1, 9, "version 1"},           /* a byte order mark is fine */
        {"hwnas: 1\r\nname: \xc3\xa9\r\nzzz: 1\r\n", 28, 3, 1, "no key 'zzz'"},
        {"hwnas: 1\nname: \xc3", 16, 2, 7, "no text in UTF-8"},
        /* What is quoted in a message stays one line and cannot steer a terminal. */
        {"\"a\\nb\\e[31m\\x9b\": 1\n", 20, 1, 1, "no key 'a b [31m"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_failure(cases[i].text, cases[i].length, cases[i].line, cases[i].column,
                       cases[i].word, NULL);
    assert_int_equal(n_wrong, 0);
}

static void expect_built(hwnas_str *text, int line, int column, const char *word)
{
    expect_failure(text->s, text->n, line, column, word, NULL);
    hwnas_str_done(text);
}

/* Files that grow while they are read: each must end soon, see expect_failure(). */
static void bombs_end_quickly(void **state)
{
    (void)state;
    n_wrong = 0;
    hwnas_str text = {0};
    enum { MANY = 100000 };
    /* One flow list in another. */
    hwnas_str_add(&text, NET "  - ");
    for (int i = 0; i < MANY; i++)
        hwnas_str_add(&text, "[");
    expect_built(&text, 5, 68, "levels inside each other");
    /* One item in another, and one mapping. */
    hwnas_str_add(&text, NET "  ");
    for (int i = 0; i < MANY; i++)
        hwnas_str_add(&text, "- ");
    expect_built(&text, 5, 131, "levels inside each other");
    hwnas_str_add(&text, NET "  - ");
    for (int i = 0; i < MANY; i++)
        hwnas_str_add(&text, "{a: ");
    expect_built(&text, 5, 254, "levels inside each other");
    /* Ever deeper on lines of their own. */
    hwnas_str_add(&text, HEAD "network:\n");
    for (int i = 1; i < 3000; i++)
        hwnas_str_addf(&text, "%*s- residual:\n", 2 * i, "");
    expect_built(&text, 36, 67, "levels inside each other");
    /* The billion laughs. */
    hwnas_str_add(&text, "l0: &l0 [lol]\n");
    for (int i = 1; i < 30; i++)
        hwnas_str_addf(&text, "l%d: &l%d [*l%d, *l%d, *l%d]\n", i, i, i - 1, i - 1, i - 1);
    expect_built(&text, 1, 5, "anchors");
    /* Templates that double: within the depth, and beyond it. */
    static const int depths[] = {30, 40};
    for (size_t d = 0; d < COUNT(depths); d++) {
        hwnas_str_add(&text, HEAD "templates:\n");
        for (int i = 0; i < depths[d]; i++)
            hwnas_str_addf(&text, "  t%d:\n    - t%d\n    - t%d\n", i, i + 1, i + 1);
        hwnas_str_addf(&text, "  t%d: []\nnetwork:\n  - t0\n", depths[d]);
        assert_int_equal(try_text(text.s, text.n), HWNAS_E_INPUT);
        expect_built(&text, hwnas_last_error()->line, hwnas_last_error()->column,
                     d ? "templates inside each other" : "steps to build");
    }
    /* Many of everything. */
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "k%d: 1\n", i);
    expect_built(&text, 1, 1, "a space has no key 'k0'");
    hwnas_str_add(&text, HEAD "templates:\n");
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "  t%d: [relu]\n", i);
    hwnas_str_add(&text, "network: [relu]\n");
    expect_built(&text, 5, 3, "at most 1000 templates");
    hwnas_str_add(&text, NET);
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "  - let: {v%d: 1}\n", i);
    expect_built(&text, 1005, 11, "more than 1000 variables");
    hwnas_str_add(&text, HEAD "choices:\n");
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "  c%d: {values: [1]}\n", i);
    hwnas_str_add(&text, "network: [relu]\n");
    expect_built(&text, 5, 3, "at most 4096 choices");
    hwnas_str_add(&text, HEAD "choices:\n  c: {values: [0");
    for (int i = 1; i < MANY; i++)
        hwnas_str_addf(&text, ", %d", i);
    hwnas_str_add(&text, "]}\nnetwork: [relu]\n");
    expect_built(&text, 5, 15, "1 to 4096 values, not 100000");
    /* A long list that is made again and again. */
    hwnas_str_add(&text, NET "  - repeat: 100000\n    do:\n      - for: {a: [0");
    for (int i = 1; i < 100000; i++)
        hwnas_str_add(&text, ", 1");
    hwnas_str_add(&text, "]}\n        do: []\n");
    expect_built(&text, 7, 9, "steps to build");
    /* A name as long as a file. */
    hwnas_str_add(&text, HEAD "templates:\n  ");
    for (int i = 0; i < 1000; i++)
        hwnas_str_add(&text, "a");
    hwnas_str_add(&text, ":\n    - relu\nnetwork: [relu]\n");
    expect_built(&text, 5, 3, "longer than 64");
    assert_int_equal(n_wrong, 0);
}

/* The most that is let through still adds up. */
static void sums_stay_within_64_bits(void **state)
{
    (void)state;
    hwnas_space *space =
        parse_text("hwnas: 1\nname: big\ninput: {image: [256, 1024, 1024]}\nnetwork:\n"
                   "  - repeat: 100000\n    do:\n"
                   "      - conv: {out: 256, kernel: 31, pad: 15}\n");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_graph *graph = NULL;
    hwnas_costs costs;
    assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
    hwnas_graph_costs(&costs, graph);
    assert_float_equal((double)costs.macs, 1e5 * 0x1p36 * 961, 1e10);
    assert_true(costs.peak_bytes > 0);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    static const char heavy[] =
        "hwnas: 1\nname: heavy\ninput: {image: [1024, 1024, 1024]}\nnetwork:\n"
        "  - conv: {out: 1024, kernel: 31, pad: 15}\n";
    n_wrong = 0;
    expect_failure(heavy, strlen(heavy), 5, 5, "'conv' would take 1e+15 multiply-accumulates",
                   NULL);
    assert_int_equal(n_wrong, 0);
}

/* What the two sides of a limit do. */
static void large_spaces_are_read(void **state)
{
    (void)state;
    hwnas_str text = {0};
    hwnas_str_add(&text, HEAD "choices:\n  op: {each_of: 4096, values: [a, b, c, d]}\n"
                              "network:\n  - relu\n  - let: {used: op}\n");
    hwnas_space *space = parse_text(text.s);
    hwnas_arch *arch = hwnas_arch_new(space), *same = NULL;
    hwnas_rng rng = hwnas_rng_new(6, 6);
    hwnas_arch_sample(arch, &rng);
    char *code = hwnas_arch_code(arch);
    assert_int_equal(strlen(code), 4096);
    assert_int_equal(hwnas_arch_parse(&same, space, code), HWNAS_OK);
    assert_true(hwnas_arch_equal(arch, same));
    free(code);
    hwnas_arch_free(arch);
    hwnas_arch_free(same);
    hwnas_space_free(space);
    hwnas_str_done(&text);

    hwnas_str_add(&text, HEAD "templates:\n");
    for (int i = 0; i < 30; i++)
        hwnas_str_addf(&text, "  t%d:\n    - t%d\n", i, i + 1);
    hwnas_str_add(&text, "  t30: [relu]\nnetwork:\n  - t0\n");
    hwnas_space_free(parse_text(text.s));
    hwnas_str_done(&text);

    hwnas_str_add(&text, NET "  - repeat: 20000\n    do: [relu]\n");
    hwnas_space_free(parse_text(text.s));
    hwnas_str_done(&text);
}

/* ---- The page about the language ---- */

/* Every operator and argument is mentioned in docs/search-spaces.md, in the operator's row. */
static void the_page_names_every_operator(void **state)
{
    (void)state;
    char *page, row[64], name[64];
    size_t length;
    assert_int_equal(
        hwnas_file_read(&page, &length, HWNAS_SOURCE_DIR "/docs/search-spaces.md", 1 << 20),
        HWNAS_OK);
    for (const hwnas_op *const *op = hwnas_ops; *op; op++) {
        if ((*op)->is_internal)
            continue;
        snprintf(row, sizeof row, "| `%s` |", (*op)->name);
        char *found = strstr(page, row);
        if (!found)
            fail_msg("docs/search-spaces.md has no row for '%s'", (*op)->name);
        char *line = strndup(found, strcspn(found, "\n"));
        for (const hwnas_attr_row *attr = (*op)->attrs; attr->name; attr++) {
            snprintf(name, sizeof name, "`%s`", attr->name);
            if (!strstr(line, name))
                fail_msg("docs/search-spaces.md: '%s' lacks '%s'", (*op)->name, attr->name);
        }
        free(line);
    }
    free(page);
}

/* An argument is a pattern: only the cases whose names match are run. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_their_values),
        cmocka_unit_test(channels_round_as_published),
        cmocka_unit_test(expressions_fail_at_their_place),
        cmocka_unit_test(long_expressions_end),
        cmocka_unit_test(codes_are_those_of_the_data_sets),
        cmocka_unit_test(codes_of_long_labels_are_separated),
        cmocka_unit_test(codes_without_what_does_not_count),
        cmocka_unit_test(wrong_codes_are_refused),
        cmocka_unit_test(sampling_is_uniform),
        cmocka_unit_test(mutation_changes_and_stays_inside),
        cmocka_unit_test(crossing_takes_each_gene_from_a_parent),
        cmocka_unit_test(ten_thousand_samples_build),
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(rules_decide_what_counts),
        cmocka_unit_test(equal_digests_are_equal_networks),
        cmocka_unit_test(statements_do_what_they_say),
        cmocka_unit_test(bad_input_is_explained),
        cmocka_unit_test(bytes_that_are_no_text),
        cmocka_unit_test(bombs_end_quickly),
        cmocka_unit_test(sums_stay_within_64_bits),
        cmocka_unit_test(large_spaces_are_read),
        cmocka_unit_test(the_page_names_every_operator),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
