/* conclude.h: from samples to figures, and to the doubts about them. */
#ifndef HWNAS_MEASURE_CONCLUDE_H
#define HWNAS_MEASURE_CONCLUDE_H

#include "measure/sampler.h"

/* Shares of the sampling time that was set aside. With more than the first, sampling goes on to the
 * end of the budget, in hope of better, and what is left has to agree; with more than the second
 * what is left is not to be trusted. docs/measuring.md has the evidence. */
#define HWNAS_MOSTLY_DISTURBED 0.5
#define HWNAS_MAX_DISTURBED 0.9

/* Median of n values and its 95 % interval; `scratch` has room for n, and has them sorted after. */
double hwnas_median(double *low, double *high, double *scratch, const double *values, size_t n);

/* Second half of n samples, which are in the order of time, against the first, minus 1: 0 when
 * their intervals overlap, so that chance is not a trend. */
double hwnas_find_trend(double *scratch, const double *samples, size_t n);
/* The better founded of two attempts. */
bool hwnas_is_steadier(const hwnas_measurement *a, const hwnas_measurement *b);

/* How often at most a disturbed measurement is made, and seconds of pause after the n-th time. */
int hwnas_attempts(const hwnas_measure_options *options);
double hwnas_attempt_pause(const hwnas_measure_options *options, int n);
/* Whether the first attempt has taken longer than all of them may: with `fewest` there is no other. */
bool hwnas_is_spent(double seconds, const hwnas_measure_options *options);

/* The fewest samples that carry a quantile: 29 for 0.9, 299 for 0.99. */
int hwnas_quantile_needs(double q);

/* Says which tails a measurement is to have. */
void hwnas_ask_for_tails(hwnas_measurement *out, const hwnas_measure_options *options);
/* Median, those tails and their intervals: NaN what the samples do not carry. */
void hwnas_tell_quantiles(hwnas_measurement *out, const double *sorted, size_t n);

/* Fills in everything that follows from the samples. */
void hwnas_conclude(hwnas_measurement *out, hwnas_sampler *s);

/* What the executable holds, and what of it was kept from before. */
void hwnas_tell_compiled(hwnas_measurement *out, const hwnas_exec *exec);

#endif
