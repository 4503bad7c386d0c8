/* test_store_refused.c: files that src/store does not take for a study of its own, and leaves as
 * they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "store/outline.h"
#include "tests/unit/store_fixture.h"

static void missing_or_existing(void **state)
{
    (void)state;
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_NOT_FOUND, "no such study");
    expect_hint("--resume");
    expect_refused(path, HWNAS_STORE_READ, HWNAS_E_NOT_FOUND, "no such study");
    assert_int_equal(scratch_entries(), 0);
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    expect_refused(path, HWNAS_STORE_CREATE, HWNAS_E_INPUT, "exists already");
    expect_hint("--resume");
    assert_int_equal(scratch_entries(), 1);
    expect_refused("", HWNAS_STORE_CREATE, HWNAS_E_INPUT, "empty");
}

static void not_a_file(void **state)
{
    (void)state;
    for (int mode = HWNAS_STORE_CREATE; mode <= HWNAS_STORE_READ; mode++)
        expect_refused(scratch, (hwnas_store_mode)mode, HWNAS_E_INPUT, "directory");
    assert_int_equal(mkfifo(path, 0666), 0);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_INPUT, "not a regular file");
    expect_refused(path, HWNAS_STORE_READ, HWNAS_E_INPUT, "not a regular file");
    char *inside = hwnas_printf("%s/study.db", path), *none = hwnas_printf("%s/no/s", scratch);
    for (int mode = HWNAS_STORE_CREATE; mode <= HWNAS_STORE_READ; mode++)
        expect_refused(inside, (hwnas_store_mode)mode, HWNAS_E_IO, "Not a directory");
    expect_refused(none, HWNAS_STORE_CREATE, HWNAS_E_IO, "No such file");
    expect_hint("directory");
    assert_int_equal(scratch_entries(), 1);
    free(inside);
    free(none);
}

/* Both ways to open it refuse the file, and leave it and its directory as they were. */
static void expect_not_ours(const char *message)
{
    char *before = NULL, *after = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(hwnas_file_read(&before, &n, path, MIB), HWNAS_OK);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_INPUT, message);
    assert_string_not_equal(hwnas_last_error()->hint, "");
    expect_refused(path, HWNAS_STORE_READ, HWNAS_E_INPUT, message);
    assert_string_not_equal(hwnas_last_error()->hint, "");
    assert_int_equal(hwnas_file_read(&after, &m, path, MIB), HWNAS_OK);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    assert_int_equal(scratch_entries(), 1);
    free(before);
    free(after);
}

static void change_with_sqlite(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void not_a_study(void **state)
{
    (void)state;
    static const char text[] = "space: nas_bench_macro\ndevice: cpu\n";
    write_study_file(text, strlen(text));
    expect_not_ours("not a study");
    write_study_file("", 0);
    expect_not_ours("not a study");
    char *noise = hwnas_alloc(20000);
    hwnas_rng rng = hwnas_rng_new(5, 5);
    for (int i = 0; i < 20000; i++)
        noise[i] = (char)hwnas_rng_u32(&rng);
    write_study_file(noise, 20000);
    expect_not_ours("not a study");
    free(noise);
}

static void database_of_another_program(void **state)
{
    (void)state;
    change_with_sqlite("CREATE TABLE trial (number); INSERT INTO trial VALUES (1)");
    expect_not_ours("not a study");
    expect_hint("another program");
    change_with_sqlite("PRAGMA journal_mode = WAL; INSERT INTO trial VALUES (2)");
    expect_not_ours("not a study");
}

static void other_versions(void **state)
{
    (void)state;
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    change_with_sqlite("PRAGMA user_version = 5");
    expect_not_ours("the study has format 5, this hwnas knows format 4");
    expect_hint("newer");
    change_with_sqlite("PRAGMA user_version = 3");
    expect_not_ours("the study has format 3, this hwnas knows format 4");
    expect_hint("older");
    change_with_sqlite("PRAGMA user_version = 4; DROP TABLE value");
    expect_not_ours("no such table");
}

static hwnas_status pass_over(void *context, const hwnas_event *event)
{
    (void)context;
    (void)event;
    return HWNAS_OK;
}

/* What a history says must fit the trials. */
static void broken_history(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "DELETE FROM event WHERE trial = 1",
        "UPDATE event SET trial = 7 WHERE trial = 1",
        "UPDATE event SET kind = 'revised' WHERE trial = 1",
        "UPDATE event SET kind = 'eaten' WHERE trial = 1",
        "UPDATE event SET kind = 'running' WHERE trial = 1",
        "INSERT INTO event (trial, kind) VALUES (1, 'finished')",
        "INSERT INTO event (trial, kind) VALUES (1, 'revised')",
        "UPDATE trial SET status = NULL, finish_order = NULL WHERE number = 1",
        "UPDATE trial SET number = 1000000000000 WHERE number = 2",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        int64_t position = 0;
        hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
        for (uint64_t trial = 0; trial < 3; trial++)
            add_trial(store, trial);
        hwnas_store_close(store);
        change_with_sqlite(changes[i]);
        store = open_ok(HWNAS_STORE_READ);
        hwnas_status status = hwnas_store_walk(&position, store, pass_over, NULL);
        assert_int_equal(status, HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, "the study is damaged"));
        hwnas_store_close(store);
        unlink(path);
    }
}

