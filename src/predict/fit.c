/* fit.c: fitting a predictor to a table and judging one by a table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/stats.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/extrapolation.h"
#include "predict/predict_priv.h"
#include "predict/sample.h"

enum { MIN_ROWS = 10, DEFAULT_FOLDS = 5 };

/* Half the width of a normal distribution's 90 % interval, in standard deviations. */
static const double z_90 = 1.6448536269514722;

hwnas_predictor_scores hwnas_scores(const hwnas_estimate *estimates, const double *known, size_t n)
{
    double *means = hwnas_alloc(n * sizeof *means), *sorted = hwnas_alloc(n * sizeof *sorted);
    double *top_known = hwnas_alloc(n * sizeof *top_known);
    hwnas_predictor_scores scores = {.n_rows = n, .top_tenth_tau = NAN, .coverage_90 = NAN};
    size_t n_inside = 0, n_top = 0;
    bool has_sd = true;
    for (size_t i = 0; i < n; i++) {
        double error = fabs(estimates[i].mean - known[i]);
        means[i] = estimates[i].mean;
        sorted[i] = known[i];
        scores.mean_absolute_error += error / (double)n;
        n_inside += error <= z_90 * estimates[i].sd;
        has_sd &= estimates[i].sd > 0;
    }
    scores.kendall_tau = hwnas_kendall_tau(means, known, n);
    scores.rmse = hwnas_rmse(means, known, n);
    if (has_sd)
        scores.coverage_90 = (double)n_inside / (double)n;
    if (n >= 20) {
        hwnas_sort(sorted, n);
        double cut = sorted[n - n / 10];
        for (size_t i = 0; i < n; i++) {
            if (known[i] < cut)
                continue;
            top_known[n_top] = known[i];
            means[n_top++] = estimates[i].mean;
        }
        scores.top_tenth_tau = hwnas_kendall_tau(means, top_known, n_top);
    }
    free(means);
    free(sorted);
    free(top_known);
    return scores;
}

static hwnas_status check_rows(hwnas_fit *fit)
{
    const double *values = fit->sample->rows.values;
    size_t n_networks = fit->sample->n_networks;
    hwnas_place place = {.file = fit->options->data};
    if (n_networks < MIN_ROWS)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "%zu different networks are too few to fit a predictor: at "
                                     "least %d are needed",
                                     n_networks, MIN_ROWS),
                          "a few hundred give a useful one");
    fit->low = fit->high = values[0];
    for (size_t i = 0; i < fit->sample->rows.n; i++) {
        fit->low = fmin(fit->low, values[i]);
        fit->high = fmax(fit->high, values[i]);
    }
    if (fit->low == fit->high)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "column '%s' is %g in every row: there is nothing to learn",
                                     fit->options->target, fit->low),
                          "name another column with --target");
    fit->n_folds = fit->options->folds ? fit->options->folds : DEFAULT_FOLDS;
    if (fit->n_folds < 3 || (size_t)fit->n_folds > n_networks)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "%d folds: at least 3 are needed, and at most as many as "
                                     "there are networks (%zu)",
                                     fit->n_folds, n_networks),
                          "the default is %d", DEFAULT_FOLDS);
    return HWNAS_OK;
}

/* Estimates every fold by a fit to the others, with all its choices made anew: the scores judge the
 * way of fitting, choices included. */
static hwnas_status cross_validate(hwnas_fit *fit)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_rows *rows = &fit->sample->rows;
    size_t n = rows->n;
    int *folds = hwnas_alloc(n * sizeof *folds);
    bool *is_kept = hwnas_alloc(n * sizeof *is_kept);
    hwnas_estimate *estimates = hwnas_alloc(n * sizeof *estimates);
    hwnas_estimate *crossed = hwnas_alloc(n * sizeof *crossed);
    hwnas_rows kept = {0};
    hwnas_model *model = NULL;
    hwnas_rows_deal(folds, rows, fit->n_folds, fit->options->seed);
    for (int fold = 0; fold < fit->n_folds; fold++) {
        for (size_t i = 0; i < n; i++)
            is_kept[i] = folds[i] != fold;
        kept = hwnas_rows_keep(rows, is_kept);
        TRY_OUT(hwnas_model_fit(&model, crossed, fit->kind, &kept, fit->options->seed));
        hwnas_model_predict_rest(estimates, model, rows, is_kept);
        hwnas_model_free(model);
        model = NULL;
        hwnas_rows_done(&kept);
    }
    fit->scores = hwnas_scores(estimates, rows->values, n);
