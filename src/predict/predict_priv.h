/* predict_priv.h: what the kinds of predictors share inside this room. */
#ifndef HWNAS_PREDICT_PREDICT_PRIV_H
#define HWNAS_PREDICT_PREDICT_PRIV_H

#include <jansson.h>

#include "predict/predict.h"
#include "predict/sample.h"

extern const hwnas_predictor_ops hwnas_predictor_table, hwnas_predictor_fitted;
extern const hwnas_predictor_ops hwnas_predictor_proxy, hwnas_predictor_onnx,
    hwnas_predictor_command, hwnas_predictor_samples, hwnas_predictor_supernet;
/* Opens predictors that are of the kind `command` from then on. */
extern const hwnas_predictor_ops hwnas_predictor_train_recipe;

/* A fitted predictor from a file whose header has been checked; `path` is for messages. */
HWNAS_CHECKED hwnas_status hwnas_fitted_read(hwnas_predictor **out, json_t *file, const char *path,
                                             const hwnas_space *space);

/* What a predictor of kind `command` has learned; borrowed. */
const struct hwnas_results *hwnas_command_results(const hwnas_predictor *command);

/* Whether the last score of a `command` was of a training that was ended after *n of *n_all epochs.
 */
bool hwnas_command_was_stopped(int64_t *n, int64_t *n_all, const hwnas_predictor *command);

/* Before a `supernet` is trained: whether it can be. */
HWNAS_CHECKED hwnas_status hwnas_supernet_check(hwnas_predictor *supernet);

/* The weights of a `supernet`: hwnas_predictor_weights(). */
void hwnas_supernet_weights(char **file, char **hash, const hwnas_predictor *supernet);

/* Before the first training of a `command`: whether it can begin. */
HWNAS_CHECKED hwnas_status hwnas_command_check(hwnas_predictor *command);

/* The header that every fitted file begins with. */
#define HWNAS_PREDICTOR_FORMAT "hwnas predictor"
enum { HWNAS_PREDICTOR_VERSION = 2 };

/* A finished fit, as its file and its card tell it. Everything is borrowed. */
typedef struct hwnas_fit {
    const hwnas_fit_options *options;
    const hwnas_sample *sample;
    const hwnas_model_kind *kind;
    const hwnas_model *model;
    const json_t *extrapolation; /* extrapolation.h; NULL: for any space */
    double low, high;            /* of the target */
    int n_folds;
    hwnas_predictor_scores scores; /* cross-validated */
} hwnas_fit;

/* [least, greatest] of each fact in rows, in the order of the encoding's columns; a new reference.
 */
json_t *hwnas_fact_ranges(const hwnas_rows *rows);

/* The texts of the two; yours to free(). */
char *hwnas_fit_text(const hwnas_fit *fit);
char *hwnas_card_text(const hwnas_fit *fit);

hwnas_predictor_scores hwnas_scores(const hwnas_estimate *estimates, const double *known, size_t n);

/* "%", "ms", ... from the suffix of a column's name; "" when the name says none. */
const char *hwnas_column_unit(const char *column);

#endif
