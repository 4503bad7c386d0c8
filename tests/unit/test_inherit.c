/* Weights that a smaller network inherits: least squares, and what is recovered on samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "inherit/importance.h"
#include "inherit/least_squares.h"
#include "inherit/recover.h"
#include "inherit/removal.h"
#include "onnx/onnx.h"
#include "tests/unit/device_fixture.h"

enum { BATCH = 1, N_CHUNKS = 128 };

static char path[] = "/tmp/hwnas-inherit-XXXXXX";

/* ---- Least squares ---- */

/* The line through Anscombe's first data set: y = 3.0001 + 0.5001 x (Anscombe 1973, table). */
static void a_line_is_the_published_one(void **state)
{
    float x[] = {10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5};
    float y[] = {8.04f, 6.95f, 7.58f, 8.81f, 8.33f, 9.96f, 7.24f, 4.26f, 10.84f, 4.82f, 5.68f};
    float w = 0, b = 0;
    (void)state;
    ok(hwnas_least_squares(&w, &b, &(hwnas_matrix){COUNT(x), 1, x}, &(hwnas_matrix){COUNT(y), 1, y},
                           1e-9));
    assert_true(fabs(w - 0.5001) < 1e-4 && fabs(b - 3.0001) < 1e-3);
}

/* What the examples do not tell stays as it was guessed. */
static void unknown_weights_keep_their_guess(void **state)
{
    float x[] = {1, 0, 2, 0, 3, 0}, y[] = {2, 4, 6}, w[] = {1, 7};
    (void)state;
    ok(hwnas_least_squares(w, NULL, &(hwnas_matrix){3, 2, x}, &(hwnas_matrix){3, 1, y}, 1e-6));
    assert_true(fabsf(w[0] - 2) < 1e-3f && w[1] == 7);
}

/* ---- Recovering ---- */

/* The second half of a weight's places along a dimension becomes the first half times `factor`. */
static void repeat_half(hwnas_graph *graph, const char *name, int dim, float factor)
{
    for (size_t t = 0; t < graph->n_tensors; t++) {
        hwnas_tensor *w = &graph->tensors[t];
        int64_t behind = 1;
        if (strcmp(w->name, name))
            continue;
        float *data = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(w));
        hwnas_tensor_fill(w, data);
        for (int d = dim + 1; d < w->rank; d++)
            behind *= w->dims[d];
        const int64_t half = w->dims[dim] / 2;
        for (int64_t i = 0; i < hwnas_tensor_count(w); i++)
            if (i / behind % w->dims[dim] >= half)
                data[i] = factor * data[i - half * behind];
        w->data = data;
        return;
    }
    fail_msg("there is no weight %s", name);
}

static void open_model(hwnas_base_model **out, const hwnas_graph *graph)
{
    void *bytes;
    size_t length;
    ok(hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_VALUES));
    ok(hwnas_file_write(path, bytes, length));
    free(bytes);
    ok(hwnas_base_model_open(out, path));
}

/* Half of each group goes; what recovering is able to do is what a network with the same outputs
 * needs. */
static double lost_without_half(const hwnas_original *original, bool recovers, const float *inputs)
{
    hwnas_device *cpu = open_device("cpu", 1);
    hwnas_derivation d;
    hwnas_graph *small;
    hwnas_teacher *teacher = NULL;
    hwnas_derivation_begin(&d, original);
    d.with_weights = true;
    for (size_t g = 0; g < original->coupling->n_groups; g++) {
        const hwnas_channel_group *group = &original->coupling->groups[g];
        for (int i = group->n_sets / 2; i < group->n_sets; i++)
            d.is_kept[group->sets[i]] = false;
    }
    ok(hwnas_derivation_build(&small, &d));
    if (recovers) {
        ok(hwnas_teacher_new(&teacher, original, cpu, &inputs, N_CHUNKS));
        ok(hwnas_recover(small, &d, teacher));
        hwnas_teacher_free(teacher);
    }
    double difference = 0, sum = 0;
    float *a = outcome(cpu, small, 5), *b = outcome(cpu, original->graph, 5);
    for (int64_t i = 0; i < count_outputs(small); i++) {
        difference += (double)(a[i] - b[i]) * (a[i] - b[i]);
        sum += (double)b[i] * b[i];
    }
    free(a);
    free(b);
    hwnas_graph_free(small);
    hwnas_derivation_end(&d);
    hwnas_device_close(cpu);
    return sqrt(difference / sum);
}

