/* floor_test.h: whether a share of samples is clearly below a floor, asked after each of them.
 *
 * Samples come from a finite set, in an order that was shuffled before anybody looked, and what is
 * asked is their share in the whole set. Somebody bets that the next one is wrong: as long as the
 * share is the floor or above, no bet is fair or better, so by Ville's inequality the chance that
 * the stake ever grows to 1 / error is at most `error`, however often one looks. (Waudby-Smith and
 * Ramdas, "Confidence sequences for sampling without replacement", NeurIPS 2020, section 3; here
 * one-sided, with the mean of four fixed bets.) */
#ifndef HWNAS_DATA_FLOOR_TEST_H
#define HWNAS_DATA_FLOOR_TEST_H

#include <stdbool.h>
#include <stdint.h>

/* A share that reaches the floor is taken for one below it as often as this, at most. */
#define HWNAS_FLOOR_TEST_ERROR 0.01

enum { HWNAS_FLOOR_TEST_BETS = 4 };

typedef struct hwnas_floor_test {
    double floor; /* from 0 to 1 */
    int64_t n_all, n, n_right;
    double bets[HWNAS_FLOOR_TEST_BETS], stakes[HWNAS_FLOOR_TEST_BETS];
} hwnas_floor_test;

/* Of `n_all` samples. */
hwnas_floor_test hwnas_floor_test_begin(double floor, int64_t n_all);
/* The next sample; true: the share in all of them is below the floor, clearly. */
bool hwnas_floor_test_add(hwnas_floor_test *test, bool is_right);

#endif
