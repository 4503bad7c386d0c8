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

/* What the kernel sums up over the columns for rows i and j < i of a process, at [i * n + j]: kept
 * from the kernel to its gradient, and the products from one set of hyper-parameters to the next.
 */
typedef struct hwnas_gp_sums {
    double *products, *distances, *mismatches;
} hwnas_gp_sums;

/* The products; the others are for hwnas_gp_kernel_row(). Release with hwnas_gp_sums_done(). */
HWNAS_CHECKED hwnas_status hwnas_gp_sums_make(hwnas_gp_sums *out, const hwnas_gp *gp);
void hwnas_gp_sums_done(hwnas_gp_sums *sums);
/* The kernel between row i, standardised, and those before it; `sums` keeps what the gradient
 * needs.
 */
void hwnas_gp_kernel_row(const hwnas_gp *gp, const double *factors, double *out,
                         hwnas_gp_sums *sums, const double *row, size_t i);
/* Adds to `gradient` the derivative of the kernel between rows i and j by the hyper-parameters,
 * times weights[j], for all j < i, and half of weights[i] times that of row i with itself. Spoils
 * the row's sums, but for the products. */
void hwnas_gp_kernel_gradient(const hwnas_gp *gp, const double *factors, double *gradient,
                              hwnas_gp_sums *sums, const double *weights, size_t i);

void hwnas_gp_own_row(const hwnas_gp *gp, double *out, size_t i); /* row i, standardised */
/* The lower Cholesky factor of the kernel matrix with noise, in LAPACK's column order; fills `sums`
 * (optional). */
HWNAS_CHECKED hwnas_status hwnas_gp_factorise(const hwnas_gp *gp, const double *parameters,
                                              double *out, size_t stride, hwnas_gp_sums *sums,
                                              bool *is_positive);
/* Factorises the kernel matrix at the present hyper-parameters and solves for the targets. */
HWNAS_CHECKED hwnas_status hwnas_gp_condition(hwnas_gp *gp);

/* Rows and their weights as a fit left them (gp->full), under means, scales and hyper-parameters
 * that are in place: the process estimates means, but no deviations, and takes no more rows. */
HWNAS_CHECKED hwnas_status hwnas_gp_restore(hwnas_gp *gp, const double *rows, const double *full,
                                            size_t n);

#endif
