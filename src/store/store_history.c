/* store_history.c: what happened in a study, in its order: written, packed, and gone through. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json_number.h"
#include "base/mem.h"
#include "store/packed.h"
#include "store/trial_rows.h"

static const char *const event_kinds[HWNAS_N_EVENT_KINDS] = {
    [HWNAS_EVENT_FINISHED] = "finished",
    [HWNAS_EVENT_REVISED] = "revised",
    [HWNAS_EVENT_PUT_OFF] = "put off",
    [HWNAS_EVENT_ASKED] = "asked",
};

/* ---- Events as rows ---- */

static hwnas_status read_kind(hwnas_event_kind *out, const hwnas_store *store, hwnas_statement *row)
{
    const char *name = hwnas_row_text(row, KIND);
    for (int k = 0; k < HWNAS_N_EVENT_KINDS; k++)
        if (name && !strcmp(name, event_kinds[k])) {
            *out = (hwnas_event_kind)k;
            return HWNAS_OK;
        }
    return hwnas_store_damaged(store, "an event is unknown");
}

void hwnas_event_read_detail(hwnas_event *event, const char *text)
{
    json_t *detail = text ? json_loads(text, 0, NULL) : NULL;
    event->run_seconds = json_number_value(json_object_get(detail, "run_seconds"));
    event->estimate = hwnas_json_number(detail, "estimate");
    json_decref(detail);
}

/* Of one that was asked, what was known then: it may be finished by now. */
static void forget_outcome(hwnas_trial *trial)
{
    hwnas_trial asked = {.number = trial->number, .rung = trial->rung, .order = -1};
    asked.code = trial->code;
    memcpy(asked.digest, trial->digest, sizeof asked.digest);
    trial->code = NULL;
    hwnas_trial_done(trial);
    *trial = asked;
}

static hwnas_status read_event(hwnas_event *out, const hwnas_store *store, hwnas_statement *row)
{
    TRY(read_kind(&out->kind, store, row));
    out->estimate = NAN;
    if (out->kind == HWNAS_EVENT_PUT_OFF) {
        out->trial = (hwnas_trial){.number = (uint64_t)hwnas_row_int(row, NUMBER), .order = -1};
        return HWNAS_OK;
    }
    TRY(hwnas_store_read_trial(&out->trial, store, row));
    if (out->kind == HWNAS_EVENT_ASKED)
        forget_outcome(&out->trial);
    else if (!out->trial.is_finished)
        return hwnas_store_damaged(store, "its history does not fit its trials");
    else
        hwnas_event_read_detail(out, out->trial.detail);
    out->is_now = hwnas_row_int(row, IS_NOW);
    return HWNAS_OK;
}

static void free_events(hwnas_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hwnas_trial_done(&events[i].trial);
    free(events);
}

typedef struct event_list {
    const hwnas_store *store;
    hwnas_event *events;
    size_t n, room;
    int64_t last; /* position of the last one */
    hwnas_names names;
} event_list;

/* A row for each value, or one without. */
static hwnas_status add_event_row(void *context, hwnas_statement *row)
{
    event_list *l = context;
    const int64_t position = hwnas_row_int(row, POSITION);
    if (position != l->last) {
        HWNAS_GROW(l->events, l->n, l->room);
        l->events[l->n] = (hwnas_event){0};
        TRY(read_event(&l->events[l->n++], l->store, row));
    }
    l->last = position;
    return hwnas_row_is_null(row, METRIC)
               ? HWNAS_OK
               : hwnas_store_read_value(&l->events[l->n - 1].trial, l->store, &l->names, row);
}

/* Those behind `from`, up to `to`; *last is the position of the last one. */
static hwnas_status read_events(hwnas_event **out, size_t *n, int64_t *last, hwnas_store *store,
                                int64_t from, int64_t to)
{
    event_list l = {.store = store, .last = from};
    const hwnas_status status = hwnas_store_each_row(
        store, hwnas_store_bind(store, HWNAS_SQL_EVENTS, "ii", from, to), add_event_row, &l);
    *last = l.last;
    if (status != HWNAS_OK) {
        free_events(l.events, l.n);
        return status;
    }
    *out = l.events;
    *n = l.n;
    return HWNAS_OK;
}

/* ---- Writing ---- */

/* Packs the events up to `end`, from the last multiple of HWNAS_PACKED on; *n: how many there are.
 * What cannot be read as rows stays as it is: who reads it says so. */
