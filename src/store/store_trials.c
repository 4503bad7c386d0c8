/* store_trials.c: facts and trials in a study's tables. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/names.h"
#include "store/store_driver.h"

/* Columns of HWNAS_SQL_LIST. */
enum {
    NUMBER,
    CODE,
    DIGEST,
    RUNG,
    FINISH_ORDER,
    STATUS,
    MESSAGE,
    DETAIL,
    SECONDS,
    VIOLATION,
    UNSTABLE,
    STOPPED_EARLY,
    METRIC,
    VALUE,
    LOW,
    HIGH,
    UNIT,
    SOURCE,
    /* of HWNAS_SQL_HISTORY alone */
    KIND,
    POSITION
};

static const char *const event_kinds[HWNAS_N_EVENT_KINDS] = {
    [HWNAS_EVENT_FINISHED] = "finished", [HWNAS_EVENT_REVISED] = "revised",
    [HWNAS_EVENT_PUT_OFF] = "put off",   [HWNAS_EVENT_ASKED] = "asked",
    [HWNAS_EVENT_RUNNING] = "running", /* never stored */
};

static char *column_text(hwnas_statement *stmt, int column)
{
    const char *text = hwnas_row_text(stmt, column);
    return text ? hwnas_strdup(text) : NULL;
}

static void column_copy(char *out, size_t size, hwnas_statement *stmt, int column)
{
    const char *text = hwnas_row_text(stmt, column);
    snprintf(out, size, "%s", text ? text : "");
}

/* An end of an interval, which is known or not. */
static double column_end(hwnas_statement *stmt, int column)
{
    const double end = hwnas_row_double(stmt, column);
    return isfinite(end) ? end : NAN;
}

/* Facts */

hwnas_status hwnas_store_set(hwnas_store *store, const char *key, const char *value)
{
    return hwnas_store_run(store, hwnas_store_bind(store, HWNAS_SQL_SET_FACT, "tt", key, value));
}

hwnas_status hwnas_store_get(char **out, hwnas_store *store, const char *key)
{
    hwnas_status status = HWNAS_OK;
    hwnas_statement *stmt = hwnas_store_bind(store, HWNAS_SQL_GET_FACT, "t", key);
    const hwnas_step step = hwnas_statement_step(stmt);
    const char *text = step == HWNAS_STEP_ROW ? hwnas_row_text(stmt, 0) : NULL;
    if (step == HWNAS_STEP_ROW && !hwnas_is_text(text))
        status = hwnas_store_damaged(store, "a fact is not text");
    else if (step == HWNAS_STEP_ROW)
        *out = hwnas_strdup(text);
    else if (step == HWNAS_STEP_DONE)
        *out = NULL;
    else
        status = hwnas_store_fail(store);
    hwnas_statement_reset(stmt);
    return status;
}

/* Trials */

hwnas_status hwnas_store_start(hwnas_store *store, uint64_t number, const char *code,
                               const char *digest, int rung)
{
    hwnas_place place = {.file = store->path};
    assert(number <= INT64_MAX);
    int64_t begun = -1;
    TRY(hwnas_store_query_int(&begun, store,
                              hwnas_store_bind(store, HWNAS_SQL_START, "itti", (int64_t)number,
                                               code, digest, (int64_t)rung),
                              -1));
    if (begun < 0)
        return hwnas_fail(HWNAS_E_INPUT, &place,
                          "trial %llu is finished already, or was asked with another architecture",
                          (unsigned long long)number);
    return HWNAS_OK;
}

static hwnas_status fail_finish(hwnas_store *store, uint64_t number)
{
    hwnas_place place = {.file = store->path};
    int64_t order = -1;
    TRY(hwnas_store_query_int(&order, store,
                              hwnas_store_bind(store, HWNAS_SQL_FIND, "i", (int64_t)number), -1));
    return hwnas_fail(HWNAS_E_INPUT, &place, "trial %llu %s", (unsigned long long)number,
                      order < 0 ? "was never asked" : "is finished already");
}

static hwnas_status fail_unfinished(const hwnas_store *store, uint64_t number)
{
    hwnas_place place = {.file = store->path};
    return hwnas_fail(HWNAS_E_INPUT, &place, "trial %llu is not finished",
                      (unsigned long long)number);
}

static hwnas_status add_event(hwnas_store *store, int64_t number, hwnas_event_kind kind)
{
    return hwnas_store_run(
        store, hwnas_store_bind(store, HWNAS_SQL_ADD_EVENT, "it", number, event_kinds[kind]));
}

