/* test_proxy.c: the zero-cost proxies against their definitions: synflow against the sum over every
 * single weight of w dR/dw on the reference device, zen and naswot against what follows from their
 * formulas; and against values that others' programs published. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "graph/elaborate.h"
#include "predict/predict.h"
#include "predict/proxy.h"
#include "predict/untrained.h"
#include "space/table.h"

/* Branches that join, a shortcut, both poolings, groups. */
static const char *const small = "hwnas: 1\n"
                                 "name: small\n"
                                 "input: {image: [2, 8, 8]}\n"
                                 "network:\n"
                                 "  - conv: {out: 4, kernel: 3, pad: 1, bias: false}\n"
                                 "  - relu\n"
                                 "  - residual:\n"
                                 "      - conv: {out: 4, kernel: 3, pad: 1, groups: 2}\n"
                                 "      - relu\n"
                                 "  - max_pool: {kernel: 3, stride: 2, pad: 1}\n"
                                 "  - add:\n"
                                 "      - - conv: {out: 3}\n"
                                 "      - - avg_pool: {kernel: 3, stride: 1, pad: 1}\n"
                                 "        - conv: {out: 3, bias: false}\n"
                                 "        - relu\n"
                                 "        - conv: {out: 3, kernel: 3, pad: 1}\n"
                                 "  - global_avg_pool\n"
                                 "  - flatten\n"
                                 "  - linear: {out: 5}\n";

static hwnas_graph *build(const char *text, int batch)
{
    hwnas_space *space;
    hwnas_graph *graph;
    assert_int_equal(hwnas_space_parse(&space, "small.yaml", text, strlen(text), NULL), HWNAS_OK);
    assert_int_equal(hwnas_graph_check(space), HWNAS_OK);
    hwnas_arch *arch = hwnas_arch_first(space);
    assert_int_equal(hwnas_graph_build(&graph, arch, batch), HWNAS_OK);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return graph;
}

/* Sum of the network's outputs for an input of ones, by the reference device. */
static double flow_of(const hwnas_graph *graph)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    hwnas_exec *exec;
    assert_int_equal(hwnas_device_open(&device, "ref", &options), HWNAS_OK);
    assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_OK);
    const hwnas_tensor *in = &graph->tensors[graph->inputs[0]];
    const hwnas_tensor *out = &graph->tensors[graph->outputs[0]];
    float *input = hwnas_alloc((size_t)hwnas_tensor_bytes(in));
    float *output = hwnas_alloc((size_t)hwnas_tensor_bytes(out));
    for (int64_t i = 0; i < hwnas_tensor_count(in); i++)
        input[i] = 1;
    assert_int_equal(device->ops->run(exec, (const float *const *)&input, &output), HWNAS_OK);
    double sum = 0;
    for (int64_t i = 0; i < hwnas_tensor_count(out); i++)
        sum += output[i];
    free(input);
    free(output);
    device->ops->free_exec(exec);
    hwnas_device_close(device);
    return sum;
}

/* R is linear in each weight (but for which value a max pooling picks, which a small step does not
 * change), so central differences have no error of their own. */
static void synflow_is_the_sum_over_weights(void **state)
{
    hwnas_graph *graph = build(small, 1), *pair = build(small, 2);
    double score, expected = 0;
    (void)state;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        hwnas_tensor *t = &graph->tensors[i];
        if (t->kind != HWNAS_TENSOR_WEIGHT)
            continue;
        float *values = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(t));
        hwnas_synflow_weights(values, graph, (int)i, 7);
        t->data = values;
    }
    for (size_t i = 0; i < graph->n_tensors; i++) {
        hwnas_tensor *t = &graph->tensors[i];
        for (int64_t k = 0; t->kind == HWNAS_TENSOR_WEIGHT && k < hwnas_tensor_count(t); k++) {
            float *value = (float *)&t->data[k], kept = *value, h = 0.01f * kept;
            *value = kept + h;
            double above = flow_of(graph);
            *value = kept - h;
            double below = flow_of(graph);
            *value = kept;
            if (kept > 0)
                expected += (above - below) / 0.02;
        }
    }
    assert_int_equal(hwnas_proxy_synflow(&score, pair, NULL, 7), HWNAS_OK);
    assert_true(fabs(score - log(expected)) < 1e-4);
    hwnas_graph_free(graph);
    hwnas_graph_free(pair);
}

/* Of a chain of L layers each has the whole flow R: the score is log(L R). Forty layers of gain 10
 * leave the range of float32. */
