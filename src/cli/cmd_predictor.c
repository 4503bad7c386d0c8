/* predictor: fit, eval. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/cli.h"
#include "graph/elaborate.h"
#include "predict/predict.h"

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

/* `chosen` (optional): what was fitted, in words. */
static hwnas_status print_scores(const hwnas_predictor_scores *s, const char *how,
                                 const char *chosen, bool as_json)
{
    if (as_json)
        return hwnas_print_json(json_pack(
            "{s:s, s:i, s:s, s:I, s:f, s:o, s:o, s:o, s:o, s:o*}", "format", "hwnas.scores",
            "version", 1, "how", how, "rows", (json_int_t)s->n_rows, "kendall_tau", s->kendall_tau,
            "rmse", number(s->rmse), "mean_absolute_error", number(s->mean_absolute_error),
            "top_tenth_tau", number(s->top_tenth_tau), "coverage_90", number(s->coverage_90),
            "chosen", chosen ? json_string(chosen) : NULL));
    hwnas_say(stdout, "%s, %zu rows\n  Kendall tau  %.4f\n", how, s->n_rows, s->kendall_tau);
    if (!isnan(s->rmse))
        hwnas_say(stdout, "  RMSE         %.4f\n  MAE          %.4f\n", s->rmse,
                  s->mean_absolute_error);
    if (!isnan(s->top_tenth_tau))
        hwnas_say(stdout, "  Kendall tau among the highest tenth  %.4f\n", s->top_tenth_tau);
    if (!isnan(s->coverage_90))
        hwnas_say(stdout, "  inside the 90 %% interval  %.1f %%\n", 100 * s->coverage_90);
    if (chosen)
        hwnas_say(stdout, "\nfitted: %s\n", chosen);
    return HWNAS_OK;
}

static hwnas_status fit(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor fit SPACE DATA.csv",
        .summary = "Fits a predictor to a table of trained networks, judges it by nested\n"
                   "cross-validation, and writes it with a card beside it.",
        .notes = "DATA has a column 'code' or 'arch', or one column for each choice of the space.\n"
                 "SPACE 'any': its columns are facts about graphs (docs/predictors.md).",
        .min_arguments = 2,
        .max_arguments = 2};
    const char *arguments[2], *target = NULL, *out = NULL, *kind = NULL;
    long folds = 5, seed = 0;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"target", 't', HWNAS_OPTION_TEXT, &target, "COLUMN", "what is predicted"},
        {"out", 'o', HWNAS_OPTION_TEXT, &out, "FILE.json", "file to write"},
        {"kind", 'k', HWNAS_OPTION_TEXT, &kind, "KIND",
         "gp, gbdt, ensemble, or auto: what does best (auto)"},
        {"folds", 0, HWNAS_OPTION_INT, &folds, "N", "folds of the cross-validation (5)"},
        {"seed", 0, HWNAS_OPTION_INT, &seed, "N", "seed of folds and trees (0)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!target || !out)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%s is missing", target ? "--out" : "--target");
    TRY(hwnas_file_check_output(out, arguments[0]));
    TRY(hwnas_file_check_output(out, arguments[1]));
    if (folds < 3 || folds > 100)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--folds must be between 3 and 100");
    hwnas_str command = {0};
    hwnas_str_addf(&command, "hwnas predictor fit %s %s --target %s --out %s", arguments[0],
                   arguments[1], target, out);
    if (kind)
        hwnas_str_addf(&command, " --kind %s", kind);
    if (folds != 5)
        hwnas_str_addf(&command, " --folds %ld", folds);
    if (seed)
        hwnas_str_addf(&command, " --seed %ld", seed);
    const hwnas_fit_options fit_options = {.space = arguments[0],
                                           .data = arguments[1],
                                           .target = target,
                                           .out = out,
                                           .command = command.s,
                                           .kind = kind,
                                           .folds = (int)folds,
                                           .seed = (uint64_t)seed};
    hwnas_fit_result result;
    hwnas_status status = hwnas_predictor_fit(&result, &fit_options);
    hwnas_str_done(&command);
    TRY(status);
    char how[32];
    snprintf(how, sizeof how, "%ld-fold cross-validation", folds);
    status = print_scores(&result.scores, how, result.chosen, as_json);
    free(result.chosen);
    return status;
}

static hwnas_status eval(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor eval PREDICTOR SPACE DATA.csv",
        .summary = "Compares a predictor with the known results of a table.",
        .notes = "PREDICTOR is a file, the name of one that ships, table:FILE#COLUMN,\n"
                 "proxy:NAME, onnx:FILE, or command:PROGRAM (docs/predictors.md).",
        .min_arguments = 3,
        .max_arguments = 3};
    const char *arguments[3], *target = NULL;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"target", 't', HWNAS_OPTION_TEXT, &target, "COLUMN",
         "what is known (the predictor's own)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_predictor *predictor = NULL;
    hwnas_predictor_scores scores;
    TRY_OUT(hwnas_graph_load_space(&space, arguments[1]));
    TRY_OUT(hwnas_predictor_load(&predictor, arguments[0], space));
    if (hwnas_predictor_heeds_stop(predictor))
        hwnas_predictor_stop_on(predictor, hwnas_stop_on_signals());
    if (!target)
        target = hwnas_predictor_target(predictor);
    TRY_OUT(hwnas_predictor_eval(&scores, predictor, space, arguments[2], target));
    TRY_OUT(print_scores(&scores, "known results", NULL, as_json));
out:
    hwnas_predictor_free(predictor);
    hwnas_space_free(space);
    return status;
}

static const hwnas_command commands[] = {
    {"fit", "fit a predictor on a table of trained networks", fit},
    {"eval", "compare a predictor with known results", eval},
    {"score", "print what a predictor says of networks", hwnas_cmd_predictor_score},
    {"suggest", "pick the networks whose training would teach most", hwnas_cmd_predictor_suggest},
    {"import", "take in the results of networks that were suggested", hwnas_cmd_predictor_import},
    {"encode", "print networks as vectors, to fit a model of your own", hwnas_cmd_predictor_encode},
    {0},
};

hwnas_status hwnas_cmd_predictor(int argc, char **argv)
{
    return hwnas_dispatch("hwnas predictor",
                          "A predictor estimates accuracy from the architecture.", commands, argc,
                          argv);
}
