/* predictor score: what a predictor says of the networks of a table, as CSV. */
#include <hwnas/training.h>

#include "cli/cli.h"

hwnas_status hwnas_cmd_predictor_score(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor score PREDICTOR SPACE DATA.csv",
        .summary = "Prints code, mean and standard deviation for each row of a table, as CSV; no\n"
                   "deviation where none is claimed. A fitted predictor also names the choices in\n"
                   "which a network is outside what it has learned from.",
        .notes = "PREDICTOR is a file, the name of one that ships, table:FILE#COLUMN, proxy:NAME,\n"
                 "onnx:FILE, samples:FILE, train:RECIPE, supernet:RECIPE or command:PROGRAM.",
        .min_arguments = 3,
        .max_arguments = 3};
    hwnas_space *space;
    hwnas_predictor *predictor;
    hwnas_report *report;
    const char *arguments[3];
    bool done;
    int n;
    const hwnas_option options[] = {{0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_open_predictor(&predictor, &space, arguments[0], arguments[1]));
    hwnas_status status = hwnas_predictor_score_table(&report, predictor, arguments[2]);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, HWNAS_CSV);
    hwnas_predictor_close(predictor);
    hwnas_space_close(space);
    return status;
}
