/* test_base.c: src/base, against published figures and brute force where there are any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <gmp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A scratch directory for each case. */

static char *scratch;

static int make_scratch(void **state)
{
    (void)state;
    scratch = hwnas_strdup("/tmp/hwnas-test-base.XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
    (void)state;
    char *command = hwnas_printf("rm -rf '%s'", scratch);
    int failed = system(command);
    free(command);
    free(scratch);
    return failed;
}

static char *in_scratch(const char *name)
{
    return hwnas_printf("%s/%s", scratch, name);
}

static size_t scratch_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(scratch);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not contain '%s'", text, part);
}

/* cmocka's assert_float_equal() compares floats. */
static void assert_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", got, expected);
}

/* Status */

static void status_names(void **state)
{
    (void)state;
    for (int i = 0; i < HWNAS_N_STATUS; i++) {
        const char *name = hwnas_status_name((hwnas_status)i);
        assert_non_null(name);
        assert_int_equal(hwnas_status_from_name(name), i);
    }
    assert_int_equal(hwnas_status_from_name("nonsense"), HWNAS_N_STATUS);
    assert_string_equal(hwnas_status_name(HWNAS_N_STATUS), "unknown");
    assert_int_equal(hwnas_status_exit_code(HWNAS_OK), 0);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_CRASHED), 1);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INPUT), 2);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INFEASIBLE), 3);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_DISTURBED), 4);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INTERRUPTED), 130);
}

static void status_record(void **state)
{
    (void)state;
    hwnas_place place = {.file = "a.yaml", .line = 3, .column = 7};
    assert_int_equal(hwnas_fail(HWNAS_E_INPUT, &place, "kernel %d is even", 6), HWNAS_E_INPUT);
    assert_int_equal(hwnas_hint(HWNAS_E_INPUT, "use 3, 5 or %d", 7), HWNAS_E_INPUT);
    assert_int_equal(hwnas_context(HWNAS_E_INPUT, "stage '%s'", "b2"), HWNAS_E_INPUT);
    const hwnas_error *e = hwnas_last_error();
    assert_int_equal(e->status, HWNAS_E_INPUT);
    assert_string_equal(e->message, "stage 'b2': kernel 6 is even");
    assert_string_equal(e->hint, "use 3, 5 or 7");
    assert_string_equal(e->file, "a.yaml");
    assert_int_equal(e->line, 3);
    assert_int_equal(e->column, 7);

    /* A new failure may quote the old one and keeps nothing else of it. */
    assert_int_equal(hwnas_fail(HWNAS_E_IO, NULL, "again: %s", e->message), HWNAS_E_IO);
    assert_string_equal(e->message, "again: stage 'b2': kernel 6 is even");
    assert_string_equal(e->hint, "");
    assert_string_equal(e->file, "");
    assert_int_equal(e->line, 0);
}

static void status_long_messages_are_cut(void **state)
{
    (void)state;
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    hwnas_place place = {.file = text};
    assert_int_equal(hwnas_fail(HWNAS_E_IO, &place, "%s", text), HWNAS_E_IO);
    assert_int_equal(hwnas_hint(HWNAS_E_IO, "%s", text), HWNAS_E_IO);
    assert_int_equal(hwnas_context(HWNAS_E_IO, "%s", text), HWNAS_E_IO);
    const hwnas_error *e = hwnas_last_error();
    assert_true(strlen(e->message) < sizeof e->message);
    assert_true(strlen(e->hint) < sizeof e->hint);
    assert_true(strlen(e->file) < sizeof e->file);
}

/* Memory and strings */

static void arena_blocks(void **state)
{
    (void)state;
    hwnas_arena *arena = hwnas_arena_new();
    enum { N = 300 };
    unsigned char *blocks[N];
    for (size_t i = 0; i < N; i++) {
        size_t size = (i * i) % 9001;
        blocks[i] = hwnas_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < (i * i) % 9001; k++)
            assert_int_equal(blocks[i][k], i % 251);
    assert_string_equal(hwnas_arena_string(arena, "abcdef", 3), "abc");
    assert_string_equal(hwnas_arena_printf(arena, "%s-%d", "x", 12), "x-12");
    assert_memory_equal(hwnas_arena_copy(arena, "\0a\0b", 4), "\0a\0b", 4);
    hwnas_arena_free(arena);
    hwnas_arena_free(NULL);
}

