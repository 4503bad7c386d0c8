/* explain: why a search came to a network, and what stands beside it. */
#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "explain STUDY",
    .summary = "Says why a network of a study stands where it does: its neighbours one change "
               "away, which\n"
               "choice costs what, and what a looser limit would buy.",
    .notes =
        "Neighbours that the study measured are told with their trial. Of the others, "
        "latencies are\n"
        "estimated from what it measured (marked ~): from the parts that it timed, or from the\n"
        "choices. Nothing is run.",
    .min_arguments = 1,
    .max_arguments = 1};

hwnas_status hwnas_cmd_explain(int argc, char **argv)
{
    const char *path;
    bool as_json = false, done;
    long trial = -1;
    int n;
    const hwnas_option options[] = {
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial (the winner)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_study_read(&study, path));
    const hwnas_status status = hwnas_study_explain(&report, study, trial);
    hwnas_study_close(study);
    TRY(status);
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}
