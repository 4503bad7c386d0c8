/* Networks of words and patches: parameters and MACs as published, and decoding with caches against
 * reading all at once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/str.h"
#include "device/device.h"
#include "graph/elaborate.h"
#include "space/table.h"

static void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s:%d: %s (%s)", hwnas_last_error()->file, hwnas_last_error()->line,
                 hwnas_last_error()->message, hwnas_last_error()->hint);
}

static hwnas_graph *build(const char *name, const char *code)
{
    hwnas_space *space;
    hwnas_arch *arch;
    hwnas_graph *graph;
    ok(hwnas_graph_load_space(&space, name));
    ok(hwnas_arch_parse(&arch, space, code));
    ok(hwnas_graph_build(&graph, arch, 1));
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return graph;
}

static hwnas_costs costs_of(const char *name, const char *code)
{
    hwnas_costs costs;
    hwnas_graph *graph = build(name, code);
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_free(graph);
    return costs;
}

/* ---- Points of the spaces ---- */

#define TWELVE(x) x x x x x x x x x x x x
#define TWELVE_BY(by, x) x by x by x by x by x by x by x by x by x by x by x by x
#define GPT2 "gpt:vocabulary=50257,positions=learned,blocks=serial,ffn=plain,head=tied"

#define TEN(x) x "." x "." x "." x "." x "." x "." x "." x "." x "." x

