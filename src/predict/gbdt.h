/* gbdt.h: the regression inside the kind `gbdt`: ridge, its scale and its penalty. */
#ifndef HWNAS_PREDICT_GBDT_H
#define HWNAS_PREDICT_GBDT_H

#include "predict/features.h"
#include "predict/link.h"
#include "predict/model.h"

typedef struct hwnas_ridge_choice {
    hwnas_link link;
    double penalty;
    double tau;  /* of cross-validated estimates */
    double rmse; /* of them, on the link's scale */
} hwnas_ridge_choice;

/* Tries every scale and penalty by cross-validation and takes the pair whose estimates rank best.
 */
HWNAS_CHECKED hwnas_status hwnas_ridge_choose(hwnas_ridge_choice *out,
                                              const hwnas_features *features,
                                              const hwnas_rows *rows, uint64_t seed);
/* The weights (features->n_terms) for a choice; residuals (rows->n) are on the link's scale. */
HWNAS_CHECKED hwnas_status hwnas_ridge_fit(double *weights, float *residuals,
                                           const hwnas_features *features,
                                           const hwnas_ridge_choice *choice,
                                           const hwnas_rows *rows);

#endif
