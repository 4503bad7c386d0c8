/* study_handle.c: studies in hwnas/study.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwnas/page.h>

#include "api/api.h"
#include "api/report_handle.h"
#include "api/shown_trial.h"
#include "api/study_handle.h"
#include "base/c_locale.h"
#include "store/store.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "report/explain_text.h"
#include "report/front.h"
#include "report/front_chart.h"
#include "report/grid.h"
#include "report/page.h"
#include "report/picture.h"
#include "report/trials_table.h"
#include "study/ask_tell.h"
#include "study/explain.h"

struct hwnas_study {
    char *path;
    char *constraints;  /* to look at it by; NULL: its own */
    hwnas_store *store; /* to be read; NULL: the session has it */
    hwnas_job *job;     /* NULL: it is only read */
    hwnas_session_options options;
    hwnas_session session;
    size_t n_open, open_room;
    hwnas_shown_trial **open; /* asked, not told */
    hwnas_summary *summary;
    size_t n_front;
    hwnas_shown_trial *front; /* borrows from the summary */
    hwnas_study_trial *shown; /* of it, side by side */
};

/* ---- Opening and closing ---- */

/* What a search would train at its end nobody would, here. */
static hwnas_status check_job(const hwnas_job *job)
{
    if (!job->train_budget)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &job->train_budget_place,
                                 "a budget of trainings is for searches alone"),
                      "leave it out: each network that is asked is trained; or tell accuracies");
}

hwnas_status hwnas_study_open(hwnas_study **out, const char *job, const hwnas_study_options *given)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_study_options options;
    TRY(TAKE_OPTIONS(&options, given));
    hwnas_study *study = hwnas_alloc(sizeof *study);
    TRY_OUT(hwnas_api_load_job(&study->job, job, options.study, options.max_trials, options.flags));
    TRY_OUT(hwnas_text_check("the name of the study", study->job->study));
    TRY_OUT(check_job(study->job));
    study->path = hwnas_strdup(study->job->study);
    study->options = (hwnas_session_options){.stop = options.cancel};
    if (options.resume)
        TRY_OUT(hwnas_store_exists(&study->options.resume, study->path));
    hwnas_session *s = &study->session;
    hwnas_session_init(s, study->job, &study->options);
    s->is_told = true;
    s->runs_again = options.runs_again;
    TRY_OUT(hwnas_session_open(s, NULL));
    TRY_OUT(hwnas_session_begin(s));
    *out = study;
    study = NULL;
out:
    hwnas_study_close(study);
    return status;
}

hwnas_status hwnas_study_read(hwnas_study **out, const char *path)
{
    IN_C_LOCALE;
    hwnas_store *store;
    if (hwnas_api_is_space(path))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' is the name of a space or network, and no study",
                       path),
            "`hwnas search` makes a study; `hwnas space show %s` tells of it, `hwnas profile %s` "
            "measures it",
            path, path);
    TRY(hwnas_store_open(&store, path, HWNAS_STORE_READ));
    hwnas_study *study = hwnas_alloc(sizeof *study);
    *study = (hwnas_study){.store = store, .path = hwnas_strdup(path)};
    *out = study;
    return HWNAS_OK;
}

bool hwnas_study_is_running(const char *path)
{
    return hwnas_store_is_held(path);
}

static void forget_front(hwnas_study *study)
{
    for (size_t i = 0; i < study->n_front; i++)
        hwnas_shown_trial_done(&study->front[i]);
    free(study->front);
    free(study->shown);
    hwnas_summary_free(study->summary);
    study->front = NULL;
    study->shown = NULL;
    study->summary = NULL;
    study->n_front = 0;
}

void hwnas_study_close(hwnas_study *study)
{
    if (!study)
        return;
    forget_front(study);
    for (size_t i = 0; i < study->n_open; i++) {
        hwnas_shown_trial_done(study->open[i]);
        free(study->open[i]);
    }
    free(study->open);
    if (study->session.store)
        hwnas_session_discard(&study->session, HWNAS_OK);
    if (study->job)
        hwnas_session_close(&study->session);
    hwnas_store_close(study->store);
    hwnas_job_free(study->job);
    free(study->path);
    free(study->constraints);
    free(study);
}

/* ---- Ask and tell ---- */

static hwnas_status check_writable(const hwnas_study *study)
{
    const hwnas_place place = {.file = study->path};
    if (study->job)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, &place, "the study is open to be read alone"),
                      "hwnas_study_open() goes on with it");
}

hwnas_status hwnas_study_ask(const hwnas_study_trial **out, hwnas_study *study)
{
    IN_C_LOCALE;
    const hwnas_asked *asked;
    TRY(check_writable(study));
    TRY(hwnas_session_ask(&asked, &study->session));
    hwnas_shown_trial *t = hwnas_alloc(sizeof *t);
    hwnas_shown_trial_set(t, &asked->trial, study->job);
    t->trial.is_again = asked->is_again;
    HWNAS_GROW(study->open, study->n_open, study->open_room);
    study->open[study->n_open++] = t;
    *out = &t->trial;
    return HWNAS_OK;
}