/* `statement`: HWNAS_SQL_FINISH or HWNAS_SQL_REVISE. */
static hwnas_status write(int64_t *order, hwnas_store *store, const hwnas_trial *trial,
                          int statement)
{
    int64_t number = (int64_t)trial->number;
    TRY(hwnas_store_query_int(
        order, store,
        hwnas_store_bind(store, statement, "tttddiii", hwnas_status_name(trial->status),
                         trial->message, trial->detail, trial->seconds, trial->violation,
                         (int64_t)trial->is_unstable, (int64_t)trial->is_stopped_early, number),
        -1));
    if (*order < 0)
        return statement == HWNAS_SQL_REVISE ? fail_unfinished(store, trial->number)
                                             : fail_finish(store, trial->number);
    for (size_t i = 0; i < trial->n_values; i++) {
        const hwnas_value_row *v = &trial->values[i];
        TRY(hwnas_store_run(store,
                            hwnas_store_bind(store, HWNAS_SQL_ADD_VALUE, "iitdddtt", number,
                                             (int64_t)i, v->metric, v->value, v->low, v->high,
                                             v->unit, hwnas_sources[v->source].name)));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_store_finish(hwnas_store *store, hwnas_trial *trial)
{
    int64_t order = -1;
    TRY(hwnas_store_begin(store));
    hwnas_status status = write(&order, store, trial, HWNAS_SQL_FINISH);
    if (status == HWNAS_OK)
        status = add_event(store, (int64_t)trial->number, HWNAS_EVENT_FINISHED);
    TRY(hwnas_store_end(store, status));
    trial->is_finished = true;
    trial->order = order;
    return HWNAS_OK;
}

static hwnas_status revise(hwnas_store *store, const hwnas_trial *trial)
{
    static const int before[] = {HWNAS_SQL_KEEP, HWNAS_SQL_KEEP_VALUES, HWNAS_SQL_REMOVE_VALUES};
    const int64_t number = (int64_t)trial->number;
    int64_t order = -1;
    TRY(hwnas_store_query_int(&order, store, hwnas_store_bind(store, HWNAS_SQL_FIND, "i", number),
                              -1));
    if (order < 0)
        return fail_unfinished(store, trial->number);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        TRY(hwnas_store_run(store, hwnas_store_bind(store, before[i], "i", number)));
    TRY(write(&order, store, trial, HWNAS_SQL_REVISE));
    return add_event(store, number, HWNAS_EVENT_REVISED);
}

hwnas_status hwnas_store_revise(hwnas_store *store, const hwnas_trial *trial)
{
    TRY(hwnas_store_begin(store));
    return hwnas_store_end(store, revise(store, trial));
}

hwnas_status hwnas_store_note(hwnas_store *store, uint64_t number, hwnas_event_kind kind)
{
    TRY(hwnas_store_begin(store));
    return hwnas_store_end(store, add_event(store, (int64_t)number, kind));
}

static hwnas_status read_trial(hwnas_trial *out, const hwnas_store *store, hwnas_statement *row)
{
    *out = (hwnas_trial){
        .number = (uint64_t)hwnas_row_int(row, NUMBER),
        .code = column_text(row, CODE),
        .rung = (int)hwnas_row_int(row, RUNG),
        .is_finished = !hwnas_row_is_null(row, FINISH_ORDER),
        .order = -1,
        .message = column_text(row, MESSAGE),
        .detail = column_text(row, DETAIL),
        .seconds = hwnas_row_double(row, SECONDS),
        .violation = hwnas_row_double(row, VIOLATION),
        .is_unstable = (int)hwnas_row_int(row, UNSTABLE),
        .is_stopped_early = (int)hwnas_row_int(row, STOPPED_EARLY),
    };
    column_copy(out->digest, sizeof out->digest, row, DIGEST);
    if (!hwnas_is_text(out->code) || !hwnas_is_text(out->digest) ||
        (out->message && !hwnas_is_text(out->message)))
        return hwnas_store_damaged(store, "a trial has no code, or other words that are no text");
    if (!out->is_finished)
        return HWNAS_OK;
    char name[32];
    column_copy(name, sizeof name, row, STATUS);
    out->order = hwnas_row_int(row, FINISH_ORDER);
    out->status = hwnas_status_from_name(name);
    return out->status < HWNAS_N_STATUS ? HWNAS_OK
                                        : hwnas_store_damaged(store, "a status is unknown");
}

static hwnas_status read_value(hwnas_trial *trial, const hwnas_store *store, hwnas_names *names,
                               hwnas_statement *row)
{
    hwnas_value_row v = {.metric = hwnas_names_read(names, row, METRIC),
                         .value = hwnas_row_double(row, VALUE),
                         .low = column_end(row, LOW),
                         .high = column_end(row, HIGH),
                         .unit = hwnas_names_read(names, row, UNIT)};
    const char *source = hwnas_row_text(row, SOURCE);
    v.source = hwnas_source_from_name(source ? source : "");
    if (v.source == HWNAS_N_SOURCES)
        return hwnas_store_damaged(store, "the source of a value is unknown");
    if (!isfinite(v.value) || !v.metric || !v.unit)
        return hwnas_store_damaged(store, "a value is not a number, or its words are no text");
    hwnas_trial_add(trial, &v);
    return HWNAS_OK;
}

/* What a statement with the columns of HWNAS_SQL_LIST gives; resets it. */
static hwnas_status read_trials(hwnas_trial **out, size_t *n, hwnas_store *store,
                                hwnas_statement *row)
{
    hwnas_status status = HWNAS_OK;
    hwnas_trial *trials = NULL;
    hwnas_names names = {0};
    size_t count = 0, capacity = 0;
    hwnas_step step;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        uint64_t number = (uint64_t)hwnas_row_int(row, NUMBER);
        if (!count || trials[count - 1].number != number) {
            HWNAS_GROW(trials, count, capacity);
            TRY_OUT(read_trial(&trials[count++], store, row));
        }
        if (!hwnas_row_is_null(row, METRIC))
            TRY_OUT(read_value(&trials[count - 1], store, &names, row));
    }
    if (step != HWNAS_STEP_DONE) {
        status = hwnas_store_fail(store);
        goto out;
    }
    *out = trials;
    *n = count;
    trials = NULL;
    count = 0;
out:
    hwnas_statement_reset(row);
    hwnas_trials_free(trials, count);
    return status;
}

hwnas_status hwnas_store_trials(hwnas_trial **out, size_t *n, hwnas_store *store)
{
    return read_trials(out, n, store, store->statements[HWNAS_SQL_LIST]);
}

hwnas_status hwnas_store_trial(hwnas_trial *out, hwnas_store *store, uint64_t number)
{
    hwnas_trial *trials = NULL;
    size_t n = 0;
    TRY(read_trials(&trials, &n, store,
                    hwnas_store_bind(store, HWNAS_SQL_ONE, "i", (int64_t)number)));
    if (n != 1) {
        hwnas_trials_free(trials, n);
        return hwnas_store_damaged(store, "a trial is missing");
    }
    *out = *trials;
    free(trials);
    return HWNAS_OK;
}

/* History */

static hwnas_status read_kind(hwnas_event_kind *out, const hwnas_store *store, hwnas_statement *row)
{
    char name[16];
    column_copy(name, sizeof name, row, KIND);
    for (int k = 0; k < HWNAS_EVENT_RUNNING; k++)
        if (!strcmp(name, event_kinds[k])) {
            *out = (hwnas_event_kind)k;
            return HWNAS_OK;
        }
    return hwnas_store_damaged(store, "an event is unknown");
}

/* A history while it is read. */
typedef struct history {
    size_t n, room;
    hwnas_event *events;
    size_t n_trials;
    hwnas_trial *trials; /* as they are now; those that an event has taken have no code */
    bool *is_finished;   /* by trial: there was such an event */
    bool *is_asked;
    hwnas_names names;
} history;

/* Before anything else happened to the trial. */
static hwnas_status read_asked(hwnas_event *out, const hwnas_store *store, uint64_t number,
                               history *h)
{
    const hwnas_trial *trial = &h->trials[number];
    if (h->is_finished[number] || h->is_asked[number] || !trial->code)
        return hwnas_store_damaged(store, "its history is out of order");
    h->is_asked[number] = true;
    out->trial = (hwnas_trial){.number = number, .rung = trial->rung};
    out->trial.code = hwnas_strdup(trial->code);
    memcpy(out->trial.digest, trial->digest, sizeof trial->digest);
    return HWNAS_OK;
}

/* A trial that no later event wrote anew is as it is now. */
static hwnas_status read_event(hwnas_event *out, const hwnas_store *store, hwnas_statement *row,
                               history *h)
{
    const uint64_t number = (uint64_t)hwnas_row_int(row, NUMBER);
    TRY(read_kind(&out->kind, store, row));
    if (number < h->n_trials && out->kind == HWNAS_EVENT_ASKED)
        return read_asked(out, store, number, h);
    if (number >= h->n_trials || h->is_finished[number] != (out->kind != HWNAS_EVENT_FINISHED))
        return hwnas_store_damaged(store, "its history is out of order");
    h->is_finished[number] = true;
    if (out->kind == HWNAS_EVENT_PUT_OFF) {
        out->trial.number = number;
        return HWNAS_OK;
    }
    if (!hwnas_row_is_null(row, STATUS))
        return read_trial(&out->trial, store, row);
    if (!h->trials[number].code || !h->trials[number].is_finished)
        return hwnas_store_damaged(store, "its history does not fit its trials");
    out->trial = h->trials[number];
    h->trials[number] = (hwnas_trial){.number = number};
    return HWNAS_OK;
}

static hwnas_status read_events(history *h, hwnas_store *store)
{
    hwnas_statement *row = store->statements[HWNAS_SQL_HISTORY];
    int64_t last = -1;
    hwnas_step step;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        if (hwnas_row_int(row, POSITION) != last) {
            HWNAS_GROW(h->events, h->n, h->room);
            h->events[h->n] = (hwnas_event){0};
            TRY(read_event(&h->events[h->n++], store, row, h));
        }
        last = hwnas_row_int(row, POSITION);
        if (!hwnas_row_is_null(row, METRIC))
            TRY(read_value(&h->events[h->n - 1].trial, store, &h->names, row));
    }
    return step == HWNAS_STEP_DONE ? HWNAS_OK : hwnas_store_fail(store);
}

