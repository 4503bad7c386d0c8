/* explain: why a search came to a network, and what stands beside it. */
#include <hwnas/study.h>

#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "explain STUDY",
    .summary = "Says why a network of a study stands where it does: its neighbours one change "
               "away, which\n"
               "choice costs what, and what a looser limit would buy.",
    .notes =
        "Neighbours that the study measured are told with their trial. Of the others, "
        "latencies are\n"
        "estimated from what it measured: from the parts that it timed (~), or from the\n"
        "choices (~~). With --measure each takes turns with the network on the study's devices\n"
        "(=), which takes up to five times a trial's measurement; the study stays as it is.",
    .min_arguments = 1,
    .max_arguments = 1};

hwnas_status hwnas_cmd_explain(int argc, char **argv)
{
    const char *path;
    hwnas_explain_options options = HWNAS_EXPLAIN_OPTIONS_INIT;
    bool as_json = false, measures = false, done;
    long trial = -1;
    int n;
    const hwnas_option table[] = {
        {"trial", 0, HWNAS_OPTION_INT, &trial, "N", "this trial (the winner)"},
        {"measure", 0, HWNAS_OPTION_FLAG, &measures, NULL, "measure the neighbours now"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_options_parse(&usage, table, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    if (measures && hwnas_study_is_running(path))
        return hwnas_hint(hwnas_fail(HWNAS_E_IO, &(hwnas_place){.file = path},
                                     "a search works on this study, and would be disturbed"),
                          "measure when it has ended, or leave --measure out");
    TRY(hwnas_study_read(&study, path));
    options.cancel = measures ? hwnas_stop_on_signals() : NULL;
    options.progress = hwnas_show_progress;
    const hwnas_status status = measures
                                    ? hwnas_study_explain_measured(&report, study, trial, &options)
                                    : hwnas_study_explain(&report, study, trial);
    hwnas_show_progress(NULL, NULL);
    hwnas_study_close(study);
    TRY(status);
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}
