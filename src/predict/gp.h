/* gp.h: Gaussian process regression on LAPACK.
 *
 * A row is n_columns doubles; a column is categorical (codes that are equal or not) or continuous,
 * and columns of one group share a length-scale. On standardised columns and targets
 *
 *     k(x, y) = a Matern52(sqrt(sum_g w_g |x_g - y_g|^2)) exp(-sum_g w_g mismatches_g)
 *               + v (x . y) / n_continuous,
 *
 * with the first sum over continuous groups and the second over categorical ones: Matern 5/2 with
 * automatic relevance determination (Rasmussen and Williams, "Gaussian Processes for Machine
 * Learning", MIT Press 2006, eq. 4.17 and section 5.1), the transformed overlap kernel of
 * Wan et al., "Think Global and Act Local", ICML 2021, and a linear kernel (R&W eq. 4.24) that
 * extrapolates. The hyper-parameters maximise the log marginal likelihood (R&W eq. 2.30) plus log
 * priors, which keep a process with few rows and many columns smooth.
 *
 * Rows and targets are finite numbers. Everything is in the targets' unit outside, deterministic,
 * and in one thread. A process owns copies of its rows. */
#ifndef HWNAS_PREDICT_GP_H
#define HWNAS_PREDICT_GP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct hwnas_gp_column {
    bool is_categorical; /* the same for all columns of a group */
    size_t group;        /* groups are numbered from 0 without a gap */
} hwnas_gp_column;

/* The logarithms of the hyper-parameters: w of each group, then these three. */
enum { HWNAS_GP_AMPLITUDE, HWNAS_GP_LINEAR, HWNAS_GP_NOISE, HWNAS_GP_N_SHARED };

typedef struct hwnas_gp {
    size_t n_columns, n_groups, n_continuous;
    hwnas_gp_column *columns;
    bool *group_is_categorical;
    bool has_linear;
    double *parameters; /* n_groups + HWNAS_GP_N_SHARED */

    double *means, *scales; /* of the columns; 0 and 1 for categorical ones */
    double target_mean, target_scale;
    size_t n, capacity;
    double *x;           /* standardised, column by column: capacity * n_columns */
    double *targets;     /* standardised */
    double *factor;      /* lower Cholesky factor, LAPACK's order, capacity * capacity */
    double *half, *full; /* factor^-1 targets; (factor factor')^-1 targets */
} hwnas_gp;

hwnas_gp *hwnas_gp_new(const hwnas_gp_column *columns, size_t n_columns, bool has_linear);
void hwnas_gp_free(hwnas_gp *gp); /* accepts NULL */

/* Takes n > 0 rows (n * n_columns, row by row) and n targets in the place of those that it had, and
 * standardises by them. Keeps the hyper-parameters: O(n^3 / 3). HWNAS_E_MEMORY, HWNAS_E_LIBRARY. */
HWNAS_CHECKED hwnas_status hwnas_gp_set(hwnas_gp *gp, const double *rows, const double *targets,
                                        size_t n);

typedef struct hwnas_gp_learning {
    int n_starts;    /* the present hyper-parameters, then others; 0: 1 */
    int n_steps;     /* evaluations of the likelihood from each start; 0: 60 */
    size_t max_rows; /* learn from at most so many, drawn at random; 0: 1000 */
    uint64_t seed;   /* of the draw and of the other starts */
} hwnas_gp_learning;

/* Maximises the posterior over the hyper-parameters, then conditions on all rows. An evaluation is
 * O(n^3 + n^2 n_columns): about 20 ms for 400 rows and 30 columns. Never ends with less posterior
 * than it began with. */
HWNAS_CHECKED hwnas_status hwnas_gp_learn(hwnas_gp *gp, const hwnas_gp_learning *learning);

/* Appends a row by updating the factor, O(n^2); scales and hyper-parameters stay. */
HWNAS_CHECKED hwnas_status hwnas_gp_add(hwnas_gp *gp, const double *row, double target);

/* Mean and standard deviation of the function, without the noise of an observation, at n rows:
 * O(n (rows n_columns + rows^2)); `sds` may be NULL, which saves the square. */
void hwnas_gp_predict(const hwnas_gp *gp, double *means, double *sds, const double *rows, size_t n);
/* Standard deviation of an observation about the function. */
double hwnas_gp_noise(const hwnas_gp *gp);

/* Log marginal likelihood of the standardised targets plus log prior, at these hyper-parameters,
 * and (optional) its gradient; -INFINITY where the kernel matrix is not positive definite. */
HWNAS_CHECKED hwnas_status hwnas_gp_log_posterior(double *out, double *gradient, const hwnas_gp *gp,
                                                  const double *parameters);
/* The log prior alone, up to a constant; its gradient (optional) is added to what is there. */
double hwnas_gp_log_prior(const hwnas_gp *gp, const double *parameters, double *gradient);
/* The hyper-parameters that the priors find likeliest; a new process has them. */
void hwnas_gp_prior_centre(const hwnas_gp *gp, double *parameters);

#endif
