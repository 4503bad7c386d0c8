/* ridge.c: Cholesky factorisation and triangular solves. */
#include "predict/ridge.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void hwnas_gram_add(double *gram, const double *terms, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            gram[i * n + j] += terms[i] * terms[j];
}

void hwnas_ridge_factor(double *a, size_t n, double penalty, const double *shares)
{
    assert(penalty > 0);
    double *column = hwnas_alloc(n * sizeof *column);
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += penalty * shares[i];
    /* Right-looking: the inner loop runs along a row, over contiguous memory. */
    for (size_t j = 0; j < n; j++) {
        /* The matrix is positive definite, but rounding may say otherwise. */
        double pivot = sqrt(fmax(a[j * n + j], 1e-12 * penalty));
        a[j * n + j] = pivot;
        for (size_t i = j + 1; i < n; i++)
            column[i] = a[i * n + j] /= pivot;
        for (size_t i = j + 1; i < n; i++)
            for (size_t k = j + 1; k <= i; k++)
                a[i * n + k] -= column[i] * column[k];
    }
    free(column);
}

void hwnas_ridge_solve(const double *l, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (x[i] - hwnas_dot(l + i * n, x, i)) / l[i * n + i];
    for (size_t i = n; i-- > 0;) {
        x[i] /= l[i * n + i];
        for (size_t k = 0; k < i; k++)
            x[k] -= l[i * n + k] * x[i];
    }
}

double hwnas_dot(const double *a, const double *b, size_t n)
{
    /* Four sums, in a fixed order: quicker than one, and the same result with every compiler. */
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}
