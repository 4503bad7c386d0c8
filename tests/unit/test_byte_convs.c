/* Convolutions of bytes, which the CPU computes in loops of its own where it has no VNNI. The truth
 * is `ref`, which computes in floats what the graph says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "byte_graphs.h"
#include "device/onednn/group.h"
#include "device/onednn/onednn.h"
#include "device/onednn/windows.h"
#include "graph/op.h"
#include "graph/quantize_places.h"

typedef struct conv {
    int64_t image[4], kernel[2], stride[2], pad[4], dilation[2];
    int in, out; /* forms of the bytes */
    float most;  /* weight */
    bool has_bias, has_scales;
    const char *function; /* behind it, or NULL */
    int64_t n_out;        /* 0: a depthwise one */
    bool adds;            /* another tensor of bytes to the result, before the function */
    bool adds_floats;     /* the same of a tensor of floats */
    bool adds_itself;     /* its input, and another such convolution follows */
    bool ends_as_floats;
    float weight_zero; /* the zero point of its weights */
    bool is_foreign;   /* no matter what computes it */
} conv;

static hwnas_attr numbers(int n, const int64_t *values)
{
    hwnas_attr attr = {.is_set = true, .n = n};
    memcpy(attr.ints, values, (size_t)n * sizeof *values);
    return attr;
}

static int64_t n_out_of(const conv *c)
{
    return c->n_out ? c->n_out : c->image[1];
}

/* Weights as bytes, each channel's with a scale of its own or all with one. */
static int add_weights(hwnas_graph *graph, const conv *c, hwnas_rng *rng, float scale)
{
    const int64_t n_channels = n_out_of(c);
    const int64_t dims[] = {n_channels, c->n_out ? c->image[1] : 1, c->kernel[0], c->kernel[1]};
    const int64_t n = n_channels * dims[1] * c->kernel[0] * c->kernel[1];
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    float *scales = hwnas_alloc((size_t)n_channels * sizeof *scales);
    float *zeros = hwnas_alloc((size_t)n_channels * sizeof *zeros);
    for (int64_t i = 0; i < n; i++) /* each third is as large as can be */
        values[i] = hwnas_rng_below(rng, 3)
                        ? (float)hwnas_rng_below(rng, (uint64_t)c->most) - floorf(c->most / 2)
                    : hwnas_rng_below(rng, 2) ? c->most - 1
                                              : -c->most;
    for (int64_t i = 0; i < n_channels; i++) {
        scales[i] = scale * (1 + 0.01F * (float)(i % 17));
        zeros[i] = c->weight_zero;
    }
    hwnas_attr attrs[8] = {{.is_set = true, .n = 1, .ints = {0}}}; /* the axis */
    int inputs[3], out;
    ok(hwnas_graph_add_constant(&inputs[0], graph, "weights", 4, dims, values));
    ok(hwnas_graph_add_constant(&inputs[1], graph, "scales", c->has_scales, &n_channels, scales));
    ok(hwnas_graph_add_constant(&inputs[2], graph, "zeros", c->has_scales, &n_channels, zeros));
    graph->tensors[inputs[0]].dtype = graph->tensors[inputs[2]].dtype = HWNAS_INT8;
    ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("dequantize_linear"), "floats", attrs, 3,
                            inputs, false));
    free(values);
    free(scales);
    free(zeros);
    return out;
}

static int add_bias(hwnas_graph *graph, int64_t n, hwnas_rng *rng)
{
    int out;
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)hwnas_rng_below(rng, 200) * 0.0123F - 1.2F;
    ok(hwnas_graph_add_constant(&out, graph, "bias", 1, &n, values));
    free(values);
    return out;
}

/* Hundredths and a little more, none of which lies between two bytes. */
static int on_grid(hwnas_graph *graph, int x)
{
    x = pair(graph, "mul", x, number(graph, 100, HWNAS_FLOAT32));
    x = pair(graph, "round", x, -1);
    x = pair(graph, "mul", x, number(graph, 0.01F, HWNAS_FLOAT32));
    return pair(graph, "add", x, number(graph, 0.002F, HWNAS_FLOAT32));
}

/* An input as bytes. */
static int add_bytes(hwnas_graph *graph, const char *name, const int64_t *dims, int form)
{
    int x;
    ok(hwnas_graph_add_input(&x, graph, name, HWNAS_FLOAT32, 4, dims));
    return in_bytes(graph, on_grid(graph, x), &byte_forms[form]);
}

