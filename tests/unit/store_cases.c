/* store_cases.c: what all kinds of store must do alike. */
#include "tests/unit/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/mem.h"
#include "store/database.h"
#include "store/leases.h"
#include "store/outline.h"
#include "tests/unit/store_cases.h"

static void facts(void **state)
{
    (void)state;
    char *value = (char *)"untouched";
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_get(&value, store, "job"), HWNAS_OK);
    assert_null(value);
    assert_int_equal(hwnas_store_set(store, "job", "{\"space\": \"x\"}"), HWNAS_OK);
    assert_int_equal(hwnas_store_set(store, "job", "{\"name\": \"caf\xc3\xa9 'quoted'\"}"),
                     HWNAS_OK);
    assert_int_equal(hwnas_store_set(store, "empty", ""), HWNAS_OK);
    hwnas_store_close(store);

    for (int mode = HWNAS_STORE_RESUME; mode <= HWNAS_STORE_READ; mode++) {
        store = open_ok((hwnas_store_mode)mode);
        assert_int_equal(hwnas_store_get(&value, store, "job"), HWNAS_OK);
        assert_string_equal(value, "{\"name\": \"caf\xc3\xa9 'quoted'\"}");
        free(value);
        assert_int_equal(hwnas_store_get(&value, store, "empty"), HWNAS_OK);
        assert_string_equal(value, "");
        free(value);
        hwnas_store_close(store);
    }
    hwnas_store_close(NULL);
}

static void trials_come_back(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(count_trials(store), 0);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(hwnas_store_start(store, i, "2221", "00ff", 0), HWNAS_OK);
    hwnas_trial one = finished(2), failed = {.number = 0,
                                             .status = HWNAS_E_CRASHED,
                                             .message = (char *)"the runner died: signal 11",
                                             .seconds = 1.5,
                                             .violation = INFINITY};
    assert_int_equal(hwnas_store_finish(store, &one), HWNAS_OK);
    assert_int_equal(hwnas_store_finish(store, &failed), HWNAS_OK);
    assert_int_equal(one.order, 0);
    assert_int_equal(failed.order, 1);
    assert_true(one.is_finished);
    hwnas_store_close(store);

    hwnas_trial *trials = NULL;
    size_t n = 0;
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    hwnas_store_close(store);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(trials[i].number, i);
        assert_string_equal(trials[i].code, "2221");
        assert_string_equal(trials[i].digest, "00ff");
    }
    assert_false(trials[1].is_finished);
    assert_int_equal(trials[1].order, -1);
    assert_int_equal(trials[1].n_values, 0);
    assert_null(trials[1].message);

    assert_true(trials[0].is_finished);
    assert_int_equal(trials[0].order, 1);
    assert_int_equal(trials[0].status, HWNAS_E_CRASHED);
    assert_string_equal(trials[0].message, "the runner died: signal 11");
    assert_null(trials[0].detail);
    assert_true(trials[0].seconds == 1.5 && isinf(trials[0].violation));
    assert_int_equal(trials[0].n_values, 0);

    assert_int_equal(trials[2].status, HWNAS_OK);
    assert_int_equal(trials[2].order, 0);
    assert_null(trials[2].message);
    assert_string_equal(trials[2].detail, "{\"samples\": 12}");
    assert_int_equal(trials[2].n_values, 2);
    assert_string_equal(trials[2].values[0].metric, "latency.p50"); /* the order given is kept */
    const hwnas_value_row *latency = hwnas_trial_value(&trials[2], "latency.p50");
    assert_true(latency->value == 0.001 * 3 && latency->low == 0.0009 && latency->high == 0.0011);
    assert_string_equal(latency->unit, "s");
    assert_int_equal(latency->source, HWNAS_MEASURED);
    const hwnas_value_row *macs = hwnas_trial_value(&trials[2], "macs");
    assert_true(macs->value == 1000002 && isnan(macs->low) && isnan(macs->high));
    assert_null(hwnas_trial_value(&trials[2], "params"));
    hwnas_trials_free(trials, n);
    hwnas_trials_free(NULL, 0);
}

static void every_status_comes_back(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (int i = 0; i < HWNAS_N_STATUS; i++) {
        hwnas_trial trial = {.number = (uint64_t)i, .status = (hwnas_status)i, .violation = NAN};
        assert_int_equal(hwnas_store_start(store, trial.number, "c", "d", 0), HWNAS_OK);
        assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    }
    hwnas_trial *trials = NULL;
    size_t n = 0;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    assert_int_equal(n, HWNAS_N_STATUS);
    for (int i = 0; i < HWNAS_N_STATUS; i++) {
        assert_int_equal(trials[i].status, i);
        assert_true(isnan(trials[i].violation));
    }
    hwnas_trials_free(trials, n);
    hwnas_store_close(store);
}