static hwnas_status add_running(history *h, const hwnas_store *store)
{
    for (size_t i = 0; i < h->n_trials; i++) {
        if (!h->trials[i].code)
            continue;
        if (h->trials[i].is_finished)
            return hwnas_store_damaged(store, "its history lacks a trial");
        HWNAS_GROW(h->events, h->n, h->room);
        h->events[h->n++] = (hwnas_event){.kind = HWNAS_EVENT_RUNNING, .trial = h->trials[i]};
        h->trials[i] = (hwnas_trial){0};
    }
    return HWNAS_OK;
}

hwnas_status hwnas_store_history(hwnas_event **out, size_t *n, hwnas_store *store)
{
    hwnas_status status = HWNAS_OK;
    history h = {0};
    TRY_OUT(hwnas_store_trials(&h.trials, &h.n_trials, store));
    h.is_finished = hwnas_alloc((h.n_trials + 1) * sizeof *h.is_finished);
    h.is_asked = hwnas_alloc((h.n_trials + 1) * sizeof *h.is_asked);
    for (size_t i = 0; i < h.n_trials; i++)
        if (h.trials[i].number != i) {
            status = hwnas_store_damaged(store, "a trial is missing");
            goto out;
        }
    TRY_OUT(read_events(&h, store));
    TRY_OUT(add_running(&h, store));
    *out = h.events;
    *n = h.n;
    h.events = NULL;
    h.n = 0;
out:
    hwnas_statement_reset(store->statements[HWNAS_SQL_HISTORY]);
    hwnas_events_free(h.events, h.n);
    hwnas_trials_free(h.trials, h.n_trials);
    free(h.is_finished);
    free(h.is_asked);
    return status;
}

