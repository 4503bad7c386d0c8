/* test_correctness.c: `cpu` in each precision against the plain loops of `ref`: every network of
 * the zoo, samples of every space that ships, and the ONNX files that tests have. The table of
 * docs/correctness.md is what this prints.
 *
 * `make check` takes the networks that take no second, one sample of each small space, another one
 * each day: the seed is the day's number and is printed, HWNAS_SEED gives another. `make
 * check-long` (HWNAS_LONG=1) takes all, with 200 samples of each space, or HWNAS_SAMPLES;
 * HWNAS_TABLE names a file for the table. A network whose loops would take more than ten seconds is
 * compared with the reference that a search takes for such: `cpu`, each layer by itself in fp32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "measure/verify.h"
#include "onnx/onnx.h"

enum { SAMPLES = 200, SECONDS_A_DAY = 86400 };
/* Of the reference, by its estimate: longer ones are for check-long. */
static const double SHORT = 0.3;
static const int64_t MOST_BYTES = 1 << 28; /* of a network in a file */

static void ok(hwnas_status status, const char *what)
{
    if (status != HWNAS_OK)
        fail_msg("%s: %s", what, hwnas_last_error()->message);
}

static bool is_long(void)
{
    const char *given = getenv("HWNAS_LONG");
    return given && *given;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *given = getenv(variable);
    return given && *given ? strtoull(given, NULL, 10) : otherwise;
}

/* ---- One row of the table ---- */

typedef struct errors {
    size_t n, capacity;
    double *values;
} errors;

typedef struct row {
    const char *name;
    errors of[HWNAS_N_PRECISIONS];
    size_t n_by_ref;           /* compared with the loops */
    double seconds, predicted; /* of these */
    size_t n_wrong;
} row;

static hwnas_device *cpu;
static unsigned precisions; /* that it has: a set of bits */
static FILE *table;

static void compare_in(row *r, const char *code, const hwnas_expected *expected,
                       const hwnas_graph *graph, const hwnas_measure_options *options)
{
    const hwnas_precision precision = options->exec.precision;
    hwnas_graph *folded;
    hwnas_exec *exec;
    hwnas_verified v;
    errors *e = &r->of[precision];
    float **got = hwnas_alloc(graph->n_outputs * sizeof *got);
    for (size_t i = 0; i < graph->n_outputs; i++)
        got[i] = hwnas_alloc((size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]));
    ok(hwnas_graph_fold(&folded, graph), code);
    ok(hwnas_device_compile(&exec, cpu, folded, &options->exec), code);
    ok(cpu->ops->run(exec, (const float *const *)expected->buffers.inputs, got), code);
    ok(hwnas_expected_compare(&v, expected, got, graph, options), code);
    HWNAS_GROW(e->values, e->n, e->capacity);
    e->values[e->n++] = v.error;
    if (hwnas_verified_judge(&v, "cpu", precision) != HWNAS_OK) {
        print_message("# %s %s: %s\n", r->name, code, hwnas_last_error()->message);
        r->n_wrong++;
    }
    hwnas_exec_free(exec);
    hwnas_graph_free(folded);
    for (size_t i = 0; i < graph->n_outputs; i++)
        free(got[i]);
    free(got);
}

/* What is expected is the graph as the precision has it: of bytes, with packed weights, or itself.
 * The loops may take `most` seconds. */
static void compare(row *r, const char *code, const hwnas_graph *graph, double most)
{
    hwnas_measure_options options = HWNAS_MEASURE_DEFAULTS;
    hwnas_expected plain;
    const double start = hwnas_now();
    ok(hwnas_expected_open(&plain, cpu, graph, most, &options), r->name);
    if (!plain.how.device) {
        r->n_by_ref++;
        r->seconds += hwnas_now() - start;
        r->predicted += hwnas_reference_seconds(graph);
    }
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++) {
        options.exec.precision = (hwnas_precision)p;
        if (!(precisions & (1U << p)))
            continue;
        hwnas_expected formed = {0};
        const bool has_form = hwnas_precision_has_form(options.exec.precision);
        if (has_form)
            ok(hwnas_expected_open(&formed, cpu, graph, most, &options), r->name);
        compare_in(r, code, has_form ? &formed : &plain, graph, &options);
        hwnas_expected_done(&formed);
    }
    hwnas_expected_done(&plain);
}

static void end_row(row *r)
{
    size_t n = 0;
    hwnas_str text = {0};
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++) {
        errors *e = &r->of[p];
        if (!(precisions & (1U << p)) || !e->n)
            continue;
        hwnas_sort(e->values, e->n);
        n = e->n;
        if (n == 1)
            hwnas_str_addf(&text, " %.1e |", e->values[0]);
        else
            hwnas_str_addf(&text, " %.1e, %.1e |", e->values[n - 1],
                           hwnas_quantile(e->values, n, 0.5));
        free(e->values);
    }
    if (n) {
        fprintf(table, "| %s | %zu | %zu |%s\n", r->name, n, r->n_by_ref, text.s);
        fflush(table);
        print_message("# %s: %zu networks; the loops took %.2f s for %zu, by their estimate %.2f\n",
                      r->name, n, r->seconds, r->n_by_ref, r->predicted);
    }
    hwnas_str_done(&text);
    if (r->n_wrong)
        fail_msg("%s: %zu wrong results", r->name, r->n_wrong);
}

