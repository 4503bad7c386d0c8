/* test_gp.c: src/predict/gp: the Gaussian process against closed forms of two rows, numerical
 * derivatives, and functions that it must learn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "predict/gp_loops.h"
#include "predict/gp_priv.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const hwnas_gp_column one_number[] = {{false, 0}};
static const hwnas_gp_column mixed[] = {{false, 0}, {false, 1}, {true, 2}, {true, 2}, {true, 3}};

static double normal(hwnas_rng *rng) /* Box and Muller */
{
    double u = 1 - hwnas_rng_double(rng), v = hwnas_rng_double(rng);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static void set_parameters(hwnas_gp *gp, const double *values)
{
    memcpy(gp->parameters, values, (gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *values);
}

/* Rows of `mixed`, and a function of them in which the last two columns say nothing. */
static void draw(double *rows, double *targets, size_t n, double noise, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, 1);
    for (size_t i = 0; i < n; i++) {
        double *row = rows + 5 * i;
        row[0] = 10 + 4 * hwnas_rng_double(&rng);
        row[1] = hwnas_rng_double(&rng);
        for (size_t c = 2; c < 5; c++)
            row[c] = hwnas_rng_below(&rng, 3);
        targets[i] = 70 + 3 * sin(2 * row[0]) + 2 * (row[2] == 1) + (row[2] == 2 && row[3] == 0) +
                     noise * normal(&rng);
    }
}

/* -- closed forms -- */

/* One row: k(0, x) and with it the variance left are known. The values of the
 * Matern function are (1 + r + r^2 / 3) exp(-r) at r = sqrt(5) times distances 1 and 2. */
static void one_row(void **state)
{
    (void)state;
    hwnas_gp *gp = hwnas_gp_new(one_number, 1, false);
    set_parameters(gp, (double[]){0, log(4), 0, log(0.5)});
    assert_int_equal(hwnas_gp_set(gp, (double[]){3}, (double[]){7}, 1), HWNAS_OK);
    double rows[] = {3, 4, 5}, means[3], sds[3];
    const double matern[] = {1, 0.5239941088318203, 0.13866021913850426};
    hwnas_gp_predict(gp, means, sds, rows, 3);
    for (size_t i = 0; i < 3; i++) {
        double k = 4 * matern[i]; /* the target is the mean of all targets, so no mean moves */
        assert_float_equal(means[i], 7, 1e-12);
        assert_float_equal(sds[i], sqrt(4 - k * k / 4.5), 1e-8);
    }
    assert_float_equal(hwnas_gp_noise(gp), sqrt(0.5), 1e-12);
    hwnas_gp_free(gp);
}

/* Targets 1 and 3 at -1 and 1: standardised, both are -1 and 1 at -1 and 1. With u = k(0) + noise
 * and c = k(2), K^-1 (-1, 1)' = (-1, 1)' / (u - c), and the estimate at +1 is (k(0) - c) / (u - c).
 */
static void two_rows(void **state)
{
    (void)state;
    double k0 = 1, k2 = 0.13866021913850426, noise = 0.25, means[1], sds[1], out;
    hwnas_gp *gp = hwnas_gp_new(one_number, 1, false);
    set_parameters(gp, (double[]){0, 0, 0, log(noise)});
    assert_int_equal(hwnas_gp_set(gp, (double[]){-1, 1}, (double[]){1, 3}, 2), HWNAS_OK);
    hwnas_gp_predict(gp, means, sds, (double[]){1}, 1);
    double u = k0 + noise, determinant = u * u - k2 * k2;
    assert_float_equal(means[0], 2 + (k0 - k2) / (u - k2), 1e-8);
    double explained = (u * k0 * k0 - 2 * k2 * k0 * k2 + u * k2 * k2) / determinant;
    assert_float_equal(sds[0], sqrt(k0 - explained), 1e-8);

    /* log N(y | 0, K) for y = (-1, 1): y' K^-1 y = 2 / (u - c). */
    assert_int_equal(hwnas_gp_log_posterior(&out, NULL, gp, gp->parameters), HWNAS_OK);
    double likelihood = -1 / (u - k2) - 0.5 * log(determinant) - log(2 * M_PI);
    assert_float_equal(out - hwnas_gp_log_prior(gp, gp->parameters, NULL), likelihood, 1e-8);
    hwnas_gp_free(gp);
}

/* The linear kernel alone is Bayesian linear regression: slope v s / (v s + noise) of the least
 * squares one, with s the sum of squares of the standardised column. */
static void linear_kernel_is_ridge(void **state)
{
    (void)state;
    double v = 2, noise = 0.7, rows[] = {1, 2, 4, 9}, targets[] = {2, 3, 5, 10}, mean;
    hwnas_gp *gp = hwnas_gp_new(one_number, 1, true);
    set_parameters(gp, (double[]){0, -60, log(v), log(noise)});
    assert_int_equal(hwnas_gp_set(gp, rows, targets, 4), HWNAS_OK);
    hwnas_gp_predict(gp, &mean, NULL, (double[]){20}, 1);
    assert_float_equal(mean, 5 + v * 4 / (v * 4 + noise) * (20 - 4), 1e-9);
    hwnas_gp_free(gp);
}

static void mismatches_decay(void **state)
{
    (void)state;
    const hwnas_gp_column columns[] = {{true, 0}, {true, 0}, {true, 1}};
    double rows[] = {1, 1, 1}, factors[2 + HWNAS_GP_N_SHARED], k;
    hwnas_gp *gp = hwnas_gp_new(columns, COUNT(columns), true);
    set_parameters(gp, (double[]){log(0.3), log(0.5), log(2), 0, -5});
    assert_int_equal(hwnas_gp_set(gp, rows, (double[]){1}, 1), HWNAS_OK);
    hwnas_gp_factors(gp, factors, gp->parameters);
    hwnas_gp_kernel(gp, factors, &k, (double[]){2, 2, 1}, 1);
    assert_float_equal(k, 2 * exp(-0.6), 1e-12);
    hwnas_gp_kernel(gp, factors, &k, (double[]){1, 2, 0}, 1);
    assert_float_equal(k, 2 * exp(-0.8), 1e-12);
    hwnas_gp_free(gp);
}

/* What a processor without AVX2 computes is what one with it computes, to the last bit, and both
 * are the textbook's formula by the C library; also where nothing is left of the exponential, and
 * for numbers of rows that do not fill a vector. */
static void loops_of_all_processors_agree(void **state)
{
    (void)state;
    enum { N = 1003 };
    static double x[N], sums[3][N], weights[N], results[3][N], firsts[3][N];
    const hwnas_gp_loops *loops = hwnas_gp_loops_all;
    hwnas_rng rng = hwnas_rng_new(9, 1);
    int n_versions = 0;
    for (size_t j = 0; j < N; j++)
        weights[j] = normal(&rng), x[j] = j % 3 ? normal(&rng) : 1;
    for (bool is_last = false; !is_last; loops++) {
        is_last = !strcmp(loops->isa, "plain");
        if (!loops->is_supported())
            continue;
        memset(sums, 0, sizeof sums);
        for (int column = 0; column < 3; column++) {
            loops->add_distances(sums[0], x, 0.3 * column, pow(20, column), N);
            loops->add_products(sums[2], x, 0.3 * column, N);
            loops->add_mismatches(sums[1], x, column, column ? 0.7 : 200, N);
        }
        for (size_t j = 0; j < N; j += 100) /* as far as parameters may take it */
            sums[1][j] += 90.0 * (double)j;
        loops->finish(results[0], sums[0], sums[1], sums[2], 3, 0.25, N);
        memcpy(results[1], sums, 2 * sizeof *sums);
        loops->derive(results[1], results[2], weights, 3, N);
        for (size_t j = 0; j < N; j++) {
            double distance = 0, mismatches = j % 100 ? 0 : 90.0 * (double)j, product = 0;
            for (int column = 0; column < 3; column++) {
                distance += pow(20, column) * pow(x[j] - 0.3 * column, 2);
                mismatches += x[j] == column ? 0 : column ? 0.7 : 200;
                product += x[j] * 0.3 * column;
            }
            const double r = sqrt(5 * distance), decay = 3 * exp(-r - mismatches);
            const double k = (1 + r + r * r / 3) * decay;
            assert_float_equal(results[0][j], k + 0.25 * product, 1e-14 * (1 + fabs(product)));
            assert_float_equal(results[1][j], -weights[j] * decay * (1 + r) * 5 / 6, 1e-14);
            assert_float_equal(results[2][j], -weights[j] * k, 1e-14);
        }
        for (size_t n = 0; n < 40; n++) { /* also less than a vector has */
            long double distances = 0, others = 0, product = 0, size = 0;
            for (size_t j = 0; j < n; j++) {
                distances += (long double)weights[j] * (x[j] - 0.3) * (x[j] - 0.3);
                others += x[j] == 1 ? 0 : weights[j];
                product += (long double)weights[j] * x[j];
                size += fabs(weights[j]) * (1 + pow(x[j] - 0.3, 2));
            }
            const double got[] = {loops->sum_distances(weights, x, 0.3, n),
                                  loops->sum_mismatches(weights, x, 1, n),
                                  loops->sum_products(weights, x, n)};
            assert_true(fabsl(got[0] - distances) <= 1e-15 * size);
            assert_true(fabsl(got[1] - others) <= 1e-15 * size);
            assert_true(fabsl(got[2] - product) <= 2e-15 * size);
        }
        results[2][0] += loops->sum_distances(weights, x, 0.3, N);
        results[2][1] += loops->sum_mismatches(weights, x, 1, N);
        results[2][2] += loops->sum_products(weights, x, N);
        if (n_versions++)
            assert_memory_equal(results, firsts, sizeof results);
        memcpy(firsts, results, sizeof firsts);
    }
    print_message("# %d versions agree\n", n_versions);
}

/* The exponential alone: r = 0. */
static void exponentials_are_exact(void **state)
{
    (void)state;
    enum { N = 20000 };
    static double zeros[N], distances[N], mismatches[N], out[N];
    for (size_t j = 0; j < N; j++)
        mismatches[j] = 690.0 * (double)j / N * (j % 2 ? 1 : 0.01);
    hwnas_gp_loops_best()->finish(out, distances, mismatches, zeros, 1, 0, N);
    for (size_t j = 0; j < N; j++) {
        const double mismatch = 690.0 * (double)j / N * (j % 2 ? 1 : 0.01);
        assert_true(fabs(out[j] / (double)expl(-(long double)mismatch) - 1) < 5e-16);
    }
}

/* -- derivatives -- */

static void gradient_is_the_derivative(void **state)
{
    (void)state;
    enum { N = 530, N_PARAMETERS = 4 + HWNAS_GP_N_SHARED };
    static double rows[5 * N], targets[N];
    double gradient[N_PARAMETERS], scratch[N_PARAMETERS], value;
    const double points[][N_PARAMETERS] = {{-1, -2, -1, -3, 0.5, -1, -3},
                                           {1, 0.5, 0.2, -0.5, -1, 0.7, -1}};
    const size_t sizes[] = {30, N}; /* the second is of more rows than are gone through at once */
    draw(rows, targets, N, 0.1, 5);
    for (size_t p = 0; p < COUNT(points) * COUNT(sizes); p++) {
        const double *point = points[p % 2], step = 1e-5;
        const size_t n = sizes[p / 2];
        hwnas_gp *gp = hwnas_gp_new(mixed, 5, true);
        assert_int_equal(hwnas_gp_set(gp, rows, targets, n), HWNAS_OK);
        assert_int_equal(hwnas_gp_log_posterior(&value, gradient, gp, point), HWNAS_OK);
        for (size_t i = 0; i < N_PARAMETERS; i++) {
            double above, below;
            memcpy(scratch, point, sizeof scratch);
            scratch[i] += step;
            assert_int_equal(hwnas_gp_log_posterior(&above, NULL, gp, scratch), HWNAS_OK);
            scratch[i] -= 2 * step;
            assert_int_equal(hwnas_gp_log_posterior(&below, NULL, gp, scratch), HWNAS_OK);
            assert_float_equal(gradient[i], (above - below) / (2 * step), 1e-5 * (double)n / 30);
        }
        hwnas_gp_free(gp);
    }
}

/* -- learning -- */

static void learns_what_matters(void **state)
{
    (void)state;
    enum { N = 150, N_NEW = 1000 };
    const double noise = 0.2;
    double *rows = hwnas_alloc(5 * (N + N_NEW) * sizeof *rows), *new_rows = rows + 5 * N;
    double *targets = hwnas_alloc(4 * (N + N_NEW) * sizeof *targets), *known = targets + N;
    double *means = known + N_NEW, *sds = means + N_NEW, before, after, error = 0;
    size_t n_inside = 0;
    draw(rows, targets, N, noise, 1);
    draw(new_rows, known, N_NEW, noise, 2);
    hwnas_gp *gp = hwnas_gp_new(mixed, 5, true);
    assert_int_equal(hwnas_gp_set(gp, rows, targets, N), HWNAS_OK);
    assert_int_equal(hwnas_gp_log_posterior(&before, NULL, gp, gp->parameters), HWNAS_OK);
    assert_int_equal(hwnas_gp_learn(gp, &(hwnas_gp_learning){.n_starts = 2, .seed = 3}), HWNAS_OK);
    assert_int_equal(hwnas_gp_log_posterior(&after, NULL, gp, gp->parameters), HWNAS_OK);
    assert_true(after > before + 20);
    assert_true(gp->parameters[0] > gp->parameters[1] + 2); /* the sine, not the idle number */
    assert_true(gp->parameters[2] > gp->parameters[3] + 1); /* nor the idle symbol */
    assert_true(hwnas_gp_noise(gp) > 0.15 && hwnas_gp_noise(gp) < 0.3);
    hwnas_gp_predict(gp, means, sds, new_rows, N_NEW);
    for (size_t i = 0; i < N_NEW; i++) {
        double e = means[i] - known[i], sd = hypot(sds[i], hwnas_gp_noise(gp));
        error += e * e / N_NEW;
        n_inside += fabs(e) < 1.6449 * sd;
    }
    assert_true(sqrt(error) < 0.3);                /* the targets' own deviation is 2.4 */
    assert_true(n_inside > 860 && n_inside < 940); /* of a 90 % interval */
    hwnas_gp_free(gp);
    free(rows);
    free(targets);
}

static void learns_from_some_of_many_rows(void **state)
{
    (void)state;
    enum { N = 120 };
    double rows[5 * N], targets[N], means[N];
    draw(rows, targets, N, 0.1, 9);
    hwnas_gp *a = hwnas_gp_new(mixed, 5, false), *b = hwnas_gp_new(mixed, 5, false);
    hwnas_gp *both[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(hwnas_gp_set(both[i], rows, targets, N), HWNAS_OK);
        assert_int_equal(hwnas_gp_learn(both[i], &(hwnas_gp_learning){.max_rows = 60, .seed = 4}),
                         HWNAS_OK);
        assert_int_equal(both[i]->n, N);
    }
    /* The same seed gives the same process, to the last bit. */
    assert_memory_equal(a->parameters, b->parameters, 7 * sizeof(double));
    hwnas_gp_predict(a, means, NULL, rows, N);
    double error = 0;
    for (size_t i = 0; i < N; i++)
        error += fabs(means[i] - targets[i]) / N;
    assert_true(error < 0.3);
    hwnas_gp_free(a);
    hwnas_gp_free(b);
}

/* -- rows that come later, and awkward ones -- */

static void added_rows_are_as_good_as_first_ones(void **state)
{
    (void)state;
    enum { N = 60, N_FIRST = 11, N_NEW = 70 };
    double rows[5 * N], targets[N], new_rows[5 * N_NEW], known[N_NEW];
    double means[2][N_NEW], sds[2][N_NEW];
    draw(rows, targets, N, 0.1, 1);
    draw(new_rows, known, N_NEW, 0.1, 2);
    hwnas_gp *gp = hwnas_gp_new(mixed, 5, true);
    assert_int_equal(hwnas_gp_set(gp, rows, targets, N_FIRST), HWNAS_OK);
    for (size_t i = N_FIRST; i < N; i++)
        assert_int_equal(hwnas_gp_add(gp, rows + 5 * i, targets[i]), HWNAS_OK);
    hwnas_gp_predict(gp, means[0], sds[0], new_rows, N_NEW);
    assert_int_equal(hwnas_gp_condition(gp), HWNAS_OK); /* factorises anew */
    hwnas_gp_predict(gp, means[1], sds[1], new_rows, N_NEW);
    for (size_t i = 0; i < N_NEW; i++) {
        assert_float_equal(means[0][i], means[1][i], 1e-9);
        assert_float_equal(sds[0][i], sds[1][i], 1e-9);
    }
    hwnas_gp_free(gp);
}

static void estimates_do_not_depend_on_neighbours(void **state)
{
    (void)state;
    enum { N = 75, N_NEW = 150 };
    double rows[5 * N], targets[N], new_rows[5 * N_NEW], known[N_NEW];
    double means[N_NEW], sds[N_NEW], mean, sd;
    draw(rows, targets, N, 0.1, 1);
    draw(new_rows, known, N_NEW, 0.1, 2);
    hwnas_gp *gp = hwnas_gp_new(mixed, 5, true);
    assert_int_equal(hwnas_gp_set(gp, rows, targets, N), HWNAS_OK);
    hwnas_gp_predict(gp, means, sds, new_rows, N_NEW);
    for (size_t i = 0; i < N_NEW; i++) {
        hwnas_gp_predict(gp, &mean, &sd, new_rows + 5 * i, 1);
        assert_true(mean == means[i] && sd == sds[i]);
    }
    hwnas_gp_free(gp);
}

static void constant_targets(void **state)
{
    (void)state;
    enum { N = 20 };
    double rows[5 * N], targets[N], mean, sd;
    draw(rows, targets, N, 0, 1);
    for (size_t i = 0; i < N; i++)
        targets[i] = 0.1;
    hwnas_gp *gp = hwnas_gp_new(mixed, 5, true);
    assert_int_equal(hwnas_gp_set(gp, rows, targets, N), HWNAS_OK);
    assert_int_equal(hwnas_gp_learn(gp, &(hwnas_gp_learning){0}), HWNAS_OK);
    hwnas_gp_predict(gp, &mean, &sd, rows, 1);
    assert_float_equal(mean, 0.1, 1e-9);
    assert_true(isfinite(sd));
    hwnas_gp_free(gp);
}

static void equal_rows(void **state)
{
    (void)state;
    enum { N = 40 };
    double rows[5 * N], targets[N], mean, sd;
    draw(rows, targets, 1, 0, 1);
    for (size_t i = 0; i < N; i++) {
        memcpy(rows + 5 * i, rows, 5 * sizeof *rows);
        targets[i] = i % 2;
    }
    hwnas_gp *gp = hwnas_gp_new(mixed, 5, true);
    gp->parameters[gp->n_groups + HWNAS_GP_NOISE] = -60; /* singular, but for rounding */
    assert_int_equal(hwnas_gp_set(gp, rows, targets, N), HWNAS_OK);
    assert_int_equal(hwnas_gp_learn(gp, &(hwnas_gp_learning){.n_starts = 3}), HWNAS_OK);
    hwnas_gp_predict(gp, &mean, &sd, rows, 1);
    assert_float_equal(mean, 0.5, 1e-6);
    assert_true(sd < 0.2);
    assert_true(hwnas_gp_noise(gp) > 0.3 && hwnas_gp_noise(gp) < 0.7); /* sd of 0, 1, 0, 1, ... */
    for (size_t i = 0; i < N; i++)
        assert_int_equal(hwnas_gp_add(gp, rows, 0.5), HWNAS_OK);
    hwnas_gp_predict(gp, &mean, NULL, rows, 1);
    assert_float_equal(mean, 0.5, 1e-6);
    hwnas_gp_free(gp);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_row),
        cmocka_unit_test(two_rows),
        cmocka_unit_test(linear_kernel_is_ridge),
        cmocka_unit_test(mismatches_decay),
        cmocka_unit_test(loops_of_all_processors_agree),
        cmocka_unit_test(exponentials_are_exact),
        cmocka_unit_test(gradient_is_the_derivative),
        cmocka_unit_test(learns_what_matters),
        cmocka_unit_test(learns_from_some_of_many_rows),
        cmocka_unit_test(added_rows_are_as_good_as_first_ones),
        cmocka_unit_test(estimates_do_not_depend_on_neighbours),
        cmocka_unit_test(constant_targets),
        cmocka_unit_test(equal_rows),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
