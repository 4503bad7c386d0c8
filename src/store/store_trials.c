/* store_trials.c: facts and trials in a study's tables. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/trial_rows.h"

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
        status = hwnas_store_add_event(store, trial->number, HWNAS_EVENT_FINISHED);
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
    return hwnas_store_add_event(store, trial->number, HWNAS_EVENT_REVISED);
}

hwnas_status hwnas_store_revise(hwnas_store *store, const hwnas_trial *trial)
{
    TRY(hwnas_store_begin(store));
    return hwnas_store_end(store, revise(store, trial));
}

hwnas_status hwnas_store_note(hwnas_store *store, uint64_t number, hwnas_event_kind kind)
{
    TRY(hwnas_store_begin(store));
    return hwnas_store_end(store, hwnas_store_add_event(store, number, kind));
}

hwnas_status hwnas_store_read_trial(hwnas_trial *out, const hwnas_store *store,
                                    hwnas_statement *row)
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

hwnas_status hwnas_store_read_value(hwnas_trial *trial, const hwnas_store *store,
                                    hwnas_names *names, hwnas_statement *row)
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

typedef struct trial_list {
    const hwnas_store *store;
    hwnas_trial *trials;
    size_t n, room;
    hwnas_names names;
} trial_list;

/* A row for each value, or one without. */
static hwnas_status add_trial_row(void *context, hwnas_statement *row)
{
    trial_list *l = context;
    if (!l->n || l->trials[l->n - 1].number != (uint64_t)hwnas_row_int(row, NUMBER)) {
        HWNAS_GROW(l->trials, l->n, l->room);
        TRY(hwnas_store_read_trial(&l->trials[l->n++], l->store, row));
    }
    return hwnas_row_is_null(row, METRIC)
               ? HWNAS_OK
               : hwnas_store_read_value(&l->trials[l->n - 1], l->store, &l->names, row);
}

static hwnas_status read_trials(hwnas_trial **out, size_t *n, hwnas_store *store,
                                hwnas_statement *statement, hwnas_row_taker *add_row)
{
    trial_list l = {.store = store};
    const hwnas_status status = hwnas_store_each_row(store, statement, add_row, &l);
    if (status != HWNAS_OK) {
        hwnas_trials_free(l.trials, l.n);
        return status;
    }
    *out = l.trials;
    *n = l.n;
    return HWNAS_OK;
}

hwnas_status hwnas_store_trials(hwnas_trial **out, size_t *n, hwnas_store *store)
{
    return read_trials(out, n, store, store->statements[HWNAS_SQL_LIST], add_trial_row);
}

hwnas_status hwnas_store_trial(hwnas_trial *out, hwnas_store *store, uint64_t number)
{
    hwnas_trial *trials = NULL;
    size_t n = 0;
    TRY(read_trials(&trials, &n, store,
                    hwnas_store_bind(store, HWNAS_SQL_ONE, "i", (int64_t)number), add_trial_row));
    if (n != 1) {
        hwnas_trials_free(trials, n);
        return hwnas_store_damaged(store, "a trial is missing");
    }
    *out = *trials;
    free(trials);
    return HWNAS_OK;
}

hwnas_status hwnas_store_few(hwnas_trial **out, size_t *n_out, hwnas_store *store,
                             const uint64_t *numbers, size_t n)
{
    int64_t all[HWNAS_FEW];
    assert(n > 0 && n <= HWNAS_FEW);
    for (size_t i = 0; i < HWNAS_FEW; i++)
        all[i] = (int64_t)numbers[i < n ? i : n - 1];
    return read_trials(out, n_out, store,
                       hwnas_store_bind(store, HWNAS_SQL_FEW, "iiiiiiii", all[0], all[1], all[2],
                                        all[3], all[4], all[5], all[6], all[7]),
                       add_trial_row);
}

hwnas_status hwnas_store_has_code(bool *out, hwnas_store *store, const char *code, uint64_t below)
{
    int64_t n;
    TRY(hwnas_store_query_int(
        &n, store, hwnas_store_bind(store, HWNAS_SQL_HAS_CODE, "it", (int64_t)below, code), 0));
    *out = n > 0;
    return HWNAS_OK;
}

static hwnas_status add_running(void *context, hwnas_statement *row)
{
    enum { NUMBER_OF, CODE_OF, DIGEST_OF, RUNG_OF };
    trial_list *l = context;
    HWNAS_GROW(l->trials, l->n, l->room);
    hwnas_trial *trial = &l->trials[l->n++];
    *trial = (hwnas_trial){.number = (uint64_t)hwnas_row_int(row, NUMBER_OF),
                           .code = column_text(row, CODE_OF),
                           .rung = (int)hwnas_row_int(row, RUNG_OF),
                           .order = -1};
    column_copy(trial->digest, sizeof trial->digest, row, DIGEST_OF);
    return hwnas_is_text(trial->code) && hwnas_is_text(trial->digest)
               ? HWNAS_OK
               : hwnas_store_damaged(l->store, "a trial that runs has no code");
}

hwnas_status hwnas_store_running(hwnas_trial **out, size_t *n, hwnas_store *store)
{
    return read_trials(out, n, store, store->statements[HWNAS_SQL_RUNNING], add_running);
}
