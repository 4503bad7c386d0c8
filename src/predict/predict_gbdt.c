/* predict_gbdt.c: the kind `gbdt`: a fitted model as a file of text, and its estimates.
 *
 * The file is one JSON object, a line for each member, so that two fits can be compared by diff.
 * The member "trees" is XGBoost's own JSON model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "predict/predict_priv.h"
#include "predict/ridge.h"

enum { BATCH = HWNAS_GBDT_BATCH };

typedef struct gbdt_predictor {
    hwnas_predictor base;
    hwnas_features *features;
    hwnas_gbdt *model;
    double spread;
    double *terms; /* of a batch */
    float *inputs;
} gbdt_predictor;

static void free_gbdt(hwnas_predictor *base)
{
    gbdt_predictor *predictor = (gbdt_predictor *)base;
    hwnas_features_free(predictor->features);
    hwnas_gbdt_free(predictor->model);
    free(predictor->terms);
    free(predictor->inputs);
    free(predictor);
}

/* The names must be those that this version makes of the space, in the same order. */
static hwnas_status check_names(const json_t *names, const char *what, const char *const *own,
                                size_t n)
{
    hwnas_status status = HWNAS_OK;
    if (json_array_size(names) != n)
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor has %zu %s, this hwnas makes %zu",
                            json_array_size(names), what, n);
    for (size_t i = 0; status == HWNAS_OK && i < n; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (!name || strcmp(name, own[i]))
            status = hwnas_fail(HWNAS_E_INPUT, NULL,
                                "%s: number %zu is '%s' in the predictor and '%s' in this hwnas",
                                what, i + 1, name ? name : "no name", own[i]);
    }
    return status == HWNAS_OK ? status : hwnas_hint(status, "fit the predictor again");
}

static hwnas_status read_weights(hwnas_gbdt *model, const json_t *weights)
{
    if (json_array_size(weights) != model->n_terms)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor has %zu weights, %zu are needed",
                          json_array_size(weights), model->n_terms);
    model->weights = hwnas_alloc(model->n_terms * sizeof *model->weights);
    for (size_t i = 0; i < model->n_terms; i++) {
        const json_t *weight = json_array_get(weights, i);
        if (!json_is_number(weight))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "weight %zu is not a number", i + 1);
        model->weights[i] = json_number_value(weight);
    }
    return HWNAS_OK;
}

static hwnas_status read_members(gbdt_predictor *predictor, json_t *file)
{
    const char *target, *unit, *link_name;
    json_t *columns, *inputs, *weights, *trees;
    double limit, mean, scale;
    hwnas_gbdt *model = predictor->model;
    hwnas_features *features = predictor->features;
    json_error_t error;
    if (json_unpack_ex(file, &error, 0,
                       "{s:s, s:s, s:F, s:{s:s, s:F, s:F, s:F}, s:o, s:o, s:o, s:o}", "target",
                       &target, "unit", &unit, "spread", &predictor->spread, "link", "name",
                       &link_name, "limit", &limit, "mean", &mean, "scale", &scale, "columns",
                       &columns, "weights", &weights, "inputs", &inputs, "trees", &trees))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor is damaged: %s", error.text);
    if (!hwnas_link_named(&model->link, link_name))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "there is no scale called '%s'", link_name);
    if (!(scale > 0) || !(predictor->spread >= 0))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'scale' and 'spread' must not be negative");
    model->link.limit = limit;
    model->link.mean = mean;
    model->link.scale = scale;
    model->n_terms = features->n_terms;
    model->n_inputs = features->n_inputs;
    predictor->base.target = hwnas_strdup(target);
    predictor->base.unit = hwnas_strdup(unit);
    TRY(check_names(columns, "columns", features->column_names, features->n_columns));
    TRY(check_names(inputs, "inputs", features->input_names, features->n_inputs));
    TRY(read_weights(model, weights));
    return hwnas_trees_load(&model->trees, trees, model->n_inputs);
}

static hwnas_status read_gbdt(hwnas_predictor **out, json_t *file, const char *path,
                              const hwnas_space *space)
{
    gbdt_predictor *predictor = hwnas_alloc(sizeof *predictor);
    predictor->base = (hwnas_predictor){.row = &hwnas_predictor_gbdt, .space = space};
    predictor->features = hwnas_features_new(space);
    predictor->model = hwnas_alloc(sizeof *predictor->model);
    predictor->terms = hwnas_alloc(BATCH * predictor->features->n_terms * sizeof(double));
    predictor->inputs = hwnas_alloc(BATCH * predictor->features->n_inputs * sizeof(float));
    hwnas_status status = read_members(predictor, file);
    if (status == HWNAS_OK) {
        *out = &predictor->base;
        return HWNAS_OK;
    }
    hwnas_error error = *hwnas_last_error(); /* what is wrong; here it becomes known where */
    hwnas_place place = {.file = path};
    hwnas_predictor_free(&predictor->base);
    return hwnas_hint(hwnas_fail(status, &place, "%s", error.message), "%s", error.hint);
}

