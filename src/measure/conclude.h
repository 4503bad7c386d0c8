/* conclude.h: from samples to figures, and to the doubts about them. */
#ifndef HWNAS_MEASURE_CONCLUDE_H
#define HWNAS_MEASURE_CONCLUDE_H

#include "measure/sampler.h"

/* More of the sampling time than this set aside makes a measurement unstable. */
#define HWNAS_MAX_DISTURBED 0.95

/* Median of n values and its 95 % interval; `scratch` has room for n, and has them sorted after. */
double hwnas_median(double *low, double *high, double *scratch, const double *values, size_t n);

/* Second half of n samples, which are in the order of time, against the first, minus 1: 0 when their
 * intervals overlap, so that chance is no trend. */
double hwnas_find_trend(double *scratch, const double *samples, size_t n);
/* Median, p90, p99 and their intervals: NaN what the samples do not carry. */
void hwnas_tell_quantiles(hwnas_measurement *out, const double *sorted, size_t n);

/* Fills in everything that follows from the samples. */
void hwnas_conclude(hwnas_measurement *out, hwnas_sampler *s);

#endif
