/* report: a study, or what was recorded, as one file for a browser, a picture of it, or its tables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwnas/page.h>

#include "cli/cli.h"

enum { MOST_FILES = 32 };

static const hwnas_usage usage = {
    .synopsis = "report FILE...",
    .summary =
        "Writes what a study has found as one HTML file: which network to deploy, how sure "
        "its\nlatency is, and why not a faster one; the front, all trials, and how they "
        "were measured.\nFILE may also be what `profile --save` or `compare --json` wrote: the "
        "sweep, the\nrooflines of its layers, which device serves a network cheapest. Behind a "
        "study: another\none, to be set beside it, and profiles with --layers of its networks.",
    .notes =
        "The file has all it needs: it opens without a network, and asks nobody for anything.\n"
        "The search may still run.\n"
        "hwnas report quickstart.db --out quickstart.html\n"
        "hwnas report quickstart.db other.db here.json\n"
        "hwnas report quickstart.db --svg front --out front.svg\n"
        "hwnas report here.json --png roofline",
    .min_arguments = 1,
    .max_arguments = MOST_FILES};

/* What is written. */
typedef struct wanted {
    const char *paths[MOST_FILES];
    int n_paths;
    const char *path, *out; /* the first; NULL: `out` is named after it */
    const char *svg, *png;  /* a picture; */
    const char *tables;     /* NULL all: the page */
    bool as_json;           /* the data of the page to standard output */
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

static const char *ending_of(const wanted *w)
{
    return w->svg                          ? ".svg"
           : w->png                        ? ".png"
           : !w->tables                    ? ".html"
           : strcmp(w->tables, "csv") == 0 ? ".csv"
                                           : ".md";
}

/* "job.html" of "job.db", "here.html" of "here.json"; "job-front.svg", "job.csv", "job.md". */
static char *name_file(const wanted *w)
{
    static const char *const known[] = {".db", ".json", NULL};
    size_t n;
    const char *study = name_of(w->path, &n), *picture = w->svg ? w->svg : w->png;
    for (const char *const *ending = known; *ending; ending++) {
        const size_t length = strlen(*ending);
        if (n > length && !strncmp(study + n - length, *ending, length)) {
            n -= length;
            break;
        }
    }
    const size_t room = n + (picture ? strlen(picture) : 0) + sizeof "-.html";
    char *name = hwnas_need(room, 1);
    snprintf(name, room, "%.*s%s%s%s", (int)n, study, picture ? "-" : "", picture ? picture : "",
             ending_of(w));
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
    TRY(w->svg      ? hwnas_page_save_picture(report, w->svg, path)
        : w->png    ? hwnas_page_save_png(report, w->png, path)
        : w->tables ? hwnas_page_save_tables(report, w->tables, path)
                    : save_page(report, path));
    hwnas_say(stderr, "wrote %s\n", path);
    return HWNAS_OK;
}

static hwnas_status write_report(const wanted *w, const char *out)
{
    hwnas_report *report;
    hwnas_status status = HWNAS_OK;
    TRY(hwnas_page_open(&report, w->path));
    for (int i = 1; i < w->n_paths && status == HWNAS_OK; i++)
        status = hwnas_page_add(report, w->paths[i]);
    if (status == HWNAS_OK && w->as_json)
        return hwnas_print_report(report, HWNAS_JSON);
    if (status == HWNAS_OK)
        status = save(report, w, out);
    hwnas_report_free(report);
    return status;
}

static hwnas_status check(const wanted *w, bool as_csv, bool as_markdown)
{
    const char *const given[] = {
        w->svg ? "--svg" : NULL,      w->png ? "--png" : NULL,
        as_csv ? "--csv" : NULL,      as_markdown ? "--markdown" : NULL,
        w->as_json ? "--json" : NULL, w->as_json && w->out ? "--out" : NULL};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        if (first && given[i])
            return hwnas_fail(HWNAS_E_USAGE, NULL, "%s and %s exclude each other", first, given[i]);
        first = given[i] ? given[i] : first;
    }
    if (w->n_paths > 1 && (w->svg || w->png || w->tables))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%s is of one file, and there are %d", first,
                          w->n_paths);
    return HWNAS_OK;
}

hwnas_status hwnas_cmd_report(int argc, char **argv)
{
    wanted w = {0};
    bool as_csv = false, as_markdown = false, done;
    const hwnas_option options[] = {
        {"out", 'o', HWNAS_OPTION_TEXT, &w.out, "FILE",
         "file to write (FILE with .html at its end)"},
        {"svg", 0, HWNAS_OPTION_TEXT, &w.svg, "NAME",
         "a picture: front or curve; of recorded files sweep or roofline"},
        {"png", 0, HWNAS_OPTION_TEXT, &w.png, "NAME", "the same as PNG, by librsvg"},
        {"csv", 0, HWNAS_OPTION_FLAG, &as_csv, NULL, "all trials instead, for a spreadsheet"},
        {"markdown", 0, HWNAS_OPTION_FLAG, &as_markdown, NULL,
         "the front and all trials instead, as tables of Markdown"},
        {"json", 0, HWNAS_OPTION_FLAG, &w.as_json, NULL,
         "instead, print the page's data as one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, w.paths, &w.n_paths, &done));
    if (done)
        return HWNAS_OK;
    w.path = w.paths[0];
    w.tables = as_csv ? "csv" : as_markdown ? "markdown" : NULL;
    TRY(check(&w, as_csv, as_markdown));
    char *name = w.out ? NULL : name_file(&w);
    hwnas_status status =
        w.as_json ? HWNAS_OK : hwnas_file_check_output(w.out ? w.out : name, w.path);
    for (int i = 1; i < w.n_paths && status == HWNAS_OK && !w.as_json; i++)
        status = hwnas_file_check_output(w.out ? w.out : name, w.paths[i]);
    if (status == HWNAS_OK)
        status = write_report(&w, w.out ? w.out : name);
    free(name);
    return status;
}