static int add_conv(hwnas_graph *graph, const conv *c, hwnas_rng *rng, int x)
{
    int made;
    const int64_t n_out = n_out_of(c), groups = c->n_out ? 1 : c->image[1];
    const int64_t n_products = c->kernel[0] * c->kernel[1] * (c->n_out ? c->image[1] : 1);
    /* So that results fill the bytes: inputs are between -1 and 1, weights about half of `most`. */
    const float scale = 3.0F / (c->most * sqrtf((float)n_products));
    const int inputs[] = {x, add_weights(graph, c, rng, scale),
                          c->has_bias ? add_bias(graph, n_out, rng) : -1};
    hwnas_attr attrs[8] = {numbers(1, &n_out),
                           numbers(2, c->kernel),
                           numbers(2, c->stride),
                           numbers(4, c->pad),
                           numbers(2, c->dilation),
                           numbers(1, &groups),
                           numbers(1, &(int64_t){c->has_bias})};
    ok(hwnas_graph_add_node(&made, graph, hwnas_op_by_name("conv"),
                            hwnas_arena_printf(graph->arena, "conv_%zu", graph->n_nodes), attrs,
                            2 + c->has_bias, inputs, false));
    return made;
}

/* As it is deployed. */
static hwnas_graph *graph_of(const conv *c, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, 3);
    hwnas_graph *graph = hwnas_graph_new("conv", seed), *folded;
    const int x = add_bytes(graph, "x", c->image, c->in);
    int made = add_conv(graph, c, &rng, x);
    if (c->adds)
        made = pair(graph, "add", made,
                    add_bytes(graph, "added", graph->tensors[made].dims, (int)seed % N_BYTE_FORMS));
    if (c->adds_floats) {
        int other;
        ok(hwnas_graph_add_input(&other, graph, "floats", HWNAS_FLOAT32, 4,
                                 graph->tensors[made].dims));
        made = pair(graph, "add", made, add(graph, "tanh", "", other, -1));
    }
    if (c->adds_itself)
        made = add_conv(graph, c, &rng,
                        in_bytes(graph, pair(graph, "add", made, x), &byte_forms[c->out]));
    if (c->function)
        made = add(graph, c->function, "", made, -1);
    hwnas_graph_add_output(graph,
                           c->ends_as_floats ? made : in_bytes(graph, made, &byte_forms[c->out]));
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    return folded;
}

/* That the loops run, and not oneDNN, where they are for: else this would test nothing of them. */
static void check_how(const hwnas_graph *graph, uint64_t seed)
{
    hwnas_exec *exec;
    const hwnas_exec_step *steps;
    ok(hwnas_device_compile(&exec, cpu[0], graph, NULL));
    const size_t n = cpu[0]->ops->steps(exec, &steps);
    bool is_own = false, is_refused = false; /* what oneDNN computes wrongly is in no group */
    for (size_t i = 0; i < graph->n_nodes; i++)
        is_refused |= graph->nodes[i].op->id == HWNAS_OP_CONV &&
                      (hwnas_onednn_is_wrong(graph, &graph->nodes[i]) ||
                       hwnas_is_wrong_in_bytes(graph, &graph->nodes[i]));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            is_own |= graph->nodes[steps[i].nodes[k]].op->id == HWNAS_OP_CONV &&
                      !strcmp(steps[i].how, "own loops");
    hwnas_exec_free(exec);
#if defined __x86_64__
    if (hwnas_onednn_ends_at_avx2() && !hwnas_onednn_is_native(HWNAS_S8) &&
        __builtin_cpu_supports("fma"))
        if (!is_own && !is_refused)
            fail_msg("case %d is not computed by loops of ours", (int)seed);
#endif
}

/* Each value is that of `ref`, or, where it lies between two bytes, now and then the next one. */
static void check(const conv *c, uint64_t seed)
{
    hwnas_graph *graph = graph_of(c, seed);
    const float step = byte_forms[c->out].scale;
    const int64_t n = count_outputs(graph);
    float *wanted = outcome(ref, graph, seed);
    for (int d = 0; d < 2; d++) {
        int64_t n_next = 0;
        float *got = outcome(cpu[d], graph, seed);
        for (int64_t i = 0; i < n; i++) {
            const float off = fabsf(got[i] - wanted[i]);
            n_next += off > 0.01F * step;
            if (!(off <= 1.01F * step))
                fail_msg("case %d with %d threads: value %lld of %lld is %g, not %g", (int)seed,
                         d + 1, (long long)i, (long long)n, got[i], wanted[i]);
        }
        if (n_next > 2 + n / 500)
            fail_msg("case %d with %d threads: %lld of %lld values are off by one", (int)seed,
                     d + 1, (long long)n_next, (long long)n);
        free(got);
    }
    free(wanted);
    if (!c->ends_as_floats && !c->weight_zero && !c->adds_floats && !c->is_foreign)
        check_how(graph, seed);
    hwnas_graph_free(graph);
}

