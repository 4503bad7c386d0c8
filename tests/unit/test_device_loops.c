/* test_device_loops.c: what `cpu` runs in vectorised loops of ours, node by node: short products,
 * functions of one value, choices and comparisons, reductions, pools of volumes; against `ref`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/unit/attributes.h"
#include "tests/unit/device_fixture.h"

/* How the node of this operator is computed. The graph has one. */
static void how_of(char how[32], hwnas_device *device, const hwnas_graph *graph, hwnas_op_id op)
{
    const hwnas_exec_step *steps;
    hwnas_exec *exec;
    how[0] = '\0';
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    for (size_t i = 0, n = exec->ops->steps(exec, &steps); i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            if (graph->nodes[steps[i].nodes[k]].op->id == op)
                snprintf(how, 32, "%s", steps[i].how);
    hwnas_exec_free(exec);
}

/* With one thread and with two. */
static void agrees(const char *what, const hwnas_graph *graph, hwnas_op_id op, const char *wanted)
{
    hwnas_device *ref = open_device("ref", 1);
    for (int threads = 1; threads <= 2; threads++) {
        char how[32];
        hwnas_device *cpu = open_device("cpu", threads);
        compare(what, cpu, graph, ref, graph, 1);
        how_of(how, cpu, graph, op);
        if (strcmp(how, wanted) != 0)
            fail_msg("%s: by %s", what, how);
        hwnas_device_close(cpu);
    }
    hwnas_device_close(ref);
}

/* Runs once; `out` has room for all outputs. */
static void run_with(float *out, hwnas_device *device, const hwnas_graph *graph,
                     const float *const *inputs)
{
    hwnas_exec *exec;
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    ok(exec->ops->run(exec, inputs, &out));
    hwnas_exec_free(exec);
}

/* ---- Products ---- */

/* How the matrix comes to the product. */
typedef enum matrix_source { GIVEN, TURNED, TURNED_FOR_TWO, TURNED_AND_SHOWN } matrix_source;

typedef struct product_case {
    int64_t rows[4], matrix[4];
    const char *how;
    matrix_source from;
    const char *transposed_how;
} product_case;

/* A tensor of the matrix's shape. */
static int add_matrix(hwnas_graph *graph, const product_case *c)
{
    int64_t dims[4] = {c->matrix[0], c->matrix[1], c->matrix[2], c->matrix[3]};
    const hwnas_attr order = {.is_set = true, .n = 4, .ints = {0, 1, 3, 2}};
    int matrix, turned, copy;
    if (c->from != GIVEN) {
        dims[2] = c->matrix[3];
        dims[3] = c->matrix[2];
    }
    ok(hwnas_graph_add_input(&matrix, graph, "matrix", HWNAS_FLOAT32, 4, dims));
    if (c->from == GIVEN)
        return matrix;
    ok(hwnas_graph_add_node(&turned, graph, hwnas_op_by_name("transpose"), "turn", &order, 1,
                            &matrix, false));
    if (c->from == TURNED_FOR_TWO) {
        ok(hwnas_graph_add_node(&copy, graph, hwnas_op_by_name("relu"), "copy", NULL, 1, &turned,
                                false));
        hwnas_graph_add_output(graph, copy);
    }
    if (c->from == TURNED_AND_SHOWN)
        hwnas_graph_add_output(graph, turned);
    return turned;
}

/* Of matrices that come of a run. Short ones are ours, the others oneDNN's. */
static void short_products(void **state)
{
    static const product_case cases[] = {
        {{1, 1, 1, 7}, {1, 1, 7, 16}, "own loops"},
        {{1, 12, 1, 64}, {1, 12, 64, 129}, "own loops"}, /* one more token of GPT-2 */
        {{1, 3, 3, 64}, {1, 3, 64, 129}, "own loops"},   /* and of SmolLM */
        {{2, 3, 2, 5}, {1, 3, 5, 31}, "own loops"},
        {{1, 3, 4, 1}, {2, 1, 1, 33}, "own loops"},
        {{2, 1, 4, 40}, {1, 3, 40, 48}, "own loops"},
        {{1, 8, 2, 200}, {1, 8, 200, 300}, "own loops"}, /* on two threads */
        {{1, 2, 5, 8}, {1, 2, 8, 32}, "partition"},
        {{1, 2, 1, 64}, {1, 2, 64, 15}, "partition"},
        /* Keys lie as they come, where nobody else wants them turned. */
        {{1, 3, 3, 64}, {1, 3, 64, 129}, "own loops", TURNED, "reshape"},
        {{1, 2, 1, 8}, {1, 2, 8, 16}, "own loops", TURNED, "reshape"},
        {{2, 1, 4, 40}, {1, 3, 40, 49}, "own loops", TURNED, "reshape"},
        {{1, 8, 2, 200}, {1, 8, 200, 300}, "own loops", TURNED, "reshape"},
        {{1, 3, 3, 60}, {1, 3, 60, 129}, "own loops", TURNED, "partition"},
        {{1, 3, 5, 64}, {1, 3, 64, 129}, "partition", TURNED, "partition"},
        {{1, 3, 3, 64}, {1, 3, 64, 129}, "own loops", TURNED_FOR_TWO, "partition"},
        {{1, 3, 3, 64}, {1, 3, 64, 129}, "own loops", TURNED_AND_SHOWN, "partition"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char what[32];
        int inputs[2], out;
        hwnas_graph *graph = hwnas_graph_new("product", 1);
        snprintf(what, sizeof what, "product %zu", i);
        ok(hwnas_graph_add_input(&inputs[0], graph, "rows", HWNAS_FLOAT32, 4, cases[i].rows));
        inputs[1] = add_matrix(graph, &cases[i]);
        ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("matmul"), "product", NULL, 2, inputs,
                                false));
        hwnas_graph_add_output(graph, out);
        agrees(what, graph, HWNAS_OP_MATMUL, cases[i].how);
        if (cases[i].from != GIVEN)
            agrees(what, graph, HWNAS_OP_TRANSPOSE, cases[i].transposed_how);
        hwnas_graph_free(graph);
    }
}