static void memory_refused(void **state)
{
    (void)state;
    void *p = NULL;
    assert_int_equal(hwnas_try_alloc(&p, SIZE_MAX - 5, "the weights"), HWNAS_E_MEMORY);
    assert_contains(hwnas_last_error()->message, "no memory for the weights");
    assert_null(p);
    assert_int_equal(hwnas_try_alloc(&p, 100, "the weights"), HWNAS_OK);
    assert_int_equal((uintptr_t)p % 64, 0);
    assert_int_equal(((char *)p)[99], 0);
    free(p);
}

static void strings_grow(void **state)
{
    (void)state;
    hwnas_str str = {0};
    char expected[4000] = "";
    for (int i = 0; i < 500; i++) {
        hwnas_str_addf(&str, "%d,", i);
        sprintf(expected + strlen(expected), "%d,", i);
    }
    assert_string_equal(str.s, expected);
    assert_int_equal(str.n, strlen(expected));
    hwnas_str_addn(&str, "xyz", 2);
    hwnas_str_add(&str, "!");
    assert_true(hwnas_ends_with(str.s, ",xy!"));
    assert_true(hwnas_starts_with(str.s, "0,1,2"));
    assert_false(hwnas_ends_with("b", "ab"));
    assert_false(hwnas_starts_with("a", "ab"));
    hwnas_str_done(&str);
    assert_null(str.s);
}

static void nearest_names(void **state)
{
    (void)state;
    static const char *const names[] = {"latency", "params", "macs", "accuracy", NULL};
    static const struct {
        const char *wrong, *expected;
    } rows[] = {
        {"latnecy", "latency"},
        {"latency_", "latency"},
        {"acuracy", "accuracy"},
        {"mac", "macs"},
        {"param", "params"},
        {"flops", "macs"}, /* as others call it */
        {"int8", NULL},    /* what that means is not among the names */
        {"energy", NULL},
        {"flopss", "macs"}, /* nearly as others call it */
        {"", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *got = hwnas_nearest(rows[i].wrong, names);
        if (rows[i].expected)
            assert_string_equal(got, rows[i].expected);
        else
            assert_null(got);
    }
    char long_word[200];
    memset(long_word, 'm', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(hwnas_nearest(long_word, names));
}

static void clock_goes_forward(void **state)
{
    (void)state;
    double then = hwnas_now();
    usleep(2000);
    double seconds = hwnas_now() - then;
    assert_true(seconds >= 0.002 && seconds < 5);
}

/* Random numbers */

static void pcg_published_vectors(void **state)
{
    (void)state;
    /* Round 1 of pcg32-demo in imneme/pcg-c-basic: seed 42, stream 54. */
    static const uint32_t expected[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                        0x83d2f293, 0xbfa4784b, 0xcbed606e};
    hwnas_rng rng = hwnas_rng_new(42, 54);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(hwnas_rng_u32(&rng), expected[i]);
}

static void pcg_below_is_even(void **state)
{
    (void)state;
    enum { N = 70000, BOUND = 7 };
    int counts[BOUND] = {0};
    hwnas_rng rng = hwnas_rng_new(1, 2);
    for (int i = 0; i < N; i++) {
        uint32_t r = hwnas_rng_below(&rng, BOUND);
        assert_in_range(r, 0, BOUND - 1);
        counts[r]++;
    }
    double chi2 = 0;
    for (int i = 0; i < BOUND; i++)
        chi2 += pow(counts[i] - N / BOUND, 2) / (N / BOUND);
    assert_true(chi2 < 22.5); /* 6 degrees of freedom, p = 0.001 */
    for (int i = 0; i < 100; i++)
        assert_int_equal(hwnas_rng_below(&rng, 1), 0);
}

static void pcg_double_is_below_one(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(7, 7);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double x = hwnas_rng_double(&rng);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005);
}

static void pcg_streams_differ(void **state)
{
    (void)state;
    hwnas_rng a = hwnas_rng_new(42, 1), b = hwnas_rng_new(42, 2), again = hwnas_rng_new(42, 1);
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t x = hwnas_rng_u32(&a);
        assert_int_equal(x, hwnas_rng_u32(&again));
        equal += x == hwnas_rng_u32(&b);
    }
    assert_true(equal < 5);
}

/* Statistics */