static void full_trial(void **state)
{
    (void)state;
    enum { MANY = 80 };
    hwnas_trial trial = {0}, *trials = NULL;
    for (int i = 0; i < MANY; i++) {
        hwnas_trial_add(&trial, &(hwnas_value_row){0});
        hwnas_value_row *v = &trial.values[i];
        char name[64];
        snprintf(name, sizeof name, "%02d %060d", i, i);
        v->metric = hwnas_intern(name);
        v->unit = "params.";
        v->source = (hwnas_source)(i % HWNAS_N_SOURCES);
        v->value = 1.0 / (i + 3);
    }
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_start(store, 0, "c", "0123456789abcdef0123456789abcdef", 2),
                     HWNAS_OK);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    size_t n = 0;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    assert_int_equal(n, 1);
    assert_string_equal(trials->digest, "0123456789abcdef0123456789abcdef");
    assert_int_equal(trials->rung, 2);
    assert_int_equal(trials->n_values, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_string_equal(trials->values[i].metric, trial.values[i].metric);
        assert_string_equal(trials->values[i].unit, "params.");
        assert_int_equal(trials->values[i].source, i % HWNAS_N_SOURCES);
        assert_true(trials->values[i].value == 1.0 / (i + 3));
    }
    free(trial.values);
    hwnas_trials_free(trials, n);
    hwnas_store_close(store);
}

/* Events as they were given, each with a copy of its trial. */
typedef struct events {
    size_t n, room;
    hwnas_event *rows;
} events;

static hwnas_status collect(void *context, const hwnas_event *event)
{
    events *e = context;
    HWNAS_GROW(e->rows, e->n, e->room);
    hwnas_event *to = &e->rows[e->n++];
    *to = *event;
    if (event->trial.code)
        hwnas_trial_copy(&to->trial, &event->trial);
    return HWNAS_OK;
}

static void free_events(events *e)
{
    for (size_t i = 0; i < e->n; i++)
        hwnas_trial_done(&e->rows[i].trial);
    free(e->rows);
}

static events walk(hwnas_store *store, int64_t position)
{
    events found = {0};
    assert_int_equal(hwnas_store_walk(&position, store, collect, &found), HWNAS_OK);
    return found;
}

/* The history has a trial as it was each time that it was told. */
static void history_has_what_was_written_anew(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < 3; i++)
        add_trial(store, i);
    hwnas_value_row values[] = {
        {.metric = "latency.p50", .value = 0.25, .unit = "s", .source = HWNAS_MEASURED}};
    hwnas_trial trial = finished(1);
    trial.n_values = 1;
    trial.values = values;
    trial.detail = NULL;
    assert_int_equal(hwnas_store_note(store, 1, HWNAS_EVENT_PUT_OFF), HWNAS_OK);
    assert_int_equal(hwnas_store_revise(store, &trial), HWNAS_OK);
    add_trial(store, 3);
    assert_int_equal(hwnas_store_start(store, 4, "x", "", 1), HWNAS_OK);
    hwnas_store_close(store);
    static const struct {
        hwnas_event_kind kind;
        uint64_t number;
        size_t n_values;
    } wanted[] = {{HWNAS_EVENT_FINISHED, 0, 2}, {HWNAS_EVENT_FINISHED, 1, 2},
                  {HWNAS_EVENT_FINISHED, 2, 2}, {HWNAS_EVENT_PUT_OFF, 1, 0},
                  {HWNAS_EVENT_REVISED, 1, 1},  {HWNAS_EVENT_FINISHED, 3, 2}};
    store = open_ok(HWNAS_STORE_READ);
    events found = walk(store, 0);
    assert_int_equal(found.n, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < found.n; i++) {
        assert_int_equal(found.rows[i].kind, wanted[i].kind);
        assert_int_equal(found.rows[i].trial.number, wanted[i].number);
        assert_int_equal(found.rows[i].trial.n_values, wanted[i].n_values);
    }
    assert_string_equal(found.rows[1].trial.detail, "{\"samples\": 12}");
    assert_string_equal(found.rows[1].trial.code, "code-1");
    assert_true(found.rows[1].trial.is_finished && found.rows[1].trial.order == 1);
    assert_null(found.rows[4].trial.detail);
    assert_int_equal(found.rows[4].trial.values[0].source, HWNAS_MEASURED);
    free_events(&found);
    found = walk(store, 4); /* those behind the fourth */
    assert_int_equal(found.n, 2);
    assert_int_equal(found.rows[0].kind, HWNAS_EVENT_REVISED);
    free_events(&found);
    hwnas_trial *running;
    size_t n;
    assert_int_equal(hwnas_store_running(&running, &n, store), HWNAS_OK);
    assert_int_equal(n, 1);
    assert_true(running->number == 4 && running->rung == 1 && !running->is_finished);
    assert_string_equal(running->code, "x");
    hwnas_trials_free(running, n);
    hwnas_store_close(store);
}

