/* test_time_left.c: src/study/time_left.c against simulated searches whose end is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/rng.h"
#include "study/time_left.h"

/* Seconds of a trial: some wait long, most do not. */
static double duration(hwnas_rng *rng)
{
    return -log(1 - hwnas_rng_double(rng)) * (hwnas_rng_double(rng) < 0.1 ? 5 : 0.5);
}

/* How often the interval holds what the trials that are left took in the end. */
static double coverage(uint64_t n_done, uint64_t n_left)
{
    enum { SEARCHES = 2000 };
    int n_held = 0;
    for (uint64_t seed = 0; seed < SEARCHES; seed++) {
        hwnas_rng rng = hwnas_rng_new(seed, n_done);
        hwnas_time_left pace;
        double now = 100, left = 0, low, high;
        hwnas_time_left_begin(&pace, now);
        for (uint64_t i = 0; i < n_done; i++)
            hwnas_time_left_add(&pace, now += duration(&rng));
        assert_true(hwnas_time_left_find(&low, &high, &pace, (double)n_left, now));
        for (uint64_t i = 0; i < n_left; i++)
            left += duration(&rng);
        n_held += low <= left && left <= high;
    }
    return (double)n_held / SEARCHES;
}

/* Sums of so skewed durations are not normal: with few trials a little is missing. */
static void the_interval_holds_what_it_says(void **state)
{
    (void)state;
    const uint64_t done[] = {64, 200, 1000}, left[] = {20, 300, 1000};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            const double share = coverage(done[i], left[k]);
            print_message("%d done, %d left: %.3f\n", (int)done[i], (int)left[k], share);
            assert_true(share > (done[i] < 100 ? 0.84 : 0.9) && share < 0.98);
        }
}

static void even_trials_take_what_they_took(void **state)
{
    (void)state;
    hwnas_time_left pace;
    double low, high;
    hwnas_time_left_begin(&pace, 10);
    for (int i = 1; i <= 1000; i++) {
        hwnas_time_left_add(&pace, 10 + 2 * i);
        assert_int_equal(hwnas_time_left_find(&low, &high, &pace, 50, 10 + 2 * i),
                         i >= HWNAS_TIME_LEFT_LEAST);
        if (i < HWNAS_TIME_LEFT_LEAST)
            continue;
        assert_true(fabs(low - 100) < 1e-9 && fabs(high - 100) < 1e-9);
    }
}

static void what_lasts_counts_before_it_is_over(void **state)
{
    (void)state;
    hwnas_time_left pace;
    double low, high, later;
    hwnas_time_left_begin(&pace, 0);
    for (int i = 1; i <= 40; i++)
        hwnas_time_left_add(&pace, 0.1 * i);
    assert_true(hwnas_time_left_find(&low, &high, &pace, 100, 4));
    assert_true(high < 11);
    assert_true(hwnas_time_left_find(&low, &later, &pace, 100, 64));
    assert_true(low >= 0 && later > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_holds_what_it_says),
        cmocka_unit_test(even_trials_take_what_they_took),
        cmocka_unit_test(what_lasts_counts_before_it_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