static void quantiles(void **state)
{
    (void)state;
    double four[] = {4, 1, 3, 2}, hundred[100], one[] = {5};
    for (int i = 0; i < 100; i++)
        hundred[i] = i + 1;
    hwnas_sort(four, 4);
    static const struct {
        double q, expected;
    } rows[] = {{0, 1}, {0.25, 1.75}, {0.5, 2.5}, {0.9, 3.7}, {1, 4}};
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_near(hwnas_quantile(four, 4, rows[i].q), rows[i].expected, 1e-12);
    assert_near(hwnas_quantile(hundred, 100, 0.99), 99.01, 1e-12);
    assert_near(hwnas_quantile(one, 1, 0.9), 5, 0);
}

static void median_interval_textbook(void **state)
{
    (void)state;
    /* The order statistics of any table of the sign test's interval, e.g. Conover, "Practical
     * Nonparametric Statistics", section 3.2. */
    static const struct {
        size_t n;
        int low, high; /* 0: none */
    } rows[] = {{5, 0, 0},   {6, 1, 6},   {10, 2, 9},   {15, 4, 12},
                {20, 6, 15}, {25, 8, 18}, {100, 40, 61}};
    double values[100], low, high;
    for (int i = 0; i < 100; i++)
        values[i] = i + 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool bounded = hwnas_quantile_interval(values, rows[i].n, 0.5, &low, &high);
        assert_int_equal(bounded, rows[i].low > 0);
        assert_int_equal(low, bounded ? rows[i].low : 1);
        assert_int_equal(high, bounded ? rows[i].high : (int)rows[i].n);
    }
}

/* P(B < k) for B binomial, by the ratio of neighbours: another way than that of stats.c. */
static double binomial_below(size_t n, size_t k, double q)
{
    /* (1 - 0.99)^500 is not 0 in a long double. */
    long double p = powl(1 - q, n), sum = 0;
    for (size_t i = 0; i < k; i++) {
        sum += p;
        p *= (long double)(n - i) / (i + 1) * q / (1 - q);
    }
    return (double)sum;
}

static void quantile_interval_covers(void **state)
{
    (void)state;
    static const double quantiles_asked[] = {0.1, 0.5, 0.9, 0.99};
    double values[500], low, high;
    for (int i = 0; i < 500; i++)
        values[i] = i + 1;
    for (size_t k = 0; k < COUNT(quantiles_asked); k++) {
        double q = quantiles_asked[k];
        for (size_t n = 1; n <= 500; n++) {
            bool bounded = hwnas_quantile_interval(values, n, q, &low, &high);
            bool possible = pow(q, (double)n) <= 0.025 && pow(1 - q, (double)n) <= 0.025;
            assert_int_equal(bounded, possible);
            if (!bounded)
                continue;
            size_t i = (size_t)low, j = (size_t)high;
            /* Each tail holds at most 2.5 %, and would hold more one step further in. */
            assert_true(binomial_below(n, i, q) <= 0.025 + 1e-9);
            assert_true(binomial_below(n, i + 1, q) > 0.025 - 1e-9);
            assert_true(1 - binomial_below(n, j, q) <= 0.025 + 1e-9);
            assert_true(1 - binomial_below(n, j - 1, q) > 0.025 - 1e-9);
        }
    }
}

static void mean_and_rmse(void **state)
{
    (void)state;
    double a[] = {1, 2, 3}, b[] = {1, 4, 7};
    assert_near(hwnas_mean(a, 3), 2, 1e-15);
    assert_near(hwnas_rmse(a, b, 3), sqrt(20.0 / 3), 1e-15);
    assert_near(hwnas_rmse(a, a, 3), 0, 0);
    assert_near(hwnas_mean(a, 0), 0, 0);
}

static double brute_tau(const double *a, const double *b, size_t n)
{
    double score = 0, untied_a = 0, untied_b = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            int x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
            score += x * y;
            untied_a += x != 0;
            untied_b += y != 0;
        }
    }
    return untied_a && untied_b ? score / sqrt(untied_a * untied_b) : 0;
}

static void kendall_tau_brute_force(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(3, 1);
    double a[60], b[60];
    for (int round = 0; round < 3000; round++) {
        size_t n = hwnas_rng_below(&rng, 60);
        uint32_t values_a = 1 + hwnas_rng_below(&rng, 40), values_b = 1 + hwnas_rng_below(&rng, 40);
        for (size_t i = 0; i < n; i++) {
            a[i] = hwnas_rng_below(&rng, values_a);
            b[i] = hwnas_rng_below(&rng, values_b) + (round % 3) * a[i] / 8;
        }
        assert_near(hwnas_kendall_tau(a, b, n), brute_tau(a, b, n), 1e-12);
    }
    assert_near(hwnas_kendall_tau((double[]){1, 2, 3}, (double[]){7, 8, 9}, 3), 1, 0);
    assert_near(hwnas_kendall_tau((double[]){1, 2, 3}, (double[]){9, 8, 7}, 3), -1, 0);
    assert_near(hwnas_kendall_tau((double[]){1, 1, 1}, (double[]){9, 8, 7}, 3), 0, 0);
}

