/* model.c: the kinds of models, and what all of them need: rows, folds, numbers in files. */
#include "predict/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/stats.h"

enum { FOLD_STREAM = 31, N_FOLDS = 5 };

const hwnas_model_kind *const hwnas_model_kinds[] = {
    &hwnas_model_ensemble,
    &hwnas_model_gp,
    &hwnas_model_gbdt,
    NULL,
};

const hwnas_model_kind *hwnas_model_kind_named(const char *name)
{
    for (size_t i = 0; hwnas_model_kinds[i]; i++)
        if (!strcmp(hwnas_model_kinds[i]->name, name))
            return hwnas_model_kinds[i];
    return NULL;
}

void hwnas_model_free(hwnas_model *model)
{
    if (model)
        model->kind->free(model);
}

/* -- rows -- */

hwnas_rows hwnas_rows_keep(const hwnas_rows *rows, const bool *is_kept)
{
    size_t width = rows->encoding->n_columns;
    hwnas_rows out = {.encoding = rows->encoding};
    for (size_t i = 0; i < rows->n; i++)
        out.n += is_kept[i];
    out.columns = hwnas_alloc((out.n + 1) * width * sizeof *out.columns);
    out.values = hwnas_alloc((out.n + 1) * sizeof *out.values);
    out.networks = hwnas_alloc((out.n + 1) * sizeof *out.networks);
    for (size_t i = 0, n = 0; i < rows->n; i++) {
        if (!is_kept[i])
            continue;
        memcpy(out.columns + n * width, rows->columns + i * width, width * sizeof *out.columns);
        out.values[n] = rows->values[i];
        out.networks[n++] = rows->networks[i];
    }
    return out;
}

void hwnas_rows_done(hwnas_rows *rows)
{
    free(rows->columns);
    free(rows->values);
    free(rows->networks);
    *rows = (hwnas_rows){0};
}

static int compare_numbers(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* The different networks, sorted; yours to free(). */
static size_t *list_networks(size_t *n, const hwnas_rows *rows)
{
    size_t *list = hwnas_alloc((rows->n + 1) * sizeof *list);
    memcpy(list, rows->networks, rows->n * sizeof *list);
    qsort(list, rows->n, sizeof *list, compare_numbers);
    *n = 0;
    for (size_t i = 0; i < rows->n; i++)
        if (!i || list[i] != list[i - 1])
            list[(*n)++] = list[i];
    return list;
}

size_t hwnas_rows_networks(const hwnas_rows *rows)
{
    size_t n;
    free(list_networks(&n, rows));
    return n;
}

void hwnas_rows_deal(int *out, const hwnas_rows *rows, int n_folds, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, FOLD_STREAM);
    size_t n, *list = list_networks(&n, rows), *order = hwnas_alloc((n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++) {
        size_t j = hwnas_rng_below(&rng, (uint32_t)i + 1); /* Fisher and Yates, inside out */
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t row = 0; row < rows->n; row++) {
        const size_t *at = bsearch(&rows->networks[row], list, n, sizeof *list, compare_numbers);
        out[row] = (int)(order[at - list] % (size_t)n_folds);
    }
    free(list);
    free(order);
}

/* -- judging -- */

/* Estimates every row by a model fitted like `model` to the rows of other folds. */
static hwnas_status cross(hwnas_estimate *out, const hwnas_model *model, const hwnas_rows *rows,
                          uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    int *folds = hwnas_alloc((rows->n + 1) * sizeof *folds);
    bool *is_kept = hwnas_alloc((rows->n + 1) * sizeof *is_kept);
    hwnas_rows kept = {0};
    hwnas_model *fitted = NULL;
    hwnas_rows_deal(folds, rows, N_FOLDS, seed);
    for (int fold = 0; fold < N_FOLDS; fold++) {
        for (size_t i = 0; i < rows->n; i++)
            is_kept[i] = folds[i] != fold;
        kept = hwnas_rows_keep(rows, is_kept);
        if (kept.n < rows->n) {
            TRY_OUT(model->kind->fit(&fitted, &kept, model, seed));
            hwnas_model_predict_rest(out, fitted, rows, is_kept);
        }
        hwnas_model_free(fitted);
        fitted = NULL;
        hwnas_rows_done(&kept);
    }
out:
    hwnas_model_free(fitted);
    hwnas_rows_done(&kept);
    free(folds);
    free(is_kept);
    return status;
}

/* By how much deviations must grow for 90 % of results to lie inside their 90 % intervals: of one
 * more row, so of n errors the smallest that 0.9 (n + 1) of them do not exceed (split conformal
 * prediction: Lei et al., JASA 2018). */
static double find_spread(const hwnas_estimate *estimates, const double *known, size_t n)
{
    const double z_90 = 1.6448536269514722;
    double *errors = hwnas_alloc((n + 1) * sizeof *errors);
    for (size_t i = 0; i < n; i++)
        errors[i] = fabs(estimates[i].mean - known[i]) / fmax(estimates[i].sd, 1e-300);
    hwnas_sort(errors, n);
    size_t rank = (size_t)ceil(0.9 * (double)(n + 1));
    double spread = errors[(rank < n ? rank : n) - 1] / z_90;
    free(errors);
    /* Far from one only where errors are 0 or the rows are no sample at all. */
    return fmin(fmax(spread, 1e-3), 1e3);
}

hwnas_status hwnas_model_fit(hwnas_model **out, hwnas_estimate *crossed,
                             const hwnas_model_kind *kind, const hwnas_rows *rows, uint64_t seed)
{
    hwnas_model *model = NULL;
    if (kind->fit_crossed) {
        TRY(kind->fit_crossed(&model, crossed, rows, seed));
    } else {
        TRY(kind->fit(&model, rows, NULL, seed));
        hwnas_status status = cross(crossed, model, rows, seed);
        if (status != HWNAS_OK) {
            hwnas_model_free(model);
            return status;
        }
    }
    model->spread = find_spread(crossed, rows->values, rows->n);
    for (size_t i = 0; i < rows->n; i++)
        crossed[i].sd *= model->spread;
    *out = model;
    return HWNAS_OK;
}

hwnas_status hwnas_model_refit(hwnas_model **out, const hwnas_model *like, const hwnas_rows *rows,
                               uint64_t seed)
{
    TRY(like->kind->fit(out, rows, like, seed));
    (*out)->spread = like->spread;
    return HWNAS_OK;
}

void hwnas_model_predict(hwnas_estimate *out, const hwnas_model *model, const double *columns,
                         size_t n)
{
    model->kind->predict(out, model, columns, n);
    for (size_t i = 0; i < n; i++)
        out[i].sd *= model->spread;
}

void hwnas_model_predict_rest(hwnas_estimate *out, const hwnas_model *model, const hwnas_rows *rows,
                              const bool *is_kept)
{
    bool *is_asked = hwnas_alloc((rows->n + 1) * sizeof *is_asked);
    for (size_t i = 0; i < rows->n; i++)
        is_asked[i] = !is_kept[i];
    hwnas_rows asked = hwnas_rows_keep(rows, is_asked);
    hwnas_estimate *estimates = hwnas_alloc((asked.n + 1) * sizeof *estimates);
    hwnas_model_predict(estimates, model, asked.columns, asked.n);
    for (size_t i = 0, n = 0; i < rows->n; i++)
        if (is_asked[i])
            out[i] = estimates[n++];
    free(is_asked);
    free(estimates);
    hwnas_rows_done(&asked);
}

/* -- files and cards -- */

bool hwnas_model_looks_at_sizes(const hwnas_model *model)
{
    return model->has_facts || !model->kind->is_quick;
}

void hwnas_model_describe(const hwnas_model *model, hwnas_str *text, const char *unit)
{
    model->kind->describe(model, text, unit);
}

json_t *hwnas_model_write(const hwnas_model *model)
{
    json_t *file = model->kind->write(model);
    json_object_set_new(file, "kind", json_string(model->kind->name));
    json_object_set_new(file, "spread", json_real(model->spread));
    return file;
}

hwnas_status hwnas_model_read(hwnas_model **out, const json_t *file, const hwnas_feature_encoding *encoding)
{
    const char *name = json_string_value(json_object_get(file, "kind"));
    const hwnas_model_kind *kind = name ? hwnas_model_kind_named(name) : NULL;
    double spread = json_number_value(json_object_get(file, "spread"));
    if (!kind)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "there is no kind of model called '%s'",
                          name ? name : "");
    if (!(spread > 0))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's 'spread' must be positive");
    TRY(kind->read(out, file, encoding));
    (*out)->spread = spread;
    return HWNAS_OK;
}

