/* predictor: fit, eval, and the list of the others. */
#include <hwnas/training.h>

#include "cli/cli.h"

hwnas_status hwnas_open_predictor(hwnas_predictor **out, hwnas_space **out_space, const char *name,
                                  const char *space_name)
{
    hwnas_space *space;
    TRY(hwnas_space_open(&space, space_name));
    const hwnas_status status = hwnas_predictor_open(out, name, space);
    if (status != HWNAS_OK) {
        hwnas_space_close(space);
        return status;
    }
    if (hwnas_predictor_heeds_stop(*out))
        hwnas_predictor_stop_on(*out, hwnas_stop_on_signals());
    *out_space = space;
    return HWNAS_OK;
}

static hwnas_status fit(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor fit SPACE DATA.csv",
        .summary = "Fits a predictor to a table of trained networks, judges it by nested\n"
                   "cross-validation, and writes it with a card beside it.",
        .notes =
            "DATA has a column 'code' or 'arch', or one column for each choice of the space;\n"
            "'DATA.csv?depth=d,width=w1+w2' where they have other names, one for all positions\n"
            "or one for each. SPACE 'any': its columns are facts about graphs\n"
            "(docs/predictors.md).",
        .min_arguments = 2,
        .max_arguments = 2};
    hwnas_fitting_options fitting = HWNAS_FITTING_OPTIONS_INIT;
    hwnas_report *report;
    const char *arguments[2];
    long folds = 5, seed = 0;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"target", 't', HWNAS_OPTION_TEXT, &fitting.target, "COLUMN", "what is predicted"},
        {"out", 'o', HWNAS_OPTION_TEXT, &fitting.out, "FILE.json", "file to write"},
        {"kind", 'k', HWNAS_OPTION_TEXT, &fitting.kind, "KIND",
         "gp, gbdt, ensemble, or auto: what does best (auto)"},
        {"folds", 0, HWNAS_OPTION_INT, &folds, "N", "folds of the cross-validation (5)"},
        {"seed", 0, HWNAS_OPTION_INT, &seed, "N", "seed of folds and trees (0)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!fitting.target || !fitting.out)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%s is missing",
                          fitting.target ? "--out" : "--target");
    if (folds < 3 || folds > 100)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--folds must be between 3 and 100");
    fitting.space = arguments[0];
    fitting.data = arguments[1];
    fitting.folds = (int)folds;
    fitting.seed = (uint64_t)seed;
    TRY(hwnas_results_fit(&report, &fitting));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static hwnas_status show(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor show PREDICTOR [SPACE]",
        .summary =
            "Says what a fitted predictor has learned from: values of each choice beside those\n"
            "of the space, ranges of facts about the networks, rows and scores.",
        .notes =
            "PREDICTOR is a file or the name of one that ships. SPACE is needed where the space\n"
            "that it was fitted on does not ship.",
        .min_arguments = 1,
        .max_arguments = 2};
    hwnas_report *report;
    const char *arguments[2] = {NULL, NULL};
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_predictor_show(&report, arguments[0], n > 1 ? arguments[1] : NULL));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static hwnas_status eval(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor eval PREDICTOR SPACE DATA.csv",
        .summary = "Compares a predictor with the known results of a table.",
        .notes = "PREDICTOR is a file, the name of one that ships, table:FILE#COLUMN,\n"
                 "proxy:NAME, onnx:FILE, train:RECIPE, supernet:RECIPE or command:PROGRAM "
                 "(docs/predictors.md).",
        .min_arguments = 3,
        .max_arguments = 3};
    hwnas_space *space;
    hwnas_predictor *predictor;
    hwnas_report *report;
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
    TRY(hwnas_open_predictor(&predictor, &space, arguments[0], arguments[1]));
    hwnas_status status = hwnas_predictor_judge(&report, predictor, arguments[2], target);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
    hwnas_predictor_close(predictor);
    hwnas_space_close(space);
    return status;
}

static const hwnas_command commands[] = {
    {"fit", "fit a predictor on a table of trained networks", fit},
    {"show", "what a predictor has learned from", show},
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