/* Empty cells are NaN. */
static void column(double *out, const hwnas_csv *csv, const char *name)
{
    size_t index;
    assert_int_equal(hwnas_csv_require(&index, csv, name), HWNAS_OK);
    for (size_t i = 0; i < csv->n_rows; i++) {
        out[i] = NAN;
        if (*hwnas_csv_cell(csv, i, index))
            assert_int_equal(hwnas_csv_number(&out[i], csv, i, index), HWNAS_OK);
    }
}

/* The mean of the runs as the source computed it, in floating point. Three runs that add up to the
 * same may differ in the last bit, which breaks ties; the table's own column of rounded means
 * keeps them, and its taus are 0.00006 higher. */
static void mean_of_runs(double *out, const hwnas_csv *csv)
{
    double *runs = hwnas_alloc(3 * csv->n_rows * sizeof *runs);
    column(runs, csv, "acc_top1_pct_run1");
    column(runs + csv->n_rows, csv, "acc_top1_pct_run2");
    column(runs + 2 * csv->n_rows, csv, "acc_top1_pct_run3");
    for (size_t i = 0; i < csv->n_rows; i++)
        out[i] = (runs[i] + runs[csv->n_rows + i] + runs[2 * csv->n_rows + i]) / 3;
    free(runs);
}

static hwnas_csv *load_data(const char *name)
{
    hwnas_csv *csv = NULL;
    char *path = hwnas_printf("%s/%s", HWNAS_TEST_DATA, name);
    assert_int_equal(hwnas_csv_load(&csv, path), HWNAS_OK);
    free(path);
    return csv;
}

/* Moves the rows where `keep` is not 0 to the front and returns how many there are. */
static size_t filter(double *values, const double *keep, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (keep[i] != 0)
            values[kept++] = values[i];
    return kept;
}

static void kendall_tau_nas_bench_macro(void **state)
{
    (void)state;
    static const struct {
        const char *cost;
        double all, canonical; /* published */
    } rows[] = {{"macs_count", 0.5560, 0.5461}, {"params_count", 0.2176, 0.2155}};
    hwnas_csv *csv = load_data("nas_bench_macro.csv");
    size_t n = csv->n_rows;
    double *x = hwnas_alloc(n * sizeof *x), *y = hwnas_alloc(n * sizeof *y);
    double *is_canonical = hwnas_alloc(n * sizeof *is_canonical);
    column(is_canonical, csv, "is_canonical");
    for (size_t i = 0; i < COUNT(rows); i++) {
        column(x, csv, rows[i].cost);
        mean_of_runs(y, csv);
        assert_near(hwnas_kendall_tau(x, y, n), rows[i].all, 5e-5);
        filter(x, is_canonical, n);
        size_t n_canonical = filter(y, is_canonical, n);
        assert_int_equal(n_canonical, 3969);
        assert_near(hwnas_kendall_tau(x, y, n_canonical), rows[i].canonical, 5e-5);
    }
    column(x, csv, "macs_count");
    column(y, csv, "acc_top1_pct_mean");
    assert_near(hwnas_kendall_tau(x, y, n), brute_tau(x, y, n), 1e-12);
    free(x);
    free(y);
    free(is_canonical);
    hwnas_csv_free(csv);
}