static void synflow_of_a_deep_chain(void **state)
{
    static const char *const deep = "hwnas: 1\nname: deep\ninput: {image: [400, 1, 1]}\nnetwork:\n"
                                    "  - repeat: 40\n    do:\n"
                                    "      - conv: {out: 400, bias: false}\n      - relu\n";
    hwnas_graph *graph = build(deep, 2);
    double score, log_gain = 0;
    (void)state;
    assert_int_equal(hwnas_proxy_synflow(&score, graph, NULL, 1), HWNAS_OK);
    /* Row sums of W are near their mean, 400 * 1/2 / sqrt(400) = 10. */
    log_gain = 40 * log(10) + log(400);
    assert_true(fabs(score - (log(40) + log_gain)) < 0.2);
    assert_true(score > log(3.4e38));
    hwnas_graph_free(graph);
}

static const char *const conv_net = "hwnas: 1\nname: one\ninput: {image: [3, 8, 8]}\nnetwork:\n"
                                    "  - conv: {out: 8, kernel: 3, pad: 1, bias: false}\n"
                                    "  - batch_norm\n  - relu\n  - global_avg_pool\n  - flatten\n"
                                    "  - linear: {out: 2}\n";

/* The diagonal of the kernel counts the ReLUs; so an orthogonal kernel would give
 * batch * log(8 * 8 * 8), and by Hadamard's inequality none gives more. */
static void naswot_is_below_its_bound(void **state)
{
    hwnas_graph *graph = build(conv_net, 16);
    double score, again, other;
    (void)state;
    assert_int_equal(hwnas_proxy_naswot(&score, graph, NULL, 0), HWNAS_OK);
    assert_int_equal(hwnas_proxy_naswot(&again, graph, NULL, 0), HWNAS_OK);
    assert_int_equal(hwnas_proxy_naswot(&other, graph, NULL, 1), HWNAS_OK);
    assert_true(score < 16 * log(512));
    /* Half the ReLUs agree by chance: K is near 256 (I + 11^T), whose determinant is known. */
    assert_true(fabs(score - (16 * log(256) + log(17))) < 4);
    assert_true(score == again && score != other);
    hwnas_graph_free(graph);
}

/* The loops and oneDNN agree. */
static void proxies_are_the_same_on_both_devices(void **state)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    (void)state;
    if (hwnas_device_open(&device, "cpu", &options) != HWNAS_OK)
        skip();
    for (const hwnas_proxy *p = hwnas_proxies; p->name; p++) {
        hwnas_graph *graph = build(conv_net, p->batch);
        double loops, fast;
        assert_int_equal(p->score(&loops, graph, NULL, 3), HWNAS_OK);
        assert_int_equal(p->score(&fast, graph, device, 3), HWNAS_OK);
        assert_true(fabs(loops - fast) < 1e-2 * fabs(loops));
        hwnas_graph_free(graph);
    }
    hwnas_device_close(device);
}

static hwnas_status see_nothing(void *context, const hwnas_graph *graph, const hwnas_node *node,
                                const float *input, const float *output)
{
    (void)input;
    if (!strcmp(node->op->name, "batch_norm")) {
        const hwnas_tensor *t = hwnas_node_output(graph, node);
        const int64_t size = t->dims[2] * t->dims[3], channels = t->dims[1];
        double *moments = context;
        for (int64_t b = 0; b < t->dims[0]; b++)
            for (int64_t i = 0; i < size; i++) {
                double value = output[(b * channels + 2) * size + i];
                moments[0] += value / (double)(size * t->dims[0]);
                moments[1] += value * value / (double)(size * t->dims[0]);
            }
    }
    return HWNAS_OK;
}

static double one(double fan_in)
{
    (void)fan_in;
    return 1;
}

static void batch_norm_is_by_the_batch(void **state)
{
    hwnas_graph *graph = build(conv_net, 4);
    double moments[2] = {0};
    float input[4 * 3 * 8 * 8];
    hwnas_rng rng = hwnas_rng_new(1, 1);
    (void)state;
    for (size_t i = 0; i < sizeof input / sizeof *input; i++)
        input[i] = (float)(5 + 3 * hwnas_rng_normal(&rng));
    const hwnas_untrained_visit walk = {.deviation = one, .context = moments, .see = see_nothing};
    assert_int_equal(hwnas_untrained_walk(graph, input, &walk), HWNAS_OK);
    assert_true(fabs(moments[0]) < 1e-5);
    assert_true(fabs(moments[1] - 1) < 1e-4);
    hwnas_graph_free(graph);
}

/* A network of one layer and no batch norm: f(x) = W x, so the score is log E |W (alpha e)|, and
 * for normal W and e that is near log(alpha * sqrt(outputs * inputs)). */
