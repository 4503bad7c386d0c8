#include "study/study.h"

#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "device/device.h"
#include "graph/elaborate.h"
#include "study/evaluate.h"

/* So many trials in a row that fail for a reason of the machine end a study that has no success. */
enum { HOPELESS = 5 };

typedef struct study {
    const hwnas_job *job;
    const hwnas_study_options *options;
    hwnas_space *space;
    hwnas_strategy *strategy;
    hwnas_evaluator *evaluator;
    hwnas_store *store;
    hwnas_front front;
    hwnas_trial **done; /* finished trials, for twins and the front */
    size_t n_done, done_room;
    void *by_digest; /* search tree over measured trials */
    uint64_t next;   /* number of the next trial */
    uint64_t n_failed;
    int n_hopeless;
    double started, earlier_seconds;
    uint64_t session_first; /* trials that earlier sessions finished */
} study;

static bool should_stop(const study *s)
{
    return s->options->stop && *s->options->stop;
}

/* ---- Memory of what is done ---- */

static int compare_digests(const void *a, const void *b)
{
    return strcmp(((const hwnas_trial *)a)->digest, ((const hwnas_trial *)b)->digest);
}

static const hwnas_trial *find_twin(study *s, const char *digest)
{
    hwnas_trial key = {0};
    memcpy(key.digest, digest, sizeof key.digest);
    void *found = tfind(&key, &s->by_digest, compare_digests);
    return found ? *(const hwnas_trial **)found : NULL;
}

/* Takes a finished trial: tells the strategy and remembers it. */
static hwnas_status absorb(study *s, hwnas_trial *trial, const hwnas_arch *arch)
{
    hwnas_score score = hwnas_trial_score(trial, s->job);
    HWNAS_GROW(s->done, s->n_done, s->done_room);
    s->done[s->n_done++] = trial;
    s->n_failed += trial->status != HWNAS_OK;
    if (trial->status == HWNAS_OK && hwnas_trial_value(trial, "latency.p50"))
        tsearch(trial, &s->by_digest, compare_digests);
    if (score.violation == 0) {
        hwnas_point point = {.id = s->n_done - 1};
        memcpy(point.objectives, score.objectives, sizeof point.objectives);
        hwnas_front_insert(&s->front, &point);
    }
    return s->strategy->ops->tell(s->strategy, trial->number, arch, &score);
}

/* ---- Opening ---- */

/* Choices and labels, so that a study is not continued in another space of the same name. */
static char *space_fingerprint(const hwnas_space *space)
{
    hwnas_arch *first = hwnas_arch_new(space);
    hwnas_graph *graph = NULL;
    const char *digest = "none";
    for (size_t i = 0; i < space->n_genes; i++)
        first->genes[i] = (uint16_t)(space->genes[i].n_values - 1);
    hwnas_arch_settle(first);
    char *code = hwnas_arch_code(first), *count = hwnas_space_count(space, NULL);
    hwnas_digest built;
    if (hwnas_graph_build(&graph, first, 1) == HWNAS_OK) {
        built = hwnas_graph_digest(graph);
        digest = built.hex;
    }
    char *text = hwnas_printf("%s %s %s %s", space->name, count, code, digest);
    hwnas_graph_free(graph);
    free(code);
    free(count);
    hwnas_arch_free(first);
    return text;
}

static hwnas_status write_facts(study *s)
{
    hwnas_status status = HWNAS_OK;
    json_t *identity = hwnas_job_identity(s->job);
    char *job = json_dumps(identity, JSON_COMPACT | JSON_SORT_KEYS);
    char *space = space_fingerprint(s->space);
    TRY_OUT(hwnas_store_set(s->store, "version", hwnas_version()));
    TRY_OUT(hwnas_store_set(s->store, "space", space));
    TRY_OUT(hwnas_store_set(s->store, "job", job)); /* the last: it says that all are there */
out:
    free(job);
    free(space);
    json_decref(identity);
    return status;
}

/* A study is continued only by the same search. */
static hwnas_status check_facts(study *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_place place = {.file = s->job->study};
    json_t *mine = hwnas_job_identity(s->job), *theirs = NULL;
    char *job = NULL, *space = NULL, *my_space = space_fingerprint(s->space);
    TRY_OUT(hwnas_store_get(&job, s->store, "job"));
    TRY_OUT(hwnas_store_get(&space, s->store, "space"));
    theirs = json_loads(job ? job : "", 0, NULL);
    if (!theirs || !space) {
        status = hwnas_fail(HWNAS_E_INPUT, &place, "the study does not say what it searched for");
        goto out;
    }
    const char *key;
    json_t *value;
    json_object_foreach(mine, key, value)
    {
        if (json_equal(value, json_object_get(theirs, key)))
            continue;
        char *now = json_dumps(value, JSON_ENCODE_ANY);
        char *then = json_dumps(json_object_get(theirs, key), JSON_ENCODE_ANY);
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                       "this study was made with another %s: %s, not %s", key,
                                       then ? then : "none", now),
                            "continue it with the job that made it, or give another --study");
        free(now);
        free(then);
        goto out;
    }
    if (strcmp(space, my_space))
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                       "the space '%s' has changed since this study was made",
                                       s->space->name),
                            "give another --study");