static void kendall_tau_accel_nasbench(void **state)
{
    (void)state;
    static const struct {
        const char *x, *y;
        double expected, half_digit;
    } rows[] = {
        {"macs_count_conv_fc", "val_top1_pct", 0.4617, 5e-5},
        {"params_count", "val_top1_pct", 0.6189, 5e-5},
        {"macs_count_conv_fc", "zcu102_latency_ms", 0.523, 5e-4},
        {"macs_count_conv_fc", "vck190_latency_ms", 0.525, 5e-4},
        {"zcu102_latency_ms", "val_top1_pct", 0.297, 5e-4},
        {"vck190_latency_ms", "val_top1_pct", 0.210, 5e-4},
    };
    hwnas_csv *csv = load_data("accel_nasbench.csv");
    size_t n = csv->n_rows; /* the ten rows of split "dup" count */
    assert_int_equal(n, 4110);
    double *x = hwnas_alloc(n * sizeof *x), *y = hwnas_alloc(n * sizeof *y);
    double *is_known = hwnas_alloc(n * sizeof *is_known);
    for (size_t i = 0; i < COUNT(rows); i++) {
        column(x, csv, rows[i].x);
        column(y, csv, rows[i].y);
        for (size_t k = 0; k < n; k++)
            is_known[k] = !isnan(x[k]) && !isnan(y[k]);
        filter(x, is_known, n);
        size_t n_known = filter(y, is_known, n);
        assert_near(hwnas_kendall_tau(x, y, n_known), rows[i].expected, rows[i].half_digit);
    }
    free(x);
    free(y);
    free(is_known);
    hwnas_csv_free(csv);
}

/* Files */

static void file_round_trip(void **state)
{
    (void)state;
    char *path = in_scratch("a"), *text = NULL;
    size_t n = 0;
    enum { SIZE = 200001 };
    char *bytes = hwnas_alloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7);
    assert_int_equal(hwnas_file_write(path, "short", 5), HWNAS_OK);
    assert_int_equal(hwnas_file_write(path, bytes, SIZE), HWNAS_OK);
    assert_int_equal(hwnas_file_read(&text, &n, path, SIZE), HWNAS_OK);
    assert_int_equal(n, SIZE);
    assert_memory_equal(text, bytes, SIZE);
    assert_int_equal(text[n], 0);
    free(text);
    text = NULL;
    assert_int_equal(hwnas_file_read(&text, &n, path, SIZE - 1), HWNAS_E_INPUT);
    assert_null(text);
    assert_int_equal(hwnas_file_write(path, "", 0), HWNAS_OK);
    assert_int_equal(hwnas_file_read(&text, &n, path, 0), HWNAS_OK);
    assert_string_equal(text, "");
    assert_int_equal(scratch_entries(), 1);
    free(text);
    free(bytes);
    free(path);
}

static void file_write_leaves_nothing_behind(void **state)
{
    (void)state;
    char *directory = in_scratch("directory"), *nowhere = in_scratch("none/file");
    assert_int_equal(mkdir(directory, 0777), 0);
    assert_int_equal(hwnas_file_write(directory, "text", 4), HWNAS_E_IO);
    assert_string_equal(hwnas_last_error()->file, directory);
    assert_int_equal(hwnas_file_write(nowhere, "text", 4), HWNAS_E_IO);
    assert_int_equal(scratch_entries(), 1);
    free(directory);
    free(nowhere);
}