/* A study that comes from somebody else may have triggers, which are not run, and views. */
static void triggers_do_not_run(void **state)
{
    (void)state;
    char *value = NULL;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_set(store, "space", "kept"), HWNAS_OK);
    add_trial(store, 0);
    hwnas_store_close(store);
    change_with_sqlite("CREATE TRIGGER a AFTER INSERT ON trial BEGIN DELETE FROM fact; END;"
                       "CREATE TRIGGER b AFTER UPDATE ON trial BEGIN DELETE FROM fact; END;");
    store = open_ok(HWNAS_STORE_RESUME);
    add_trial(store, 1);
    assert_int_equal(hwnas_store_get(&value, store, "space"), HWNAS_OK);
    assert_non_null(value);
    assert_string_equal(value, "kept");
    free(value);
    hwnas_store_close(store);
    change_with_sqlite("DROP TRIGGER a; DROP TRIGGER b; ALTER TABLE fact RENAME TO hidden;"
                       "CREATE VIEW fact AS SELECT key, value FROM hidden;");
    expect_refused(path, HWNAS_STORE_READ, HWNAS_E_INPUT, "damaged");
}

static void truncated(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < 300; i++)
        add_trial(store, i);
    hwnas_store_close(store);
    char *whole = NULL;
    size_t n = 0;
    assert_int_equal(hwnas_file_read(&whole, &n, path, MIB), HWNAS_OK);
    assert_in_range(n, 20000, MIB);
    for (size_t cut = 16; cut < n; cut += cut < 200 ? 7 : 1021) {
        write_study_file(whole, cut);
        expect_not_ours("");
    }
    for (size_t cut = 4096; cut < n; cut += 4096) {
        write_study_file(whole, cut);
        expect_not_ours("");
    }
    write_study_file(whole, n);
    store = open_ok(HWNAS_STORE_RESUME);
    assert_int_equal(count_trials(store), 300);
    hwnas_store_close(store);
    free(whole);
}

static void damaged(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < 300; i++)
        add_trial(store, i);
    hwnas_store_close(store);
    char *whole = NULL;
    size_t n = 0;
    assert_int_equal(hwnas_file_read(&whole, &n, path, MIB), HWNAS_OK);
    /* The kind of a page, in its first byte. */
    for (size_t page = 4096; page < n; page += 4096) {
        char kept = whole[page];
        whole[page] = 77;
        write_study_file(whole, n);
        expect_not_ours("damaged");
        whole[page] = kept;
    }
    free(whole);
    unlink(path);
    store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_close(store);
    change_with_sqlite("UPDATE trial SET status = 'nonsense'");
    store = open_ok(HWNAS_STORE_READ);
    hwnas_trial *trials = NULL;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_E_INPUT);
    assert_null(trials);
    hwnas_store_close(store);
    change_with_sqlite("UPDATE trial SET status = 'ok'; UPDATE value SET source = 'hearsay'");
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "source"));
    assert_null(trials);
    hwnas_store_close(store);
}

/* The first page of a table. */
static long root_of(const char *table)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_master WHERE name = ?", -1,
                                        &stmt, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const long page = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return page;
}

static void change_byte(long at, char from[1], char to)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fread(from, 1, 1, file), 1);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(to, file), to);
    assert_int_equal(fclose(file), 0);
}

/* A study too large to be looked through when it is opened is found to be damaged when it is read.
 */
static void large_and_damaged(void **state)
{
    (void)state;
    static const char *const tables[] = {"trial", "event", "packed"};
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    assert_int_equal(hwnas_store_begin(store), HWNAS_OK);
    for (uint64_t i = 0; i < 1100; i++)
        add_trial(store, i);
    assert_int_equal(hwnas_store_end(store, HWNAS_OK), HWNAS_OK);
    hwnas_store_close(store);
    change_with_sqlite("INSERT INTO fact VALUES ('large', hex(zeroblob(33000000)))");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const long at = 4096 * (root_of(tables[i]) - 1);
        int64_t position = 0;
        char kept;
        change_byte(at, &kept, 77);
        hwnas_status status = hwnas_store_open(&store, path, HWNAS_STORE_READ);
        if (status == HWNAS_OK) {
            status = hwnas_store_walk(&position, store, pass_over, NULL);
            hwnas_store_close(store);
        }
        assert_int_equal(status, HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, "damaged"));
        change_byte(at, &(char){0}, kept);
        position = 0;
        store = open_ok(HWNAS_STORE_READ);
        assert_int_equal(hwnas_store_walk(&position, store, pass_over, NULL), HWNAS_OK);
        hwnas_store_close(store);
    }
}

