/* test_store_postgresql.c: a study in PostgreSQL passes the cases of all kinds, and what only a
 * server can do to it. The server is the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "store/leases.h"
#include "store/postgresql.h"
#include "store/study_url.h"
#include "tests/unit/store_cases.h"
#include "tests/unit/store_fixture.h"

static char folder[] = "/tmp/hwnas-test-postgresql.XXXXXX";
static char address[256];

/* The exit status of tests/postgresql.sh; the first line that it printed is the address. */
static int server(const char *verb)
{
    char *command =
        hwnas_printf("'%s/tests/postgresql.sh' %s '%s'", HWNAS_SOURCE_DIR, verb, folder);
    FILE *answer = popen(command, "r");
    free(command);
    if (!answer)
        return -1;
    char line[sizeof address];
    if (fgets(line, sizeof line, answer) && hwnas_study_is_url(line))
        snprintf(address, sizeof address, "%.*s", (int)strcspn(line, "\n"), line);
    const int code = pclose(answer);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void run_sql(const char *sql)
{
    hwnas_database *db;
    assert_int_equal(hwnas_postgresql_connect(&db, address, address), HWNAS_OK);
    if (!db->ops->exec(db, sql))
        fail_msg("%s", db->ops->reason(db));
    db->ops->close(db);
}

/* The schema of the case's study, as it stands behind study=. */
static const char *schema(void)
{
    return strstr(path, "study=") + strlen("study=");
}

static void run_sql_of(const char *format)
{
    char *sql = hwnas_printf(format, schema());
    run_sql(sql);
    free(sql);
}

static void schemas_of_others(void **state)
{
    (void)state;
    run_sql_of("CREATE SCHEMA \"%s\"");
    for (int mode = HWNAS_STORE_REPLACE; mode <= HWNAS_STORE_READ; mode++)
        expect_refused(path, (hwnas_store_mode)mode, HWNAS_E_INPUT, "is not a study of hwnas");
    expect_refused(path, HWNAS_STORE_CREATE, HWNAS_E_INPUT, "exists already");
    run_sql_of("DROP SCHEMA \"%s\""); /* it was left empty */
}

static void newer_format(void **state)
{
    (void)state;
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    run_sql_of("COMMENT ON SCHEMA \"%s\" IS 'hwnas study, format 999'");
    for (int mode = HWNAS_STORE_REPLACE; mode <= HWNAS_STORE_READ; mode++) {
        expect_refused(path, (hwnas_store_mode)mode, HWNAS_E_INPUT, "format 999");
        expect_hint("newer version");
    }
}

static void missing_table(void **state)
{
    (void)state;
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    run_sql_of("DROP TABLE \"%s\".fact");
    hwnas_store *store = open_ok(HWNAS_STORE_READ);
    char *text;
    assert_int_equal(hwnas_store_get(&text, store, "job"), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "a table is missing"));
    hwnas_store_close(store);
}

static void readers_change_nothing(void **state)
{
    (void)state;
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    hwnas_store *store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(hwnas_store_set(store, "job", "{}"), HWNAS_E_IO);
    hwnas_store_close(store);
}

/* A study of the first format is read as it is, beside one of today's, and gets what was added
 * since when it is changed. */
static void older_format(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_close(store);
    run_sql("CREATE SCHEMA IF NOT EXISTS newer");
    run_sql("CREATE TABLE IF NOT EXISTS newer.packed (first bigint)");
    run_sql_of("DROP TABLE \"%s\".packed");
    run_sql_of("DROP TABLE \"%s\".lease");
    run_sql_of("COMMENT ON SCHEMA \"%s\" IS 'hwnas study, format 1'");
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(store), 1);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_RESUME);
    add_trial(store, 1);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_SHARE);
    assert_int_equal(count_trials(store), 2);
    hwnas_leases *leases;
    assert_int_equal(hwnas_leases_open(&leases, store, "a"), HWNAS_OK);
    assert_int_equal(hwnas_leases_settle(leases), HWNAS_OK);
    hwnas_leases_close(leases);
    hwnas_store_close(store);
}

