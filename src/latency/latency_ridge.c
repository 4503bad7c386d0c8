#include "latency/latency_ridge.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

enum { REWEIGHTS = 4, N_SCALES = 3 };
static const double FIRST_SD = 0.1, LEAST_SD = 1e-3;
static const double scales[N_SCALES] = {1.0 / 3, 1, 3}; /* of the priors, */
static const double SCALE_SD = 1.0986; /* whose logarithm is as likely as a normal one of this sd */

double hwnas_robust_sd(double *values, size_t n)
{
    if (!n)
        return 0;
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i]);
    hwnas_sort(values, n);
    return 1.4826 * hwnas_quantile(values, n, 0.5);
}

double hwnas_posterior_variance(const hwnas_posterior *posterior, const double *x)
{
    const size_t d = posterior->d;
    double sum = 0;
    for (size_t a = 0; a < d; a++)
        sum += x[a] * cblas_ddot((int)d, posterior->covariance + a * d, 1, x, 1);
    return sum;
}

/* ---- Under given priors ---- */

/* What is to be fitted. */
typedef struct problem {
    size_t n, d;
    const double *terms, *targets;
    const double *priors;
    double *precisions; /* of the targets: w / sd^2 */
} problem;

typedef struct solution {
    double *coefficients;
    double *matrix; /* d x d: the lower factor of P, and then its inverse */
    double sd, log_evidence;
} solution;

static void solve(solution *s, const problem *p)
{
    const size_t d = p->d;
    memset(s->matrix, 0, d * d * sizeof *s->matrix);
    memset(s->coefficients, 0, d * sizeof *s->coefficients);
    for (size_t i = 0; i < p->n; i++)
        for (size_t a = 0; a < d; a++) {
            const double w = p->precisions[i] * p->terms[i * d + a];
            s->coefficients[a] += w * p->targets[i];
            for (size_t b = 0; b <= a && w != 0; b++)
                s->matrix[a * d + b] += w * p->terms[i * d + b];
        }
    for (size_t a = 0; a < d; a++)
        s->matrix[a * d + a] += 1 / (p->priors[a] * p->priors[a]);
    /* Positive definite by the priors. */
    LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (int)d, s->matrix, (int)d);
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', (int)d, 1, s->matrix, (int)d, s->coefficients, 1);
}

/* What is left of target i. */
static double left_of(const problem *p, const solution *s, size_t i)
{
    return p->targets[i] - cblas_ddot((int)p->d, p->terms + i * p->d, 1, s->coefficients, 1);
}

/* x' P^-1 x by the factor; `scratch`: d. */
static double variance_of(const problem *p, const solution *s, size_t i, double *scratch)
{
    const int d = (int)p->d;
    memcpy(scratch, p->terms + i * p->d, p->d * sizeof *scratch);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, d, s->matrix, d, scratch, 1);
    return cblas_ddot(d, scratch, 1, scratch, 1);
}

/* Logarithm of the probability of the targets, the coefficients integrated out, but for a constant.
 */
static double evidence(const problem *p, const solution *s)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double left = left_of(p, s, i);
        sum += 0.5 * (log(p->precisions[i]) - p->precisions[i] * left * left);
    }
    for (size_t k = 0; k < p->d; k++) {
        const double relative = s->coefficients[k] / p->priors[k];
        sum -= log(p->priors[k] * s->matrix[k * p->d + k]) + 0.5 * relative * relative;
    }
    return sum;
}

static void invert(solution *s, size_t d)
{
    LAPACKE_dpotri(LAPACK_ROW_MAJOR, 'L', (int)d, s->matrix, (int)d);
    for (size_t a = 0; a < d; a++)
        for (size_t b = 0; b < a; b++)
            s->matrix[b * d + a] = s->matrix[a * d + b];
}

