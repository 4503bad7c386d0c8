/* fit.c: fitting a predictor to a table and judging one by a table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/stats.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/predict_priv.h"
#include "space/table.h"

enum { MIN_ROWS = 10, DEFAULT_FOLDS = 5, FOLD_STREAM = 1 };

/* Half the width of a normal distribution's 90 % interval, in standard deviations. */
static const double z_90 = 1.6448536269514722;

static hwnas_status read_target(double **out, const hwnas_table *table, const char *target)
{
    size_t column;
    TRY(hwnas_csv_require(&column, table->csv, target));
    double *values = hwnas_alloc(table->n * sizeof *values);
    for (size_t row = 0; row < table->n; row++) {
        hwnas_status status = hwnas_csv_number(&values[row], table->csv, row, column);
        if (status != HWNAS_OK) {
            free(values);
            return hwnas_hint(status, "every row needs a result: drop the rows that have none");
        }
    }
    *out = values;
    return HWNAS_OK;
}

static hwnas_predictor_scores judge(const hwnas_estimate *estimates, const double *known, size_t n)
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

typedef struct labelled {
    hwnas_digest digest;
    size_t row;
} labelled;

static int compare_digests(const void *a, const void *b)
{
    const labelled *x = a, *y = b;
    int order = strcmp(x->digest.hex, y->digest.hex);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Numbers the different networks in the order in which they first appear. Different encodings may
 * be one network (4 in 10 of NAS-Bench-Macro's are not the first of theirs), and a fold must not be
 * judged by networks that were trained on. */
static hwnas_status number_networks(size_t *out, size_t *n_networks, const hwnas_table *table)
{
    hwnas_status status = HWNAS_OK;
    labelled *labels = hwnas_alloc(table->n * sizeof *labels);
    size_t *first = hwnas_alloc(table->n * sizeof *first), n = 0;
    for (size_t row = 0; row < table->n; row++) {
        hwnas_graph *graph = NULL;
        TRY_OUT(hwnas_graph_build(&graph, table->archs[row], 1));
        labels[row] = (labelled){.digest = hwnas_graph_digest(graph), .row = row};
        hwnas_graph_free(graph);
    }
    qsort(labels, table->n, sizeof *labels, compare_digests);
    for (size_t i = 0; i < table->n; i++) {
        bool same = i && !strcmp(labels[i].digest.hex, labels[i - 1].digest.hex);
        first[labels[i].row] = same ? first[labels[i - 1].row] : labels[i].row;
    }
    for (size_t row = 0; row < table->n; row++)
        out[row] = first[row] == row ? n++ : out[first[row]];
    *n_networks = n;
out:
    free(labels);
    free(first);
    return status;
}

/* Deals the networks into folds of equal size, at random. */
static void deal_folds(int *out, const size_t *networks, size_t n_networks, size_t n_rows,
                       int n_folds, uint64_t seed)
{
    hwnas_rng rng = hwnas_rng_new(seed, FOLD_STREAM);
    size_t *order = hwnas_alloc(n_networks * sizeof *order);
    for (size_t i = 0; i < n_networks; i++) {
        size_t j = hwnas_rng_below(&rng, (uint32_t)i + 1); /* Fisher and Yates, inside out */
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t row = 0; row < n_rows; row++)
        out[row] = (int)(order[networks[row]] % (size_t)n_folds);
    free(order);
}

static hwnas_status check_rows(hwnas_fit *fit, const double *values, const hwnas_csv *csv)
{
    hwnas_place place = {.file = csv->path};
    if (fit->n_networks < MIN_ROWS)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "%zu different networks are too few to fit a predictor: at "
                                     "least %d are needed",
                                     fit->n_networks, MIN_ROWS),
                          "a few hundred give a useful one");
    fit->low = fit->high = values[0];
    for (size_t i = 0; i < fit->n_rows; i++) {
        fit->low = fmin(fit->low, values[i]);
        fit->high = fmax(fit->high, values[i]);
    }
    if (fit->low == fit->high)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "column '%s' is %g in every row: there is nothing to learn",
                                     fit->options->target, fit->low),
                          "name another column with --target");
    fit->n_folds = fit->options->folds ? fit->options->folds : DEFAULT_FOLDS;
    if (fit->n_folds < 3 || (size_t)fit->n_folds > fit->n_networks)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "%d folds: at least 3 are needed, and at most as many as "
                                     "there are networks (%zu)",
                                     fit->n_folds, fit->n_networks),
                          "the default is %d", DEFAULT_FOLDS);
    return HWNAS_OK;
}

/* Estimates every fold from the others. The spread is set so that the errors, each in units of its
 * own deviation, have variance one. */
