/* test_spaces.c: what must hold in every space that ships and every network of the zoo. Walks the
 * folders, so a new space is tested without being listed here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/elaborate.h"
#include "graph/op.h"
#include "onnx/onnx.h"
#include "export/arch_yaml.h"
#include "report/dot.h"

enum {
    N_SAMPLES = 10000,
    N_VARIED = 2000,
    N_BUILT_NODES = 400000, /* of one space, so that deep networks do not take all the time */
    N_EXPORTED = 5,
};

typedef struct walk {
    glob_t files;
    size_t at;
    hwnas_space *space;
    size_t setting, value; /* of this space that differs from its default, if `is_set` */
    bool is_set;
} walk;

static void load(walk *w, const char *name)
{
    hwnas_space_free(w->space);
    w->space = NULL;
    if (hwnas_graph_load_space(&w->space, name))
        fail_msg("%s: %s", name, hwnas_last_error()->message);
}

/* The next space of the folders in w->space; false after the last. */
static bool next_space(walk *w)
{
    if (!w->at) {
        assert_int_equal(glob(HWNAS_SOURCE_DIR "/search_spaces/*.yaml", 0, NULL, &w->files), 0);
        assert_true(w->files.gl_pathc >= 13);
        assert_int_equal(
            glob(HWNAS_SOURCE_DIR "/search_spaces/zoo/*.yaml", GLOB_APPEND, NULL, &w->files), 0);
        assert_true(w->files.gl_pathc >= 13 + 20);
    }
    if (w->at == w->files.gl_pathc) {
        globfree(&w->files);
        hwnas_space_free(w->space);
        return false;
    }
    load(w, w->files.gl_pathv[w->at++]);
    *w = (walk){.files = w->files, .at = w->at, .space = w->space};
    return true;
}

/* The same, and each space once more for each word that one of its settings may have. */
static bool next_space_and_settings(walk *w)
{
    while (w->space && w->setting < w->space->n_settings) {
        const hwnas_setting *setting = &w->space->settings[w->setting];
        if (++w->value >= setting->n_values) {
            w->setting++;
            w->value = 0;
            continue;
        }
        hwnas_str name = {0};
        char *value = hwnas_value_text(&setting->values[w->value]);
        hwnas_str_addf(&name, "%s:%s=%s", w->files.gl_pathv[w->at - 1], setting->name, value);
        load(w, name.s);
        w->is_set = true;
        hwnas_str_done(&name);
        free(value);
        return true;
    }
    return next_space(w);
}

/* How many architectures to draw of it. */
static int n_draws(const walk *w, int n)
{
    return !w->space->n_genes ? 1 : w->is_set ? (n + 9) / 10 : n;
}

static void fail_at(const char *what, const hwnas_arch *arch)
{
    char *code = hwnas_arch_code(arch);
    fail_msg("%s: %s: %s %s", arch->space->name, what, code, hwnas_last_error()->message);
}

static hwnas_graph *build(const hwnas_arch *arch)
{
    hwnas_graph *graph;
    if (hwnas_graph_build(&graph, arch, 1))
        fail_at("cannot be built", arch);
    return graph;
}

/* Returns the number of nodes. */
static size_t check_graph(const hwnas_arch *arch)
{
    hwnas_graph *graph = build(arch);
    hwnas_costs costs;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const hwnas_tensor *output = hwnas_node_output(graph, &graph->nodes[i]);
        if (output->rank < 2 || hwnas_tensor_count(output) < 1)
            fail_at("has a node without a shape", arch);
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (graph->tensors[graph->outputs[i]].dims[0] != 1)
            fail_at("has an output of another batch", arch);
    hwnas_graph_costs(&costs, graph);
    if (costs.params < 1 || costs.macs < 1 || graph->n_inputs < 1 || graph->n_outputs < 1)
        fail_at("has no parameters", arch);
    size_t n = graph->n_nodes;
    hwnas_graph_free(graph);
    return n;
}