/* Who may not add packed events writes the event that would fill a pack all the same. */
static void packs_that_may_not_be_written(void **state)
{
    (void)state;
    enum { N = 1030 };
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    hwnas_store_close(store);
    run_sql(
        "DO $$ BEGIN CREATE ROLE poor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    run_sql_of("GRANT USAGE ON SCHEMA \"%s\" TO poor");
    run_sql_of("GRANT ALL ON ALL TABLES IN SCHEMA \"%s\" TO poor");
    run_sql_of("REVOKE INSERT ON \"%s\".packed FROM poor");
    const char *at = strstr(path, "//hwnas@");
    assert_non_null(at);
    char *poor = hwnas_printf("%.*s//poor@%s", (int)(at - path), path, at + strlen("//hwnas@"));
    assert_int_equal(hwnas_store_open(&store, poor, HWNAS_STORE_RESUME), HWNAS_OK);
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    for (uint64_t i = 0; i < N; i++)
        add_trial(store, i);
    assert_int_equal(hwnas_store_end(store, HWNAS_OK), HWNAS_OK);
    assert_int_equal(hwnas_store_pack(store), HWNAS_OK);
    hwnas_store_close(store);
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(store), N);
    hwnas_store_close(store);
    free(poor);
}

/* The leases of workers of an older hwnas have no tasks: anybody may go on with their trials. */
static void older_leases(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    assert_int_equal(hwnas_store_start(store, 0, "c", "d", 0), HWNAS_OK);
    hwnas_store_close(store);
    run_sql_of("INSERT INTO \"%s\".lease VALUES (0, 'a', 0)");
    run_sql_of("ALTER TABLE \"%s\".lease DROP COLUMN tasks, DROP COLUMN begun");
    run_sql_of("COMMENT ON SCHEMA \"%s\" IS 'hwnas study, format 4'");
    expect_lease_for_all_tasks();
}

/* What was finished when the server died is there, what was not is not, and nobody keeps it locked.
 */
static void server_dies(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_start(store, 1, "c", "d", 0), HWNAS_OK);
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    assert_int_equal(hwnas_store_set(store, "job", "{}"), HWNAS_OK);
    assert_int_equal(server("restart"), 0);
    hwnas_trial trial = finished(1);
    assert_int_equal(hwnas_store_end(store, hwnas_store_finish(store, &trial)), HWNAS_E_IO);
    expect_hint("--resume");
    assert_int_equal(hwnas_store_set(store, "job", "{}"), HWNAS_E_IO);
    assert_non_null(strstr(hwnas_last_error()->message, "connection to PostgreSQL was lost"));
    hwnas_store_close(store);

    store = open_ok(HWNAS_STORE_RESUME);
    char *text;
    assert_int_equal(hwnas_store_get(&text, store, "job"), HWNAS_OK);
    assert_null(text);
    assert_int_equal(count_trials(store), 2);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
    assert_int_equal(trial.order, 1);
    hwnas_store_close(store);
}

static void passwords_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "postgresql://me:hunter2@host/db",
        "postgres://:hunter2@/db?study=x",
        "postgresql://host/db?user=me&password=hunter2",
        "postgresql://host/db?p%61ssword=hunter2",
        "postgresql://host/db?sslmode=require&sslpassword=hunter2",
    };
    for (size_t i = 0; i < COUNT(names); i++)
        for (int mode = HWNAS_STORE_CREATE; mode <= HWNAS_STORE_READ; mode++) {
            hwnas_store *store = NULL;
            assert_int_equal(hwnas_store_open(&store, names[i], (hwnas_store_mode)mode),
                             HWNAS_E_INPUT);
            const hwnas_error *e = hwnas_last_error();
            assert_non_null(strstr(e->message, "a password stands in the address"));
            assert_null(strstr(e->message, "hunter2"));
            assert_null(strstr(e->hint, "hunter2"));
            assert_string_equal(e->file, "");
        }
    assert_int_equal(hwnas_study_url_check("postgresql://me@host:5432/db?sslmode=require"),
                     HWNAS_OK);
    assert_int_equal(hwnas_study_url_check("a:b@c?password=x"), HWNAS_OK); /* a file */
}

