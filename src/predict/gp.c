/* gp.c: the process given its rows: factorisation, update, prediction. */
#include "predict/gp.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/gp_priv.h"

/* Rows of a prediction that are solved for at once: so many that the factor is read from memory
 * once for all of them. */
enum { BLOCK = 64 };

hwnas_gp *hwnas_gp_new(const hwnas_gp_column *columns, size_t n_columns, bool has_linear)
{
    openblas_set_num_threads(1); /* so that sums have one order */
    hwnas_gp *gp = hwnas_alloc(sizeof *gp);
    *gp = (hwnas_gp){.n_columns = n_columns, .has_linear = has_linear, .target_scale = 1};
    gp->columns = hwnas_alloc(n_columns * sizeof *gp->columns);
    gp->means = hwnas_alloc(n_columns * sizeof *gp->means);
    gp->scales = hwnas_alloc(n_columns * sizeof *gp->scales);
    for (size_t c = 0; c < n_columns; c++) {
        gp->columns[c] = columns[c];
        gp->scales[c] = 1;
        gp->n_continuous += !columns[c].is_categorical;
        if (columns[c].group >= gp->n_groups)
            gp->n_groups = columns[c].group + 1;
    }
    gp->group_is_categorical = hwnas_alloc(gp->n_groups * sizeof *gp->group_is_categorical);
    for (size_t c = 0; c < n_columns; c++)
        gp->group_is_categorical[columns[c].group] = columns[c].is_categorical;
    for (size_t c = 0; c < n_columns; c++)
        assert(gp->group_is_categorical[columns[c].group] == columns[c].is_categorical);
    gp->parameters = hwnas_alloc((gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *gp->parameters);
    hwnas_gp_prior_centre(gp, gp->parameters);
    return gp;
}

void hwnas_gp_free(hwnas_gp *gp)
{
    if (!gp)
        return;
    free(gp->columns);
    free(gp->group_is_categorical);
    free(gp->parameters);
    free(gp->means);
    free(gp->scales);
    free(gp->x);
    free(gp->targets);
    free(gp->factor);
    free(gp->half);
    free(gp->full);
    free(gp);
}

/* Makes room for `capacity` rows; what is there is kept. */
static hwnas_status reserve(hwnas_gp *gp, size_t capacity)
{
    if (capacity <= gp->capacity)
        return HWNAS_OK;
    hwnas_status status = HWNAS_OK;
    double *x = NULL, *factor = NULL;
    TRY_OUT(hwnas_try_alloc((void **)&x, capacity * (gp->n_columns + 1) * sizeof *x,
                            "the rows of a Gaussian process"));
    TRY_OUT(hwnas_try_alloc((void **)&factor, capacity * capacity * sizeof *factor,
                            "the matrix of a Gaussian process"));
    for (size_t c = 0; gp->n && c < gp->n_columns; c++)
        memcpy(x + c * capacity, gp->x + c * gp->capacity, gp->n * sizeof *x);
    for (size_t j = 0; j < gp->n; j++)
        memcpy(factor + j * capacity, gp->factor + j * gp->capacity, gp->n * sizeof *factor);
    free(gp->x);
    free(gp->factor);
    gp->x = x;
    gp->factor = factor;
    gp->targets = hwnas_realloc(gp->targets, capacity * sizeof *gp->targets);
    gp->half = hwnas_realloc(gp->half, capacity * sizeof *gp->half);
    gp->full = hwnas_realloc(gp->full, capacity * sizeof *gp->full);
    gp->capacity = capacity;
    x = factor = NULL;
out:
    free(x);
    free(factor);
    return status;
}

/* Mean and standard deviation of every stride-th value; a scale of 1 where all are equal. */
static void measure_spread(double *mean, double *scale, const double *values, size_t n,
                           size_t stride)
{
    double sum = 0, variance = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i * stride];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = values[i * stride] - *mean;
        variance += d * d / (double)n;
    }
    /* Rounding makes a spread of about 1e-16 of the mean out of equal values. */
    double spread = sqrt(variance);
    *scale = spread > 1e-12 * fabs(*mean) ? spread : 1;
}