/* Networks whose first layer says everything twice: nothing is lost with the second half, if the
 * next layer is told. */
static void what_is_said_twice_is_said_once(void **state)
{
    static const struct {
        const char *what;
        int64_t dims[4];
    } kinds[] = {{"conv", {BATCH, 3, 10, 10}},
                 {"depthwise", {BATCH, 3, 10, 10}},
                 {"linear", {BATCH, 12}},
                 {"matmul", {BATCH, 5, 12}}};
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        hwnas_graph *graph = hwnas_graph_new("net", 3);
        const int64_t *dims = kinds[k].dims;
        hwnas_base_model *model;
        const hwnas_original *original;
        int x = add_input(graph, dims);
        if (k < 2) {
            x = add(graph, "conv", "out=16 kernel=3", x, -1);
            x = add(graph, "relu", "", x, -1);
            if (k == 1) { /* the halves differ by a factor, which the windows make up for */
                x = add(graph, "conv", "out=16 kernel=3 groups=16", x, -1);
                repeat_half(graph, "conv_2.weight", 0, 1);
                repeat_half(graph, "conv_2.bias", 0, 1);
            }
            x = add(graph, "conv", "out=6 kernel=3 pad=1", x, -1);
            repeat_half(graph, "conv_0.weight", 0, 1);
            repeat_half(graph, "conv_0.bias", 0, 1);
        } else {
            x = add(graph, "linear", "out=16", x, -1);
            x = add(graph, "relu", "", x, -1);
            x = add(graph, "linear", "out=6", x, -1);
            repeat_half(graph, k == 2 ? "linear_0.weight" : "linear_0.kernel", k == 2 ? 0 : 1, 1);
            repeat_half(graph, "linear_0.bias", 0, 1);
        }
        hwnas_graph_add_output(graph, x);
        open_model(&model, graph);
        hwnas_graph_free(graph);
        ok(hwnas_base_model_original(&original, model, BATCH));
        int64_t count = N_CHUNKS * BATCH;
        for (int d = 1; d < 4 && dims[d]; d++)
            count *= dims[d];
        float *inputs = random_values(count, 9);
        const double before = lost_without_half(original, false, inputs);
        const double after = lost_without_half(original, true, inputs);
        if (!(before > 0.1) || !(after < 2e-3))
            fail_msg("%s: %g is lost, and %g after recovering", kinds[k].what, before, after);
        free(inputs);
        hwnas_base_model_close(model);
    }
}

/* The name of the last weight that ends so. */
static const char *last_weight(const hwnas_graph *graph, const char *suffix)
{
    for (size_t t = graph->n_tensors; t-- > 0;) {
        const char *name = graph->tensors[t].name;
        const size_t n = strlen(name), m = strlen(suffix);
        if (graph->tensors[t].kind == HWNAS_TENSOR_WEIGHT && n > m && !strcmp(name + n - m, suffix))
            return name;
    }
    fail_msg("there is no weight *%s", suffix);
    return NULL;
}

static void check_recovered(const char *what, hwnas_graph *graph, int64_t n_values)
{
    hwnas_base_model *model;
    const hwnas_original *original;
    open_model(&model, graph);
    hwnas_graph_free(graph);
    ok(hwnas_base_model_original(&original, model, BATCH));
    float *inputs = random_values(N_CHUNKS * BATCH * n_values, 9);
    const double before = lost_without_half(original, false, inputs);
    const double after = lost_without_half(original, true, inputs);
    if (!(before > 0.1) || !(after < 5e-3))
        fail_msg("%s: %g is lost, and %g after recovering", what, before, after);
    free(inputs);
    hwnas_base_model_close(model);
}

/* A mixer: layers over the channels of each token, and over the tokens of each channel. For the
 * latter it is examples that go with a channel. */
