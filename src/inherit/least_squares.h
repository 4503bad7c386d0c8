/* least_squares.h: weights of a linear layer by ridge regression. */
#ifndef HWNAS_INHERIT_LEAST_SQUARES_H
#define HWNAS_INHERIT_LEAST_SQUARES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* n_rows x n_columns, row by row. */
typedef struct hwnas_matrix {
    int64_t n_rows, n_columns;
    float *at;
} hwnas_matrix;

/* Changes weights w (outputs x inputs) and offsets b (NULL: there are none), which come as a first
 * guess w0, b0, to those that minimise
 *
 *     |x w' + b - y|^2 + ridge s (|w - w0|^2 + |b - b0|^2),   s = mean diagonal of x' x
 *
 * with a row of x and y for each example. Where the examples say little the guess stays (Hoerl and
 * Kennard 1970, with another centre than 0). HWNAS_E_MEMORY. */
HWNAS_CHECKED hwnas_status hwnas_least_squares(float *w, float *b, const hwnas_matrix *x,
                                               const hwnas_matrix *y, double ridge);

/* The same with the ridge that is best for the last quarter of the examples when the others are
 * fitted. Where they are about as many as there are weights, or alike, a small ridge fits their
 * noise. */
HWNAS_CHECKED hwnas_status hwnas_least_squares_checked(float *w, float *b, const hwnas_matrix *x,
                                                       const hwnas_matrix *y);

#endif
