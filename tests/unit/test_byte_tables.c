/* What the CPU does to bytes in loops of its own: functions of each byte, and squeeze and excite.
 * The truth is `ref`, which computes in floats what the graph says. */
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
#include "device/onednn/byte_tables.h"
#include "device_fixture.h"
#include "graph/op.h"

/* ---- Graphs ---- */

static int add_wide_input(hwnas_graph *graph, int rank, const int64_t *dims)
{
    int x;
    ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, rank, dims));
    return x;
}

static size_t n_steps(hwnas_device *device, const hwnas_graph *graph)
{
    hwnas_exec *exec;
    const hwnas_exec_step *steps;
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    const size_t n = device->ops->steps(exec, &steps);
    hwnas_exec_free(exec);
    return n;
}

/* The greatest difference from `ref`, with one thread or two, for inputs between -8 and 8, none of
 * which lies between two bytes. */
static double difference(const char *what, const hwnas_graph *graph)
{
    double worst = 0;
    hwnas_device *devices[] = {ref, cpu[0], cpu[1]};
    const int64_t n_in = hwnas_tensor_count(&graph->tensors[graph->inputs[0]]);
    const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[0]]);
    float *values = random_values(n_in, 7), *got[3];
    for (int64_t i = 0; i < n_in; i++)
        values[i] = rintf(values[i] * 800) * 0.01F + 0.002F;
    for (size_t d = 0; d < COUNT(devices); d++) {
        hwnas_exec *exec;
        got[d] = hwnas_alloc((size_t)n * sizeof **got);
        ok(hwnas_device_compile(&exec, devices[d], graph, NULL));
        ok(devices[d]->ops->run(exec, (const float *const *)&values, &got[d]));
        hwnas_exec_free(exec);
        for (int64_t i = 0; i < n; i++) {
            const double e = fabs((double)got[d][i] - got[0][i]);
            if (!(e <= worst))
                worst = e;
            if (isnan(e))
                fail_msg("%s: value %lld is not a number", what, (long long)i);
        }
    }
    for (size_t d = 0; d < COUNT(devices); d++)
        free(got[d]);
    free(values);
    return worst;
}

/* Three steps: to bytes, the table, to floats. */
static void check_table(const char *what, hwnas_graph *graph)
{
    for (int i = 0; i < 2; i++)
        if (n_steps(cpu[i], graph) != 3)
            fail_msg("%s is of %zu steps with %d threads", what, n_steps(cpu[i], graph), i + 1);
    const double worst = difference(what, graph);
    if (worst != 0)
        fail_msg("%s is off by %g", what, worst);
    hwnas_graph_free(graph);
}

/* ---- Tests ---- */

static void all_lengths_are_looked_up(void **state)
{
    (void)state;
    enum { MOST = 300 };
    uint8_t table[256], in[MOST], out[MOST];
    hwnas_rng rng = hwnas_rng_new(1, 1);
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)hwnas_rng_below(&rng, 256);
    for (int n = 0; n < MOST; n++)
        for (int from = 0; from < 3 && from + n < MOST; from++) {
            for (int i = 0; i < MOST; i++)
                out[i] = in[i] = (uint8_t)hwnas_rng_below(&rng, 256);
            hwnas_onednn_look_up(out + from, out + from, n, table); /* in place */
            for (int i = 0; i < MOST; i++)
                assert_int_equal(out[i], i >= from && i < from + n ? table[in[i]] : in[i]);
        }
}

/* Each function of one value that there is, of images and of rows, so large that two threads share
 * them, and so small that they do not. */