out:
    json_decref(mine);
    json_decref(theirs);
    free(job);
    free(space);
    free(my_space);
    return status;
}

static hwnas_trial *move_trial(hwnas_trial *from)
{
    hwnas_trial *to = hwnas_alloc(sizeof *to);
    *to = *from;
    from->code = from->message = from->detail = NULL;
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

static hwnas_status run_trial(study *s, uint64_t number, const hwnas_arch *arch, bool is_new);

/* Tells the strategy what the store remembers, in the order in which it happened, and then runs
 * again what was running when the last session died. */
static hwnas_status replay_trials(study *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trials = NULL;
    hwnas_arch *arch = NULL;
    size_t n = 0;
    TRY_OUT(hwnas_store_trials(&trials, &n, s->store));
    s->next = n;
    qsort(trials, n, sizeof *trials, compare_order);
    for (size_t i = 0; i < n; i++) {
        hwnas_arch_free(arch);
        arch = NULL;
        TRY_OUT(hwnas_arch_parse(&arch, s->space, trials[i].code));
        if (trials[i].is_finished)
            TRY_OUT(absorb(s, move_trial(&trials[i]), arch));
        else if (!should_stop(s))
            TRY_OUT(run_trial(s, trials[i].number, arch, false));
        if (trials[i].is_finished)
            s->session_first = s->n_done;
    }
out:
    hwnas_arch_free(arch);
    hwnas_trials_free(trials, n);
    return status;
}

static hwnas_status remember_device(study *s)
{
    const hwnas_device_info *info = hwnas_evaluator_device(s->evaluator);
    if (!info)
        return HWNAS_OK;
    json_t *device = json_pack("{s:s, s:s, s:s, s:i}", "name", info->name, "library", info->library,
                               "isa", info->isa, "threads", info->threads);
    char *text = json_dumps(device, JSON_COMPACT);
    hwnas_status status = hwnas_store_set(s->store, "device", text);
    free(text);
    json_decref(device);
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

/* ---- Running ---- */

static void report(study *s, const char *phase)
{
    if (!s->options->progress)
        return;
    double session = hwnas_now() - s->started;
    uint64_t n_new = s->n_done - s->session_first;
    hwnas_progress p = {.n_done = s->n_done,
                        .n_failed = s->n_failed,
                        .max_trials = (uint64_t)s->job->max_trials,
                        .n_front = s->front.n,
                        .seconds = s->earlier_seconds + session,
                        .seconds_left = NAN,
                        .phase = phase};
    if (n_new > 0) {
        p.trials_per_minute = 60 * (double)n_new / session;
        if (s->job->max_trials)
            p.seconds_left = 60 * ((double)p.max_trials - (double)s->n_done) / p.trials_per_minute;
    }
    if (s->job->max_minutes > 0)
        p.seconds_left = fmin(60 * s->job->max_minutes - p.seconds,
                              isnan(p.seconds_left) ? INFINITY : p.seconds_left);
    if (s->front.n)
        p.winner = s->done[s->front.points[0].id];
    s->options->progress(s->options->context, &p);
}

/* A failure that says something about the machine or the set-up, not about one candidate. */
static bool is_fatal(hwnas_status status)
{
    return status == HWNAS_E_INTERRUPTED || status == HWNAS_E_LIBRARY || status == HWNAS_E_USAGE;
}

/* Evaluates an architecture as trial `number` and stores what came of it. */
static hwnas_status run_trial(study *s, uint64_t number, const hwnas_arch *arch, bool is_new)
{
    hwnas_graph *graph = NULL;
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    double started = hwnas_now();
    trial->number = number;
    trial->code = hwnas_arch_code(arch);
    hwnas_status status = hwnas_graph_build(&graph, arch, s->job->batch);
    if (status == HWNAS_OK)
        memcpy(trial->digest, hwnas_graph_digest(graph).hex, sizeof trial->digest);
    hwnas_status stored =
        is_new ? hwnas_store_start(s->store, number, trial->code, trial->digest) : HWNAS_OK;
    if (stored == HWNAS_OK && status == HWNAS_OK)
        status = hwnas_evaluate(trial, s->evaluator, arch, graph, find_twin(s, trial->digest));
    hwnas_graph_free(graph);
    if (stored != HWNAS_OK || is_fatal(status)) {
        /* The trial stays "running" in the store: the next session repeats it. */
        hwnas_trials_free(trial, 1);
        return stored != HWNAS_OK ? stored : status;
    }
    if (status != HWNAS_OK) {
        trial->message = hwnas_strdup(hwnas_last_error()->message);
        trial->n_values = 0;
        trial->violation = INFINITY;
    }
    trial->status = status;
    trial->seconds = hwnas_now() - started;
    s->n_hopeless = status == HWNAS_OK ? 0 : s->n_hopeless + 1;
    TRY(hwnas_store_finish(s->store, trial));
    trial->is_finished = true;
    return absorb(s, trial, arch);
}

static bool budget_is_spent(const study *s)
{
    if (s->job->max_trials && s->n_done >= (uint64_t)s->job->max_trials)
        return true;
    return s->job->max_minutes > 0 &&
           s->earlier_seconds + hwnas_now() - s->started >= 60 * s->job->max_minutes;
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

static hwnas_status search(study *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_new(s->space);
    while (!should_stop(s) && !budget_is_spent(s)) {
        status = s->strategy->ops->ask(s->strategy, s->next, arch);
        if (status == HWNAS_E_EXHAUSTED) {
            status = HWNAS_OK; /* the whole space has been seen */
            break;
        }
        TRY_OUT(status);
        TRY_OUT(run_trial(s, s->next++, arch, true));
        TRY_OUT(remember_time(s));
        if (s->n_hopeless == HOPELESS && s->n_failed == s->n_done) {
            status = give_up(s);
            goto out;
        }
        report(s, "");
    }
out:
    hwnas_arch_free(arch);
    return status;
}

static void close_study(study *s)
{
    hwnas_evaluator_close(s->evaluator);
    hwnas_strategy_free(s->strategy);
    hwnas_store_close(s->store);
    while (s->by_digest) /* it compares the trials, so they go later */
        tdelete(*(void **)s->by_digest, &s->by_digest, compare_digests);
    for (size_t i = 0; i < s->n_done; i++)
        hwnas_trials_free(s->done[i], 1);
    free(s->done);
    hwnas_front_done(&s->front);
    hwnas_space_free(s->space);
}

/* All that can be refused before a file is made. */
static hwnas_status prepare(study *s)
{
    hwnas_strategy_config config = {.n_objectives = s->job->n_objectives,
                                    .seed = s->job->seed,
                                    .population = s->job->population};
    hwnas_status status = hwnas_graph_load_space(&s->space, s->job->space);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &s->job->space_place);
    config.space = s->space;
    status = hwnas_strategy_new(&s->strategy, s->job->strategy, &config);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &s->job->strategy_place);
    TRY(hwnas_evaluator_open(&s->evaluator, s->job, s->space, s->options->stop));
    return HWNAS_OK;
}

static hwnas_status begin_or_resume(study *s)
{
    char *job = NULL, *seconds = NULL;
    TRY(hwnas_store_get(&job, s->store, "job"));
    bool is_new = !job; /* or its process died before the first trial */
    free(job);
    if (is_new) {
        TRY(write_facts(s));
        return remember_device(s);
    }
    TRY(check_facts(s));
    TRY(hwnas_store_get(&seconds, s->store, "wall_seconds"));
    s->earlier_seconds = seconds ? atof(seconds) : 0;
    free(seconds);
    TRY(remember_device(s));
    return replay_trials(s);
}

/* A new study that came to nothing leaves no file: without a trial, or with none but those that
 * failed because the job is wrong. */
static void discard(study *s, hwnas_status why)
{
    bool is_job_wrong = hwnas_status_exit_code(why) == 2 && s->n_failed == s->n_done;
    if (s->n_done && !is_job_wrong)
        return;
    if (s->n_done) {
        hwnas_store_close(s->store);
        unlink(s->job->study);
    } else {
        hwnas_store_discard(s->store);
    }
    s->store = NULL;
}

hwnas_status hwnas_study_run(hwnas_summary **out, const hwnas_job *job,
                             const hwnas_study_options *options)
{
    hwnas_status status = HWNAS_OK;
    study s = {.job = job,
               .options = options,
               .front = {.n_objectives = job->n_objectives},
               .started = hwnas_now()};
    TRY_OUT(prepare(&s));
    TRY_OUT(open_store(&s));
    status = begin_or_resume(&s);
    if (status == HWNAS_OK)
        status = search(&s);
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
out:
    close_study(&s);
    return status;
}
