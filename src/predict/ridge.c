/* ridge.c: the normal equations. LAPACK's columns are our rows, its upper triangle our lower one.
 */
#include "predict/ridge.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <string.h>

#include "base/mem.h"

enum { BLOCK = 64 };

void hwnas_gram_add(double *gram, const double *terms, size_t n_rows, size_t n, const int *folds,
                    int without)
{
    openblas_set_num_threads(1); /* so that sums have one order */
    double *block = hwnas_alloc(BLOCK * n * sizeof *block);
    for (size_t i = 0; i < n_rows;) {
        int filled = 0;
        for (; i < n_rows && filled < BLOCK; i++)
            if (!folds || folds[i] != without)
                memcpy(block + (size_t)filled++ * n, terms + i * n, n * sizeof *block);
        cblas_dsyrk(CblasColMajor, CblasUpper, CblasNoTrans, (int)n, filled, 1, block, (int)n, 1,
                    gram, (int)n);
    }
    free(block);
}

void hwnas_ridge_factor(double *a, size_t n, double penalty, const double *shares)
{
    assert(penalty > 0);
    double *kept = hwnas_alloc(n * n * sizeof *kept);
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += penalty * shares[i];
    memcpy(kept, a, n * n * sizeof *kept);
    /* The matrix is positive definite, but rounding may say otherwise: then it gets a ridge of its
     * own, and soon a great one. */
    for (double jitter = 1e-10 * penalty;
         LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)n, a, (lapack_int)n);
         jitter *= 100) {
        memcpy(a, kept, n * n * sizeof *kept);
        for (size_t i = 0; i < n; i++)
            a[i * n + i] += jitter;
    }
    free(kept);
}

void hwnas_ridge_solve(const double *factor, double *x, size_t n)
{
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (int)n, factor, (int)n, x, 1);
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, (int)n, factor, (int)n, x,
                1);
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
