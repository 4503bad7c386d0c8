/* gp_kernel.c: the kernel of the Gaussian process and its derivatives. The inner loops (gp_loops.c)
 * run over rows along one column, over contiguous memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/gp_loops.h"
#include "predict/gp_priv.h"

/* Rows that are gone through at once, so that their sums stay in the first cache. */
enum { CHUNK = 512 };

void hwnas_gp_factors(const hwnas_gp *gp, double *out, const double *parameters)
{
    for (size_t i = 0; i < gp->n_groups + HWNAS_GP_N_SHARED; i++)
        out[i] = exp(parameters[i]);
    double *linear = &out[gp->n_groups + HWNAS_GP_LINEAR];
    *linear = gp->has_linear && gp->n_continuous ? *linear / (double)gp->n_continuous : 0;
}

/* What the kernel sums up over the columns, from a standardised row to `length` of the process's.
 * `products` (optional) do not depend on the hyper-parameters. */
static void add_columns(const hwnas_gp *gp, const double *factors, double *distances,
                        double *mismatches, double *products, const double *row, size_t first,
                        size_t length)
{
    const hwnas_gp_loops *loops = hwnas_gp_loops_best();
    for (size_t c = 0; c < gp->n_columns; c++) {
        const double *x = gp->x + c * gp->capacity + first;
        const double weight = factors[gp->columns[c].group];
        if (gp->columns[c].is_categorical) {
            loops->add_mismatches(mismatches, x, row[c], weight, length);
            continue;
        }
        loops->add_distances(distances, x, row[c], weight, length);
        if (products)
            loops->add_products(products, x, row[c], length);
    }
}

void hwnas_gp_kernel(const hwnas_gp *gp, const double *factors, double *out, const double *row,
                     size_t n)
{
    const double amplitude = factors[gp->n_groups + HWNAS_GP_AMPLITUDE];
    const double linear = factors[gp->n_groups + HWNAS_GP_LINEAR];
    double distances[CHUNK], mismatches[CHUNK], products[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        memset(distances, 0, sizeof distances);
        memset(mismatches, 0, sizeof mismatches);
        memset(products, 0, sizeof products);
        add_columns(gp, factors, distances, mismatches, products, row, first, length);
        hwnas_gp_loops_best()->finish(out + first, distances, mismatches, products, amplitude,
                                      linear, length);
    }
}

double hwnas_gp_kernel_self(const hwnas_gp *gp, const double *factors, const double *row)
{
    double product = 0;
    for (size_t c = 0; c < gp->n_columns; c++)
        product += gp->columns[c].is_categorical ? 0 : row[c] * row[c];
    return factors[gp->n_groups + HWNAS_GP_AMPLITUDE] +
           factors[gp->n_groups + HWNAS_GP_LINEAR] * product;
}

/* -- between all rows, again and again -- */

hwnas_status hwnas_gp_sums_make(hwnas_gp_sums *out, const hwnas_gp *gp)
{
    const size_t n = gp->n;
    hwnas_gp_sums sums = {0};
    TRY(hwnas_try_alloc((void **)&sums.products, 3 * n * n * sizeof *sums.products,
                        "the matrix of a Gaussian process"));
    sums.distances = sums.products + n * n;
    sums.mismatches = sums.distances + n * n;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < gp->n_columns; c++) {
            const double *x = gp->x + c * gp->capacity;
            if (!gp->columns[c].is_categorical)
                hwnas_gp_loops_best()->add_products(sums.products + i * n, x, x[i], i);
        }
    *out = sums;
    return HWNAS_OK;
}

void hwnas_gp_sums_done(hwnas_gp_sums *sums)
{
    free(sums->products);
    *sums = (hwnas_gp_sums){0};
}

void hwnas_gp_kernel_row(const hwnas_gp *gp, const double *factors, double *out,
                         hwnas_gp_sums *sums, const double *row, size_t i)
{
    double *distances = sums->distances + i * gp->n, *mismatches = sums->mismatches + i * gp->n;
    memset(distances, 0, i * sizeof *distances);
    memset(mismatches, 0, i * sizeof *mismatches);
    add_columns(gp, factors, distances, mismatches, NULL, row, 0, i);
    hwnas_gp_loops_best()->finish(out, distances, mismatches, sums->products + i * gp->n,
                                  factors[gp->n_groups + HWNAS_GP_AMPLITUDE],
                                  factors[gp->n_groups + HWNAS_GP_LINEAR], i);
}

void hwnas_gp_kernel_gradient(const hwnas_gp *gp, const double *factors, double *gradient,
                              hwnas_gp_sums *sums, const double *weights, size_t i)
{
    const hwnas_gp_loops *loops = hwnas_gp_loops_best();
    const size_t n_groups = gp->n_groups;
    const double amplitude = factors[n_groups + HWNAS_GP_AMPLITUDE];
    const double linear = factors[n_groups + HWNAS_GP_LINEAR];
    double *distances = sums->distances + i * gp->n, *mismatches = sums->mismatches + i * gp->n;
    double by_amplitude = 0, self = 0;
    loops->derive(distances, mismatches, weights, amplitude, i);
    for (size_t j = 0; j < i; j++)
        by_amplitude -= mismatches[j]; /* each of them minus the weighted kernel */
    for (size_t c = 0; c < gp->n_columns; c++) {
        const double *x = gp->x + c * gp->capacity;
        const size_t group = gp->columns[c].group;
        self += gp->columns[c].is_categorical ? 0 : x[i] * x[i];
        gradient[group] += factors[group] * (gp->columns[c].is_categorical
                                                 ? loops->sum_mismatches(mismatches, x, x[i], i)
                                                 : loops->sum_distances(distances, x, x[i], i));
    }
    const double by_linear = loops->sum_products(weights, sums->products + i * gp->n, i);
    gradient[n_groups + HWNAS_GP_AMPLITUDE] += by_amplitude + 0.5 * weights[i] * amplitude;
    gradient[n_groups + HWNAS_GP_LINEAR] += linear * (by_linear + 0.5 * weights[i] * self);
}