static void zen_of_a_linear_network(void **state)
{
    static const char *const text = "hwnas: 1\nname: line\ninput: {features: [300]}\nnetwork:\n"
                                    "  - linear: {out: 300, bias: false}\n";
    hwnas_graph *graph = build(text, 16);
    double score;
    (void)state;
    assert_int_equal(hwnas_proxy_zen(&score, graph, NULL, 0), HWNAS_OK);
    assert_true(fabs(score - log(0.01 * 300)) < 0.05);
    hwnas_graph_free(graph);
}

static double tau_with(const char *proxy, const char *column)
{
    hwnas_space *space;
    hwnas_predictor *predictor;
    hwnas_table *table;
    enum { N = 12 };
    hwnas_estimate estimates[N];
    double ours[N], theirs[N];
    size_t c;
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_201"), HWNAS_OK);
    assert_int_equal(hwnas_predictor_load(&predictor, proxy, space), HWNAS_OK);
    assert_int_equal(hwnas_table_load(&table, space, HWNAS_TEST_DATA "/nas_bench_201_proxies.csv"),
                     HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&c, table->csv, column), HWNAS_OK);
    assert_int_equal(
        hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)table->archs, N),
        HWNAS_OK);
    for (size_t i = 0; i < N; i++) {
        ours[i] = estimates[i].mean;
        assert_true(isnan(estimates[i].sd));
        assert_int_equal(hwnas_csv_number(&theirs[i], table->csv, i, c), HWNAS_OK);
    }
    assert_true(hwnas_predictor_ranks_only(predictor));
    hwnas_table_free(table);
    hwnas_predictor_free(predictor);
    hwnas_space_free(space);
    return hwnas_kendall_tau(ours, theirs, N);
}

/* 200 cells: benchmarks/proxies. */
static void proxies_rank_as_published(void **state)
{
    (void)state;
    assert_true(tau_with("proxy:synflow", "synflow_published") > 0.85);
    assert_true(tau_with("proxy:naswot", "naswot_published") > 0.5);
}

/* Networks without a ReLU have patterns too: by the sign of what goes into the activation. */
static void naswot_scores_other_activations(void **state)
{
    static const char *const names[] = {"relu", "gelu", "sigmoid", "tanh", "hard_sigmoid"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[512];
        double score;
        snprintf(text, sizeof text,
                 "hwnas: 1\nname: one\ninput: {image: [3, 8, 8]}\nnetwork:\n"
                 "  - conv: {out: 8, kernel: 3, pad: 1, bias: false}\n  - batch_norm\n  - %s\n"
                 "  - global_avg_pool\n  - flatten\n  - linear: {out: 2}\n",
                 names[i]);
        hwnas_graph *graph = build(text, 16);
        assert_int_equal(hwnas_proxy_naswot(&score, graph, NULL, 0), HWNAS_OK);
        assert_true(fabs(score - (16 * log(256) + log(17))) < 4);
        hwnas_graph_free(graph);
    }
}

static void what_a_proxy_cannot_do_is_told(void **state)
{
    static const char *const no_relu = "hwnas: 1\nname: none\ninput: {features: [4]}\nnetwork:\n"
                                       "  - linear: {out: 3}\n  - softmax\n";
    hwnas_graph *graph = build(no_relu, 2);
    hwnas_space *space;
    hwnas_predictor *predictor;
    double score = -1;
    (void)state;
    assert_int_equal(hwnas_proxy_naswot(&score, graph, NULL, 0), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "needs activations"));
    assert_int_equal(hwnas_proxy_synflow(&score, graph, NULL, 0), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "softmax"));
    assert_true(score == -1);
    hwnas_graph_free(graph);
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_201"), HWNAS_OK);
    assert_int_equal(hwnas_predictor_load(&predictor, "proxy:naswat", space), HWNAS_E_NOT_FOUND);
    assert_non_null(strstr(hwnas_last_error()->hint, "naswot"));
    hwnas_space_free(space);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synflow_is_the_sum_over_weights),
        cmocka_unit_test(synflow_of_a_deep_chain),
        cmocka_unit_test(naswot_is_below_its_bound),
        cmocka_unit_test(naswot_scores_other_activations),
        cmocka_unit_test(batch_norm_is_by_the_batch),
        cmocka_unit_test(zen_of_a_linear_network),
        cmocka_unit_test(proxies_are_the_same_on_both_devices),
        cmocka_unit_test(proxies_rank_as_published),
        cmocka_unit_test(what_a_proxy_cannot_do_is_told),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
