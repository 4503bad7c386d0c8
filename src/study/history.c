/* history.c: what a session writes as it goes on, and goes through again when it is continued.
 *
 * A trial that was estimated and then measured is told twice, and between the two the strategy
 * proposed what followed from the estimate. So the history has both, and is told again as it
 * happened, not as the trials are in the end. What follows from counts and times of the sessions
 * that were, and from nothing a strategy was told, is a fact of its own, written with each event.
 */
#include <math.h>
#include <stdlib.h>

#include "study/ask_tell.h"
#include "study/study_facts.h"
#include "study/session.h"

#define FACT "session"

/* ---- Writing ---- */

static hwnas_status write_state(const hwnas_session *s)
{
    json_t *fact = hwnas_evaluator_state(s->setup.evaluator);
    json_object_set_new(fact, "run_seconds", json_real(s->run_seconds));
    json_object_set_new(fact, "n_run", json_integer((json_int_t)s->n_run));
    json_object_set_new(fact, "next_round", json_integer((json_int_t)s->next_round));
    json_object_set_new(fact, "n_failures_in_a_row", json_integer(s->n_failures_in_a_row));
    json_object_set_new(fact, "n_disturbed", json_integer(s->waiting.n_disturbed));
    hwnas_status status = hwnas_facts_set_json(s->store, FACT, fact);
    json_decref(fact);
    return status;
}

hwnas_status hwnas_session_start(hwnas_session *s, const hwnas_trial *trial)
{
    TRY(hwnas_store_begin(s->store));
    hwnas_status status = write_state(s);
    if (status == HWNAS_OK)
        status =
            hwnas_store_start(s->store, trial->number, trial->code, trial->digest, trial->rung);
    return hwnas_store_end(s->store, status);
}

hwnas_status hwnas_session_start_asked(hwnas_session *s, const hwnas_trial *trial)
{
    TRY(hwnas_store_begin(s->store));
    hwnas_status status = hwnas_session_start(s, trial);
    if (status == HWNAS_OK)
        status = hwnas_store_note(s->store, trial->number, HWNAS_EVENT_ASKED);
    return hwnas_store_end(s->store, status);
}

static hwnas_status write_event(const hwnas_session *s, hwnas_trial *trial, hwnas_event_kind kind)
{
    TRY(hwnas_evaluator_keep(s->setup.evaluator));
    TRY(write_state(s));
    if (kind == HWNAS_EVENT_PUT_OFF)
        return hwnas_store_note(s->store, trial->number, kind);
    return kind == HWNAS_EVENT_REVISED ? hwnas_store_revise(s->store, trial)
                                       : hwnas_store_finish(s->store, trial);
}

hwnas_status hwnas_session_write(hwnas_session *s, hwnas_trial *trial, hwnas_event_kind kind)
{
    TRY(hwnas_store_begin(s->store));
    return hwnas_store_end(s->store, write_event(s, trial, kind));
}

hwnas_status hwnas_session_write_whole(hwnas_session *s, hwnas_trial *trial)
{
    TRY(hwnas_store_begin(s->store));
    hwnas_status status = hwnas_session_start(s, trial);
    if (status == HWNAS_OK)
        status = hwnas_session_write(s, trial, HWNAS_EVENT_FINISHED);
    return hwnas_store_end(s->store, status);
}

/* ---- Going through it again ---- */

static hwnas_status read_state(hwnas_session *s)
{
    json_t *fact = NULL;
    TRY(hwnas_facts_json(&fact, s->store, FACT));
    if (!fact)
        return HWNAS_OK; /* nothing happened yet */
    hwnas_evaluator_set_state(s->setup.evaluator, fact);
    s->run_seconds = json_number_value(json_object_get(fact, "run_seconds"));
    s->n_run = (size_t)json_integer_value(json_object_get(fact, "n_run"));
    s->next_round = (size_t)json_integer_value(json_object_get(fact, "next_round"));
    s->n_failures_in_a_row = (int)json_integer_value(json_object_get(fact, "n_failures_in_a_row"));
    s->waiting.n_disturbed = (int)json_integer_value(json_object_get(fact, "n_disturbed"));
    json_decref(fact);
    return HWNAS_OK;
}