static bool same_end(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* All but what packs leave out. */
static void assert_same_event(const hwnas_event *a, const hwnas_event *b)
{
    const hwnas_trial *x = &a->trial, *y = &b->trial;
    assert_int_equal(a->kind, b->kind);
    assert_true(x->number == y->number && x->rung == y->rung && x->order == y->order);
    assert_true(x->is_finished == y->is_finished && x->status == y->status);
    assert_true(x->is_unstable == y->is_unstable && x->is_stopped_early == y->is_stopped_early);
    assert_true(same_end(x->violation, y->violation));
    assert_true(a->run_seconds == b->run_seconds && same_end(a->estimate, b->estimate));
    assert_string_equal(x->code ? x->code : "", y->code ? y->code : "");
    assert_string_equal(x->digest, y->digest);
    assert_string_equal(x->message ? x->message : "", y->message ? y->message : "");
    assert_int_equal(x->n_values, y->n_values);
    for (size_t i = 0; i < x->n_values; i++) {
        const hwnas_value_row *v = &x->values[i], *w = &y->values[i];
        assert_string_equal(v->metric, w->metric);
        assert_string_equal(v->unit, w->unit);
        assert_true(v->source == w->source && v->value == w->value);
        assert_true(same_end(v->low, w->low) && same_end(v->high, w->high));
    }
}

/* The whole history says what `wanted` does: by rows, which have details, or by packs. */
static void assert_history(hwnas_store *store, const events *wanted, bool by_rows)
{
    events got = walk(store, 0);
    assert_int_equal(got.n, wanted->n);
    assert_int_equal(got.rows[0].trial.detail != NULL, by_rows);
    for (size_t i = 0; i < got.n; i++)
        assert_same_event(&got.rows[i], &wanted->rows[i]);
    free_events(&got);
}

typedef struct curious {
    hwnas_store *store;
    const events *wanted;
    size_t n, end; /* of the events; it is given up at `end`, if that is not 0 */
} curious;

/* Asks the study something else, now and then in a transaction, while the history is read. */
static hwnas_status compare_and_ask(void *context, const hwnas_event *event)
{
    curious *c = context;
    assert_same_event(event, &c->wanted->rows[c->n]);
    if (c->n++ % 100)
        return HWNAS_OK;
    hwnas_trial whole;
    const bool is_inside = c->n % 200 == 1;
    if (is_inside)
        assert_int_equal(hwnas_store_begin(c->store), HWNAS_OK);
    assert_int_equal(hwnas_store_trial(&whole, c->store, event->trial.number), HWNAS_OK);
    assert_true(whole.number == event->trial.number);
    hwnas_trial_done(&whole);
    if (is_inside)
        assert_int_equal(hwnas_store_end(c->store, HWNAS_OK), HWNAS_OK);
    return c->end && c->n > c->end ? HWNAS_E_INTERRUPTED : HWNAS_OK;
}

/* So does one that is given up in its middle leave nothing behind. */
static void assert_same_while_asked(hwnas_store *store, const events *wanted)
{
    int64_t position = 0;
    curious c = {store, wanted, 0, 0};
    assert_int_equal(hwnas_store_walk(&position, store, compare_and_ask, &c), HWNAS_OK);
    assert_int_equal(c.n, wanted->n);
    c = (curious){store, wanted, 0, 1500};
    position = 0;
    assert_int_equal(hwnas_store_walk(&position, store, compare_and_ask, &c), HWNAS_E_INTERRUPTED);
    assert_in_range(c.n, 1500, 1700);
    hwnas_trial whole;
    assert_int_equal(hwnas_store_trial(&whole, store, 3), HWNAS_OK);
    hwnas_trial_done(&whole);
}

/* A history that is long enough to be packed says the same as its rows; so does one whose packs
 * were lost, and one that has a gap, until they are made again. */
static void packed_history_says_the_same(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    for (uint64_t i = 0; i < 1400; i++) {
        hwnas_trial trial = finished(i);
        char code[32], *detail = NULL;
        snprintf(code, sizeof code, "code-%d", (int)i);
        assert_int_equal(
            hwnas_store_start(store, i, code, "0123456789abcdef0123456789abcdef", (int)(i % 3)),
            HWNAS_OK);
        if (i % 2)
            assert_int_equal(hwnas_store_note(store, i, HWNAS_EVENT_ASKED), HWNAS_OK);
        trial.is_unstable = i % 5 == 0;
        trial.is_stopped_early = i % 7 == 0;
        trial.violation = i % 11 ? 0 : INFINITY;
        if (i % 3 == 0)
            detail = "{\"run_seconds\": 0.25, \"estimate\": 0.125}";
        trial.detail = detail;
        if (i % 13 == 0) {
            trial.status = HWNAS_E_TIMEOUT;
            trial.message = "too slow \xc3\xa4";
            trial.n_values = 0;
        }
        assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
        if (i % 17 == 0) {
            assert_int_equal(hwnas_store_note(store, i, HWNAS_EVENT_PUT_OFF), HWNAS_OK);
            trial.violation = 0.5;
            assert_int_equal(hwnas_store_revise(store, &trial), HWNAS_OK);
        }
    }
    assert_int_equal(hwnas_store_end(store, HWNAS_OK), HWNAS_OK);
    events packed = walk(store, 0);
    assert_null(packed.rows[0].trial.detail); /* of the first pack */
    assert_same_while_asked(store, &packed);
    hwnas_database *db = hwnas_store_database(store);
    for (int lost = 0; lost < 2; lost++) {
        assert_true(db->ops->exec(db, lost ? "DELETE FROM packed"
                                           : "DELETE FROM packed WHERE position = 1024"));
        assert_history(store, &packed, true);
    }
    assert_int_equal(hwnas_store_pack(store), HWNAS_OK);
    assert_history(store, &packed, false);
    /* Not as it was written: the rows are read. */
    assert_true(db->ops->exec(db, "UPDATE packed SET events = substr(events, 2)"));
    assert_history(store, &packed, true);
    assert_true(db->ops->exec(db, "DELETE FROM packed"));
    assert_int_equal(hwnas_store_pack(store), HWNAS_OK);
    assert_true(db->ops->exec(db, "UPDATE packed SET events = (SELECT events FROM packed WHERE"
                                  " position = 2048) WHERE position = 1024"));
    int64_t position = 0;
    events broken = {0};
    assert_int_equal(hwnas_store_walk(&position, store, collect, &broken), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "the study is damaged"));
    free_events(&broken);
    free_events(&packed);
    hwnas_store_close(store);
}

