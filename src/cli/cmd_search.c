/* search: runs a job, shows progress, prints the front, exports the winner. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "report/front.h"
#include "report/plan_text.h"
#include "study/exports.h"
#include "study/study.h"

static const hwnas_usage usage = {
    .synopsis = "search JOB.yaml",
    .summary =
        "Searches for the networks that a job asks for and prints their front; Ctrl-C ends it.",
    .notes =
        "An option stands in the place of the job's key of that name (docs/searching.md).\n"
        "Exit code: 0 done, 2 wrong job, 3 no network within the limits, 4 machine too busy, "
        "130 interrupted.",
    .max_arguments = 1};

typedef struct line {
    const hwnas_job *job;
    bool is_shown;
    double last;
} line;

static char *progress_words(const line *l, const hwnas_progress *p)
{
    hwnas_str words = {0};
    char *best = p->winner ? hwnas_trial_words(p->winner, &l->job->goals)
                           : hwnas_strdup("none feasible yet");
    hwnas_str_addf(&words, "%llu", (unsigned long long)p->n_done);
    if (p->max_trials)
        hwnas_str_addf(&words, "/%llu", (unsigned long long)p->max_trials);
    hwnas_str_addf(&words, " trials, best %s, front %zu, %.0f trials/min", best, p->n_front,
                   p->trials_per_minute);
    if (p->n_failed)
        hwnas_str_addf(&words, ", %llu failed", (unsigned long long)p->n_failed);
    if (*p->phase)
        hwnas_str_addf(&words, ", %s", p->phase);
    else if (!isnan(p->seconds_left) && p->seconds_left >= 0)
        hwnas_str_addf(&words, ", %d:%02d left", (int)p->seconds_left / 60,
                       (int)p->seconds_left % 60);
    free(best);
    return words.s;
}

static void show_progress(void *context, const hwnas_progress *p)
{
    line *l = context;
    double now = hwnas_now();
    if (now - l->last < 0.1)
        return;
    char *words = progress_words(l, p);
    fputs("\r\033[K", stderr);
    hwnas_say(stderr, "%s", words);
    free(words);
    l->last = now;
    l->is_shown = true;
}

/* For a file or a pipe: a line of its own, and few of them. */
static void log_progress(void *context, const hwnas_progress *p)
{
    line *l = context;
    double now = hwnas_now();
    if (now - l->last < 10)
        return;
    char *words = progress_words(l, p);
    hwnas_say(stderr, "hwnas: %s\n", words);
    free(words);
    l->last = now;
}

static void print_written(const hwnas_network_file *file)
{
    const char *note = hwnas_network_file_note(file);
    hwnas_say(stderr, "wrote %s%s%s\n", file->path, *note ? ", which" : "", note);
}

/* When most trials failed, and none was good, why the last of them did. */
static hwnas_status most_failed(const hwnas_summary *summary)
{
    const hwnas_trial *last = &summary->trials[summary->n_trials - 1];
    while (!last->is_finished || last->status == HWNAS_OK)
        last--;
    return hwnas_hint(hwnas_fail(last->status, NULL, "%zu of %zu trials failed, last error: %s",
                                 summary->n_failed, summary->n_finished,
                                 last->message ? last->message : "?"),
                      "'hwnas study show %s --json' lists the failures", summary->study);
}

/* Networks would have met the constraints, were they computed right; NULL: none would. */
static const hwnas_trial *find_wrong(const hwnas_summary *summary)
{
    for (size_t i = 0; i < summary->n_trials; i++)
        if (summary->trials[i].is_finished && summary->trials[i].status == HWNAS_E_WRONG_RESULT)
            return &summary->trials[i];
    return NULL;
}

static hwnas_status no_winner(const hwnas_summary *summary)
{
    const hwnas_trial *wrong = find_wrong(summary);
    if (wrong)
        return hwnas_fail(
            HWNAS_E_WRONG_RESULT, NULL,
            "each network that met the constraints gave a wrong result; trial %llu: %s",
            (unsigned long long)wrong->number, wrong->message);
    if (2 * summary->n_failed > summary->n_finished)
        return most_failed(summary);
    TRY(hwnas_evidence_check(&summary->evidence));
    hwnas_str limits = {0};
    for (int i = 0; i < summary->job.goals.n_limits; i++)
        hwnas_str_addf(&limits, "%s%s", i ? " and " : "", summary->job.goals.limits[i].text);
    hwnas_status status = hwnas_fail(HWNAS_E_INFEASIBLE, NULL, "none of %zu networks met %s",
                                     summary->n_finished, limits.s ? limits.s : "the objectives");
    hwnas_str_done(&limits);
    if (summary->closest >= 0) {
        const hwnas_trial *closest = &summary->trials[summary->closest];
        char *words = hwnas_limit_words(closest, &summary->job.goals);
        status = hwnas_fail(status, NULL, "%s; the closest is trial %llu, %s: %s",
                            hwnas_last_error()->message, (unsigned long long)closest->number,
                            closest->code, words);
        free(words);
    }
    return hwnas_hint(status,
                      "relax the constraint, or search on with --resume and a larger budget");
}