/* ---- Functions of one value ---- */

static const float special[] = {
    0.0f,      -0.0f,  1e-40f,     -1e-40f,     1e-20f, -1e-20f, 3e38f,   -3e38f,  INFINITY,
    -INFINITY, NAN,    8388607.5f, 16777216.0f, 0.5f,   -0.5f,   1.5f,    -2.5f,   1.0f,
    -1.0f,     88.0f,  88.72f,     88.73f,      -87.0f, -87.4f,  -103.0f, 0.9277f, 0.9278f,
    7.9f,      -7.92f, 1e-6f,      -1e-6f,      30.0f,  -30.0f,  0.7071f, 1.4143f};

/* Small and large ones, of both signs. */
static void fill(float *values, int n)
{
    for (int i = 0; i < n; i++)
        values[i] = i < (int)COUNT(special) ? special[i]
                                            : (float)((i % 2 ? -1 : 1) * exp(-12 + 17.0 * i / n));
}

/* To 2e-6 of each value, or of 1e-6: no result that is denormal counts. */
static bool is_near(float got, float wanted, double tolerance)
{
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs((double)got - wanted) <= tolerance * fabs((double)wanted) + 1e-37;
}

static void functions_are_right_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *op, *attrs, *how;
        double tolerance;
    } cases[] = {
        {"abs", "", "primitive", 0},
        {"ceil", "", "own loops", 0},
        {"celu", "alpha=0.7", "own loops", 3e-6},
        {"elu", "alpha=1.3", "own loops", 3e-6},
        {"erf", "", "own loops", 2e-6},
        {"exp", "", "own loops", 3e-6},
        {"floor", "", "own loops", 0},
        {"log", "", "own loops", 2e-6},
        {"neg", "", "primitive", 0},
        {"reciprocal", "", "own loops", 1e-6},
        {"round", "", "own loops", 0},
        {"selu", "", "own loops", 3e-6},
        {"shrink", "bias=0.3 lambda=0.6", "own loops", 1e-6},
        {"softplus", "", "own loops", 3e-6},
        {"softsign", "", "own loops", 1e-6},
        {"sqrt", "", "primitive", 1e-6},
        {"tanh", "", "own loops", 2e-6},
        {"thresholded_relu", "alpha=0.4", "own loops", 0},
    };
    enum { N = 1003 };
    float values[N], got[N], wanted[N];
    const float *inputs[] = {values};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    fill(values, N);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char how[32];
        const op_case c = {cases[i].op, cases[i].attrs, {{1, N}}};
        hwnas_graph *graph = graph_of_op(&c);
        how_of(how, cpu, graph, graph->nodes[0].op->id);
        if (strcmp(how, cases[i].how) != 0)
            fail_msg("%s: by %s", c.op, how);
        run_with(got, cpu, graph, inputs);
        run_with(wanted, ref, graph, inputs);
        for (int k = 0; k < N; k++)
            if (!is_near(got[k], wanted[k], cases[i].tolerance) &&
                !(isnan(values[k]) && isnan(got[k]))) /* `ref` makes 0 of it in places */
                fail_msg("%s(%.9g) is %.9g, not %.9g", c.op, values[k], got[k], wanted[k]);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* Rests of vectors, several threads, further ranks, and behind a node whose place they take. */
