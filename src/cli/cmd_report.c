/* report: a study as one file for a browser, a picture of it, or its tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwnas/page.h>

#include "cli/cli.h"

static const hwnas_usage usage = {
    .synopsis = "report STUDY",
    .summary = "Writes what a study has found as one HTML file: which network to deploy, how sure "
               "its\nlatency is, and why not a faster one; the front, all trials, and how they "
               "were measured.",
    .notes =
        "The file has all it needs: it opens without a network, and asks nobody for anything.\n"
        "The search may still run.\n"
        "hwnas report quickstart.db --out quickstart.html\n"
        "hwnas report quickstart.db --svg front --out front.svg",
    .min_arguments = 1,
    .max_arguments = 1};

/* What is written. */
typedef struct wanted {
    const char *path, *out;       /* NULL: `out` is named after the study */
    const char *picture, *tables; /* NULL, NULL: the page */
    bool as_json;                 /* the data of the page to standard output */
} wanted;

/* The name of a study in PostgreSQL, which stands in its address; others are files. */
static const char *name_of(const char *study, size_t *n)
{
    static const char key[] = "study=";
    const bool is_address = strstr(study, "://") != NULL;
    const char *name = is_address ? strstr(study, key) : NULL;
    if (is_address)
        study = name ? name + strlen(key) : "hwnas";
    *n = is_address ? strcspn(study, "&") : strlen(study);
    return study;
}

/* "job.html" of "job.db"; "job-front.svg", "job.csv", "job.md". */
static char *name_file(const wanted *w)
{
    size_t n;
    const char *study = name_of(w->path, &n);
    if (n > 3 && !strncmp(study + n - 3, ".db", 3))
        n -= 3;
    const char *ending = w->picture                      ? ".svg"
                         : !w->tables                    ? ".html"
                         : strcmp(w->tables, "csv") == 0 ? ".csv"
                                                         : ".md";
    const size_t room = n + (w->picture ? strlen(w->picture) : 0) + sizeof "-.html";
    char *name = hwnas_need(room, 1);
    snprintf(name, room, "%.*s%s%s%s", (int)n, study, w->picture ? "-" : "",
             w->picture ? w->picture : "", ending);
    return name;
}

static hwnas_status save_page(const hwnas_report *report, const char *path)
{
    const char *note;
    TRY(hwnas_page_save(report, path));
    for (size_t i = 0; (note = hwnas_report_note(report, i)); i++)
        hwnas_say(stderr, "hwnas: note: %s\n", note);
    if (!hwnas_page_has_charts())
        hwnas_say(stderr, "hwnas: note: this hwnas was built without uPlot, so the page has "
                          "no charts; scripts/install-deps fetches it\n");
    return HWNAS_OK;
}

static hwnas_status save(const hwnas_report *report, const wanted *w, const char *path)
{
    TRY(w->picture  ? hwnas_page_save_picture(report, w->picture, path)
        : w->tables ? hwnas_page_save_tables(report, w->tables, path)
                    : save_page(report, path));
    hwnas_say(stderr, "wrote %s\n", path);
    return HWNAS_OK;
}

static hwnas_status write_report(const wanted *w, const char *out)
{
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_study_read(&study, w->path));
    hwnas_status status = hwnas_page_of_study(&report, study);
    hwnas_study_close(study);
    TRY(status);
    if (w->as_json)
        return hwnas_print_report(report, HWNAS_JSON);
    status = save(report, w, out);
    hwnas_report_free(report);
    return status;
}

static hwnas_status check(const wanted *w, bool as_csv, bool as_markdown)
{
    const char *const given[] = {w->picture ? "--svg" : NULL, as_csv ? "--csv" : NULL,
                                 as_markdown ? "--markdown" : NULL, w->as_json ? "--json" : NULL,
                                 w->as_json && w->out ? "--out" : NULL};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        if (first && given[i])
            return hwnas_fail(HWNAS_E_USAGE, NULL, "%s and %s exclude each other", first, given[i]);
        first = given[i] ? given[i] : first;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_cmd_report(int argc, char **argv)
{
    wanted w = {0};
    bool as_csv = false, as_markdown = false, done;
    int n;
    const hwnas_option options[] = {
        {"out", 'o', HWNAS_OPTION_TEXT, &w.out, "FILE",
         "file to write (STUDY with .html at its end)"},
        {"svg", 0, HWNAS_OPTION_TEXT, &w.picture, "NAME",
         "a picture instead: front, or curve (the best network so far)"},
        {"csv", 0, HWNAS_OPTION_FLAG, &as_csv, NULL, "all trials instead, for a spreadsheet"},
        {"markdown", 0, HWNAS_OPTION_FLAG, &as_markdown, NULL,
         "the front and all trials instead, as tables of Markdown"},
        {"json", 0, HWNAS_OPTION_FLAG, &w.as_json, NULL,
         "instead, print the page's data as one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &w.path, &n, &done));
    if (done)
        return HWNAS_OK;
    TRY(check(&w, as_csv, as_markdown));
    w.tables = as_csv ? "csv" : as_markdown ? "markdown" : NULL;
    char *name = w.out ? NULL : name_file(&w);
    hwnas_status status =
        w.as_json ? HWNAS_OK : hwnas_file_check_output(w.out ? w.out : name, w.path);
    if (status == HWNAS_OK)
        status = write_report(&w, w.out ? w.out : name);
    free(name);
    return status;
}