static hwnas_status cross_validate(hwnas_fit *fit, const hwnas_sample *sample)
{
    hwnas_status status = HWNAS_OK;
    hwnas_estimate *estimates = hwnas_alloc(sample->n * sizeof *estimates);
    hwnas_gbdt *model = NULL;
    double sum = 0;
    for (int fold = 0; fold < sample->n_folds; fold++) {
        TRY_OUT(hwnas_gbdt_fit(&model, sample, fold, fit->options->seed));
        for (size_t i = 0; i < sample->n; i++) {
            if (sample->folds[i] != fold)
                continue;
            hwnas_gbdt_predict(&estimates[i].mean, &estimates[i].sd, model,
                               sample->terms + i * sample->n_terms,
                               sample->inputs + i * sample->n_inputs, 1);
            double error = (estimates[i].mean - sample->values[i]) / estimates[i].sd;
            sum += error * error;
        }
        hwnas_gbdt_free(model);
        model = NULL;
    }
    fit->spread = sqrt(sum / (double)sample->n);
    for (size_t i = 0; i < sample->n; i++)
        estimates[i].sd *= fit->spread;
    fit->scores = judge(estimates, sample->values, sample->n);
out:
    hwnas_gbdt_free(model);
    free(estimates);
    return status;
}

/* Like hwnas_file_write(), but says `path` in its message: the name that the user gave. */
static hwnas_status write_beside(const char *beside, const char *path, const char *text)
{
    hwnas_status status = hwnas_file_write(beside, text, strlen(text));
    if (status == HWNAS_OK)
        return status;
    hwnas_error error = *hwnas_last_error();
    hwnas_place place = {.file = path};
    return hwnas_hint(hwnas_fail(status, &place, "%s", error.message),
                      "does its directory exist, and may you write there?");
}

/* Writes both files beside their places first, so that a full disk leaves neither. */
static hwnas_status write_both(const hwnas_fit *fit)
{
    hwnas_status status = HWNAS_OK;
    const char *path = fit->options->out;
    int stem = (int)strlen(path) - (hwnas_ends_with(path, ".json") ? (int)strlen(".json") : 0);
    char *card_path = hwnas_printf("%.*s.md", stem, path);
    char *new_path = hwnas_printf("%s.new", path), *new_card = hwnas_printf("%s.new", card_path);
    char *text = hwnas_gbdt_text(fit), *card = hwnas_card_text(fit);
    hwnas_place place = {.file = path};
    TRY_OUT(write_beside(new_path, path, text));
    TRY_OUT(write_beside(new_card, card_path, card));
    if (rename(new_path, path)) {
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot write the file: %s", strerror(errno));
    } else if (rename(new_card, card_path)) {
        place.file = card_path;
        status = hwnas_fail(HWNAS_E_IO, &place, "cannot write the card: %s", strerror(errno));
        unlink(path);
    }
out:
    unlink(new_path);
    unlink(new_card);
    free(card_path);
    free(new_path);
    free(new_card);
    free(text);
    free(card);
    return status;
}

hwnas_status hwnas_predictor_fit(hwnas_predictor_scores *out, const hwnas_fit_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_table *table = NULL;
    hwnas_features *features = NULL;
    hwnas_sample *sample = NULL;
    hwnas_gbdt *model = NULL;
    double *values = NULL;
    size_t *networks = NULL;
    int *folds = NULL;
    hwnas_fit fit = {.options = options};
    TRY_OUT(hwnas_graph_load_space(&space, options->space));
    TRY_OUT(hwnas_table_load(&table, space, options->data));
    TRY_OUT(read_target(&values, table, options->target));
    fit.n_rows = table->n;
    networks = hwnas_alloc(table->n * sizeof *networks);
    folds = hwnas_alloc(table->n * sizeof *folds);
    TRY_OUT(number_networks(networks, &fit.n_networks, table));
    TRY_OUT(check_rows(&fit, values, table->csv));
    deal_folds(folds, networks, fit.n_networks, table->n, fit.n_folds, options->seed);

    fit.features = features = hwnas_features_new(space);
    if (!features->n_inputs) {
        hwnas_place place = {.file = space->path};
        status =
            hwnas_fail(HWNAS_E_INPUT, &place,
                       "the space '%s' has no choices: there is nothing to learn", space->name);
        goto out;
    }
    TRY_OUT(
        hwnas_sample_new(&sample, features, table->archs, values, folds, fit.n_folds, table->n));
    TRY_OUT(cross_validate(&fit, sample));
    TRY_OUT(hwnas_gbdt_fit(&model, sample, -1, options->seed));
    fit.model = model;
    TRY_OUT(write_both(&fit));
    *out = fit.scores;
out:
    hwnas_gbdt_free(model);
    hwnas_sample_free(sample);
    hwnas_features_free(features);
    free(folds);
    free(networks);
    free(values);
    hwnas_table_free(table);
    hwnas_space_free(space);
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
    TRY_OUT(read_target(&values, table, target ? target : predictor->target));
    estimates = hwnas_alloc(table->n * sizeof *estimates);
    TRY_OUT(hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)table->archs,
                                  table->n));
    *out = judge(estimates, values, table->n);
    if (predictor->row->ranks_only)
        out->rmse = out->mean_absolute_error = NAN;
out:
    free(estimates);
    free(values);
    hwnas_table_free(table);
    return status;
}
