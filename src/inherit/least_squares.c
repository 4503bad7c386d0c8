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

/* ---- Normal equations ---- */

/* What examples come to: n x n and n x outputs (a column for each output), and the sum of squares
 * that the first guess leaves. */
typedef struct products {
    int n, outputs;
    double *gram, *right, left;
} products;

static void products_done(products *p)
{
    free(p->gram);
    free(p->right);
}

static hwnas_status products_init(products *p, int64_t n, int64_t outputs)
{
    *p = (products){.n = (int)n, .outputs = (int)outputs};
    TRY(hwnas_try_alloc((void **)&p->gram, (size_t)(n * n) * sizeof *p->gram, "products"));
    return hwnas_try_alloc((void **)&p->right, (size_t)(n * outputs) * sizeof *p->right,
                           "products");
}

/* Adds those of so many rows; `sums` has room for the larger of the two. */
static void add_products(products *p, const float *examples, const float *residuals, int64_t rows,
                         float *sums)
{
    const size_t n_gram = (size_t)p->n * (size_t)p->n;
    const size_t n_right = (size_t)p->n * (size_t)p->outputs;
    cblas_ssyrk(CblasColMajor, CblasLower, CblasNoTrans, p->n, (int)rows, 1, examples, p->n, 0,
                sums, p->n);
    for (size_t i = 0; i < n_gram; i++)
        p->gram[i] += sums[i];
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, p->n, p->outputs, (int)rows, 1, examples,
                p->n, residuals, p->outputs, 0, sums, p->n);
    for (size_t i = 0; i < n_right; i++)
        p->right[i] += sums[i];
    for (int64_t i = 0; i < rows * p->outputs; i++)
        p->left += (double)residuals[i] * residuals[i];
}

/* (x' x + ridge s) d = x' residuals, by Cholesky; `spare` has room for a gram. False: not positive
 * definite, to rounding. */
static bool solve(double *d, double *spare, const products *p, double ridge)
{
    const int n = p->n;
    double mean = 0;
    for (int i = 0; i < n; i++)
        mean += p->gram[i * n + i] / n;
    if (!(mean > 0))
        return false;
    memcpy(spare, p->gram, (size_t)n * (size_t)n * sizeof *spare);
    memcpy(d, p->right, (size_t)n * (size_t)p->outputs * sizeof *d);
    for (int i = 0; i < n; i++)
        spare[i * n + i] += ridge * mean;
    return !LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, spare, n) &&
           !LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', n, p->outputs, spare, n, d, n);
}

/* What weights that differ by `d` leave of the examples: |r - x d|^2 by their products. */
static double left_by(const products *p, const double *d, double *spare)
{
    double left = p->left;
    cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, p->n, p->outputs, 1, p->gram, p->n, d, p->n,
                0, spare, p->n);
    for (int64_t i = 0; i < (int64_t)p->n * p->outputs; i++)
        left += d[i] * (spare[i] - 2 * p->right[i]);
    return left;
}

static void add_to_weights(float *w, float *b, const double *d, const hwnas_matrix *x,
                           const products *p)
{
    for (int64_t o = 0; o < p->outputs; o++) {
        for (int64_t i = 0; i < x->n_columns; i++)
            w[o * x->n_columns + i] += (float)d[o * p->n + i];
        if (b)
            b[o] += (float)d[o * p->n + p->n - 1];
    }
}

/* ---- Fits ---- */

/* The ridge that leaves least of the last examples after a fit to the first. */
static double choose_ridge(double *d, double *spare, const products *first, const products *last,
                           const double *ridges, size_t n_ridges)
{
    double best = ridges[0], least = 0;
    for (size_t i = 0; i < n_ridges && n_ridges > 1; i++) {
        const double left =
            solve(d, spare, first, ridges[i]) ? left_by(last, d, spare) : last->left;
        if (i && left >= least)
            continue;
        least = left;
        best = ridges[i];
    }
    return best;
}

static hwnas_status fit(float *w, float *b, const hwnas_matrix *x, const hwnas_matrix *y,
                        const double *ridges, size_t n_ridges)
{
    hwnas_status status = HWNAS_OK;
    const int64_t n = x->n_columns + (b != NULL), outputs = y->n_columns;
    const int64_t n_first = n_ridges > 1 ? x->n_rows - x->n_rows / 4 : x->n_rows;
    const size_t n_gram = (size_t)(n * n), n_right = (size_t)(n * outputs);
    const size_t n_most = n_gram > n_right ? n_gram : n_right;
    float *examples = NULL, *residuals = NULL, *sums = NULL;
    double *d = NULL, *spare = NULL;
    products first = {0}, last = {0};
    if (!n || !x->n_rows)
        return HWNAS_OK;
    TRY_OUT(add_ones(&examples, x, b != NULL));
    TRY_OUT(hwnas_try_alloc((void **)&residuals, (size_t)(y->n_rows * outputs) * sizeof *residuals,
                            "residuals"));
    find_residuals(residuals, w, b, x, y);
    if (are_small(residuals, y)) /* nothing was lost before this layer */
        goto out;
    TRY_OUT(hwnas_try_alloc((void **)&sums, n_most * sizeof *sums, "products"));
    TRY_OUT(hwnas_try_alloc((void **)&spare, n_most * sizeof *spare, "products"));
    TRY_OUT(hwnas_try_alloc((void **)&d, n_right * sizeof *d, "products"));
    TRY_OUT(products_init(&first, n, outputs));
    TRY_OUT(products_init(&last, n, outputs));
    add_products(&first, examples, residuals, n_first, sums);
    add_products(&last, examples + n_first * n, residuals + n_first * outputs, x->n_rows - n_first,
                 sums);
    const double ridge = choose_ridge(d, spare, &first, &last, ridges, n_ridges);
    for (size_t i = 0; i < n_gram; i++)
        first.gram[i] += last.gram[i];
    for (size_t i = 0; i < n_right; i++)
        first.right[i] += last.right[i];
    if (solve(d, spare, &first, ridge))
        add_to_weights(w, b, d, x, &first);
out:
    products_done(&first);
    products_done(&last);
    free(examples);
    free(residuals);
    free(sums);
    free(spare);
    free(d);
    return status;
}

hwnas_status hwnas_least_squares(float *w, float *b, const hwnas_matrix *x, const hwnas_matrix *y,
                                 double ridge)
{
    return fit(w, b, x, y, &ridge, 1);
}

hwnas_status hwnas_least_squares_checked(float *w, float *b, const hwnas_matrix *x,
                                         const hwnas_matrix *y)
{
    static const double ridges[] = {1e-4, 0.1};
    return fit(w, b, x, y, ridges, sizeof ridges / sizeof *ridges);
}
