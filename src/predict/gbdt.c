/* gbdt.c: choosing scale and penalty by cross-validated ridge regressions. */
#include "predict/gbdt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/ridge.h"

/* The columns are standardised and so is the target, so a penalty counts rows: with as many rows as
 * it a column's weight is halved. */
static const double penalties[] = {100, 30, 10, 3, 1, 0.3};
enum { N_PENALTIES = sizeof penalties / sizeof *penalties, N_FOLDS = 5 };

/* A product of columns is shrunk this much more than a column: there are many and few matter.
 * Fitted on 100 rows of Accel-NASBench, tau on the others is 0.49 with 1 and 0.82 with 400; fitted
 * on 4000 it makes no difference (docs/predictors.md). */
static const double pair_share = 400;

static double *list_shares(const hwnas_features *features)
{
    double *shares = hwnas_alloc(features->n_terms * sizeof *shares);
    for (size_t k = 1; k < features->n_terms; k++)
        shares[k] = k <= features->n_columns ? 1 : pair_share;
    return shares;
}

static hwnas_status list_terms(double **out, const hwnas_features *features, const hwnas_rows *rows)
{
    TRY(hwnas_try_alloc((void **)out, rows->n * features->n_terms * sizeof **out,
                        "the rows' terms"));
    for (size_t i = 0; i < rows->n; i++)
        hwnas_features_terms(features, *out + i * features->n_terms,
                             rows->columns + i * rows->encoding->n_columns);
    return HWNAS_OK;
}

/* Sum over the rows outside a fold (-1: all) of terms times target on the link's scale. */
static void right_side(double *out, const double *terms, size_t n_terms, const hwnas_rows *rows,
                       const hwnas_link *link, const int *folds, int without)
{
    memset(out, 0, n_terms * sizeof *out);
    for (size_t i = 0; i < rows->n; i++) {
        if (folds && folds[i] == without)
            continue;
        double t = hwnas_link_apply(link, rows->values[i]);
        for (size_t k = 0; k < n_terms; k++)
            out[k] += terms[i * n_terms + k] * t;
    }
}

hwnas_status hwnas_ridge_choose(hwnas_ridge_choice *out, const hwnas_features *features,
                                const hwnas_rows *rows, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    size_t n = rows->n, n_terms = features->n_terms, area = n_terms * n_terms;
    int n_folds = N_FOLDS, *folds = hwnas_alloc(n * sizeof *folds);
    hwnas_link links[HWNAS_N_LINKS];
    double *shares = list_shares(features), *terms = NULL, *grams = NULL;
    double *rights = hwnas_alloc(HWNAS_N_LINKS * n_terms * sizeof *rights);
    double *weights = hwnas_alloc(n_terms * sizeof *weights);
    double *estimates = hwnas_alloc(N_PENALTIES * HWNAS_N_LINKS * n * sizeof *estimates);
    double *errors = hwnas_alloc(N_PENALTIES * HWNAS_N_LINKS * sizeof *errors);
    TRY_OUT(list_terms(&terms, features, rows));
    TRY_OUT(hwnas_try_alloc((void **)&grams, 2 * area * sizeof *grams, "the ridge regression"));
    hwnas_rows_deal(folds, rows, n_folds, seed);
    for (int l = 0; l < HWNAS_N_LINKS; l++)
        hwnas_link_make(&links[l], l, rows->values, n);
    for (int fold = 0; fold < n_folds; fold++) {
        double *gram = grams, *factor = grams + area;
        memset(gram, 0, area * sizeof *gram);
        hwnas_gram_add(gram, terms, n, n_terms, folds, fold);
        for (int l = 0; l < HWNAS_N_LINKS; l++)
            right_side(rights + (size_t)l * n_terms, terms, n_terms, rows, &links[l], folds, fold);
        for (int p = 0; p < N_PENALTIES; p++) {
            memcpy(factor, gram, area * sizeof *factor);
            hwnas_ridge_factor(factor, n_terms, penalties[p], shares);
            for (int l = 0; l < HWNAS_N_LINKS; l++) {
                size_t pair = (size_t)(p * HWNAS_N_LINKS + l);
                memcpy(weights, rights + (size_t)l * n_terms, n_terms * sizeof *weights);
                hwnas_ridge_solve(factor, weights, n_terms);
                for (size_t i = 0; i < n; i++) {
                    if (folds[i] != fold)
                        continue;
                    double slope, t = hwnas_dot(weights, terms + i * n_terms, n_terms);
                    double e = t - hwnas_link_apply(&links[l], rows->values[i]);
                    estimates[pair * n + i] = hwnas_link_invert(&links[l], t, &slope);
                    errors[pair] += e * e / (double)n;
                }
            }
        }
    }
    out->tau = -2;
    for (int p = 0; p < N_PENALTIES; p++) {
        for (int l = 0; l < HWNAS_N_LINKS; l++) {
            size_t pair = (size_t)(p * HWNAS_N_LINKS + l);
            double tau = hwnas_kendall_tau(estimates + pair * n, rows->values, n);
            if (tau > out->tau)
                *out = (hwnas_ridge_choice){links[l], penalties[p], tau, sqrt(errors[pair])};
        }
    }
out:
    free(folds);
    free(shares);
    free(terms);
    free(grams);
    free(rights);
    free(weights);
    free(estimates);
    free(errors);
    return status;
}

hwnas_status hwnas_ridge_fit(double *weights, float *residuals, const hwnas_features *features,
                             const hwnas_ridge_choice *choice, const hwnas_rows *rows)
{
    hwnas_status status = HWNAS_OK;
    size_t n_terms = features->n_terms;
    double *shares = list_shares(features), *terms = NULL, *gram = NULL;
    TRY_OUT(list_terms(&terms, features, rows));
    TRY_OUT(
        hwnas_try_alloc((void **)&gram, n_terms * n_terms * sizeof *gram, "the ridge regression"));
    hwnas_gram_add(gram, terms, rows->n, n_terms, NULL, 0);
    hwnas_ridge_factor(gram, n_terms, choice->penalty, shares);
    right_side(weights, terms, n_terms, rows, &choice->link, NULL, -1);
    hwnas_ridge_solve(gram, weights, n_terms);
    for (size_t i = 0; i < rows->n; i++)
        residuals[i] = (float)(hwnas_link_apply(&choice->link, rows->values[i]) -
                               hwnas_dot(weights, terms + i * n_terms, n_terms));
out:
    free(shares);
    free(terms);
    free(gram);
    return status;
}
