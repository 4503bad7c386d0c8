/* worker: searches with others on a study, by the job that it keeps. */
#include "cli/crew.h"
#include "cli/search_progress.h"

static const hwnas_usage usage = {
    .synopsis = "worker STUDY",
    .summary =
        "Makes trials of a study that others make trials of, by the job that it keeps, until "
        "none is\nleft; then prints its front. Ctrl-C ends it.",
    .notes = "A search with --workers begins the study (docs/cluster.md). Exit code: "
             "as of a "
             "search.\n"
             "hwnas worker 'postgresql://me@db.example.org/nas?study=phone'",
    .min_arguments = 1,
    .max_arguments = 1};

hwnas_status hwnas_cmd_worker(int argc, char **argv)
{
    hwnas_search_options search = HWNAS_SEARCH_OPTIONS_INIT;
    hwnas_progress_line line;
    hwnas_report *report;
    hwnas_crew crew;
    const char *study;
    long n_workers = 1;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"workers", 0, HWNAS_OPTION_INT, &n_workers, "N", "N processes of this machine"},
        {"only", 0, HWNAS_OPTION_TEXT, &search.only, "TASKS",
         "do these tasks of a trial alone: measure, train, or devices by name"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &study, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_crew_check(n_workers));
    search.cancel = hwnas_stop_on_signals();
    search.n_workers = (int)n_workers;
    TRY(hwnas_crew_start(&crew, n_workers, argc, argv));
    hwnas_progress_begin_search(&line, &search);
    const hwnas_status status = hwnas_search_join(&report, study, &search);
    hwnas_crew_end(&crew, status);
    hwnas_progress_end(&line);
    return status == HWNAS_OK ? hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT)
                              : status;
}
