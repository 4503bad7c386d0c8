/* study.c: the loop. Beside it: setup.c opens what it strings together, facts.c knows a study
 * again, warm.c takes trials over, probe.c and standstill.c say when not to go on, waiting.c which
 * estimates are to be made good, ties.c settles the front. */
#include "study/study.h"

#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "graph/elaborate.h"
#include "study/facts.h"
#include "study/judge.h"
#include "study/probe.h"
#include "study/setup.h"
#include "study/spare.h"
#include "study/standstill.h"
#include "study/ties.h"
#include "study/waiting.h"
#include "study/warm.h"

enum {
    HOPELESS = 5, /* so many failures in a row, for a reason of the machine, end a study without any
                     success */
    CHECK_EVERY = 10, /* trials between two looks at whether the front stands still */
    FIRST_ROUND = 32  /* trials until what would be on the front is measured; from then on whenever
                         there are twice as many */
};

/* A measured network, to find it again. */
typedef struct known {
    char digest[33];
    hwnas_settings settings;
    const hwnas_trial *trial;
} known;

typedef struct study {
    const hwnas_job *job;
    const hwnas_study_options *options;
    hwnas_setup setup;
    hwnas_store *store;
    hwnas_front front;  /* by values; for progress */
    hwnas_trial **done; /* finished trials in the order in which they finished */
    size_t n_done, done_room;
    hwnas_score *scores; /* of these */
    size_t n_scores, score_room;
    void *by_network;      /* search tree of known */
    hwnas_waiting waiting; /* ids are indices of `done` */
    size_t next_round;     /* n_done from which on the front is measured */
    double run_seconds;    /* of the measured trials of this session, ... */
    size_t n_run;          /* ... of which so many were undisturbed */
    bool is_pressed;       /* the time left is as much as measuring the front takes */
    uint64_t next;         /* number of the next trial */
    uint64_t n_failed, n_warm;
    int n_hopeless;
    bool is_target_met, is_exhausted;
    double started, earlier_seconds;
    uint64_t session_first; /* trials that earlier sessions finished */
} study;

static bool should_stop(const study *s)
{
    return s->options->stop && *s->options->stop;
}

/* ---- Memory of what is done ---- */

static int compare_networks(const void *a, const void *b)
{
    const known *x = a, *y = b;
    int order = strcmp(x->digest, y->digest);
    return order ? order : memcmp(&x->settings, &y->settings, sizeof x->settings);
}

static const hwnas_trial *find_twin(study *s, const char *digest, hwnas_settings settings)
{
    known key = {.settings = settings};
    memcpy(key.digest, digest, sizeof key.digest);
    void *found = tfind(&key, &s->by_network, compare_networks);
    return found ? (*(known **)found)->trial : NULL;
}

static bool is_measured(const hwnas_trial *trial)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (!strcmp(trial->values[i].source, "measured"))
            return true;
    return false;
}

/* The first of a network stays. */
static void remember(study *s, const hwnas_trial *trial, hwnas_settings settings)
{
    known *row = hwnas_alloc(sizeof *row);
    *row = (known){.settings = settings, .trial = trial};
    memcpy(row->digest, trial->digest, sizeof row->digest);
    if (*(known **)tsearch(row, &s->by_network, compare_networks) != row)
        free(row);
}

/* Takes what is known of a finished trial, for the first time or as it was measured by now: tells
 * the strategy and remembers it. */
static hwnas_status learn(study *s, size_t id, const hwnas_arch *walked)
{
    const hwnas_trial *trial = s->done[id];
    const hwnas_score score = s->scores[id] = hwnas_trial_score(trial, s->job);
    s->n_failed += trial->status != HWNAS_OK;
    s->is_target_met |= hwnas_trial_meets_targets(trial, s->job);
    if (trial->status == HWNAS_OK && !trial->rung && is_measured(trial))
        remember(s, trial, hwnas_settings_of(walked, s->job));
    if (score.is_estimate && !trial->rung) {
        hwnas_waiting_add(&s->waiting, id, trial, &s->front);
    } else if (score.violation == 0 && !trial->rung) {
        hwnas_point point = {.id = id};
        memcpy(point.objectives, score.objectives, sizeof point.objectives);
        hwnas_front_insert(&s->front, &point);
    }
    if (!score.is_estimate)
        hwnas_waiting_update(&s->waiting, &s->front);
    return s->setup.strategy->ops->tell(s->setup.strategy, trial->number, walked, &score);
}

