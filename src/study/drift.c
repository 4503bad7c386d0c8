#include "study/drift.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* T, as a part of the time that the timings span, and q. */
static const double correlation_times[] = {1.0 / 81, 1.0 / 27, 1.0 / 9, 1.0 / 3};
static const double variance_ratios[] = {0.03, 0.1, 0.3, 1, 3, 10};
enum {
    N_TIMES = sizeof correlation_times / sizeof *correlation_times,
    N_RATIOS = sizeof variance_ratios / sizeof *variance_ratios,
    N_POINTS = N_TIMES * N_RATIOS,
};
static const double NOISE_FLOOR = 1e-6; /* part of a latency below which nothing is told */

/* What one point of the grid says. */
typedef struct point {
    double log_likelihood;
    double *means, *variances; /* by network */
} point;

/* The lower factor of the correlation of the timings, in columns. */
static void factor_correlation(double *out, const hwnas_drift_timing *timings, size_t n,
                               double memory, double ratio)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++)
            out[j * n + i] =
                (i == j) + ratio * exp(-fabs(timings[i].when - timings[j].when) / memory);
    /* Positive definite: 1 on the diagonal and a covariance. */
    LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (int)n, out, (int)n);
}

/* Of each network the mean logarithm. Without it sums of squares are of what timings differ by, and
 * lose no digits. */
static void find_middles(double *out, const hwnas_drift_timing *timings, size_t n, size_t p)
{
    double *counts = hwnas_alloc(p * sizeof *counts);
    memset(out, 0, p * sizeof *out);
    for (size_t j = 0; j < n; j++) {
        out[timings[j].network] += timings[j].log_seconds;
        counts[timings[j].network]++;
    }
    for (size_t i = 0; i < p; i++)
        out[i] /= counts[i];
    free(counts);
}

/* [X y] goes through the factor, and the factor of its Gram matrix has all that is wanted: with
 * p + 1 columns R, where |R_pp|^2 = S and R_(0..p-1) is the factor of G. */
static void fit(point *out, const hwnas_drift_timing *timings, const double *middles, size_t n,
                size_t p, double memory, double ratio)
{
    const size_t d = p + 1;
    double *factor = hwnas_alloc(n * n * sizeof *factor),
           *terms = hwnas_alloc(n * d * sizeof *terms);
    double *gram = hwnas_alloc(d * d * sizeof *gram), determinants = 0;
    for (size_t j = 0; j < n; j++) {
        terms[(size_t)timings[j].network * n + j] = 1;
        terms[p * n + j] = timings[j].log_seconds - middles[timings[j].network];
    }
    factor_correlation(factor, timings, n, memory, ratio);
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, (int)d, 1,
                factor, (int)n, terms, (int)n);
    cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, (int)d, (int)n, 1, terms, (int)n, 0, gram,
                (int)d);
    const double freedom = (double)(n - p);
    gram[d * d - 1] += freedom * NOISE_FLOOR * NOISE_FLOOR;
    LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (int)d, gram, (int)d);
    for (size_t j = 0; j < n; j++)
        determinants += log(factor[j * n + j]);
    for (size_t i = 0; i < p; i++)
        determinants += log(gram[i * d + i]);
    const double left = gram[d * d - 1];
    out->log_likelihood = -determinants - freedom * log(left);
    memcpy(out->means, gram + p * d, p * sizeof *out->means);
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, (int)p, gram, (int)d,
                out->means, 1);
    LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', (int)p, gram, (int)d);
    for (size_t i = 0; i < p; i++)
        out->variances[i] = left * left / freedom * gram[i * d + i];
    free(factor);
    free(terms);
    free(gram);
}

static double span_of(const hwnas_drift_timing *timings, size_t n)
{
    double first = timings[0].when, last = first;
    for (size_t j = 1; j < n; j++) {
        first = fmin(first, timings[j].when);
        last = fmax(last, timings[j].when);
    }
    return last - first;
}

/* By likelihood; their sum is 1. */
static void posterior_weights(double *weights, const point *points)
{
    double best = -INFINITY, sum = 0;
    for (int k = 0; k < N_POINTS; k++)
        best = fmax(best, points[k].log_likelihood);
    for (int k = 0; k < N_POINTS; k++)
        sum += weights[k] = exp(points[k].log_likelihood - best);
    for (int k = 0; k < N_POINTS; k++)
        weights[k] /= sum;
}

/* Student's t distribution, within 5e-3 for five degrees of freedom and 3e-4 for twenty (Abramowitz
 * and Stegun, "Handbook of Mathematical Functions", 26.7.8). */
static double student_cdf(double t, double freedom)
{
    const double z = t * (1 - 1 / (4 * freedom)) / sqrt(1 + t * t / (2 * freedom));
    return 0.5 * erfc(-z * M_SQRT1_2);
}

/* Where the mixture of what all points say of a network has so much below it: by bisection. */
static double quantile(const point *points, const double *weights, int network, double freedom,
                       double below)
{
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < N_POINTS; k++) {
        const double wide = 20 * sqrt(points[k].variances[network]);
        low = fmin(low, points[k].means[network] - wide);
        high = fmax(high, points[k].means[network] + wide);
    }
    for (int halving = 0; halving < 60; halving++) {
        const double middle = (low + high) / 2;
        double sum = 0;
        for (int k = 0; k < N_POINTS; k++)
            sum += weights[k] * student_cdf((middle - points[k].means[network]) /
                                                sqrt(points[k].variances[network]),
                                            freedom);
        if (sum < below)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

void hwnas_drift_conclude(hwnas_reading *out, int n_wanted, const hwnas_drift_timing *timings,
                          size_t n, int n_networks)
{
    const size_t p = (size_t)n_networks;
    const double span = span_of(timings, n);
    assert(n_wanted <= n_networks && n > p && span > 0);
    double *numbers = hwnas_alloc((2 * N_POINTS + 1) * p * sizeof *numbers), weights[N_POINTS];
    double *middles = numbers + 2 * N_POINTS * p;
    point points[N_POINTS];
    find_middles(middles, timings, n, p);
    for (size_t k = 0; k < N_POINTS; k++) {
        points[k] = (point){.means = numbers + 2 * k * p, .variances = numbers + (2 * k + 1) * p};
        fit(&points[k], timings, middles, n, p, span * correlation_times[k / N_RATIOS],
            variance_ratios[k % N_RATIOS]);
    }
    posterior_weights(weights, points);
    for (int i = 0; i < n_wanted; i++) {
        double ends[3];
        static const double below[3] = {0.025, 0.5, 0.975};
        for (int k = 0; k < 3; k++)
            ends[k] = exp(middles[i] + quantile(points, weights, i, (double)(n - p), below[k]));
        out[i] = (hwnas_reading){ends[1], ends[0], ends[2]};
    }
    free(numbers);
}
