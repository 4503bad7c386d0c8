/* begin.c: what a session begins with: its file, the trials of earlier sessions, those of another
 * study; and how it ends. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/store.h"
#include "graph/elaborate.h"
#include "study/environment.h"
#include "study/held.h"
#include "study/study_facts.h"
#include "study/session.h"
#include "study/verify_front.h"
#include "study/starts.h"
#include "study/warm.h"

enum {
    FIRST_ROUND = 32 /* trials until what would be on the front is measured; from then on whenever
                        there are twice as many */
};

/* ---- Opening and closing ---- */

void hwnas_session_init(hwnas_session *s, const hwnas_job *job,
                        const hwnas_session_options *options)
{
    *s = (hwnas_session){.job = job,
                         .options = options,
                         .front = {.n_objectives = job->goals.n_objectives},
                         .steady = {.n_objectives = job->goals.n_objectives},
                         .waiting = {.goals = &job->goals},
                         .scores = {.n_objectives = job->goals.n_objectives},
                         .winner_id = -1,
                         .tasks = options->tasks ? options->tasks : HWNAS_ALL_TASKS,
                         .next_round = FIRST_ROUND,
                         .started = hwnas_now()};
}

/* Opens the setup as the study's first session did, when there was one. */
static hwnas_status open_setup(hwnas_session *s, const hwnas_training_watch *watch)
{
    hwnas_choice_of_strategy choice = {0};
    bool is_there = false;
    bool study_exists = false;
    if (s->options->resume)
        TRY(hwnas_store_exists(&study_exists, s->job->study));
    if (study_exists) {
        hwnas_store *store;
        TRY(hwnas_store_open(&store, s->job->study, HWNAS_STORE_READ));
        hwnas_status status = hwnas_facts_choice(&choice, &is_there, store);
        hwnas_store_close(store);
        TRY(status);
    }
    /* That the job names another strategy is told by comparing the facts. */
    is_there &= !strcmp(s->job->strategy, "auto") || !strcmp(s->job->strategy, choice.name);
    return hwnas_setup_open(&s->setup, s->job, is_there ? &choice : NULL, s->tasks,
                            s->options->stop, watch);
}

/* What limits can be met is no reason to train a network. */
static hwnas_status probe(hwnas_session *s)
{
    hwnas_evaluator_may_train(s->setup.evaluator, false);
    hwnas_status status =
        hwnas_probe_limits(s->setup.evaluator, s->job, s->setup.space, s->setup.walked);
    hwnas_evaluator_may_train(s->setup.evaluator, true);
    return status;
}

static hwnas_status open_store(hwnas_session *s)
{
    const hwnas_store_mode mode = s->is_shared            ? HWNAS_STORE_SHARE
                                  : s->options->resume    ? HWNAS_STORE_RESUME
                                  : s->options->overwrite ? HWNAS_STORE_REPLACE
                                                          : HWNAS_STORE_CREATE;
    TRY(hwnas_store_open(&s->store, s->job->study, mode));
    /* What a worker learns of latencies stays in its own cache. */
    return s->is_shared ? HWNAS_OK : hwnas_evaluator_use_study(s->setup.evaluator, s->store);
}

/* A budget of trainings is counted in one process. */
static hwnas_status check_trainings(const hwnas_session *s)
{
    hwnas_trainings trainings;
    if (!s->job->train_budget || !hwnas_evaluator_trainings(&trainings, s->setup.evaluator))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, &s->job->train_budget_place,
                                 "workers cannot share a budget of trainings"),
                      "leave it out: each network that keeps the limits is trained; or search "
                      "without workers");
}

static hwnas_status check_others(const hwnas_session *s)
{
    const hwnas_place place = {.file = s->job->study};
    const hwnas_tasks runs =
        hwnas_evaluator_tasks(s->setup.evaluator) & ~(1U << HWNAS_TASK_TRAINING);
    const bool is_alone =
        s->options->n_workers <= 1 || !hwnas_evaluator_measures(s->setup.evaluator);
    if (runs && !hwnas_store_is_remote(s->job->study))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, &place,
                       "workers share a file on one machine, where they would disturb the "
                       "measurements that this job makes"),
            "search without workers; or start one on each machine, on a study in PostgreSQL: "
            "docs/cluster.md");
    if (runs && !is_alone)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, &place,
                       "workers on one machine would disturb each other's measurements"),
            "start one worker on each machine: docs/cluster.md");
    return HWNAS_OK;
}

