/* gp_priv.h: what the files of the Gaussian process share. */
#ifndef HWNAS_PREDICT_GP_PRIV_H
#define HWNAS_PREDICT_GP_PRIV_H

#include "predict/gp.h"

/* What the kernel multiplies by at some hyper-parameters, in their order: their exponentials, of
 * which that of the linear kernel is shared by the columns that it adds up. */
void hwnas_gp_factors(const hwnas_gp *gp, double *out, const double *parameters);
/* The kernel, without noise, between a standardised row and the first n of the process's. */
void hwnas_gp_kernel(const hwnas_gp *gp, const double *factors, double *out, const double *row,
                     size_t n);
/* Of a standardised row with itself. */
double hwnas_gp_kernel_self(const hwnas_gp *gp, const double *factors, const double *row);
/* Adds to `gradient` the derivative of the kernel between rows i and j by the hyper-parameters,
 * times weights[j], for all j < i, and half of weights[i] times that of row i with itself. */
void hwnas_gp_kernel_gradient(const hwnas_gp *gp, const double *factors, double *gradient,
                              const double *weights, size_t i);

void hwnas_gp_own_row(const hwnas_gp *gp, double *out, size_t i); /* row i, standardised */
/* The lower Cholesky factor of the kernel matrix with noise, in LAPACK's column order. */
HWNAS_CHECKED hwnas_status hwnas_gp_factorise(const hwnas_gp *gp, const double *parameters,
                                              double *out, size_t stride, bool *is_positive);
/* Factorises the kernel matrix at the present hyper-parameters and solves for the targets. */
HWNAS_CHECKED hwnas_status hwnas_gp_condition(hwnas_gp *gp);

/* Rows and their weights as a fit left them (gp->full), under means, scales and hyper-parameters
 * that are in place: the process estimates means, but no deviations, and takes no more rows. */
HWNAS_CHECKED hwnas_status hwnas_gp_restore(hwnas_gp *gp, const double *rows, const double *full,
                                            size_t n);

#endif