static void every_sample_can_be_built(void **state)
{
    (void)state;
    for (walk w = {0}; next_space_and_settings(&w);) {
        hwnas_arch *arch = hwnas_arch_new(w.space);
        hwnas_rng rng = hwnas_rng_new(1, 0);
        size_t n_nodes = 0;
        for (int n = 0; n < n_draws(&w, N_SAMPLES) && n_nodes < N_BUILT_NODES; n++) {
            hwnas_arch_sample(arch, &rng);
            n_nodes += check_graph(arch);
        }
        hwnas_arch_free(arch);
    }
}

/* It meets the constraints, and settling has nothing left to do. */
static void check_settled(const char *what, const hwnas_arch *arch)
{
    hwnas_arch *copy = hwnas_arch_copy(arch);
    if (!hwnas_arch_settle(copy) || !hwnas_arch_equal(copy, arch))
        fail_at(what, arch);
    for (size_t g = 0; g < arch->space->n_genes; g++)
        if (arch->genes[g] >= arch->space->genes[g].n_values)
            fail_at(what, arch);
    hwnas_arch_free(copy);
}

static void check_code(const hwnas_arch *arch)
{
    hwnas_arch *back;
    char *code = hwnas_arch_code(arch), *again;
    if (hwnas_arch_parse(&back, arch->space, code))
        fail_at("the code cannot be read", arch);
    if (!hwnas_arch_equal(back, arch))
        fail_at("the code is another architecture's", arch);
    again = hwnas_arch_code(back);
    assert_string_equal(again, code);
    hwnas_arch_free(back);
    free(again);
    free(code);
}

static void variation_stays_inside(void **state)
{
    (void)state;
    for (walk w = {0}; next_space(&w);) {
        if (!w.space->n_genes)
            continue;
        hwnas_arch *a = hwnas_arch_new(w.space), *b = hwnas_arch_copy(a), *c = hwnas_arch_copy(a);
        hwnas_rng rng = hwnas_rng_new(2, 0);
        for (int n = 0; n < N_VARIED; n++) {
            hwnas_arch_sample(a, &rng);
            check_settled("a sample is outside of the space", a);
            check_code(a);
            hwnas_arch_assign(b, a);
            hwnas_arch_mutate(b, n % 2 ? 0.1 : 0, &rng);
            check_settled("a mutation is outside of the space", b);
            if (hwnas_arch_equal(a, b))
                fail_at("a mutation changed nothing", a);
            hwnas_arch_sample(b, &rng);
            hwnas_arch_cross(c, a, b, &rng);
            check_settled("a child is outside of the space", c);
        }
        hwnas_arch_free(a);
        hwnas_arch_free(b);
        hwnas_arch_free(c);
    }
}

/* The quantile of the chi-square distribution that a standard normal deviate of 5 has (one in 3.5
 * million), by Wilson and Hilferty, "The Distribution of Chi-Square", PNAS 1931. */
static double chi_square_limit(size_t freedom)
{
    double a = 2.0 / (9.0 * (double)freedom);
    return (double)freedom * pow(1 - a + 5 * sqrt(a), 3);
}

static void samples_are_uniform(void **state)
{
    (void)state;
    for (walk w = {0}; next_space(&w);) {
        if (!w.space->n_genes || w.space->has_rules)
            continue;
        hwnas_arch *arch = hwnas_arch_new(w.space);
        hwnas_rng rng = hwnas_rng_new(3, 0);
        size_t most = 1;
        for (size_t g = 0; g < w.space->n_genes; g++)
            most = w.space->genes[g].n_values > most ? w.space->genes[g].n_values : most;
        int *counts = calloc(w.space->n_genes * most, sizeof *counts);
        for (int n = 0; n < N_SAMPLES; n++) {
            hwnas_arch_sample(arch, &rng);
            for (size_t g = 0; g < w.space->n_genes; g++)
                counts[g * most + arch->genes[g]]++;
        }
        for (size_t g = 0; g < w.space->n_genes; g++) {
            size_t n_values = w.space->genes[g].n_values;
            double expected = (double)N_SAMPLES / (double)n_values, sum = 0;
            for (size_t v = 0; v < n_values; v++)
                sum += pow(counts[g * most + v] - expected, 2) / expected;
            if (n_values > 1 && sum > chi_square_limit(n_values - 1))
                fail_msg("%s: gene %zu of %zu values: chi-square %g", w.space->name, g, n_values,
                         sum);
        }
        free(counts);
        hwnas_arch_free(arch);
    }
}

