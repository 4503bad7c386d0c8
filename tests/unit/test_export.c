/* test_export.c: src/report. Every operator has its PyTorch; expressions keep their meaning and get
 * no brackets that they do not need. tests/cli/pytorch.bats looks at whole files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "graph/op.h"
#include "export/python.h"
#include "export/pytorch_flat.h"
#include "export/pytorch.h"

static void every_operator_can_be_written(void **state)
{
    (void)state;
    for (const hwnas_op *const *op = hwnas_ops; *op; op++)
        if (!(*op)->is_internal && !hwnas_pytorch_knows((*op)->name))
            fail_msg("'%s' has no row in src/export/pytorch_ops.c", (*op)->name);
    for (int i = 0; i < HWNAS_N_OPS; i++) {
        const hwnas_flat_row *row = &hwnas_flat_rows[i];
        if (hwnas_ops[i]->onnx && !row->text && !row->write && !row->module)
            fail_msg("'%s' has no row in src/export/pytorch_flat_ops.c", hwnas_ops[i]->name);
    }
}

static void class_names(void **state)
{
    static const struct {
        const char *name, *class;
    } rows[] = {
        {"conv_bn", "ConvBN"},
        {"squeeze_excite", "SqueezeExcite"},
        {"mbconv", "MBConv"},
        {"accel_nasbench", "AccelNASBench"},
        {"nas_bench_macro", "NASBenchMacro"},
        {"resnet50", "Resnet50"},
        {"x", "X"},
        {"101_ways", "Net101Ways"},
    };
    hwnas_arena *arena = hwnas_arena_new();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(hwnas_py_class_name(arena, rows[i].name), rows[i].class);
    hwnas_arena_free(arena);
}

/* The module of a space whose template says `out: EXPRESSION` in terms of a, b and c. */
static char *export_expression(const char *expression)
{
    hwnas_space *space = NULL;
    hwnas_str python = {0};
    char *text = hwnas_printf("hwnas: 1\n"
                              "name: test\n"
                              "input: {image: [3, 8, 8]}\n"
                              "templates:\n"
                              "  t(a, b, c):\n"
                              "    - conv: {out: \"%s\"}\n"
                              "network:\n"
                              "  - t: {a: 7, b: 2, c: 1}\n"
                              "  - t: {a: 1, b: 5, c: 0}\n",
                              expression);
    if (hwnas_space_parse(&space, "test.yaml", text, strlen(text), NULL) ||
        hwnas_graph_check(space))
        fail_msg("%s: %s", expression, hwnas_last_error()->message);
    hwnas_arch *arch = hwnas_arch_new(space);
    assert_int_equal(hwnas_pytorch_write(&python, arch), HWNAS_OK);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    free(text);
    return python.s;
}

