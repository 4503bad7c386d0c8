/* test_layers.c: what a layer has to compute and to move, counted by hand; the roofline, its file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "device/device.h"
#include "graph/op.h"
#include "measure/roofline_cache.h"
#include "graph/quantize_graph.h"
#include "graph/rounding.h"
#include "profile/layers.h"
#include "profile/limits.h"
#include "profile/slow.h"

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != HWNAS_OK)                                                                    \
            fail_msg("%s: %s", #call, hwnas_last_error()->message);                                \
    } while (0)
#define assert_near(x, y) assert_true(fabs((x) - (y)) <= 1e-9 * fabs(y))

/* 100 GFLOP/s; 10 GB/s from memory, up to 160 GB/s from the nearest cache. */
static const hwnas_roofline limits = {.threads = 1,
                                      .flops = {100e9, 99e9, 101e9},
                                      .bandwidths = {{1e3, {160e9, 160e9, 160e9}},
                                                     {1e4, {80e9, 80e9, 80e9}},
                                                     {1e5, {40e9, 40e9, 40e9}},
                                                     {1e6, {20e9, 20e9, 20e9}},
                                                     {1e7, {10e9, 10e9, 10e9}},
                                                     {1e8, {10e9, 10e9, 10e9}}},
                                      .cache_bytes = 1e6};

static void test_bandwidth_by_size(void **state)
{
    (void)state;
    assert_near(hwnas_roofline_bandwidth(&limits, 1e9), 10e9);
    assert_near(hwnas_roofline_bandwidth(&limits, 1e5), 40e9);
    assert_near(hwnas_roofline_bandwidth(&limits, sqrt(1e5 * 1e6)), sqrt(40e9 * 20e9));
    assert_near(hwnas_roofline_bandwidth(&limits, 1), 160e9);
    hwnas_roofline slow = limits; /* what is smaller is no slower */
    slow.bandwidths[0].rate.p50 = 1e9;
    assert_near(hwnas_roofline_bandwidth(&slow, 1e3), 80e9);
}

static int add(hwnas_graph *graph, const char *op, const char *name, int n, const int *inputs)
{
    int out;
    assert_ok(
        hwnas_graph_add_node(&out, graph, hwnas_op_by_name(op), name, NULL, n, inputs, false));
    return out;
}

/* x [64, 1000] * w [1000, 500] -> relu -> tanh: the first two nodes are one step. */
static hwnas_graph *make_graph(void)
{
    const int64_t x_dims[] = {64, 1000}, w_dims[] = {1000, 500};
    int x, w;
    hwnas_graph *graph = hwnas_graph_new("two", 1);
    assert_ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 2, x_dims));
    assert_ok(hwnas_graph_add_weight(&w, graph, "w", 2, w_dims, HWNAS_INIT_FAN_FIRST, true));
    const int product = add(graph, "matmul", "head/product", 2, (int[]){x, w});
    const int relu = add(graph, "relu", "head/relu", 1, &product);
    hwnas_graph_add_output(graph, add(graph, "tanh", "tanh", 1, &relu));
    return graph;
}

static hwnas_step_times make_times(void)
{
    static int nodes[] = {0, 1, 2};
    static hwnas_step_time steps[] = {{2, nodes, "partition", {1e-3, 0.9e-3, 1.1e-3}},
                                      {1, nodes + 2, "loops", {4e-3, 3e-3, 5e-3}},
                                      {0, nodes, "partition", {1e-6, 1e-6, 1e-6}}};
    return (hwnas_step_times){.n = 3,
                              .n_samples = 30,
                              .steps = steps,
                              .whole = {5.1e-3, 5e-3, 5.2e-3},
                              .ratio = {0.98, 0.97, 0.99}};
}

static void test_what_a_layer_costs(void **state)
{
    (void)state;
    hwnas_graph *graph = make_graph();
    hwnas_arena *arena = hwnas_arena_new();
    const hwnas_step_times times = make_times();
    const hwnas_layers *l = hwnas_layers_new(arena, graph, HWNAS_F32, &times, &limits);
    assert_int_equal(l->n, 3);
    assert_near(l->sum, 5.001e-3);
    assert_string_equal(l->layers[2].name, "(conversion)");
    assert_int_equal(l->layers[2].bound, HWNAS_BOUND_NONE);

    const hwnas_layer *tanh = &l->layers[0], *product = &l->layers[1]; /* the slowest first */
    assert_int_equal(tanh->position, 1);
    assert_string_equal(tanh->name, "tanh");
    assert_int_equal(tanh->macs, 0);
    assert_near(tanh->bytes, 2 * 4 * 64 * 500.0);
    assert_near(tanh->least_seconds, tanh->bytes / hwnas_roofline_bandwidth(&limits, tanh->bytes));
    assert_int_equal(tanh->bound, HWNAS_BOUND_CACHE);

    assert_string_equal(product->name, "head/{product relu}");
    assert_string_equal(product->ops, "matmul relu");
    assert_int_equal(product->macs, 64 * 1000 * 500);
    assert_near(product->weight_bytes, 4 * 1000 * 500.0);
    /* what lies between the two nodes never leaves the step */
    assert_near(product->bytes, 4.0 * (64 * 1000 + 1000 * 500 + 64 * 500));
    assert_near(product->least_seconds, 2 * 64 * 1000 * 500 / 100e9);
    assert_int_equal(product->bound, HWNAS_BOUND_COMPUTE);
    hwnas_arena_free(arena);
    hwnas_graph_free(graph);
}