static void layers_over_tokens_lose_examples(void **state)
{
    const int64_t dims[4] = {BATCH, 5, 12};
    hwnas_graph *graph = hwnas_graph_new("net", 3);
    int x = add(graph, "linear", "out=16", add_input(graph, dims), -1);
    (void)state;
    repeat_half(graph, last_weight(graph, ".kernel"), 1, 1);
    repeat_half(graph, last_weight(graph, ".bias"), 0, 1);
    x = add(graph, "relu", "", x, -1);
    x = add(graph, "transpose", "order=0,2,1", x, -1);
    x = add(graph, "linear", "out=16", x, -1);
    repeat_half(graph, last_weight(graph, ".kernel"), 1, 1);
    repeat_half(graph, last_weight(graph, ".bias"), 0, 1);
    x = add(graph, "relu", "", x, -1);
    x = add(graph, "linear", "out=7", x, -1);
    x = add(graph, "transpose", "order=0,2,1", x, -1);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=6", x, -1));
    check_recovered("a mixer", graph, 5 * 12);
}

/* It cannot be changed for one of them, and their weights need not make up for it. */
static void a_bias_of_several_layers_stays(void **state)
{
    const int64_t dims[4] = {BATCH, 12};
    hwnas_graph *graph = hwnas_graph_new("net", 3);
    int x = add(graph, "linear", "out=16", add_input(graph, dims), -1);
    (void)state;
    repeat_half(graph, last_weight(graph, ".weight"), 0, 1);
    repeat_half(graph, last_weight(graph, ".bias"), 0, 1);
    x = add(graph, "relu", "", x, -1);
    const int a = add(graph, "linear", "out=6", x, -1), b = add(graph, "linear", "out=6", x, -1);
    const int bias = graph->nodes[graph->tensors[a].producer].inputs[2];
    float *values = hwnas_arena_alloc(graph->arena, 6 * sizeof *values);
    for (int i = 0; i < 6; i++)
        values[i] = (float)(5 - 2 * i);
    graph->tensors[bias].data = values;
    graph->nodes[graph->tensors[b].producer].inputs[2] = bias;
    hwnas_graph_add_output(graph, add(graph, "mul", "", a, b));
    check_recovered("a bias of two layers", graph, 12);
}

/* Channels of large weights that a relu never lets through carry nothing. */
static void what_carries_nothing_goes_first(void **state)
{
    enum { N = 16, INPUTS = 12 };
    const int64_t dims[4] = {BATCH, INPUTS};
    hwnas_graph *graph = hwnas_graph_new("net", 3);
    hwnas_base_model *model;
    const hwnas_original *original;
    hwnas_device *cpu = open_device("cpu", 1);
    double *importance;
    int x = add(graph, "linear", "out=16", add_input(graph, dims), -1);
    const int *inputs = graph->nodes[graph->tensors[x].producer].inputs;
    float *w = hwnas_arena_alloc(graph->arena, N * INPUTS * sizeof *w);
    float *b = hwnas_arena_alloc(graph->arena, N * sizeof *b);
    (void)state;
    hwnas_tensor_fill(&graph->tensors[inputs[1]], w);
    for (int i = 0; i < N; i++) {
        b[i] = i < N / 2 ? -1000 : 0.5F;
        for (int k = 0; k < INPUTS; k++)
            w[i * INPUTS + k] *= i < N / 2 ? 10 : 1;
    }
    graph->tensors[inputs[1]].data = w;
    graph->tensors[inputs[2]].data = b;
    x = add(graph, "relu", "", x, -1);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=6", x, -1));
    open_model(&model, graph);
    hwnas_graph_free(graph);
    ok(hwnas_base_model_original(&original, model, BATCH));
    float *samples = random_values(N_CHUNKS * BATCH * INPUTS, 9);
    ok(hwnas_importance_of_activations(&importance, original, cpu, (const float *const[]){samples},
                                       N_CHUNKS));
    int **ranking = hwnas_original_rank(original, importance);
    const hwnas_channel_group *group = &original->coupling->groups[0];
    assert_int_equal(group->n_sets, N);
    int n_by_weights = 0, n_by_activations = 0; /* of the dead ones among the first half */
    for (int i = original->n_needed[0]; i < N / 2; i++)
        for (int k = 0; k < N / 2; k++) {
            n_by_weights += original->ranking[0][i] == k;
            n_by_activations += ranking[0][i] == k;
        }
    assert_int_equal(n_by_weights, N / 2 - original->n_needed[0]);
    assert_int_equal(n_by_activations, 0);
    hwnas_ranking_free(ranking, original);
    free(importance);
    free(samples);
    hwnas_base_model_close(model);
    hwnas_device_close(cpu);
}

