/* worker.c: a session that shares its study.
 *
 * The study's events are the truth: a worker knows what it has read of them, in their order, its
 * own included. Who proposes does so in a transaction, in which nobody else proposes or finishes
 * anything, and after it has read all events. So what is proposed follows from the seed and the
 * order of events, whoever asks, as on one machine. A worker that lost the server begins again with
 * a new session; what it has measured and not told it keeps.
 *
 * A worker does one task of a trial (tasks.h) and hands the trial on, with what is known so far, in
 * the trial's lease; that is no event, as nobody's strategy learns of it. Mostly it takes it again
 * itself: what was done is written when it is done. Who does the first task proposes, so that a
 * network is proposed when somebody is free to look at it. */
#include "study/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "store/leases.h"
#include "study/budget.h"
#include "study/handover.h"
#include "study/heartbeat.h"
#include "study/patience.h"
#include "study/session.h"
#include "study/told_end.h"

/* Trials that wait for the tasks of others while another one is proposed: enough for those to find
 * one when they are free, few as the strategy knows nothing of them. */
enum { MOST_WAITING = 4 };

/* A second apart: so long may the server be away, and while a worker joins. */
enum { MAX_RETRIES = 300, MAX_JOIN_RETRIES = 10 };

/* Seconds between two looks of a worker that has nothing to do: a tenth of what it has waited, from
 * here to there. */
static const double SHORTEST_PAUSE = 0.05, LONGEST_PAUSE = 2;

typedef struct worker {
    const hwnas_job *job;
    hwnas_session_options options;
    char name[96];
    hwnas_session s;
    hwnas_leases *leases;
    int64_t position;    /* of the last event that is known */
    hwnas_lease lease;   /* of the trial that is ours */
    hwnas_trial *result; /* of that, not told yet; NULL: none */
    int next_task;       /* of the result, which others do; HWNAS_N_TRIAL_TASKS: it is whole */
    bool proposes;
    hwnas_tasks theirs; /* that others do */
    hwnas_tasks lacks;  /* of these, what it waits for when it has nothing to do */
    char *waits_for;    /* the same, for progress; NULL: nothing */
    hwnas_patience patience;
    char *end;           /* why there is no other trial; NULL: there may be */
    bool was_open, told_version; /* in a session before */
    int n_failures;      /* of the connection, on end */
} worker;

/* ---- Trials that are open ---- */

static hwnas_asked *find_open(const hwnas_session *s, uint64_t number)
{
    for (size_t i = 0; i < s->n_asked; i++)
        if (s->asked[i]->trial.number == number)
            return s->asked[i];
    return NULL;
}

static void close_open(hwnas_session *s, hwnas_asked *open)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_asked; i++)
        if (s->asked[i] != open)
            s->asked[n++] = s->asked[i];
    s->n_asked = n;
    hwnas_asked_free(open);
}

/* ---- Events ---- */

static hwnas_status take_event(void *context, const hwnas_event *event)
{
    worker *w = context;
    hwnas_session *s = &w->s;
    const hwnas_place place = {.file = w->job->study};
    hwnas_asked *open = find_open(s, event->trial.number);
    hwnas_arch *walked = NULL;
    if (event->kind != HWNAS_EVENT_ASKED && event->kind != HWNAS_EVENT_FINISHED)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                     "the study is damaged: while it was shared, a trial was "
                                     "written anew"),
                          "take a copy of it if there is one");
    if (event->kind == HWNAS_EVENT_ASKED && open)
        return HWNAS_OK; /* our own */
    TRY(hwnas_arch_parse(&walked, s->setup.walked, event->trial.code));
    hwnas_status status = HWNAS_OK;
    if (event->kind == HWNAS_EVENT_ASKED) {
        hwnas_session_note(s, event->trial.number, walked);
        hwnas_session_add_open(s, event->trial.number, event->trial.rung, walked);
    } else {
        if (open)
            close_open(s, open);
        status = hwnas_session_absorb(s, &event->trial, walked);
    }
    hwnas_arch_free(walked);
    return status;
}

static hwnas_status read_events(worker *w)
{
    return hwnas_store_walk(&w->position, w->s.store, take_event, w);
}

/* ---- Asking ---- */

static void find_digest(hwnas_trial *trial, const hwnas_session *s, const hwnas_arch *walked)
{
    hwnas_arch *arch = hwnas_settings_strip(walked, s->setup.space);
    hwnas_graph *graph = NULL;
    hwnas_candidate c = {.arch = arch, .settings = hwnas_settings_of(walked, s->job)};
    hwnas_status status = hwnas_graph_build(&graph, arch, c.settings.batch);
    c.graph = graph;
    if (status == HWNAS_OK)
        status = hwnas_evaluator_digest(trial->digest, s->setup.evaluator, &c);
    if (status != HWNAS_OK)
        hwnas_error_clear(); /* told when it is evaluated */
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
}