static void test_precision_and_ignorance(void **state)
{
    (void)state;
    hwnas_graph *graph = make_graph();
    hwnas_arena *arena = hwnas_arena_new();
    const hwnas_step_times times = make_times();
    const hwnas_layers *l = hwnas_layers_new(arena, graph, HWNAS_S8, &times, NULL);
    /* the caller's input stays fp32 */
    assert_near(l->layers[1].bytes, 4.0 * 64 * 1000 + 1000 * 500 + 64 * 500);
    assert_true(isnan(l->layers[1].least_seconds));
    assert_int_equal(l->layers[1].bound, HWNAS_BOUND_NONE);
    assert_false(l->has_roofline);
    hwnas_arena_free(arena);
    hwnas_graph_free(graph);
}

/* A product of lower types in a network of fp32 is judged by their limit, and counts what it moves
 * in them. */
static void test_lower_types(void **state)
{
    (void)state;
    const double macs = 64.0 * 1000 * 500;
    const bool is_rounded[] = {true, false, false};
    const hwnas_range ranges[] = {{-1, 1}, {-1, 1}, {-1, 1}, {0, 1}, {-1, 1}};
    hwnas_roofline known = limits;
    hwnas_graph *graph = make_graph(), *lower[2];
    int *origin;
    known.s8_flops.p50 = 800e9;
    known.bf16_flops.p50 = 400e9;
    assert_ok(hwnas_graph_round_products(&lower[0], graph, is_rounded));
    assert_ok(
        hwnas_graph_quantize(&lower[1], &origin, graph, ranges, NULL, HWNAS_QUANTIZE_LOOKUP, 8));
    for (int i = 0; i < 2; i++) {
        hwnas_arena *arena = hwnas_arena_new();
        const size_t n = lower[i]->n_nodes;
        int *nodes = hwnas_alloc(n * sizeof *nodes);
        for (size_t k = 0; k < n; k++)
            nodes[k] = (int)k;
        hwnas_step_time step = {
            .nodes = nodes, .n_nodes = n, .time = {1e-3, 1e-3, 1e-3}, .how = "x"};
        const hwnas_step_times times = {.n = 1, .steps = &step};
        const hwnas_layers *l = hwnas_layers_new(arena, lower[i], HWNAS_F32, &times, &known);
        assert_near(l->layers[0].compute_seconds, 2 * macs / (i ? 800e9 : 400e9));
        /* Kernels of 2 bytes a value, and of 1 with a scale and a zero point for each column. */
        const double kernel = (i ? 1 : 2) * 1000.0 * 500, others = i ? 500 * (4 + 4) + 100 : 0;
        assert_true(l->layers[0].weight_bytes >= kernel);
        assert_true(l->layers[0].weight_bytes <= kernel + others);
        free(nodes);
        hwnas_arena_free(arena);
        hwnas_graph_free(lower[i]);
    }
    free(origin);
    hwnas_graph_free(graph);
}

/* What counts as slow code in a run of 10 ms, by `limits`: one layer is 1 ms of plain good code. */
static hwnas_slow_code judge(hwnas_arena *arena, hwnas_layer layer, const hwnas_roofline *roofline)
{
    hwnas_layer layers[] = {layer,
                            {.name = "good",
                             .ops = "conv",
                             .how = "partition",
                             .time = {1e-3, 1e-3, 1e-3},
                             .least_seconds = 0.5e-3}};
    const hwnas_layers all = {.n = 2,
                              .layers = layers,
                              .sum = layer.time.p50 + 1e-3,
                              .has_roofline = roofline != NULL,
                              .roofline = roofline ? *roofline : (hwnas_roofline){0}};
    hwnas_slow_code slow;
    hwnas_slow_code_of(&slow, arena, &all);
    return slow;
}

static hwnas_layer layer_of(const char *how, double seconds, double roof)
{
    return (hwnas_layer){.name = "it",
                         .ops = "mul add",
                         .how = how,
                         .time = {seconds, seconds, seconds},
                         .least_seconds = roof * seconds};
}

