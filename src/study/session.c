/* session.c: one trial of a session: evaluating it, and writing what came of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "study/budget.h"
#include "study/session.h"
#include "trial/judge.h"
#include "study/starts.h"
#include "study/study_facts.h"

hwnas_status hwnas_session_publish(hwnas_session *s)
{
    if (!hwnas_store_is_draft(s->store))
        return HWNAS_OK;
    TRY(hwnas_evaluator_use_study(s->setup.evaluator, NULL)); /* it borrows the connection */
    TRY(hwnas_store_publish(s->store));
    return hwnas_evaluator_use_study(s->setup.evaluator, s->store);
}

void hwnas_session_add_open(hwnas_session *s, uint64_t number, int rung, const hwnas_arch *walked)
{
    hwnas_asked *open = hwnas_alloc(sizeof *open);
    open->trial.number = number;
    open->trial.rung = rung;
    open->walked = hwnas_arch_copy(walked);
    HWNAS_GROW(s->asked, s->n_asked, s->asked_room);
    s->asked[s->n_asked++] = open;
    s->next = number >= s->next ? number + 1 : s->next;
}

void hwnas_asked_free(hwnas_asked *asked)
{
    hwnas_trial_done(&asked->trial);
    hwnas_arch_free(asked->walked);
    free(asked);
}

/* ---- One trial ---- */

bool hwnas_trial_is_fatal(hwnas_status status)
{
    return status == HWNAS_E_INTERRUPTED || status == HWNAS_E_LIBRARY || status == HWNAS_E_USAGE;
}

/* For whoever follows a search trial by trial. */
static void log_trial(const hwnas_trial *trial)
{
    hwnas_str words = {0};
    hwnas_str_add(&words, "");
    for (size_t i = 0; i < trial->n_values; i++) {
        const hwnas_value_row *v = &trial->values[i];
        const hwnas_metric *metric = hwnas_metric_of_value(v->metric);
        if (!metric)
            continue;
        const hwnas_metric m = hwnas_metric_shown(metric, v->value);
        hwnas_str_addf(&words, "%s%s %.*f%s%s (%s)", i ? ", " : "", v->metric, m.decimals,
                       v->value / m.scale, *m.unit ? " " : "", m.unit,
                       hwnas_sources[v->source].name);
    }
    hwnas_log(HWNAS_LOG_INFO, "trial %llu, %s: %.900s; took %.2f s",
              (unsigned long long)trial->number, trial->code, words.s, trial->seconds);
    hwnas_str_done(&words);
}

void hwnas_trial_settle(hwnas_trial *trial, hwnas_status status, double started)
{
    if (status != HWNAS_OK) {
        trial->message = hwnas_strdup(hwnas_last_error()->message);
        hwnas_log(HWNAS_LOG_WARNING, "trial %llu failed: %s", (unsigned long long)trial->number,
                  trial->message);
        trial->n_values = 0;
        free(trial->detail); /* of tasks that went well, like their values */
        trial->detail = NULL;
        trial->is_unstable = trial->is_stopped_early = false;
        trial->violation = INFINITY;
    }
    trial->status = status;
    trial->seconds += hwnas_now() - started;
    if (status == HWNAS_OK)
        log_trial(trial);
}

static double training_seconds(const hwnas_session *s)
{
    hwnas_trainings trainings;
    return hwnas_evaluator_trainings(&trainings, s->setup.evaluator) ? trainings.spent : 0;
}

void hwnas_session_note(hwnas_session *s, uint64_t number, const hwnas_arch *walked)
{
    hwnas_strategy *strategy = s->setup.strategy;
    if (strategy->ops->note)
        strategy->ops->note(strategy, number, walked);
}

hwnas_status hwnas_session_propose(hwnas_session *s, hwnas_arch *walked, int *rung)
{
    const uint64_t n_own = s->next - s->n_warm;
    hwnas_strategy *strategy = s->setup.strategy;
    *rung = 0;
    TRY(hwnas_session_add_starts(s));
    if (n_own < (uint64_t)s->n_starts) {
        hwnas_arch_assign(walked, s->starts[n_own]);
        hwnas_session_note(s, s->next, walked);
        if (strategy->ops->rung)
            *rung = strategy->ops->rung(strategy, s->next);
        return HWNAS_OK;
    }
    hwnas_status status = strategy->ops->ask(strategy, s->next, walked);
    if (status == HWNAS_E_EXHAUSTED) {
        s->exhausted = hwnas_strdup(hwnas_last_error()->message);
        return HWNAS_OK;
    }
    if (status == HWNAS_OK && strategy->ops->rung)
        *rung = strategy->ops->rung(strategy, s->next);
    return status;
}