static int64_t between(hwnas_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)hwnas_rng_below(rng, (uint64_t)(high - low + 1));
}

static conv random_conv(hwnas_rng *rng, int64_t n_in, int64_t most_points)
{
    conv c = {.in = (int)hwnas_rng_below(rng, N_BYTE_FORMS),
              .out = (int)hwnas_rng_below(rng, N_BYTE_FORMS),
              .has_bias = hwnas_rng_below(rng, 2),
              .has_scales = hwnas_rng_below(rng, 2)};
    c.image[0] = between(rng, 1, 3);
    c.image[1] = n_in;
    for (int i = 0; i < 2; i++) {
        c.kernel[i] = between(rng, 1, most_points);
        c.stride[i] = between(rng, 1, 3);
        c.dilation[i] = between(rng, 1, 2);
        const int64_t reach = (c.kernel[i] - 1) * c.dilation[i];
        c.image[2 + i] = reach + between(rng, 1, 12);
        c.pad[i] = between(rng, 0, reach / 2);
        c.pad[2 + i] = between(rng, 0, reach / 2);
    }
    return c;
}

/* Kernels of all sizes, of which each lies on the image in part. */
static void random_depthwise_ones(void **state)
{
    (void)state;
    enum { CASES = 200 };
    static const int64_t channels[] = {32, 33, 40, 63, 64, 95, 144};
    static const char *const functions[] = {NULL,         NULL,   "relu", "relu6", "leaky_relu",
                                            "hard_swish", "silu", "tanh", "gelu"};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        hwnas_rng rng = hwnas_rng_new(seed, 9);
        conv c = random_conv(&rng, channels[hwnas_rng_below(&rng, COUNT(channels))], 5);
        c.most = hwnas_rng_below(&rng, 2) ? 128 : 64;
        c.function = functions[hwnas_rng_below(&rng, COUNT(functions))];
        check(&c, seed);
    }
}

/* Points of many channels, and larger kernels of few. */
static void random_dense_ones(void **state)
{
    (void)state;
    enum { CASES = 200, FEW = 8 };
    static const int64_t from[] = {1, 2, 3, 4, 7, 8, 16, 21, 64}, to[] = {32, 33, 48, 95, 128};
    static const char *const functions[] = {NULL, "relu", "relu6"};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        hwnas_rng rng = hwnas_rng_new(seed, 11);
        const int64_t n_in = from[hwnas_rng_below(&rng, COUNT(from))];
        conv c = random_conv(&rng, n_in, n_in < FEW ? 5 : 1);
        c.dilation[1] = 1;
        c.most = 64;
        c.n_out = to[hwnas_rng_below(&rng, COUNT(to))];
        c.function = functions[hwnas_rng_below(&rng, COUNT(functions))];
        c.adds = hwnas_rng_below(&rng, 2);
        check(&c, seed);
    }
}