void hwnas_gp_own_row(const hwnas_gp *gp, double *out, size_t i)
{
    for (size_t c = 0; c < gp->n_columns; c++)
        out[c] = gp->x[c * gp->capacity + i];
}

static void standardise(const hwnas_gp *gp, double *out, const double *row)
{
    for (size_t c = 0; c < gp->n_columns; c++)
        out[c] = (row[c] - gp->means[c]) / gp->scales[c];
}

hwnas_status hwnas_gp_set(hwnas_gp *gp, const double *rows, const double *targets, size_t n)
{
    assert(n > 0);
    TRY(reserve(gp, n));
    gp->n = n;
    for (size_t c = 0; c < gp->n_columns; c++) {
        if (!gp->columns[c].is_categorical)
            measure_spread(&gp->means[c], &gp->scales[c], rows + c, n, gp->n_columns);
        for (size_t i = 0; i < n; i++)
            gp->x[c * gp->capacity + i] =
                (rows[i * gp->n_columns + c] - gp->means[c]) / gp->scales[c];
    }
    measure_spread(&gp->target_mean, &gp->target_scale, targets, n, 1);
    for (size_t i = 0; i < n; i++)
        gp->targets[i] = (targets[i] - gp->target_mean) / gp->target_scale;
    return hwnas_gp_condition(gp);
}

/* Yours to free(). */
static double *new_factors(const hwnas_gp *gp, const double *parameters)
{
    double *factors = hwnas_alloc((gp->n_groups + HWNAS_GP_N_SHARED) * sizeof *factors);
    hwnas_gp_factors(gp, factors, parameters);
    return factors;
}

hwnas_status hwnas_gp_factorise(const hwnas_gp *gp, const double *parameters, double *out,
                                size_t stride, hwnas_gp_sums *sums, bool *is_positive)
{
    size_t n = gp->n;
    double *between = NULL, *row = hwnas_alloc(gp->n_columns * sizeof *row);
    double *factors = new_factors(gp, parameters), noise = factors[gp->n_groups + HWNAS_GP_NOISE];
    hwnas_status status =
        hwnas_try_alloc((void **)&between, n * sizeof *between, "the matrix of a Gaussian process");
    *is_positive = false;
    for (size_t j = 0; status == HWNAS_OK && j < n; j++) {
        hwnas_gp_own_row(gp, row, j);
        if (sums)
            hwnas_gp_kernel_row(gp, factors, between, sums, row, j);
        else
            hwnas_gp_kernel(gp, factors, between, row, j);
        for (size_t i = 0; i < j; i++)
            out[i * stride + j] = between[i];
        out[j * stride + j] = hwnas_gp_kernel_self(gp, factors, row) + noise;
    }
    if (status == HWNAS_OK)
        *is_positive =
            !LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, out, (lapack_int)stride);
    free(between);
    free(factors);
    free(row);
    return status;
}

hwnas_status hwnas_gp_restore(hwnas_gp *gp, const double *rows, const double *full, size_t n)
{
    assert(!gp->x && n > 0);
    TRY(hwnas_try_alloc((void **)&gp->x, n * (gp->n_columns + 1) * sizeof *gp->x,
                        "the rows of a Gaussian process"));
    gp->full = hwnas_alloc(n * sizeof *gp->full);
    memcpy(gp->full, full, n * sizeof *gp->full);
    gp->n = gp->capacity = n;
    for (size_t c = 0; c < gp->n_columns; c++)
        for (size_t i = 0; i < n; i++)
            gp->x[c * n + i] = (rows[i * gp->n_columns + c] - gp->means[c]) / gp->scales[c];
    return HWNAS_OK;
}

static void solve(hwnas_gp *gp)
{
    int n = (int)gp->n, stride = (int)gp->capacity;
    memcpy(gp->half, gp->targets, gp->n * sizeof *gp->half);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, gp->factor, stride,
                gp->half, 1);
    memcpy(gp->full, gp->half, gp->n * sizeof *gp->full);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, n, gp->factor, stride,
                gp->full, 1);
}