/* Few samples tell a quantile and no interval of it. */
static void what_was_measured_again_may_have_no_interval(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    hwnas_trial *trials = NULL;
    size_t n;
    add_trial(store, 0);
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    assert_true(n == 1 && trials[0].n_values == 2);
    hwnas_value_row again = trials[0].values[0];
    again.value = 0.125;
    again.low = again.high = NAN;
    again.rounds = 1;
    assert_int_equal(hwnas_store_again(store, 0, &again, 1), HWNAS_OK);
    assert_int_equal(hwnas_store_replace(trials, n, store), HWNAS_OK);
    const hwnas_value_row *now = &trials[0].values[0];
    assert_true(now->value == 0.125 && isnan(now->low) && isnan(now->high) && now->rounds == 1);
    hwnas_trials_free(trials, n);
    hwnas_store_close(store);
}

/* All that is written between the two, or nothing. */
static void transactions_are_whole(void **state)
{
    (void)state;
    char *fact;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    assert_int_equal(hwnas_store_set(store, "fact", "text"), HWNAS_OK);
    add_trial(store, 1);
    assert_int_equal(hwnas_store_end(store, HWNAS_E_TIMEOUT), HWNAS_E_TIMEOUT);
    assert_int_equal(count_trials(store), 1);
    assert_int_equal(hwnas_store_get(&fact, store, "fact"), HWNAS_OK);
    assert_null(fact);
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    assert_int_equal(hwnas_store_set(store, "fact", "text"), HWNAS_OK);
    add_trial(store, 1);
    assert_int_equal(hwnas_store_end(store, HWNAS_OK), HWNAS_OK);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(store), 2);
    assert_int_equal(hwnas_store_get(&fact, store, "fact"), HWNAS_OK);
    assert_string_equal(fact, "text");
    free(fact);
    hwnas_store_close(store);
}

/* What was estimated and is measured now. */
static void trials_are_revised(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < 3; i++)
        add_trial(store, i);
    hwnas_value_row values[] = {{.metric = "latency.p50",
                                 .value = 0.25,
                                 .low = 0.2,
                                 .high = 0.3,
                                 .unit = "s",
                                 .source = HWNAS_MEASURED}};
    hwnas_trial trial = finished(1);
    trial.n_values = 1;
    trial.values = values;
    trial.status = HWNAS_E_TIMEOUT;
    trial.message = "too few samples";
    trial.detail = "{\"samples\":3}";
    trial.seconds = 7;
    trial.violation = INFINITY;
    assert_int_equal(hwnas_store_revise(store, &trial), HWNAS_OK);
    trial.number = 3;
    assert_int_equal(hwnas_store_revise(store, &trial), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "trial 3 is not finished"));
    assert_int_equal(hwnas_store_start(store, 3, "x", "", 0), HWNAS_OK);
    assert_int_equal(hwnas_store_revise(store, &trial), HWNAS_E_INPUT);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_READ);
    hwnas_trial *trials;
    size_t n;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(trials[i].order, i);
    assert_true(trials[0].n_values > 1 && trials[2].n_values == trials[0].n_values);
    assert_int_equal(trials[1].status, HWNAS_E_TIMEOUT);
    assert_string_equal(trials[1].message, "too few samples");
    assert_string_equal(trials[1].detail, "{\"samples\":3}");
    assert_true(trials[1].seconds == 7 && isinf(trials[1].violation));
    assert_int_equal(trials[1].n_values, 1);
    assert_string_equal(trials[1].values[0].metric, values[0].metric);
    assert_string_equal(trials[1].values[0].unit, values[0].unit);
    assert_true(trials[1].values[0].value == values[0].value &&
                trials[1].values[0].low == values[0].low &&
                trials[1].values[0].high == values[0].high &&
                trials[1].values[0].source == values[0].source);
    assert_false(trials[3].is_finished);
    hwnas_trials_free(trials, n);
    hwnas_store_close(store);
}

