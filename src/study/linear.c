#include "study/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "predict/ridge.h"

enum { FOLDS = 5, N_FIXED = 3 }; /* the constant, MACs, params */
static const double PENALTY = 1;

struct hwnas_linear {
    const hwnas_space *space;
    size_t n_terms;
    double *weights;
    double error;
};

static size_t count_terms(const hwnas_space *space)
{
    size_t n = N_FIXED;
    for (size_t i = 0; i < space->n_genes; i++)
        n += space->genes[i].n_values;
    return n;
}

static void write_terms(double *out, const hwnas_space *space, const hwnas_arch *arch, double macs,
                        double params)
{
    out[0] = 1;
    out[1] = log(1 + macs);
    out[2] = log(1 + params);
    double *at = out + N_FIXED;
    for (size_t i = 0; i < space->n_genes; i++) {
        memset(at, 0, space->genes[i].n_values * sizeof *at);
        if (hwnas_arch_is_active(arch, i))
            at[arch->genes[i]] = 1;
        at += space->genes[i].n_values;
    }
}

/* Weights from the rows of all folds but `left_out` (-1: from all). */
static void solve(double *weights, const double *terms, const double *targets, size_t n,
                  size_t n_terms, int left_out)
{
    double *gram = hwnas_alloc(n_terms * n_terms * sizeof *gram);
    double *shares = hwnas_alloc(n_terms * sizeof *shares);
    memset(weights, 0, n_terms * sizeof *weights);
    for (size_t r = 0; r < n; r++) {
        if ((int)(r % FOLDS) == left_out)
            continue;
        const double *row = terms + r * n_terms;
        hwnas_gram_add(gram, row, 1, n_terms, NULL, 0);
        for (size_t i = 0; i < n_terms; i++)
            weights[i] += row[i] * targets[r];
    }
    for (size_t i = 0; i < n_terms; i++)
        shares[i] = i < N_FIXED ? 1e-6 : 1; /* what every network has is not shrunk */
    hwnas_ridge_factor(gram, n_terms, PENALTY, shares);
    hwnas_ridge_solve(gram, weights, n_terms);
    free(gram);
    free(shares);
}

static double cross_validate(const double *terms, const double *targets, size_t n, size_t n_terms)
{
    double *weights = hwnas_alloc(n_terms * sizeof *weights);
    double *errors = hwnas_alloc(n * sizeof *errors);
    for (int fold = 0; fold < FOLDS; fold++) {
        solve(weights, terms, targets, n, n_terms, fold);
        for (size_t r = (size_t)fold; r < n; r += FOLDS)
            errors[r] = fabs(exp(hwnas_dot(weights, terms + r * n_terms, n_terms) - targets[r]) - 1);
    }
    hwnas_sort(errors, n);
    double median = hwnas_quantile(errors, n, 0.5);
    free(errors);
    free(weights);
    return median;
}

hwnas_linear *hwnas_linear_fit(const hwnas_arch *const *archs, const double *macs,
                                     const double *params, const double *values, size_t n)
{
    if (n < HWNAS_LINEAR_LEAST)
        return NULL;
    hwnas_linear *s = hwnas_alloc(sizeof *s);
    s->space = archs[0]->space;
    s->n_terms = count_terms(s->space);
    s->weights = hwnas_alloc(s->n_terms * sizeof *s->weights);
    double *terms = hwnas_alloc(n * s->n_terms * sizeof *terms);
    double *targets = hwnas_alloc(n * sizeof *targets);
    for (size_t r = 0; r < n; r++) {
        write_terms(terms + r * s->n_terms, s->space, archs[r], macs[r], params[r]);
        targets[r] = log(values[r]);
    }
    s->error = cross_validate(terms, targets, n, s->n_terms);
    solve(s->weights, terms, targets, n, s->n_terms, -1);
    free(terms);
    free(targets);
    return s;
}

void hwnas_linear_free(hwnas_linear *s)
{
    if (!s)
        return;
    free(s->weights);
    free(s);
}

double hwnas_linear_predict(const hwnas_linear *s, const hwnas_arch *arch, double macs,
                               double params)
{
    double *terms = hwnas_alloc(s->n_terms * sizeof *terms);
    write_terms(terms, s->space, arch, macs, params);
    double value = exp(hwnas_dot(s->weights, terms, s->n_terms));
    free(terms);
    return value;
}

double hwnas_linear_error(const hwnas_linear *s)
{
    return s->error;
}
