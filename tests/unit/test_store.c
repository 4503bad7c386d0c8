/* test_store.c: src/store: a study in a file passes the cases of all kinds, and what is on the disk
 * when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/database.h"
#include "tests/unit/store_cases.h"
#include "tests/unit/store_fixture.h"

static void full_disk(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_trial trial = finished(1);
    trial.detail = hwnas_alloc(MIB);
    memset(trial.detail, 'x', MIB - 1);
    assert_int_equal(hwnas_store_start(store, 1, "c", "d", 0), HWNAS_OK);

    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){.rlim_cur = 200000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    hwnas_status status = hwnas_store_finish(store, &trial);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, HWNAS_E_IO);
    assert_string_equal(hwnas_last_error()->file, path);

    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    assert_int_equal(trial.order, 1);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_RESUME);
    assert_int_equal(count_trials(store), 2);
    hwnas_store_close(store);
    free(trial.detail);
}

static void at_rest_one_plain_file(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_close(store);
    assert_int_equal(scratch_entries(), 1);
    hwnas_store_close(open_ok(HWNAS_STORE_READ));
    assert_int_equal(scratch_entries(), 1);
    store = open_ok(HWNAS_STORE_RESUME);
    add_trial(store, 1);
    hwnas_store_close(store);
    assert_int_equal(scratch_entries(), 1);
}

static void relative_and_odd_names(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", ":memory:", "file:x?mode=memory", "a b%20'\""};
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(scratch), 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        hwnas_store *store = NULL;
        assert_int_equal(hwnas_store_open(&store, names[i], HWNAS_STORE_CREATE), HWNAS_OK);
        add_trial(store, 0);
        hwnas_store_close(store);
        assert_int_equal(access(names[i], R_OK), 0);
        assert_int_equal(hwnas_store_open(&store, names[i], HWNAS_STORE_READ), HWNAS_OK);
        assert_int_equal(count_trials(store), 1);
        hwnas_store_close(store);
        expect_refused(names[i], HWNAS_STORE_CREATE, HWNAS_E_INPUT, "exists already");
    }
    assert_int_equal(scratch_entries(), COUNT(names));
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void discard(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_set(store, "job", "{}"), HWNAS_OK);
    hwnas_store_discard(store);
    assert_int_equal(scratch_entries(), 0);

    store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_discard(store); /* has a trial */
    assert_int_equal(scratch_entries(), 1);
    unlink(path);

    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    hwnas_store_discard(open_ok(HWNAS_STORE_RESUME)); /* was not just created */
    assert_int_equal(scratch_entries(), 1);
    hwnas_store_discard(NULL);
}

/* The leases of workers of an older hwnas have no tasks: anybody may go on with their trials. */
static void older_leases(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    hwnas_database *db = hwnas_store_database(store);
    assert_int_equal(hwnas_store_start(store, 0, "c", "d", 0), HWNAS_OK);
    assert_true(db->ops->exec(db, "DROP TABLE lease;"
                                  "CREATE TABLE lease (trial INTEGER PRIMARY KEY REFERENCES trial"
                                  " (number), worker TEXT NOT NULL, expires REAL NOT NULL);"
                                  "INSERT INTO lease VALUES (0, 'a', 0)"));
    hwnas_store_close(store);
    expect_lease_for_all_tasks();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(full_disk), CASE(at_rest_one_plain_file), CASE(relative_and_odd_names),
        CASE(discard),   CASE(older_leases),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return run_store_cases("store in a file", tests, COUNT(tests));
}