static void functions_are_tables(void **state)
{
    (void)state;
    static const int64_t image[] = {2, 24, 31, 33}, rows[] = {5, 7};
    int n = 0;
    for (int id = 0; id < HWNAS_N_OPS; id++) {
        const hwnas_op *op = hwnas_ops[id];
        if (!op->is_elementwise || op->max_inputs != 1 || op->max_weights || op->build ||
            op->id == HWNAS_OP_CAST || op->id == HWNAS_OP_DROPOUT)
            continue;
        for (size_t f = 0; f < N_BYTE_FORMS; f++) {
            hwnas_graph *graph = hwnas_graph_new("function", 1);
            const int x = f % 2 ? add_wide_input(graph, 4, image) : add_wide_input(graph, 2, rows);
            const int made = add(graph, op->name, "", in_bytes(graph, x, &byte_forms[f]), -1);
            const byte_form *after = &byte_forms[(f + 1) % N_BYTE_FORMS];
            if (graph->tensors[made].dtype != HWNAS_FLOAT32) { /* a question about each value */
                hwnas_graph_free(graph);
                continue;
            }
            hwnas_graph_add_output(graph, in_bytes(graph, made, after));
            check_table(op->name, graph);
            n++;
        }
    }
    assert_true(n >= 4 * 20);
}

/* x f(x), with f(x) as bytes of its own or not, and with one reverse of x for both or two; and a
 * function that a file writes as several nodes with numbers. */
static void several_nodes_are_one_table(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 16, 9, 10};
    for (int kind = 0; kind < 4; kind++) {
        hwnas_graph *graph = hwnas_graph_new("gate", 1);
        const int q = to_bytes(graph, add_wide_input(graph, 4, dims), &byte_forms[0]);
        const int x = to_floats(graph, q, &byte_forms[0]);
        const int again = kind & 1 ? to_floats(graph, q, &byte_forms[0]) : x;
        int gate = pair(graph, "sigmoid", x, -1);
        if (kind & 2)
            gate = in_bytes(graph, gate, &byte_forms[2]);
        hwnas_graph_add_output(graph,
                               in_bytes(graph, pair(graph, "mul", again, gate), &byte_forms[1]));
        check_table(hwnas_arena_printf(graph->arena, "gate %d", kind), graph);
    }
    hwnas_graph *graph = hwnas_graph_new("numbers", 1);
    const int x = in_bytes(graph, add_wide_input(graph, 4, dims), &byte_forms[0]);
    const int more = pair(graph, "add", x, number(graph, 3, HWNAS_FLOAT32));
    const int kept = pair(graph, "relu", more, -1);
    const int product = pair(graph, "mul", x, kept);
    const int made = pair(graph, "div", product, number(graph, 6, HWNAS_FLOAT32));
    hwnas_graph_add_output(graph, in_bytes(graph, made, &byte_forms[1]));
    check_table("a function of numbers", graph);
}

/* Only a change of scale. */
static void another_scale_is_a_table(void **state)
{
    (void)state;
    static const int64_t dims[] = {3, 50};
    hwnas_graph *graph = hwnas_graph_new("scale", 1);
    const int x = in_bytes(graph, add_wide_input(graph, 2, dims), &byte_forms[0]);
    hwnas_graph_add_output(graph, in_bytes(graph, x, &byte_forms[1]));
    check_table("another scale", graph);
}

/* Somebody else reads the bytes of f(x) in x f(x), of which both are quantised: they have to be
 * there. */