/* That something is left to do for a worker which does some tasks alone. */
static hwnas_status check_tasks(const hwnas_session *s)
{
    const hwnas_tasks all = hwnas_evaluator_tasks(s->setup.evaluator);
    if (s->tasks == HWNAS_ALL_TASKS || s->tasks & all)
        return HWNAS_OK;
    char *theirs = hwnas_tasks_words(s->tasks, s->job), *words = hwnas_tasks_words(all, s->job);
    const hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "--only %s: there is nothing to do of this job", theirs),
        all ? "its trials need %s" : "its trials need no device and no training", words);
    free(theirs);
    free(words);
    return status;
}

/* Of whoever proposes trials, and so judges them. Reading the files takes a while, in which nobody
 * is kept from the study. */
static void find_weights(hwnas_session *s)
{
    if (hwnas_tasks_propose(s->tasks, hwnas_evaluator_tasks(s->setup.evaluator)))
        hwnas_evaluator_weights(&s->weights_file, &s->weights, s->setup.evaluator);
}

hwnas_status hwnas_session_open(hwnas_session *s, const hwnas_training_watch *watch)
{
    const hwnas_session_options *options = s->options;
    TRY(s->is_told ? hwnas_job_check_told(s->job) : hwnas_job_check_own(s->job));
    TRY(open_setup(s, watch));
    hwnas_evaluator_watch_runs(s->setup.evaluator, hwnas_session_tell_run, s);
    bool is_there = options->resume;
    if (!options->resume && !options->overwrite)
        TRY(hwnas_store_exists(&is_there, s->job->study));
    /* Before the file is made, or one of the same name replaced. */
    if (!is_there)
        TRY(probe(s));
    if (s->is_shared) {
        TRY(check_trainings(s));
        TRY(check_others(s));
        TRY(check_tasks(s));
    }
    TRY(hwnas_evaluator_train_first(s->setup.evaluator));
    find_weights(s);
    return open_store(s);
}

/* Before the store that its table of latencies writes to is closed. */
static void part_from_store(hwnas_session *s)
{
    if (s->setup.evaluator && hwnas_evaluator_use_study(s->setup.evaluator, NULL) != HWNAS_OK)
        hwnas_error_clear();
}

hwnas_status hwnas_session_summarize(hwnas_summary **out, hwnas_session *s)
{
    hwnas_session_forget(s);
    hwnas_strategy_free(s->setup.strategy);
    s->setup.strategy = NULL;
    return hwnas_summary_load_as(out, s->store, s->job->study,
                                 &(hwnas_summary_view){.is_brief = true});
}

void hwnas_session_close(hwnas_session *s)
{
    free(s->in_vain);
    free(s->exhausted);
    free(s->weights_file);
    free(s->weights);
    part_from_store(s);
    hwnas_store_close(s->store);
    hwnas_session_forget(s);
    hwnas_setup_close(&s->setup);
}

void hwnas_session_discard(hwnas_session *s, hwnas_status why)
{
    if (s->options->resume)
        return;
    bool is_job_wrong = hwnas_status_exit_code(why) == 2 && s->n_failed == s->n_done;
    if (s->n_done && !is_job_wrong)
        return;
    part_from_store(s);
    if (s->n_done)
        hwnas_store_remove(s->store);
    else
        hwnas_store_discard(s->store);
    s->store = NULL;
}

/* ---- Warm start ---- */

/* Takes one trial over unless it would have to be measured; *is_taken says. Those below `n_skip`
 * are in the store already. */
static hwnas_status take_over(hwnas_session *s, bool *is_taken, const hwnas_trial *from,
                              uint64_t n_skip)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    hwnas_arch *walked = NULL, *arch = NULL;
    hwnas_graph *graph = NULL;
    hwnas_candidate c = {
        .duplicate = from, .duplicate_study = s->job->warm_start, .is_lookup_only = true};
    double started = hwnas_now();
    *is_taken = false;
    TRY_OUT(hwnas_arch_parse(&arch, s->setup.wide, from->code));
    hwnas_arch_free(arch);
    arch = NULL;
    if (hwnas_arch_parse(&walked, s->setup.walked, from->code) != HWNAS_OK) {
        hwnas_error_clear(); /* beyond the predictor's domain: it cannot say what that is worth */
        s->n_outside++;
        goto out;
    }
    arch = hwnas_settings_strip(walked, s->setup.space);
    c.arch = arch;
    c.settings = hwnas_settings_of(walked, s->job);
    TRY_OUT(hwnas_graph_build(&graph, arch, c.settings.batch));
    c.graph = graph;
    TRY_OUT(hwnas_evaluator_digest(trial->digest, s->setup.evaluator, &c));
    trial->code = hwnas_arch_code(walked);
    status = hwnas_evaluate(trial, s->setup.evaluator, &c);
    if (status != HWNAS_OK && !hwnas_trial_is_fatal(status)) {
        hwnas_error_clear();
        status = HWNAS_OK;
        goto out;
    }
    TRY_OUT(status);
    *is_taken = true;
    if (s->n_warm < n_skip)
        goto out;
    trial->number = s->next++;
    hwnas_trial_settle(trial, HWNAS_OK, started);
    TRY_OUT(hwnas_session_write_whole(s, trial));
    status = hwnas_session_absorb(s, trial, walked);