static void names_of_studies(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"postgresql://h/d", "postgresql://h/d", "hwnas"},
        {"postgresql://h/d?study=one", "postgresql://h/d", "one"},
        {"postgresql://h/d?a=b&study=o%2Dne&c=d", "postgresql://h/d?a=b&c=d", "o-ne"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *conninfo, *name;
        assert_int_equal(hwnas_study_url_split(&conninfo, &name, rows[i][0]), HWNAS_OK);
        assert_string_equal(conninfo, rows[i][1]);
        assert_string_equal(name, rows[i][2]);
        free(conninfo);
        free(name);
    }
    static const char *const wrong[] = {"", "pg_x", "a\"b", "a%22b", "a b"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *name = hwnas_printf("postgresql://h/d?study=%s", wrong[i]);
        expect_refused(name, HWNAS_STORE_CREATE, HWNAS_E_INPUT, "no study can have the name");
        free(name);
    }
}

static void nobody_answers(void **state)
{
    (void)state;
    expect_refused("postgresql:///x?host=/nowhere", HWNAS_STORE_CREATE, HWNAS_E_IO,
                   "cannot connect to PostgreSQL");
    expect_refused("postgresql://h/x?nonsense=1", HWNAS_STORE_READ, HWNAS_E_IO, "nonsense");
    bool found = false;
    assert_int_equal(hwnas_store_exists(&found, "postgresql:///x?host=/nowhere"), HWNAS_E_IO);
}

/* A statement that was asked ahead in a transaction fails, as when somebody cancels it, and another
 * one goes before it: the failure is told as what it is. */
static void what_was_asked_ahead_fails(void **state)
{
    (void)state;
    enum { ASKED, RESET, COMMITTED, N_WAYS };
    for (int way = 0; way < N_WAYS; way++) {
        hwnas_database *db;
        assert_int_equal(hwnas_postgresql_connect(&db, address, address), HWNAS_OK);
        assert_true(db->ops->begin_reading(db));
        hwnas_statement *ahead =
            db->ops->prepare(db, "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(600)");
        hwnas_statement_ask_ahead(ahead);
        if (way == RESET)
            hwnas_statement_reset(ahead);
        assert_false(way == COMMITTED ? db->ops->commit(db) : db->ops->exec(db, "SELECT 1"));
        assert_string_equal(hwnas_postgresql_state(db), "57014");
        assert_non_null(strstr(db->ops->reason(db), "canceling statement"));
        if (way != RESET)
            assert_int_equal(hwnas_statement_step(ahead), HWNAS_STEP_FAILED);
        assert_string_equal(hwnas_postgresql_state(db), "57014");
        hwnas_statement_free(ahead);
        db->ops->rollback(db);
        assert_true(db->ops->begin_reading(db));
        assert_true(db->ops->exec(db, "SELECT 1"));
        assert_true(db->ops->commit(db));
        db->ops->close(db);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(schemas_of_others),     CASE(newer_format),
        CASE(missing_table),         CASE(readers_change_nothing),
        CASE(older_format),          CASE(server_dies),
        CASE(older_leases),          CASE(packs_that_may_not_be_written),
        CASE(passwords_are_refused), CASE(names_of_studies),
        CASE(nobody_answers),        CASE(what_was_asked_ahead_fails),
    };
    const int code = mkdtemp(folder) ? server("start") : -1;
    if (code == 77) {
        puts("1..0 # SKIP PostgreSQL's server is not installed");
        return 0;
    }
    if (code) {
        fprintf(stderr, "tests/postgresql.sh failed: %d\n", code);
        return 1;
    }
    store_server = address;
    const int n_failed = run_store_cases("store in PostgreSQL", tests, COUNT(tests));
    return server("stop") || n_failed;
}
