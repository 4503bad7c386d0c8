/* latency_ridge.h: robust ridge regression of few coefficients, and how sure it is of them.
 *
 * targets_i = terms_i' b + e_i, with e_i ~ N(0, sd^2 / w_i) and priors b_k ~ N(0, priors_k^2). Then
 * b has the posterior precision P = sum_i w_i / sd^2 terms_i terms_i' + diag(1 / priors^2) and the
 * mean P^-1 sum_i w_i / sd^2 terms_i targets_i (Bishop, "Pattern Recognition and Machine Learning",
 * 2006, eq. 3.50 and 3.51), and what it foretells for terms x is off by a variance of
 *
 *     x' P^-1 x + sd^2,
 *
 * of which only the second part is left when much was measured: with few measurements, or for an x
 * unlike theirs, the first is what an interval must know. What is left over at a measurement has
 * under this model the variance sd^2 (1 - h_i) / w_i, h_i = w_i / sd^2 terms_i' P^-1 terms_i, so sd
 * comes from these, each divided by the root of its 1 - h_i: by their median size, as some are
 * outliers, which also weigh less (Huber, "Robust Statistics", 1981).
 *
 * How far coefficients go is not known either. All priors but the last, which is of a constant, are
 * tried at a third, as given, and at three times that; each counts by the probability that it gives
 * the targets (Bishop, eq. 3.86), and what the three disagree about adds to the variance. */
#ifndef HWNAS_LATENCY_LATENCY_RIDGE_H
#define HWNAS_LATENCY_LATENCY_RIDGE_H

#include "latency/latency_priv.h"

/* Fits n targets by terms (n x d, by rows). `out`: d coefficients; `posterior` is made anew.
 * Returns sd. */
double hwnas_ridge(double *out, hwnas_posterior *posterior, const double *terms,
                   const double *targets, const double *priors, size_t n, size_t d);

/* The variance of x' b, of d terms x. */
double hwnas_posterior_variance(const hwnas_posterior *posterior, const double *x);

/* 1.48 times the median of the sizes: the standard deviation, were they normal. The values are
 * replaced by their sizes, sorted. 0 of none. */
double hwnas_robust_sd(double *values, size_t n);

#endif
