/* gbdt.h: the model behind the kind `gbdt`: trees boosted from a ridge regression.
 *
 * On the link's scale the estimate is a ridge regression in the choices and their pairwise
 * products, plus boosted trees fitted to what it leaves over. The regression carries what is smooth
 * with few rows (trees need many splits to say "twice as deep is better"), the trees what is not.
 */
#ifndef HWNAS_PREDICT_GBDT_H
#define HWNAS_PREDICT_GBDT_H

#include "predict/features.h"
#include "predict/link.h"
#include "predict/trees.h"

/* Rows with known results, encoded, dealt into folds. */
typedef struct hwnas_sample {
    size_t n, n_terms, n_inputs;
    double *terms; /* n * n_terms */
    float *inputs; /* n * n_inputs */
    double *values;
    int *folds;
    int n_folds;
    double **grams; /* of each fold's rows */
    double *shares; /* of each term in the penalty */
} hwnas_sample;

HWNAS_CHECKED hwnas_status hwnas_sample_new(hwnas_sample **out, const hwnas_features *features,
                                            hwnas_arch *const *archs, const double *values,
                                            const int *folds, int n_folds, size_t n);
void hwnas_sample_free(hwnas_sample *sample); /* accepts NULL */

typedef struct hwnas_gbdt {
    hwnas_link link;
    double penalty; /* of the ridge */
    size_t n_terms, n_inputs;
    double *weights; /* n_terms */
    hwnas_trees *trees;
} hwnas_gbdt;

/* Fits to the rows outside the fold `without` (-1: to all). Link and penalty are chosen by
 * cross-validation over the other folds, so the fold left out judges that choice too. */
HWNAS_CHECKED hwnas_status hwnas_gbdt_fit(hwnas_gbdt **out, const hwnas_sample *sample, int without,
                                          uint64_t seed);
void hwnas_gbdt_free(hwnas_gbdt *model); /* accepts NULL */

/* At most HWNAS_GBDT_BATCH rows: so many that a tree is read from memory once for all of them, so
 * few that their terms stay in the cache. `slopes`: how fast a mean moves with the link's scale;
 * turns a spread there into one here. */
enum { HWNAS_GBDT_BATCH = 64 };
void hwnas_gbdt_predict(double *means, double *slopes, const hwnas_gbdt *model, const double *terms,
                        const float *inputs, size_t n);

#endif
