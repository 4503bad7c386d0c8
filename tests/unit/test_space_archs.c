/* test_space_archs.c: architectures of a space: their codes, sampling, mutation and crossing, how
 * many there are, and the digest of what comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/str.h"
#include "tests/unit/space_fixture.h"

/* ---- Architectures ---- */

static void check_code(const hwnas_space *space, const char *code)
{
    hwnas_arch *arch = NULL;
    if (hwnas_arch_parse(&arch, space, code) != HWNAS_OK)
        fail_msg("%s", describe());
    char *again = hwnas_arch_code(arch);
    assert_string_equal(code, again);
    free(again);
    hwnas_arch_free(arch);
}

static void codes_are_those_of_the_data_sets(void **state)
{
    (void)state;
    static const struct {
        const char *space, *file;
    } cases[] = {{"accel_nasbench", HWNAS_TEST_DATA "/accel_nasbench.csv"},
                 {"nas_bench_macro", HWNAS_TEST_DATA "/nas_bench_macro.csv"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_space *space = load(cases[i].space);
        hwnas_csv *csv;
        assert_int_equal(hwnas_csv_load(&csv, cases[i].file), HWNAS_OK);
        for (size_t row = 0; row < csv->n_rows; row++) {
            char *code = NULL;
            long arch = hwnas_csv_column(csv, "arch");
            if (arch >= 0)
                code = hwnas_strdup(hwnas_csv_cell(csv, row, (size_t)arch));
            else
                code = hwnas_printf("e=%s,k=%s,l=%s,se=%s",
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "e")),
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "k")),
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "l")),
                                    hwnas_csv_cell(csv, row, (size_t)hwnas_csv_column(csv, "se")));
            check_code(space, code);
            free(code);
        }
        hwnas_csv_free(csv);
        hwnas_space_free(space);
    }
}

static void codes_of_long_labels_are_separated(void **state)
{
    (void)state;
    hwnas_space *space = parse_text("hwnas: 1\nname: labels\ninput: {image: [3, 8, 8]}\n"
                                    "choices:\n"
                                    "  w: {each_of: 3, values: [0.5, 1, 1.5, 5, 1e-3]}\n"
                                    "  c: {each_of: 2, values: [8, 16, -1]}\n"
                                    "  d: {values: [[1, 2], [10, 20, 30]]}\n"
                                    "network:\n  - relu\n  - let: {used: [w, c, d]}\n");
    check_code(space, "w=0.5:1:1.5,c=8.16,d=1.10");
    check_code(space, "w=1:5:1.5,c=-1.-1,d=2.30");
    check_code(space, "w=1.5:1:5,c=8.8,d=2.20");
    check_code(space, "w=1e-3:1e-3:5,c=8.8,d=2.20");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(1, 1);
    for (int n = 0; n < 1000; n++) {
        hwnas_arch_sample(arch, &rng);
        char *code = hwnas_arch_code(arch);
        check_code(space, code);
        free(code);
    }
    hwnas_arch_free(arch);
    /* Choices may come in any order, and a single one needs no name. */
    hwnas_arch *other = NULL;
    assert_int_equal(hwnas_arch_parse(&arch, space, "w=0.5:1:1.5,c=8.16,d=1.10"), HWNAS_OK);
    assert_int_equal(hwnas_arch_parse(&other, space, "d=1.10,w=0.5:1:1.5,c=8.16"), HWNAS_OK);
    assert_true(hwnas_arch_equal(arch, other));
    assert_int_equal(hwnas_arch_hash(arch), hwnas_arch_hash(other));
    hwnas_arch_free(arch);
    hwnas_arch_free(other);
    hwnas_space_free(space);
}