static hwnas_status pack(size_t *n_events, hwnas_store *store, int64_t end)
{
    hwnas_event *events;
    hwnas_str bytes = {0};
    size_t n;
    int64_t last;
    *n_events = 0;
    if (!store->statements[HWNAS_SQL_PACK])
        return HWNAS_OK;
    hwnas_status status = read_events(&events, &n, &last, store, end - HWNAS_PACKED, end);
    if (status == HWNAS_E_INPUT) {
        hwnas_error_clear();
        return HWNAS_OK;
    }
    TRY(status);
    *n_events = n;
    if (n == HWNAS_PACKED && hwnas_pack(&bytes, events, n))
        status = hwnas_store_run(
            store, hwnas_store_bind(store, HWNAS_SQL_PACK, "ib", end, bytes.s, bytes.n));
    hwnas_str_done(&bytes);
    free_events(events, n);
    return status;
}

hwnas_status hwnas_store_add_event(hwnas_store *store, uint64_t number, hwnas_event_kind kind)
{
    int64_t position = 0;
    size_t n;
    TRY(hwnas_store_query_int(
        &position, store,
        hwnas_store_bind(store, HWNAS_SQL_ADD_EVENT, "it", (int64_t)number, event_kinds[kind]), 0));
    return position % HWNAS_PACKED ? HWNAS_OK : pack(&n, store, position);
}