/* Takes a finished trial. */
static hwnas_status absorb(study *s, hwnas_trial *trial, const hwnas_arch *walked)
{
    HWNAS_GROW(s->done, s->n_done, s->done_room);
    HWNAS_GROW(s->scores, s->n_scores, s->score_room);
    s->done[s->n_done++] = trial;
    return learn(s, s->n_scores++, walked);
}

/* ---- One trial ---- */

/* A failure that says something about the machine or the set-up, not about one candidate. */
static bool is_fatal(hwnas_status status)
{
    return status == HWNAS_E_INTERRUPTED || status == HWNAS_E_LIBRARY || status == HWNAS_E_USAGE;
}

/* What an evaluation came to. A failed one has no values. */
static void settle(hwnas_trial *trial, hwnas_status status, double started)
{
    if (status != HWNAS_OK) {
        trial->message = hwnas_strdup(hwnas_last_error()->message);
        trial->n_values = 0;
        trial->violation = INFINITY;
    }
    trial->status = status;
    trial->seconds += hwnas_now() - started;
}

/* Evaluates an architecture as the trial, whose number and rung are given: one that `is_new` begins
 * in the store, one that was estimated (`estimate`, else NULL) is measured. The trial's own failure
 * is told in it. */
static hwnas_status evaluate(study *s, hwnas_trial *trial, const hwnas_arch *walked, bool is_new,
                             const hwnas_trial *estimate)
{
    hwnas_graph *graph = NULL;
    hwnas_arch *arch = hwnas_settings_strip(walked, s->setup.space);
    hwnas_candidate c = {.arch = arch,
                         .settings = hwnas_settings_of(walked, s->job),
                         .estimate = estimate,
                         .may_wait = !trial->rung && hwnas_waiting_suits(s->job),
                         .rung = trial->rung};
    double started = hwnas_now();
    trial->code = hwnas_arch_code(walked);
    hwnas_status status = hwnas_graph_build(&graph, arch, c.settings.batch);
    if (status == HWNAS_OK)
        memcpy(trial->digest, hwnas_graph_digest(graph).hex, sizeof trial->digest);
    hwnas_status stored =
        is_new ? hwnas_store_start(s->store, trial->number, trial->code, trial->digest, trial->rung)
               : HWNAS_OK;
    c.graph = graph;
    c.front = &s->front;
    c.twin = find_twin(s, trial->digest, c.settings);
    if (stored == HWNAS_OK && status == HWNAS_OK)
        status = hwnas_evaluate(trial, s->setup.evaluator, &c);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    if (stored != HWNAS_OK || is_fatal(status))
        return stored != HWNAS_OK ? stored : status;
    settle(trial, status, started);
    s->n_hopeless = status == HWNAS_OK ? 0 : s->n_hopeless + 1;
    if (is_measured(trial)) { /* what is disturbed counts for what it makes the others cost */
        s->run_seconds += hwnas_now() - started;
        s->n_run += !hwnas_trial_is_unstable(trial);
    }
    return HWNAS_OK;
}

/* Evaluates an architecture as trial `number` and stores what came of it. */
static hwnas_status run_trial(study *s, uint64_t number, const hwnas_arch *walked, int rung,
                              bool is_new)
{
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    trial->number = number;
    trial->rung = rung;
    hwnas_status status = evaluate(s, trial, walked, is_new, NULL);
    if (status != HWNAS_OK) {
        /* The trial stays "running" in the store: the next session repeats it. */
        hwnas_trials_free(trial, 1);
        return status;
    }
    TRY(hwnas_store_finish(s->store, trial));
    return absorb(s, trial, walked);
}

static void swap_trials(hwnas_trial *a, hwnas_trial *b)
{
    const hwnas_trial was = *a;
    *a = *b;
    *b = was;
}

