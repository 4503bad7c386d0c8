/* search: runs a job, shows progress, prints the front, exports the winner. */
#include <assert.h>

#include "cli/crew.h"
#include "cli/verbosity.h"
#include "cli/search_progress.h"

static const hwnas_usage usage = {
    .synopsis = "search JOB.yaml",
    .summary =
        "Searches for the networks that a job asks for and prints their front; Ctrl-C ends it.",
    .notes = "An option stands in the place of the job's key of that name (docs/searching.md).\n"
             "Exit code: 0 done, 2 wrong job, 3 no network within the limits, 4 machine too busy, "
             "130 interrupted.",
    .max_arguments = 1};

/* ---- The command line ---- */

/* The flags of the program itself, and one for each key of a job. */
enum { MAX_KEYS = 56, ALONE = -1 };

typedef struct command_line {
    const char *path; /* of the job; NULL: none */
    bool dry_run, as_json;
    long n_workers; /* ALONE: nobody searches with it */
    hwnas_crew crew;
    hwnas_search_options search;
    hwnas_job_flag keys[MAX_KEYS + 1];
} command_line;

static hwnas_status parse(command_line *out, bool *is_done, int argc, char **argv)
{
    const hwnas_option own[] = {
        {"resume", 0, HWNAS_OPTION_FLAG, &out->search.resume, NULL, "go on with an existing study"},
        {"overwrite", 0, HWNAS_OPTION_FLAG, &out->search.overwrite, NULL,
         "replace an existing study"},
        {"workers", 0, HWNAS_OPTION_INT, &out->n_workers, "N",
         "search with N processes; others may join (docs/cluster.md)"},
        {"only", 0, HWNAS_OPTION_TEXT | HWNAS_OPTION_RARE, &out->search.only, "TASKS",
         "with --workers: measure, train, or devices; others do the rest"},
        {"dry-run", 0, HWNAS_OPTION_FLAG, &out->dry_run, NULL,
         "say what would be done, write nothing"},
        {"json", 0, HWNAS_OPTION_FLAG, &out->as_json, NULL, "print one JSON object"},
    };
    const char *values[MAX_KEYS] = {0};
    hwnas_option rows[sizeof own / sizeof *own + MAX_KEYS + 1] = {0}, *row = rows;
    hwnas_job_key_info key;
    int n, n_keys = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        *row++ = own[i];
    for (size_t i = 0; i < MAX_KEYS && hwnas_job_key_list(&key, i); i++)
        *row++ = (hwnas_option){.name = key.name,
                                .letter = key.letter,
                                .kind = HWNAS_OPTION_TEXT | (key.is_rare ? HWNAS_OPTION_RARE : 0),
                                .value = &values[i],
                                .argument = key.argument,
                                .help = key.help};
    assert(!hwnas_job_key_list(&key, MAX_KEYS));
    TRY(hwnas_options_parse(&usage, rows, argc, argv, &out->path, &n, is_done));
    out->path = n ? out->path : NULL;
    for (size_t i = 0; i < MAX_KEYS && hwnas_job_key_list(&key, i); i++)
        if (values[i])
            out->keys[n_keys++] = (hwnas_job_flag){key.name, values[i]};
    out->search.flags = out->keys;
    if (out->n_workers == ALONE)
        return HWNAS_OK;
    TRY(hwnas_crew_check(out->n_workers));
    out->search.is_worker = true;
    out->search.n_workers = (int)out->n_workers;
    return HWNAS_OK;
}

static hwnas_status check_line(const command_line *given)
{
    if (given->search.is_worker && (given->search.resume || given->search.overwrite))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--workers goes without --resume and --overwrite");
    if (given->search.only && !given->search.is_worker)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--only goes with --workers");
    if (given->search.resume && given->search.overwrite)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--resume and --overwrite exclude each other");
    if (!given->path && !given->keys[0].name)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "which job?"),
                          "write 'hwnas search JOB.yaml', or give its keys as options");
    return HWNAS_OK;
}

static hwnas_status run_search(command_line *given)
{
    hwnas_report *report;
    hwnas_progress_line line;
    hwnas_progress_begin_search(&line, &given->search);
    hwnas_status status = hwnas_search(&report, given->path, &given->search);
    hwnas_crew_end(&given->crew, status);
    hwnas_progress_end(&line);
    return status == HWNAS_OK ? hwnas_print_report(report, given->as_json ? HWNAS_JSON : HWNAS_TEXT)
                              : status;
}

static hwnas_status show_plan(const command_line *given)
{
    hwnas_report *report;
    TRY(hwnas_search_plan(&report, given->path, &given->search));
    return hwnas_print_report(report, given->as_json ? HWNAS_JSON : HWNAS_TEXT);
}

hwnas_status hwnas_cmd_search(int argc, char **argv)
{
    command_line given = {.n_workers = ALONE, .search = HWNAS_SEARCH_OPTIONS_INIT};
    bool done;
    TRY(parse(&given, &done, argc, argv));
    if (done)
        return HWNAS_OK;
    TRY(check_line(&given));
    given.search.cancel = hwnas_stop_on_signals();
    if (!given.dry_run)
        TRY(hwnas_crew_start(&given.crew, given.n_workers, argc, argv));
    return given.dry_run ? show_plan(&given) : run_search(&given);
}