static void forget_open(hwnas_study *study, uint64_t number)
{
    for (size_t i = 0; i < study->n_open; i++)
        if (study->open[i]->trial.number == number) {
            hwnas_shown_trial_done(study->open[i]);
            free(study->open[i]);
            study->open[i] = study->open[--study->n_open];
            return;
        }
}

hwnas_status hwnas_study_tell(hwnas_study *study, uint64_t trial, const hwnas_metric_value *values,
                              size_t n)
{
    IN_C_LOCALE;
    TRY(check_writable(study));
    if (n && !values)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "%zu values, and none is there", n);
    TRY(hwnas_session_tell(&study->session, trial, values, n));
    forget_open(study, trial);
    return HWNAS_OK;
}

hwnas_status hwnas_study_tell_failure(hwnas_study *study, uint64_t trial, hwnas_status why,
                                      const char *message)
{
    IN_C_LOCALE;
    TRY(check_writable(study));
    if (why <= HWNAS_OK || why >= HWNAS_N_STATUS || !message || !*message)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "a failure without a reason"),
                          "give a status that is a failure, and a line that says what happened");
    TRY(hwnas_text_check("the message", message));
    TRY(hwnas_session_tell_failure(&study->session, trial, why, message));
    forget_open(study, trial);
    return HWNAS_OK;
}

/* ---- What was found ---- */

hwnas_store *hwnas_study_store(const hwnas_study *study)
{
    return study->store ? study->store : study->session.store;
}

void hwnas_study_set_constraints(hwnas_study *study, const char *constraints)
{
    free(study->constraints);
    study->constraints = constraints ? hwnas_strdup(constraints) : NULL;
}

/* By its own constraints, or those that were set. */
static hwnas_status load_summary(hwnas_summary **out, const hwnas_study *study, bool is_brief)
{
    return hwnas_summary_load_as(
        out, hwnas_study_store(study), study->path,
        &(hwnas_summary_view){.constraints = study->constraints, .is_brief = is_brief});
}

hwnas_status hwnas_study_front(const hwnas_study_trial **out, size_t *n, hwnas_study *study,
                               size_t device)
{
    IN_C_LOCALE;
    forget_front(study);
    TRY(load_summary(&study->summary, study, true));
    const hwnas_summary *s = study->summary;
    if (device >= (size_t)s->n_fronts)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "the study has %d front%s, and none number %zu",
                          s->n_fronts, s->n_fronts == 1 ? "" : "s", device);
    const hwnas_summary_front *front = &s->fronts[device];
    study->front = hwnas_alloc((front->n + 1) * sizeof *study->front);
    study->shown = hwnas_alloc((front->n + 1) * sizeof *study->shown);
    for (size_t i = 0; i < front->n; i++) {
        hwnas_shown_trial_set(&study->front[i], &s->trials[front->trials[i]], &s->job);
        study->shown[i] = study->front[i].trial;
    }
    study->n_front = front->n;
    *n = front->n;
    *out = study->shown;
    return HWNAS_OK;
}

static void front_text(hwnas_str *out, const void *found)
{
    hwnas_front_text(out, found);
}

static json_t *front_json(const void *found)
{
    return hwnas_front_json(found);
}

static void front_free(void *found)
{
    hwnas_summary_free(found);
}

hwnas_report *hwnas_report_of_study(hwnas_summary *summary)
{
    static const hwnas_report_kind kind = {
        .text = front_text, .json = front_json, .free = front_free};
    return hwnas_report_new(&kind, summary);
}

hwnas_status hwnas_study_report(hwnas_report **out, hwnas_study *study)
{
    IN_C_LOCALE;
    hwnas_summary *summary;
    TRY(load_summary(&summary, study, true));
    *out = hwnas_report_of_study(summary);
    return HWNAS_OK;
}

static void chart_text(hwnas_str *out, const void *found)
{
    hwnas_front_chart_text(out, found, hwnas_grid_most_columns());
}

hwnas_status hwnas_study_chart(hwnas_report **out, hwnas_study *study)
{
    IN_C_LOCALE;
    static const hwnas_report_kind kind = {.text = chart_text, .free = front_free};
    hwnas_summary *summary;
    TRY(load_summary(&summary, study, false));
    *out = hwnas_report_new(&kind, summary);
    return HWNAS_OK;
}

static void trials_text(hwnas_str *out, const void *found)
{
    hwnas_trials_text(out, found);
}

static json_t *trials_json(const void *found)
{
    return hwnas_trials_json(found);
}

static void trials_csv(hwnas_str *out, const void *found)
{
    hwnas_trials_csv(out, found);
}

static void trials_jsonl(hwnas_str *out, const void *found)
{
    hwnas_trials_jsonl(out, found);
}