/* Measures what was estimated. */
static hwnas_status make_good(study *s, size_t id)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *old = s->done[id], *trial = hwnas_alloc(sizeof *trial);
    hwnas_arch *walked = NULL;
    trial->number = old->number;
    trial->seconds = old->seconds;
    trial->is_finished = true;
    trial->order = old->order;
    TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, old->code));
    TRY_OUT(evaluate(s, trial, walked, false, old));
    /* What a twin measured will not be another the next time. */
    if (hwnas_trial_is_unstable(trial) && !s->is_pressed &&
        !find_twin(s, trial->digest, hwnas_settings_of(walked, s->job)) &&
        hwnas_waiting_put_off(&s->waiting, id, hwnas_now()))
        goto out;
    TRY_OUT(hwnas_store_revise(s->store, trial));
    hwnas_waiting_tell(&s->waiting, id, trial);
    swap_trials(old, trial);
    status = learn(s, id, walked);
out:
    hwnas_arch_free(walked);
    hwnas_trials_free(trial, 1);
    return status;
}

/* ---- Warm start ---- */

/* Takes one trial over unless it would have to be measured; *is_taken says. Those below `n_skip`
 * are in the store already. */
static hwnas_status take_over(study *s, bool *is_taken, const hwnas_trial *from, uint64_t n_skip)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    hwnas_arch *walked = NULL, *arch = NULL;
    hwnas_graph *graph = NULL;
    hwnas_candidate c = {.twin = from, .twin_study = s->job->warm_start, .is_recalled_only = true};
    double started = hwnas_now();
    *is_taken = false;
    TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, from->code));
    arch = hwnas_settings_strip(walked, s->setup.space);
    c.arch = arch;
    c.settings = hwnas_settings_of(walked, s->job);
    TRY_OUT(hwnas_graph_build(&graph, arch, c.settings.batch));
    c.graph = graph;
    memcpy(trial->digest, hwnas_graph_digest(graph).hex, sizeof trial->digest);
    trial->code = hwnas_arch_code(walked);
    status = hwnas_evaluate(trial, s->setup.evaluator, &c);
    if (status != HWNAS_OK && !is_fatal(status)) {
        hwnas_error_clear();
        status = HWNAS_OK;
        goto out;
    }
    TRY_OUT(status);
    *is_taken = true;
    if (s->n_warm < n_skip)
        goto out;
    trial->number = s->next++;
    settle(trial, HWNAS_OK, started);
    TRY_OUT(hwnas_store_start(s->store, trial->number, trial->code, trial->digest, 0));
    TRY_OUT(hwnas_store_finish(s->store, trial));
    status = absorb(s, trial, walked);
    trial = NULL;
out:
    hwnas_graph_free(graph);
    hwnas_arch_free(walked);
    hwnas_arch_free(arch);
    if (trial)
        hwnas_trials_free(trial, 1);
    return status;
}

static hwnas_status write_warm(const study *s, bool is_done)
{
    json_t *fact = json_pack("{s:s, s:I, s:b}", "study", s->job->warm_start, "trials",
                             (json_int_t)s->n_warm, "done", is_done);
    hwnas_status status = hwnas_facts_set_json(s->store, "warm_start", fact);
    json_decref(fact);
    return status;
}

/* Begins with the trials of another study; a session that died meanwhile is gone on with. */
static hwnas_status warm_up(study *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_warm_start warm = {0};
    json_t *fact = NULL;
    uint64_t n_skip = s->next;
    TRY_OUT(hwnas_facts_json(&fact, s->store, "warm_start"));
    if (json_is_true(json_object_get(fact, "done"))) {
        s->n_warm = (uint64_t)json_integer_value(json_object_get(fact, "trials"));
        goto out;
    }
    if (!s->job->warm_start || (!fact && s->next))
        goto out;
    TRY_OUT(hwnas_warm_start_load(&warm, s->job, s->setup.walked, s->setup.evaluator));
    TRY_OUT(write_warm(s, false));
    for (size_t i = 0; i < warm.n && !should_stop(s); i++) {
        bool is_taken;
        TRY_OUT(take_over(s, &is_taken, &warm.trials[i], n_skip));
        s->n_warm += is_taken;
    }
    if (!should_stop(s))
        TRY_OUT(write_warm(s, true));
out:
    hwnas_warm_start_done(&warm);
    json_decref(fact);
    return status;
}

/* ---- Opening ---- */

static hwnas_trial *move_trial(hwnas_trial *from)
{
    hwnas_trial *to = hwnas_alloc(sizeof *to);
    *to = *from;
    from->code = from->message = from->detail = NULL;
    from->values = NULL;
    return to;
}