out:
    hwnas_graph_free(graph);
    hwnas_arch_free(walked);
    hwnas_arch_free(arch);
    hwnas_trials_free(trial, 1);
    return status;
}

static hwnas_status write_warm(const hwnas_session *s, bool is_done)
{
    json_t *fact =
        json_pack("{s:s, s:I, s:I, s:b}", "study", s->job->warm_start, "trials",
                  (json_int_t)s->n_warm, "outside", (json_int_t)s->n_outside, "done", is_done);
    hwnas_status status = hwnas_facts_set_json(s->store, "warm_start", fact);
    json_decref(fact);
    return status;
}

/* Which of its trials are taken over depends on all devices. */
static hwnas_status check_warm_start(const hwnas_session *s)
{
    if (!(hwnas_evaluator_tasks(s->setup.evaluator) & ~s->tasks))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "a study with a warm start is begun by a worker without --only"),
                      "others may join it with --only when its first trials are there");
}

/* Begins with the trials of another study; a session that died meanwhile is gone on with. */
static hwnas_status warm_up(hwnas_session *s)
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
    TRY_OUT(check_warm_start(s));
    TRY_OUT(hwnas_warm_start_load(&warm, s->job, s->setup.wide, s->setup.evaluator));
    TRY_OUT(write_warm(s, false));
    for (size_t i = 0; i < warm.n && !hwnas_session_should_stop(s); i++) {
        bool is_taken;
        TRY_OUT(take_over(s, &is_taken, &warm.trials[i], n_skip));
        s->n_warm += is_taken;
    }
    if (!hwnas_session_should_stop(s))
        TRY_OUT(write_warm(s, true));
out:
    hwnas_warm_start_done(&warm);
    json_decref(fact);
    return status;
}

/* ---- The whole ---- */

static hwnas_status make_ready(hwnas_session *s)
{
    TRY(warm_up(s));
    if (s->next - s->n_warm < sizeof s->starts / sizeof *s->starts)
        TRY(hwnas_session_find_starts(s));
    return HWNAS_OK;
}

hwnas_status hwnas_session_begin(hwnas_session *s)
{
    char *job = NULL, *seconds = NULL;
    TRY(hwnas_verified_load(&s->verified, s->store));
    TRY(hwnas_store_get(&job, s->store, "job"));
    bool is_new = !job; /* or its process died before the first trial */
    free(job);
    if (hwnas_evaluator_measures(s->setup.evaluator))
        TRY(hwnas_facts_write_conditions(s->store));
    TRY(hwnas_environment_note(s->store));
    if (is_new) {
        TRY(hwnas_facts_write_choice(s->store, &s->setup.choice));
        TRY(hwnas_held_write(s->store, s->setup.held));
        TRY(hwnas_facts_write(s->store, s->job, s->setup.wide));
        TRY(hwnas_facts_write_devices(s->store, s->job, s->setup.evaluator));
        if (s->is_told)
            TRY(hwnas_session_note_unverified(s));
        return make_ready(s);
    }
    TRY(hwnas_facts_check(s->store, s->job, &s->setup));
    TRY(hwnas_facts_check_weights(s->store, s->job->study, s->weights_file, s->weights, false));
    if (!s->told_version)
        TRY(hwnas_facts_note_version(s->store, s->job->study));
    s->told_version = true;
    TRY(hwnas_store_get(&seconds, s->store, "wall_seconds"));
    s->earlier_seconds = seconds ? atof(seconds) : 0;
    if (s->is_shared) /* these seconds go on while devices are opened, and are counted once */
        s->started = hwnas_now();
    free(seconds);
    TRY(hwnas_facts_check_devices(s->store, s->job, s->setup.evaluator));
    TRY(hwnas_facts_write_devices(s->store, s->job, s->setup.evaluator));
    /* What an earlier session left is not what this one leaves, however it ends. */
    TRY(hwnas_store_set(s->store, HWNAS_WAITING_FACT, "{}"));
    TRY(hwnas_session_replay(s));
    return make_ready(s);
}