static void functions_of_any_shape(void **state)
{
    (void)state;
    static const char *const ops[] = {"erf", "exp", "elu", "tanh"};
    static const int64_t shapes[][4] = {{1},       {15},         {16},           {2, 17},
                                        {3, 1, 5}, {2, 3, 4, 7}, {2, 3, 110, 67}};
    for (size_t i = 0; i < COUNT(shapes) * COUNT(ops); i++) {
        const char *op = ops[i % COUNT(ops)];
        hwnas_graph *graph = hwnas_graph_new("function", 1);
        const int x = add(graph, "neg", "", add_input(graph, shapes[i / COUNT(ops)]), -1);
        hwnas_graph_add_output(graph, add(graph, op, "", x, -1));
        agrees(op, graph, hwnas_op_by_name(op)->id, "own loops");
        hwnas_graph_free(graph);
    }
}

/* Small and large angles, beside each other and apart; what has no sine. Of 1, as zeros are
 * anywhere. */
static void sines(void **state)
{
    (void)state;
    static const char *const ops[] = {"sin", "cos"};
    enum { N = 4001 };
    static float values[N], got[N], wanted[N];
    const float *inputs[] = {values};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    fill(values, 1003);
    for (int i = 1003; i < N; i++)
        values[i] = (float)((i - 2500) * pow(1.004, i - 1003) / 1000);
    for (size_t i = 0; i < COUNT(ops); i++) {
        char how[32];
        const op_case c = {ops[i], "", {{1, N}}};
        hwnas_graph *graph = graph_of_op(&c);
        how_of(how, cpu, graph, graph->nodes[0].op->id);
        assert_string_equal(how, "own loops");
        run_with(got, cpu, graph, inputs);
        run_with(wanted, ref, graph, inputs);
        for (int k = 0; k < N; k++)
            if (isnan(wanted[k]) ? !isnan(got[k]) : !(fabsf(got[k] - wanted[k]) <= 4e-7f))
                fail_msg("%s(%.9g) is %.9g, not %.9g", c.op, values[k], got[k], wanted[k]);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

static void powers(void **state)
{
    (void)state;
    static const struct {
        float y;
        const char *how;
    } cases[] = {{0, "primitive"},       {0.5f, "primitive"}, {1, "primitive"},
                 {2, "primitive"},       {-1, "primitive"},   {3, "own loops"},
                 {4, "own loops"},       {5, "own loops"},    {-2, "own loops"},
                 {-3, "own loops"},      {1.7f, "own loops"}, {-0.25f, "own loops"},
                 {1.0f / 3, "own loops"}};
    enum { N = 1003 };
    static const int64_t dims[] = {1, N, 0, 0};
    float values[N], got[N], wanted[N];
    const float *inputs[] = {values};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 2);
    fill(values, N);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int y;
        char how[32];
        hwnas_graph *graph = hwnas_graph_new("power", 1);
        const int x = add_input(graph, dims);
        ok(hwnas_graph_add_constant(&y, graph, "y", 0, NULL, &cases[i].y));
        hwnas_graph_add_output(graph, add(graph, "pow", "", x, y));
        how_of(how, cpu, graph, HWNAS_OP_POW);
        assert_string_equal(how, cases[i].how);
        run_with(got, cpu, graph, inputs);
        run_with(wanted, ref, graph, inputs);
        for (int k = 0; k < N && !strcmp(how, "own loops"); k++)
            if (isfinite(values[k]) && fabsf(values[k]) >= 1e-20f && isfinite(wanted[k]) &&
                fabsf(wanted[k]) > 1e-36f && !is_near(got[k], wanted[k], 2e-5))
                fail_msg("%g^%g is %g, not %g", values[k], cases[i].y, got[k], wanted[k]);
            else if ((isnan(wanted[k]) || isinf(wanted[k])) && isfinite(values[k]) &&
                     values[k] != 0 && !is_near(got[k], wanted[k], 0))
                fail_msg("%g^%g is %g, not %g", values[k], cases[i].y, got[k], wanted[k]);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* ---- Two and three operands ---- */

/* As files have it: no layer, which would make weights of its own. */
static int add_pair(hwnas_graph *graph, const char *op, int a, int b)
{
    const int operands[] = {a, b};
    int out;
    ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name(op), op, NULL, 2, operands, false));
    return out;
}

