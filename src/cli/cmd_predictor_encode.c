/* predictor encode: the networks of a table as vectors, to fit a model of one's own on. */
#include <hwnas/training.h>

#include "cli/cli.h"

hwnas_status hwnas_cmd_predictor_encode(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "predictor encode SPACE DATA.csv",
        .summary = "Prints each network of a table as a vector, as CSV: the input of onnx:FILE.",
        .notes = "Layouts: one-hot (a 1 among 0s for each value), values (the values themselves).",
        .min_arguments = 2,
        .max_arguments = 2};
    hwnas_space *space;
    hwnas_report *report;
    const char *arguments[2], *name = "one-hot";
    bool done;
    int n;
    const hwnas_option options[] = {
        {"layout", 'l', HWNAS_OPTION_TEXT, &name, "NAME", "one-hot (the default) or values"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, arguments, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_space_open(&space, arguments[0]));
    hwnas_status status = hwnas_space_encode(&report, space, arguments[1], name);
    if (status == HWNAS_OK)
        status = hwnas_print_report(report, HWNAS_CSV);
    hwnas_space_close(space);
    return status;
}
