/* model_ensemble.c: the kind `ensemble`: a weighted mean of Gaussian processes, which look at all,
 * at choices and sizes, and at facts alone, and of boosted trees.
 *
 * Each is wrong in its own way, most of all with few rows, where the lengths of many columns are
 * guesses. Weights begin as shares and move to who estimates rows best that it has not seen
 * (stacking: Breiman, "Stacked Regressions", 1996), the more the more rows there are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "predict/model.h"

static const struct {
    const hwnas_model_kind *kind;
    double share; /* before anything is known */
} kinds[] = {
    {&hwnas_model_gp, 2},
    {&hwnas_model_gp_sizes, 1},
    {&hwnas_model_gp_facts, 2},
    {&hwnas_model_gbdt, 1},
};
enum { N_MEMBERS = sizeof kinds / sizeof *kinds };

typedef struct ensemble {
    hwnas_model base;
    hwnas_model *members[N_MEMBERS]; /* NULL: none, of weight 0 */
    double weights[N_MEMBERS];
} ensemble;

static void free_ensemble(hwnas_model *base)
{
    ensemble *model = (ensemble *)base;
    for (int m = 0; m < N_MEMBERS; m++)
        hwnas_model_free(model->members[m]);
    free(model);
}

const hwnas_model *hwnas_model_member(const hwnas_model *base, int i)
{
    const ensemble *model = (const ensemble *)base;
    for (int m = 0; base->kind == &hwnas_model_ensemble && m < N_MEMBERS; m++)
        if (model->members[m] && i-- == 0)
            return model->members[m];
    return NULL;
}

static ensemble *make_ensemble(const hwnas_feature_encoding *encoding)
{
    ensemble *model = hwnas_alloc(sizeof *model);
    model->base = (hwnas_model){&hwnas_model_ensemble, encoding, false, 1};
    return model;
}

/* The mean of a mixture, and its deviation: the members' own and their disagreement. */
static hwnas_estimate combine(const hwnas_estimate *parts, size_t stride, const double *weights)
{
    double mean = 0, variance = 0;
    for (int m = 0; m < N_MEMBERS; m++)
        mean += weights[m] * parts[(size_t)m * stride].mean;
    for (int m = 0; m < N_MEMBERS; m++) {
        hwnas_estimate part = parts[(size_t)m * stride];
        variance += weights[m] * (part.sd * part.sd + (part.mean - mean) * (part.mean - mean));
    }
    return (hwnas_estimate){.mean = mean, .sd = sqrt(variance)};
}

static void normalise(double *weights)
{
    double sum = 0;
    for (int m = 0; m < N_MEMBERS; m++)
        sum += weights[m];
    for (int m = 0; m < N_MEMBERS; m++)
        weights[m] /= sum;
}

/* A share shrinks by a member's part of wrongly ordered pairs over the best one's, to a power that
 * grows with the rows: a few say little of who is better, and even weights are steadier. The
 * numbers are by experiment (docs/predictors.md). */
static void stack(ensemble *model, const hwnas_estimate *parts, const hwnas_rows *rows)
{
    const double rows_a_power = 50, most = 10, worth_its_time = 0.02;
    double power = fmin((double)rows->n / rows_a_power, most), least = INFINITY;
    double wrong[N_MEMBERS], *means = hwnas_alloc((rows->n + 1) * sizeof *means);
    for (int m = 0; m < N_MEMBERS; m++) {
        wrong[m] = INFINITY;
        if (!model->members[m])
            continue;
        for (size_t i = 0; i < rows->n; i++)
            means[i] = parts[(size_t)m * rows->n + i].mean;
        wrong[m] = fmax(1 - hwnas_kendall_tau(means, rows->values, rows->n), 1e-6);
        least = fmin(least, wrong[m]);
    }
    for (int m = 0; m < N_MEMBERS; m++)
        model->weights[m] = kinds[m].share * pow(least / wrong[m], power);
    normalise(model->weights);
    for (int m = 0; m < N_MEMBERS; m++)
        if (model->weights[m] < worth_its_time)
            model->weights[m] = 0;
    normalise(model->weights);
    free(means);
}

static hwnas_status fit_ensemble(hwnas_model **out, hwnas_estimate *crossed, const hwnas_rows *rows,
                                 uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    ensemble *model = make_ensemble(rows->encoding);
    hwnas_estimate *parts = hwnas_alloc((N_MEMBERS * rows->n + 1) * sizeof *parts);
    for (int m = 0; m < N_MEMBERS; m++)
        if (!kinds[m].kind->suits || kinds[m].kind->suits(rows->encoding))
            TRY_OUT(hwnas_model_fit(&model->members[m], parts + (size_t)m * rows->n, kinds[m].kind,
                                    rows, seed));
    stack(model, parts, rows);
    for (int m = 0; m < N_MEMBERS; m++)
        if (model->weights[m] > 0)
            model->base.has_facts |= model->members[m]->has_facts;
    for (size_t i = 0; i < rows->n; i++)
        crossed[i] = combine(parts + i, rows->n, model->weights);
    *out = &model->base;
    model = NULL;
out:
    hwnas_model_free((hwnas_model *)model);
    free(parts);
    return status;
}