static void begin_table(const char *what)
{
    fprintf(table, "\n| %s | networks | by ref |", what);
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++)
        if (precisions & (1U << p))
            fprintf(table, " %s |", hwnas_precision_name((hwnas_precision)p));
    fprintf(table, "\n|---|---|---|");
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++)
        if (precisions & (1U << p))
            fprintf(table, "---|");
    fprintf(table, "\n");
}

/* ---- What is compared ---- */

static int is_yaml(const struct dirent *entry)
{
    return hwnas_ends_with(entry->d_name, ".yaml");
}

static int is_onnx(const struct dirent *entry)
{
    return hwnas_ends_with(entry->d_name, ".onnx");
}

static void each_file(const char *folder, int (*is_one)(const struct dirent *),
                      void (*use)(const char *path, const char *name))
{
    struct dirent **list;
    const int n = scandir(folder, &list, is_one, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char *path = hwnas_printf("%s/%s", folder, list[i]->d_name);
        const char *only = getenv("HWNAS_ONLY");
        if (!only || strstr(list[i]->d_name, only))
            use(path, list[i]->d_name);
        free(path);
        free(list[i]);
    }
    free(list);
}

/* The networks of a space, its first choices first; a fixed network is one. */
static void use_space(const char *path, const char *file, int n)
{
    hwnas_space *space;
    hwnas_rng rng = hwnas_rng_new(
        number_of("HWNAS_SEED", is_long() ? 7 : (uint64_t)(time(NULL) / SECONDS_A_DAY)), 1);
    char *name = hwnas_printf("%.*s", (int)(strlen(file) - strlen(".yaml")), file);
    row r = {.name = name};
    ok(hwnas_graph_load_space(&space, path), name);
    hwnas_arch *arch = hwnas_arch_new(space);
    for (int i = 0; i < n; i++) {
        hwnas_graph *graph;
        if (i || !is_long())
            hwnas_arch_sample(arch, &rng);
        else
            hwnas_arch_settle(arch);
        ok(hwnas_graph_build(&graph, arch, 1), name);
        char *code = hwnas_arch_code(arch);
        if (is_long() || hwnas_reference_seconds(graph) <= SHORT)
            compare(&r, code, graph, n > 1 ? HWNAS_VERIFY_REF_SECONDS : HUGE_VAL);
        free(code);
        hwnas_graph_free(graph);
    }
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    end_row(&r);
    free(name);
}

static void use_network(const char *path, const char *file)
{
    use_space(path, file, 1);
}

static void use_samples(const char *path, const char *file)
{
    use_space(path, file, is_long() ? (int)number_of("HWNAS_SAMPLES", SAMPLES) : 1);
}

/* Fuzzing found these: some say no network, and some one that no machine has the memory for. Those
 * are for other tests. */
static void use_onnx(const char *path, const char *file)
{
    hwnas_graph *graph;
    hwnas_costs costs;
    row r = {.name = file};
    if (hwnas_onnx_load(&graph, path, NULL) != HWNAS_OK) {
        hwnas_error_clear();
        return;
    }
    hwnas_graph_costs(&costs, graph);
    if (costs.peak_bytes > MOST_BYTES) {
        print_message("# %s: would take %.3g bytes, left out\n", file, (double)costs.peak_bytes);
        hwnas_graph_free(graph);
        return;
    }
    compare(&r, "", graph, HUGE_VAL);
    hwnas_graph_free(graph);
    end_row(&r);
}

static void the_zoo(void **state)
{
    (void)state;
    begin_table("zoo");
    each_file(HWNAS_SOURCE_DIR "/search_spaces/zoo", is_yaml, use_network);
}

static void the_spaces(void **state)
{
    (void)state;
    begin_table("space");
    each_file(HWNAS_SOURCE_DIR "/search_spaces", is_yaml, use_samples);
}

static void the_files(void **state)
{
    (void)state;
    begin_table("file");
    each_file(HWNAS_SOURCE_DIR "/tests/fuzz/corpus/onnx", is_onnx, use_onnx);
}

static int open_all(void **state)
{
    const hwnas_device_options options = {.threads = 1};
    const char *path = getenv("HWNAS_TABLE");
    hwnas_device_info info;
    (void)state;
    ok(hwnas_device_open(&cpu, "cpu", &options), "cpu");
    cpu->ops->describe(cpu, &info);
    precisions = info.native | info.emulated;
    table = path && *path ? fopen(path, "a") : tmpfile();
    assert_non_null(table);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    hwnas_device_close(cpu);
    return fclose(table);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_zoo),
        cmocka_unit_test(the_spaces),
        cmocka_unit_test(the_files),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