/* Another trial that is open will measure this network. */
static bool has_twin(const hwnas_session *s, const hwnas_trial *trial, hwnas_settings settings)
{
    for (size_t i = 0; i < s->n_asked; i++) {
        const hwnas_asked *other = s->asked[i];
        const hwnas_settings theirs = hwnas_settings_of(other->walked, s->job);
        if (&other->trial != trial && !strcmp(other->trial.digest, trial->digest) &&
            !memcmp(&theirs, &settings, sizeof settings))
            return true;
    }
    return false;
}

/* Those that have judged a network of this session: they may have been trained for it. */
static hwnas_status check_weights(hwnas_session *s)
{
    char *file = NULL, *hash = NULL;
    hwnas_evaluator_weights(&file, &hash, s->setup.evaluator);
    const hwnas_status status =
        hwnas_facts_check_weights(s->store, s->job->study, file, hash, true);
    s->knows_weights = status == HWNAS_OK;
    free(file);
    free(hash);
    return status;
}

/* `c` has the stage, and what it was estimated as. */
static hwnas_status evaluate(hwnas_session *s, hwnas_trial *trial, const hwnas_arch *walked,
                             bool is_new, hwnas_candidate c)
{
    hwnas_graph *graph = NULL;
    hwnas_arch *arch = hwnas_settings_strip(walked, s->setup.space);
    c.arch = arch;
    c.settings = hwnas_settings_of(walked, s->job);
    c.may_wait = !s->is_shared && !trial->rung && hwnas_waiting_suits(&s->job->goals);
    c.rung = trial->rung;
    if (s->job->max_minutes > 0)
        c.deadline = hwnas_now() + hwnas_session_seconds_left(s);
    const double spent = training_seconds(s), started = hwnas_now();
    const bool is_judged =
        c.stage != HWNAS_STAGE_END && !trial->n_values; /* see hwnas_evaluate() */
    if (!trial->code)
        trial->code = hwnas_arch_code(walked);
    hwnas_status status = hwnas_graph_build(&graph, arch, c.settings.batch);
    c.graph = graph;
    if (status == HWNAS_OK)
        status = hwnas_evaluator_digest(trial->digest, s->setup.evaluator, &c);
    hwnas_status stored = is_new ? hwnas_session_start(s, trial) : HWNAS_OK;
    c.front = &s->steady;
    if (stored == HWNAS_OK)
        stored = hwnas_session_duplicate(&c.duplicate, s, trial->digest, c.settings, 0);
    if (stored == HWNAS_OK)
        stored =
            hwnas_session_duplicate(&c.promoted, s, trial->digest, c.settings, trial->rung + 1);
    c.is_twin = c.stage == HWNAS_STAGE_BEGIN && has_twin(s, trial, c.settings);
    s->tried = trial;
    if (stored == HWNAS_OK && status == HWNAS_OK)
        status = hwnas_evaluate(trial, s->setup.evaluator, &c);
    s->tried = NULL;
    if (stored == HWNAS_OK && status == HWNAS_OK && is_judged && !s->knows_weights)
        stored = check_weights(s);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    if (stored != HWNAS_OK || hwnas_trial_is_fatal(status))
        return stored != HWNAS_OK ? stored : status;
    const bool is_open = c.stage == HWNAS_STAGE_BEGIN && *c.is_open;
    const bool is_handed_on = c.next_task && *c.next_task < HWNAS_N_TRIAL_TASKS;
    if (status == HWNAS_OK && (is_open || is_handed_on)) {
        trial->seconds += hwnas_now() - started;
        return HWNAS_OK;
    }
    hwnas_trial_settle(trial, status, started);
    s->n_failures_in_a_row = status == HWNAS_OK ? 0 : s->n_failures_in_a_row + 1;
    /* What is disturbed counts for what it makes the others cost. */
    if (hwnas_trial_is_measured(trial) && !c.duplicate) {
        s->run_seconds += hwnas_now() - started - (training_seconds(s) - spent);
        s->n_run += !trial->is_unstable;
        s->n_measured++;
        s->n_disturbed += trial->is_unstable;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_session_evaluate(hwnas_session *s, hwnas_trial *trial, const hwnas_arch *walked,
                                    bool is_new, const hwnas_trial *estimate)
{
    return evaluate(s, trial, walked, is_new, (hwnas_candidate){.estimate = estimate});
}

hwnas_status hwnas_session_evaluate_tasks(int *next_task, hwnas_session *s, hwnas_trial *trial,
                                          const hwnas_arch *walked, int n_done)
{
    *next_task = HWNAS_N_TRIAL_TASKS;
    return evaluate(
        s, trial, walked, false,
        (hwnas_candidate){.n_done = n_done, .next_task = next_task, .is_one_task = true});
}

hwnas_status hwnas_session_evaluate_begin(bool *is_open, hwnas_session *s, hwnas_asked *asked)
{
    *is_open = false;
    return evaluate(s, &asked->trial, asked->walked, false,
                    (hwnas_candidate){.stage = HWNAS_STAGE_BEGIN,
                                      .begun = &asked->begun,
                                      .is_open = is_open,
                                      .is_again = asked->is_again});
}

hwnas_status hwnas_session_evaluate_end(hwnas_session *s, hwnas_trial *trial, hwnas_asked *asked)
{
    return evaluate(s, trial, asked->walked, false,
                    (hwnas_candidate){.stage = HWNAS_STAGE_END, .begun = &asked->begun});
}

hwnas_status hwnas_session_send_estimated(hwnas_session *s, size_t id)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial trial = {0};
    hwnas_candidate c = {.estimate = &trial, .front = &s->steady};
    hwnas_arch *walked = NULL, *arch = NULL;
    hwnas_graph *graph = NULL;
    TRY_OUT(hwnas_session_trial(&trial, s, id));
    TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, trial.code));
    arch = hwnas_settings_strip(walked, s->setup.space);
    c.arch = arch;
    c.settings = hwnas_settings_of(walked, s->job);
    if (hwnas_session_has_duplicate(s, trial.digest, c.settings))
        goto out;
    TRY_OUT(hwnas_graph_build(&graph, arch, c.settings.batch));
    c.graph = graph;
    status = hwnas_evaluate_send(&trial, s->setup.evaluator, &c, 0, s->job->max_seconds);