static void published_parameters(void **state)
{
    static const struct {
        const char *space, *code;
        int64_t params;
        double published,
            rounding; /* multiply-accumulates and the last digit given; 0: none were */
    } points[] = {
        /* Turc et al. 2019: 4.4 M, 11.3 M, 29.1 M, 41.7 M with the head of their training; these
         * are the encoders and poolers that Hugging Face's BertModel counts. */
        {"bert", "layers=2,hidden=128,heads=2,ffn=44", 4385920, 0, 0},
        {"bert", "layers=4,hidden=256,heads=4,ffn=4444", 11170560, 0, 0},
        {"bert", "layers=4,hidden=512,heads=8,ffn=4444", 28763648, 0, 0},
        {"bert", "layers=8,hidden=512,heads=8,ffn=44444444", 41373184, 0, 0},
        /* Hugging Face's gpt2-medium */
        {GPT2,
         "embed=1024,layers=24,heads=" TWELVE_BY(".", "16") "." TWELVE_BY(
             ".", "16") ",ratio=" TWELVE("44") ",bias=1",
         354823168, 0, 0},
        /* Hugging Face: SmolLM-360M, TinyLlama-1.1B, Llama-3.2-1B */
        {"llama",
         "embed=960,layers=32,heads=15,groups=5,inner=" TEN("2560") "." TEN("2560") "." TEN(
             "2560") ".2560.2560",
         361821120, 0, 0},
        {"llama:vocabulary=32000,head=free",
         "embed=2048,layers=22,heads=32,groups=4,inner=" TEN("5632") "." TEN("5632") ".5632.5632",
         1100048384, 0, 0},
        {"llama:vocabulary=128256",
         "embed=2048,layers=16,heads=32,groups=8,inner=" TEN(
             "8192") ".8192.8192.8192.8192.8192.8192",
         1235814400, 0, 0},
        /* torchvision.models: num_params and _ops of the weights */
        {"vit",
         "patch=16,embed=768,depth=12,heads=" TWELVE_BY(".", "12") ",ratio=" TWELVE_BY(":", "4"),
         86567656, 17.564e9, 1e6},
        {"vit",
         "patch=32,embed=768,depth=12,heads=" TWELVE_BY(".", "12") ",ratio=" TWELVE_BY(":", "4"),
         88224232, 4.409e9, 1e6},
        {"vit",
         "patch=16,embed=1024,depth=24,heads=" TWELVE_BY(".", "16") "." TWELVE_BY(
             ".", "16") ",ratio=" TWELVE_BY(":", "4") ":" TWELVE_BY(":", "4"),
         304326632, 61.555e9, 1e6},
        /* timm: 22.05 M */
        {"vit",
         "patch=16,embed=384,depth=12,heads=" TWELVE_BY(".", "6") ",ratio=" TWELVE_BY(":", "4"),
         22050664, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        hwnas_costs costs = costs_of(points[i].space, points[i].code);
        if (costs.params != points[i].params ||
            (points[i].published > 0 &&
             fabs((double)costs.macs - points[i].published) > points[i].rounding / 2))
            fail_msg("%s, %s: %lld params, %lld MACs; published %lld, %g", points[i].space,
                     points[i].code, (long long)costs.params, (long long)costs.macs,
                     (long long)points[i].params, points[i].published);
    }
}

/* Keras's LSTM(128) and Dense over an alphabet of A letters: 4 (A 128 + 128^2 + 128) + 129 A. Its
 * page prints 94,720 and 7,224 for 56. */
static void text_generation_depends_on_the_alphabet(void **state)
{
    (void)state;
    assert_int_equal(costs_of("lstm_text_generation:alphabet=56", "").params, 94720 + 7224);
    assert_int_equal(costs_of("lstm_text_generation", "").params, 641 * 57 + 66048);
}

/* A decoder of width e, with h heads and g groups of 64 features and gated parts of width f[i]:
 * each layer has 2 e 64 h + 2 e 64 g + 3 e f[i] weights in products, and 2 e in norms; a token
 * attends to all with 2 64 h products each. */
static void decoders_cost_what_the_formula_says(void **state)
{
    enum { E = 576, H = 8, G = 2, V = 1000, T = 16, C = 40 };
    static const int f[] = {1024, 1536, 2048, 1024, 8192, 2560};
    static const char code[] =
        "embed=576,layers=6,heads=8,groups=2,inner=1024.1536.2048.1024.8192.2560";
    int64_t products = 0;
    (void)state;
    for (int i = 0; i < 6; i++)
        products += 2 * E * 64 * H + 2 * E * 64 * G + 3 * E * f[i];
    const hwnas_costs prefill = costs_of("llama:vocabulary=1000,prompt=16,context=40", code);
    const hwnas_costs decode =
        costs_of("llama:vocabulary=1000,prompt=16,context=40,phase=decode", code);
    assert_int_equal(prefill.params, products + 6 * 2 * E + E + E * V);
    assert_int_equal(decode.params, prefill.params);
    assert_int_equal(prefill.macs, T * (products + E * V) + 6 * 2 * T * T * 64 * H);
    assert_int_equal(decode.macs, products + E * V + 6 * 2 * (C + 1) * 64 * H);
    assert_int_equal(prefill.cache_bytes, 0);
    assert_int_equal(decode.cache_bytes, 6 * 2 * C * 64 * G * 4);
}

/* ---- HW-GPT-Bench ---- */

static int64_t sum_of_heads(const char *text, int64_t *n_layers)
{
    int64_t sum = 0;
    for (*n_layers = 0; *text; ++*n_layers) {
        char *end;
        sum += strtol(text, &end, 10);
        text = end + (*end == '.');
    }
    return sum;
}

/* The table counts the linear layers of one token. Besides them we count the two products of
 * attention, of each of the tokens with each. */
static void check_hw_gpt_bench(const char *path, size_t n_rows)
{
    enum { LENGTH = 16, FEATURES = 64 };
    hwnas_space *space;
    hwnas_table *table;
    size_t params, macs, heads, wrong = 0;
    ok(hwnas_graph_load_space(&space, "gpt:length=16"));
    ok(hwnas_table_load(&table, space, path));
    ok(hwnas_csv_require(&params, table->csv, "params_count"));
    ok(hwnas_csv_require(&macs, table->csv, "macs_count_per_token"));
    ok(hwnas_csv_require(&heads, table->csv, "heads"));
    assert_int_equal(table->n, n_rows);
    for (size_t row = 0; row < table->n; row++) {
        hwnas_graph *graph;
        hwnas_costs costs;
        double expected_params, expected_macs;
        int64_t n_layers;
        ok(hwnas_csv_number(&expected_params, table->csv, row, params));
        ok(hwnas_csv_number(&expected_macs, table->csv, row, macs));
        int64_t n_heads = sum_of_heads(hwnas_csv_cell(table->csv, row, heads), &n_layers);
        ok(hwnas_graph_build(&graph, table->archs[row], 1));
        hwnas_graph_costs(&costs, graph);
        assert_int_equal(graph->n_outputs, 2 * n_layers + 1);
        if ((double)costs.params != expected_params ||
            (double)(costs.macs - 2 * LENGTH * LENGTH * FEATURES * n_heads) !=
                LENGTH * expected_macs)
            if (wrong++ < 5)
                print_message("# line %d: %lld params, %lld MACs; published %.0f, %.0f a token\n",
                              table->csv->lines[row], (long long)costs.params,
                              (long long)costs.macs, expected_params, expected_macs);
        hwnas_graph_free(graph);
    }
    assert_int_equal(wrong, 0);
    hwnas_table_free(table);
    hwnas_space_free(space);
}

static void all_rows_of_hw_gpt_bench(void **state)
{
    (void)state;
    check_hw_gpt_bench(HWNAS_TEST_DATA "/gpt_s.csv", 1000);
    check_hw_gpt_bench(HWNAS_TEST_DATA "/gpt_m.csv", 656);
}

/* ---- Sizes ---- */

static void sizes_of_the_spaces(void **state)
{
    static const struct {
        const char *space, *count;
    } spaces[] = {
        /* 23 pairs of width and heads that divide it; 4^2 + 4^4 + ... + 4^12 feed-forward parts */
        {"bert", "411601008"},
        /* 6 * 2 * (12^10 + 12^11 + 12^12 + 12^22 + 12^23 + 12^24) */
        {"gpt", "1040083750911146863060058112"},
        /* 6 widths * 24 pairs of heads and groups that divide them *
           (7^6 + 7^8 + 7^12 + 7^16 + 7^22 + 7^24 + 7^30 + 7^32) */
        {"llama", "162283278243700595566123797888"},
        /* 3 * 7 * (21^8 + 21^10 + 21^12 + 21^13 + 21^14 + 21^16 + 21^24) */
        {"vit", "1136272165952837730297769143314487"},
        /* 8 * (1 + 2^3 * (7 + 7^2 + 7^3)) */
        {"lstm_text", "25544"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        hwnas_space *space;
        bool is_exact;
        ok(hwnas_graph_load_space(&space, spaces[i].space));
        char *count = hwnas_space_count(space, &is_exact);
        assert_string_equal(count, spaces[i].count);
        assert_true(is_exact);
        free(count);
        hwnas_space_free(space);
    }
}

/* ---- Settings ---- */

/* A setting may be an expression of those above, as they were set. */
static void settings_see_those_above(void **state)
{
    static const char text[] = "hwnas: 1\n"
                               "name: x\n"
                               "settings:\n"
                               "  phase: {values: [prefill, decode]}\n"
                               "  length: 8\n"
                               "  new: \"phase == prefill ? length : 1\"\n"
                               "input: {x: [new, 4]}\n"
                               "network: [linear: {out: 4}]\n";
    static const struct {
        const char *given;
        int64_t expected;
    } cases[] = {
        {NULL, 8},
        {"length=5", 5},
        {"length=5,phase=decode", 1},
        {"new=3,length=5", 3},
        {"phase=decode,new=2 + 2", 4},
        {"length=new", 0}, /* not known yet */
        {"later=1", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hwnas_space *space;
        hwnas_graph *graph;
        hwnas_status status =
            hwnas_space_parse(&space, "x.yaml", text, strlen(text), cases[i].given);
        assert_int_equal(status, cases[i].expected ? HWNAS_OK : HWNAS_E_INPUT);
        if (status != HWNAS_OK)
            continue;
        ok(hwnas_graph_check(space));
        hwnas_arch *arch = hwnas_arch_new(space);
        ok(hwnas_graph_build(&graph, arch, 1));
        assert_int_equal(graph->tensors[graph->inputs[0]].dims[1], cases[i].expected);
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

/* ---- Heads that do not divide ---- */

/* A space that forgets to say so is told; `bert` says so. */
static void heads_divide_the_width(void **state)
{
    static const char text[] = "hwnas: 1\n"
                               "name: forgetful\n"
                               "input: {x: [8, 64]}\n"
                               "choices: {heads: {values: [4, 5]}}\n"
                               "network:\n"
                               "  - linear: {out: in}\n"
                               "  - reshape: {shape: [8, heads, -1]}\n";
    hwnas_space *space;
    hwnas_arch *arch;
    (void)state;
    ok(hwnas_space_parse(&space, "forgetful.yaml", text, strlen(text), NULL));
    assert_int_equal(hwnas_graph_check(space), HWNAS_E_INPUT);
    assert_int_equal(hwnas_last_error()->line, 7);
    assert_non_null(strstr(hwnas_last_error()->hint, "constraints: [hidden % heads == 0]"));
    hwnas_space_free(space);
    ok(hwnas_graph_load_space(&space, "bert"));
    assert_int_equal(hwnas_arch_parse(&arch, space, "layers=2,hidden=128,heads=12,ffn=44"),
                     HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "a constraint of the space does not hold"));
    hwnas_space_free(space);
}

/* ---- Caches ---- */

enum { N_TOKENS = 6, SHIFT = 7, FEATURES = 64, MAX_TENSORS = 64 };
/* So many features of each head are turned by the positions. */
enum { NOT_ROTATED = 0, HALF_ROTATED = 32, ALL_ROTATED = 64 };

/* What one graph takes or gives. */
typedef struct buffers {
    size_t n;
    const char *names[MAX_TENSORS];
    int64_t counts[MAX_TENSORS];
    float *values[MAX_TENSORS];
} buffers;

static void add_buffers(buffers *b, const hwnas_graph *graph, size_t n, const int *tensors)
{
    assert_true(n <= MAX_TENSORS);
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        const hwnas_tensor *tensor = &graph->tensors[tensors[i]];
        b->names[i] = tensor->name;
        b->counts[i] = hwnas_tensor_count(tensor);
        b->values[i] = hwnas_alloc((size_t)hwnas_tensor_bytes(tensor));
    }
}

static void free_buffers(buffers *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->values[i]);
}

static float *find_values(const buffers *b, const char *name)
{
    for (size_t i = 0; i < b->n; i++)
        if (!strcmp(b->names[i], name))
            return b->values[i];
    fail_msg("there is no '%s'", name);
    return NULL;
}

/* Tokens at positions `first` to N_TOKENS, which see none that comes after them; angles as if
 * `shift` more stood before. */
static void fill_inputs(const buffers *inputs, int rotated, int first, int shift)
{
    static const float tokens[N_TOKENS] = {3, 14, 15, 9, 26, 5};
    memcpy(find_values(inputs, "tokens"), tokens + first,
           sizeof tokens - (size_t)first * sizeof *tokens);
    float *mask = find_values(inputs, "mask");
    for (int at = first; at < N_TOKENS; at++)
        for (int to = 0; to < N_TOKENS; to++)
            *mask++ = to <= at ? 0 : -10000;
    if (!rotated)
        return;
    float *cosines = find_values(inputs, "angles_0"), *sines = find_values(inputs, "angles_1");
    for (int at = first; at < N_TOKENS; at++)
        for (int i = 0; i < rotated; i++) {
            const int point = i % (rotated / 2);
            const double angle = (at + shift) * pow(10000, -2.0 * point / rotated);
            *cosines++ = (float)cos(angle);
            *sines++ = (float)sin(angle);
        }
}

/* The keys and values of all tokens but the last, from one graph's outputs to another's inputs. */
static void hand_over(const buffers *inputs, const buffers *outputs)
{
    for (size_t i = 0; i < inputs->n; i++) {
        if (strncmp(inputs->names[i], "past_", 5))
            continue;
        const float *from = find_values(outputs, inputs->names[i] + 5);
        const size_t n = (N_TOKENS - 1) * FEATURES;
        for (int64_t at = 0, head = 0; at < inputs->counts[i]; at += (int64_t)n, head++)
            memcpy(inputs->values[i] + at, from + head * N_TOKENS * FEATURES, n * sizeof *from);
    }
}

static void run(const hwnas_graph *graph, const buffers *inputs, const buffers *outputs)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    hwnas_exec *exec;
    ok(hwnas_device_open(&device, "ref", &options));
    ok(hwnas_device_compile(&exec, device, graph, NULL));
    ok(device->ops->run(exec, (const float *const *)inputs->values, outputs->values));
    device->ops->free_exec(exec);
    hwnas_device_close(device);
}

/* The outputs of `length` tokens read at once. */
static void read_all(buffers *outputs, const hwnas_graph *graph, int rotated, int shift)
{
    buffers inputs;
    add_buffers(&inputs, graph, graph->n_inputs, graph->inputs);
    add_buffers(outputs, graph, graph->n_outputs, graph->outputs);
    fill_inputs(&inputs, rotated, 0, shift);
    run(graph, &inputs, outputs);
    free_buffers(&inputs);
}

static void assert_close(const float *a, const float *b, int n)
{
    double greatest = 0;
    for (int i = 0; i < n; i++) {
        greatest = fmax(greatest, fabs(a[i]));
        if (!(fabs(a[i] - b[i]) <= 1e-4))
            fail_msg("%d of %d: %.8g and %.8g", i, n, (double)a[i], (double)b[i]);
    }
    assert_true(greatest > 0.01);
}

enum { VOCABULARY = 40 };
#define SMALL ",length=6,vocabulary=40"
#define CODE "embed=192,layers=10,heads=4.8.4.4.4.4.4.4.4.4,ratio=2322222222,bias=1"

/* One token after five, by caches, is the sixth of six that are read at once. */
static void check_caches(const char *prefill_name, const char *decode_name, const char *code,
                         int rotated)
{
    hwnas_graph *prefill = build(prefill_name, code), *decode = build(decode_name, code);
    buffers all, inputs, last;
    read_all(&all, prefill, rotated, 0);
    add_buffers(&inputs, decode, decode->n_inputs, decode->inputs);
    add_buffers(&last, decode, decode->n_outputs, decode->outputs);
    fill_inputs(&inputs, rotated, N_TOKENS - 1, 0);
    hand_over(&inputs, &all);
    run(decode, &inputs, &last);
    assert_close(find_values(&all, "logits") + (N_TOKENS - 1) * VOCABULARY,
                 find_values(&last, "logits"), VOCABULARY);
    free_buffers(&all);
    free_buffers(&inputs);
    free_buffers(&last);
    hwnas_graph_free(prefill);
    hwnas_graph_free(decode);
}

static void decoding_with_caches_is_reading_all(void **state)
{
    (void)state;
    check_caches("gpt:phase=prefill" SMALL, "gpt:phase=decode" SMALL, CODE, HALF_ROTATED);
#define AS_GPT2 SMALL ",positions=learned,blocks=serial,ffn=plain,head=tied"
    check_caches("gpt:phase=prefill" AS_GPT2, "gpt:phase=decode" AS_GPT2, CODE, NOT_ROTATED);
    /* Three queries for each head of keys and values. */
    check_caches("llama:prompt=6,vocabulary=40", "llama:phase=decode,context=5,vocabulary=40",
                 "embed=384,layers=6,heads=9,groups=3,inner=1024.1536.1024.1024.1024.1024",
                 ALL_ROTATED);
}

/* Su et al. 2021: scores depend on the distance of two tokens alone, however many stand before
 * both. */
static void rotary_positions_are_relative(void **state)
{
    hwnas_graph *graph = build("gpt:phase=prefill" SMALL, CODE);
    buffers here, there;
    (void)state;
    read_all(&here, graph, HALF_ROTATED, 0);
    read_all(&there, graph, HALF_ROTATED, SHIFT);
    assert_close(find_values(&here, "logits"), find_values(&there, "logits"),
                 N_TOKENS * VOCABULARY);
    double moved = 0; /* what must differ does: the keys themselves */
    for (int i = 0; i < HALF_ROTATED; i++)
        moved = fmax(moved, fabs(find_values(&here, "key_0")[i] - find_values(&there, "key_0")[i]));
    assert_true(moved > 0.01);
    free_buffers(&here);
    free_buffers(&there);
    hwnas_graph_free(graph);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_parameters),
        cmocka_unit_test(decoders_cost_what_the_formula_says),
        cmocka_unit_test(text_generation_depends_on_the_alphabet),
        cmocka_unit_test(all_rows_of_hw_gpt_bench),
        cmocka_unit_test(sizes_of_the_spaces),
        cmocka_unit_test(settings_see_those_above),
        cmocka_unit_test(heads_divide_the_width),
        cmocka_unit_test(decoding_with_caches_is_reading_all),
        cmocka_unit_test(rotary_positions_are_relative),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
