/* gp_kernel.c: the kernel of the Gaussian process and its derivatives. The inner loops (gp_loops.c)
 * run over rows along one column, over contiguous memory. */
#include <math.h>
#include <string.h>

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

void hwnas_gp_kernel(const hwnas_gp *gp, const double *factors, double *out, const double *row,
                     size_t n)
{
    const hwnas_gp_loops *loops = hwnas_gp_loops_best();
    const double amplitude = factors[gp->n_groups + HWNAS_GP_AMPLITUDE];
    const double linear = factors[gp->n_groups + HWNAS_GP_LINEAR];
    double distances[CHUNK], mismatches[CHUNK], products[CHUNK];
    for (size_t first = 0; first < n; first += CHUNK) {
        const size_t length = n - first < CHUNK ? n - first : CHUNK;
        memset(distances, 0, sizeof distances);
        memset(mismatches, 0, sizeof mismatches);
        memset(products, 0, sizeof products);
        for (size_t c = 0; c < gp->n_columns; c++) {
            const double *x = gp->x + c * gp->capacity + first;
            const double weight = factors[gp->columns[c].group];
            if (gp->columns[c].is_categorical)
                loops->add_mismatches(mismatches, x, row[c], weight, length);
            else
                loops->add_distances(distances, products, x, row[c], weight, length);
        }
        loops->finish(out + first, distances, mismatches, products, amplitude, linear, length);
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

void hwnas_gp_kernel_gradient(const hwnas_gp *gp, const double *factors, double *gradient,
                              const double *weights, size_t i)
{
    const hwnas_gp_loops *loops = hwnas_gp_loops_best();
    const size_t n_groups = gp->n_groups;
    const double amplitude = factors[n_groups + HWNAS_GP_AMPLITUDE];
    const double linear = factors[n_groups + HWNAS_GP_LINEAR];
    double distances[CHUNK], mismatches[CHUNK], products[CHUNK];
    double by_amplitude = 0, by_linear = 0, self = 0;
    for (size_t c = 0; c < gp->n_columns; c++) {
        const double value = gp->x[c * gp->capacity + i];
        self += gp->columns[c].is_categorical ? 0 : value * value;
    }
    for (size_t first = 0; first < i; first += CHUNK) {
        const size_t length = i - first < CHUNK ? i - first : CHUNK;
        memset(distances, 0, length * sizeof *distances);
        memset(mismatches, 0, length * sizeof *mismatches);
        memset(products, 0, length * sizeof *products);
        for (size_t c = 0; c < gp->n_columns; c++) {
            const double *x = gp->x + c * gp->capacity;
            const double weight = factors[gp->columns[c].group];
            if (gp->columns[c].is_categorical)
                loops->add_mismatches(mismatches, x + first, x[i], weight, length);
            else
                loops->add_distances(distances, products, x + first, x[i], weight, length);
        }
        loops->derive(distances, mismatches, weights + first, amplitude, length);
        for (size_t j = 0; j < length; j++)
            by_amplitude -= mismatches[j]; /* each of them minus the weighted kernel */
        by_linear += loops->sum_products(weights + first, products, length);
        for (size_t c = 0; c < gp->n_columns; c++) {
            const double *x = gp->x + c * gp->capacity;
            const size_t group = gp->columns[c].group;
            gradient[group] +=
                factors[group] * (gp->columns[c].is_categorical
                                      ? loops->sum_mismatches(mismatches, x + first, x[i], length)
                                      : loops->sum_distances(distances, x + first, x[i], length));
        }
    }
    gradient[n_groups + HWNAS_GP_AMPLITUDE] += by_amplitude + 0.5 * weights[i] * amplitude;
    gradient[n_groups + HWNAS_GP_LINEAR] += linear * (by_linear + 0.5 * weights[i] * self);
}