static void wrong_order_of_calls(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    hwnas_trial trial = finished(0);
    trial.order = 77;
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->message, "trial 0 was never asked");
    assert_int_equal(trial.order, 77);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->message, "trial 0 is finished already");
    assert_int_equal(hwnas_store_start(store, 0, "code-0", "d", 0), HWNAS_E_INPUT);

    /* What ran when a process died is asked again: the same, or it is a mistake. */
    assert_int_equal(hwnas_store_start(store, 1, "a", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_store_start(store, 1, "a", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_store_start(store, 1, "b", "d", 0), HWNAS_E_INPUT);
    trial.number = 1;
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    assert_int_equal(trial.order, 1);
    assert_int_equal(count_trials(store), 2);
    hwnas_store_close(store);
}

static void failed_finish_changes_nothing(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    hwnas_trial trial = finished(0), *trials = NULL;
    trial.values[1].metric = trial.values[0].metric;
    assert_int_equal(hwnas_store_start(store, 0, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_E_LIBRARY); /* one metric twice */
    assert_false(trial.is_finished);
    size_t n = 0;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    assert_false(trials[0].is_finished);
    assert_int_equal(trials[0].n_values, 0);
    hwnas_trials_free(trials, n);
    trial = finished(0);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    hwnas_store_close(store);
}

/* One that replaces another takes its place with its first trial, and not before. */
static void replaced_when_published(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    add_trial(store, 1);
    hwnas_store_close(store);

    store = open_ok(HWNAS_STORE_REPLACE);
    assert_true(hwnas_store_is_draft(store));
    add_trial(store, 0);
    hwnas_store_close(store); /* it came to nothing */
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(store), 2);
    hwnas_store_close(store);

    store = open_ok(HWNAS_STORE_REPLACE);
    add_trial(store, 0);
    hwnas_store *old = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(old), 2);
    hwnas_store_close(old);
    assert_int_equal(hwnas_store_publish(store), HWNAS_OK);
    assert_false(hwnas_store_is_draft(store));
    add_trial(store, 1);
    add_trial(store, 2);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(store), 3);
    hwnas_store_close(store);
}

static void one_at_a_time_changes_it(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_IO, "in use by");
    expect_refused(path, HWNAS_STORE_REPLACE, HWNAS_E_IO, "in use by");
    hwnas_store *reader = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(reader), 1);
    add_trial(store, 1);
    assert_int_equal(count_trials(reader), 2);
    hwnas_store_close(reader);
    hwnas_store_close(store);
    hwnas_store_close(open_ok(HWNAS_STORE_RESUME));
}

static bool is_there(const char *name)
{
    bool found = false;
    assert_int_equal(hwnas_store_exists(&found, name), HWNAS_OK);
    return found;
}

static void exists_or_not(void **state)
{
    (void)state;
    assert_false(is_there(path));
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_NOT_FOUND, "no such study");
    expect_refused(path, HWNAS_STORE_READ, HWNAS_E_NOT_FOUND, "no such study");
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    assert_true(is_there(path));
    expect_refused(path, HWNAS_STORE_CREATE, HWNAS_E_INPUT, "exists already");
}

static void only_what_is_new_is_discarded(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_set(store, "job", "{}"), HWNAS_OK);
    hwnas_store_discard(store);
    assert_false(is_there(path));
    store = open_ok(HWNAS_STORE_CREATE);
    hwnas_store_close(store);
    hwnas_store_discard(open_ok(HWNAS_STORE_RESUME)); /* was not just created */
    assert_true(is_there(path));
}

/* Every bit of a number, and texts of all kinds. */
static void values_are_exact(void **state)
{
    (void)state;
    static const double numbers[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5, INFINITY};
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < COUNT(numbers); i++) {
        hwnas_trial trial = finished(i), *read;
        size_t n;
        trial.seconds = trial.violation = numbers[i];
        trial.detail = "\"quoted\" \\ 'single' % $1 ?1 caf\xc3\xa9\n";
        assert_int_equal(hwnas_store_start(store, i, "c", "d", 0), HWNAS_OK);
        assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
        assert_int_equal(hwnas_store_trials(&read, &n, store), HWNAS_OK);
        assert_memory_equal(&read[i].seconds, &numbers[i], sizeof numbers[i]);
        assert_memory_equal(&read[i].violation, &numbers[i], sizeof numbers[i]);
        assert_string_equal(read[i].detail, trial.detail);
        assert_true(isnan(read[i].values[1].low));
        hwnas_trials_free(read, n);
    }
    hwnas_store_close(store);
}

static void see(void *context, size_t index, double run_seconds, double estimate)
{
    size_t *n_seen = context;
    assert_int_equal(index, 0);
    assert_true(run_seconds == 0.5 && estimate == 0.25);
    ++*n_seen;
}

static hwnas_trial *outlines_of(size_t *n, hwnas_store *store, size_t n_details)
{
    static const char *const metrics[] = {"macs"};
    hwnas_trial *trials;
    size_t n_seen = 0;
    const hwnas_outline_wish wish = {
        .n_metrics = 1, .metrics = metrics, .see_detail = see, .context = &n_seen};
    assert_int_equal(hwnas_store_outlines(&trials, n, store, &wish), HWNAS_OK);
    assert_int_equal(n_seen, n_details);
    return trials;
}

