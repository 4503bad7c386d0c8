/* card.c: the card of a fitted predictor: what it was fitted on, how, and how far to trust it. The
 * same command gives the same text, so it has no date and no path of the machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "predict/extrapolation.h"
#include "predict/predict_priv.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_scores(hwnas_str *text, const hwnas_fit *fit, const char *unit)
{
    const hwnas_predictor_scores *scores = &fit->scores;
    hwnas_str_addf(text,
                   "## Held-out scores\n\n"
                   "%d-fold cross-validation; rows of the same network are in the same fold, and "
                   "whatever the fit chooses\nit chooses anew inside each training part.\n\n"
                   "| score | value |\n|---|---|\n"
                   "| Kendall tau | %.4f |\n",
                   fit->n_folds, scores->kendall_tau);
    if (isfinite(scores->top_tenth_tau))
        hwnas_str_addf(text, "| Kendall tau among the highest tenth | %.4f |\n",
                       scores->top_tenth_tau);
    hwnas_str_addf(text,
                   "| root mean squared error | %.4g %s |\n"
                   "| mean absolute error | %.4g %s |\n"
                   "| results inside the 90 %% interval | %.1f %% |\n\n",
                   scores->rmse, unit, scores->mean_absolute_error, unit,
                   100 * scores->coverage_90);
}

/* Of the facts of whole networks; those at one scale are in the file. */
static void add_ranges(hwnas_str *text, const hwnas_sample *sample)
{
    const hwnas_feature_encoding *e = sample->encoding;
    const size_t first = e->first[HWNAS_COLUMN_FACT];
    json_t *ranges = hwnas_fact_ranges(&sample->rows);
    bool is_first = true;
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        const char *name = e->columns[first + i].name;
        const json_t *range = json_array_get(ranges, i);
        if (!hwnas_starts_with(name, "log ") || strchr(name, '/'))
            continue;
        if (is_first)
            hwnas_str_add(text, "\n| of its networks | from | to |\n|---|---|---|\n");
        is_first = false;
        hwnas_str_addf(text, "| %s | %.4g | %.4g |\n", name + strlen("log "),
                       exp(json_number_value(json_array_get(range, 0))),
                       exp(json_number_value(json_array_get(range, 1))));
    }
    json_decref(ranges);
}

static void add_sizes(hwnas_str *text, const hwnas_fit *fit, const char *unit)
{
    json_t *ranges = hwnas_fact_ranges(&fit->sample->rows);
    const hwnas_sizes sizes = hwnas_model_looks_at_sizes(fit->model)
                                  ? hwnas_sizes_of(fit->sample->encoding, ranges)
                                  : (hwnas_sizes){0};
    for (size_t i = 0; i < sizes.n; i++) {
        const hwnas_size_error error =
            hwnas_extrapolation_of_size(fit->extrapolation, &sizes.ranges[i]);
        hwnas_str_addf(text, "%s %s by %.3g below and by %.3g above%s%s",
                       i ? ";"
                         : "\nOther sizes are outside as well. A factor of 2 beyond them the "
                           "deviation of an estimate grows:",
                       sizes.ranges[i].name + strlen("log "), log(2) * error.below,
                       log(2) * error.above, *unit ? " " : "", unit);
    }
    hwnas_str_add(text, sizes.n ? ".\n" : "");
    json_decref(ranges);
}

/* What is said of networks with other values. */
static void add_outside(hwnas_str *text, const hwnas_fit *fit, const char *unit)
{
    const hwnas_space *space = fit->sample->space;
    const json_t *domain = fit->sample->domain;
    size_t n = 0;
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        const json_t *seen = json_object_get(domain, choice->name);
        json_t *unseen = hwnas_domain_unseen(domain, space, choice);
        bool is_known;
        const double most =
            hwnas_extrapolation_most(&is_known, fit->extrapolation, space, choice, seen, unseen);
        if (json_array_size(unseen))
            hwnas_str_addf(text, "%s `%s` by %s%.3g%s%s%s",
                           n++ ? ";" : "\nWith other values the deviation of an estimate grows:",
                           choice->name, is_known ? "up to " : "", most, *unit ? " " : "", unit,
                           is_known ? "" : " or more, as nothing is known of it");
        json_decref(unseen);
    }
    hwnas_str_add(text, n ? ".\n" : "");
    add_sizes(text, fit, unit);
}

