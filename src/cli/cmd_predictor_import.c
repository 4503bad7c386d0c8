/* predictor import: takes in results that were filled into a table of suggestions. */
#include <hwnas/training.h>

#include "cli/cli.h"

hwnas_status hwnas_cmd_predictor_import(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor import FILE.csv",
        .summary = "Takes the results of trained networks into a file that 'predictor fit' reads.",
        .notes = "FILE is the table that 'predictor suggest' wrote, with results filled in; rows\n"
                 "without one wait. A column 'sd' may give the deviation of a result.",
        .min_arguments = 1,
        .max_arguments = 1};
    hwnas_results_options results = HWNAS_RESULTS_OPTIONS_INIT;
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"into", 'i', HWNAS_OPTION_TEXT, &results.into, "FILE.csv",
         "results of all rounds (SPACE.results.csv)"},
        {"space", 0, HWNAS_OPTION_TEXT, &results.space, "SPACE",
         "where the table does not name it"},
        {"target", 't', HWNAS_OPTION_TEXT, &results.target, "COLUMN",
         "the result's column (accuracy_pct)"},
        {"printed", 0, HWNAS_OPTION_TEXT, &results.printed, "UNIT",
         "percent or fraction, of an accuracy"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &results.data, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_results_import(&report, &results));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}
