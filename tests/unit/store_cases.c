/* store_cases.c: what all kinds of store must do alike: facts, trials, transactions, and how a
 * study is opened. */
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
        CASE(transactions_are_whole),
        CASE(wrong_order_of_calls),
        CASE(failed_finish_changes_nothing),
        CASE(replaced_when_published),
        CASE(one_at_a_time_changes_it),
        CASE(exists_or_not),
        CASE(only_what_is_new_is_discarded),
        CASE(values_are_exact),
        CASE(begun_together),
    };
    const struct {
        const struct CMUnitTest *cases;
        size_t n;
    } parts[] = {
        {cases, COUNT(cases)},
        {store_reading_cases, n_store_reading_cases},
        {store_lease_cases, n_store_lease_cases},
        {own, n},
    };
    struct CMUnitTest *all = NULL;
    size_t n_all = 0;
    for (size_t i = 0; i < COUNT(parts); i++) {
        all = hwnas_realloc(all, (n_all + parts[i].n) * sizeof *all);
        memcpy(all + n_all, parts[i].cases, parts[i].n * sizeof *all);
        n_all += parts[i].n;
    }
    const int n_failed = _cmocka_run_group_tests(group, all, n_all, NULL, NULL);
    free(all);
    return n_failed;
}