static hwnas_status finish(const hwnas_job *job, const hwnas_summary *summary, bool as_json)
{
    hwnas_status printed;
    if (as_json) {
        printed = hwnas_print_json(hwnas_front_json(summary));
    } else {
        hwnas_str text = {0};
        hwnas_front_text(&text, summary);
        printed = hwnas_print_text(&text);
    }
    /* A reader that has gone away does not want the files any less. */
    TRY(hwnas_job_write_exports(job, summary, print_written));
    TRY(printed);
    if (summary->is_interrupted)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted after %zu trials",
                       summary->n_finished),
            "'hwnas search %s%s--study %s --resume' goes on; give other options again",
            job->path ? job->path : "", job->path ? " " : "", job->study);
    return hwnas_summary_winner(summary) >= 0 ? HWNAS_OK : no_winner(summary);
}

/* The flags of the program itself, and one for each key of a job. */
enum { MAX_KEYS = 40 };

typedef struct command_line {
    const char *path; /* of the job; NULL: none */
    bool resume, overwrite, dry_run, as_json, quiet;
    hwnas_job_flag keys[MAX_KEYS + 1];
} command_line;

static hwnas_status parse(command_line *out, bool *is_done, int argc, char **argv)
{
    const hwnas_option own[] = {
        {"resume", 0, HWNAS_OPTION_FLAG, &out->resume, NULL, "go on with an existing study"},
        {"overwrite", 0, HWNAS_OPTION_FLAG, &out->overwrite, NULL, "replace an existing study"},
        {"dry-run", 0, HWNAS_OPTION_FLAG, &out->dry_run, NULL,
         "say what would be done, write nothing"},
        {"json", 0, HWNAS_OPTION_FLAG, &out->as_json, NULL, "print one JSON object"},
        {"quiet", 'q', HWNAS_OPTION_FLAG, &out->quiet, NULL, "no progress"},
    };
    const char *values[MAX_KEYS] = {0};
    hwnas_option rows[sizeof own / sizeof *own + MAX_KEYS + 1] = {0}, *row = rows;
    int n = 0, n_keys = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        *row++ = own[i];
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        if (k->argument)
            *row++ = (hwnas_option){.name = k->name,
                                    .letter = k->letter,
                                    .kind = HWNAS_OPTION_TEXT,
                                    .value = &values[n++],
                                    .argument = k->argument,
                                    .help = k->is_rare ? NULL : k->help};
    TRY(hwnas_options_parse(&usage, rows, argc, argv, &out->path, &n, is_done));
    out->path = n ? out->path : NULL;
    n = 0;
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        if (k->argument && values[n++])
            out->keys[n_keys++] = (hwnas_job_flag){k->name, values[n - 1]};
    return HWNAS_OK;
}

static hwnas_status check_line(const command_line *given)
{
    if (given->resume && given->overwrite)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--resume and --overwrite exclude each other");
    if (!given->path && !given->keys[0].name)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "which job?"),
                          "write 'hwnas search JOB.yaml', or give its keys as options");
    return HWNAS_OK;
}

/* By the most threads that the job asks for anywhere. */
static void note_crowd(const hwnas_job *job)
{
    int threads = 1;
    for (int i = 0; i < job->threads.n; i++)
        threads = job->threads.values[i] > threads ? job->threads.values[i] : threads;
    for (int i = 0; i < job->goals.devices.n; i++) {
        const hwnas_job_device *device = &job->goals.devices.rows[i];
        hwnas_note_crowd(device->spelling, device->threads ? device->threads : threads,
                         job->priority);
    }
}

static hwnas_status run_search(const hwnas_job *job, const command_line *given)
{
    hwnas_summary *summary = NULL;
    line progress = {.job = job};
    hwnas_session_options options = {
        .resume = given->resume, .overwrite = given->overwrite, .stop = hwnas_stop_on_signals()};
    TRY(hwnas_job_check_exports(job));
    note_crowd(job);
    if (!given->quiet) {
        const bool is_terminal = isatty(STDERR_FILENO);
        options.progress = is_terminal ? show_progress : log_progress;
        options.context = &progress;
        progress.last = is_terminal ? 0 : hwnas_now();
    }
    hwnas_status status = hwnas_study_run(&summary, job, &options);
    if (progress.is_shown)
        fputs("\r\033[K", stderr);
    if (status == HWNAS_OK && summary->note)
        hwnas_say(stderr, "hwnas: note: %s\n", summary->note);
    if (status == HWNAS_OK)
        status = finish(job, summary, given->as_json);
    hwnas_summary_free(summary);
    return status;
}

static hwnas_status show_plan(hwnas_job *job, bool as_json)
{
    hwnas_plan plan;
    hwnas_str text = {0};
    job->trains = false;
    TRY(hwnas_plan_make(&plan, job, hwnas_stop_on_signals()));
    json_t *json = as_json ? hwnas_plan_json(&plan, job) : NULL;
    if (!as_json)
        hwnas_plan_text(&text, &plan, job);
    hwnas_plan_done(&plan);
    return as_json ? hwnas_print_json(json) : hwnas_print_text(&text);
}

hwnas_status hwnas_cmd_search(int argc, char **argv)
{
    command_line given = {0};
    hwnas_job *job = NULL;
    bool done;
    TRY(parse(&given, &done, argc, argv));
    if (done)
        return HWNAS_OK;
    TRY(check_line(&given));
    TRY(hwnas_job_load(&job, given.path, given.keys));
    hwnas_status status = given.dry_run ? show_plan(job, given.as_json) : run_search(job, &given);
    hwnas_job_free(job);
    return status;
}
