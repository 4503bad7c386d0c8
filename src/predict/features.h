/* features.h: a row of an encoding as a ridge regression and boosted trees want it.
 *
 * *Terms* are what the regression is linear in: a constant; a standardised column for each
 * continuous column of the encoding, and an indicator for each level of a categorical one; products
 * of two columns of genes. *Inputs* are what the trees split on: continuous columns, indicators,
 * and products of numbers that are walked together, such as expansion times layers of a stage. */
#ifndef HWNAS_PREDICT_FEATURES_H
#define HWNAS_PREDICT_FEATURES_H

#include "predict/feature_encoding.h"

typedef struct hwnas_pair {
    uint32_t a, b;
} hwnas_pair;

typedef struct hwnas_features {
    const hwnas_feature_encoding *encoding; /* borrowed */
    bool has_facts;                 /* sees the encoding's facts, not only its genes and sums */
    hwnas_arena *arena;
    struct hwnas_indicator *indicators; /* one a column of the regression */
    size_t n_columns;                   /* of the regression */
    double *means, *scales;             /* of those, from the rows; 1 / 0 counts as 0 */
    size_t n_pairs;
    hwnas_pair *pairs; /* of columns of the regression */
    size_t n_terms;    /* 1 + n_columns + n_pairs */
    size_t n_products;
    hwnas_pair *products; /* of columns of the encoding */
    size_t n_inputs;
} hwnas_features;

/* Means and scales are 0 and 1 until hwnas_features_standardise(), over rows of the encoding. */
hwnas_features *hwnas_features_new(const hwnas_feature_encoding *encoding, bool has_facts);
void hwnas_features_standardise(hwnas_features *features, const double *rows, size_t n);
void hwnas_features_free(hwnas_features *features); /* accepts NULL */

void hwnas_features_terms(const hwnas_features *features, double *out, const double *row);
void hwnas_features_inputs(const hwnas_features *features, float *out, const double *row);

#endif