static hwnas_status pack_missing(hwnas_store *store)
{
    int64_t last, n_packs = 0;
    size_t n = 1; /* where a whole pack is missing the rest is no more than its rows */
    TRY(hwnas_store_position(&last, store));
    if (!store->statements[HWNAS_SQL_HAS_PACKED])
        return HWNAS_OK;
    TRY(hwnas_store_query_int(&n_packs, store, store->statements[HWNAS_SQL_COUNT_PACKED], 0));
    if (n_packs == last / HWNAS_PACKED)
        return HWNAS_OK;
    for (int64_t end = HWNAS_PACKED; end <= last && n; end += HWNAS_PACKED) {
        int64_t found;
        TRY(hwnas_store_query_int(&found, store,
                                  hwnas_store_bind(store, HWNAS_SQL_HAS_PACKED, "i", end), 0));
        if (!found)
            TRY(pack(&n, store, end));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_store_pack(hwnas_store *store)
{
    TRY(hwnas_store_begin(store));
    return hwnas_store_end(store, pack_missing(store));
}

/* ---- Going through it ---- */

typedef struct walk {
    hwnas_store *store;
    hwnas_event_taker *take;
    void *context;
    uint64_t n_trials, n_finished; /* that there are when it begins */
    uint64_t n_seen;               /* of those finished */
    unsigned char *seen;           /* by trial; NULL: it does not begin at the beginning */
} walk;

enum { WAS_ASKED = 1, WAS_FINISHED = 2, IS_AS_NOW = 4 };

/* What a history says must fit the trials. */
static bool is_in_order(walk *w, const hwnas_event *event)
{
    const uint64_t number = event->trial.number;
    if (!w->seen)
        return true;
    if (number >= w->n_trials)
        return false;
    unsigned char *seen = &w->seen[number];
    const bool was_asked = *seen, was_finished = *seen & WAS_FINISHED;
    const bool was_as_now = *seen & IS_AS_NOW;
    if (event->kind == HWNAS_EVENT_ASKED) {
        *seen |= WAS_ASKED;
        return !was_asked;
    }
    *seen |= WAS_FINISHED;
    w->n_seen += !was_finished;
    if (event->kind == HWNAS_EVENT_PUT_OFF)
        return was_finished;
    *seen |= event->is_now ? IS_AS_NOW : 0;
    return !was_as_now && was_finished == (event->kind != HWNAS_EVENT_FINISHED);
}

static hwnas_status give(walk *w, const hwnas_event *event)
{
    return is_in_order(w, event) ? w->take(w->context, event)
                                 : hwnas_store_damaged(w->store, "its history is out of order");
}

static hwnas_status give_all(walk *w, hwnas_unpacker *unpacker)
{
    hwnas_event event;
    bool is_there = true;
    while (is_there) {
        if (!hwnas_unpack(&event, &is_there, unpacker))
            return hwnas_store_damaged(w->store, "packed events cannot be read");
        if (is_there)
            TRY(give(w, &event));
    }
    return HWNAS_OK;
}

/* The events up to `end`, if they are packed and as they were written. They are copied, as who
 * takes them may ask the database something else; meanwhile it looks for those up to `next`, if
 * that is not 0. */
static hwnas_status walk_packed(bool *is_there, walk *w, int64_t end, int64_t next)
{
    hwnas_statement *row = hwnas_store_bind(w->store, HWNAS_SQL_PACKED, "i", end);
    const hwnas_step step = hwnas_statement_step(row);
    void *bytes = NULL;
    size_t n = 0;
    *is_there = step == HWNAS_STEP_ROW;
    if (*is_there) {
        const void *borrowed = hwnas_row_bytes(row, 0, &n);
        bytes = hwnas_alloc(n + 1);
        if (n)
            memcpy(bytes, borrowed, n);
    }
    hwnas_statement_reset(row);
    if (step == HWNAS_STEP_FAILED)
        return hwnas_store_fail(w->store);
    if (!*is_there)
        return HWNAS_OK;
    if (next)
        hwnas_statement_ask_ahead(hwnas_store_bind(w->store, HWNAS_SQL_PACKED, "i", next));
    hwnas_unpacker *unpacker = hwnas_unpacker_new(bytes, n);
    *is_there = unpacker != NULL;
    const hwnas_status status = unpacker ? give_all(w, unpacker) : HWNAS_OK;
    hwnas_unpacker_free(unpacker);
    free(bytes);
    return status;
}

static hwnas_status walk_rows(walk *w, int64_t *last, int64_t from, int64_t to)
{
    hwnas_event *events;
    size_t n;
    hwnas_status status = HWNAS_OK;
    TRY(read_events(&events, &n, last, w->store, from, to));
    for (size_t i = 0; i < n && status == HWNAS_OK; i++)
        status = give(w, &events[i]);
    free_events(events, n);
    return status;
}

/* Pack by pack; where a whole one is missing, as in a file that somebody wrote, all the rest at
 * once. */
static hwnas_status walk_to(walk *w, int64_t *position, int64_t end)
{
    const bool is_packed = w->store->statements[HWNAS_SQL_PACKED];
    while (*position < end) {
        const int64_t at = *position, whole = at - at % HWNAS_PACKED + HWNAS_PACKED;
        const int64_t after = whole + HWNAS_PACKED;
        const int64_t next = whole < end ? whole : end;
        bool is_there = false;
        if (is_packed && at % HWNAS_PACKED == 0 && whole <= end)
            TRY(walk_packed(&is_there, w, whole, after <= end ? after : 0));
        if (is_there)
            *position = next;
        else
            TRY(walk_rows(w, position, at, next));
        if (*position == at)
            return walk_rows(w, position, next, end);
        if (*position < next)
            *position = next; /* the last ones were never written */
    }
    return HWNAS_OK;
}

hwnas_status hwnas_store_extent(uint64_t *n, uint64_t *n_finished, hwnas_store *store)
{
    static const int statements[] = {HWNAS_SQL_END, HWNAS_SQL_END_FINISHED, HWNAS_SQL_COUNT_RUNNING,
                                     HWNAS_SQL_COUNT};
    int64_t found[4];
    /* To count all takes long, and none is ever removed: once is enough. */
    const int n_asked = store->is_counted ? 3 : 4;
    for (int i = 0; i < n_asked; i++)
        TRY(hwnas_store_query_int(&found[i], store, store->statements[statements[i]], 0));
    if (found[0] < 0 || found[1] < 0 || found[0] - found[1] != found[2] ||
        (!store->is_counted && found[0] != found[3]))
        return hwnas_store_damaged(store, "a trial is missing");
    store->is_counted = true;
    *n = (uint64_t)found[0];
    *n_finished = (uint64_t)found[1];
    return HWNAS_OK;
}

/* What there is to go through, as it was at one moment: others may add to it meanwhile. */
static hwnas_status begin_walk(walk *w, int64_t *end, bool is_whole)
{
    TRY(hwnas_store_position(end, w->store));
    if (!is_whole)
        return HWNAS_OK;
    TRY(hwnas_store_extent(&w->n_trials, &w->n_finished, w->store));
    w->seen = hwnas_alloc(w->n_trials + 1);
    return HWNAS_OK;
}

hwnas_status hwnas_store_walk(int64_t *position, hwnas_store *store, hwnas_event_taker *take,
                              void *context)
{
    walk w = {.store = store, .take = take, .context = context};
    hwnas_status status = HWNAS_OK;
    int64_t end;
    const bool is_whole = *position == 0;
    TRY_OUT(hwnas_store_begin_reading(store));
    TRY_OUT(hwnas_store_end(store, begin_walk(&w, &end, is_whole)));
    status = walk_to(&w, position, end);
    if (store->statements[HWNAS_SQL_PACKED])
        hwnas_statement_reset(store->statements[HWNAS_SQL_PACKED]); /* it was asked ahead */
    TRY_OUT(status);
    if (is_whole && w.n_seen != w.n_finished)
        status = hwnas_store_damaged(store, "its history lacks a trial");
out:
    free(w.seen);
    return status;
}