/* Each dimension is in all operands, or repeated in one of them. */
static void repeat(int64_t dims[][4], const int64_t *whole, int n, size_t ways)
{
    for (int i = 0; i < 4; i++, ways /= (size_t)n + 1)
        for (int k = 0; k < n; k++)
            dims[k][i] = ways % ((size_t)n + 1) == (size_t)k + 1 ? 1 : whole[i];
}

static void pairs_may_be_repeated(void **state)
{
    (void)state;
    enum { WAYS = 81 };
    static const char *const ops[] = {"prelu", "max", "min", "equal", "greater", "less_or_equal"};
    static const int64_t sizes[][4] = {{2, 3, 5, 19}, {3, 2, 4, 3}};
    for (size_t i = 0; i < COUNT(ops) * COUNT(sizes) * WAYS; i++) {
        int64_t dims[2][4];
        const char *op = ops[i / WAYS % COUNT(ops)];
        hwnas_graph *graph = hwnas_graph_new("pair", 1);
        repeat(dims, sizes[i / WAYS / COUNT(ops)], 2, i % WAYS);
        const int a = add_input(graph, dims[0]), b = add_input(graph, dims[1]);
        hwnas_graph_add_output(graph, add_pair(graph, op, a, b));
        agrees(op, graph, hwnas_op_by_name(op)->id, "own loops");
        hwnas_graph_free(graph);
    }
}

static void what_is_no_number_among_two(void **state)
{
    (void)state;
    static const char *const ops[] = {"prelu", "max",     "min",           "equal",
                                      "less",  "greater", "less_or_equal", "greater_or_equal"};
    enum { N = 25 };
    static const float values[] = {NAN, INFINITY, -INFINITY, 1, -2};
    float a[N], b[N], got[N], wanted[N];
    const float *inputs[] = {a, b};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (int i = 0; i < N; i++) {
        a[i] = values[i / 5];
        b[i] = values[i % 5];
    }
    for (size_t i = 0; i < COUNT(ops); i++) {
        const op_case c = {ops[i], "", {{1, N}, {1, N}}};
        hwnas_graph *graph = hwnas_graph_new(c.op, 5);
        const int x = add_input(graph, c.dims[0]), y = add_input(graph, c.dims[1]);
        hwnas_graph_add_output(graph, add_pair(graph, c.op, x, y));
        run_with(got, cpu, graph, inputs);
        run_with(wanted, ref, graph, inputs);
        for (int k = 0; k < N; k++)
            if (!is_near(got[k], wanted[k], 0))
                fail_msg("%s of %g and %g is %g, not %g", c.op, a[k], b[k], got[k], wanted[k]);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* One of two by a comparison, each of the three repeated or not. */
static void choices_may_be_repeated(void **state)
{
    (void)state;
    enum { WAYS = 256 };
    static const int64_t sizes[][4] = {{2, 3, 5, 19}, {17, 2, 3, 3}};
    for (size_t i = 0; i < COUNT(sizes) * WAYS; i++) {
        int64_t dims[3][4];
        int out;
        hwnas_graph *graph = hwnas_graph_new("where", 1);
        repeat(dims, sizes[i / WAYS], 3, i % WAYS);
        const int zero = add_input(graph, (int64_t[]){1, 1, 1, 1});
        const int c = add(graph, "greater", "", add_input(graph, dims[0]), zero);
        const int operands[] = {c, add_input(graph, dims[1]), add_input(graph, dims[2])};
        ok(hwnas_graph_add_node(&out, graph, hwnas_ops[HWNAS_OP_WHERE], "where", NULL, 3, operands,
                                false));
        hwnas_graph_add_output(graph, out);
        agrees("where", graph, HWNAS_OP_WHERE, "own loops");
        hwnas_graph_free(graph);
    }
}

/* Factors of whole numbers wrap; what is only compared or chosen may be whole. */
static void pairs_of_whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *op, *how;
    } cases[] = {{"prelu", "plain loops"}, {"max", "own loops"}, {"less", "own loops"}};
    static const int64_t dims[] = {3, 5, 19, 0}, other[] = {5, 1, 0, 0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = hwnas_graph_new("pair", 1);
        const int a = add_input_of(graph, HWNAS_INT64, dims);
        const int b = add_input_of(graph, HWNAS_INT64, other);
        hwnas_graph_add_output(graph, add_pair(graph, cases[i].op, a, b));
        agrees(cases[i].op, graph, hwnas_op_by_name(cases[i].op)->id, cases[i].how);
        hwnas_graph_free(graph);
    }
}