static void file_write_keeps_the_old_file(void **state)
{
    (void)state;
    char *path = in_scratch("a"), *text = NULL;
    char *large = hwnas_alloc(100000);
    struct rlimit before, tight;
    assert_int_equal(hwnas_file_write(path, "old", 3), HWNAS_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){.rlim_cur = 50000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    hwnas_status status = hwnas_file_write(path, large, 100000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, HWNAS_E_IO);
    assert_int_equal(scratch_entries(), 1);
    assert_int_equal(hwnas_file_read(&text, NULL, path, 100), HWNAS_OK);
    assert_string_equal(text, "old");
    free(text);
    free(large);
    free(path);
}

static void file_read_errors(void **state)
{
    (void)state;
    char *text = NULL, *none = in_scratch("none");
    assert_int_equal(hwnas_file_read(&text, NULL, none, 100), HWNAS_E_NOT_FOUND);
    assert_string_equal(hwnas_last_error()->file, none);
    assert_int_equal(hwnas_file_read(&text, NULL, scratch, 100), HWNAS_E_INPUT);
    assert_contains(hwnas_last_error()->message, "directory");
    assert_null(text);
    free(none);
}

static void file_finds_what_ships(void **state)
{
    (void)state;
    char *found = NULL, *room = in_scratch("zoo"), *path = in_scratch("zoo/small.yaml");
    assert_int_equal(mkdir(room, 0777), 0);
    assert_int_equal(hwnas_file_write(path, "x", 1), HWNAS_OK);
    assert_int_equal(setenv("HWNAS_PATH", scratch, 1), 0);
    assert_int_equal(hwnas_file_find(&found, "small", "zoo", ".yaml"), HWNAS_OK);
    assert_string_equal(found, path);
    free(found);
    found = NULL;
    assert_int_equal(hwnas_file_find(&found, path, "zoo", ".yaml"), HWNAS_OK);
    assert_string_equal(found, path);
    free(found);
    found = NULL;
    assert_int_equal(hwnas_file_find(&found, "large", "zoo", ".yaml"), HWNAS_E_NOT_FOUND);
    assert_contains(hwnas_last_error()->hint, room);
    assert_int_equal(hwnas_file_find(&found, "./large.yaml", "zoo", ".yaml"), HWNAS_E_NOT_FOUND);
    assert_null(found);
    unsetenv("HWNAS_PATH");
    free(room);
    free(path);
}

static void file_beside(void **state)
{
    (void)state;
    static const struct {
        const char *from, *path, *expected;
    } rows[] = {
        {"dir/job.yaml", "t.csv", "dir/t.csv"},
        {"job.yaml", "t.csv", "t.csv"},
        {"/a/b/job.yaml", "../t.csv", "/a/b/../t.csv"},
        {"dir/job.yaml", "/t.csv", "/t.csv"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *got = hwnas_file_beside(rows[i].from, rows[i].path);
        assert_string_equal(got, rows[i].expected);
        free(got);
    }
}

/* CSV */

static hwnas_status load_text(hwnas_csv **out, const char *text, size_t n)
{
    char *path = in_scratch("table.csv");
    assert_int_equal(hwnas_file_write(path, text, n), HWNAS_OK);
    hwnas_status status = hwnas_csv_load(out, path);
    if (status != HWNAS_OK)
        assert_string_equal(hwnas_last_error()->file, path);
    free(path);
    return status;
}

static void csv_spellings(void **state)
{
    (void)state;
    /* One table, spelled in several ways. */
    static const char *const texts[] = {
        "a,b\n1,x\n2,\n",
        "a,b\n1,x\n2,",
        "a,b\r\n1,x\r\n2,\r\n",
        "a,b\r1,x\r2,\r",
        ("\xef\xbb\xbf" /* apart: 'a' would be a digit of it */
         "a,b\n1,x\n2,\n"),
        "\"a\",\"b\"\n\"1\",\"x\"\n\"2\",\"\"\n",
        " a , b\n1 ,\tx\n2, \n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        hwnas_csv *csv = NULL;
        assert_int_equal(load_text(&csv, texts[i], strlen(texts[i])), HWNAS_OK);
        assert_int_equal(csv->n_columns, 2);
        assert_int_equal(csv->n_rows, 2);
        assert_string_equal(csv->names[0], "a");
        assert_string_equal(csv->names[1], "b");
        assert_string_equal(hwnas_csv_cell(csv, 0, 0), "1");
        assert_string_equal(hwnas_csv_cell(csv, 0, 1), "x");
        assert_string_equal(hwnas_csv_cell(csv, 1, 0), "2");
        assert_string_equal(hwnas_csv_cell(csv, 1, 1), "");
        assert_int_equal(csv->lines[0], 2);
        assert_int_equal(csv->lines[1], 3);
        assert_int_equal(hwnas_csv_column(csv, "b"), 1);
        assert_int_equal(hwnas_csv_column(csv, "c"), -1);
        hwnas_csv_free(csv);
    }
    hwnas_csv_free(NULL);
}

static void csv_lines_of_rows(void **state)
{
    (void)state;
    static const char text[] = "\na,b\n\n1,\"two\nlines, \"\"quoted\"\"\"\n  \n3,4\r\n\r\n\"\n\",6";
    static const int lines[] = {4, 7, 9};
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, text, strlen(text)), HWNAS_OK);
    assert_int_equal(csv->n_rows, COUNT(lines));
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(csv->lines[i], lines[i]);
    assert_string_equal(hwnas_csv_cell(csv, 0, 1), "two\nlines, \"quoted\"");
    assert_string_equal(hwnas_csv_cell(csv, 2, 0), "\n");
    hwnas_csv_free(csv);
}