hwnas_status hwnas_study_trials(hwnas_report **out, hwnas_study *study)
{
    IN_C_LOCALE;
    static const hwnas_report_kind kind = {.text = trials_text,
                                           .json = trials_json,
                                           .csv = trials_csv,
                                           .jsonl = trials_jsonl,
                                           .free = front_free};
    hwnas_summary *summary;
    TRY(load_summary(&summary, study, false));
    *out = hwnas_report_new(&kind, summary);
    return HWNAS_OK;
}

typedef struct explained {
    hwnas_summary *summary;
    hwnas_explanation explanation; /* borrows it */
} explained;

static void explained_text(hwnas_str *out, const void *found)
{
    hwnas_explain_text(out, &((const explained *)found)->explanation);
}

static json_t *explained_json(const void *found)
{
    return hwnas_explain_json(&((const explained *)found)->explanation);
}

static void explained_free(void *found)
{
    explained *e = found;
    hwnas_explanation_done(&e->explanation);
    hwnas_summary_free(e->summary);
    free(e);
}

static hwnas_status explain(hwnas_report **out, hwnas_study *study, int64_t trial,
                            const hwnas_explain_measuring *measuring)
{
    static const hwnas_report_kind kind = {
        .text = explained_text, .json = explained_json, .free = explained_free};
    hwnas_status status = HWNAS_OK;
    explained *e = hwnas_alloc(sizeof *e);
    TRY_OUT(hwnas_summary_load(&e->summary, hwnas_study_store(study), study->path));
    TRY_OUT(hwnas_explain(&e->explanation, e->summary, hwnas_study_store(study), (long)trial,
                          measuring));
    *out = hwnas_report_new(&kind, e);
    const hwnas_explanation *made = &e->explanation;
    if (made->stopped != HWNAS_OK)
        hwnas_report_end(*out, hwnas_fail(made->stopped, NULL, "%s", made->why_stopped));
    e = NULL;
out:
    if (e)
        explained_free(e);
    return status;
}

hwnas_status hwnas_study_explain(hwnas_report **out, hwnas_study *study, int64_t trial)
{
    IN_C_LOCALE;
    return explain(out, study, trial, NULL);
}

hwnas_status hwnas_study_explain_measured(hwnas_report **out, hwnas_study *study, int64_t trial,
                                          const hwnas_explain_options *given)
{
    IN_C_LOCALE;
    hwnas_explain_options options;
    TRY(TAKE_OPTIONS(&options, given));
    const hwnas_explain_measuring measuring = {
        .stop = options.cancel, .progress = options.progress, .context = options.context};
    return explain(out, study, trial, &measuring);
}

/* ---- As a page ---- */

typedef struct page {
    hwnas_summary *summary;
    bool is_explained;
    hwnas_explanation explanation; /* borrows the summary */
    char *why_not;                 /* it is not explained */
    json_t *predictions;
} page;

static json_t *page_json(const void *found)
{
    const page *p = found;
    return hwnas_page_json(p->summary, p->is_explained ? &p->explanation : NULL, p->why_not,
                           p->predictions);
}

static void page_markdown(hwnas_str *out, const void *found)
{
    hwnas_trials_markdown(out, ((const page *)found)->summary);
}

static void page_csv(hwnas_str *out, const void *found)
{
    hwnas_trials_csv(out, ((const page *)found)->summary);
}

static hwnas_status page_svg(hwnas_str *out, const void *found, const char *picture)
{
    return hwnas_picture_draw(out, ((const page *)found)->summary, picture);
}

static void page_free(void *found)
{
    page *p = found;
    if (p->is_explained)
        hwnas_explanation_done(&p->explanation);
    hwnas_summary_free(p->summary);
    free(p->why_not);
    json_decref(p->predictions);
    free(p);
}

hwnas_status hwnas_page_of_study(hwnas_report **out, hwnas_study *study)
{
    IN_C_LOCALE;
    static const hwnas_report_kind kind = {.json = page_json,
                                           .csv = page_csv,
                                           .html = hwnas_page_draw,
                                           .markdown = page_markdown,
                                           .svg = page_svg,
                                           .free = page_free,
                                           .is_of_study = true};
    hwnas_status status = HWNAS_OK;
    page *p = hwnas_alloc(sizeof *p);
    TRY_OUT(hwnas_summary_load(&p->summary, hwnas_study_store(study), study->path));
    TRY_OUT(hwnas_page_predictions(&p->predictions, p->summary, hwnas_study_store(study)));
    /* What a page can do without is no reason to have none. */
    p->is_explained =
        hwnas_explain(&p->explanation, p->summary, hwnas_study_store(study), -1, NULL) == HWNAS_OK;
    if (!p->is_explained)
        p->why_not = hwnas_page_failure();
    hwnas_error_clear();
    *out = hwnas_report_new(&kind, p);
    if (p->why_not && hwnas_summary_winner(p->summary) >= 0)
        hwnas_report_add_note(*out, p->why_not);
    p = NULL;
out:
    if (p)
        page_free(p);
    return status;
}