json_t *hwnas_link_write(const hwnas_link *link)
{
    return json_pack("{s:s, s:f, s:f, s:f}", "name", link->name, "limit", link->limit, "mean",
                     link->mean, "scale", link->scale);
}

hwnas_status hwnas_link_read(hwnas_link *out, const json_t *file)
{
    const char *name;
    double limit, mean, scale;
    json_error_t error;
    if (json_unpack_ex((json_t *)file, &error, 0, "{s:s, s:F, s:F, s:F}", "name", &name, "limit",
                       &limit, "mean", &mean, "scale", &scale))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor's scale is damaged: %s", error.text);
    if (!hwnas_link_named(out, name))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "there is no scale called '%s'", name);
    if (!(scale > 0))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'scale' must be positive");
    out->limit = limit;
    out->mean = mean;
    out->scale = scale;
    return HWNAS_OK;
}

void hwnas_link_describe(const hwnas_link *link, hwnas_str *text, const char *unit)
{
    const char *space = *unit ? " " : "";
    if (link->side > 0)
        hwnas_str_addf(text, "on the scale -log(%.4g%s%s - target)", link->limit, space, unit);
    else if (link->side < 0)
        hwnas_str_addf(text, "on the scale log(target - %.4g%s%s)", link->limit, space, unit);
    else
        hwnas_str_add(text, "on the scale of the target itself");
}

hwnas_status hwnas_numbers_read(double *out, const json_t *list, size_t n, const char *what)
{
    if (!json_is_array(list) || json_array_size(list) != n)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the predictor has %zu %s, %zu are needed",
                          json_array_size(list), what, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_number(value))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "number %zu of the %s is not a number", i + 1,
                              what);
        out[i] = json_number_value(value);
    }
    return HWNAS_OK;
}

json_t *hwnas_numbers_write(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        /* Most are whole numbers, and short as such. */
        bool is_whole = values[i] == rint(values[i]) && fabs(values[i]) < 1e9;
        json_array_append_new(list, is_whole ? json_integer((json_int_t)values[i])
                                             : json_real(values[i]));
    }
    return list;
}