static void csv_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *message;
    } rows[] = {
        {"", 0, "the file is empty"},
        {"\n\n", 0, "the file is empty"},
        {"\xef\xbb\xbf", 0, "the file is empty"},
        {"a,b\n", 0, "no row"},
        {"a,b\n1,2\n3\n", 3, "the row has 1 cells, the header has 2"},
        {"a,b\n1,2\n3,4,5\n6,7\n", 3, "more cells than the header, which has 2"},
        {"a,b\n1,2\n\n\n3", 5, "the row has 1 cells"},
        {"a,b\n1,\"2\n3\"\n4\n", 4, "the row has 1 cells"},
        {"a,b\n\"1\n1\n1\"\n", 2, "the row has 1 cells"},
        {"a,b,a\n1,2,3\n", 1, "columns 1 and 3 are both called 'a'"},
        {"\na,,c\n1,2,3\n", 2, "column 2 has no name"},
        {"a,b\n1,2\n3,x\"y\n", 3, "a quote inside a cell"},
        {"a,b\n1,\"2\"3\n", 2, "a quote inside a cell"},
        {"a,b\n1,2\n3,\"4\n5,6\n7,8\n", 3, "never closed"},
        {"a,b\n1,2\n\"x\",\"4", 3, "never closed"},
        {"a,b\n\"1\n2\",\"3\n", 3, "never closed"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_csv *csv = NULL;
        assert_int_equal(load_text(&csv, rows[i].text, strlen(rows[i].text)), HWNAS_E_INPUT);
        assert_null(csv);
        assert_contains(hwnas_last_error()->message, rows[i].message);
        assert_int_equal(hwnas_last_error()->line, rows[i].line);
    }
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, "a,b\n1,\0\n", 8), HWNAS_E_INPUT);
    assert_contains(hwnas_last_error()->message, "zero byte");
    assert_int_equal(hwnas_last_error()->line, 2);
    assert_int_equal(hwnas_csv_load(&csv, "/nowhere/none.csv"), HWNAS_E_NOT_FOUND);
    assert_int_equal(hwnas_csv_load(&csv, scratch), HWNAS_E_INPUT);
}

static void csv_too_many_columns(void **state)
{
    (void)state;
    hwnas_str text = {0};
    for (int i = 0; i < 5000; i++)
        hwnas_str_addf(&text, "%sc%d", i ? "," : "", i);
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, text.s, text.n), HWNAS_E_INPUT);
    assert_contains(hwnas_last_error()->message, "columns");
    assert_int_equal(hwnas_last_error()->line, 1);
    hwnas_str_done(&text);
}

static void csv_require_suggests(void **state)
{
    (void)state;
    static const char text[] = "latency_ms,accuracy\n1,2\n";
    hwnas_csv *csv = NULL;
    size_t column = 9;
    assert_int_equal(load_text(&csv, text, strlen(text)), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&column, csv, "accuracy"), HWNAS_OK);
    assert_int_equal(column, 1);
    assert_int_equal(hwnas_csv_require(&column, csv, "acuracy"), HWNAS_E_INPUT);
    assert_int_equal(column, 1);
    assert_contains(hwnas_last_error()->message, "no column 'acuracy'");
    assert_contains(hwnas_last_error()->hint, "did you mean 'accuracy'?");
    assert_int_equal(hwnas_csv_require(&column, csv, "energy"), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->hint, "the columns are latency_ms, accuracy");
    hwnas_csv_free(csv);
}

static void csv_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *cell, *message; /* NULL: a number */
        double expected;
    } rows[] = {
        {"12", NULL, 12},
        {"-0.5e-3", NULL, -0.0005},
        {"+7.", NULL, 7},
        {"1e-400", NULL, 0},
        {"", "column 'x' is empty", 0},
        {"abc", "column 'x': 'abc' is not a number", 0},
        {"1 2", "not a number", 0},
        {"5ms", "not a number", 0},
        {"nan", "not a number", 0},
        {"inf", "not a number", 0},
        {"0x10", "not a number", 0},
        {"-", "not a number", 0},
        {".", "not a number", 0},
        {"\" 5\"", "not a number", 0},
        {"1e999", "1e999 is too large", 0},
    };
    hwnas_str text = {0};
    hwnas_str_add(&text, "x,y\n");
    for (size_t i = 0; i < COUNT(rows); i++)
        hwnas_str_addf(&text, "%s,0\n", rows[i].cell);
    hwnas_csv *csv = NULL;
    assert_int_equal(load_text(&csv, text.s, text.n), HWNAS_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        double number = -1;
        hwnas_status status = hwnas_csv_number(&number, csv, i, 0);
        if (!rows[i].message) {
            assert_int_equal(status, HWNAS_OK);
            assert_near(number, rows[i].expected, 1e-15);
            continue;
        }
        assert_int_equal(status, HWNAS_E_INPUT);
        assert_contains(hwnas_last_error()->message, rows[i].message);
        assert_int_equal(hwnas_last_error()->line, (int)i + 2);
        assert_near(number, -1, 0);
    }
    hwnas_csv_free(csv);
    hwnas_str_done(&text);
}