/* What is left out of an outline, and filled in later, is what is in the whole. */
static void outlines_are_of_the_same_trials(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(hwnas_store_start(store, i, "2221", "00ff", 0), HWNAS_OK);
    for (uint64_t i = 0; i < 4; i++) {
        hwnas_trial trial = finished(i);
        trial.violation = 0.5 * (double)i;
        trial.is_unstable = i == 1;
        if (i == 0)
            trial.detail = (char *)"{\"run_seconds\": 0.5, \"estimate\": 0.25}";
        if (i == 2)
            trial.values[0].source = HWNAS_ESTIMATED;
        if (i == 3)
            trial = (hwnas_trial){
                .number = 3, .status = HWNAS_E_CRASHED, .message = (char *)"signal 11"};
        assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    }
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_READ);
    hwnas_trial *whole;
    size_t n, n_whole;
    hwnas_trial *outlines = outlines_of(&n, store, 1);
    assert_int_equal(hwnas_store_trials(&whole, &n_whole, store), HWNAS_OK);
    assert_int_equal(n, n_whole);
    for (size_t i = 0; i < n; i++) {
        hwnas_trial *o = &outlines[i];
        const hwnas_trial *w = &whole[i];
        assert_true(o->number == w->number && o->is_finished == w->is_finished);
        assert_true(o->status == w->status && o->order == w->order && o->rung == w->rung);
        assert_true(!w->is_finished || o->violation == w->violation);
        assert_int_equal(o->is_unstable, w->is_unstable);
        assert_null(o->detail);
        assert_int_equal(o->code != NULL, i == 3);
        assert_int_equal(o->n_values, i == 2 ? 2 : i < 3);
        for (size_t k = 0; k < o->n_values; k++)
            assert_true(o->values[k].value == hwnas_trial_value(w, o->values[k].metric)->value);
        o->violation = 7;
        assert_int_equal(hwnas_store_fill(o, store), HWNAS_OK);
        assert_true(o->violation == 7); /* what it was judged as meanwhile */
        assert_string_equal(o->code, w->code);
        assert_int_equal(o->n_values, w->n_values);
    }
    assert_string_equal(outlines[3].message, "signal 11");
    hwnas_trials_free(outlines, n);
    hwnas_trials_free(whole, n_whole);
    hwnas_store_close(store);
}

/* Who reads sees one moment, and who writes goes on. */
static void reading_is_of_one_moment(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE), *reader;
    hwnas_trial *trials, later = finished(3);
    size_t n;
    uint64_t all, done;
    for (uint64_t i = 0; i < 3; i++)
        add_trial(store, i);
    reader = open_ok(HWNAS_STORE_READ);
    assert_int_equal(hwnas_store_begin_reading(reader), HWNAS_OK);
    assert_int_equal(hwnas_store_count(&all, &done, reader), HWNAS_OK);
    assert_int_equal(hwnas_store_start(store, 3, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_store_finish(store, &later), HWNAS_OK);
    hwnas_trials_free(outlines_of(&n, reader, 0), 3);
    assert_int_equal(n, 3);
    assert_int_equal(hwnas_store_count(&all, &done, reader), HWNAS_OK);
    assert_int_equal(done, 3);
    assert_int_equal(hwnas_store_end(reader, HWNAS_OK), HWNAS_OK);
    trials = outlines_of(&n, reader, 0);
    assert_int_equal(n, 4);
    hwnas_trials_free(trials, n);
    hwnas_store_close(reader);
    hwnas_store_close(store);
}

static void lease_sql(hwnas_store *store, const char *sql)
{
    assert_true(hwnas_store_database(store)->ops->exec(hwnas_store_database(store), sql));
}

/* Of trial 0; -1: all tasks. */
static bool takes_for(hwnas_leases *leases, int64_t tasks, int64_t wanted, const char *begun)
{
    bool is_there;
    hwnas_lease lease;
    assert_int_equal(hwnas_leases_take(&is_there, &lease, leases, tasks), HWNAS_OK);
    if (!is_there)
        return false;
    assert_int_equal(lease.number, 0);
    assert_int_equal(lease.tasks, wanted);
    if (begun)
        assert_string_equal(lease.begun, begun);
    else
        assert_null(lease.begun);
    free(lease.begun);
    return true;
}

static bool takes(hwnas_leases *leases)
{
    return takes_for(leases, 1, -1, NULL);
}

static void end_lease(hwnas_store *store, hwnas_leases *leases, uint64_t number, bool is_ours)
{
    bool was_ours = !is_ours;
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    assert_int_equal(hwnas_leases_end(&was_ours, leases, number), HWNAS_OK);
    assert_int_equal(hwnas_store_end(store, HWNAS_OK), HWNAS_OK);
    assert_int_equal(was_ours, is_ours);
}