/* Enough values for two threads: many rows, few rows, one. */
static void choices_are_shared_by_threads(void **state)
{
    (void)state;
    static const int64_t conditions[][4] = {{1, 1, 129, 131}, {3, 5, 129, 131}, {3, 1, 1, 1}};
    for (size_t i = 0; i < COUNT(conditions); i++) {
        const int64_t whole[] = {3, 5, 129, 131};
        int out;
        hwnas_graph *graph = hwnas_graph_new("where", 1);
        const int zero = add_input(graph, (int64_t[]){1, 0, 0, 0});
        const int c = add(graph, "less", "", add_input(graph, conditions[i]), zero);
        const int operands[] = {c, add_input(graph, whole), zero};
        ok(hwnas_graph_add_node(&out, graph, hwnas_ops[HWNAS_OP_WHERE], "where", NULL, 3, operands,
                                false));
        hwnas_graph_add_output(graph, out);
        agrees("where", graph, HWNAS_OP_WHERE, "own loops");
        hwnas_graph_free(graph);
    }
}

static void repetitions(void **state)
{
    (void)state;
    static const struct {
        int64_t dims[4];
        const char *shape;
    } cases[] = {{{1, 3, 1, 5}, "shape=2,3,4,5"},      {{2, 1, 4, 1}, "shape=2,3,4,5"},
                 {{1, 1, 1, 1}, "shape=3,7,1,9"},      {{5}, "shape=2,3,5"},
                 {{2, 3, 1, 200}, "shape=2,3,90,200"}, {{1, 64, 1, 7}, "shape=4,64,33,7"},
                 {{2, 3, 4, 5}, "shape=2,3,4,5"},      {{1, 300, 1}, "shape=2,300,131"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const op_case c = {
            "expand",
            cases[i].shape,
            {{cases[i].dims[0], cases[i].dims[1], cases[i].dims[2], cases[i].dims[3]}}};
        hwnas_graph *graph = graph_of_op(&c);
        agrees(cases[i].shape, graph, HWNAS_OP_EXPAND, "own loops");
        hwnas_graph_free(graph);
    }
}

/* What a convolution makes has its channels last. */
static void behind_a_convolution(void **state)
{
    (void)state;
    const int64_t dims[] = {2, 5, 9, 7}, factors[] = {12, 1, 1, 0};
    hwnas_graph *graph = hwnas_graph_new("prelu", 1);
    int x = add(graph, "conv", "out=12 kernel=3 pad=1", add_input(graph, dims), -1);
    x = add_pair(graph, "prelu", x, add_input(graph, factors));
    hwnas_graph_add_output(graph, add(graph, "conv", "out=3 kernel=3", x, -1));
    agrees("prelu", graph, HWNAS_OP_PRELU, "own loops");
    hwnas_graph_free(graph);
}

/* ---- Reductions ---- */

static void reductions_over_any_axes(void **state)
{
    (void)state;
    static const char *const ops[] = {"mean",       "reduce_l1",         "reduce_l2",
                                      "reduce_max", "reduce_min",        "reduce_prod",
                                      "reduce_sum", "reduce_sum_square", "reduce_log_sum_exp"};
    static const char *const axes[] = {
        "axes=0",   "axes=1",   "axes=2",   "axes=3",     "axes=0,1",   "axes=0,2",  "axes=0,3",
        "axes=1,2", "axes=1,3", "axes=2,3", "axes=0,1,2", "axes=0,2,3", "axes=1,2,3"};
    static const int64_t sizes[][4] = {
        {2, 3, 5, 7}, {3, 1, 4, 70}, {1, 2, 33, 17}, {2, 3, 1, 1}, {9, 2, 131, 30}};
    for (size_t i = 0; i < COUNT(ops) * COUNT(axes) * COUNT(sizes); i++) {
        char attrs[40];
        const char *op = ops[i % COUNT(ops)];
        op_case c = {op, attrs, {{0}}};
        memcpy(c.dims[0], sizes[i / COUNT(ops) / COUNT(axes)], sizeof c.dims[0]);
        snprintf(attrs, sizeof attrs, "%s keep=%d", axes[i / COUNT(ops) % COUNT(axes)], (int)i % 2);
        hwnas_graph *graph = hwnas_graph_new(op, 5);
        int x = add_input(graph, c.dims[0]);
        if (!strcmp(op, "reduce_prod")) /* of values around 1: neither 0 nor infinite */
            x = add(graph, "exp", "", add(graph, "shrink", "lambda=0.98", x, -1), -1);
        hwnas_graph_add_output(graph, add(graph, op, attrs, x, -1));
        agrees(op, graph, hwnas_op_by_name(op)->id, "own loops");
        hwnas_graph_free(graph);
    }
}

/* Sums of what is none are none; extremes pass it over. */
static void what_is_no_number_in_a_reduction(void **state)
{
    (void)state;
    static const char *const ops[] = {"reduce_max", "reduce_min", "reduce_sum",
                                      "reduce_l2",  "mean",       "reduce_log_sum_exp"};
    static const char *const axes[] = {"axes=1", "axes=2"};
    enum { N = 2 * 37 * 41 };
    static float values[N], got[N], wanted[N];
    const float *inputs[] = {values};
    hwnas_device *ref = open_device("ref", 1), *cpu = open_device("cpu", 1);
    for (int i = 0; i < N; i++)
        values[i] = i % 97 == 5 ? NAN : (float)(i % 13) - 6;
    for (size_t i = 0; i < COUNT(ops) * COUNT(axes); i++) {
        const op_case c = {ops[i % COUNT(ops)], axes[i / COUNT(ops)], {{2, 37, 41}}};
        hwnas_graph *graph = graph_of_op(&c);
        run_with(got, cpu, graph, inputs);
        run_with(wanted, ref, graph, inputs);
        for (int64_t k = 0; k < count_outputs(graph); k++)
            if (!is_near(got[k], wanted[k], 1e-5) && fabsf(got[k] - wanted[k]) > 1e-5f)
                fail_msg("%s: %g, not %g", c.op, got[k], wanted[k]);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
    hwnas_device_close(ref);
}

/* What exp() of floats overflows at, all that is nothing, and an infinity. The references are
 * max + log(sum(exp(x - max))), which PyTorch computes. */
static void logarithms_of_sums_of_exponentials(void **state)
{
    (void)state;
    enum { ROWS = 5, N = 37 };
    static const float of[ROWS] = {300, -300, -INFINITY, INFINITY, 0};
    static const char *const axes[] = {"axes=1 keep=0", "axes=0 keep=0"};
    hwnas_device *cpu = open_device("cpu", 1);
    for (int turned = 0; turned < 2; turned++) {
        static float values[ROWS * N], got[ROWS];
        const float *inputs[] = {values};
        const op_case c = {
            "reduce_log_sum_exp", axes[turned], {{turned ? N : ROWS, turned ? ROWS : N}}};
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < N; i++)
                values[turned ? i * ROWS + row : row * N + i] = i && of[row] > 1e9f ? 0 : of[row];
        hwnas_graph *graph = graph_of_op(&c);
        run_with(got, cpu, graph, inputs);
        for (int row = 0; row < ROWS; row++)
            if (isinf(of[row]))
                assert_true(got[row] == of[row]);
            else
                assert_float_equal(got[row], of[row] + logf(N), 1e-4);
        hwnas_graph_free(graph);
    }
    hwnas_device_close(cpu);
}

/* A sum of exponentials is infinite long before its logarithm is, and 0 where all are. Each case is
 * a row of three, and of so many that they are vectors. */
static void great_exponentials(void **state)
{
    (void)state;
    static const struct {
        float values[3];
        float wanted; /* of PyTorch's logsumexp() */
    } rows[] = {
        {{1000, 1000, -INFINITY}, 1000.693147f},
        {{-1000, -1000, -1000}, -998.901388f},
        {{-INFINITY, -INFINITY, -INFINITY}, -INFINITY},
        {{INFINITY, 0, -INFINITY}, INFINITY},
        {{NAN, 0, -INFINITY}, NAN},
        {{3e38f, -3e38f, 0}, 3e38f},
    };
    enum { WIDE = 70 };
    static const char *const names[] = {"ref", "cpu"}, *const axes[] = {"axes=2", "axes=0,2",
                                                                        "axes=1"};
    for (size_t i = 0; i < COUNT(rows) * COUNT(names) * COUNT(axes); i++) {
        float values[3 * WIDE], out[WIDE];
        const float *inputs[] = {values}, wanted = rows[i / 6].wanted;
        const bool is_columns = i % 3 == 2;
        for (int k = 0; k < 3 * WIDE; k++)
            values[k] = rows[i / 6].values[is_columns ? k / WIDE : k % 3];
        op_case c = {"reduce_log_sum_exp", axes[i % 3], {{1, WIDE, 3}}};
        if (is_columns)
            c = (op_case){"reduce_log_sum_exp", axes[i % 3], {{1, 3, WIDE}}};
        hwnas_graph *graph = graph_of_op(&c);
        hwnas_device *device = open_device(names[i / 3 % 2], 1);
        run_with(out, device, graph, inputs);
        for (int k = 0; k < WIDE; k++)
            if (isnan(wanted) ? !isnan(out[k])
                              : out[k] != wanted && !(fabsf(out[k] - wanted) < 1e-3f))
                fail_msg("%s, %s, case %zu: %g, not %g", names[i / 3 % 2], axes[i % 3], i / 6,
                         out[k], wanted);
        hwnas_device_close(device);
        hwnas_graph_free(graph);
    }
}

/* ---- Lines ---- */

/* In all modes: sides, first and last dimensions, all at once, whole numbers as well. */
static void padding(void **state)
{
    (void)state;
    static const char *const sides[] = {
        "before=0,0,0,0 after=0,0,0,0", "before=0,0,1,2 after=0,0,2,1",
        "before=0,0,0,3 after=0,0,0,0", "before=0,2,0,0 after=0,1,0,0",
        "before=1,0,2,0 after=0,0,1,0", "before=1,1,1,1 after=1,1,1,1",
        "before=0,0,3,0 after=0,0,0,0"};
    static const int64_t sizes[][4] = {{2, 3, 4, 5}, {2, 3, 5, 67}, {3, 4, 30, 290}};
    for (size_t i = 0; i < COUNT(sides) * COUNT(sizes) * 4 * 2; i++) {
        char attrs[80];
        const int64_t *size = sizes[i / COUNT(sides) % COUNT(sizes)];
        snprintf(attrs, sizeof attrs, "%s mode=%d value=0.5", sides[i % COUNT(sides)],
                 (int)(i / COUNT(sides) / COUNT(sizes) % 4));
        hwnas_graph *graph = hwnas_graph_new("pad", 1);
        const bool is_whole = i / COUNT(sides) / COUNT(sizes) / 4;
        const int x = add_input_of(graph, is_whole ? HWNAS_INT64 : HWNAS_FLOAT32, size);
        hwnas_graph_add_output(graph, add(graph, "pad", attrs, x, -1));
        agrees(attrs, graph, HWNAS_OP_PAD, "own loops");
        hwnas_graph_free(graph);
    }
}

static void sums_so_far(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{2, 3, 4, 5}, {1, 7, 3, 67}, {3, 40, 30, 130}};
    for (int i = 0; i < (int)COUNT(sizes) * 16; i++) {
        char attrs[80];
        op_case c = {"cum_sum", attrs, {{0}}};
        memcpy(c.dims[0], sizes[i / 16], sizeof c.dims[0]);
        snprintf(attrs, sizeof attrs, "axis=%d exclusive=%d reverse=%d", i % 4, i / 4 % 2,
                 i / 8 % 2);
        hwnas_graph *graph = graph_of_op(&c);
        agrees(attrs, graph, HWNAS_OP_CUM_SUM, "own loops");
        hwnas_graph_free(graph);
    }
}

