/* study: looks at studies, merges them, and shrinks them. */
#include <string.h>

#include "cli/cli.h"

typedef hwnas_status report_on(hwnas_report **out, hwnas_study *study);

/* `constraints`: NULL for the study's own. */
static hwnas_status print(const char *path, const char *constraints, report_on *make,
                          hwnas_format format)
{
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_study_read(&study, path));
    hwnas_study_set_constraints(study, constraints);
    const hwnas_status status = make(&report, study);
    hwnas_study_close(study);
    TRY(status);
    return hwnas_print_report(report, format);
}

#define CONSTRAINTS_OPTION                                                                         \
    {                                                                                              \
        "constraints", 'c', HWNAS_OPTION_TEXT, &constraints, "LIMITS",                             \
            "judge by these instead: 'latency.p50 <= 6 ms, params < 2 M'"                          \
    }

static hwnas_status show(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "study show STUDY",
        .summary = "Prints what a study has found so far; it may still run. With --constraints it "
                   "answers for\nothers without a search, and tells what was never measured.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *path, *constraints = NULL;
    bool as_json = false, of_environment = false, as_chart = false, done;
    int n;
    const hwnas_option options[] = {
        CONSTRAINTS_OPTION,
        {"chart", 0, HWNAS_OPTION_FLAG, &as_chart, NULL,
         "the front among all trials instead, drawn in characters"},
        {"environment", 0, HWNAS_OPTION_FLAG, &of_environment, NULL,
         "the versions, processors, kernels and file hashes behind its trials"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    if (of_environment && constraints)
        return hwnas_fail(HWNAS_E_USAGE, NULL,
                          "--environment and --constraints exclude each other");
    if (as_chart && (of_environment || as_json))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--chart and %s exclude each other",
                          as_json ? "--json" : "--environment");
    return print(path, constraints,
                 as_chart         ? hwnas_study_chart
                 : of_environment ? hwnas_study_environment
                                  : hwnas_study_report,
                 as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static hwnas_status trials(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "study trials STUDY",
        .summary =
            "Lists every trial of a study: what it has of each metric, how it ended, its network.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *path, *constraints = NULL;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        CONSTRAINTS_OPTION, {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    return done ? HWNAS_OK
                : print(path, constraints, hwnas_study_trials, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static const struct {
    const char *name;
    hwnas_format format;
} table_formats[] = {{"csv", HWNAS_CSV}, {"jsonl", HWNAS_JSONL}};

static hwnas_status export(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "study export STUDY",
        .summary = "Prints every trial of a study for other programs, a line each.",
        .notes = "hwnas study export quickstart.db --format csv >trials.csv",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *path, *format = NULL, *constraints = NULL;
    bool done;
    int n;
    const hwnas_option options[] = {
        CONSTRAINTS_OPTION,
        {"format", 'f', HWNAS_OPTION_TEXT, &format, "FORMAT",
         "csv: a table with intervals and sources; jsonl: an object a line"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    for (size_t i = 0; format && i < sizeof table_formats / sizeof *table_formats; i++)
        if (!strcmp(format, table_formats[i].name))
            return print(path, constraints, hwnas_study_trials, table_formats[i].format);
    return hwnas_hint(format ? hwnas_fail(HWNAS_E_USAGE, NULL, "there is no format '%s'", format)
                             : hwnas_fail(HWNAS_E_USAGE, NULL, "--format is missing"),
                      "--format csv or --format jsonl");
}

static hwnas_status list(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "study list [WHERE]",
        .summary =
            "Lists the studies in a directory (the current one), or in a PostgreSQL database "
            "by its address.",
        .max_arguments = 1};
    const char *where = NULL;
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &where, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_studies_list(&report, n ? where : NULL));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

enum { MAX_MERGED = 256 };

static hwnas_status merge(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "study merge STUDY...",
        .summary =
            "Makes a study of the finished trials of others that searched for the same: those "
            "of the first,\nthen what the others have besides. With one it is a copy, as from "
            "PostgreSQL into a file.",
        .min_arguments = 1,
        .max_arguments = MAX_MERGED};
    const char *studies[MAX_MERGED], *to = NULL;
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"out", 'o', HWNAS_OPTION_TEXT, &to, "STUDY", "the new study: a file or an address"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, studies, &n, &done));
    if (done)
        return HWNAS_OK;
    if (!to)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--out STUDY names the new study");
    TRY(hwnas_studies_merge(&report, studies, (size_t)n, to));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static hwnas_status vacuum(int argc, char **argv)
{
    static const hwnas_usage usage = {
        .synopsis = "study vacuum STUDY",
        .summary = "Gives back the room that a study does not need any more.",
        .min_arguments = 1,
        .max_arguments = 1};
    const char *path;
    hwnas_report *report;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(hwnas_study_vacuum(&report, path));
    return hwnas_print_report(report, as_json ? HWNAS_JSON : HWNAS_TEXT);
}

static const hwnas_command commands[] = {
    {"list", "list the studies of a directory or a database", list},
    {"show", "print front, winner and figures of a study", show},
    {"trials", "list all trials", trials},
    {"export", "print all trials as CSV or JSON lines", export},
    {"merge", "make one study of several", merge},
    {"vacuum", "make a study as small as it can be", vacuum},
    {0},
};

hwnas_status hwnas_cmd_study(int argc, char **argv)
{
    return hwnas_dispatch("hwnas study",
                          "STUDY is the file of a search, or its address in PostgreSQL.", commands,
                          argc, argv);
}
