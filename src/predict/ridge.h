/* ridge.h: ridge regression by its normal equations, on LAPACK. A matrix is n x n, row by row, of
 * which only the lower triangle is used. */
#ifndef HWNAS_PREDICT_RIDGE_H
#define HWNAS_PREDICT_RIDGE_H

#include <stddef.h>

/* Adds the products of the terms of each row whose fold is not `without`; `folds` NULL: of all. */
void hwnas_gram_add(double *gram, const double *terms, size_t n_rows, size_t n, const int *folds,
                    int without);

/* Replaces gram + penalty * diag(shares) by its Cholesky factor. A share of 0 is a term that is not
 * shrunk, such as the constant. */
void hwnas_ridge_factor(double *gram, size_t n, double penalty, const double *shares);
/* Replaces the right side (sum of terms times target) by the weights. */
void hwnas_ridge_solve(const double *factor, double *right, size_t n);

double hwnas_dot(const double *a, const double *b, size_t n);

#endif
