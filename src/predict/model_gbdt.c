/* model_gbdt.c: the kind `gbdt`: trees boosted from a ridge regression.
 *
 * On the link's scale an estimate is a ridge regression, plus boosted trees fitted to what it
 * leaves over. The regression carries what is smooth with few rows (trees need many splits to say
 * "twice as deep is better"), the trees what is not. Several sets of trees each see four fifths of
 * the networks (bagging without replacement; Breiman, "Bagging Predictors", 1996): their mean is
 * the correction, and where they disagree the estimate is less certain. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/gbdt.h"
#include "predict/ridge.h"
#include "predict/trees.h"

enum { N_BAGS = 4, BATCH = 64 };

/* The graph's facts are taken in when they raise the regression's cross-validated tau by this: they
 * cost a graph for each estimate, fifty times as much as all the rest. */
static const double worth_a_graph = 0.1;

typedef struct gbdt {
    hwnas_model base;
    hwnas_features *features;
    hwnas_ridge_choice choice;
    double *weights;
    hwnas_trees *bags[N_BAGS];
} gbdt;

static void free_gbdt(hwnas_model *base)
{
    gbdt *model = (gbdt *)base;
    hwnas_features_free(model->features);
    free(model->weights);
    for (int b = 0; b < N_BAGS; b++)
        hwnas_trees_free(model->bags[b]);
    free(model);
}

static gbdt *make_gbdt(const hwnas_feature_encoding *encoding, bool has_facts)
{
    gbdt *model = hwnas_alloc(sizeof *model);
    model->base = (hwnas_model){&hwnas_model_gbdt, encoding, has_facts, 1};
    model->features = hwnas_features_new(encoding, has_facts);
    model->weights = hwnas_alloc(model->features->n_terms * sizeof *model->weights);
    return model;
}

/* -- fitting -- */

/* With the facts, or without when they bring next to nothing. */
static hwnas_status choose(gbdt **out, const hwnas_rows *rows, uint64_t seed)
{
    const hwnas_feature_encoding *e = rows->encoding;
    size_t n_facts = e->n_columns - e->first[HWNAS_COLUMN_FACT];
    gbdt *tried[2] = {NULL};
    hwnas_status status = HWNAS_OK;
    bool is_any = n_facts == e->n_columns; /* nothing but facts */
    for (int f = is_any; f < (n_facts ? 2 : 1); f++) {
        tried[f] = make_gbdt(e, f);
        hwnas_features_standardise(tried[f]->features, rows->columns, rows->n);
        TRY_OUT(hwnas_ridge_choose(&tried[f]->choice, tried[f]->features, rows, seed));
    }
    int best =
        tried[1] && (!tried[0] || tried[1]->choice.tau > tried[0]->choice.tau + worth_a_graph);
    *out = tried[best];
    tried[best] = NULL;
out:
    for (int f = 0; f < 2; f++)
        if (tried[f])
            free_gbdt(&tried[f]->base);
    return status;
}

static hwnas_status fit_bags(gbdt *model, const hwnas_rows *rows, const float *residuals,
                             uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    size_t n_inputs = model->features->n_inputs, width = rows->encoding->n_columns;
    int *folds = hwnas_alloc(rows->n * sizeof *folds);
    float *inputs = NULL, *targets = hwnas_alloc(rows->n * sizeof *targets);
    TRY_OUT(
        hwnas_try_alloc((void **)&inputs, (rows->n * n_inputs + 1) * sizeof *inputs, "the trees"));
    hwnas_rows_deal(folds, rows, N_BAGS + 1, seed);
    for (int b = 0; b < N_BAGS; b++) {
        size_t n = 0;
        for (size_t i = 0; i < rows->n; i++) {
            if (folds[i] == b)
                continue;
            hwnas_features_inputs(model->features, inputs + n * n_inputs,
                                  rows->columns + i * width);
            targets[n++] = residuals[i];
        }
        TRY_OUT(hwnas_trees_fit(&model->bags[b], inputs, targets, n, n_inputs,
                                seed * N_BAGS + (uint64_t)b));
    }
out:
    free(folds);
    free(inputs);
    free(targets);
    return status;
}