static void bytes_inside_have_other_readers(void **state)
{
    (void)state;
    static const int64_t image[] = {1, 16, 9, 10}, rows[] = {5, 7};
    static const char *const readers[] = {"nobody",  "relu",    "global_avg_pool", "erf",
                                          "softmax", "a table", "a sum of both"};
    for (size_t kind = 0; kind < COUNT(readers); kind++)
        for (int is_image = 0; is_image < 2; is_image++) {
            hwnas_graph *graph = hwnas_graph_new("inside", 1);
            const int given =
                is_image ? add_wide_input(graph, 4, image) : add_wide_input(graph, 2, rows);
            const int x = in_bytes(graph, given, &byte_forms[0]);
            const int f = in_bytes(graph, pair(graph, "sigmoid", x, -1), &byte_forms[2]);
            const int made = in_bytes(graph, pair(graph, "mul", x, f), &byte_forms[1]);
            int other = f; /* an output */
            if (!strcmp(readers[kind], "a table"))
                other = in_bytes(graph, pair(graph, "tanh", f, -1), &byte_forms[3]);
            else if (!strcmp(readers[kind], "a sum of both"))
                other = in_bytes(graph, pair(graph, "add", x, made), &byte_forms[3]);
            else if (kind > 0 && (is_image || strcmp(readers[kind], "global_avg_pool") != 0))
                other = pair(graph, readers[kind], f, -1);
            hwnas_graph_add_output(graph, made);
            hwnas_graph_add_output(graph, other);
            for (int d = 0; d < 2; d++) {
                float *wanted = outcome(ref, graph, 3), *got = outcome(cpu[d], graph, 3);
                for (int64_t i = 0, n = count_outputs(graph); i < n; i++)
                    if (!(fabsf(wanted[i] - got[i]) <= 1.01F * byte_forms[0].scale))
                        fail_msg("read by %s: value %lld is %g, not %g", readers[kind],
                                 (long long)i, got[i], wanted[i]);
                free(wanted);
                free(got);
            }
            hwnas_graph_free(graph);
        }
}

/* One more node of a random graph: of what `n` tensors hold, as bytes again more often than not. */
static int random_node(hwnas_graph *graph, hwnas_rng *rng, const int *tensors, int n)
{
    static const char *const functions[] = {"sigmoid", "tanh", "relu", "hard_swish", "gelu", "abs"};
    static const char *const pairs[] = {"mul", "add", "sub"};
    const int a = tensors[hwnas_rng_below(rng, (uint64_t)n)];
    const int b = tensors[hwnas_rng_below(rng, (uint64_t)n)];
    int made;
    switch (hwnas_rng_below(rng, 4)) {
    case 0:
        made = pair(graph, pairs[hwnas_rng_below(rng, COUNT(pairs))], a, b);
        break;
    case 1: { /* x f(x), f(x) as bytes or not */
        int gate = pair(graph, functions[hwnas_rng_below(rng, COUNT(functions))], a, -1);
        if (hwnas_rng_below(rng, 2))
            gate = in_bytes(graph, gate, &byte_forms[hwnas_rng_below(rng, N_BYTE_FORMS)]);
        made = pair(graph, "mul", a, gate);
        break;
    }
    case 2:
        made = pair(graph, "mul", a, number(graph, 0.37F, HWNAS_FLOAT32));
        break;
    default:
        made = pair(graph, functions[hwnas_rng_below(rng, COUNT(functions))], a, -1);
    }
    return hwnas_rng_below(rng, 4)
               ? in_bytes(graph, made, &byte_forms[hwnas_rng_below(rng, N_BYTE_FORMS)])
               : made;
}

/* Graphs in which anything may read anything: no value is lost. A value between two bytes may go
 * either way, and with it what comes of it, so a few may differ. */
static void random_graphs_of_bytes(void **state)
{
    (void)state;
    enum { GRAPHS = 300, MOST = 10 };
    static const int64_t image[] = {1, 16, 5, 6}, rows[] = {6, 16};
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        hwnas_rng rng = hwnas_rng_new(seed, 5);
        hwnas_graph *graph = hwnas_graph_new("random", seed);
        int tensors[MOST], n = 1;
        const int x = seed % 2 ? add_wide_input(graph, 4, image) : add_wide_input(graph, 2, rows);
        tensors[0] = in_bytes(graph, x, &byte_forms[hwnas_rng_below(&rng, N_BYTE_FORMS)]);
        while (n < MOST) {
            tensors[n] = random_node(graph, &rng, tensors, n);
            n++;
        }
        hwnas_graph_add_output(graph, tensors[n - 1]);
        for (int k = n / 2; k < n - 1; k++)
            if (!hwnas_rng_below(&rng, 3))
                hwnas_graph_add_output(graph, tensors[k]);
        for (int d = 0; d < 2; d++) {
            float *wanted = outcome(ref, graph, seed), *got = outcome(cpu[d], graph, seed);
            const int64_t count = count_outputs(graph);
            int64_t n_off = 0;
            for (int64_t i = 0; i < count; i++)
                n_off += !(fabsf(wanted[i] - got[i]) <= 1e-4F * (1 + fabsf(wanted[i])));
            if (n_off * 20 > count)
                fail_msg("graph %d: %lld of %lld values differ", (int)seed, (long long)n_off,
                         (long long)count);
            free(wanted);
            free(got);
        }
        hwnas_graph_free(graph);
    }
}

