/* searching.c: the search of hwnas.h in one call, its plan, and the keys of its job. */
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/report_handle.h"
#include "api/study_handle.h"
#include "base/c_locale.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "report/front.h"
#include "report/front_chart.h"
#include "report/outcome.h"
#include "report/plan_text.h"
#include "study/exports.h"
#include "study/job_source.h"
#include "study/session.h"
#include "study/study.h"
#include "study/worker.h"

/* ---- Jobs ---- */

bool hwnas_job_key_list(hwnas_job_key_info *out, size_t i)
{
    for (const hwnas_job_key *k = hwnas_job_keys; k->name; k++)
        if (k->argument && !i--) {
            *out = (hwnas_job_key_info){.name = k->name,
                                        .letter = k->letter,
                                        .is_rare = k->is_rare,
                                        .argument = k->argument,
                                        .help = k->help};
            return true;
        }
    return false;
}

static hwnas_status load_job(hwnas_job **out, const char *path, const hwnas_search_options *options)
{
    return hwnas_api_load_job(out, path, options->study, options->max_trials, options->flags);
}

/* ---- Progress ---- */

typedef struct watcher {
    const hwnas_search_options *options;
    const hwnas_job *job;
} watcher;

/* Of the session, seen by its job. */
struct hwnas_search_front {
    const hwnas_progress *progress;
    const hwnas_goals *goals;
};

bool hwnas_search_chart(hwnas_chart *out, const hwnas_search_progress *progress, int columns,
                        int lines)
{
    IN_C_LOCALE;
    const hwnas_search_front *front = progress->front;
    hwnas_front_chart chart;
    hwnas_front_view view;
    if (!front)
        return false;
    const hwnas_progress *p = front->progress;
    hwnas_trial *trials;
    bool *is_on_front;
    size_t n;
    if (hwnas_session_outlines(&trials, &is_on_front, &n, p->session) != HWNAS_OK) {
        hwnas_error_clear(); /* what is written next says it again */
        return false;
    }
    hwnas_front_view_init(&view, front->goals, n);
    for (size_t i = 0; i < n; i++)
        hwnas_front_view_add(&view, &trials[i], is_on_front[i],
                             p->winner && p->winner->number == trials[i].number);
    const bool is_drawn = hwnas_front_chart_draw(&chart, &view, columns, lines);
    hwnas_front_view_done(&view);
    free(is_on_front);
    hwnas_trials_free(trials, n);
    if (!is_drawn)
        return false;
    hwnas_clean(chart.text.s, "\n");
    *out = (hwnas_chart){chart.text.s, chart.top, chart.left, chart.height};
    return true;
}

static void tell_progress(void *context, const hwnas_progress *p)
{
    const watcher *w = context;
    char *best = p->winner ? hwnas_trial_words(p->winner, &w->job->goals) : NULL;
    const hwnas_search_front front = {p, &w->job->goals};
    const hwnas_search_progress progress = {.n_done = p->n_done,
                                            .n_failed = p->n_failed,
                                            .max_trials = p->max_trials,
                                            .n_front = p->n_front,
                                            .seconds = p->seconds,
                                            .seconds_left = p->seconds_left,
                                            .winner = p->winner ? p->winner->code : NULL,
                                            .phase = p->phase,
                                            .trials_per_minute = p->trials_per_minute,
                                            .best = best,
                                            .seconds_left_low = p->seconds_left_low,
                                            .seconds_left_high = p->seconds_left_high,
                                            .measured = p->measured ? p->measured->code : NULL,
                                            .n_measured = p->n_measured,
                                            .n_disturbed = p->n_disturbed,
                                            .front = &front};
    w->options->progress(w->options->context, &progress);
    free(best);
}

/* By the most threads that the job asks for anywhere. */
static void note_crowd(const hwnas_job *job)
{
    int threads = 1;
    for (int i = 0; i < job->threads.n; i++)
        threads = job->threads.values[i] > threads ? job->threads.values[i] : threads;
    for (int i = 0; i < job->goals.devices.n; i++) {
        const hwnas_job_device *device = &job->goals.devices.rows[i];
        hwnas_api_note_crowd(device->spelling, device->threads ? device->threads : threads,
                             job->priority);
    }
}

