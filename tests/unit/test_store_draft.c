/* test_store_draft.c: a study that replaces another: what is there at each moment, whoever reads or
 * dies; and the lock, which knows a study under each of its names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "tests/unit/store_fixture.h"

enum { OLD = 7 }; /* trials of the study that is replaced */

static void make_old(void)
{
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    for (uint64_t i = 0; i < OLD; i++)
        add_trial(store, i);
    hwnas_store_close(store);
}

static size_t count_there(void)
{
    hwnas_store *store = open_ok(HWNAS_STORE_READ);
    const size_t n = count_trials(store);
    hwnas_store_close(store);
    return n;
}

/* Whether a name that begins as the study's is there. */
static bool is_there(const char *suffix)
{
    char *name = hwnas_printf("%s%s", path, suffix);
    const bool is = !access(name, F_OK);
    free(name);
    return is;
}

static void the_old_one_stays_until_then(void **state)
{
    (void)state;
    make_old();
    hwnas_store *store = open_ok(HWNAS_STORE_REPLACE);
    assert_true(hwnas_store_is_draft(store));
    assert_int_equal(hwnas_store_start(store, 0, "code-0", "d", 0), HWNAS_OK);
    assert_int_equal(count_there(), OLD);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_IO, "in use by process");
    expect_refused(path, HWNAS_STORE_REPLACE, HWNAS_E_IO, "in use by process");
    hwnas_store_close(store); /* it came to nothing */
    assert_int_equal(count_there(), OLD);
    assert_int_equal(scratch_entries(), 1);

    assert_int_equal(chmod(path, 0600), 0);
    store = open_ok(HWNAS_STORE_REPLACE);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_publish(store), HWNAS_OK);
    assert_false(hwnas_store_is_draft(store));
    assert_int_equal(count_there(), 1);
    add_trial(store, 1);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_IO, "in use by process");
    hwnas_store_close(store);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(count_there(), 2);
    assert_int_equal(scratch_entries(), 1);
}

static void nothing_to_replace(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_REPLACE);
    assert_false(hwnas_store_is_draft(store));
    hwnas_store_discard(store);
    assert_int_equal(scratch_entries(), 0);
}

static void only_a_study_is_replaced(void **state)
{
    (void)state;
    write_study_file("some text of the user's", 23);
    expect_refused(path, HWNAS_STORE_REPLACE, HWNAS_E_INPUT, "not a study");
    assert_int_equal(scratch_entries(), 1);
    unlink(path);
    make_old();
    char *beside = hwnas_printf("%s-new", path), *text = NULL;
    assert_int_equal(hwnas_file_write(beside, "the user's", 10), HWNAS_OK);
    expect_refused(path, HWNAS_STORE_REPLACE, HWNAS_E_INPUT, "is in the way");
    assert_int_equal(hwnas_file_read(&text, NULL, beside, 100), HWNAS_OK);
    assert_string_equal(text, "the user's");
    unlink(beside);
    assert_int_equal(symlink("study.db", beside), 0);
    expect_refused(path, HWNAS_STORE_REPLACE, HWNAS_E_IO, "symbolic links");
    assert_int_equal(count_there(), OLD);
    free(text);
    free(beside);
}

static void touch(const char *suffix)
{
    char *name = hwnas_printf("%s%s", path, suffix);
    assert_int_equal(hwnas_file_write(name, "", 0), HWNAS_OK);
    free(name);
}

/* In a child: of a test that has failed, nobody is left to give the word. */
static void wait_for(const char *suffix)
{
    for (int i = 0; !is_there(suffix); i++) {
        if (i == 60000)
            _exit(7);
        usleep(1000);
    }
}

/* A process that reads the study from one word to another. It is begun before the study is opened
 * here, as what is forked shares locks. */
static pid_t start_reader(void)
{
    const pid_t child = fork();
    if (child)
        return child;
    wait_for("-begin");
    hwnas_store *store = open_ok(HWNAS_STORE_READ);
    bool is_same = count_trials(store) == OLD;
    touch("-begun");
    wait_for("-end");
    is_same &= count_trials(store) == OLD;
    hwnas_store_close(store);
    _exit(!is_same);
}

/* A reader of the old study sees that to its end, and takes nothing of the new one with it. */
static void a_reader_of_the_old_one(void **state)
{
    (void)state;
    int status;
    make_old();
    const pid_t reader = start_reader();
    hwnas_store *writer = open_ok(HWNAS_STORE_RESUME);
    touch("-begin");
    wait_for("-begun");
    hwnas_store_close(writer); /* the write-ahead log stays, as somebody reads */
    assert_true(is_there("-wal"));
    hwnas_store *store = open_ok(HWNAS_STORE_REPLACE);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_publish(store), HWNAS_OK);
    add_trial(store, 1);
    touch("-end");
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(is_there("-wal"));
    assert_int_equal(count_there(), 2);
    add_trial(store, 2);
    hwnas_store_close(store);
    assert_int_equal(count_there(), 3);
    assert_int_equal(scratch_entries(), 1 + 3);
}

/* ---- Dying between two system calls ---- */

static int n_renames, last_rename; /* the process ends before this one; 0: before none */