/* A trial belongs to one worker at a time, and to another one when its lease is over. */
static void trials_are_taken_over(void **state)
{
    (void)state;
    hwnas_store *stores[2];
    hwnas_leases *leases[2];
    for (int i = 0; i < 2; i++) {
        stores[i] = open_ok(HWNAS_STORE_SHARE);
        assert_int_equal(hwnas_leases_open(&leases[i], stores[i], i ? "b" : "a"), HWNAS_OK);
    }
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_IO, "in use by");
    assert_int_equal(hwnas_store_begin(stores[0]), HWNAS_OK);
    assert_int_equal(hwnas_store_start(stores[0], 0, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_leases_add(leases[0], 0), HWNAS_OK);
    assert_int_equal(hwnas_store_end(stores[0], HWNAS_OK), HWNAS_OK);
    assert_false(takes(leases[1]));
    lease_sql(stores[0], "UPDATE lease SET expires = 0");
    assert_int_equal(hwnas_leases_renew(leases[0]), HWNAS_OK);
    assert_false(takes(leases[1]));
    lease_sql(stores[0], "UPDATE lease SET expires = 0");
    assert_true(takes(leases[1]));
    assert_int_equal(hwnas_leases_renew(leases[0]), HWNAS_OK); /* it is not theirs any more */
    end_lease(stores[0], leases[0], 0, false);
    end_lease(stores[1], leases[1], 0, true);
    end_lease(stores[1], leases[1], 0, false);
    for (int i = 0; i < 2; i++) {
        hwnas_leases_close(leases[i]);
        hwnas_store_close(stores[i]);
    }
    hwnas_store_close(open_ok(HWNAS_STORE_RESUME));
}

static bool hands_on_trial(hwnas_store *store, hwnas_leases *leases, uint64_t number, int64_t tasks,
                           char *begun)
{
    bool was_ours;
    const hwnas_lease lease = {.number = number, .tasks = tasks, .begun = begun};
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    assert_int_equal(hwnas_leases_hand_on(&was_ours, leases, &lease), HWNAS_OK);
    assert_int_equal(hwnas_store_end(store, HWNAS_OK), HWNAS_OK);
    return was_ours;
}

static bool hands_on(hwnas_store *store, hwnas_leases *leases, int64_t tasks, char *begun)
{
    return hands_on_trial(store, leases, 0, tasks, begun);
}

static int64_t waiting(hwnas_leases *leases, int64_t tasks)
{
    int64_t n, others;
    assert_int_equal(hwnas_leases_waiting(&n, &others, leases, tasks), HWNAS_OK);
    return n;
}

/* A trial that is handed on goes to who does its next task, with what was found out so far, and
 * stays so where that one dies. */