/* ---- Searching ---- */

static void add_file(void *context, const hwnas_network_file *file)
{
    char *note = hwnas_network_file_note(file);
    hwnas_report_add_file(context, file->path, note);
    free(note);
}

/* Takes the summary. */
static hwnas_report *make_report(hwnas_summary *summary, const hwnas_job *job)
{
    hwnas_report *report = hwnas_report_of_study(summary);
    if (summary->note)
        hwnas_report_add_note(report, summary->note);
    const hwnas_status written = hwnas_job_write_exports(job, summary, add_file, report);
    hwnas_report_end(report, written == HWNAS_OK ? hwnas_summary_conclude(summary, job) : written);
    return report;
}

static hwnas_status check_options(const hwnas_search_options *options)
{
    if (options->is_worker && (options->resume || options->overwrite))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "a worker begins or goes on with a study by itself");
    if (options->only && !options->is_worker)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "only workers leave tasks of a trial to others");
    if (options->resume && options->overwrite)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "resume and overwrite exclude each other");
    return HWNAS_OK;
}

/* 0: all. */
static hwnas_status read_tasks(hwnas_tasks *out, const hwnas_search_options *options,
                               const hwnas_job *job)
{
    *out = 0;
    return options->only ? hwnas_tasks_parse(out, options->only, job) : HWNAS_OK;
}

static hwnas_status run(hwnas_report **out, const hwnas_job *job,
                        const hwnas_search_options *options)
{
    watcher w = {options, job};
    hwnas_summary *summary;
    hwnas_session_options study = {.resume = options->resume,
                                   .overwrite = options->overwrite,
                                   .n_workers = options->n_workers,
                                   .stop = options->cancel,
                                   .progress = options->progress ? tell_progress : NULL,
                                   .context = &w};
    TRY(read_tasks(&study.tasks, options, job));
    note_crowd(job);
    TRY(options->is_worker ? hwnas_worker_run(&summary, job, &study)
                           : hwnas_study_run(&summary, job, &study));
    *out = make_report(summary, job);
    return HWNAS_OK;
}

hwnas_status hwnas_search(hwnas_report **out, const char *path, const hwnas_search_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_search_options options;
    hwnas_job *job = NULL;
    TRY(TAKE_OPTIONS(&options, given));
    TRY(check_options(&options));
    hwnas_api_use_runner();
    TRY_OUT(load_job(&job, path, &options));
    TRY_OUT(hwnas_text_check("the name of the study", job->study)); /* before the work is done */
    TRY_OUT(hwnas_job_check_exports(job));
    status = run(out, job, &options);
out:
    hwnas_job_free(job);
    return status;
}

hwnas_status hwnas_search_join(hwnas_report **out, const char *study,
                               const hwnas_search_options *given)
{
    IN_C_LOCALE;
    hwnas_search_options options;
    hwnas_job *job;
    TRY(TAKE_OPTIONS(&options, given));
    options.is_worker = true;
    options.resume = options.overwrite = false;
    hwnas_api_use_runner();
    TRY(hwnas_job_load_kept(&job, study));
    job->export_onnx = job->export_pytorch = job->export_yaml = NULL;
    const hwnas_status status = run(out, job, &options);
    hwnas_job_free(job);
    return status;
}

hwnas_status hwnas_search_plan(hwnas_report **out, const char *path,
                               const hwnas_search_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_search_options options;
    hwnas_rendering rendering = {0};
    hwnas_job *job = NULL;
    hwnas_plan plan;
    hwnas_tasks tasks;
    TRY(TAKE_OPTIONS(&options, given));
    TRY(check_options(&options));
    hwnas_api_use_runner();
    TRY_OUT(load_job(&job, path, &options));
    TRY_OUT(read_tasks(&tasks, &options, job));
    job->trains = false;
    TRY_OUT(hwnas_plan_make(&plan, job, options.is_worker, tasks, options.cancel));
    hwnas_plan_text(&rendering.text, &plan, job);
    rendering.json = hwnas_plan_json(&plan, job);
    hwnas_plan_done(&plan);
    *out = hwnas_report_of(&rendering);
out:
    hwnas_job_free(job);
    return status;
}