/* Pixels that fill pieces and that do not, of few channels and of more than a piece has. */
static void samples_of_grids(void **state)
{
    (void)state;
    static const int64_t images[][4] = {{2, 3, 5, 7}, {1, 1, 1, 1}, {2, 70, 6, 4}, {1, 5, 33, 20}};
    static const int64_t grids[][4] = {{2, 3, 5, 2}, {1, 8, 8, 2}, {2, 9, 20, 2}, {1, 40, 31, 2}};
    for (int i = 0; i < (int)COUNT(images) * 3 * 3 * 2; i++) {
        char attrs[80];
        op_case c = {"grid_sample", attrs, {{0}}};
        memcpy(c.dims[0], images[i / 18], sizeof c.dims[0]);
        memcpy(c.dims[1], grids[i / 18], sizeof c.dims[1]);
        snprintf(attrs, sizeof attrs, "mode=%d padding=%d align_corners=%d", i % 3, i / 3 % 3,
                 i / 9 % 2);
        hwnas_graph *graph = graph_of_op(&c);
        agrees(attrs, graph, HWNAS_OP_GRID_SAMPLE, "own loops");
        hwnas_graph_free(graph);
    }
}

/* Places so far away that no whole number has them, and none at all. */
static void grids_of_odd_places(void **state)
{
    (void)state;
    float image[] = {1, 2, 3, 4, 5, 6};
    static const float grid[] = {NAN,  0, 1e30f, -1e30f, INFINITY, -INFINITY,
                                 1e9f, 0, -2,    -2,     0.5f,     0.5f};
    static const float wanted[][6] = {
        {0, 0, 0, 0, 0, 5.75f}, {2.5f, 3, 3, 4.5f, 1, 5.75f}, {0, 0, 0, 0, 0, 6}};
    static const char *const attrs[] = {"", "padding=1", "mode=1"}, *const names[] = {"ref", "cpu"};
    const float *inputs[] = {image, grid};
    for (size_t i = 0; i < COUNT(attrs) * COUNT(names); i++) {
        float out[6];
        image[0] = i / 2 == 1 ? 1 : INFINITY; /* no part of what is zero */
        op_case c = {"grid_sample", attrs[i / 2], {{1, 1, 2, 3}, {1, 2, 3, 2}}};
        hwnas_graph *graph = graph_of_op(&c);
        hwnas_device *device = open_device(names[i % 2], 1);
        run_with(out, device, graph, inputs);
        for (size_t k = 0; k < COUNT(out); k++)
            if (fabsf(out[k] - wanted[i / 2][k]) > 1e-6f)
                fail_msg("%s %s: value %zu is %g", names[i % 2], attrs[i / 2], k, out[k]);
        hwnas_device_close(device);
        hwnas_graph_free(graph);
    }
}

