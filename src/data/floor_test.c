#include "data/floor_test.h"

#include <math.h>

/* Each bet is the best one, by growth of the stake, against a share that is so much lower. */
hwnas_floor_test hwnas_floor_test_begin(double floor, int64_t n_all)
{
    static const double lower[HWNAS_FLOOR_TEST_BETS] = {0.02, 0.05, 0.1, 0.2};
    hwnas_floor_test test = {.floor = fmin(fmax(floor, 0), 1), .n_all = n_all};
    for (int i = 0; i < HWNAS_FLOOR_TEST_BETS; i++) {
        const double spread = test.floor * (1 - test.floor);
        test.bets[i] = spread > 0 ? fmin(lower[i] / spread, 0.95 / (1 - test.floor)) : 0;
        test.stakes[i] = 1;
    }
    return test;
}

bool hwnas_floor_test_add(hwnas_floor_test *test, bool is_right)
{
    /* The share of right ones among those that are left, were the floor that of all. */
    const double wanted = test->floor * (double)test->n_all - (double)test->n_right;
    const int64_t n_left = test->n_all - test->n;
    const double share = n_left > 0 ? wanted / (double)n_left : 0;
    double stake = 0;
    test->n++;
    test->n_right += is_right;
    if (n_left <= 0 || share <= 0) /* reached already: nothing to bet on */
        return false;
    if (wanted - is_right > (double)(n_left - 1) + 1e-6) /* were all the others right */
        return true;
    for (int i = 0; i < HWNAS_FLOOR_TEST_BETS; i++) {
        /* No more than all of the stake may be lost. */
        const double bet = share < 1 ? fmin(test->bets[i], 0.95 / (1 - share)) : test->bets[i];
        test->stakes[i] *= 1 + bet * (share - is_right);
        stake += test->stakes[i] / HWNAS_FLOOR_TEST_BETS;
    }
    return stake >= 1 / HWNAS_FLOOR_TEST_ERROR &&
           (double)test->n_right < test->floor * (double)test->n;
}
