#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void hwnas_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare_doubles);
}

double hwnas_quantile(const double *sorted, size_t n, double q)
{
    double position = q * (double)(n - 1);
    size_t i = (size_t)position;
    if (i + 1 >= n)
        return sorted[n - 1];
    return sorted[i] + (position - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* log of the binomial probability of k successes in n trials with probability q. */
static double log_binomial(size_t n, size_t k, double q)
{
    return lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) +
           (double)k * log(q) + (double)(n - k) * log1p(-q);
}

bool hwnas_quantile_interval(const double *sorted, size_t n, double q, double *low, double *high)
{
    /* The quantile lies above the i-th and below the j-th of the sorted samples (from 1) when
     * between i and j - 1 samples fall below it: P(i <= Binomial(n, q) < j). Each tail may hold
     * at most 2.5 %. See David and Nagaraja, "Order Statistics", section 7.1. */
    const double tail = 0.025;
    double below = 0;
    size_t i = 0; /* largest i with P(B < i) <= tail */
    while (i < n) {
        double p = exp(log_binomial(n, i, q));
        if (below + p > tail)
            break;
        below += p;
        i++;
    }
    double above = 0;
    size_t j = n + 1; /* smallest j with P(B >= j) <= tail */
    while (j > 0) {
        double p = exp(log_binomial(n, j - 1, q));
        if (above + p > tail)
            break;
        above += p;
        j--;
    }
    *low = sorted[i > 0 ? i - 1 : 0];
    *high = sorted[j <= n && j > 0 ? j - 1 : n - 1];
    return i > 0 && j <= n;
}

double hwnas_mean(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return n ? sum / (double)n : 0;
}

double hwnas_rmse(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return n ? sqrt(sum / (double)n) : 0;
}

typedef struct pair {
    double a, b;
} pair;

static int compare_pairs(const void *x, const void *y)
{
    const pair *p = x, *q = y;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

/* Sorts b by merging and returns the number of exchanges that a bubble sort would have made. */
static double merge_count(double *b, double *scratch, size_t n)
{
    if (n < 2)
        return 0;
    size_t half = n / 2;
    double swaps = merge_count(b, scratch, half) + merge_count(b + half, scratch, n - half);
    size_t i = 0, j = half, k = 0;
    while (i < half && j < n) {
        if (b[j] < b[i]) {
            swaps += (double)(half - i);
            scratch[k++] = b[j++];
        } else {
            scratch[k++] = b[i++];
        }
    }
    while (i < half)
        scratch[k++] = b[i++];
    while (j < n)
        scratch[k++] = b[j++];
    memcpy(b, scratch, n * sizeof *b);
    return swaps;
}

double hwnas_kendall_tau(const double *a, const double *b, size_t n)
{
    if (n < 2)
        return 0;
    /* W. R. Knight, "A Computer Method for Calculating Kendall's Tau with Ungrouped Data", JASA
     * 61 (1966): sort by a, then count the exchanges that sort b. */
    pair *pairs = hwnas_alloc(n * sizeof *pairs);
    double *order = hwnas_alloc(n * sizeof *order), *scratch = hwnas_alloc(n * sizeof *scratch);
    for (size_t i = 0; i < n; i++)
        pairs[i] = (pair){a[i], b[i]};
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    double ties_a = 0, ties_b = 0, ties_both = 0, run_a = 1, run_both = 1;
    for (size_t i = 1; i <= n; i++) {
        int same_a = i < n && pairs[i].a == pairs[i - 1].a;
        int same_both = same_a && pairs[i].b == pairs[i - 1].b;
        if (same_a) {
            run_a++;
        } else {
            ties_a += run_a * (run_a - 1) / 2;
            run_a = 1;
        }
        if (same_both) {
            run_both++;
        } else {
            ties_both += run_both * (run_both - 1) / 2;
            run_both = 1;
        }
    }
    for (size_t i = 0; i < n; i++)
        order[i] = pairs[i].b;
    double swaps = merge_count(order, scratch, n);
    double run_b = 1;
    for (size_t i = 1; i <= n; i++) {
        if (i < n && order[i] == order[i - 1]) {
            run_b++;
        } else {
            ties_b += run_b * (run_b - 1) / 2;
            run_b = 1;
        }
    }
    double all = (double)n * (double)(n - 1) / 2;
    double numerator = all - ties_a - ties_b + ties_both - 2 * swaps;
    double denominator = sqrt((all - ties_a) * (all - ties_b));
    free(pairs);
    free(order);
    free(scratch);
    return denominator > 0 ? numerator / denominator : 0;
}
