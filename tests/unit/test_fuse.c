/* test_fuse.c: operators that were written as several: each spelling is found and computes what it
 * did, and what is nearly one is left as it is. */
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
#include "graph/rewrite.h"
#include "tests/unit/attributes.h"
#include "tests/unit/onnx_fixture.h"

/* A graph as text: "d = sub x m; q = mean d | axes=2 keep=1". Inputs are earlier names, numbers, or
 * one of these; the last statement is the output, as is each whose name begins with an 'o'. */
static const struct {
    const char *name;
    bool is_input;
    int rank;
    int64_t dims[4];
} tensors[] = {
    {"x", true, 3, {2, 3, 8}},      {"y", true, 3, {2, 3, 8}},     {"i", true, 4, {2, 4, 3, 5}},
    {"s", false, 1, {8}},           {"b", false, 1, {8}},          {"s3", false, 3, {1, 1, 8}},
    {"b3", false, 3, {1, 1, 8}},    {"rows", false, 3, {1, 3, 1}}, {"s2", false, 2, {3, 8}},
    {"b2", false, 2, {3, 8}},       {"sc", false, 3, {4, 1, 1}},   {"one", false, 1, {1}},
    {"s4", false, 4, {1, 1, 1, 8}},
};

typedef struct maker {
    hwnas_graph *graph;
    int n;
    char names[64][16];
    int places[64];
} maker;

static int keep(maker *m, const char *name, int place)
{
    assert_in_range(m->n, 0, 63);
    snprintf(m->names[m->n], sizeof m->names[m->n], "%s", name);
    return m->places[m->n++] = place;
}

static int add_number(maker *m, const char *text)
{
    const float value = strtof(text, NULL);
    int place;
    char name[24];
    snprintf(name, sizeof name, "number%d", m->n);
    assert_int_equal(hwnas_graph_add_constant(&place, m->graph, name, 0, NULL, &value), HWNAS_OK);
    return keep(m, "", place);
}

static int find(maker *m, const char *name)
{
    int place = -1;
    for (int i = m->n; i-- > 0;)
        if (!strcmp(m->names[i], name))
            return m->places[i];
    for (size_t i = 0; i < COUNT(tensors); i++) {
        if (strcmp(tensors[i].name, name) != 0)
            continue;
        if (tensors[i].is_input)
            assert_int_equal(hwnas_graph_add_input(&place, m->graph, name, HWNAS_FLOAT32,
                                                   tensors[i].rank, tensors[i].dims),
                             HWNAS_OK);
        else
            assert_int_equal(hwnas_graph_add_weight(&place, m->graph, name, tensors[i].rank,
                                                    tensors[i].dims, HWNAS_INIT_NEAR_ONE, true),
                             HWNAS_OK);
        return keep(m, name, place);
    }
    return add_number(m, name);
}

static void add_statement(maker *m, char *text, bool is_last)
{
    char *attrs = strchr(text, '|'), *at, *name, *op;
    int inputs[4], n = 0, place;
    if (attrs)
        *attrs++ = '\0';
    name = strtok_r(text, " =", &at);
    op = strtok_r(NULL, " =", &at);
    for (char *input; (input = strtok_r(NULL, " ", &at));)
        inputs[n++] = find(m, input);
    const hwnas_op *row = hwnas_op_by_name(op);
    assert_non_null(row);
    hwnas_attr *values = attributes(row, attrs ? attrs + 1 : "");
    assert_int_equal(hwnas_graph_add_node(&place, m->graph, row, name, values, n, inputs, false),
                     HWNAS_OK);
    free(values);
    keep(m, name, place);
    if (is_last || *name == 'o')
        hwnas_graph_add_output(m->graph, place);
}

static hwnas_graph *make(const char *program)
{
    maker m = {.graph = hwnas_graph_new("fuse", 7)};
    char text[1024], *at;
    snprintf(text, sizeof text, "%s", program);
    for (char *next, *now = strtok_r(text, ";", &at); now; now = next) {
        next = strtok_r(NULL, ";", &at);
        add_statement(&m, now, !next);
    }
    return m.graph;
}