hwnas_status hwnas_gp_condition(hwnas_gp *gp)
{
    /* The noise is a jitter already; when rounding still makes the matrix indefinite (many equal
     * rows, a great amplitude), there is more noise than was thought. */
    double *noise = &gp->parameters[gp->n_groups + HWNAS_GP_NOISE];
    for (int tries = 0; tries < 12; tries++) {
        bool is_positive;
        TRY(hwnas_gp_factorise(gp, gp->parameters, gp->factor, gp->capacity, NULL, &is_positive));
        if (is_positive) {
            solve(gp);
            return HWNAS_OK;
        }
        *noise += log(10);
    }
    return hwnas_fail(HWNAS_E_LIBRARY, NULL,
                      "LAPACK cannot factorise the matrix of a Gaussian process of %zu rows",
                      gp->n);
}

hwnas_status hwnas_gp_add(hwnas_gp *gp, const double *row, double target)
{
    assert(gp->n > 0);
    if (gp->n == gp->capacity)
        TRY(reserve(gp, 2 * gp->capacity));
    size_t n = gp->n, stride = gp->capacity;
    double *own = hwnas_alloc(gp->n_columns * sizeof *own);
    double *new_row = hwnas_alloc(n * sizeof *new_row);
    double *factors = new_factors(gp, gp->parameters);
    standardise(gp, own, row);
    hwnas_gp_kernel(gp, factors, new_row, own, n);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, gp->factor,
                (int)stride, new_row, 1);
    double noise = factors[gp->n_groups + HWNAS_GP_NOISE];
    double pivot = hwnas_gp_kernel_self(gp, factors, own) + noise;
    for (size_t i = 0; i < n; i++) {
        gp->factor[i * stride + n] = new_row[i];
        pivot -= new_row[i] * new_row[i];
    }
    /* In exact arithmetic the pivot is at least the noise. */
    gp->factor[n * stride + n] = sqrt(fmax(pivot, noise));
    for (size_t c = 0; c < gp->n_columns; c++)
        gp->x[c * stride + n] = own[c];
    gp->targets[n] = (target - gp->target_mean) / gp->target_scale;
    gp->n = n + 1;
    solve(gp);
    free(own);
    free(new_row);
    free(factors);
    return HWNAS_OK;
}

double hwnas_gp_noise(const hwnas_gp *gp)
{
    return gp->target_scale * exp(0.5 * gp->parameters[gp->n_groups + HWNAS_GP_NOISE]);
}

void hwnas_gp_predict(const hwnas_gp *gp, double *means, double *sds, const double *rows, size_t n)
{
    assert(gp->n > 0);
    size_t n_own = gp->n;
    double *block = hwnas_alloc(BLOCK * n_own * sizeof *block), selves[BLOCK];
    double *factors = new_factors(gp, gp->parameters);
    double *row = hwnas_alloc(gp->n_columns * sizeof *row);
    for (size_t done = 0; done < n;) {
        size_t n_block = n - done < BLOCK ? n - done : BLOCK;
        for (size_t b = 0; b < n_block; b++) {
            double *kernel = block + b * n_own, sum = 0;
            standardise(gp, row, rows + (done + b) * gp->n_columns);
            hwnas_gp_kernel(gp, factors, kernel, row, n_own);
            selves[b] = hwnas_gp_kernel_self(gp, factors, row);
            for (size_t i = 0; i < n_own; i++)
                sum += kernel[i] * gp->full[i];
            means[done + b] = gp->target_mean + gp->target_scale * sum;
        }
        /* Always a whole block: BLAS may sum in another order where a matrix has an edge, and an
         * estimate must not depend on its neighbours. */
        if (sds)
            cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit,
                        (int)n_own, BLOCK, 1, gp->factor, (int)gp->capacity, block, (int)n_own);
        for (size_t b = 0; sds && b < n_block; b++) {
            double variance = selves[b];
            for (size_t i = 0; i < n_own; i++)
                variance -= block[b * n_own + i] * block[b * n_own + i];
            sds[done + b] = gp->target_scale * sqrt(fmax(variance, 0));
        }
        done += n_block;
    }
    free(block);
    free(factors);
    free(row);
}
