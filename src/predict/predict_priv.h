/* predict_priv.h: what the kinds of predictors share inside this room. */
#ifndef HWNAS_PREDICT_PREDICT_PRIV_H
#define HWNAS_PREDICT_PREDICT_PRIV_H

#include <jansson.h>

#include "predict/predict.h"
#include "predict/sample.h"

/* One kind. A predictor of it embeds hwnas_predictor as its first member. */
typedef struct hwnas_predictor_kind_row {
    const char *name; /* "KIND:REST" on the command line */
    bool ranks_only;  /* its mean orders networks and is not an estimate of the target */
    bool heeds_stop;  /* its scores take long and look at `stop` */
    /* (optional) from what follows "KIND:" */
    hwnas_status (*open)(hwnas_predictor **out, const char *rest, const hwnas_space *space);
    hwnas_status (*score)(hwnas_estimate *out, hwnas_predictor *predictor,
                          const hwnas_arch *const *archs, size_t n);
    /* (optional; NULL: it trains nothing) all but `spent` */
    void (*trainings)(hwnas_trainings *out, const hwnas_predictor *predictor);
    void (*free)(hwnas_predictor *predictor);
} hwnas_predictor_kind_row;

extern const hwnas_predictor_kind_row hwnas_predictor_table, hwnas_predictor_fitted;
extern const hwnas_predictor_kind_row hwnas_predictor_proxy, hwnas_predictor_onnx,
    hwnas_predictor_command;

struct hwnas_predictor {
    const hwnas_predictor_kind_row *row;
    const hwnas_space *space; /* borrowed */
    const char *kind;         /* what a user calls it */
    char *target, *unit;
    const volatile sig_atomic_t *stop; /* NULL: never asked to */
    uint64_t n_asked;                  /* networks that the search has asked for before */
    hwnas_training_watch watch;
    hwnas_training_mode train_mode;
    double spent; /* seconds of trainings */
};

/* A fitted predictor from a file whose header has been checked; `path` is for messages. */
HWNAS_CHECKED hwnas_status hwnas_fitted_read(hwnas_predictor **out, json_t *file, const char *path,
                                             const hwnas_space *space);

/* What a predictor of kind `command` has learned; borrowed. */
const struct hwnas_results *hwnas_command_results(const hwnas_predictor *command);

/* The header that every fitted file begins with. */
#define HWNAS_PREDICTOR_FORMAT "hwnas predictor"
enum { HWNAS_PREDICTOR_VERSION = 2 };

/* A finished fit, as its file and its card tell it. Everything is borrowed. */
typedef struct hwnas_fit {
    const hwnas_fit_options *options;
    const hwnas_sample *sample;
    const hwnas_model_kind *kind;
    const hwnas_model *model;
    double low, high; /* of the target */
    int n_folds;
    hwnas_predictor_scores scores; /* cross-validated */
} hwnas_fit;

/* The texts of the two; yours to free(). */
char *hwnas_fit_text(const hwnas_fit *fit);
char *hwnas_card_text(const hwnas_fit *fit);

hwnas_predictor_scores hwnas_scores(const hwnas_estimate *estimates, const double *known, size_t n);

/* "%", "ms", ... from the suffix of a column's name; "" when the name says none. */
const char *hwnas_column_unit(const char *column);

#endif
