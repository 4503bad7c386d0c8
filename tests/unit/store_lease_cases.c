/* store_lease_cases.c: which worker has a trial, and for how long. */
#include "tests/unit/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "store/database.h"
#include "store/leases.h"
#include "tests/unit/store_cases.h"

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

/* A lease that was given an hour ahead of the clock as it is now does not keep others out for so
 * long. */
static void lease_of_a_clock_ahead(void **state)
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

const struct CMUnitTest store_lease_cases[] = {
    CASE(trials_are_taken_over),
    CASE(tasks_are_handed_on),
    CASE(tasks_that_nobody_does),
    CASE(lease_of_a_clock_ahead),
};
const size_t n_store_lease_cases = COUNT(store_lease_cases);