static hwnas_status score_gbdt(hwnas_estimate *out, hwnas_predictor *base,
                               const hwnas_arch *const *archs, size_t n)
{
    gbdt_predictor *predictor = (gbdt_predictor *)base;
    const hwnas_features *features = predictor->features;
    for (size_t done = 0; done < n;) {
        size_t batch = n - done < BATCH ? n - done : BATCH;
        double means[BATCH], slopes[BATCH];
        for (size_t i = 0; i < batch; i++) {
            hwnas_features_terms(features, predictor->terms + i * features->n_terms,
                                 archs[done + i]);
            hwnas_features_inputs(features, predictor->inputs + i * features->n_inputs,
                                  archs[done + i]);
        }
        hwnas_gbdt_predict(means, slopes, predictor->model, predictor->terms, predictor->inputs,
                           batch);
        for (size_t i = 0; i < batch; i++)
            out[done + i] = (hwnas_estimate){.mean = means[i], .sd = predictor->spread * slopes[i]};
        done += batch;
    }
    return HWNAS_OK;
}

const hwnas_predictor_kind_row hwnas_predictor_gbdt = {
    .name = "gbdt",
    .read = read_gbdt,
    .score = score_gbdt,
    .free = free_gbdt,
};

/* Takes the value. */
static void add_member(hwnas_str *text, const char *name, json_t *value)
{
    /* Twelve digits: estimates from a file and from the fit itself agree far below any noise. */
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    hwnas_str_addf(text, "  \"%s\": %s,\n", name, dump);
    free(dump);
    json_decref(value);
}

static json_t *list_names(const char *const *names, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *list_settings(const hwnas_fit *fit)
{
    json_t *settings = json_object();
    json_object_set_new(settings, "penalty", json_real(fit->model->penalty));
    json_object_set_new(settings, "trees", json_integer(HWNAS_N_TREES));
    for (const hwnas_trees_setting *s = hwnas_trees_settings; s->name; s++)
        json_object_set_new(settings, s->name, json_string(s->value));
    json_object_set_new(settings, "seed", json_integer((json_int_t)fit->options->seed));
    return settings;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

char *hwnas_gbdt_text(const hwnas_fit *fit)
{
    const hwnas_gbdt *model = fit->model;
    const hwnas_features *features = fit->features;
    const hwnas_predictor_scores *scores = &fit->scores;
    char *digest = hwnas_space_digest(features->space);
    hwnas_str text = {0};
    hwnas_str_add(&text, "{\n");
    add_member(&text, "format", json_string(HWNAS_PREDICTOR_FORMAT));
    add_member(&text, "version", json_integer(HWNAS_PREDICTOR_VERSION));
    add_member(&text, "kind", json_string(hwnas_predictor_gbdt.name));
    add_member(&text, "space",
               json_pack("{s:s, s:s}", "name", features->space->name, "digest", digest));
    add_member(&text, "target", json_string(fit->options->target));
    add_member(&text, "unit", json_string(hwnas_column_unit(fit->options->target)));
    add_member(&text, "rows", json_integer((json_int_t)fit->n_rows));
    add_member(&text, "settings", list_settings(fit));
    add_member(&text, "cross_validation",
               json_pack("{s:i, s:f, s:f, s:f, s:o, s:o}", "folds", fit->n_folds, "kendall_tau",
                         scores->kendall_tau, "rmse", scores->rmse, "mean_absolute_error",
                         scores->mean_absolute_error, "top_tenth_tau",
                         number_or_null(scores->top_tenth_tau), "coverage_90",
                         number_or_null(scores->coverage_90)));
    add_member(&text, "spread", json_real(fit->spread));
    add_member(&text, "link",
               json_pack("{s:s, s:f, s:f, s:f}", "name", model->link.name, "limit",
                         model->link.limit, "mean", model->link.mean, "scale", model->link.scale));
    add_member(&text, "columns", list_names(features->column_names, features->n_columns));
    json_t *weights = json_array();
    for (size_t i = 0; i < model->n_terms; i++)
        json_array_append_new(weights, json_real(model->weights[i]));
    add_member(&text, "weights", weights);
    add_member(&text, "inputs", list_names(features->input_names, features->n_inputs));
    hwnas_str_addf(&text, "  \"trees\": %s\n}\n", hwnas_trees_text(model->trees));
    free(digest);
    return text.s;
}