/* Of one that was asked, what was known then: it may be finished by now. */
static hwnas_status read_shared(hwnas_event *out, const hwnas_store *store, hwnas_statement *row)
{
    TRY(read_kind(&out->kind, store, row));
    TRY(read_trial(&out->trial, store, row));
    if (out->kind == HWNAS_EVENT_FINISHED)
        return HWNAS_OK;
    if (out->kind != HWNAS_EVENT_ASKED)
        return hwnas_store_damaged(store, "while it was shared, a trial was written anew");
    hwnas_trial asked = {.number = out->trial.number, .rung = out->trial.rung, .order = -1};
    asked.code = hwnas_strdup(out->trial.code);
    memcpy(asked.digest, out->trial.digest, sizeof asked.digest);
    hwnas_trial_done(&out->trial);
    out->trial = asked;
    return HWNAS_OK;
}

hwnas_status hwnas_store_events_after(hwnas_event **out, size_t *n, int64_t *position,
                                      hwnas_store *store)
{
    hwnas_statement *row = hwnas_store_bind(store, HWNAS_SQL_EVENTS, "i", *position);
    hwnas_status status = HWNAS_OK;
    hwnas_event *events = NULL;
    hwnas_names names = {0};
    size_t count = 0, room = 0;
    int64_t last = *position;
    hwnas_step step;
    while ((step = hwnas_statement_step(row)) == HWNAS_STEP_ROW) {
        if (hwnas_row_int(row, POSITION) != last) {
            HWNAS_GROW(events, count, room);
            events[count] = (hwnas_event){0};
            TRY_OUT(read_shared(&events[count++], store, row));
        }
        last = hwnas_row_int(row, POSITION);
        if (!hwnas_row_is_null(row, METRIC))
            TRY_OUT(read_value(&events[count - 1].trial, store, &names, row));
    }
    if (step != HWNAS_STEP_DONE) {
        status = hwnas_store_fail(store);
        goto out;
    }
    *out = events;
    *n = count;
    *position = last;
    events = NULL;
    count = 0;
out:
    hwnas_statement_reset(row);
    hwnas_events_free(events, count);
    return status;
}
