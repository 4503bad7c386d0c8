/* conclude.h: from samples to figures, and to the doubts about them. */
#ifndef HWNAS_MEASURE_CONCLUDE_H
#define HWNAS_MEASURE_CONCLUDE_H

#include "measure/sampler.h"

/* More of the sampling time than this set aside makes a measurement unstable. */
#define HWNAS_MAX_DISTURBED 0.5

/* Median of n values and its 95 % interval; `scratch` has room for n, and has them sorted after. */
double hwnas_median(double *low, double *high, double *scratch, const double *values, size_t n);

/* Fills in everything that follows from the samples. */
void hwnas_conclude(hwnas_measurement *out, hwnas_sampler *s);

#endif