static hwnas_status fit_gbdt(hwnas_model **out, const hwnas_rows *rows, const hwnas_model *like,
                             uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    gbdt *model = NULL;
    float *residuals = hwnas_alloc(rows->n * sizeof *residuals);
    if (like) {
        const gbdt *old = (const gbdt *)like;
        model = make_gbdt(rows->encoding, old->base.has_facts);
        hwnas_features_standardise(model->features, rows->columns, rows->n);
        model->choice = old->choice;
    } else {
        TRY_OUT(choose(&model, rows, seed));
    }
    TRY_OUT(hwnas_ridge_fit(model->weights, residuals, model->features, &model->choice, rows));
    TRY_OUT(fit_bags(model, rows, residuals, seed));
    *out = &model->base;
    model = NULL;
out:
    if (model)
        free_gbdt(&model->base);
    free(residuals);
    return status;
}

/* -- estimates -- */

static void predict_gbdt(hwnas_estimate *out, const hwnas_model *base, const double *columns,
                         size_t n)
{
    const gbdt *model = (const gbdt *)base;
    const hwnas_features *f = model->features;
    size_t width = base->encoding->n_columns;
    /* So many rows that a tree is read from memory once for all of them, so few that their terms
     * stay in the cache. */
    double *terms = hwnas_alloc(f->n_terms * sizeof *terms);
    float *inputs = hwnas_alloc((BATCH * f->n_inputs + 1) * sizeof *inputs);
    float corrections[N_BAGS][BATCH];
    double smooth[BATCH];
    for (size_t done = 0; done < n;) {
        size_t batch = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < batch; i++) {
            const double *row = columns + (done + i) * width;
            hwnas_features_terms(f, terms, row);
            hwnas_features_inputs(f, inputs + i * f->n_inputs, row);
            smooth[i] = hwnas_dot(model->weights, terms, f->n_terms);
        }
        for (int b = 0; b < N_BAGS; b++)
            hwnas_trees_predict(corrections[b], model->bags[b], inputs, batch);
        for (size_t i = 0; i < batch; i++) {
            double mean = 0, variance = 0, slope;
            for (int b = 0; b < N_BAGS; b++)
                mean += corrections[b][i] / N_BAGS;
            for (int b = 0; b < N_BAGS; b++)
                variance += (corrections[b][i] - mean) * (corrections[b][i] - mean) / (N_BAGS - 1);
            double sd = sqrt(variance + model->choice.rmse * model->choice.rmse);
            out[done + i].mean = hwnas_link_invert(&model->choice.link, smooth[i] + mean, &slope);
            out[done + i].sd = sd * slope;
        }
        done += batch;
    }
    free(terms);
    free(inputs);
}

static double slope_of_gbdt(const hwnas_model *base, double value)
{
    return hwnas_link_slope(&((const gbdt *)base)->choice.link, value);
}

/* -- files -- */

static json_t *write_gbdt(const hwnas_model *base)
{
    const gbdt *model = (const gbdt *)base;
    const hwnas_features *f = model->features;
    double *scales = hwnas_alloc(f->n_columns * sizeof *scales + 1);
    for (size_t k = 0; k < f->n_columns; k++)
        scales[k] = isfinite(f->scales[k]) ? f->scales[k] : 0;
    json_t *file = json_object(), *bags = json_array();
    json_object_set_new(file, "facts", json_boolean(base->has_facts));
    json_object_set_new(file, "link", hwnas_link_write(&model->choice.link));
    json_object_set_new(file, "penalty", json_real(model->choice.penalty));
    json_object_set_new(file, "deviation", json_real(model->choice.rmse));
    json_object_set_new(file, "means", hwnas_numbers_write(f->means, f->n_columns));
    json_object_set_new(file, "scales", hwnas_numbers_write(scales, f->n_columns));
    json_object_set_new(file, "weights", hwnas_numbers_write(model->weights, f->n_terms));
    for (int b = 0; b < N_BAGS; b++)
        json_array_append_new(bags, hwnas_trees_write(model->bags[b]));
    json_object_set_new(file, "bags", bags);
    free(scales);
    return file;
}

