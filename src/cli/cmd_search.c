/* search: runs a job, shows progress, prints the front, exports the winner. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "graph/elaborate.h"
#include "export/exporter.h"
#include "report/front.h"
#include "study/study.h"

static const hwnas_usage usage = {
    .synopsis = "search JOB.yaml",
    .summary = "Searches for the networks that a job asks for and prints their Pareto front.\n"
               "Ctrl-C ends the search with the front so far; --resume goes on.",
    .notes =
        "Exit code: 0 done, 2 the job is wrong, 3 no network met the constraints, 130 interrupted.",
    .min_arguments = 1,
    .max_arguments = 1};

typedef struct line {
    const hwnas_job *job;
    bool is_shown;
    double last;
} line;

static void show_progress(void *context, const hwnas_progress *p)
{
    line *l = context;
    double now = hwnas_now();
    if (now - l->last < 0.1)
        return;
    l->last = now;
    l->is_shown = true;
    char *best =
        p->winner ? hwnas_trial_words(p->winner, l->job) : hwnas_strdup("none feasible yet");
    fprintf(stderr, "\r\033[K%llu", (unsigned long long)p->n_done);
    if (p->max_trials)
        fprintf(stderr, "/%llu", (unsigned long long)p->max_trials);
    fprintf(stderr, " trials, best %s, front %zu, %.0f trials/min", best, p->n_front,
            p->trials_per_minute);
    if (p->n_failed)
        fprintf(stderr, ", %llu failed", (unsigned long long)p->n_failed);
    if (!isnan(p->seconds_left) && p->seconds_left >= 0)
        fprintf(stderr, ", %d:%02d left", (int)p->seconds_left / 60, (int)p->seconds_left % 60);
    free(best);
}

/* That the winner can be written is seen before the search, not after it. */
static hwnas_status check_exports(const hwnas_job *job)
{
    const char *const paths[] = {job->export_onnx, job->export_pytorch, job->export_yaml};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!paths[i])
            continue;
        char *directory = hwnas_strdup(paths[i]), *slash = strrchr(directory, '/');
        slash = slash == directory ? slash + 1 : slash;
        if (slash)
            *slash = '\0';
        int error = access(slash ? directory : ".", W_OK | X_OK) ? errno : 0;
        free(directory);
        hwnas_place place = {.file = job->path};
        if (error)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_IO, &place, "cannot write %s: %s", paths[i], strerror(error)),
                "the directory of an export must exist and be writable");
    }
    return HWNAS_OK;
}

static hwnas_status export_winner(const hwnas_job *job, const hwnas_summary *summary)
{
    const struct {
        const char *format, *path;
    } files[] = {
        {"onnx", job->export_onnx}, {"pytorch", job->export_pytorch}, {"yaml", job->export_yaml}};
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    TRY_OUT(hwnas_graph_load_space(&space, job->space));
    TRY_OUT(hwnas_arch_parse(&arch, space, summary->trials[summary->winner].code));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!files[i].path)
            continue;
        TRY_OUT(hwnas_export(files[i].path, files[i].format, arch, job->batch));
        fprintf(stderr, "wrote %s\n", files[i].path);
    }
out:
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

/* When every trial failed, why the last one did. */
static hwnas_status all_failed(const hwnas_summary *summary)
{
    const hwnas_trial *last = &summary->trials[summary->n_trials - 1];
    while (!last->is_finished)
        last--;
    return hwnas_hint(hwnas_fail(last->status, NULL, "each of %zu trials failed, the last so: %s",
                                 summary->n_finished, last->message ? last->message : "?"),
                      "'hwnas study show %s --json' lists the failures", summary->study);
}

static hwnas_status no_winner(const hwnas_summary *summary)
{
    if (summary->n_failed && summary->n_failed == summary->n_finished)
        return all_failed(summary);
    hwnas_str limits = {0};
    for (int i = 0; i < summary->goals.n_limits; i++)
        hwnas_str_addf(&limits, "%s%s", i ? " and " : "", summary->goals.limits[i].text);
    hwnas_status status = hwnas_fail(HWNAS_E_INFEASIBLE, NULL, "none of %zu networks met %s",
                                     summary->n_finished, limits.s ? limits.s : "the objectives");
    hwnas_str_done(&limits);
    if (summary->closest >= 0) {
        const hwnas_trial *closest = &summary->trials[summary->closest];
        char *words = hwnas_limit_words(closest, &summary->goals);
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
    if (summary->winner >= 0)
        TRY(export_winner(job, summary));
    TRY(printed);
    if (summary->is_interrupted)
        return hwnas_hint(hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted after %zu trials",
                                     summary->n_finished),
                          "'hwnas search %s --study %s --resume' goes on; give other options again",
                          job->path, job->study);
    return summary->winner >= 0 ? HWNAS_OK : no_winner(summary);
}

hwnas_status hwnas_cmd_search(int argc, char **argv)
{
    const char *path;
    bool as_json = false, quiet = false, done;
    int n;
    hwnas_job_flags flags = HWNAS_NO_FLAGS;
    hwnas_study_options options = {0};
    const hwnas_option rows[] = {
        {"study", 's', HWNAS_OPTION_TEXT, &flags.study, "FILE", "where the study is kept (JOB.db)"},
        {"resume", 0, HWNAS_OPTION_FLAG, &options.resume, NULL, "go on with an existing study"},
        {"overwrite", 0, HWNAS_OPTION_FLAG, &options.overwrite, NULL, "replace an existing study"},
        {"trials", 'n', HWNAS_OPTION_INT, &flags.trials, "N", "end after N trials in all"},
        {"minutes", 0, HWNAS_OPTION_NUMBER, &flags.minutes, "X", "end after X minutes in all"},
        {"device", 'd', HWNAS_OPTION_TEXT, &flags.device, "DEVICE",
         "cpu, ref, null, replay:FILE#COLUMN"},
        {"threads", 't', HWNAS_OPTION_INT, &flags.threads, "N", "threads of a measured network"},
        {"strategy", 0, HWNAS_OPTION_TEXT, &flags.strategy, "NAME", "nsga2, random"},
        {"seed", 0, HWNAS_OPTION_INT, &flags.seed, "N", "same seed, same proposals"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print one JSON object"},
        {"quiet", 'q', HWNAS_OPTION_FLAG, &quiet, NULL, "no progress line"},
        {0}};
    TRY(hwnas_options_parse(&usage, rows, argc, argv, &path, &n, &done));
    if (done)
        return HWNAS_OK;
    if (options.resume && options.overwrite)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--resume and --overwrite exclude each other");

    hwnas_status status = HWNAS_OK;
    hwnas_job *job = NULL;
    hwnas_summary *summary = NULL;
    TRY_OUT(hwnas_job_load(&job, path, &flags));
    TRY_OUT(check_exports(job));
    line progress = {.job = job};
    if (!quiet && isatty(STDERR_FILENO)) {
        options.progress = show_progress;
        options.context = &progress;
    }
    options.stop = hwnas_stop_on_signals();
    status = hwnas_study_run(&summary, job, &options);
    if (progress.is_shown)
        fputs("\r\033[K", stderr);
    if (status == HWNAS_OK)
        status = finish(job, summary, as_json);
out:
    hwnas_summary_free(summary);
    hwnas_job_free(job);
    return status;
}