/* Numbers that agree with each other and not with how many trials there are. */
static void numbers_with_gaps(void **state)
{
    (void)state;
    static const char *const largest[] = {"2305843009213693950", "17179869184", "7"};
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) {
        uint64_t n, n_finished;
        int64_t position = 0;
        hwnas_trial *outlines;
        size_t n_outlines;
        hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
        for (uint64_t k = 0; k < 3; k++)
            add_trial(store, k);
        hwnas_store_close(store);
        char *sql = hwnas_printf("UPDATE trial SET number = %s, finish_order = %s WHERE number = 2;"
                                 "UPDATE value SET trial = %s WHERE trial = 2;"
                                 "UPDATE event SET trial = %s WHERE trial = 2",
                                 largest[i], largest[i], largest[i], largest[i]);
        change_with_sqlite(sql);
        free(sql);
        store = open_ok(HWNAS_STORE_READ);
        assert_int_equal(hwnas_store_extent(&n, &n_finished, store), HWNAS_E_INPUT);
        assert_int_equal(hwnas_store_walk(&position, store, pass_over, NULL), HWNAS_E_INPUT);
        assert_int_equal(hwnas_store_outlines(&outlines, &n_outlines, store,
                                              &(hwnas_outline_wish){.n_metrics = 0}),
                         HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, "damaged"));
        hwnas_store_close(store);
        unlink(path);
    }
    /* The position of an event: a search for packs to it would take for ever. */
    int64_t position = 0;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_close(store);
    change_with_sqlite("UPDATE event SET position = 4611686018427387904");
    store = open_ok(HWNAS_STORE_RESUME);
    assert_int_equal(hwnas_store_pack(store), HWNAS_OK);
    assert_int_equal(hwnas_store_walk(&position, store, pass_over, NULL), HWNAS_OK);
    assert_int_equal(position, 4611686018427387904);
    hwnas_store_close(store);
}

/* The table of packed events is not found by its name, and nothing can be packed. */
static void without_packed(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < 1020; i++)
        add_trial(store, i);
    hwnas_store_close(store);
    change_with_sqlite("PRAGMA writable_schema = ON;"
                       "UPDATE sqlite_master SET name = 'Packed' WHERE name = 'packed'");
    int64_t position = 0;
    store = open_ok(HWNAS_STORE_RESUME);
    for (uint64_t i = 1020; i < 1030; i++)
        add_trial(store, i);
    assert_int_equal(hwnas_store_pack(store), HWNAS_OK);
    assert_int_equal(hwnas_store_walk(&position, store, pass_over, NULL), HWNAS_OK);
    hwnas_store_close(store);
}

/* Runs `check` in a child that is not root, whom permissions do not stop. */
static void as_nobody(int (*check)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (!geteuid() && (setgid(65534) || setuid(65534)))
            _exit(99);
        _exit(check());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int create_is_denied(void)
{
    hwnas_store *store = NULL;
    if (hwnas_store_open(&store, path, HWNAS_STORE_CREATE) != HWNAS_E_IO)
        return 1;
    return !strstr(hwnas_last_error()->message, "Permission denied") ||
           strcmp(hwnas_last_error()->file, path) || !*hwnas_last_error()->hint;
}

static int resume_is_denied_reading_is_not(void)
{
    hwnas_store *store = NULL;
    if (hwnas_store_open(&store, path, HWNAS_STORE_RESUME) != HWNAS_E_IO || store)
        return 1;
    if (hwnas_store_open(&store, path, HWNAS_STORE_READ) != HWNAS_OK)
        return 2;
    hwnas_trial *trials = NULL;
    size_t n = 0;
    if (hwnas_store_trials(&trials, &n, store) != HWNAS_OK || n != 1)
        return 3;
    hwnas_trials_free(trials, n);
    hwnas_store_close(store);
    return 0;
}

static void unwritable(void **state)
{
    (void)state;
    assert_int_equal(chmod(scratch, 0555), 0);
    as_nobody(create_is_denied);
    assert_int_equal(scratch_entries(), 0);
    assert_int_equal(chmod(scratch, 0777), 0);

    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_close(store);
    assert_int_equal(chmod(path, 0444), 0);
    as_nobody(resume_is_denied_reading_is_not); /* the file */
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(chmod(scratch, 0555), 0);
    as_nobody(resume_is_denied_reading_is_not); /* the directory */
    assert_int_equal(chmod(scratch, 0777), 0);
    assert_int_equal(scratch_entries(), 1);
}

static void failed_create_leaves_nothing(void **state)
{
    (void)state;
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 20000; limit += 2000) {
        hwnas_store *store = NULL;
        tight = (struct rlimit){.rlim_cur = limit, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        hwnas_status status = hwnas_store_open(&store, path, HWNAS_STORE_CREATE);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, HWNAS_E_IO);
        assert_int_equal(scratch_entries(), 0);
    }
    signal(SIGXFSZ, SIG_DFL);
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(missing_or_existing),         CASE(not_a_file),     CASE(not_a_study),
        CASE(database_of_another_program), CASE(other_versions), CASE(broken_history),
        CASE(triggers_do_not_run),         CASE(truncated),      CASE(damaged),
        CASE(large_and_damaged),           CASE(unwritable),     CASE(failed_create_leaves_nothing),
        CASE(numbers_with_gaps),           CASE(without_packed),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