/* A scale for each channel of an activation, which no engine writes and ONNX allows. */
static void channels_have_scales(void **state)
{
    (void)state;
    enum { CHANNELS = 16 };
    static const int64_t dims[] = {2, CHANNELS, 9, 10}, channels[] = {CHANNELS};
    float scales[CHANNELS], zeros[CHANNELS];
    for (int i = 0; i < CHANNELS; i++) {
        scales[i] = 0.011F + 0.0007F * (float)i;
        zeros[i] = (float)(i - 7);
    }
    hwnas_graph *graph = hwnas_graph_new("channels", 1);
    hwnas_attr attrs[8] = {{.is_set = true, .n = 1, .ints = {1}}};
    int scale, zero, tensor = add_wide_input(graph, 4, dims);
    ok(hwnas_graph_add_constant(&scale, graph, "scales", 1, channels, scales));
    ok(hwnas_graph_add_constant(&zero, graph, "zeros", 1, channels, zeros));
    graph->tensors[zero].dtype = HWNAS_INT8;
    static const char *const ops[] = {"quantize_linear", "dequantize_linear"};
    for (int i = 0; i < 2; i++) {
        const int inputs[] = {tensor, scale, zero};
        ok(hwnas_graph_add_node(&tensor, graph, hwnas_op_by_name(ops[i]), ops[i], attrs, 3, inputs,
                                false));
        tensor = i ? pair(graph, "tanh", tensor, -1) : tensor;
    }
    hwnas_graph_add_output(graph, in_bytes(graph, tensor, &byte_forms[1]));
    const double worst = difference("channels", graph);
    assert_true(worst <= 1.01 * byte_forms[1].scale);
    hwnas_graph_free(graph);
}

/* What is of two tensors, or read as floats by others too, or has a number for each channel. */
static void other_things_are_no_tables(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 16, 9, 10}, channels[] = {16, 1, 1};
    static const char *const kinds[] = {"two tensors", "another reader", "numbers of channels",
                                        "an output"};
    float factors[16];
    for (int i = 0; i < 16; i++)
        factors[i] = 0.1F * (float)(i - 5);
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        int made, other = -1, weight;
        hwnas_graph *graph = hwnas_graph_new("other", 1);
        const int given = add_wide_input(graph, 4, dims);
        const int x = in_bytes(graph, given, &byte_forms[0]);
        const int f = pair(graph, "tanh", x, -1);
        ok(hwnas_graph_add_constant(&weight, graph, "factors", 3, channels, factors));
        if (kind == 0)
            made = pair(graph, "mul", f,
                        in_bytes(graph, pair(graph, "abs", given, -1), &byte_forms[2]));
        else if (kind == 2)
            made = pair(graph, "mul", f, weight);
        else
            made = f;
        if (kind == 1)
            other = pair(graph, "softplus", f, -1);
        if (kind == 3)
            other = f;
        hwnas_graph_add_output(graph, in_bytes(graph, made, &byte_forms[1]));
        if (other >= 0)
            hwnas_graph_add_output(graph, other);
        float *wanted = outcome(ref, graph, 3), *got = outcome(cpu[1], graph, 3);
        for (int64_t i = 0, n = count_outputs(graph); i < n; i++) /* a byte may go either way */
            if (!(fabsf(wanted[i] - got[i]) <= 1.01F * byte_forms[1].scale))
                fail_msg("%s: value %lld is %g, not %g", kinds[kind], (long long)i, got[i],
                         wanted[i]);
        free(wanted);
        free(got);
        hwnas_graph_free(graph);
    }
}

