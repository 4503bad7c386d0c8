/* test_space_language.c: what the space language says: expressions and their values, what
 * statements do, and whether its page tells all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "graph/op.h"
#include "space/scope.h"
#include "tests/unit/space_fixture.h"

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
    hwnas_scope_frame frame = {.slots = slots, .choices = choices, .dims = dims, .n_dims = 3};
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_have_their_values),
        cmocka_unit_test(channels_round_as_published),
        cmocka_unit_test(expressions_fail_at_their_place),
        cmocka_unit_test(long_expressions_end),
        cmocka_unit_test(statements_do_what_they_say),
        cmocka_unit_test(the_page_names_every_operator),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
