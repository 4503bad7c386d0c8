/* gp_kernel.c: the kernel of the Gaussian process and its derivatives. The inner loops run over
 * rows along one column, over contiguous memory. */
#include <math.h>
#include <string.h>

#include "predict/gp_priv.h"

static const double root_5 = 2.2360679774997897;

/* What stands between row `row` and each of n rows: weighted squared distance, weighted mismatches
 * and inner product. */
static void compare(const hwnas_gp *gp, const double *parameters, const double *row, size_t n,
                    double *distances, double *mismatches, double *products)
{
    memset(distances, 0, n * sizeof *distances);
    memset(mismatches, 0, n * sizeof *mismatches);
    memset(products, 0, n * sizeof *products);
    for (size_t c = 0; c < gp->n_columns; c++) {
        double weight = exp(parameters[gp->columns[c].group]), value = row[c];
        const double *x = gp->x + c * gp->capacity;
        if (gp->columns[c].is_categorical) {
            for (size_t j = 0; j < n; j++)
                mismatches[j] += x[j] != value ? weight : 0;
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            distances[j] += weight * (x[j] - value) * (x[j] - value);
            products[j] += x[j] * value;
        }
    }
}

static double linear_variance(const hwnas_gp *gp, const double *parameters)
{
    bool is_linear = gp->has_linear && gp->n_continuous;
    return is_linear ? exp(parameters[gp->n_groups + HWNAS_GP_LINEAR]) / (double)gp->n_continuous
                     : 0;
}

void hwnas_gp_kernel(const hwnas_gp *gp, const double *parameters, double *out, const double *row,
                     size_t n, double *scratch)
{
    double *distances = scratch, *mismatches = distances + n, *products = mismatches + n;
    double amplitude = exp(parameters[gp->n_groups + HWNAS_GP_AMPLITUDE]);
    double linear = linear_variance(gp, parameters);
    compare(gp, parameters, row, n, distances, mismatches, products);
    for (size_t j = 0; j < n; j++) {
        double r = root_5 * sqrt(distances[j]);
        out[j] = amplitude * (1 + r + r * r / 3) * exp(-r - mismatches[j]) + linear * products[j];
    }
}

double hwnas_gp_kernel_self(const hwnas_gp *gp, const double *parameters, const double *row)
{
    double product = 0;
    for (size_t c = 0; c < gp->n_columns; c++)
        product += gp->columns[c].is_categorical ? 0 : row[c] * row[c];
    return exp(parameters[gp->n_groups + HWNAS_GP_AMPLITUDE]) +
           linear_variance(gp, parameters) * product;
}

void hwnas_gp_kernel_gradient(const hwnas_gp *gp, const double *parameters, double *gradient,
                              const double *weights, size_t i, double *scratch)
{
    size_t n_groups = gp->n_groups;
    double *groups = scratch, *distances = groups + n_groups * i, *mismatches = distances + i;
    double *products = mismatches + i;
    double amplitude = exp(parameters[n_groups + HWNAS_GP_AMPLITUDE]);
    double linear = linear_variance(gp, parameters), self = 0;
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
        double weight = exp(parameters[g]),
               *sum = gp->group_is_categorical[g] ? mismatches : distances;
        for (size_t j = 0; j < i; j++)
            sum[j] += weight * groups[g * i + j];
    }

    double by_amplitude = 0, by_linear = 0;
    for (size_t j = 0; j < i; j++) {
        double r = root_5 * sqrt(distances[j]), decay = amplitude * exp(-r - mismatches[j]);
        double matern = weights[j] * decay * (1 + r + r * r / 3);
        by_amplitude += matern;
        by_linear += weights[j] * products[j];
        mismatches[j] = -matern; /* from here on the kernel's derivative by either sum */
        distances[j] = -5.0 / 6 * weights[j] * decay * (1 + r);
    }
    gradient[n_groups + HWNAS_GP_AMPLITUDE] += by_amplitude + 0.5 * weights[i] * amplitude;
    gradient[n_groups + HWNAS_GP_LINEAR] += linear * (by_linear + 0.5 * weights[i] * self);
    for (size_t g = 0; g < n_groups; g++) {
        const double *slope = gp->group_is_categorical[g] ? mismatches : distances;
        double sum = 0;
        for (size_t j = 0; j < i; j++)
            sum += slope[j] * groups[g * i + j];
        gradient[g] += exp(parameters[g]) * sum;
    }
}
