/* version: of hwnas and of what it is made of. */
#include "cli/cli.h"

static const hwnas_usage usage = {.synopsis = "version",
                                  .summary = "Prints the versions of hwnas and of its libraries."};

hwnas_status hwnas_cmd_version(int argc, char **argv)
{
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, NULL, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_library_versions(&report));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}