static hwnas_status write_proposal(worker *w, const hwnas_trial *trial)
{
    TRY(hwnas_store_start(w->s.store, trial->number, trial->code, trial->digest, trial->rung));
    TRY(hwnas_store_note(w->s.store, trial->number, HWNAS_EVENT_ASKED));
    return hwnas_leases_add(w->leases, trial->number);
}

/* Why there is no other trial: by what all workers see alike, then by the clock. Clocks differ by a
 * little, so one decides for all: the first of those who propose, in its transaction. */
static hwnas_status find_end(worker *w, bool is_in_transaction)
{
    hwnas_session *s = &w->s;
    const double seconds = hwnas_session_search_seconds(s);
    free(w->end);
    s->leaves_time = true;
    w->end = hwnas_session_end(s);
    s->leaves_time = false;
    if (!w->end)
        TRY(hwnas_told_end_read(&w->end, s->store, s->next, seconds));
    if (w->end || !w->proposes || !(s->job->max_minutes > 0))
        return HWNAS_OK;
    TRY(hwnas_session_recall_time(s));
    w->end = hwnas_session_end(s);
    return w->end && is_in_transaction ? hwnas_told_end_write(s->store, w->end, s->next, seconds)
                                       : HWNAS_OK;
}

/* Whether another trial is to be proposed, and just now; w->end says why there is none. */
static hwnas_status may_propose(bool *may, worker *w, bool is_in_transaction)
{
    int64_t n_waiting = 0, tasks;
    *may = false;
    TRY(read_events(w));
    TRY(hwnas_session_check_hope(&w->s));
    TRY(find_end(w, is_in_transaction));
    if (w->end || !w->proposes)
        return HWNAS_OK;
    if (w->theirs)
        TRY(hwnas_leases_waiting(&n_waiting, &tasks, w->leases, w->s.tasks));
    *may = n_waiting < MOST_WAITING;
    return HWNAS_OK;
}

/* *is_ours: there is a trial that is ours now. In a transaction. */
static hwnas_status propose(bool *is_ours, worker *w)
{
    hwnas_session *s = &w->s;
    hwnas_trial trial = {0};
    bool may;
    TRY(may_propose(&may, w, true));
    if (!may)
        return HWNAS_OK;
    hwnas_arch *walked = hwnas_arch_new(s->setup.walked);
    hwnas_status status = hwnas_session_propose(s, walked, &trial.rung);
    if (status == HWNAS_OK && !s->exhausted) {
        trial.number = s->next;
        *is_ours = true;
        w->lease = (hwnas_lease){.number = trial.number, .tasks = HWNAS_ALL_TASKS};
        trial.code = hwnas_arch_code(walked);
        find_digest(&trial, s, walked);
        status = write_proposal(w, &trial);
        hwnas_session_add_open(s, trial.number, trial.rung, walked);
    } else if (status == HWNAS_OK) {
        w->end = hwnas_strdup(s->exhausted);
        status = hwnas_told_end_write(s->store, w->end, s->next, NAN);
    }
    hwnas_trial_done(&trial);
    hwnas_arch_free(walked);
    return status;
}

static hwnas_status ask(bool *is_ours, worker *w)
{
    bool may;
    *is_ours = false;
    if (!w->proposes) /* it looks, and keeps nobody from the study */
        return may_propose(&may, w, false);
    TRY(hwnas_store_begin(w->s.store));
    return hwnas_store_end(w->s.store, propose(is_ours, w));
}

/* ---- Telling ---- */

static hwnas_status hand_on(bool *was_ours, const worker *w)
{
    char *begun = hwnas_handover_write(w->result);
    const hwnas_lease lease = {
        .number = w->result->number, .tasks = 1 << w->next_task, .begun = begun};
    const hwnas_status status = hwnas_leases_hand_on(was_ours, w->leases, &lease);
    free(begun);
    return status;
}

static hwnas_status finish(bool *was_ours, const worker *w)
{
    TRY(hwnas_leases_end(was_ours, w->leases, w->result->number));
    return *was_ours ? hwnas_store_finish(w->s.store, w->result) : HWNAS_OK;
}

static hwnas_status write_result(worker *w)
{
    bool was_ours;
    TRY(hwnas_session_remember_time(&w->s));
    TRY(w->next_task < HWNAS_N_TRIAL_TASKS ? hand_on(&was_ours, w) : finish(&was_ours, w));
    if (was_ours)
        return HWNAS_OK;
    hwnas_log(HWNAS_LOG_INFO, "trial %llu was taken over meanwhile",
              (unsigned long long)w->result->number);
    return HWNAS_OK;
}