static int compare_order(const void *a, const void *b)
{
    const hwnas_trial *x = a, *y = b;
    if (x->is_finished != y->is_finished)
        return x->is_finished ? -1 : 1;
    return x->is_finished ? (x->order > y->order) - (x->order < y->order)
                          : (x->number > y->number) - (x->number < y->number);
}

/* Tells the strategy what the store remembers, in the order in which it happened, and then runs
 * again what was running when the last session died. */
static hwnas_status replay_trials(study *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trials = NULL;
    hwnas_arch *walked = NULL;
    size_t n = 0;
    TRY_OUT(hwnas_store_trials(&trials, &n, s->store));
    s->next = n;
    qsort(trials, n, sizeof *trials, compare_order);
    for (size_t i = 0; i < n; i++) {
        hwnas_arch_free(walked);
        walked = NULL;
        TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, trials[i].code));
        if (trials[i].is_finished)
            TRY_OUT(absorb(s, move_trial(&trials[i]), walked));
        else if (!should_stop(s))
            TRY_OUT(run_trial(s, trials[i].number, walked, trials[i].rung, false));
        if (trials[i].is_finished)
            s->session_first = s->n_done;
    }
out:
    hwnas_arch_free(walked);
    hwnas_trials_free(trials, n);
    return status;
}

static hwnas_status remember_time(study *s)
{
    char text[32];
    snprintf(text, sizeof text, "%.3f", s->earlier_seconds + hwnas_now() - s->started);
    return hwnas_store_set(s->store, "wall_seconds", text);
}

static hwnas_status open_store(study *s)
{
    const char *path = s->job->study;
    if (s->options->overwrite && hwnas_file_exists(path)) {
        hwnas_store *old;
        TRY(hwnas_store_open(&old, path, HWNAS_STORE_RESUME)); /* only one of ours is replaced */
        hwnas_store_close(old);
        if (unlink(path))
            return hwnas_fail(HWNAS_E_IO, NULL, "cannot remove %s", path);
    }
    if (!s->options->resume)
        return hwnas_store_open(&s->store, path, HWNAS_STORE_CREATE);
    return hwnas_store_open(&s->store, path, HWNAS_STORE_RESUME);
}

static hwnas_status begin_or_resume(study *s)
{
    char *job = NULL, *seconds = NULL;
    TRY(hwnas_store_get(&job, s->store, "job"));
    bool is_new = !job; /* or its process died before the first trial */
    free(job);
    if (is_new) {
        TRY(hwnas_facts_write_choice(s->store, &s->setup.choice));
        TRY(hwnas_facts_write(s->store, s->job, s->setup.walked));
        TRY(hwnas_facts_write_devices(s->store, s->job, s->setup.evaluator));
        return warm_up(s);
    }
    TRY(hwnas_facts_check(s->store, s->job, s->setup.walked));
    TRY(hwnas_store_get(&seconds, s->store, "wall_seconds"));
    s->earlier_seconds = seconds ? atof(seconds) : 0;
    free(seconds);
    TRY(hwnas_facts_write_devices(s->store, s->job, s->setup.evaluator));
    TRY(replay_trials(s));
    return warm_up(s);
}

/* ---- Running ---- */

static uint64_t n_own(const study *s)
{
    return s->n_done - s->n_warm;
}

/* Seconds for trials: what is left of the budget when near ties have had theirs. */
static double search_seconds(const study *s)
{
    double share = hwnas_evaluator_measures(s->setup.evaluator) ? s->job->ties : 0;
    return 60 * s->job->max_minutes / (1 + share);
}

static double seconds_so_far(const study *s)
{
    return s->earlier_seconds + hwnas_now() - s->started;
}

static void report(study *s, const char *phase)
{
    if (!s->options->progress)
        return;
    uint64_t n_new = s->n_done - s->session_first;
    hwnas_progress p = {.n_done = n_own(s),
                        .n_failed = s->n_failed,
                        .max_trials = (uint64_t)s->job->max_trials,
                        .n_front = s->front.n,
                        .seconds = seconds_so_far(s),
                        .seconds_left = NAN,
                        .phase = phase};
    if (n_new > 0) {
        p.trials_per_minute = 60 * (double)n_new / (hwnas_now() - s->started);
        if (s->job->max_trials)
            p.seconds_left = 60 * ((double)p.max_trials - (double)p.n_done) / p.trials_per_minute;
    }
    if (s->job->max_minutes > 0)
        p.seconds_left =
            fmin(search_seconds(s) - p.seconds, isnan(p.seconds_left) ? INFINITY : p.seconds_left);
    if (s->front.n)
        p.winner = s->done[s->front.points[0].id];
    s->options->progress(s->options->context, &p);
}