static void tasks_are_handed_on(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    hwnas_leases *a, *b, *other;
    assert_int_equal(hwnas_leases_open(&a, store, "a"), HWNAS_OK);
    assert_int_equal(hwnas_leases_open(&b, store, "b"), HWNAS_OK);
    assert_int_equal(hwnas_leases_open(&other, store, "other"), HWNAS_OK);
    assert_int_equal(hwnas_store_start(store, 0, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_leases_add(a, 0), HWNAS_OK);
    assert_int_equal(waiting(a, 1), 0);
    assert_true(hands_on(store, a, 4, (char *)"half \"done\""));
    assert_false(hands_on(store, a, 2, NULL)); /* it is not theirs any more */
    assert_int_equal(waiting(a, 3), 1);
    assert_int_equal(waiting(b, 6), 0);
    assert_false(takes_for(a, 3, 0, NULL));
    assert_true(takes_for(b, 6, 4, "half \"done\""));
    assert_int_equal(waiting(a, 3), 0); /* somebody is at it */
    assert_false(takes_for(other, 4, 0, NULL));
    lease_sql(store, "UPDATE lease SET expires = 0"); /* b died */
    assert_false(takes_for(a, 3, 0, NULL));
    assert_true(takes_for(other, 4, 4, "half \"done\""));
    assert_int_equal(hwnas_leases_release(other), HWNAS_OK);
    assert_true(takes_for(other, -1, 4, "half \"done\""));
    assert_int_equal(hwnas_leases_settle(other), HWNAS_OK); /* as one that joins does */
    assert_false(takes_for(a, -1, 0, NULL));
    end_lease(store, b, 0, false);
    end_lease(store, other, 0, true);
    hwnas_leases_close(a);
    hwnas_leases_close(b);
    hwnas_leases_close(other);
    hwnas_store_close(store);
}

/* A worker that has nothing to do learns for whose tasks trials wait. */
static void tasks_that_nobody_does(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    hwnas_leases *leases;
    int64_t n = -1, others = -1;
    assert_int_equal(hwnas_leases_open(&leases, store, "a"), HWNAS_OK);
    assert_int_equal(hwnas_leases_waiting(&n, &others, leases, 1), HWNAS_OK);
    assert_int_equal(n, 0);
    assert_int_equal(others, 0);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(hwnas_store_start(store, i, "c", "d", 0), HWNAS_OK);
        assert_int_equal(hwnas_leases_add(leases, i), HWNAS_OK);
        if (i < 3)
            assert_true(hands_on_trial(store, leases, i, i < 2 ? 4 : 8, NULL));
    }
    assert_int_equal(hwnas_leases_waiting(&n, &others, leases, 1), HWNAS_OK);
    assert_int_equal(n, 3);
    assert_int_equal(others, 4 | 8);
    assert_int_equal(hwnas_leases_waiting(&n, &others, leases, 1 | 4), HWNAS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(others, 8);
    hwnas_leases_close(leases);
    hwnas_store_close(store);
}

/* ---- What others write meanwhile ---- */

static const hwnas_database_ops *real_ops;
static hwnas_store *writer;
static int n_steps; /* until a trial is written; below 0: it is */

static hwnas_step step_beside_others(hwnas_statement *statement)
{
    if (n_steps-- == 0)
        add_trial(writer, 2);
    return real_ops->step(statement);
}

static hwnas_status count_event(void *context, const hwnas_event *event)
{
    (void)event;
    ++*(int *)context;
    return HWNAS_OK;
}

/* One that goes through a history from its beginning, which is checked, is not disturbed by who
 * writes a trial between two of its statements. */
static void history_grows_while_it_is_read(void **state)
{
    (void)state;
    int n = 0;
    bool was_written = true;
    for (int moment = 0; was_written; moment++) {
        writer = open_ok(HWNAS_STORE_REPLACE);
        add_trial(writer, 0);
        add_trial(writer, 1);
        assert_int_equal(hwnas_store_publish(writer), HWNAS_OK);
        hwnas_store *reader = open_ok(HWNAS_STORE_READ);
        hwnas_database *db = hwnas_store_database(reader);
        real_ops = db->ops;
        hwnas_database_ops ops = *real_ops;
        ops.step = step_beside_others;
        db->ops = &ops;
        int64_t position = 0;
        n = 0;
        n_steps = moment;
        if (hwnas_store_walk(&position, reader, count_event, &n) != HWNAS_OK)
            fail_msg("step %d: %s", moment, hwnas_last_error()->message);
        was_written = n_steps < 0;
        assert_in_range(n, 2, 3);
        db->ops = real_ops;
        if (was_written) {
            assert_int_equal(hwnas_store_walk(&position, reader, count_event, &n), HWNAS_OK);
            assert_int_equal(n, 3);
        }
        hwnas_store_close(reader);
        hwnas_store_close(writer);
    }
    assert_int_equal(n, 2);
}

/* A lease that was given an hour ahead of the clock as it is now does not keep others out for so
 * long. */
static void clock_is_set_back(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    hwnas_leases *dead, *alive;
    assert_int_equal(hwnas_leases_open(&dead, store, "dead"), HWNAS_OK);
    assert_int_equal(hwnas_leases_open(&alive, store, "alive"), HWNAS_OK);
    assert_int_equal(hwnas_store_start(store, 0, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_leases_add(dead, 0), HWNAS_OK);
    assert_false(takes(alive));
    lease_sql(store, "UPDATE lease SET expires = expires + 3600");
    assert_true(takes(alive));
    hwnas_leases_close(dead);
    hwnas_leases_close(alive);
    hwnas_store_close(store);
}

/* Of those that begin a study at once all get the same one. */
static void begun_together(void **state)
{
    (void)state;
    enum { N = 6 };
    pid_t children[N];
    for (int i = 0; i < N; i++) {
        children[i] = fork();
        if (!children[i]) {
            hwnas_store *store = NULL;
            hwnas_status status = hwnas_store_open(&store, path, HWNAS_STORE_SHARE);
            if (status == HWNAS_OK)
                status = hwnas_store_set(store, i % 2 ? "odd" : "even", "here");
            hwnas_store_close(store);
            _exit(status != HWNAS_OK);
        }
    }
    for (int i = 0; i < N; i++) {
        int code;
        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        assert_int_equal(code, 0);
    }
    hwnas_store *store = open_ok(HWNAS_STORE_READ);
    static const char *const keys[] = {"odd", "even"};
    for (int i = 0; i < 2; i++) {
        char *text;
        assert_int_equal(hwnas_store_get(&text, store, keys[i]), HWNAS_OK);
        assert_string_equal(text, "here");
        free(text);
    }
    hwnas_store_close(store);
}

int run_store_cases(const char *group, const struct CMUnitTest *own, size_t n)
{
    static const struct CMUnitTest cases[] = {
        CASE(facts),
        CASE(trials_come_back),
        CASE(every_status_comes_back),
        CASE(full_trial),
        CASE(trials_are_revised),
        CASE(history_has_what_was_written_anew),
        CASE(packed_history_says_the_same),
        CASE(what_was_measured_again_may_have_no_interval),
        CASE(transactions_are_whole),
        CASE(wrong_order_of_calls),
        CASE(failed_finish_changes_nothing),
        CASE(replaced_when_published),
        CASE(one_at_a_time_changes_it),
        CASE(exists_or_not),
        CASE(only_what_is_new_is_discarded),
        CASE(values_are_exact),
        CASE(outlines_are_of_the_same_trials),
        CASE(reading_is_of_one_moment),
        CASE(trials_are_taken_over),
        CASE(tasks_are_handed_on),
        CASE(tasks_that_nobody_does),
        CASE(history_grows_while_it_is_read),
        CASE(clock_is_set_back),
        CASE(begun_together),
    };
    struct CMUnitTest *all = hwnas_alloc((COUNT(cases) + n) * sizeof *all);
    memcpy(all, cases, sizeof cases);
    memcpy(all + COUNT(cases), own, n * sizeof *own);
    const int n_failed = _cmocka_run_group_tests(group, all, COUNT(cases) + n, NULL, NULL);
    free(all);
    return n_failed;
}
