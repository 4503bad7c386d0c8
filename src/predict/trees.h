/* trees.h: gradient-boosted regression trees. XGBoost fits them (Chen and Guestrin, KDD 2016); the
 * walk down to the leaves is ours. */
#ifndef HWNAS_PREDICT_TREES_H
#define HWNAS_PREDICT_TREES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct hwnas_trees hwnas_trees;

/* The parameters that XGBoost is given, up to a NULL name; docs/predictors.md says how they were
 * found. */
typedef struct hwnas_trees_setting {
    const char *name, *value;
} hwnas_trees_setting;
extern const hwnas_trees_setting hwnas_trees_settings[];
enum { HWNAS_N_TREES = 150 };

/* `inputs` is n rows of n_inputs. One thread; the same rows and seed give the same trees. */
HWNAS_CHECKED hwnas_status hwnas_trees_fit(hwnas_trees **out, const float *inputs,
                                           const float *targets, size_t n, size_t n_inputs,
                                           uint64_t seed);
/* Reads a model as XGBoost writes it. One that is damaged is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_trees_load(hwnas_trees **out, const json_t *model,
                                            size_t n_inputs);
void hwnas_trees_free(hwnas_trees *trees); /* accepts NULL */

/* Those that were fitted: one thread at a time, and quick for many rows only. */
void hwnas_trees_predict(float *out, const hwnas_trees *trees, const float *inputs, size_t n);

/* Of XGBoost's JSON model of fitted trees what hwnas_trees_load() reads: a tenth. A new reference.
 */
json_t *hwnas_trees_write(const hwnas_trees *trees);

#endif
