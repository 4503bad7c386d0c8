/* gbdt.c: choosing link and penalty, then ridge, then trees on the residuals. */
#include "predict/gbdt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/ridge.h"

/* The columns are standardised and so is the target, so a penalty counts rows: with as many rows as
 * it a column's weight is halved. */
static const double penalties[] = {100, 30, 10, 3, 1, 0.3};
enum { N_PENALTIES = sizeof penalties / sizeof *penalties };

/* A product of columns is shrunk this much more than a column: there are many and few matter.
 * Fitted on 100 rows of Accel-NASBench, tau on the others is 0.49 with 1 and 0.82 with 400; fitted
 * on 4000 it makes no difference (docs/predictors.md). */
static const double pair_share = 400;

hwnas_status hwnas_sample_new(hwnas_sample **out, const hwnas_features *features,
                              hwnas_arch *const *archs, const double *values, const int *folds,
                              int n_folds, size_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_sample *s = hwnas_alloc(sizeof *s);
    size_t n_terms = features->n_terms, n_inputs = features->n_inputs;
    *s = (hwnas_sample){.n = n, .n_terms = n_terms, .n_inputs = n_inputs, .n_folds = n_folds};
    s->values = hwnas_alloc(n * sizeof *s->values);
    s->folds = hwnas_alloc(n * sizeof *s->folds);
    s->grams = hwnas_alloc((size_t)n_folds * sizeof *s->grams);
    s->shares = hwnas_alloc(n_terms * sizeof *s->shares);
    for (size_t k = 1; k < n_terms; k++)
        s->shares[k] = k <= features->n_columns ? 1 : pair_share;
    memcpy(s->values, values, n * sizeof *s->values);
    memcpy(s->folds, folds, n * sizeof *s->folds);
    TRY_OUT(hwnas_try_alloc((void **)&s->terms, n * n_terms * sizeof *s->terms, "the rows' terms"));
    TRY_OUT(
        hwnas_try_alloc((void **)&s->inputs, n * n_inputs * sizeof *s->inputs, "the rows' inputs"));
    for (int f = 0; f < n_folds; f++)
        TRY_OUT(hwnas_try_alloc((void **)&s->grams[f], n_terms * n_terms * sizeof(double),
                                "the ridge regression"));
    for (size_t i = 0; i < n; i++) {
        hwnas_features_terms(features, s->terms + i * n_terms, archs[i]);
        hwnas_features_inputs(features, s->inputs + i * n_inputs, archs[i]);
        hwnas_gram_add(s->grams[folds[i]], s->terms + i * n_terms, n_terms);
    }
    *out = s;
    s = NULL;
out:
    hwnas_sample_free(s);
    return status;
}

void hwnas_sample_free(hwnas_sample *s)
{
    if (!s)
        return;
    for (int f = 0; f < s->n_folds; f++)
        free(s->grams[f]);
    free(s->grams);
    free(s->shares);
    free(s->terms);
    free(s->inputs);
    free(s->values);
    free(s->folds);
    free(s);
}

/* Sums the folds' matrices, but for two of them (-1: none). */
static void sum_grams(double *out, const hwnas_sample *s, int without, int held_out)
{
    size_t n = s->n_terms * s->n_terms;
    memset(out, 0, n * sizeof *out);
    for (int f = 0; f < s->n_folds; f++)
        for (size_t i = 0; f != without && f != held_out && i < n; i++)
            out[i] += s->grams[f][i];
}

/* Sum over a fold's rows of terms times target on the link's scale. */
static void right_side(double *out, const hwnas_sample *s, const hwnas_link *link, int fold)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->folds[i] != fold)
            continue;
        double t = hwnas_link_apply(link, s->values[i]);
        const double *terms = s->terms + i * s->n_terms;
        for (size_t k = 0; k < s->n_terms; k++)
            out[k] += terms[k] * t;
    }
}

typedef struct choice {
    hwnas_link link;
    double penalty;
    double *right; /* of all folds but the one left out */
} choice;

/* Tries every link and penalty: each fold but `without` is estimated from the others, and the pair
 * whose estimates rank best is taken. The values on the link's scale are those of `n_kept` rows. */