static void assert_alike(const hwnas_graph *a, const hwnas_graph *b)
{
    float **of_a = compute(a), **of_b = compute(b);
    assert_int_equal(a->n_outputs, b->n_outputs);
    for (size_t i = 0; i < a->n_outputs; i++) {
        const hwnas_tensor *t = &a->tensors[a->outputs[i]];
        assert_true(hwnas_same_shape(t, &b->tensors[b->outputs[i]]));
        assert_string_equal(t->name, b->tensors[b->outputs[i]].name);
        for (int64_t k = 0; k < hwnas_tensor_count(t); k++)
            assert_float_equal(of_a[a->outputs[i]][k], of_b[b->outputs[i]][k], 2e-6);
    }
    free_values(of_a, a);
    free_values(of_b, b);
}

static void assert_operators(const hwnas_graph *graph, const char *wanted)
{
    char made[256] = "";
    for (size_t n = 0; n < graph->n_nodes; n++)
        snprintf(made + strlen(made), sizeof made - strlen(made), "%s%s", n ? " " : "",
                 graph->nodes[n].op->name);
    assert_string_equal(made, wanted);
}

#define LAST " | axes=2 keep=1; "
#define CENTRE "m = mean x" LAST "d = sub x m; "
#define VARIANCE "p = pow d 2; v = mean p" LAST "e = add v 1e-5; "
#define LAYER_NORM CENTRE VARIANCE "r = sqrt e; n = div d r"
#define RMS "p = pow x 2; v = mean p" LAST "e = add v 1e-6; r = sqrt e; "
#define ERF "a = div x 1.41421356; f = erf a; g = add f 1; "
#define CUBE                                                                                       \
    "c = pow x 3; k = mul c 0.044715; a = add x k; t = mul a 0.79788456; f = tanh t; g = add f "   \
    "1; "