static hwnas_status tell(worker *w)
{
    if (!w->result)
        return HWNAS_OK;
    TRY(hwnas_store_begin(w->s.store));
    TRY(hwnas_store_end(w->s.store, write_result(w)));
    hwnas_trials_free(w->result, 1);
    w->result = NULL;
    w->n_failures = 0;
    return HWNAS_OK;
}

static hwnas_status make(worker *w, const hwnas_asked *open)
{
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    trial->number = open->trial.number;
    trial->rung = open->trial.rung;
    const bool is_whole = hwnas_handover_read(trial, w->lease.begun);
    const int n_done = is_whole ? hwnas_tasks_first((hwnas_tasks)w->lease.tasks) : 0;
    const hwnas_status status =
        hwnas_session_evaluate_tasks(&w->next_task, &w->s, trial, open->walked, n_done);
    if (status == HWNAS_OK) {
        w->result = trial;
        w->s.went_on |=
            w->next_task < HWNAS_N_TRIAL_TASKS && !hwnas_tasks_have(w->s.tasks, w->next_task);
        return HWNAS_OK;
    }
    hwnas_trials_free(trial, 1);
    if (status == HWNAS_E_INTERRUPTED && hwnas_session_should_stop(&w->s)) {
        hwnas_error_clear(); /* whoever is next makes it */
        return HWNAS_OK;
    }
    return status;
}

/* ---- The next trial ---- */

