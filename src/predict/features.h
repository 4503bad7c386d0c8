/* features.h: an architecture as numbers, for fitted predictors.
 *
 * Two views of one encoding. *Terms* are what the ridge regression is linear in: a constant, one
 * standardised column for each gene (several where its values are symbols), and products of two of
 * those. *Inputs* are what the trees split on: the values themselves, sums over the positions of a
 * choice, and products of choices that are walked together, such as expansion times layers of a
 * stage. Everything follows from the space alone, so a file needs to keep only the names. */
#ifndef HWNAS_PREDICT_FEATURES_H
#define HWNAS_PREDICT_FEATURES_H

#include "space/arch.h"

typedef struct hwnas_pair {
    uint32_t a, b;
} hwnas_pair;

typedef struct hwnas_features {
    const hwnas_space *space; /* borrowed */
    hwnas_arena *arena;
    struct hwnas_gene_code *codes; /* one a gene */
    size_t n_columns;
    const char **column_names; /* "log e[1]", "se[3]", "op[2]=skip" */
    size_t n_pairs;
    hwnas_pair *pairs; /* of columns */
    size_t n_terms;    /* 1 + n_columns + n_pairs */
    size_t n_inputs;
    const char **input_names; /* "e[1]", "sum e", "e*l[1]" */
    size_t n_sums;
    const size_t *sums; /* choices */
    size_t n_products;
    hwnas_pair *products; /* choices */
} hwnas_features;

hwnas_features *hwnas_features_new(const hwnas_space *space);
void hwnas_features_free(hwnas_features *features); /* accepts NULL */

void hwnas_features_terms(const hwnas_features *features, double *out, const hwnas_arch *arch);
void hwnas_features_inputs(const hwnas_features *features, float *out, const hwnas_arch *arch);

/* Hash of the names of a space's choices and the labels of their values: what an encoding means.
 * 16 hex digits, yours to free(). */
char *hwnas_space_digest(const hwnas_space *space);

#endif