/* One that was running when its process ended. */
static hwnas_status take_up(hwnas_session *s, const hwnas_trial *trial, const hwnas_arch *walked)
{
    if (s->is_shared) {
        hwnas_session_add_open(s, trial->number, trial->rung, walked);
        return HWNAS_OK;
    }
    if (s->is_told)
        return hwnas_session_ask_again(s, trial->number, walked);
    if (hwnas_session_should_stop(s) || hwnas_session_is_open(s, trial->number))
        return HWNAS_OK;
    return hwnas_session_most_open(s) > 1
               ? hwnas_session_open_trial(s, trial->number, walked, trial->rung, false)
               : hwnas_session_try(s, trial->number, walked, trial->rung, false);
}

/* One that was begun beside others. Where it is still running it is opened here, where what is
 * known is what was known when it was. */
static hwnas_status replay_asked(hwnas_session *s, const hwnas_trial *trial,
                                 const hwnas_arch *walked, bool is_running)
{
    hwnas_session_note(s, trial->number, walked);
    return is_running && !s->is_told && !s->is_shared && hwnas_session_most_open(s) > 1
               ? take_up(s, trial, walked)
               : HWNAS_OK;
}

typedef struct replay {
    hwnas_session *s;
    size_t *ids; /* where in `done` the trials are, by number */
    size_t n_running;
    const hwnas_trial *running; /* not finished yet, by number */
} replay;

static bool is_running(const replay *r, uint64_t number)
{
    for (size_t i = 0; i < r->n_running; i++)
        if (r->running[i].number == number)
            return true;
    return false;
}

static hwnas_status replay_event(void *context, const hwnas_event *event)
{
    const replay *r = context;
    hwnas_session *s = r->s;
    hwnas_status status = HWNAS_OK;
    const hwnas_trial *trial = &event->trial;
    size_t *id = &r->ids[trial->number];
    hwnas_arch *walked = NULL;
    if (event->kind == HWNAS_EVENT_PUT_OFF) {
        /* The machine may be quiet again. */
        (void)hwnas_waiting_put_off(&s->waiting, *id, -INFINITY);
        return HWNAS_OK;
    }
    TRY_OUT(hwnas_arch_parse(&walked, s->setup.walked, trial->code));
    if (event->kind == HWNAS_EVENT_ASKED) {
        status = replay_asked(s, trial, walked, is_running(r, trial->number));
    } else if (event->kind == HWNAS_EVENT_FINISHED) {
        *id = s->n_done;
        status = hwnas_session_absorb(s, trial, walked);
    } else {
        hwnas_waiting_tell(&s->waiting, *id, trial);
        status = hwnas_session_renew(s, *id, trial, walked);
    }
out:
    hwnas_arch_free(walked);
    return status;
}

static hwnas_status run_again(hwnas_session *s, const hwnas_trial *trial)
{
    hwnas_arch *walked;
    TRY(hwnas_arch_parse(&walked, s->setup.walked, trial->code));
    const hwnas_status status = take_up(s, trial, walked);
    hwnas_arch_free(walked);
    return status;
}

hwnas_status hwnas_session_replay(hwnas_session *s)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *running = NULL;
    size_t n_running = 0;
    uint64_t n, n_finished;
    int64_t position = 0;
    size_t *ids = NULL;
    TRY_OUT(hwnas_store_pack(s->store));
    TRY_OUT(hwnas_store_extent(&n, &n_finished, s->store));
    TRY_OUT(hwnas_store_running(&running, &n_running, s->store));
    ids = hwnas_alloc((n + 1) * sizeof *ids);
    replay r = {.s = s, .ids = ids, .n_running = n_running, .running = running};
    TRY_OUT(hwnas_store_walk(&position, s->store, replay_event, &r));
    s->session_first = s->n_done;
    s->next = s->n_done + n_running;
    TRY_OUT(read_state(s));
    for (size_t i = 0; i < n_running && status == HWNAS_OK; i++)
        status = run_again(s, &running[i]);
out:
    free(ids);
    hwnas_trials_free(running, n_running);
    return status;
}
