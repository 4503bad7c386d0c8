/* test_score.c: src/data/score: how well outputs agree with labels: shares, means and their
 * intervals, and which shapes fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "data/floor_test.h"
#include "data/score.h"

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.10g is not %.10g", a, b);
}

/* Newcombe 1998, "Two-sided confidence intervals for the single proportion: comparison of seven
 * methods", Statistics in Medicine 17, table I, method 3. */
static void shares(void **state)
{
    (void)state;
    static const double rows[][4] = {{81, 263, 0.2553, 0.3662},
                                     {15, 148, 0.0624, 0.1605},
                                     {0, 20, 0, 0.1611},
                                     {1, 29, 0.0061, 0.1718}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const hwnas_estimate_95 got = hwnas_share_interval(rows[i][0], rows[i][1]);
        near(got.value, rows[i][0] / rows[i][1], 1e-12);
        near(got.low, rows[i][2], 5e-5);
        near(got.high, rows[i][3], 5e-5);
    }
    assert_true(isnan(hwnas_share_interval(0, 0).value));
}

/* 1, 2, 3, 4: mean 2.5, standard error sqrt(5/3)/2. */
static void means(void **state)
{
    (void)state;
    hwnas_ratio ratio = {0};
    for (int i = 1; i <= 4; i++)
        hwnas_ratio_add(&ratio, i, 1);
    const hwnas_estimate_95 got = hwnas_ratio_interval(&ratio);
    near(got.value, 2.5, 1e-12);
    near(got.high - got.value, 1.959964 * sqrt(5. / 3) / 2, 1e-6);
    near(got.value - got.low, got.high - got.value, 1e-12);
    const hwnas_ratio one = {1, 2, 1, 4, 2, 1};
    assert_true(hwnas_ratio_interval(&one).value == 2 && isnan(hwnas_ratio_interval(&one).low));
}

static hwnas_status settle(hwnas_score_shape *out, int output_rank, const int64_t *output,
                           int label_rank, const int64_t *label)
{
    *out = (hwnas_score_shape){0};
    return hwnas_score_settle(out, output_rank, output, label_rank, label);
}

static void tasks(void **state)
{
    (void)state;
    hwnas_score_shape s;
    const int64_t classes[] = {10, 1, 1}, sequence[] = {5, 7}, one[] = {1}, five[] = {5},
                  two[] = {2};
    assert_int_equal(settle(&s, 3, classes, 0, one), HWNAS_OK);
    assert_true(s.task == HWNAS_TASK_CLASSIFY && s.values == 10 && s.positions == 1);
    assert_int_equal(settle(&s, 1, classes, 1, one), HWNAS_OK);
    assert_true(s.task == HWNAS_TASK_CLASSIFY);
    assert_int_equal(settle(&s, 2, sequence, 1, five), HWNAS_OK);
    assert_true(s.task == HWNAS_TASK_TOKENS && s.values == 7 && s.positions == 5);
    assert_int_equal(settle(&s, 1, one, 0, one), HWNAS_OK);
    assert_true(s.task == HWNAS_TASK_REGRESS);
    assert_int_equal(settle(&s, 1, five, 1, five), HWNAS_OK);
    assert_true(s.task == HWNAS_TASK_REGRESS && s.values == 5);
    assert_int_equal(settle(&s, 1, five, 1, two), HWNAS_E_INPUT);
    assert_int_equal(settle(&s, 2, sequence, -1, NULL), HWNAS_OK);
    assert_true(s.task == HWNAS_TASK_NONE && s.positions == 5);
}

/* Probabilities and logits of the same network have the same loss; a tie goes to the first. */
static void losses(void **state)
{
    (void)state;
    const float logits[] = {0, 1, 1}, large[] = {1000, 1001, 1001};
    float softmax[3];
    const double labels[] = {2}, wrong[] = {3};
    hwnas_scoring a, b, c;
    for (int i = 0; i < 3; i++)
        softmax[i] = expf(logits[i]) / (1 + 2 * expf(1));
    hwnas_score_init(&a, (hwnas_score_shape){HWNAS_TASK_CLASSIFY, 1, 3, false});
    hwnas_score_init(&b, (hwnas_score_shape){HWNAS_TASK_CLASSIFY, 1, 3, true});
    hwnas_score_init(&c, (hwnas_score_shape){HWNAS_TASK_CLASSIFY, 1, 3, false});
    assert_int_equal(hwnas_score_add(&a, logits, labels, 1), HWNAS_OK);
    assert_int_equal(hwnas_score_add(&b, softmax, labels, 1), HWNAS_OK);
    assert_int_equal(hwnas_score_add(&c, large, labels, 1), HWNAS_OK);
    near(a.loss.a, -log(exp(1) / (1 + 2 * exp(1))), 1e-6);
    near(b.loss.a, a.loss.a, 1e-6);
    near(c.loss.a, a.loss.a, 1e-6);
    assert_true(a.right == 0 && a.right5 == 1);
    assert_int_equal(hwnas_score_add(&a, logits, wrong, 1), HWNAS_E_INPUT);
    assert_int_equal(a.n, 1);
}

