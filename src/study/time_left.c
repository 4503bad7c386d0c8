#include "study/time_left.h"

#include <math.h>

#include "base/stats.h"

void hwnas_time_left_begin(hwnas_time_left *t, double now)
{
    *t = (hwnas_time_left){.block = 1, .ends = {now}};
}

static void merge(hwnas_time_left *t)
{
    for (int i = 1; i <= HWNAS_TIME_LEFT_BLOCKS / 2; i++)
        t->ends[i] = t->ends[2 * i];
    t->block *= 2;
}

void hwnas_time_left_add(hwnas_time_left *t, double now)
{
    if (++t->n % t->block)
        return;
    t->ends[t->n / t->block] = now;
    if (t->n == HWNAS_TIME_LEFT_BLOCKS * t->block)
        merge(t);
}

bool hwnas_time_left_find(double *low, double *high, const hwnas_time_left *t, double n_left,
                          double now)
{
    double seconds[HWNAS_TIME_LEFT_BLOCKS + 1], squares = 0;
    int n = t->block ? (int)(t->n / t->block) : 0;
    if (n < HWNAS_TIME_LEFT_LEAST)
        return false;
    for (int i = 0; i < n; i++)
        seconds[i] = t->ends[i + 1] - t->ends[i];
    const double closed = t->ends[n] - t->ends[0], open = now - t->ends[n];
    if (open > closed / n)
        seconds[n++] = open;
    const double mean = hwnas_mean(seconds, (size_t)n), blocks = n_left / (double)t->block;
    for (int i = 0; i < n; i++)
        squares += (seconds[i] - mean) * (seconds[i] - mean);
    /* Of a sum of so many blocks to come, and of the mean that is not known either. The factor is
     * the 97.5 % quantile of Student's distribution with n - 1 degrees of freedom, within 3 %. */
    const double variance = squares / (n - 1) * (blocks + blocks * blocks / n);
    const double half = (1.96 + 2.4 / (n - 1)) * sqrt(variance);
    *low = fmax(0, blocks * mean - half);
    *high = blocks * mean + half;
    return true;
}