static void expressions(void **state)
{
    static const struct {
        const char *space, *python;
    } rows[] = {
        {"a + b * 2", "a + b * 2"},
        {"(a + b) * 2", "(a + b) * 2"},
        {"a + (b + 2)", "a + (b + 2)"},
        {"(a * b) // 2 + 1", "a * b // 2 + 1"},
        {"a * (b // 2 + 1)", "a * (b // 2 + 1)"},
        {"8 - (b - a)", "8 - (b - a)"},
        {"8 - -a", "8 - -a"},
        {"a == 7 ? b : c + 1", "b if a == 7 else c + 1"},
        {"(a == 7 ? b : c) + 1", "(b if a == 7 else c) + 1"},
        {"a == 7 ? (b == 2 ? 3 : 4) : c + 1", "3 if a == 7 else c + 1"},
        {"(a == 7) == c ? a : b", "a"},
        {"(a > 2) != c ? a : b", "b"},
        {"a > 2 and b > 1 or c == 0 ? a : b", "a"},
        {"a > 2 and (b > 5 or c == 0) ? a : b", "b"},
        {"not (a > 2 or c) ? a : b", "a if not (a > 2 or c) else b"},
        {"not a > 2 ? a : b", "a if not a > 2 else b"},
        {"(a > 2) == (b > 2) ? a : b", "b"},
        {"(a > 2) * 3 + 1", "(a > 2) * 3 + 1"},
        {"max(a, b, 3) - min(a, 1)", "max(a, b, 3) - min(a, 1)"},
        {"in * 2 / 2", "in_channels * 2 // 2"},
        {"round(in / 2)", "round(in_channels / 2)"},
        {"[8, 16][c]", "[8, 16][c]"},
        {"height + a", "8 + a"},
        {"2 + 3 * 4 + a", "14 + a"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *python = export_expression(rows[i].space);
        char *line = hwnas_printf("nn.Conv2d(in_channels, %s, 1)", rows[i].python);
        if (!strstr(python, line))
            fail_msg("%s: no %s in\n%s", rows[i].space, line, python);
        free(line);
        free(python);
    }
}

/* forward() of a network of 8 channels whose statements are `network`, as one line. */
static char *export_forward(const char *network)
{
    hwnas_space *space = NULL;
    hwnas_str python = {0};
    char *text = hwnas_printf("hwnas: 1\n"
                              "name: test\n"
                              "input: {image: [c, 2 * s, s + s]}\n"
                              "choices: {c: {values: [8]}, s: {values: [4]}}\n"
                              "network: [%s]\n",
                              network);
    if (hwnas_space_parse(&space, "test.yaml", text, strlen(text), NULL) ||
        hwnas_graph_check(space))
        fail_msg("%s: %s", network, hwnas_last_error()->message);
    hwnas_arch *arch = hwnas_arch_new(space);
    if (hwnas_pytorch_write(&python, arch))
        fail_msg("%s: %s", network, hwnas_last_error()->message);
    assert_non_null(strstr(python.s, "torch.randn(1, 8, 8, 8)"));
    char *begin = strstr(python.s, "def forward(self, x):\n"), *to;
    assert_non_null(begin);
    begin += strlen("def forward(self, x):\n");
    *strstr(begin, "\n\n") = '\0';
    to = begin;
    for (const char *from = begin; *from; from++) /* blanks of any length are one */
        if (!strchr(" \n", *from))
            *to++ = *from;
        else if (to > begin && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    char *forward = hwnas_printf("%s", begin);
    hwnas_str_done(&python);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    free(text);
    return forward;
}

static void joins_and_named_tensors(void **state)
{
    static const struct {
        const char *network, *forward;
    } rows[] = {
        {"add: [[], [relu], [conv: {out: 8}]]", "return x + self.branch1(x) + self.branch2(x)"},
        {"mul: [[relu], [], [relu], []]", "return self.branch1(x) * x * self.branch2(x) * x"},
        {"concat: [[], [conv: {out: 3}]], conv: {out: 1}",
         "x = torch.cat([x, self.branch(x)], dim=1) return self.conv(x)"},
        {"add: [[relu], [relu], [relu], [relu], [relu], [relu]]",
         "return ( self.branch1(x) + self.branch2(x) + self.branch3(x) + self.branch4(x) + "
         "self.branch5(x) + self.branch6(x) )"},
        {"as: skip, relu, add: [[], [from: skip]]", "skip = x x = self.relu(skip) return x + skip"},
        {"relu, as: never, conv: {out: 4}, as: lambda, relu, mul: [[], [from: lambda]]",
         "never = self.relu1(x) lambda_ = self.conv(never) x = self.relu2(lambda_) "
         "return x * lambda_"},
        {"as: \"t[0]\", {repeat: 3, do: [relu, as: \"t[i + 1]\", add: [[], [from: \"t[i]\"]]]}",
         "t0 = x t1 = self.relu1(t0) x = t1 + t0 t2 = self.relu2(x) x = t2 + t1 "
         "t3 = self.relu3(x) return t3 + t2"},
        {"transpose: {order: [0, 1, 3, 2]}, reshape: {shape: [4, 2, 64]}",
         "return x.transpose(2, 3).reshape(-1, 4, 2, 64)"},
        {"transpose: {order: [0, 2, 3, 1]}, reshape: {shape: [8, -1]}, relu",
         "x = x.permute(0, 2, 3, 1).flatten(2) return self.relu(x)"},
        {"slice: {begin: 1, end: 3}, slice: {axis: -1, begin: -4, step: 2}",
         "return x[:, 1:3][:, :, :, -4::2]"},
        {"scale: {by: 1 / sqrt(in)}", "return x / 8**0.5"},
        {"scale: {by: 1 / sqrt(2 * in)}", "return x / 4"},
        {"scale: {by: sqrt(2)}", "return x * 2**0.5"},
        {"scale: {by: -0.5}", "return x * -0.5"},
        {"mean: {axes: [2, 3], keep: true}", "return x.mean((2, 3), keepdim=True)"},
        {"matmul: [[], [transpose: {order: [0, 1, 3, 2]}]], softmax",
         "return (x @ x.transpose(2, 3)).softmax(dim=-1)"},
        {"{concat: [[], [relu]], axis: 2}", "return torch.cat([x, self.branch(x)], dim=2)"},
        {"div: [[], [sub: [[], [pow: [[], [relu]]]]]], erf",
         "y = x ** self.relu(x) y = x - y return torch.erf(x / y)"},
        {"conv: {out: 4}, output: a, relu, output: \"b[1]\"",
         "a = self.conv(x) b1 = self.relu(a) return a, b1"},
        {"add: [[], [weight: {shape: [8, 1, 1]}]], global_avg_pool",
         "x = x + self.weight return self.global_avg_pool(x)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *forward = export_forward(rows[i].network);
        assert_string_equal(forward, rows[i].forward);
        free(forward);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_can_be_written),
        cmocka_unit_test(class_names),
        cmocka_unit_test(expressions),
        cmocka_unit_test(joins_and_named_tensors),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