/* Means over all pixels of bytes, and products of bytes with a factor for each channel of each
 * image. */
static void squeeze_and_excite_works_on_bytes(void **state)
{
    (void)state;
    static const byte_form odd = {HWNAS_UINT8, 0.03718F, 100}; /* between whose bytes no mean lies */
    static const int64_t images[][4] = {
        {1, 32, 1, 2}, {2, 5, 3, 3}, {3, 144, 7, 7}, {1, 600, 12, 13}, {2, 16, 40, 40}};
    for (size_t k = 0; k < COUNT(images); k++)
        for (size_t f = 0; f < N_BYTE_FORMS; f++) {
            const byte_form *before = &byte_forms[f], *after = &byte_forms[(f + k) % N_BYTE_FORMS];
            hwnas_graph *graph = hwnas_graph_new("excite", 1);
            const int x = in_bytes(graph, add_wide_input(graph, 4, images[k]), before);
            const int mean = pair(graph, "global_avg_pool", x, -1);
            const int gate = pair(graph, "tanh", mean, -1); /* either may come first */
            const int product = k % 2 ? pair(graph, "mul", gate, x) : pair(graph, "mul", x, gate);
            hwnas_graph_add_output(graph, in_bytes(graph, product, after));
            assert_int_equal(n_steps(cpu[0], graph), 5); /* bytes, mean, tanh, product, floats */
            /* a product between two bytes may go either way */
            const double worst = difference("excite", graph);
            if (!(worst <= 1.01 * after->scale))
                fail_msg("images %zu, bytes %zu: off by %g", k, f, worst);
            hwnas_graph_free(graph);

            /* Factors that were bytes, with a zero point, and a product that stays floats.
             */
            for (int stays = 0; stays < 2; stays++) {
                graph = hwnas_graph_new("factors", 1);
                const int z = in_bytes(graph, add_wide_input(graph, 4, images[k]), before);
                const int all = pair(graph, "global_avg_pool", z, -1);
                const int made = pair(graph, "mul", z, in_bytes(graph, all, &odd));
                hwnas_graph_add_output(graph, stays ? made : in_bytes(graph, made, after));
                const double off = difference("factors", graph);
                if (!(off <= (stays ? 1e-4 : 1.01 * after->scale)))
                    fail_msg("images %zu, bytes %zu, %d: off by %g", k, f, stays, off);
                hwnas_graph_free(graph);
            }

            graph = hwnas_graph_new("squeeze", 1);
            const int y = in_bytes(graph, add_wide_input(graph, 4, images[k]), before);
            hwnas_graph_add_output(graph, pair(graph, "global_avg_pool", y, -1));
            const double error = difference("squeeze", graph);
            if (!(error <= 1e-5))
                fail_msg("images %zu, bytes %zu: a mean is off by %g", k, f, error);
            hwnas_graph_free(graph);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lengths_are_looked_up),
        cmocka_unit_test(functions_are_tables),
        cmocka_unit_test(several_nodes_are_one_table),
        cmocka_unit_test(another_scale_is_a_table),
        cmocka_unit_test(bytes_inside_have_other_readers),
        cmocka_unit_test(channels_have_scales),
        cmocka_unit_test(random_graphs_of_bytes),
        cmocka_unit_test(other_things_are_no_tables),
        cmocka_unit_test(squeeze_and_excite_works_on_bytes),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