/* Its members, weighted as they are in another; one by itself has no weights. */
static hwnas_status refit_ensemble(hwnas_model **out, const hwnas_rows *rows,
                                   const hwnas_model *like, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    const ensemble *old = (const ensemble *)like;
    ensemble *model = make_ensemble(rows->encoding);
    model->base.has_facts = like->has_facts;
    for (int m = 0; m < N_MEMBERS; m++) {
        model->weights[m] = old->weights[m];
        if (old->weights[m] > 0)
            TRY_OUT(hwnas_model_refit(&model->members[m], old->members[m], rows, seed));
    }
    *out = &model->base;
    model = NULL;
out:
    hwnas_model_free((hwnas_model *)model);
    return status;
}

static void predict_ensemble(hwnas_estimate *out, const hwnas_model *base, const double *columns,
                             size_t n)
{
    const ensemble *model = (const ensemble *)base;
    hwnas_estimate *parts = hwnas_alloc((N_MEMBERS * n + 1) * sizeof *parts);
    for (int m = 0; m < N_MEMBERS; m++)
        if (model->weights[m] > 0)
            hwnas_model_predict(parts + (size_t)m * n, model->members[m], columns, n);
    for (size_t i = 0; i < n; i++)
        out[i] = combine(parts + i, n, model->weights);
    free(parts);
}

static double slope_of_ensemble(const hwnas_model *base, double value)
{
    const ensemble *model = (const ensemble *)base;
    double slope = 0;
    for (int m = 0; m < N_MEMBERS; m++)
        if (model->weights[m] > 0)
            slope += model->weights[m] * model->members[m]->kind->slope(model->members[m], value);
    return slope;
}

/* A member without weight is left out. */
static json_t *write_ensemble(const hwnas_model *base)
{
    const ensemble *model = (const ensemble *)base;
    json_t *file = json_object(), *members = json_array();
    for (int m = 0; m < N_MEMBERS; m++) {
        if (!(model->weights[m] > 0))
            continue;
        json_t *member = hwnas_model_write(model->members[m]);
        json_object_set_new(member, "weight", json_real(model->weights[m]));
        json_array_append_new(members, member);
    }
    json_object_set_new(file, "members", members);
    return file;
}

static hwnas_status read_member(ensemble *model, size_t m, const json_t *file)
{
    double weight = json_number_value(json_object_get(file, "weight"));
    const char *kind = json_string_value(json_object_get(file, "kind"));
    bool is_nested = kind && !strcmp(kind, hwnas_model_ensemble.name);
    if (m == N_MEMBERS || is_nested || !(weight > 0 && weight <= 1))
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "the predictor's members are damaged: one too many, an ensemble itself, "
                          "or its weight is not between 0 and 1");
    TRY(hwnas_model_read(&model->members[m], file, model->base.encoding));
    model->weights[m] = weight;
    model->base.has_facts |= model->members[m]->has_facts;
    return HWNAS_OK;
}

static hwnas_status read_ensemble(hwnas_model **out, const json_t *file,
                                  const hwnas_feature_encoding *encoding)
{
    const json_t *members = json_object_get(file, "members"), *member;
    size_t i;
    double sum = 0;
    ensemble *model = make_ensemble(encoding);
    hwnas_status status = HWNAS_OK;
    json_array_foreach(members, i, member) TRY_OUT(read_member(model, i, member));
    for (int m = 0; m < N_MEMBERS; m++)
        sum += model->weights[m];
    if (fabs(sum - 1) > 1e-6) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL,
                            "the weights of the predictor's members do not "
                            "add up to 1");
        goto out;
    }
    *out = &model->base;
    model = NULL;
out:
    hwnas_model_free((hwnas_model *)model);
    return status;
}

static void describe_ensemble(const hwnas_model *base, hwnas_str *text, const char *unit)
{
    const ensemble *model = (const ensemble *)base;
    hwnas_str_add(text, "the weighted mean of its members, weights by cross-validation:\n");
    for (int m = 0; m < N_MEMBERS; m++) {
        if (!model->members[m])
            continue;
        hwnas_str_addf(text, "\n- `%s`, weight %.2f", model->members[m]->kind->name,
                       model->weights[m]);
        if (model->weights[m] > 0) {
            hwnas_str_add(text, ": ");
            model->members[m]->kind->describe(model->members[m], text, unit);
        }
    }
}

const hwnas_model_kind hwnas_model_ensemble = {
    .name = "ensemble",
    .help = "processes that look at all and at parts, and trees, weighted by cross-validation",
    .fit = refit_ensemble,
    .fit_crossed = fit_ensemble,
    .predict = predict_ensemble,
    .slope = slope_of_ensemble,
    .write = write_ensemble,
    .read = read_ensemble,
    .describe = describe_ensemble,
    .free = free_ensemble,
};