/* In the place of libc's. */
int rename(const char *from, const char *to)
{
    if (++n_renames == last_rename)
        _exit(9);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* Keeps the study's oldest state in sight, so that what comes after it stays in the log. */
static pid_t start_holder(void)
{
    sqlite3 *db = NULL;
    const pid_t child = fork();
    if (child)
        return child;
    wait_for("-begin");
    const bool is_good =
        sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_exec(db, "BEGIN; SELECT count(*) FROM trial", NULL, NULL, NULL) == SQLITE_OK;
    touch("-begun");
    wait_for("-end");
    _exit(!is_good);
}

static void replace_and_die(int rename)
{
    int status;
    const pid_t child = fork();
    if (!child) {
        hwnas_store *store = NULL;
        n_renames = 0;
        last_rename = rename;
        if (hwnas_store_open(&store, path, HWNAS_STORE_REPLACE) != HWNAS_OK)
            _exit(1);
        add_trial(store, 0);
        _exit(hwnas_store_publish(store) == HWNAS_OK ? 8 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

/* Trials that are in the log alone, as somebody reads what was before them, are not lost. */
static void a_reader_and_a_death(void **state)
{
    (void)state;
    enum { NEW = 3 };
    int status;
    make_old();
    const pid_t holder = start_holder();
    hwnas_store *writer = open_ok(HWNAS_STORE_RESUME);
    touch("-begin");
    wait_for("-begun");
    for (uint64_t i = OLD; i < OLD + NEW; i++)
        add_trial(writer, i);
    hwnas_store_close(writer);
    for (int last = 1; last <= 2; last++) {
        replace_and_die(last);
        assert_int_equal(count_there(), OLD + NEW);
    }
    hwnas_store *store = open_ok(HWNAS_STORE_REPLACE);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_publish(store), HWNAS_OK);
    hwnas_store_close(store);
    assert_int_equal(count_there(), 1);
    touch("-end");
    assert_int_equal(waitpid(holder, &status, 0), holder);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(scratch_entries(), 1 + 3);
}

static void replace_until_killed(int fd)
{
    for (;;) {
        hwnas_store *store = NULL;
        if (hwnas_store_open(&store, path, HWNAS_STORE_REPLACE) != HWNAS_OK)
            _exit(1);
        add_trial(store, 0);
        if (hwnas_store_publish(store) != HWNAS_OK)
            _exit(2);
        for (uint64_t i = 1; i < OLD; i++)
            add_trial(store, i);
        if (write(fd, "y", 1) != 1)
            _exit(3);
        hwnas_store_close(store);
    }
}

/* Killed at any moment: a whole study is there, the old one or the new one. */
static void kill_9_while_replacing(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new((uint64_t)getpid(), 11);
    make_old();
    for (int round = 0; round < 40; round++) {
        int ends[2], status;
        char byte;
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (!child)
            replace_until_killed(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        usleep(hwnas_rng_below(&rng, 20000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* it has not failed */
        close(ends[0]);
        close(ends[1]);
        hwnas_store *store = open_ok(HWNAS_STORE_RESUME);
        assert_in_range(count_trials(store), 1, OLD);
        hwnas_store_close(store);
        assert_int_equal(scratch_entries(), 1);
    }
}

/* ---- The lock ---- */

static void every_name_is_locked(void **state)
{
    (void)state;
    make_old();
    char *link_name = hwnas_printf("%s/link.db", scratch);
    char *hard_name = hwnas_printf("%s/hard.db", scratch);
    assert_int_equal(symlink("study.db", link_name), 0);
    assert_int_equal(link(path, hard_name), 0);
    hwnas_store *store = open_ok(HWNAS_STORE_RESUME);
    expect_refused(link_name, HWNAS_STORE_RESUME, HWNAS_E_IO, "in use by process");
    expect_refused(link_name, HWNAS_STORE_REPLACE, HWNAS_E_IO, "in use by process");
    expect_refused(hard_name, HWNAS_STORE_RESUME, HWNAS_E_IO, "in use by process");
    add_trial(store, OLD); /* SQLite's own locks are still there */
    hwnas_store_close(store);
    unlink(hard_name);
    assert_int_equal(hwnas_store_open(&store, link_name, HWNAS_STORE_REPLACE), HWNAS_OK);
    add_trial(store, 0);
    assert_int_equal(hwnas_store_publish(store), HWNAS_OK);
    hwnas_store_close(store);
    struct stat st;
    assert_int_equal(lstat(link_name, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(count_there(), 1);
    assert_int_equal(scratch_entries(), 2);
    free(link_name);
    free(hard_name);
}

/* A file of the user's under a name that locks once had. */
static void no_file_is_cut(void **state)
{
    (void)state;
    char *precious = hwnas_printf("%s/precious", scratch), *text = NULL;
    char *lock = hwnas_printf("%s-lock", path);
    assert_int_equal(hwnas_file_write(precious, "precious", 8), HWNAS_OK);
    assert_int_equal(symlink("precious", lock), 0);
    make_old();
    assert_int_equal(hwnas_file_read(&text, NULL, precious, 100), HWNAS_OK);
    assert_string_equal(text, "precious");
    assert_int_equal(scratch_entries(), 3);
    free(text);
    free(precious);
    free(lock);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(the_old_one_stays_until_then), CASE(nothing_to_replace),
        CASE(only_a_study_is_replaced),     CASE(a_reader_of_the_old_one),
        CASE(a_reader_and_a_death),         CASE(kill_9_while_replacing),
        CASE(every_name_is_locked),         CASE(no_file_is_cut),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
