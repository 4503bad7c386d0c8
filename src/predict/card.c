/* card.c: the card of a fitted predictor: what it was fitted on, how, and how far to trust it. The
 * same command gives the same text, so it has no date and no path of the machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "predict/predict_priv.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_scale(hwnas_str *text, const hwnas_link *link, const char *unit)
{
    const char *space = *unit ? " " : "";
    if (link->side > 0)
        hwnas_str_addf(text, "-log(%.4g%s%s - target)", link->limit, space, unit);
    else if (link->side < 0)
        hwnas_str_addf(text, "log(target - %.4g%s%s)", link->limit, space, unit);
    else
        hwnas_str_add(text, "the target itself");
}

static void add_scores(hwnas_str *text, const hwnas_fit *fit, const char *unit)
{
    const hwnas_predictor_scores *scores = &fit->scores;
    hwnas_str_addf(text,
                   "## Held-out scores\n\n"
                   "%d-fold cross-validation; rows of the same network are in the same fold, and "
                   "scale and penalty\nare chosen anew inside each training part.\n\n"
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

char *hwnas_card_text(const hwnas_fit *fit)
{
    const hwnas_fit_options *options = fit->options;
    const hwnas_features *features = fit->features;
    const hwnas_gbdt *model = fit->model;
    const char *space = features->space->name, *unit = hwnas_column_unit(options->target);
    char *name = hwnas_strdup(base_name(options->out));
    if (hwnas_ends_with(name, ".json"))
        name[strlen(name) - strlen(".json")] = '\0';
    hwnas_str text = {0};
    hwnas_str_addf(&text,
                   "# %s\n\n"
                   "Estimates `%s` for networks of the space `%s`. Written by "
                   "`hwnas predictor fit`.\n\n"
                   "## Data\n\n"
                   "`%s`: %zu rows of %zu different networks; %s from %.6g to %.6g %s.\n\n"
                   "## Fit\n\n"
                   "    %s\n\n",
                   name, options->target, space, base_name(options->data), fit->n_rows,
                   fit->n_networks, options->target, fit->low, fit->high, unit,
                   options->command ? options->command : "hwnas predictor fit");
    hwnas_str_add(&text, "Scale: ");
    add_scale(&text, &model->link, unit);
    hwnas_str_addf(
        &text,
        ". On it, ridge regression with penalty %.6g in %zu columns and %zu\n"
        "products of two, then %d trees by XGBoost on %zu inputs for what is left over:\n",
        model->penalty, features->n_columns, features->n_pairs, HWNAS_N_TREES, features->n_inputs);
    for (const hwnas_trees_setting *s = hwnas_trees_settings; s->name; s++)
        hwnas_str_addf(&text, "%s %s, ", s->name, s->value);
    hwnas_str_addf(&text, "seed %llu.\n\n", (unsigned long long)options->seed);
    add_scores(&text, fit, unit);
    hwnas_str_addf(
        &text,
        "## What it can and cannot rank\n\n"
        "It ranks networks of `%s` by `%s` as that column was measured: same data, same training\n"
        "recipe. It knows nothing of other spaces, data sets or recipes, and its numbers are not\n"
        "what a longer training would reach. The table is one sample of the space: above its "
        "highest\nrow (%.6g %s) estimates are extrapolation. The deviation that comes with an "
        "estimate is that of a\nsingle trained result, noise of the training included.\n",
        space, options->target, fit->high, unit);
    free(name);
    return text.s;
}
