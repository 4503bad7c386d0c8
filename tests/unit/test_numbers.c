/* test_numbers.c: random numbers, statistics and floats of 16 bits, against published figures and
 * brute force where there are any. */
#include <stdlib.h>

#include "base/csv.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"
#include "tests/unit/base_fixture.h"

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

/* Floats of 16 bits */

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
    /* Of these the upper half is infinity's, or rounding carries into the sign. */
    static const uint32_t nans[] = {0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < COUNT(nans); i++) {
        float value;
        memcpy(&value, &nans[i], sizeof value);
        assert_true(isnan(hwnas_bfloat16_value(hwnas_bfloat16_of(value))));
    }
    assert_int_equal(hwnas_bfloat16_of(-INFINITY), 0xff80);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pcg_published_vectors),
        cmocka_unit_test(pcg_below_is_even),
        cmocka_unit_test(pcg_double_is_below_one),
        cmocka_unit_test(pcg_streams_differ),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(median_interval_textbook),
        cmocka_unit_test(quantile_interval_covers),
        cmocka_unit_test(mean_and_rmse),
        cmocka_unit_test(kendall_tau_brute_force),
        cmocka_unit_test(kendall_tau_nas_bench_macro),
        cmocka_unit_test(kendall_tau_accel_nasbench),
        cmocka_unit_test(halves_are_rounded_to_the_nearest),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