out:
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_arch_free(walked);
    hwnas_trial_done(&trial);
    return status;
}

hwnas_status hwnas_session_try(hwnas_session *s, uint64_t number, const hwnas_arch *walked,
                               int rung, bool is_new)
{
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    trial->number = number;
    trial->rung = rung;
    /* After a failure the trial stays "running" in the store: the next session repeats it. */
    hwnas_status status = hwnas_session_evaluate(s, trial, walked, is_new, NULL);
    if (status == HWNAS_OK)
        status = hwnas_session_write(s, trial, HWNAS_EVENT_FINISHED);
    if (status == HWNAS_OK)
        status = hwnas_session_absorb(s, trial, walked);
    hwnas_trials_free(trial, 1);
    return status;
}

hwnas_status hwnas_session_remeasure(hwnas_session *s, size_t id)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial old = {0}, *trial = hwnas_alloc(sizeof *trial);
    hwnas_arch *walked = NULL;
    TRY_OUT(hwnas_session_trial(&old, s, id));
    trial->number = old.number;
    trial->seconds = old.seconds;
    trial->is_finished = true;
    trial->order = old.order;
    TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, old.code));
    TRY_OUT(hwnas_session_evaluate(s, trial, walked, false, &old));
    /* What a duplicate measured will not be another the next time. */
    if (trial->is_unstable && !s->is_deadline_near &&
        !hwnas_session_has_duplicate(s, trial->digest, hwnas_settings_of(walked, s->job)) &&
        hwnas_waiting_put_off(&s->waiting, id, hwnas_now())) {
        status = hwnas_session_write(s, trial, HWNAS_EVENT_PUT_OFF);
        goto out;
    }
    hwnas_waiting_tell(&s->waiting, id, trial);
    TRY_OUT(hwnas_session_write(s, trial, HWNAS_EVENT_REVISED));
    status = hwnas_session_renew(s, id, trial, walked);
out:
    hwnas_arch_free(walked);
    hwnas_trial_done(&old);
    hwnas_trials_free(trial, 1);
    return status;
}

hwnas_status hwnas_session_train(hwnas_session *s, bool *is_trained, size_t id)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trial = hwnas_alloc(sizeof *trial);
    hwnas_arch *walked = NULL, *arch = NULL;
    hwnas_trial trained = {0};
    const double started = hwnas_now();
    TRY_OUT(hwnas_session_trial(trial, s, id));
    TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, trial->code));
    arch = hwnas_settings_strip(walked, s->setup.space);
    TRY_OUT(hwnas_evaluator_train(&trained, s->setup.evaluator, arch));
    const hwnas_value_row *row = hwnas_trial_value_of(&trained, HWNAS_TRAINED);
    *is_trained = row != NULL;
    if (!*is_trained)
        goto out;
    for (size_t i = 0; i < trial->n_values; i++)
        if (!strcmp(trial->values[i].metric, row->metric))
            trial->values[i] = *row;
    trial->violation = hwnas_trial_violation(trial, &s->job->goals, true);
    trial->seconds += hwnas_now() - started;
    TRY_OUT(hwnas_session_write(s, trial, HWNAS_EVENT_REVISED));
    status = hwnas_session_renew(s, id, trial, walked);
out:
    hwnas_arch_free(walked);
    hwnas_arch_free(arch);
    hwnas_trial_done(&trained);
    hwnas_trials_free(trial, 1);
    return status;
}