static void nap(double seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

/* A trial that is left over, else a new one; NULL: none just now. */
static hwnas_status next(const hwnas_asked **out, worker *w)
{
    bool is_ours;
    *out = NULL;
    free(w->lease.begun);
    w->lease = (hwnas_lease){0};
    TRY(hwnas_leases_take(&is_ours, &w->lease, w->leases, w->s.tasks));
    if (is_ours && !find_open(&w->s, w->lease.number))
        TRY(read_events(w));
    if (!is_ours)
        TRY(ask(&is_ours, w));
    if (is_ours)
        *out = find_open(&w->s, w->lease.number);
    return HWNAS_OK;
}

/* ---- Nothing to do ---- */

/* All tasks of others for one who proposes: it waits for trials that they are at. */
static hwnas_tasks lacks_at_first(const worker *w)
{
    return w->proposes ? w->theirs : 1U << hwnas_tasks_first(w->theirs);
}

static void set_lacks(worker *w, hwnas_tasks lacks)
{
    if (lacks == w->lacks)
        return;
    char *words = hwnas_tasks_words(lacks, w->job);
    free(w->waits_for);
    w->waits_for = lacks ? hwnas_printf("waiting for workers that do %s", words) : NULL;
    w->lacks = lacks;
    free(words);
}

/* What the trials wait for that are nobody's; without any, for those who begin some. */
static hwnas_status find_lacks(worker *w)
{
    int64_t n, tasks;
    if (!w->theirs)
        return HWNAS_OK;
    TRY(hwnas_leases_waiting(&n, &tasks, w->leases, w->s.tasks));
    set_lacks(w, n ? w->theirs & (hwnas_tasks)tasks : lacks_at_first(w));
    return HWNAS_OK;
}

static hwnas_status spend_patience(worker *w, double seconds)
{
    if (!w->theirs)
        return HWNAS_OK;
    char *words = hwnas_tasks_words(w->lacks, w->job);
    const hwnas_status status = hwnas_patience_spend(&w->patience, seconds, words, w->job->study);
    free(words);
    return status;
}

/* What others have may be left over. Looks for it without keeping anybody from the study. */
static hwnas_status wait_for_others(worker *w)
{
    double waited = 0;
    hwnas_patience_renew(&w->patience);
    while (!hwnas_session_should_stop(&w->s)) {
        const double pause = fmin(fmax(0.1 * waited, SHORTEST_PAUSE), LONGEST_PAUSE);
        const int64_t position = w->position;
        int64_t n_offered, n_held;
        bool may;
        nap(pause);
        waited += pause;
        TRY(hwnas_leases_offered(&n_offered, w->leases, w->s.tasks));
        TRY(may_propose(&may, w, false));
        if (n_offered || may || (w->end && !w->s.n_asked))
            break;
        TRY(hwnas_leases_held(&n_held, w->leases));
        TRY(find_lacks(w));
        if (n_held || w->position != position)
            hwnas_patience_renew(&w->patience);
        else
            TRY(spend_patience(w, pause));
        hwnas_session_report(&w->s, w->waits_for ? w->waits_for : "");
    }
    return HWNAS_OK;
}

/* ---- One session ---- */

/* Our trial may have been the last of the failures that end a search; others may have made better
 * ones. */
static hwnas_status check_hope(worker *w)
{
    if (!w->s.n_failures_in_a_row)
        return HWNAS_OK;
    TRY(read_events(w));
    return hwnas_session_check_hope(&w->s);
}

static hwnas_status work(worker *w)
{
    const hwnas_asked *open;
    while (!hwnas_session_should_stop(&w->s)) {
        TRY(tell(w));
        TRY(check_hope(w));
        TRY(next(&open, w));
        hwnas_session_report(&w->s, !open && w->waits_for ? w->waits_for : "");
        if (open)
            TRY(make(w, open));
        else if (w->end && !w->s.n_asked)
            break;
        else
            TRY(wait_for_others(w));
    }
    TRY(tell(w));
    return hwnas_leases_release(w->leases);
}

static hwnas_status begin(worker *w)
{
    TRY(hwnas_session_begin(&w->s));
    TRY(hwnas_leases_settle(w->leases));
    return hwnas_store_position(&w->position, w->s.store);
}

static void divide_tasks(worker *w)
{
    const hwnas_tasks all = hwnas_evaluator_tasks(w->s.setup.evaluator);
    w->theirs = all & ~w->s.tasks;
    w->proposes = hwnas_tasks_propose(w->s.tasks, all);
    set_lacks(w, lacks_at_first(w));
}

static hwnas_status open_session(worker *w)
{
    hwnas_session_init(&w->s, w->job, &w->options); /* the one before is closed */
    w->s.is_shared = true;
    w->s.told_version = w->told_version;
    TRY(hwnas_store_exists(&w->options.resume, w->job->study));
    TRY(hwnas_session_open(&w->s, NULL));
    divide_tasks(w);
    TRY(hwnas_leases_open(&w->leases, w->s.store, w->name));
    /* Of several that begin a study, one does, and the others find it begun. */
    TRY(hwnas_store_begin(w->s.store));
    return hwnas_store_end(w->s.store, begin(w));
}

static void close_session(worker *w)
{
    hwnas_leases_close(w->leases);
    w->leases = NULL;
    w->told_version = w->s.told_version;
    hwnas_session_close(&w->s);
}

static hwnas_status run_session(hwnas_summary **out, worker *w)
{
    TRY(open_session(w));
    w->was_open = true;
    TRY(work(w));
    if (w->end && !hwnas_session_should_stop(&w->s))
        TRY(hwnas_store_set(w->s.store, "ended", w->end));
    TRY(hwnas_session_summarize(out, &w->s));
    (*out)->is_interrupted = hwnas_session_should_stop(&w->s);
    return HWNAS_OK;
}

/* Whether the study could not be used: its failures have its place, and a runner's have none. */
static bool is_of_study(const worker *w)
{
    const hwnas_error *e = hwnas_last_error();
    return !strncmp(e->file, w->job->study, sizeof e->file - 1);
}

/* The server may be back soon. */
static bool is_worth_a_retry(worker *w, hwnas_status status)
{
    const int most = w->was_open ? MAX_RETRIES : MAX_JOIN_RETRIES;
    if (status != HWNAS_E_IO || !is_of_study(w) || !hwnas_store_is_remote(w->job->study) ||
        w->n_failures++ >= most || (w->options.stop && *w->options.stop))
        return false;
    hwnas_log(HWNAS_LOG_WARNING, "%s; trying again", hwnas_last_error()->message);
    hwnas_error_clear();
    nap(1);
    return true;
}

hwnas_status hwnas_worker_run(hwnas_summary **out, const hwnas_job *job,
                              const hwnas_session_options *options)
{
    worker w = {.job = job, .options = *options};
    char host[40] = "";
    hwnas_status status;
    TRY(hwnas_patience_read(&w.patience));
    if (gethostname(host, sizeof host - 1))
        *host = '\0';
    snprintf(w.name, sizeof w.name, "%.39s %ld %.6f", host, (long)getpid(), hwnas_now());
    hwnas_heartbeat *heartbeat = hwnas_heartbeat_start(job->study, w.name);
    do {
        status = run_session(out, &w);
        close_session(&w);
    } while (is_worth_a_retry(&w, status));
    hwnas_heartbeat_stop(heartbeat);
    if (w.result)
        hwnas_trials_free(w.result, 1);
    free(w.lease.begun);
    free(w.waits_for);
    free(w.end);
    return status;
}