static void not_finite(void **state)
{
    (void)state;
    const float outputs[] = {NAN, 1, INFINITY, 0};
    const double labels[] = {1, 1};
    hwnas_scoring s;
    hwnas_score_init(&s, (hwnas_score_shape){HWNAS_TASK_CLASSIFY, 1, 2, false});
    assert_int_equal(hwnas_score_add(&s, outputs, labels, 2), HWNAS_OK);
    assert_int_equal(s.not_finite, 2);
    assert_true(isnan(hwnas_ratio_interval(&s.loss).value));
}

static hwnas_estimate_95 r2_of(const float *outputs, const double *labels, int n, int values)
{
    hwnas_scoring s;
    hwnas_score_init(&s, (hwnas_score_shape){HWNAS_TASK_REGRESS, 1, values, false});
    assert_int_equal(hwnas_score_add(&s, outputs, labels, n), HWNAS_OK);
    const hwnas_estimate_95 out = hwnas_score_r2(&s);
    hwnas_score_done(&s);
    return out;
}

/* Labels that do not vary leave nothing to explain, whatever their sum rounds to. */
static void r2_of_equal_labels(void **state)
{
    enum { N = 100000 };
    static float outputs[N];
    static double labels[N];
    (void)state;
    for (int i = 0; i < N; i++)
        labels[i] = 0.1;
    assert_true(isnan(r2_of(outputs, labels, 100, 1).value));
    assert_true(isnan(r2_of(outputs, labels, N, 1).value));
    assert_true(isnan(r2_of(outputs, labels, 2, 10).value));
    labels[0] = nextafter(0.1, 1);
    assert_true(isnan(r2_of(outputs, labels, 100, 1).value));
    /* A large value that stays beside a small one that varies: 1 - 1 / 2. */
    const float given[] = {1e9F, 2, 1e9F, 2, 1e9F, 3};
    const double wanted[] = {1e9, 1, 1e9, 2, 1e9, 3};
    near(r2_of(given, wanted, 3, 2).value, 0.5, 1e-12);
}

/* ---- A floor, asked for after each sample ---- */

/* How many of `rounds` shuffled sets are said to be below the floor, and after how many samples in
 * the mean (of all rounds). */
static int count_below(double *n_looked_at, double floor, int n_right, int n_all, int rounds)
{
    hwnas_rng rng = hwnas_rng_new(5, 0);
    bool *is_right = calloc((size_t)n_all, sizeof *is_right);
    int n_below = 0;
    *n_looked_at = 0;
    for (int i = 0; i < n_all; i++)
        is_right[i] = i < n_right;
    for (int round = 0; round < rounds; round++) {
        hwnas_floor_test test = hwnas_floor_test_begin(floor, n_all);
        bool is_below = false;
        int n = 0;
        for (int i = n_all - 1; i > 0; i--) {
            const int k = (int)hwnas_rng_below(&rng, (uint32_t)i + 1);
            const bool spare = is_right[i];
            is_right[i] = is_right[k];
            is_right[k] = spare;
        }
        while (n < n_all && !is_below)
            is_below = hwnas_floor_test_add(&test, is_right[n++]);
        n_below += is_below;
        *n_looked_at += (double)n / rounds;
    }
    free(is_right);
    return n_below;
}

/* Sets whose share is known: one that reaches the floor is turned down in one of a hundred at most,
 * one that is clearly below it nearly always, and soon. */
static void a_floor_is_missed_clearly_or_not_at_all(void **state)
{
    enum { ROUNDS = 2000, MOST = ROUNDS / 100 + 14 }; /* three standard deviations of 20 */
    static const double floors[] = {0.5, 0.9, 0.98};
    double n;
    (void)state;
    for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
        const int just = (int)lround(floors[i] * 2000);
        const int wrong = count_below(&n, floors[i], just, 2000, ROUNDS);
        if (wrong > MOST)
            fail_msg("%d of %d that reach %g are said to be below", wrong, ROUNDS, floors[i]);
        assert_true(count_below(&n, floors[i], just + 20, 2000, ROUNDS) <= wrong);
        assert_int_equal(count_below(&n, floors[i], just - 200, 2000, ROUNDS), ROUNDS);
        assert_true(n < 2000 / 4.0);
    }
    /* One less is below, and known only when nothing is left that could be right. */
    assert_true(count_below(&n, 0.5, 9, 20, ROUNDS) == ROUNDS);
    assert_true(n > 10);
    assert_int_equal(count_below(&n, 0, 0, 100, 10), 0);
    assert_int_equal(count_below(&n, 1, 99, 100, 10), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares),
                                       cmocka_unit_test(means),
                                       cmocka_unit_test(tasks),
                                       cmocka_unit_test(losses),
                                       cmocka_unit_test(not_finite),
                                       cmocka_unit_test(r2_of_equal_labels),
                                       cmocka_unit_test(a_floor_is_missed_clearly_or_not_at_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