/* ---- Pools ---- */

/* As a volume's are: of slices, which a reshape has made channels. */
static void pools_behind_a_reshape(void **state)
{
    (void)state;
    static const char *const attrs[] = {
        "kernel=2 stride=2",           "kernel=3 stride=2 pad=1", "kernel=3 pad=1",
        "kernel=2,1 stride=2,1",       "kernel=1,3 stride=1,3",   "kernel=3,2 stride=3,1 pad=1,0",
        "kernel=4,5 stride=1,4 pad=3", "kernel=2 stride=3",       "kernel=3,1 pad=1,0,0,0"};
    static const int64_t sizes[][4] = {
        {2, 3, 9, 11}, {1, 2, 16, 16}, {1, 5, 7, 40}, {3, 8, 31, 57}};
    static const char *const ops[] = {"max_pool", "avg_pool", "avg_pool"};
    for (size_t i = 0; i < COUNT(attrs) * COUNT(sizes) * COUNT(ops); i++) {
        const int64_t *d = sizes[i / COUNT(ops) / COUNT(attrs)];
        const int64_t flat[] = {d[0], d[1] * d[2] * d[3], 0, 0};
        char shape[64], with[64];
        snprintf(shape, sizeof shape, "shape=%d,%d,%d", (int)d[1], (int)d[2], (int)d[3]);
        snprintf(with, sizeof with, "%s%s", attrs[i / COUNT(ops) % COUNT(attrs)],
                 i % COUNT(ops) == 2 ? " count_pad=1" : "");
        hwnas_graph *graph = hwnas_graph_new("pool", 1);
        const int x = add(graph, "reshape", shape, add_input(graph, flat), -1);
        const char *op = ops[i % COUNT(ops)];
        hwnas_graph_add_output(graph, add(graph, op, with, x, -1));
        agrees(with, graph, hwnas_op_by_name(op)->id, "own loops");
        hwnas_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_products),
        cmocka_unit_test(functions_are_right_everywhere),
        cmocka_unit_test(functions_of_any_shape),
        cmocka_unit_test(sines),
        cmocka_unit_test(powers),
        cmocka_unit_test(pairs_may_be_repeated),
        cmocka_unit_test(what_is_no_number_among_two),
        cmocka_unit_test(choices_may_be_repeated),
        cmocka_unit_test(pairs_of_whole_numbers),
        cmocka_unit_test(choices_are_shared_by_threads),
        cmocka_unit_test(repetitions),
        cmocka_unit_test(behind_a_convolution),
        cmocka_unit_test(reductions_over_any_axes),
        cmocka_unit_test(what_is_no_number_in_a_reduction),
        cmocka_unit_test(great_exponentials),
        cmocka_unit_test(logarithms_of_sums_of_exponentials),
        cmocka_unit_test(padding),
        cmocka_unit_test(sums_so_far),
        cmocka_unit_test(samples_of_grids),
        cmocka_unit_test(grids_of_odd_places),
        cmocka_unit_test(pools_behind_a_reshape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