static void test_slow_code(void **state)
{
    (void)state;
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_roofline known = limits;
    known.call_seconds = 1e-6;
    const struct {
        hwnas_layer layer;
        bool has_roofline, is_slow;
    } cases[] = {
        {layer_of(HWNAS_HOW_REFERENCE, 9e-3, 0.5), true, true},
        {layer_of(HWNAS_HOW_REFERENCE, 9e-3, NAN), false, true},
        {layer_of(HWNAS_HOW_PLAIN, 9e-3, 0.1), true, true},
        {layer_of(HWNAS_HOW_PLAIN, 9e-3, NAN), false, true},
        {layer_of(HWNAS_HOW_PLAIN, 9e-3, 0.7), true, false}, /* a copy */
        {layer_of(HWNAS_HOW_PLAIN, 3e-6, 0.1), true, false}, /* little more than its call */
        {layer_of("partition", 9e-3, 0.001), true, true},
        {layer_of("partition", 9e-3, 0.03), true, false},
        {layer_of("partition", 9e-3, 0.001), false, false}, /* nothing to hold it against */
        {layer_of("partition", 9e-3, NAN), true, false},
        {layer_of("partition", 1.9e-5, 0.001), true, false}, /* it is mostly its call */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hwnas_slow_code slow =
            judge(arena, cases[i].layer, cases[i].has_roofline ? &known : NULL);
        const double seconds = cases[i].layer.time.p50;
        if (hwnas_slow_code_matters(&slow) != cases[i].is_slow)
            fail_msg("case %zu: a share of %g", i, slow.share);
        assert_near(slow.share, cases[i].is_slow ? seconds / (seconds + 1e-3) : 0);
        assert_true(cases[i].is_slow == (slow.name != NULL));
    }
    const hwnas_slow_code slow = judge(arena, layer_of("partition", 9e-3, 0.001), &known);
    char *step = hwnas_slow_code_step(&slow);
    assert_string_equal(step, "'it' (mul add by partition, 0.1 % of the roofline)");
    free(step);
    /* a tenth of the time is not more than a tenth */
    const hwnas_slow_code little = judge(arena, layer_of(HWNAS_HOW_PLAIN, 1e-4, 0.1), &known);
    assert_near(little.share, 1e-4 / 1.1e-3);
    assert_false(hwnas_slow_code_matters(&little));
    hwnas_arena_free(arena);
}

/* The one file in the cache. */
static char *cached_file(const char *directory)
{
    char command[300], name[300] = "";
    snprintf(command, sizeof command, "ls %s/hwnas/roofline-*.json", directory);
    FILE *f = popen(command, "r");
    assert_non_null(fgets(name, sizeof name, f));
    assert_int_equal(pclose(f), 0);
    name[strcspn(name, "\n")] = '\0';
    return strdup(name);
}

static void test_kept_whole_or_not_at_all(void **state)
{
    (void)state;
    char directory[] = "/tmp/hwnas-test-XXXXXX", command[64];
    assert_non_null(mkdtemp(directory));
    setenv("XDG_CACHE_HOME", directory, 1);
    const hwnas_device_info info = {.name = "a CPU", .library = "a library 1", .threads = 2};
    hwnas_device_info other = info;
    strcpy(other.library, "a library 2");
    char *key = hwnas_roofline_key("cpu", &info, HWNAS_F32);
    char *other_key = hwnas_roofline_key("cpu", &other, HWNAS_F32);
    hwnas_roofline back;
    assert_false(hwnas_roofline_lookup(&back, key));
    hwnas_roofline_keep(&limits, key);
    assert_true(hwnas_roofline_lookup(&back, key));
    assert_near(back.flops.low, limits.flops.low);
    assert_near(back.bandwidths[3].rate.high, limits.bandwidths[3].rate.high);
    assert_near(back.cache_bytes, limits.cache_bytes);
    assert_false(hwnas_roofline_lookup(&back, other_key));

    char *path = cached_file(directory), *text;
    size_t length;
    assert_ok(hwnas_file_read(&text, &length, path, 1 << 20));
    assert_ok(hwnas_file_write(path, text, length / 2));
    assert_false(hwnas_roofline_lookup(&back, key)); /* cut short */
    assert_ok(hwnas_file_write(path, "{}", 2));
    assert_false(hwnas_roofline_lookup(&back, key));
    hwnas_roofline_keep(&limits, key); /* and mended */
    assert_true(hwnas_roofline_lookup(&back, key));

    hwnas_roofline disturbed = limits; /* what was disturbed counts for minutes only */
    disturbed.is_unstable = true;
    hwnas_roofline_keep(&disturbed, key);
    assert_true(hwnas_roofline_lookup(&back, key));
    assert_true(back.is_unstable);
    const struct timespec hour_ago[2] = {{.tv_sec = time(NULL) - 3600},
                                         {.tv_sec = time(NULL) - 3600}};
    assert_int_equal(utimensat(AT_FDCWD, path, hour_ago, 0), 0);
    assert_false(hwnas_roofline_lookup(&back, key));
    hwnas_roofline_keep(&limits, key);
    assert_int_equal(utimensat(AT_FDCWD, path, hour_ago, 0), 0);
    assert_true(hwnas_roofline_lookup(&back, key));

    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* what cannot be kept is not a failure */
    hwnas_roofline_keep(&limits, key);
    assert_false(hwnas_roofline_lookup(&back, key));
    free(text);
    free(path);
    free(key);
    free(other_key);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bandwidth_by_size),
        cmocka_unit_test(test_what_a_layer_costs),
        cmocka_unit_test(test_precision_and_ignorance),
        cmocka_unit_test(test_lower_types),
        cmocka_unit_test(test_slow_code),
        cmocka_unit_test(test_kept_whole_or_not_at_all),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
