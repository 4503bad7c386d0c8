/* stats.h: order statistics and rank correlation. Samples are doubles without NaN. */
#ifndef HWNAS_BASE_STATS_H
#define HWNAS_BASE_STATS_H

#include <stdbool.h>
#include <stddef.h>

void hwnas_sort(double *values, size_t n);

/* Quantile q in [0, 1] of n > 0 sorted values, by linear interpolation between order statistics
 * (type 7 of Hyndman and Fan 1996). */
double hwnas_quantile(const double *sorted, size_t n, double q);

/* 95 % confidence interval of the q-quantile by order statistics (binomial, no assumption on the
 * distribution): the narrowest symmetric pair of order statistics with coverage >= 95 %.
 * false when n is too small to bound it on both sides; then low and high are the extremes. */
bool hwnas_quantile_interval(const double *sorted, size_t n, double q, double *low, double *high);

double hwnas_mean(const double *values, size_t n);
/* Root of the mean squared difference. */
double hwnas_rmse(const double *a, const double *b, size_t n);

/* Kendall's tau-b with ties, by Knight's algorithm, O(n log n). 0 when one side is constant. */
double hwnas_kendall_tau(const double *a, const double *b, size_t n);

#endif
