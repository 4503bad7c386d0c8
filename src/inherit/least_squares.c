#include "inherit/least_squares.h"

#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <lapacke.h>

#include "base/mem.h"

/* y - x w' - b, in place of y's copy. */
static void find_residuals(float *out, const float *w, const float *b, const hwnas_matrix *x,
                           const hwnas_matrix *y)
{
    const int n = (int)y->n_rows, outputs = (int)y->n_columns, inputs = (int)x->n_columns;
    memcpy(out, y->at, (size_t)(y->n_rows * y->n_columns) * sizeof *out);
    if (inputs)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, outputs, inputs, -1, x->at, inputs,
                    w, inputs, 1, out, outputs);
    for (int64_t r = 0; b && r < y->n_rows; r++)
        for (int64_t o = 0; o < y->n_columns; o++)
            out[r * y->n_columns + o] -= b[o];
}

/* No more than rounding leaves. */
static bool are_small(const float *residuals, const hwnas_matrix *y)
{
    double left = 0, all = 0;
    for (int64_t i = 0; i < y->n_rows * y->n_columns; i++) {
        left += (double)residuals[i] * residuals[i];
        all += (double)y->at[i] * y->at[i];
    }
    return left <= 1e-10 * all;
}

/* x with a column of ones behind it, where there are offsets. */
static hwnas_status add_ones(float **out, const hwnas_matrix *x, bool has_offsets)
{
    const int64_t n = x->n_columns + has_offsets;
    TRY(hwnas_try_alloc((void **)out, (size_t)(x->n_rows * n) * sizeof **out, "examples"));
    for (int64_t r = 0; r < x->n_rows; r++) {
        if (x->n_columns)
            memcpy(*out + r * n, x->at + r * x->n_columns, (size_t)x->n_columns * sizeof **out);
        if (has_offsets)
            (*out)[r * n + x->n_columns] = 1;
    }
    return HWNAS_OK;
}

/* (x' x + ridge s) d = x' residuals, by Cholesky; false: not positive definite, to rounding. */
static bool solve(double *d, double *gram, int n, int outputs, double ridge)
{
    double mean = 0;
    for (int i = 0; i < n; i++)
        mean += gram[i * n + i] / n;
    if (!(mean > 0))
        return false;
    for (int i = 0; i < n; i++)
        gram[i * n + i] += ridge * mean;
    return !LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, gram, n) &&
           !LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', n, outputs, gram, n, d, n);
}

hwnas_status hwnas_least_squares(float *w, float *b, const hwnas_matrix *x, const hwnas_matrix *y,
                                 double ridge)
{
    hwnas_status status = HWNAS_OK;
    const int64_t n = x->n_columns + (b != NULL), outputs = y->n_columns;
    float *examples = NULL, *residuals = NULL, *products = NULL;
    double *gram = NULL, *d = NULL;
    const size_t n_gram = (size_t)(n * n), n_right = (size_t)(n * outputs);
    if (!n || !x->n_rows)
        return HWNAS_OK;
    TRY_OUT(add_ones(&examples, x, b != NULL));
    TRY_OUT(hwnas_try_alloc((void **)&residuals, (size_t)(y->n_rows * outputs) * sizeof *residuals,
                            "residuals"));
    TRY_OUT(hwnas_try_alloc((void **)&products,
                            (n_gram > n_right ? n_gram : n_right) * sizeof *products, "products"));
    TRY_OUT(hwnas_try_alloc((void **)&gram, n_gram * sizeof *gram, "products"));
    TRY_OUT(hwnas_try_alloc((void **)&d, n_right * sizeof *d, "products"));
    find_residuals(residuals, w, b, x, y);
    if (are_small(residuals, y)) /* nothing was lost before this layer */
        goto out;
    cblas_ssyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)n, (int)x->n_rows, 1, examples,
                (int)n, 0, products, (int)n);
    for (size_t i = 0; i < n_gram; i++)
        gram[i] = products[i];
    /* By columns: n x outputs, a column for each output. */
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, (int)n, (int)outputs, (int)x->n_rows, 1,
                examples, (int)n, residuals, (int)outputs, 0, products, (int)n);
    for (size_t i = 0; i < n_right; i++)
        d[i] = products[i];
    if (solve(d, gram, (int)n, (int)outputs, ridge))
        for (int64_t o = 0; o < outputs; o++) {
            for (int64_t i = 0; i < x->n_columns; i++)
                w[o * x->n_columns + i] += (float)d[o * n + i];
            if (b)
                b[o] += (float)d[o * n + n - 1];
        }
out:
    free(examples);
    free(residuals);
    free(products);
    free(gram);
    free(d);
    return status;
}

/* Of a fit to the first examples, with what it leaves of the others. */
static hwnas_status try_ridge(double *left, const float *w, const float *b, const hwnas_matrix *x,
                              const hwnas_matrix *y, double ridge)
{
    hwnas_status status = HWNAS_OK;
    const int64_t n_fit = x->n_rows - x->n_rows / 4, n_left = x->n_rows - n_fit;
    const int64_t n_weights = x->n_columns * y->n_columns;
    const hwnas_matrix fit_x = {n_fit, x->n_columns, x->at}, fit_y = {n_fit, y->n_columns, y->at};
    const hwnas_matrix left_x = {n_left, x->n_columns, x->at + n_fit * x->n_columns};
    const hwnas_matrix left_y = {n_left, y->n_columns, y->at + n_fit * y->n_columns};
    float *own = NULL, *residuals = NULL;
    TRY_OUT(hwnas_try_alloc((void **)&own, (size_t)(n_weights + y->n_columns) * sizeof *own,
                            "weights"));
    TRY_OUT(hwnas_try_alloc((void **)&residuals,
                            (size_t)(n_left * y->n_columns) * sizeof *residuals, "residuals"));
    float *own_b = b ? own + n_weights : NULL;
    memcpy(own, w, (size_t)n_weights * sizeof *own);
    if (b)
        memcpy(own_b, b, (size_t)y->n_columns * sizeof *own);
    TRY_OUT(hwnas_least_squares(own, own_b, &fit_x, &fit_y, ridge));
    find_residuals(residuals, own, own_b, &left_x, &left_y);
    *left = 0;
    for (int64_t i = 0; i < n_left * y->n_columns; i++)
        *left += (double)residuals[i] * residuals[i];
out:
    free(own);
    free(residuals);
    return status;
}

hwnas_status hwnas_least_squares_checked(float *w, float *b, const hwnas_matrix *x,
                                         const hwnas_matrix *y)
{
    static const double ridges[] = {1e-4, 0.1};
    double least = 0, best = ridges[0];
    for (size_t i = 0; i < sizeof ridges / sizeof *ridges && x->n_columns; i++) {
        double left;
        TRY(try_ridge(&left, w, b, x, y, ridges[i]));
        if (!i || left < least) {
            least = left;
            best = ridges[i];
        }
    }
    return hwnas_least_squares(w, b, x, y, best);
}