out:
    hwnas_model_free(model);
    hwnas_rows_done(&kept);
    free(folds);
    free(is_kept);
    free(estimates);
    free(crossed);
    return status;
}

/* Both files appear or, with a full disk, neither. What goes to a pipe or a device has no card. */
static hwnas_status write_both(const hwnas_fit *fit)
{
    hwnas_status status = HWNAS_OK;
    const char *path = fit->options->out;
    int stem = (int)strlen(path) - (hwnas_ends_with(path, ".json") ? (int)strlen(".json") : 0);
    char *card_path = hwnas_printf("%.*s.md", stem, path);
    char *text = hwnas_fit_text(fit), *card = hwnas_card_text(fit);
    hwnas_draft *model_draft = NULL, *card_draft = NULL;
    TRY_OUT(hwnas_draft_make(&model_draft, path, text, strlen(text)));
    if (!hwnas_draft_is_stream(model_draft)) {
        TRY_OUT(hwnas_draft_make(&card_draft, card_path, card, strlen(card)));
        TRY_OUT(hwnas_draft_publish(card_draft));
    }
    status = hwnas_draft_publish(model_draft);
out:
    hwnas_draft_free(model_draft);
    hwnas_draft_free(card_draft);
    free(card_path);
    free(text);
    free(card);
    return status;
}

static hwnas_status find_kind(const hwnas_model_kind **out, const char *name)
{
    *out = &hwnas_model_ensemble;
    if (!name || !strcmp(name, "auto"))
        return HWNAS_OK;
    *out = hwnas_model_kind_named(name);
    if (*out)
        return HWNAS_OK;
    hwnas_str list = {0};
    for (size_t i = 0; hwnas_model_kinds[i]; i++)
        hwnas_str_addf(&list, ", %s", hwnas_model_kinds[i]->name);
    hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "there is no kind '%s' of predictor to fit", name),
        "the kinds are auto%s", list.s);
    hwnas_str_done(&list);
    return status;
}

hwnas_status hwnas_predictor_fit(hwnas_fit_result *out, const hwnas_fit_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_sample sample = {0};
    hwnas_model *model = NULL;
    hwnas_estimate *crossed = NULL;
    json_t *extrapolation = NULL;
    hwnas_fit fit = {.options = options, .sample = &sample};
    TRY_OUT(find_kind(&fit.kind, options->kind));
    TRY_OUT(hwnas_sample_load(&sample, options->space, options->data, options->target));
    TRY_OUT(check_rows(&fit));
    if (!sample.encoding->n_columns) {
        hwnas_place place = {.file = sample.space ? sample.space->path : options->data};
        status =
            hwnas_fail(HWNAS_E_INPUT, &place,
                       "the space '%s' has no choices: there is nothing to learn", options->space);
        goto out;
    }
    TRY_OUT(cross_validate(&fit));
    crossed = hwnas_alloc(sample.rows.n * sizeof *crossed);
    TRY_OUT(hwnas_model_fit(&model, crossed, fit.kind, &sample.rows, options->seed));
    fit.model = model;
    if (sample.space)
        TRY_OUT(hwnas_extrapolation_learn(&extrapolation, model, &sample.rows, sample.table->archs,
                                          sample.domain, options->seed));
    fit.extrapolation = extrapolation;
    TRY_OUT(write_both(&fit));
    hwnas_str text = {0};
    hwnas_model_describe(model, &text, hwnas_column_unit(options->target));
    *out = (hwnas_fit_result){fit.scores, text.s};
out:
    hwnas_model_free(model);
    json_decref(extrapolation);
    free(crossed);
    hwnas_sample_done(&sample);
    return status;
}

hwnas_status hwnas_predictor_eval(hwnas_predictor_scores *out, hwnas_predictor *predictor,
                                  const hwnas_space *space, const char *data, const char *target)
{
    hwnas_status status = HWNAS_OK;
    hwnas_table *table = NULL;
    double *values = NULL;
    hwnas_estimate *estimates = NULL;
    TRY_OUT(hwnas_table_load(&table, space, data));
    TRY_OUT(hwnas_table_results(&values, table, target ? target : predictor->target));
    estimates = hwnas_alloc(table->n * sizeof *estimates);
    TRY_OUT(hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)table->archs,
                                  table->n));
    *out = hwnas_scores(estimates, values, table->n);
    if (predictor->ops->ranks_only)
        out->rmse = out->mean_absolute_error = NAN;
out:
    free(estimates);
    free(values);
    hwnas_table_free(table);
    return status;
}
