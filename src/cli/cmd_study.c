/* study: looks at a study without changing it. */
#include "cli/cli.h"

static hwnas_status show(int argc, char **argv)
{
    static const hwnas_usage usage = {.synopsis = "study show STUDY",
                                      .summary =
                                          "Prints what a study has found so far; it may still run.",
                                      .min_arguments = 1,
                                      .max_arguments = 1};
    const char *path;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_study_read(&study, path));
    const hwnas_status status = hwnas_study_report(&report, study);
    hwnas_study_close(study);
    TRY(status);
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static const hwnas_command commands[] = {
    {"show", "print front, winner and figures of a study", show},
    {0},
};

hwnas_status hwnas_cmd_study(int argc, char **argv)
{
    return hwnas_dispatch("hwnas study", "STUDY is the SQLite file of a search.", commands, argc,
                          argv);
}
