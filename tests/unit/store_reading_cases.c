/* store_reading_cases.c: what is read of a study is what was written, whole and of one moment. */
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

#include "base/mem.h"
#include "store/database.h"
#include "store/outline.h"
#include "tests/unit/store_cases.h"

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
    enum { N = HWNAS_FEW + 3, N_FINISHED = 4 };
    hwnas_trial *filled[N];
    for (uint64_t i = 0; i < N; i++) {
        char code[8];
        snprintf(code, sizeof code, "22%u", 10 + (unsigned)i);
        assert_int_equal(hwnas_store_start(store, i, code, "00ff", 0), HWNAS_OK);
    }
    for (uint64_t i = 0; i < N_FINISHED; i++) {
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
    assert_int_equal(n, N);
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
        filled[n - 1 - i] = o;
    }
    assert_int_equal(hwnas_store_fill(filled, 0, store), HWNAS_OK);
    assert_int_equal(hwnas_store_fill(filled, n, store), HWNAS_OK);
    for (size_t i = 0; i < n; i++) {
        const hwnas_trial *o = &outlines[i], *w = &whole[i];
        assert_true(o->number == i && o->violation == 7); /* what it was judged as meanwhile */
        assert_string_equal(o->code, w->code);
        assert_int_equal(o->n_values, w->n_values);
        for (size_t k = 0; k < o->n_values; k++)
            assert_true(o->values[k].value == w->values[k].value);
    }
    hwnas_trial none = {.number = n};
    assert_int_equal(hwnas_store_fill(&(hwnas_trial *){&none}, 1, store), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "a trial is missing"));
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

const struct CMUnitTest store_reading_cases[] = {
    CASE(history_has_what_was_written_anew),
    CASE(packed_history_says_the_same),
    CASE(what_was_measured_again_may_have_no_interval),
    CASE(outlines_are_of_the_same_trials),
    CASE(reading_is_of_one_moment),
    CASE(history_grows_while_it_is_read),
};
const size_t n_store_reading_cases = COUNT(store_reading_cases);
