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
                              const double *weights, size_t i, double *scratch)
{
    size_t n_groups = gp->n_groups;
    double *groups = scratch, *distances = groups + n_groups * i, *mismatches = distances + i;
    double *products = mismatches + i;
    double amplitude = factors[n_groups + HWNAS_GP_AMPLITUDE];
    double linear = factors[n_groups + HWNAS_GP_LINEAR], self = 0;
    memset(scratch, 0, (n_groups + 3) * i * sizeof *scratch);
    for (size_t c = 0; c < gp->n_columns; c++) {
        const double *x = gp->x + c * gp->capacity;
        double value = x[i], *group = groups + gp->columns[c].group * i;
        if (gp->columns[c].is_categorical) {
            for (size_t j = 0; j < i; j++)
                group[j] += x[j] != value;
            continue;
        }
        self += value * value;
        for (size_t j = 0; j < i; j++) {
            group[j] += (x[j] - value) * (x[j] - value);
            products[j] += x[j] * value;
        }
    }
    for (size_t g = 0; g < n_groups; g++) {
        double weight = factors[g], *sum = gp->group_is_categorical[g] ? mismatches : distances;
        for (size_t j = 0; j < i; j++)
            sum[j] += weight * groups[g * i + j];
    }

    double by_amplitude = 0, by_linear = 0;
    hwnas_gp_loops_best()->derive(distances, mismatches, weights, amplitude, i);
    for (size_t j = 0; j < i; j++) {
        by_amplitude -= mismatches[j]; /* each of them minus the weighted kernel */
        by_linear += weights[j] * products[j];
    }
    gradient[n_groups + HWNAS_GP_AMPLITUDE] += by_amplitude + 0.5 * weights[i] * amplitude;
    gradient[n_groups + HWNAS_GP_LINEAR] += linear * (by_linear + 0.5 * weights[i] * self);
    for (size_t g = 0; g < n_groups; g++) {
        const double *slope = gp->group_is_categorical[g] ? mismatches : distances;
        double sum = 0;
        for (size_t j = 0; j < i; j++)
            sum += slope[j] * groups[g * i + j];
        gradient[g] += factors[g] * sum;
    }
}