/* Half of the channels say what the other half says, louder than all but a few that say something
 * of their own: one of each pair goes before any of these. */
static void what_others_say_goes_first(void **state)
{
    enum { PAIRS = 6, OWN = 4, N = 2 * PAIRS + OWN, INPUTS = 12 };
    const int64_t dims[4] = {BATCH, INPUTS};
    hwnas_graph *graph = hwnas_graph_new("net", 3);
    hwnas_base_model *model;
    const hwnas_original *original;
    hwnas_device *cpu = open_device("cpu", 1);
    double *by_removal, *by_activations;
    int x = add(graph, "linear", "out=16", add_input(graph, dims), -1);
    const int *inputs = graph->nodes[graph->tensors[x].producer].inputs;
    float *w = hwnas_arena_alloc(graph->arena, N * INPUTS * sizeof *w);
    float *b = hwnas_arena_alloc(graph->arena, N * sizeof *b);
    (void)state;
    hwnas_tensor_fill(&graph->tensors[inputs[1]], w);
    for (int i = 0; i < N; i++) {
        b[i] = 0.1F;
        for (int k = 0; k < INPUTS; k++)
            w[i * INPUTS + k] = i >= PAIRS && i < 2 * PAIRS ? w[(i - PAIRS) * INPUTS + k]
                                : i < PAIRS                 ? 10 * w[i * INPUTS + k]
                                                            : w[i * INPUTS + k];
    }
    graph->tensors[inputs[1]].data = w;
    graph->tensors[inputs[2]].data = b;
    x = add(graph, "relu", "", x, -1);
    hwnas_graph_add_output(graph, add(graph, "linear", "out=6", x, -1));
    open_model(&model, graph);
    hwnas_graph_free(graph);
    ok(hwnas_base_model_original(&original, model, BATCH));
    float *samples = random_values(N_CHUNKS * BATCH * INPUTS, 9);
    const float *const all[] = {samples};
    ok(hwnas_importance_by_removal(&by_removal, original, cpu, all, N_CHUNKS));
    ok(hwnas_importance_of_activations(&by_activations, original, cpu, all, N_CHUNKS));
    const hwnas_channel_group *group = &original->coupling->groups[0];
    assert_int_equal(group->n_sets, N);
    int n_pairs = 0, n_quiet = 0; /* of which one goes first; of its own, and called unimportant */
    for (int i = 0; i < PAIRS; i++)
        n_pairs +=
            (by_removal[group->sets[i]] < PAIRS) != (by_removal[group->sets[i + PAIRS]] < PAIRS);
    for (int i = 2 * PAIRS; i < N; i++)
        for (int k = 0; k < 2 * PAIRS; k++)
            n_quiet += by_activations[group->sets[i]] < by_activations[group->sets[k]];
    assert_int_equal(n_pairs, PAIRS);
    assert_true(n_quiet > OWN * PAIRS);
    free(by_removal);
    free(by_activations);
    free(samples);
    hwnas_base_model_close(model);
    hwnas_device_close(cpu);
}

static int make_file(void **state)
{
    const int file = mkstemp(path);
    (void)state;
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_the_published_one),
        cmocka_unit_test(unknown_weights_keep_their_guess),
        cmocka_unit_test(what_is_said_twice_is_said_once),
        cmocka_unit_test(layers_over_tokens_lose_examples),
        cmocka_unit_test(a_bias_of_several_layers_stays),
        cmocka_unit_test(what_carries_nothing_goes_first),
        cmocka_unit_test(what_others_say_goes_first),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