/* What does not count may be left out at a choice's end, or with the whole choice. */
static void codes_without_what_does_not_count(void **state)
{
    static const char *const pairs[][2] = {
        {"embed=50,layers=0", "embed=50,layers=0,cell=lstm,units=32.32.32,both=0,read=mean"},
        {"embed=64,layers=1,cell=gru,units=96,both=1,read=last",
         "embed=64,layers=1,cell=gru,units=96.32.32,both=1,read=last"},
        {"embed=64,layers=2,cell=gru,units=96.256.256,both=1,read=last",
         "embed=64,layers=2,cell=gru,units=96.256.32,both=1,read=last"},
    };
    (void)state;
    hwnas_space *space = load("lstm_text");
    for (size_t i = 0; i < COUNT(pairs); i++) {
        hwnas_arch *arch;
        if (hwnas_arch_parse(&arch, space, pairs[i][0]))
            fail_msg("%s: %s", pairs[i][0], describe());
        char *code = hwnas_arch_code(arch);
        assert_string_equal(code, pairs[i][1]);
        free(code);
        hwnas_arch_free(arch);
    }
    hwnas_space_free(space);
}

static void wrong_codes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *space, *code, *word;
    } cases[] = {
        {"nas_bench_macro", "", "'op' has 0 of 8 values that are needed"},
        {"nas_bench_macro", "0000000", "'op' has 7 of 8 values that are needed"},
        {"nas_bench_macro", "000000000", "more than 8 values"},
        {"nas_bench_macro", "00000003", "'3' is not a value of 'op' at position 8"},
        {"nas_bench_macro", "0000 000", "' ' is not a value"},
        {"nas_bench_macro", "op=0000000", "'op' has 7 of 8 values"},
        {"nas_bench_macro", "k=00000000", "'k=00000000' is not a choice"},
        {"accel_nasbench", "", "'e' is missing"},
        {"accel_nasbench", "1666666", "'1666666' is not a choice"},
        {"accel_nasbench", "e=1666666,k=3353553,l=1223341", "'se' is missing"},
        {"accel_nasbench", "e=1666666,k=3353553,l=1223341,se=1111111,e=1666666", "given twice"},
        {"accel_nasbench", "e=1666666,k=3353553,l=1223341,se=1111111,", "ends with ','"},
        {"accel_nasbench", "e=1666666,,k=3353553,l=1223341,se=1111111", "'' is not a choice"},
        {"accel_nasbench", "e=1666666,k=3353553,l=4223341,se=1111111", "'4' is not a value of 'l'"},
        {"accel_nasbench", "e=1666666,k=335355,l=1223341,se=1111111", "'k' has 6 of 7 values"},
        {"accel_nasbench", "E=1666666,k=3353553,l=1223341,se=1111111", "is not a choice"},
        {"lstm_text", "embed=50,layers=1,cell=gru,both=0,read=last", "'units' is missing"},
        {"lstm_text", "embed=50,layers=2,cell=gru,units=64,both=0,read=last",
         "'units' has 1 of 2 values that are needed"},
        {"lstm_text", "embed=50,layers=1,cell=gru,units=64.,both=0,read=last",
         "'' is not a value of 'units'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_space *space = load(cases[i].space);
        hwnas_arch *arch = NULL;
        assert_int_equal(hwnas_arch_parse(&arch, space, cases[i].code), HWNAS_E_INPUT);
        assert_null(arch);
        if (!strstr(hwnas_last_error()->message, cases[i].word) ||
            !strstr(hwnas_last_error()->hint, "looks like"))
            fail_msg("'%s': expected '%s': %s", cases[i].code, cases[i].word, describe());
        hwnas_space_free(space);
    }
}

/* Pearson's statistic of each gene. Its mean is d (the degrees of freedom) and its variance 2 d, so
 * d + 5 sqrt(2 d) is five standard deviations; the tail of chi-square beyond that is below 1e-3
 * even for d = 1 or 2 and the seed is fixed, so a pass once is a pass for ever. */