static hwnas_status read_members(gbdt *model, json_t *file)
{
    hwnas_features *f = model->features;
    json_t *link, *means, *scales, *weights, *bags;
    json_error_t error;
    if (json_unpack_ex(file, &error, 0, "{s:o, s:F, s:F, s:o, s:o, s:o, s:o}", "link", &link,
                       "penalty", &model->choice.penalty, "deviation", &model->choice.rmse, "means",
                       &means, "scales", &scales, "weights", &weights, "bags", &bags))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor is damaged: %s", error.text);
    TRY(hwnas_link_read(&model->choice.link, link));
    TRY(hwnas_numbers_read(f->means, means, f->n_columns, "means"));
    TRY(hwnas_numbers_read(f->scales, scales, f->n_columns, "scales"));
    TRY(hwnas_numbers_read(model->weights, weights, f->n_terms, "weights"));
    for (size_t k = 0; k < f->n_columns; k++) {
        if (f->scales[k] < 0)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "number %zu of the scales is negative", k + 1);
        if (f->scales[k] == 0)
            f->scales[k] = INFINITY;
    }
    if (json_array_size(bags) != N_BAGS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor has %zu sets of trees, not %d",
                          json_array_size(bags), N_BAGS);
    for (int b = 0; b < N_BAGS; b++)
        TRY(hwnas_trees_load(&model->bags[b], json_array_get(bags, (size_t)b), f->n_inputs));
    return HWNAS_OK;
}

static hwnas_status read_gbdt(hwnas_model **out, const json_t *file, const hwnas_feature_encoding *encoding)
{
    const json_t *has_facts = json_object_get(file, "facts");
    if (!json_is_boolean(has_facts))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor is damaged: 'facts' is missing");
    gbdt *model = make_gbdt(encoding, json_is_true(has_facts));
    hwnas_status status = read_members(model, (json_t *)file);
    if (status == HWNAS_OK)
        *out = &model->base;
    else
        free_gbdt(&model->base);
    return status;
}

static void describe_gbdt(const hwnas_model *base, hwnas_str *text, const char *unit)
{
    const gbdt *model = (const gbdt *)base;
    const hwnas_features *f = model->features;
    hwnas_str_add(text, "boosted trees on a ridge regression, ");
    hwnas_link_describe(&model->choice.link, text, unit);
    hwnas_str_addf(text,
                   "; %s; penalty %.4g,\n  %zu columns and %zu products of two, then %d times %d "
                   "trees by XGBoost on %zu inputs:\n ",
                   !base->has_facts        ? "choices alone"
                   : base->encoding->space ? "choices and facts about the graph"
                                           : "facts about the graph",
                   model->choice.penalty, f->n_columns, f->n_pairs, N_BAGS, HWNAS_N_TREES,
                   f->n_inputs);
    for (const hwnas_trees_setting *s = hwnas_trees_settings; s->name; s++)
        hwnas_str_addf(text, " %s %s%s", s->name, s->value, s[1].name ? "," : "");
}

const hwnas_model_kind hwnas_model_gbdt = {
    .name = "gbdt",
    .is_quick = true,
    .help = "gradient-boosted trees (XGBoost) on a ridge regression: quickest to score",
    .fit = fit_gbdt,
    .predict = predict_gbdt,
    .slope = slope_of_gbdt,
    .write = write_gbdt,
    .read = read_gbdt,
    .describe = describe_gbdt,
    .free = free_gbdt,
};
