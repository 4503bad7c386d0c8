/* model.h: what a fitted predictor computes: one row of a table for each kind.
 *
 * A model goes from rows of an encoding to estimates in the target's unit. It knows no file and no
 * architecture; predict_fitted.c reads and scores with it, fit.c judges it. */
#ifndef HWNAS_PREDICT_MODEL_H
#define HWNAS_PREDICT_MODEL_H

#include <jansson.h>

#include "base/str.h"
#include "predict/feature_encoding.h"
#include "predict/link.h"
#include "predict/predict.h"

/* Encoded architectures with known results. */
typedef struct hwnas_rows {
    const hwnas_feature_encoding *encoding; /* borrowed */
    size_t n;
    double *columns;  /* n * encoding->n_columns */
    double *values;   /* finite */
    size_t *networks; /* equal for rows of one network */
} hwnas_rows;

/* The rows for which is_kept; release with hwnas_rows_done(). */
hwnas_rows hwnas_rows_keep(const hwnas_rows *rows, const bool *is_kept);
void hwnas_rows_done(hwnas_rows *rows);
/* Deals networks into folds of equal size, at random: out[row] is 0 to n_folds - 1. */
void hwnas_rows_deal(int *out, const hwnas_rows *rows, int n_folds, uint64_t seed);
size_t hwnas_rows_networks(const hwnas_rows *rows); /* how many different ones */

typedef struct hwnas_model_kind hwnas_model_kind;

/* A model of a kind embeds this as its first member. */
typedef struct hwnas_model {
    const hwnas_model_kind *kind;
    const hwnas_feature_encoding *encoding; /* borrowed */
    bool has_facts;                 /* looks at the encoding's facts, which cost a graph */
    double spread; /* what its deviations are multiplied by, so that 90 % intervals hold 90 % */
} hwnas_model;

struct hwnas_model_kind {
    const char *name;
    const char *help;
    /* Estimates many networks in the time that one graph takes: where it looks at choices alone,
     * nobody builds their graphs to see whether their sizes are in the domain (domain.h). */
    bool is_quick;
    /* Whether it says something of its own on rows of an encoding; NULL: always. */
    bool (*suits)(const hwnas_feature_encoding *encoding);
    /* Fits to rows of at least three networks with different values. With `like` (optional, of the
     * same kind) its choices are taken over, scale and
     * hyper-parameters, and only weights are fitted. */
    hwnas_status (*fit)(hwnas_model **out, const hwnas_rows *rows, const hwnas_model *like,
                        uint64_t seed);
    /* For a kind that estimates each row from the others anyway: hwnas_model_fit(); its fit() needs
     * `like`. */
    hwnas_status (*fit_crossed)(hwnas_model **out, hwnas_estimate *crossed, const hwnas_rows *rows,
                                uint64_t seed);
    /* Estimates of single results, noise included, for n rows of the encoding, before `spread`. The
     * same whatever rows are beside one. */
    void (*predict)(hwnas_estimate *out, const hwnas_model *model, const double *columns, size_t n);
    /* How much the target changes at a value for a step on the scale on which the model is linear;
     * NaN: no network has that value on it. */
    double (*slope)(const hwnas_model *model, double value);
    /* What a file keeps; a new reference. */
    json_t *(*write)(const hwnas_model *model);
    /* The way back; what is damaged is HWNAS_E_INPUT without a place. */
    hwnas_status (*read)(hwnas_model **out, const json_t *file, const hwnas_feature_encoding *encoding);
    /* A sentence or two for the card; numbers of `unit`. */
    void (*describe)(const hwnas_model *model, hwnas_str *text, const char *unit);
    void (*free)(hwnas_model *model);
};

extern const hwnas_model_kind hwnas_model_gbdt, hwnas_model_gp, hwnas_model_ensemble;
/* Only for fitting, as members of an ensemble: processes that see choices and sizes, or facts
 * alone. What they fit is a `gp`. */
extern const hwnas_model_kind hwnas_model_gp_sizes, hwnas_model_gp_facts;
extern const hwnas_model_kind *const hwnas_model_kinds[];         /* NULL-terminated */
const hwnas_model_kind *hwnas_model_kind_named(const char *name); /* NULL: none */

void hwnas_model_free(hwnas_model *model); /* accepts NULL */
/* Member i of an ensemble that was fitted; NULL behind the last, and of other kinds. */
const hwnas_model *hwnas_model_member(const hwnas_model *model, int i);

/* Fits a model of a kind. `crossed` (rows->n) gets an estimate of each row by models fitted to
 * other networks, with the choices of the one that is returned; its spread is set by their errors.
 */
HWNAS_CHECKED hwnas_status hwnas_model_fit(hwnas_model **out, hwnas_estimate *crossed,
                                           const hwnas_model_kind *kind, const hwnas_rows *rows,
                                           uint64_t seed);
/* Fits to other rows with the choices of a model, and its spread. */
HWNAS_CHECKED hwnas_status hwnas_model_refit(hwnas_model **out, const hwnas_model *like,
                                             const hwnas_rows *rows, uint64_t seed);
void hwnas_model_predict(hwnas_estimate *out, const hwnas_model *model, const double *columns,
                         size_t n);
/* Estimates the rows that are not kept, in their places of out (rows->n), all at once: one by one
 * they cost a process many times as much. */
void hwnas_model_predict_rest(hwnas_estimate *out, const hwnas_model *model, const hwnas_rows *rows,
                              const bool *is_kept);

/* Whether sizes are in the domain of a predictor with this model (hwnas_model_kind.is_quick). */
bool hwnas_model_looks_at_sizes(const hwnas_model *model);

/* "a Gaussian process ...": for the card, in numbers of `unit`. */
void hwnas_model_describe(const hwnas_model *model, hwnas_str *text, const char *unit);

/* The members that every file has: kind, spread and what the kind adds; and the way back. */
json_t *hwnas_model_write(const hwnas_model *model);
HWNAS_CHECKED hwnas_status hwnas_model_read(hwnas_model **out, const json_t *file,
                                            const hwnas_feature_encoding *encoding);

/* A link's members in a file, and the way back. */
json_t *hwnas_link_write(const hwnas_link *link);
HWNAS_CHECKED hwnas_status hwnas_link_read(hwnas_link *out, const json_t *file);
void hwnas_link_describe(const hwnas_link *link, hwnas_str *text, const char *unit);

/* Reads a list of exactly n finite numbers; `what` names it in the message. */
HWNAS_CHECKED hwnas_status hwnas_numbers_read(double *out, const json_t *list, size_t n,
                                              const char *what);
json_t *hwnas_numbers_write(const double *values, size_t n);

#endif