/* ---- Floats of 16 bits ---- */

/* The value of a finite half is exact as a float, and so is the middle between it and the next. */
static void halves_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const float value = hwnas_half_value((uint16_t)h);
        const float next = h == 0x7bff ? 65536 : hwnas_half_value((uint16_t)(h + 1));
        const float middle = value + (next - value) / 2;
        assert_int_equal(hwnas_half_of(value), h);
        assert_int_equal(hwnas_half_of(-value), h | 0x8000);
        assert_int_equal(hwnas_half_of(nextafterf(middle, 0)), h);
        assert_int_equal(hwnas_half_of(middle), h + (h & 1));
        assert_int_equal(hwnas_half_of(nextafterf(middle, INFINITY)), h + 1);
    }
    /* From IEEE 754: one, the largest, the least normal and the least of all. */
    assert_int_equal(hwnas_half_of(1), 0x3c00);
    assert_int_equal(hwnas_half_of(65504), 0x7bff);
    assert_int_equal(hwnas_half_of(0x1p-14f), 0x0400);
    assert_int_equal(hwnas_half_of(0x1p-24f), 0x0001);
    assert_int_equal(hwnas_half_of(INFINITY), 0x7c00);
    assert_int_equal(hwnas_half_of(1e30f), 0x7c00);
    assert_true(isnan(hwnas_half_value(hwnas_half_of(NAN))));
    assert_true(hwnas_half_value(0xfc00) == -INFINITY);
    assert_int_equal(hwnas_bfloat16_of(1), 0x3f80);
    assert_int_equal(hwnas_bfloat16_of(1 + 0x1p-8f), 0x3f80); /* half way: to the even one */
    assert_int_equal(hwnas_bfloat16_of(1 + 3 * 0x1p-8f), 0x3f82);
    assert_int_equal(hwnas_bfloat16_of(NAN) & 0x7fc0, 0x7fc0);
}

/* ---- Memory of libraries ---- */

static size_t n_released;

static void count_released(void *p, size_t size)
{
    n_released += size;
    free(p);
}

/* As GnuTLS does: numbers are cleared when they are freed, and come from GMP's own allocator, which
 * aborts without memory. Runs first: a process guards its libraries once. */
static void gmp_is_guarded_beside_gnutls(void **state)
{
    (void)state;
    void *(*usual)(size_t), *(*allocate)(size_t);
    void (*release)(void *, size_t);
    mp_set_memory_functions(NULL, NULL, count_released);
    mp_get_memory_functions(&usual, NULL, NULL);
    hwnas_guard_libraries();
    mp_get_memory_functions(&allocate, NULL, &release);
    assert_ptr_not_equal(allocate, usual);
    assert_ptr_equal(release, count_released);
    mpz_t number;
    mpz_init_set_ui(number, 3);
    mpz_pow_ui(number, number, 1000);
    mpz_root(number, number, 500); /* 9, if growing lost no digit */
    assert_int_equal(mpz_get_ui(number), 9);
    assert_true(n_released > 0);
    mpz_clear(number);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gmp_is_guarded_beside_gnutls),
        CASE(status_names),
        CASE(status_record),
        CASE(status_long_messages_are_cut),
        CASE(arena_blocks),
        CASE(memory_refused),
        CASE(strings_grow),
        CASE(nearest_names),
        CASE(halves_are_rounded_to_the_nearest),
        CASE(clock_goes_forward),
        CASE(pcg_published_vectors),
        CASE(pcg_below_is_even),
        CASE(pcg_double_is_below_one),
        CASE(pcg_streams_differ),
        CASE(quantiles),
        CASE(median_interval_textbook),
        CASE(quantile_interval_covers),
        CASE(mean_and_rmse),
        CASE(kendall_tau_brute_force),
        CASE(kendall_tau_nas_bench_macro),
        CASE(kendall_tau_accel_nasbench),
        CASE(file_round_trip),
        CASE(file_write_leaves_nothing_behind),
        CASE(file_write_keeps_the_old_file),
        CASE(file_read_errors),
        CASE(file_finds_what_ships),
        CASE(file_beside),
        CASE(csv_spellings),
        CASE(csv_lines_of_rows),
        CASE(csv_errors),
        CASE(csv_too_many_columns),
        CASE(csv_require_suggests),
        CASE(csv_numbers),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