static void add_limits_of_any(hwnas_str *text, const hwnas_fit *fit)
{
    const hwnas_feature_encoding *e = fit->sample->encoding;
    hwnas_str_add(text, "It looks at");
    for (size_t c = 0; c < e->n_columns; c++)
        hwnas_str_addf(text, "%s %s", c ? "," : "", e->columns[c].name);
    hwnas_str_add(
        text,
        ",\nand takes what a graph does not tell (how and on what it was trained) as 0. So it "
        "ranks networks of\nvery different size, and tells whether a family is worth a look. It "
        "cannot rank networks of about\nthe same size: what divides those is wiring, operators "
        "and the training recipe, of which it sees\nnothing. Within one space use a predictor "
        "fitted on that space. Rows of one family are in one\nfold, so the scores are those of "
        "families that it has not seen.\n");
}

char *hwnas_card_text(const hwnas_fit *fit)
{
    const hwnas_fit_options *options = fit->options;
    const hwnas_sample *sample = fit->sample;
    bool is_any = !sample->space;
    const char *unit = hwnas_column_unit(options->target);
    char *name = hwnas_strdup(base_name(options->out));
    if (hwnas_ends_with(name, ".json"))
        name[strlen(name) - strlen(".json")] = '\0';
    hwnas_str text = {0};
    hwnas_str_addf(&text, "# %s\n\nEstimates `%s` for networks of ", name, options->target);
    if (is_any)
        hwnas_str_add(&text, "any space");
    else
        hwnas_str_addf(&text, "the space `%s`", sample->space->name);
    hwnas_str_addf(&text,
                   ". Written by `hwnas predictor fit`.\n\n"
                   "## Data\n\n"
                   "`%s`: %zu rows of %zu different %s; %s from %.6g to %.6g %s.\n\n"
                   "## Fit\n\n"
                   "    %s\n\n"
                   "Kind `%s`: ",
                   base_name(options->data), sample->rows.n, sample->n_networks,
                   is_any ? "families" : "networks", options->target, fit->low, fit->high, unit,
                   options->command ? options->command : "hwnas predictor fit",
                   fit->model->kind->name);
    hwnas_model_describe(fit->model, &text, unit);
    hwnas_str_addf(&text, "\n\nSeed %llu.\n\n", (unsigned long long)options->seed);
    add_scores(&text, fit, unit);
    if (sample->domain) {
        hwnas_str_add(&text, "## What it has seen\n\n");
        hwnas_domain_table(&text, sample->domain, sample->space);
        add_ranges(&text, sample);
        add_outside(&text, fit, unit);
        hwnas_str_addf(&text, "\nA search stays among these values%s (`domain` in a job).\n\n",
                       hwnas_model_looks_at_sizes(fit->model) ? " and sizes" : "");
    }
    hwnas_str_add(&text, "## What it can and cannot rank\n\n");
    if (is_any)
        add_limits_of_any(&text, fit);
    else
        hwnas_str_addf(
            &text,
            "It ranks networks of `%s` by `%s` as that column was measured: same data, same "
            "training\nrecipe. It knows nothing of other spaces, data sets or recipes, and its "
            "numbers are not\nwhat a longer training would reach. The table is one sample of the "
            "space: beyond its best\nrow estimates are extrapolation. The deviation that comes "
            "with "
            "an estimate is that of a\nsingle trained result, noise of the training included.\n",
            sample->space->name, options->target);
    free(name);
    return text.s;
}
