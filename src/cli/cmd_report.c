/* report: a study as one file for a browser. */
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
        "hwnas report quickstart.db --out quickstart.html",
    .min_arguments = 1,
    .max_arguments = 1};

/* "job.html" of "job.db". */
static char *name_page(const char *study)
{
    static const char ending[] = ".html";
    size_t n = strlen(study);
    if (n > 3 && !strcmp(study + n - 3, ".db"))
        n -= 3;
    char *name = hwnas_need(n + sizeof ending, 1);
    memcpy(name, study, n);
    memcpy(name + n, ending, sizeof ending);
    return name;
}

static hwnas_status save(hwnas_report *report, const char *path)
{
    const char *note;
    TRY(hwnas_page_save(report, path));
    for (size_t i = 0; (note = hwnas_report_note(report, i)); i++)
        hwnas_say(stderr, "hwnas: note: %s\n", note);
    if (!hwnas_page_has_charts())
        hwnas_say(stderr, "hwnas: note: this hwnas was built without uPlot, so the page has no "
                          "charts; scripts/install-deps fetches it\n");
    hwnas_say(stderr, "wrote %s\n", path);
    return HWNAS_OK;
}

static hwnas_status write_page(const char *path, const char *out)
{
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_study_read(&study, path));
    hwnas_status status = hwnas_page_of_study(&report, study);
    hwnas_study_close(study);
    TRY(status);
    if (!out)
        return hwnas_print_report(report, HWNAS_JSON);
    status = save(report, out);
    hwnas_report_free(report);
    return status;
}

hwnas_status hwnas_cmd_report(int argc, char **argv)
{
    const char *path, *out = NULL;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {{"out", 'o', HWNAS_OPTION_TEXT, &out, "FILE",
                                     "file to write (STUDY with .html at its end)"},
                                    {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL,
                                     "instead, print the page's data as one JSON object"},
                                    {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    if (out && as_json)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--out and --json exclude each other");
    if (as_json)
        return write_page(path, NULL);
    char *name = out ? NULL : name_page(path);
    hwnas_status status = hwnas_file_check_output(out ? out : name, path);
    if (status == HWNAS_OK)
        status = write_page(path, out ? out : name);
    free(name);
    return status;
}