static void check_onnx(const hwnas_arch *arch, const hwnas_graph *graph)
{
    hwnas_graph *back = NULL;
    void *bytes = NULL;
    size_t length;
    if (hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_SEEDS) ||
        hwnas_onnx_read(&back, arch->space->name, bytes, length))
        fail_at("no ONNX", arch);
    assert_string_equal(hwnas_graph_digest(back).hex, hwnas_graph_digest(graph).hex);
    hwnas_graph_free(back);
    free(bytes);
}

static void check_yaml(const hwnas_arch *arch, const hwnas_graph *graph)
{
    hwnas_str text = {0};
    hwnas_space *space = NULL;
    if (hwnas_arch_yaml_write(&text, arch) ||
        hwnas_space_parse(&space, "fixed.yaml", text.s, text.n, NULL) || hwnas_graph_check(space))
        fail_at("no YAML", arch);
    hwnas_arch *only = hwnas_arch_new(space);
    hwnas_graph *back = build(only);
    assert_string_equal(hwnas_graph_digest(back).hex, hwnas_graph_digest(graph).hex);
    hwnas_graph_free(back);
    hwnas_arch_free(only);
    hwnas_space_free(space);
    hwnas_str_done(&text);
}

static void exports_are_the_same_network(void **state)
{
    (void)state;
    for (walk w = {0}; next_space_and_settings(&w);) {
        hwnas_arch *arch = hwnas_arch_new(w.space);
        hwnas_rng rng = hwnas_rng_new(4, 0);
        for (int n = 0; n < n_draws(&w, N_EXPORTED); n++) {
            hwnas_arch_sample(arch, &rng);
            hwnas_graph *graph = build(arch);
            check_onnx(arch, graph);
            check_yaml(arch, graph);
            hwnas_graph_free(graph);
        }
        hwnas_arch_free(arch);
    }
}

/* A statement of a picture is a line: a node "ID [...]", an edge "ID -> ID", a frame, its end. */
static void check_dot(const hwnas_arch *arch, const hwnas_graph *graph)
{
    hwnas_str dot = {0}, nodes = {0};
    size_t n_nodes = 0;
    int depth = 0;
    hwnas_graph_dot(&dot, graph);
    for (char *line = strtok(dot.s, "\n"); line; line = strtok(NULL, "\n")) {
        char from[32], to[32], quotes = 0;
        for (const char *c = line; *c; c++)
            quotes ^= *c == '"' && (c == line || c[-1] != '\\');
        depth += line[strcspn(line, "{")] == '{';
        depth -= !strcmp(line + strspn(line, " "), "}");
        if (quotes || depth < 0)
            fail_at("its picture has an open quote or frame", arch);
        if (sscanf(line, " %31[a-z0-9] -> %31[a-z0-9]", from, to) == 2) {
            char *ends[] = {from, to};
            for (int i = 0; i < 2; i++) {
                char *id = hwnas_printf(" %s ", ends[i]);
                if (!strstr(nodes.s, id))
                    fail_at("its picture has an edge of no node", arch);
                free(id);
            }
        } else if (sscanf(line, " %31[a-z0-9] [", from) == 1) {
            hwnas_str_addf(&nodes, " %s ", from);
            n_nodes += from[0] == 'n' && from[1] >= '0' && from[1] <= '9';
        }
    }
    if (depth != 0 || n_nodes != graph->n_nodes)
        fail_at("its picture lacks something", arch);
    hwnas_str_done(&nodes);
    hwnas_str_done(&dot);
}

static void pictures_are_well_formed(void **state)
{
    (void)state;
    for (walk w = {0}; next_space(&w);) {
        hwnas_arch *arch = hwnas_arch_new(w.space);
        hwnas_rng rng = hwnas_rng_new(5, 0);
        hwnas_arch_sample(arch, &rng);
        hwnas_graph *graph = build(arch);
        check_dot(arch, graph);
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_can_be_built),
        cmocka_unit_test(variation_stays_inside),
        cmocka_unit_test(samples_are_uniform),
        cmocka_unit_test(pictures_are_well_formed),
        cmocka_unit_test(exports_are_the_same_network),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