/* Why the search is over, as half a sentence; NULL: it is not. Yours to free. */
static char *find_end(const study *s)
{
    const hwnas_job *job = s->job;
    size_t window = hwnas_standstill_window(s->n_scores);
    if (s->is_target_met)
        return hwnas_strdup("the target is met");
    if (s->is_exhausted)
        return hwnas_strdup("every network of the space has been tried");
    if (job->max_trials && n_own(s) >= (uint64_t)job->max_trials)
        return hwnas_strdup("all trials were made");
    if (job->max_minutes > 0 && seconds_so_far(s) >= search_seconds(s))
        return hwnas_strdup("the time is over");
    if (job->improvement > 0 && s->n_scores && s->n_scores % CHECK_EVERY == 0 &&
        hwnas_improvement(s->scores, s->n_scores, window, job->n_objectives) < job->improvement)
        return hwnas_printf("the front improved by less than %.4g %% over the last %zu trials",
                            100 * job->improvement, window);
    return NULL;
}

/* None of the first trials succeeded: the failure of the last one, which is recorded still. */
static hwnas_status give_up(const study *s)
{
    hwnas_error error = *hwnas_last_error();
    hwnas_place place = {.file = error.file, .line = error.line, .column = error.column};
    return hwnas_hint(hwnas_fail(s->done[s->n_done - 1]->status, *error.file ? &place : NULL,
                                 "each of the first %zu trials failed, the last so: %s", s->n_done,
                                 error.message),
                      "%s", error.hint);
}

/* An estimated trial is to be measured before another one is made: in the end, or before the time
 * for it is gone, all that may belong to the front; and now and then those that would be on it. */
static bool find_due(size_t *id, study *s, bool is_over)
{
    const double mean = s->n_run ? s->run_seconds / (double)s->n_run : s->job->max_seconds;
    const double left = s->job->max_minutes > 0 ? search_seconds(s) - seconds_so_far(s) : INFINITY;
    const double now = is_over ? INFINITY : hwnas_now();
    const bool is_round = s->n_done >= s->next_round;
    if (left <= 0 || !s->waiting.n || (!is_over && !is_round && (double)s->waiting.n * mean < left))
        return false;
    const size_t n_possible = hwnas_waiting_possible(id, &s->waiting, now);
    const size_t n_front = hwnas_waiting_front(id, &s->waiting, &s->front, now);
    const size_t n = s->job->is_bold ? n_front : n_possible;
    if (is_round && !n_front)
        s->next_round = 2 * s->n_done;
    s->is_pressed = (double)n_front * mean >= left;
    if (is_over || s->is_pressed)
        return n > 0;
    return now >= s->waiting.next_try && ((is_round && n_front) || (double)n * mean >= left);
}

static hwnas_status propose(study *s, hwnas_arch *walked)
{
    hwnas_strategy *strategy = s->setup.strategy;
    hwnas_status status = strategy->ops->ask(strategy, s->next, walked);
    s->is_exhausted = status == HWNAS_E_EXHAUSTED;
    if (status != HWNAS_OK)
        return s->is_exhausted ? HWNAS_OK : status;
    int rung = strategy->ops->rung ? strategy->ops->rung(strategy, s->next) : 0;
    return run_trial(s, s->next++, walked, rung, true);
}

static hwnas_status search(study *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *walked = hwnas_arch_new(s->setup.walked);
    char *end = NULL;
    while (!should_stop(s)) {
        size_t id;
        free(end);
        end = find_end(s);
        const bool is_due = find_due(&id, s, end != NULL);
        if (end && !is_due)
            break;
        TRY_OUT(is_due ? make_good(s, id) : propose(s, walked));
        TRY_OUT(remember_time(s));
        if (s->n_hopeless == HOPELESS && s->n_failed == s->n_done) {
            status = give_up(s);
            goto out;
        }
        report(s, is_due ? "measuring what was estimated" : "");
    }
    TRY_OUT(hwnas_store_set(s->store, "ended", end && !should_stop(s) ? end : "interrupted"));
out:
    hwnas_arch_free(walked);
    free(end);
    return status;
}