/* As large as a kernel may be, and rows of more pixels than are taken at a time. */
static void large_ones(void **state)
{
    (void)state;
    static const conv cases[] = {
        {{1, 64, 20, 20}, {7, 7}, {1, 1}, {3, 3, 3, 3}, {1, 1}, 0, 1, 128, true, true, NULL},
        {{1, 32, 17, 17}, {8, 8}, {2, 2}, {3, 3, 4, 4}, {1, 1}, 1, 0, 128, false, true, NULL},
        {{1, 32, 9, 100}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2, 2, 128, true, false, "relu6"},
        {{2, 96, 7, 131}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 3, 3, 128, true, true, "relu6"},
        {{1, 48, 1, 300}, {1, 9}, {1, 3}, {0, 4, 0, 4}, {1, 1}, 2, 3, 128, true, true, NULL},
        {{1, 3, 40, 150}, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 0, 1, 64, true, true, "relu", 64},
        {{2, 512, 9, 15}, {1, 1}, {1, 1}, {0}, {1, 1}, 1, 0, 64, true, true, NULL, 96, true},
        {{1, 96, 1, 1}, {1, 1}, {1, 1}, {0}, {1, 1}, 3, 2, 64, true, false, "relu", 40},
        {{3, 24, 7, 7}, {1, 1}, {2, 2}, {0}, {1, 1}, 0, 0, 64, false, true, NULL, 32, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check(&cases[i], 1000 + i);
}

/* x + conv(x): the sum is not written over what is still read for other channels. */
static void what_is_added_is_read_too(void **state)
{
    (void)state;
    static const conv c = {.image = {1, 96, 9, 11},
                           .kernel = {1, 1},
                           .stride = {1, 1},
                           .dilation = {1, 1},
                           .in = 2,
                           .out = 2,
                           .most = 64,
                           .n_out = 96,
                           .adds_itself = true};
    hwnas_graph *graph = graph_of(&c, 1);
    float *wanted = outcome(ref, graph, 1);
    for (int d = 0; d < 2; d++) {
        float *got = outcome(cpu[d], graph, 1);
        int64_t n_far = 0;
        for (int64_t i = 0, n = count_outputs(graph); i < n; i++) /* a byte may go either way */
            n_far += fabsf(got[i] - wanted[i]) > 2.01F * byte_forms[c.out].scale;
        assert_int_equal(n_far, 0);
        free(got);
    }
    free(wanted);
    hwnas_graph_free(graph);
}

/* Floats that are added to the result of a convolution of bytes. */
static void floats_are_added(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const conv c = {.image = {2, 64, 9, 11},
                        .kernel = {1, 1},
                        .stride = {1, 1},
                        .dilation = {1, 1},
                        .in = i,
                        .out = i,
                        .most = 64,
                        .n_out = 64,
                        .has_bias = i % 2,
                        .adds_floats = true,
                        .function = i / 2 ? "relu" : NULL};
        check(&c, 3000 + (uint64_t)i);
    }
}

/* Depthwise kernels of eight points, which oneDNN 3.7 computes wrongly, and weights with zero
 * points, with which it ended the process. */
static void what_onednn_cannot_do(void **state)
{
    (void)state;
    static const int64_t kernels[][2] = {{8, 1}, {1, 8}, {4, 2}, {2, 4}};
    uint64_t seed = 2000;
    for (int in = 0; in < N_BYTE_FORMS; in++)
        for (int i = 0; i < 4; i++)
            for (int ends_as_floats = 0; ends_as_floats < 2; ends_as_floats++) {
                conv c = {{1, i % 2 ? 16 : 32, 12, 13},
                          {kernels[i][0], kernels[i][1]},
                          {1, 1},
                          {0, 0, 1, 0},
                          {1, 1},
                          in,
                          1,
                          64,
                          true,
                          true,
                          NULL};
                c.ends_as_floats = ends_as_floats;
                check(&c, seed++);
                c = (conv){{2, 40, 5, 7}, {3, 1}, {1, 1}, {1, 0, 1, 0}, {1, 1}, in, 0, 32,
                           true,          i % 2,  NULL,   i / 2 * 48};
                c.ends_as_floats = ends_as_floats;
                c.weight_zero = 5;
                check(&c, seed++);
            }
}

/* One channel, and padding at the sides alone: with VNNI oneDNN 3.7 computes the columns there
 * wrongly where bytes are signed. */
static void padding_at_the_sides_alone(void **state)
{
    (void)state;
    static const int64_t pads[][4] = {{0, 1, 0, 1}, {0, 0, 0, 1}, {0, 2, 0, 0}, {1, 1, 1, 1},
                                      {0, 1, 1, 1}, {1, 0, 1, 0}, {0, 2, 3, 1}};
    static const int64_t kernels[][2] = {{3, 3}, {2, 2}, {2, 5}, {1, 3}, {3, 1}};
    uint64_t seed = 4000;
    for (int in = 0; in < N_BYTE_FORMS; in++)
        for (size_t p = 0; p < COUNT(pads); p++)
            for (size_t k = 0; k < COUNT(kernels); k++, seed++) {
                conv c = {.image = {2, 1, 8, 11},
                          .kernel = {kernels[k][0], kernels[k][1]},
                          .stride = {1 + (int64_t)seed % 2, 1 + (int64_t)seed / 2 % 2},
                          .dilation = {1, 1},
                          .in = in,
                          .out = 1,
                          .most = 64,
                          .has_bias = seed % 3,
                          .n_out = seed % 2 ? 8 : 32,
                          .ends_as_floats = seed % 5 == 0,
                          .is_foreign = true};
                memcpy(c.pad, pads[p], sizeof c.pad);
                check(&c, seed);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_depthwise_ones),
        cmocka_unit_test(random_dense_ones),
        cmocka_unit_test(large_ones),
        cmocka_unit_test(what_is_added_is_read_too),
        cmocka_unit_test(floats_are_added),
        cmocka_unit_test(what_onednn_cannot_do),
        cmocka_unit_test(padding_at_the_sides_alone),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