static void fit(solution *s, problem *p)
{
    double *left = hwnas_alloc(p->n * sizeof *left), *sizes = hwnas_alloc(p->n * sizeof *sizes);
    double *scratch = hwnas_alloc(p->d * sizeof *scratch);
    for (size_t i = 0; i < p->n; i++)
        p->precisions[i] = 1 / (FIRST_SD * FIRST_SD);
    for (int round = 0; round < REWEIGHTS; round++) {
        solve(s, p);
        s->log_evidence = evidence(p, s);
        for (size_t i = 0; i < p->n; i++) {
            const double leverage = p->precisions[i] * variance_of(p, s, i, scratch);
            left[i] = left_of(p, s, i) / sqrt(fmax(1 - leverage, 0.01));
        }
        memcpy(sizes, left, p->n * sizeof *sizes);
        s->sd = fmax(hwnas_robust_sd(sizes, p->n), LEAST_SD);
        for (size_t i = 0; i < p->n; i++)
            p->precisions[i] = 1 / (s->sd * s->sd * fmax(1, fabs(left[i]) / (2 * s->sd)));
    }
    invert(s, p->d);
    free(left);
    free(sizes);
    free(scratch);
}

/* ---- Under all of them ---- */

/* By evidence and by how likely their scales are; their sum is 1. */
static void weigh(double *weights, const solution *solutions)
{
    double best = -INFINITY, sum = 0;
    for (int s = 0; s < N_SCALES; s++) {
        weights[s] = solutions[s].log_evidence - 0.5 * pow(log(scales[s]) / SCALE_SD, 2);
        best = fmax(best, weights[s]);
    }
    for (int s = 0; s < N_SCALES; s++)
        sum += weights[s] = exp(weights[s] - best);
    for (int s = 0; s < N_SCALES; s++)
        weights[s] /= sum;
}

/* Mean and covariance of the mixture; the solutions' coefficients become differences from the mean.
 * Returns its sd. */
static double mix(double *out, hwnas_posterior *posterior, solution *solutions)
{
    const int d = (int)posterior->d;
    double weights[N_SCALES], variance = 0;
    weigh(weights, solutions);
    memset(out, 0, posterior->d * sizeof *out);
    for (int s = 0; s < N_SCALES; s++) {
        cblas_daxpy(d, weights[s], solutions[s].coefficients, 1, out, 1);
        cblas_daxpy(d * d, weights[s], solutions[s].matrix, 1, posterior->covariance, 1);
        variance += weights[s] * solutions[s].sd * solutions[s].sd;
    }
    for (int s = 0; s < N_SCALES; s++) {
        double *off = solutions[s].coefficients;
        cblas_daxpy(d, -1, out, 1, off, 1);
        cblas_dger(CblasRowMajor, d, d, weights[s], off, 1, off, 1, posterior->covariance, d);
    }
    return sqrt(variance);
}

double hwnas_ridge(double *out, hwnas_posterior *posterior, const double *terms,
                   const double *targets, const double *priors, size_t n, size_t d)
{
    solution solutions[N_SCALES];
    double *scaled = hwnas_alloc(d * sizeof *scaled);
    problem p = {.n = n, .d = d, .terms = terms, .targets = targets, .priors = scaled};
    p.precisions = hwnas_alloc(n * sizeof *p.precisions);
    for (int s = 0; s < N_SCALES; s++) {
        solutions[s] = (solution){.coefficients = hwnas_alloc(d * sizeof(double)),
                                  .matrix = hwnas_alloc(d * d * sizeof(double))};
        for (size_t k = 0; k < d; k++)
            scaled[k] = priors[k] * (k + 1 < d ? scales[s] : 1);
        fit(&solutions[s], &p);
    }
    free(posterior->covariance);
    *posterior = (hwnas_posterior){.d = d, .covariance = hwnas_alloc(d * d * sizeof(double))};
    const double sd = mix(out, posterior, solutions);
    for (int s = 0; s < N_SCALES; s++) {
        free(solutions[s].coefficients);
        free(solutions[s].matrix);
    }
    free(scaled);
    free(p.precisions);
    return sd;
}