static hwnas_status settle_ties(study *s)
{
    report(s, "measuring near ties again");
    double seconds = s->job->ties * seconds_so_far(s);
    TRY(hwnas_ties_measure(s->store, s->setup.evaluator, s->job, s->setup.space, s->setup.walked,
                           seconds, s->options->stop));
    return remember_time(s);
}

/* Before the store that its table of latencies writes to is closed. */
static void part_from_store(study *s)
{
    if (s->setup.evaluator && hwnas_evaluator_use_study(s->setup.evaluator, NULL) != HWNAS_OK)
        hwnas_error_clear();
}

static void close_study(study *s)
{
    part_from_store(s);
    hwnas_store_close(s->store);
    while (s->by_network) {
        known *row = *(known **)s->by_network;
        tdelete(row, &s->by_network, compare_networks);
        free(row);
    }
    for (size_t i = 0; i < s->n_done; i++)
        hwnas_trials_free(s->done[i], 1);
    free(s->done);
    free(s->scores);
    hwnas_front_done(&s->front);
    hwnas_waiting_done(&s->waiting);
    hwnas_setup_close(&s->setup);
}

/* A new study that came to nothing leaves no file: without a trial, or with none but those that
 * failed because the job is wrong. */
static void discard(study *s, hwnas_status why)
{
    bool is_job_wrong = hwnas_status_exit_code(why) == 2 && s->n_failed == s->n_done;
    if (s->n_done && !is_job_wrong)
        return;
    part_from_store(s);
    if (s->n_done) {
        hwnas_store_close(s->store);
        unlink(s->job->study);
    } else {
        hwnas_store_discard(s->store);
    }
    s->store = NULL;
}

/* Opens the setup as the study's first session did, when there was one. */
static hwnas_status open_setup(study *s)
{
    hwnas_choice_of_strategy choice = {0};
    bool is_there = false;
    if (s->options->resume && hwnas_file_exists(s->job->study)) {
        hwnas_store *store;
        TRY(hwnas_store_open(&store, s->job->study, HWNAS_STORE_READ));
        hwnas_status status = hwnas_facts_choice(&choice, &is_there, store);
        hwnas_store_close(store);
        TRY(status);
    }
    /* That the job names another strategy is told by comparing the facts. */
    is_there &= !strcmp(s->job->strategy, "auto") || !strcmp(s->job->strategy, choice.name);
    return hwnas_setup_open(&s->setup, s->job, is_there ? &choice : NULL, s->options->stop);
}

hwnas_status hwnas_study_run(hwnas_summary **out, const hwnas_job *job,
                             const hwnas_study_options *options)
{
    hwnas_status status = HWNAS_OK;
    study s = {.job = job,
               .options = options,
               .front = {.n_objectives = job->n_objectives},
               .waiting = {.goals = job},
               .next_round = FIRST_ROUND,
               .started = hwnas_now()};
    TRY_OUT(open_setup(&s));
    /* Before the file is made, or one of the same name replaced. */
    if (!options->resume && (options->overwrite || !hwnas_file_exists(job->study)))
        TRY_OUT(hwnas_probe(s.setup.evaluator, job, s.setup.space));
    TRY_OUT(open_store(&s));
    TRY_OUT(hwnas_evaluator_use_study(s.setup.evaluator, s.store));
    status = begin_or_resume(&s);
    if (status == HWNAS_OK)
        status = search(&s);
    if (status == HWNAS_OK && !should_stop(&s))
        status = settle_ties(&s);
    if (status == HWNAS_E_INTERRUPTED)
        status = HWNAS_OK;
    if (status != HWNAS_OK) {
        if (!options->resume)
            discard(&s, status);
        goto out;
    }
    TRY_OUT(remember_time(&s));
    TRY_OUT(hwnas_summary_load(out, s.store, job->study));
    (*out)->is_interrupted = should_stop(&s);
    const char *note = hwnas_evaluator_note(s.setup.evaluator);
    (*out)->note = note ? hwnas_strdup(note) : NULL;
out:
    close_study(&s);
    return status;
}
