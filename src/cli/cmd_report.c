/* report: a study as one file for a browser, or a picture of it. */
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

/* "job.html" of "job.db", "job-front.svg" for a picture. */
static char *name_file(const char *study, const char *picture)
{
    size_t n = strlen(study);
    if (n > 3 && !strcmp(study + n - 3, ".db"))
        n -= 3;
    const size_t room = n + (picture ? strlen(picture) : 0) + sizeof "-.html";
    char *name = hwnas_need(room, 1);
    snprintf(name, room, picture ? "%.*s-%s.svg" : "%.*s.html", (int)n, study, picture);
    return name;
}

static hwnas_status save(const hwnas_report *report, const char *picture, const char *path)
{
    const char *note;
    if (picture) {
        TRY(hwnas_page_save_picture(report, picture, path));
    } else {
        TRY(hwnas_page_save(report, path));
        for (size_t i = 0; (note = hwnas_report_note(report, i)); i++)
            hwnas_say(stderr, "hwnas: note: %s\n", note);
        if (!hwnas_page_has_charts())
            hwnas_say(stderr, "hwnas: note: this hwnas was built without uPlot, so the page has "
                              "no charts; scripts/install-deps fetches it\n");
    }
    hwnas_say(stderr, "wrote %s\n", path);
    return HWNAS_OK;
}

/* `out` NULL: the data of the page to standard output. */
static hwnas_status write_report(const char *path, const char *picture, const char *out)
{
    hwnas_study *study;
    hwnas_report *report;
    TRY(hwnas_study_read(&study, path));
    hwnas_status status = hwnas_page_of_study(&report, study);
    hwnas_study_close(study);
    TRY(status);
    if (!out)
        return hwnas_print_report(report, HWNAS_JSON);
    status = save(report, picture, out);
    hwnas_report_free(report);
    return status;
}

hwnas_status hwnas_cmd_report(int argc, char **argv)
{
    const char *path, *out = NULL, *picture = NULL;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"out", 'o', HWNAS_OPTION_TEXT, &out, "FILE",
         "file to write (STUDY with .html at its end)"},
        {"svg", 0, HWNAS_OPTION_TEXT, &picture, "NAME",
         "a picture instead: front, or curve (the best network so far)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL,
         "instead, print the page's data as one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    if ((out || picture) && as_json)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s and --json exclude each other",
                          out ? "out" : "svg");
    if (as_json)
        return write_report(path, NULL, NULL);
    char *name = out ? NULL : name_file(path, picture);
    hwnas_status status = hwnas_file_check_output(out ? out : name, path);
    if (status == HWNAS_OK)
        status = write_report(path, picture, out ? out : name);
    free(name);
    return status;
}