static void spellings_are_found(void **state)
{
    static const char *const rows[][2] = {
        /* PyTorch below opset 17, with and without weights, of one or two dimensions. */
        {LAYER_NORM "; w = mul n s; z = add w b", "layer_norm"},
        {LAYER_NORM "; w = mul n s", "layer_norm"},
        {LAYER_NORM, "layer_norm"},
        {LAYER_NORM "; w = mul s3 n; z = add b3 w", "layer_norm"},
        {"m = mean x | axes=1,2 keep=1; d = sub x m; p = pow d 2; v = mean p | axes=1,2 keep=1; "
         "e = add v 1e-5; r = sqrt e; n = div d r; w = mul n s2; z = add w b2",
         "layer_norm"},
        /* The difference twice, as before opset 11; a square as a product; a reciprocal root. */
        {CENTRE
         "d2 = sub x m; p = mul d2 d2; v = mean p" LAST
         "e = add 1e-5 v; r = sqrt e; q = reciprocal r; n = mul q d; w = mul n s; z = add w b",
         "layer_norm"},
        {CENTRE VARIANCE "q = pow e -0.5; n = mul d q; w = mul s n; z = add b w", "layer_norm"},
        {CENTRE VARIANCE "r = sqrt e; q = div 1 r; w = mul q s; n = mul d w; z = add n b",
         "layer_norm"},
        /* TensorFlow: x r s + (b - mean r s). */
        {CENTRE "p = mul d d; v = mean p" LAST "e = add v 1e-3; r = sqrt e; q = reciprocal r; "
                "k = mul q s; h = mul x k; l = mul m k; c = sub b l; z = add h c",
         "layer_norm"},
        /* An image's channels have other weights; what can be is one. */
        {"m = mean i | axes=2,3 keep=1; d = sub i m; p = mul d d; v = mean p | axes=2,3 keep=1; "
         "e = add v 1e-5; r = sqrt e; n = div d r; w = mul n sc",
         "layer_norm mul"},
        {RMS "n = div x r; w = mul n s", "rms_norm"},
        {RMS "q = div 1 r; n = mul x q; w = mul s n", "rms_norm"},
        {"p = mul x x; v = mean p" LAST "e = add v 1e-6; r = sqrt e; q = reciprocal r; "
         "n = mul q x; w = mul n s3",
         "rms_norm"},
        {RMS "n = div x r", "rms_norm"},
        {RMS "n = div x r; w = mul n rows", "rms_norm mul"},
        /* Factors in any order. */
        {ERF "h = mul x g; z = mul h 0.5", "gelu"},
        {ERF "h = mul 0.5 x; z = mul h g", "gelu"},
        {ERF "h = mul g 0.5; z = mul h x", "gelu"},
        {"a = mul x 0.70710678; f = erf a; g = add 1 f; h = div x 2; z = mul g h", "gelu"},
        {CUBE "h = mul 0.5 x; z = mul h g", "gelu"},
        {"q = mul x x; c = mul x q; k = mul 0.044715 c; a = add k x; t = mul 0.79788456 a; "
         "f = tanh t; g = add 1 f; h = mul x g; z = mul h 0.5",
         "gelu"},
        {"q = mul x x; k = mul q 0.044715; l = add k 1; c = mul x 0.79788456; t = mul c l; "
         "f = tanh t; g = add f 1; h = mul x 0.5; z = mul h g",
         "gelu"},
        {"a = add x 3; c = clip a | low=0 high=6; h = mul x c; z = div h 6", "hard_swish"},
        {"a = add x 3; c = clip a | low=0 high=6; h = div c 6; z = mul x h", "hard_swish"},
        {"a = add 3 x; c = clip a | low=0 high=6; h = mul c 0.16666667", "hard_sigmoid"},
        {"a = div x 6; c = add a 0.5; h = clip c | low=0 high=1", "hard_sigmoid"},
        {"h = hard_sigmoid x; z = mul h x", "hard_swish"},
        {"p = softplus x; t = tanh p; z = mul t x", "mish"},
        {"e = exp x; p = add e 1; l = log p; t = tanh l; z = mul x t", "mish"},
        {"n = neg x; e = exp n; p = add 1 e; z = div 1 p", "sigmoid"},
        {"n = neg x; e = exp n; p = add e 1; z = reciprocal p", "sigmoid"},
        {"e = exp x; t = reduce_sum e" LAST "z = div e t", "softmax"},
        {"m = reduce_max x | axes=1 keep=1; d = sub x m; e = exp d; "
         "t = reduce_sum e | axes=1 keep=1; z = div e t",
         "softmax"},
        /* Several of them, one in the other. */
        {"a = add x y; m = mean a" LAST "d = sub a m; " VARIANCE
         "r = sqrt e; n = div d r; w = mul n s; o = add w b; h = div o 1.41421356; f = erf h; "
         "g = add f 1; j = mul o 0.5; z = mul j g; k = add a z",
         "add layer_norm gelu add"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = make(rows[i][0]), *fused = NULL;
        assert_int_equal(hwnas_graph_fuse(&fused, graph), HWNAS_OK);
        if (!fused)
            fail_msg("nothing is found in: %s", rows[i][0]);
        assert_operators(fused, rows[i][1]);
        assert_alike(graph, fused);
        hwnas_graph_free(fused);
        hwnas_graph_free(graph);
    }
}

static void others_stay(void **state)
{
    static const char *const rows[] = {
        /* Numbers that are not theirs. */
        "a = div x 1.4142; f = erf a; g = add f 1; h = mul x g; z = mul h 0.5",
        ERF "h = mul x g; z = mul h 0.5001",
        "a = div x 1.41421356; f = erf a; g = add f 1.001; h = mul x g; z = mul h 0.5",
        "a = add x 3; c = clip a | low=0 high=6.1; h = mul x c; z = div h 6",
        "a = add x 2.9; c = clip a | low=0 high=6; z = div c 6",
        "h = hard_sigmoid x | alpha=0.2 beta=0.5; z = mul h x",
        CENTRE "p = pow d 3; v = mean p" LAST "e = add v 2; r = sqrt e; n = div d r",
        CENTRE VARIANCE "n = div d e",
        "p = mul x x; v = mean p" LAST "e = add v 2; r = sqrt e; n = div x r", /* epsilon */
        /* Another tensor in the place of x. */
        ERF "h = mul y g; z = mul h 0.5",
        "p = softplus x; t = tanh p; z = mul t y",
        "p = mul x y; v = mean p" LAST "e = add v 3; r = sqrt e; n = div x r",
        "e = exp x; f = exp y; t = reduce_sum f" LAST "z = div e t",
        /* Another axis, or two of them. */
        "m = mean x | axes=0 keep=1; d = sub x m; p = mul d d; v = mean p | axes=0 keep=1; "
        "e = add v 1e-5; r = sqrt e; n = div d r",
        "p = mul x x; v = mean p | axes=1 keep=1; e = add v 1e-6; r = sqrt e; n = div x r",
        "e = exp x; t = reduce_sum e | axes=1,2 keep=1; z = div e t",
        /* What lies between is an output, or read by others. */
        CENTRE "p = pow d 2; o = mean p" LAST "e = add o 1e-5; r = sqrt e; n = div d r",
        CENTRE VARIANCE "r = sqrt e; n = div d r; z = add n v",
        "a = div x 1.41421356; o = erf a; g = add o 1; h = mul x g; z = mul h 0.5",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = make(rows[i]), *fused = NULL;
        assert_int_equal(hwnas_graph_fuse(&fused, graph), HWNAS_OK);
        if (fused)
            fail_msg("something is found in: %s", rows[i]);
        hwnas_graph_free(fused);
        hwnas_graph_free(graph);
    }
}

/* Weights that others read too, or which do not lie as the operator wants them. */
static void shared_weights_stay_whole(void **state)
{
    static const char *const rows[][2] = {
        {LAYER_NORM "; w = mul n s3; z = add w b3; k = mul z s3", "layer_norm mul add mul"},
        {LAYER_NORM "; w = mul n s; z = add w b; k = mul z s", "layer_norm mul"},
        {LAYER_NORM "; w = mul n one; z = add w b", "layer_norm mul add"},
        {LAYER_NORM "; w = mul n 1.01", "layer_norm mul"},
        {LAYER_NORM "; w = mul n s4; z = add w b", "layer_norm mul add"}, /* of more dimensions */
        {LAYER_NORM "; w = mul n y; z = add w b", "layer_norm mul add"},
        {LAYER_NORM "; w = mul n s2; z = add w b2", "layer_norm mul add"},
        /* Less another mean it is the difference that has a mean square of 1. */
        {"m = mean y" LAST "d = sub x m; " VARIANCE "r = sqrt e; n = div d r", "mean sub rms_norm"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = make(rows[i][0]), *fused = NULL;
        assert_int_equal(hwnas_graph_fuse(&fused, graph), HWNAS_OK);
        assert_non_null(fused);
        assert_operators(fused, rows[i][1]);
        assert_alike(graph, fused);
        hwnas_graph_free(fused);
        hwnas_graph_free(graph);
    }
}

/* A file of a million steps of searching is read in no time: 2^12 sums, one in the other. */
static void long_chains_end(void **state)
{
    hwnas_graph *graph = hwnas_graph_new("chain", 1), *fused = NULL;
    const int64_t dims[] = {4};
    int x;
    (void)state;
    assert_int_equal(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 1, dims), HWNAS_OK);
    for (int i = 0; i < 4096; i++) {
        char name[24];
        snprintf(name, sizeof name, "n%d", i);
        x = add(graph, i % 2 ? "mul" : "add", name, x, x, NULL);
    }
    hwnas_graph_add_output(graph, x);
    assert_int_equal(hwnas_graph_fuse(&fused, graph), HWNAS_OK);
    assert_null(fused);
    hwnas_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_are_found),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(shared_weights_stay_whole),
        cmocka_unit_test(long_chains_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