static void sampling_is_uniform(void **state)
{
    (void)state;
    static const char *const names[] = {"accel_nasbench", "nas_bench_macro"};
    enum { N = 20000 };
    for (size_t s = 0; s < COUNT(names); s++) {
        hwnas_space *space = load(names[s]);
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(2026, 7);
        size_t(*counts)[8] = hwnas_alloc(space->n_genes * sizeof *counts);
        size_t pairs[9] = {0}; /* of the first two genes, which have two or three values */
        for (int n = 0; n < N; n++) {
            hwnas_arch_sample(arch, &rng);
            for (size_t g = 0; g < space->n_genes; g++)
                counts[g][arch->genes[g]]++;
            pairs[arch->genes[0] * 3 + arch->genes[1]]++;
        }
        for (size_t g = 0; g < space->n_genes; g++) {
            double d = (double)space->genes[g].n_values - 1;
            double expected = (double)N / (d + 1), chi = 0;
            for (size_t v = 0; v < space->genes[g].n_values; v++)
                chi += pow((double)counts[g][v] - expected, 2) / expected;
            if (chi > d + 5 * sqrt(2 * d))
                fail_msg("%s: gene %zu: chi-square %.1f with %.0f degrees", names[s], g, chi, d);
        }
        double chi = 0;
        for (size_t p = 0; p < 9; p++)
            chi += pow((double)pairs[p] - N / 9.0, 2) / (N / 9.0);
        assert_true(chi < 8 + 5 * sqrt(2 * 8)); /* and neighbours do not depend on each other */
        free(counts);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

static bool is_inside(const hwnas_arch *arch)
{
    for (size_t g = 0; g < arch->space->n_genes; g++)
        if (arch->genes[g] >= arch->space->genes[g].n_values)
            return false;
    return true;
}

static void mutation_changes_and_stays_inside(void **state)
{
    (void)state;
    hwnas_space *space = load("accel_nasbench");
    hwnas_arch *arch = hwnas_arch_new(space), *child = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(3, 3);
    static const double rates[] = {0, 1.0 / 28, 0.5, 1};
    for (size_t r = 0; r < COUNT(rates); r++) {
        size_t changed = 0;
        enum { N = 2000 };
        for (int n = 0; n < N; n++) {
            hwnas_arch_sample(arch, &rng);
            hwnas_arch_assign(child, arch);
            hwnas_arch_mutate(child, rates[r], &rng);
            assert_true(is_inside(child));
            assert_false(hwnas_arch_equal(arch, child));
            for (size_t g = 0; g < space->n_genes; g++)
                changed += arch->genes[g] != child->genes[g];
        }
        if (rates[r] == 0)
            assert_int_equal(changed, N);
        else if (rates[r] == 1)
            assert_int_equal(changed, N * space->n_genes);
        else if (rates[r] ==
                 0.5) /* binomial: mean 14, deviation sqrt(28) / 2; five of the mean's */
            assert_float_equal((double)changed / N, 14, 5 * sqrt(28.0) / 2 / sqrt(N));
    }
    hwnas_arch_free(arch);
    hwnas_arch_free(child);
    hwnas_space_free(space);

    /* What cannot change is left alone. */
    space = parse_text("hwnas: 1\nname: one\ninput: {image: [3, 8, 8]}\n"
                       "choices: {a: {values: [1]}, b: {values: [1, 2]}}\n"
                       "network:\n  - relu\n  - let: {used: a + b}\n");
    arch = hwnas_arch_new(space);
    for (int n = 0; n < 100; n++) {
        uint16_t before = arch->genes[1];
        hwnas_arch_mutate(arch, 0, &rng);
        assert_int_equal(arch->genes[0], 0);
        assert_int_not_equal(arch->genes[1], before);
    }
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static void crossing_takes_each_gene_from_a_parent(void **state)
{
    (void)state;
    hwnas_space *space = load("accel_nasbench");
    hwnas_arch *a = hwnas_arch_new(space), *b = hwnas_arch_new(space),
               *child = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(4, 4);
    size_t from_a = 0, differ = 0;
    for (int n = 0; n < 5000; n++) {
        hwnas_arch_sample(a, &rng);
        hwnas_arch_sample(b, &rng);
        hwnas_arch_cross(child, a, b, &rng);
        for (size_t g = 0; g < space->n_genes; g++) {
            assert_true(child->genes[g] == a->genes[g] || child->genes[g] == b->genes[g]);
            differ += a->genes[g] != b->genes[g];
            from_a += a->genes[g] != b->genes[g] && child->genes[g] == a->genes[g];
        }
    }
    assert_float_equal((double)from_a, (double)differ / 2, 5 * sqrt((double)differ) / 2);
    hwnas_arch_free(a);
    hwnas_arch_free(b);
    hwnas_arch_free(child);
    hwnas_space_free(space);
}

static void ten_thousand_samples_build(void **state)
{
    (void)state;
    static const char *const names[] = {"accel_nasbench", "nas_bench_macro"};
    for (size_t s = 0; s < COUNT(names); s++) {
        hwnas_space *space = load(names[s]);
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(5, 5);
        for (int n = 0; n < 10000; n++) {
            hwnas_graph *graph = NULL;
            hwnas_arch_sample(arch, &rng);
            if (hwnas_graph_build(&graph, arch, 1) != HWNAS_OK)
                fail_msg("%s", describe());
            hwnas_graph_free(graph);
        }
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

static void counts_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *choices, *count;
    } cases[] = {
        {"a: {values: [1]}", "1"},
        {"a: {each_of: 8, values: [0, 1, 2]}", "6561"},
        {"a: {values: [[1, 2], [1, 2, 3]]}", "6"},
        {"a: {each_of: 100, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}",
         "1"
         "00000000000000000000000000000000000000000000000000"
         "00000000000000000000000000000000000000000000000000"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *text = hwnas_printf("hwnas: 1\nname: x\ninput: {image: [1]}\nchoices: {%s}\n"
                                  "network: [relu, let: {used: a}]\n",
                                  cases[i].choices);
        hwnas_space *space = parse_text(text);
        char *count = hwnas_space_count(space, NULL);
        assert_string_equal(count, cases[i].count);
        free(count);
        free(text);
        hwnas_space_free(space);
    }
}

/* ---- The digest, held to the data set's own notion of the same network ---- */

typedef struct seen {
    hwnas_digest digest;
    const char *canonical;
} seen;

static int compare_seen(const void *a, const void *b)
{
    return strcmp(((const seen *)a)->digest.hex, ((const seen *)b)->digest.hex);
}

static int compare_canonical(const void *a, const void *b)
{
    return strcmp(((const seen *)a)->canonical, ((const seen *)b)->canonical);
}

static size_t count_different(const seen *rows, size_t n,
                              int (*compare)(const void *, const void *))
{
    size_t different = n > 0;
    for (size_t i = 1; i < n; i++)
        different += compare(&rows[i - 1], &rows[i]) != 0;
    return different;
}

/* Counted by hand: depth 1, 2, 3 leaves 2, 4, 8 kernels; 8 sides; half of the pairs of the first
 * two differ: (2 + 4 + 8) * 8 / 2 = 56. */
static void rules_decide_what_counts(void **state)
{
    (void)state;
    hwnas_space *space = parse_text(
        "hwnas: 1\nname: rules\ninput: {image: [3, size, size]}\nchoices:\n"
        "  size: {values: [8]}\n"
        "  depth: {values: [1, 2, 3]}\n"
        "  kernel: {each_of: 3, values: [1, 3], when: i < depth}\n"
        "  side: {each_of: 3, values: [1, 3]}\n"
        "constraints:\n  - kernel[0] != side[0]\n"
        "network:\n  - repeat: depth\n    do:\n"
        "      - conv: {out: 4, kernel: \"kernel[i]\", pad: 1}\n");
    bool is_exact = false;
    char *count = hwnas_space_count(space, &is_exact);
    assert_true(is_exact);
    assert_string_equal(count, "56");
    free(count);
    assert_int_equal(hwnas_space_count_up_to(space, 100), 56);
    assert_int_equal(hwnas_space_count_up_to(space, 55), 0);

    hwnas_arch *arch = hwnas_arch_new(space), *copy = hwnas_arch_new(space);
    size_t n = hwnas_arch_settle(arch);
    while (hwnas_arch_next(arch))
        n++;
    assert_int_equal(n, 56);

    hwnas_rng rng = hwnas_rng_new(5, 0);
    for (int i = 0; i < 1000; i++) {
        hwnas_arch_sample(arch, &rng);
        for (int step = 0; step < 2; step++) { /* as sampled, and changed */
            hwnas_arch_assign(copy, arch);
            assert_true(hwnas_arch_settle(copy) && hwnas_arch_equal(copy, arch));
            for (size_t g = 0; g < space->n_genes; g++)
                assert_true(hwnas_arch_is_active(arch, g) || arch->genes[g] == 0);
            hwnas_arch_mutate(arch, 0, &rng);
            assert_false(hwnas_arch_equal(copy, arch));
        }
    }
    hwnas_arch *none = NULL;
    assert_int_equal(hwnas_arch_parse(&none, space, "size=8,depth=1,kernel=111,side=111"),
                     HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "a constraint of the space does not hold"));
    assert_int_equal(hwnas_arch_parse(&none, space, "size=8,depth=1,kernel=133,side=311"),
                     HWNAS_OK);
    char *code = hwnas_arch_code(none); /* what does not count is put to its first value */
    assert_string_equal(code, "size=8,depth=1,kernel=111,side=311");
    free(code);
    hwnas_arch_free(none);
    hwnas_arch_free(copy);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static void equal_digests_are_equal_networks(void **state)
{
    (void)state;
    hwnas_space *space = load("nas_bench_macro");
    hwnas_csv *csv;
    size_t canonical, code;
    assert_int_equal(hwnas_csv_load(&csv, HWNAS_TEST_DATA "/nas_bench_macro.csv"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&canonical, csv, "canonical_arch"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&code, csv, "arch"), HWNAS_OK);
    assert_int_equal(csv->n_rows, 6561);
    seen *rows = hwnas_alloc(csv->n_rows * sizeof *rows);
    hwnas_arch *arch = hwnas_arch_new(space);
    size_t n = 0;
    do { /* next() goes through the rows of the table in their order */
        char *text = hwnas_arch_code(arch);
        hwnas_graph *graph = NULL;
        assert_true(n < csv->n_rows);
        assert_string_equal(text, hwnas_csv_cell(csv, n, code));
        assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
        rows[n].digest = hwnas_graph_digest(graph);
        rows[n].canonical = hwnas_csv_cell(csv, n, canonical);
        n++;
        hwnas_graph_free(graph);
        free(text);
    } while (hwnas_arch_next(arch));
    assert_int_equal(n, 6561);
    for (size_t g = 0; g < space->n_genes; g++)
        assert_int_equal(arch->genes[g], 0); /* and begins again */

    qsort(rows, n, sizeof *rows, compare_canonical);
    assert_int_equal(count_different(rows, n, compare_canonical), 3969);
    for (size_t i = 1; i < n; i++)
        assert_true(compare_canonical(&rows[i - 1], &rows[i]) ||
                    !compare_seen(&rows[i - 1], &rows[i]));
    qsort(rows, n, sizeof *rows, compare_seen);
    assert_int_equal(count_different(rows, n, compare_seen), 3969);
    for (size_t i = 1; i < n; i++)
        assert_true(compare_seen(&rows[i - 1], &rows[i]) ||
                    !compare_canonical(&rows[i - 1], &rows[i]));
    hwnas_arch_free(arch);
    free(rows);
    hwnas_csv_free(csv);
    hwnas_space_free(space);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_data_sets),
        cmocka_unit_test(codes_of_long_labels_are_separated),
        cmocka_unit_test(codes_without_what_does_not_count),
        cmocka_unit_test(wrong_codes_are_refused),
        cmocka_unit_test(sampling_is_uniform),
        cmocka_unit_test(mutation_changes_and_stays_inside),
        cmocka_unit_test(crossing_takes_each_gene_from_a_parent),
        cmocka_unit_test(ten_thousand_samples_build),
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(rules_decide_what_counts),
        cmocka_unit_test(equal_digests_are_equal_networks),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