static void choose(choice *out, const hwnas_sample *s, int without, const double *kept,
                   size_t n_kept)
{
    size_t n_terms = s->n_terms;
    hwnas_link links[HWNAS_N_LINKS];
    double *rights = hwnas_alloc(HWNAS_N_LINKS * (size_t)s->n_folds * n_terms * sizeof *rights);
    double *sums = hwnas_alloc(HWNAS_N_LINKS * n_terms * sizeof *sums);
    for (int l = 0; l < HWNAS_N_LINKS; l++) {
        hwnas_link_make(&links[l], l, kept, n_kept);
        for (int f = 0; f < s->n_folds; f++) {
            double *right = rights + (size_t)(l * s->n_folds + f) * n_terms;
            if (f == without)
                continue;
            right_side(right, s, &links[l], f);
            for (size_t k = 0; k < n_terms; k++)
                sums[(size_t)l * n_terms + k] += right[k];
        }
    }

    double *factor = hwnas_alloc(n_terms * n_terms * sizeof *factor);
    double *weights = hwnas_alloc(n_terms * sizeof *weights);
    double *estimates = hwnas_alloc(HWNAS_N_LINKS * n_kept * sizeof *estimates);
    double *known = hwnas_alloc(n_kept * sizeof *known);
    double best = -2;
    for (int p = 0; p < N_PENALTIES; p++) {
        size_t n_done = 0;
        for (int f = 0; f < s->n_folds; f++) {
            if (f == without)
                continue;
            sum_grams(factor, s, without, f);
            hwnas_ridge_factor(factor, n_terms, penalties[p], s->shares);
            size_t n_after = n_done;
            for (int l = 0; l < HWNAS_N_LINKS; l++) {
                const double *right = rights + (size_t)(l * s->n_folds + f) * n_terms;
                for (size_t k = 0; k < n_terms; k++)
                    weights[k] = sums[(size_t)l * n_terms + k] - right[k];
                hwnas_ridge_solve(factor, weights, n_terms);
                n_after = n_done;
                for (size_t i = 0; i < s->n; i++) {
                    if (s->folds[i] != f)
                        continue;
                    double slope, t = hwnas_dot(weights, s->terms + i * n_terms, n_terms);
                    known[n_after] = s->values[i];
                    estimates[(size_t)l * n_kept + n_after++] =
                        hwnas_link_invert(&links[l], t, &slope);
                }
            }
            n_done = n_after;
        }
        for (int l = 0; l < HWNAS_N_LINKS; l++) {
            double tau = hwnas_kendall_tau(estimates + (size_t)l * n_kept, known, n_kept);
            if (tau > best) {
                best = tau;
                out->link = links[l];
                out->penalty = penalties[p];
                memcpy(out->right, sums + (size_t)l * n_terms, n_terms * sizeof *sums);
            }
        }
    }
    free(rights);
    free(sums);
    free(factor);
    free(weights);
    free(estimates);
    free(known);
}

hwnas_status hwnas_gbdt_fit(hwnas_gbdt **out, const hwnas_sample *s, int without, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    size_t n_terms = s->n_terms, n_inputs = s->n_inputs, n = 0;
    double *kept = hwnas_alloc(s->n * sizeof *kept), *factor = NULL;
    float *residuals = hwnas_alloc(s->n * sizeof *residuals), *inputs = NULL;
    hwnas_gbdt *model = hwnas_alloc(sizeof *model);
    TRY_OUT(hwnas_try_alloc((void **)&inputs, s->n * n_inputs * sizeof *inputs, "the trees"));
    for (size_t i = 0; i < s->n; i++) {
        if (s->folds[i] == without)
            continue;
        memcpy(inputs + n * n_inputs, s->inputs + i * n_inputs, n_inputs * sizeof *inputs);
        kept[n++] = s->values[i];
    }

    choice chosen = {.right = hwnas_alloc(n_terms * sizeof *chosen.right)};
    model->n_terms = n_terms;
    model->n_inputs = n_inputs;
    model->weights = chosen.right;
    choose(&chosen, s, without, kept, n);
    model->link = chosen.link;
    model->penalty = chosen.penalty;
    TRY_OUT(hwnas_try_alloc((void **)&factor, n_terms * n_terms * sizeof *factor,
                            "the ridge regression"));
    sum_grams(factor, s, without, -1);
    hwnas_ridge_factor(factor, n_terms, model->penalty, s->shares);
    hwnas_ridge_solve(factor, model->weights, n_terms);

    n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->folds[i] != without)
            residuals[n++] = (float)(hwnas_link_apply(&model->link, s->values[i]) -
                                     hwnas_dot(model->weights, s->terms + i * n_terms, n_terms));
    TRY_OUT(hwnas_trees_fit(&model->trees, inputs, residuals, n, n_inputs, seed));
    *out = model;
    model = NULL;
out:
    hwnas_gbdt_free(model);
    free(kept);
    free(residuals);
    free(inputs);
    free(factor);
    return status;
}

void hwnas_gbdt_free(hwnas_gbdt *model)
{
    if (!model)
        return;
    free(model->weights);
    hwnas_trees_free(model->trees);
    free(model);
}

void hwnas_gbdt_predict(double *means, double *slopes, const hwnas_gbdt *model, const double *terms,
                        const float *inputs, size_t n)
{
    float corrections[HWNAS_GBDT_BATCH];
    assert(n <= HWNAS_GBDT_BATCH);
    hwnas_trees_predict(corrections, model->trees, inputs, n);
    for (size_t i = 0; i < n; i++) {
        double t = hwnas_dot(model->weights, terms + i * model->n_terms, model->n_terms);
        means[i] = hwnas_link_invert(&model->link, t + corrections[i], &slopes[i]);
    }
}
