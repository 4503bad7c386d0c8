/* test_store.c: src/store: what comes back, what is refused, and what survives a kill -9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
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
#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MIB ((size_t)1 << 20)

/* A scratch directory for each case; `path` is a study in it. */

static char *scratch, *path;

static int make_scratch(void **state)
{
    (void)state;
    scratch = hwnas_strdup("/tmp/hwnas-test-store.XXXXXX");
    if (!mkdtemp(scratch))
        return -1;
    path = hwnas_printf("%s/study.db", scratch);
    return 0;
}

static int remove_scratch(void **state)
{
    (void)state;
    char *command = hwnas_printf("rm -rf '%s'", scratch);
    int failed = system(command);
    free(command);
    free(scratch);
    free(path);
    return failed;
}

static size_t scratch_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(scratch);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

static void write_study_file(const void *bytes, size_t n)
{
    assert_int_equal(hwnas_file_write(path, bytes, n), HWNAS_OK);
}

static hwnas_store *open_ok(hwnas_store_mode mode)
{
    hwnas_store *store = NULL;
    hwnas_status status = hwnas_store_open(&store, path, mode);
    if (status != HWNAS_OK)
        fail_msg("%s: %s", hwnas_status_name(status), hwnas_last_error()->message);
    return store;
}

static void expect_refused(const char *name, hwnas_store_mode mode, hwnas_status status,
                           const char *message)
{
    hwnas_store *store = NULL;
    assert_int_equal(hwnas_store_open(&store, name, mode), status);
    assert_null(store);
    const hwnas_error *e = hwnas_last_error();
    if (!strstr(e->message, message))
        fail_msg("'%s' does not contain '%s'", e->message, message);
    assert_string_equal(e->file, name);
}

static void expect_hint(const char *hint)
{
    if (!strstr(hwnas_last_error()->hint, hint))
        fail_msg("'%s' does not contain '%s'", hwnas_last_error()->hint, hint);
}

/* Its values are good until the 64th trial after it. */
static hwnas_trial finished(uint64_t number)
{
    static hwnas_value_row rows[64][2];
    hwnas_value_row *values = rows[number % 64];
    values[0] = (hwnas_value_row){.metric = "latency.p50",
                                  .value = 0.001 * (double)(number + 1),
                                  .low = 0.0009,
                                  .high = 0.0011,
                                  .unit = "s",
                                  .source = "measured"};
    values[1] = (hwnas_value_row){.metric = "macs",
                                  .value = 1e6 + (double)number,
                                  .low = NAN,
                                  .high = NAN,
                                  .unit = "MACs",
                                  .source = "computed"};
    return (hwnas_trial){
        .number = number,
        .detail = (char *)"{\"samples\": 12}",
        .seconds = 0.25,
        .n_values = 2,
        .values = values,
    };
}

static void add_trial(hwnas_store *store, uint64_t number)
{
    char code[32], digest[33];
    snprintf(code, sizeof code, "code-%u", (unsigned)number);
    snprintf(digest, sizeof digest, "%032x", (unsigned)number);
    hwnas_trial trial = finished(number);
    assert_int_equal(hwnas_store_start(store, number, code, digest, 0), HWNAS_OK);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
}

static size_t count_trials(hwnas_store *store)
{
    hwnas_trial *trials = NULL;
    size_t n = 0;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    hwnas_trials_free(trials, n);
    return n;
}

/* What comes back */

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
    assert_string_equal(latency->source, "measured");
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
        snprintf(v->metric, sizeof v->metric, "%02d %060d", i, i);
        memcpy(v->unit, "params.", 8);
        memcpy(v->source, "fifteen letters", 16);
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
        assert_string_equal(trials->values[i].source, "fifteen letters");
        assert_true(trials->values[i].value == 1.0 / (i + 3));
    }
    free(trial.values);
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
    memcpy(trial.values[1].metric, trial.values[0].metric, sizeof trial.values[0].metric);
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

/* What is refused */

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
    expect_refused("postgresql://host/db", HWNAS_STORE_CREATE, HWNAS_E_INPUT, "PostgreSQL");
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
    change_with_sqlite("PRAGMA user_version = 3");
    expect_not_ours("the study has format 3, this hwnas knows format 2");
    expect_hint("newer");
    change_with_sqlite("PRAGMA user_version = 1");
    expect_not_ours("the study has format 1, this hwnas knows format 2");
    expect_hint("older");
    change_with_sqlite("PRAGMA user_version = 2; DROP TABLE value");
    expect_not_ours("no such table");
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

/* Several processes */

/* A child that does `work` with the study until it is killed; it reports through `fd`. */
static pid_t fork_worker(void (*work)(int fd), int *fd)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        close(ends[0]);
        work(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    *fd = ends[0];
    return child;
}

static void kill_worker(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void hold_the_study(int fd)
{
    hwnas_store *store = NULL;
    if (hwnas_store_open(&store, path, HWNAS_STORE_RESUME) == HWNAS_OK && write(fd, "y", 1) == 1)
        pause();
}

static void one_process_at_a_time(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_IO, "the study is in use by process");
    hwnas_store_close(store);

    int fd;
    char byte, expected[64];
    pid_t child = fork_worker(hold_the_study, &fd);
    assert_int_equal(read(fd, &byte, 1), 1);
    snprintf(expected, sizeof expected, "the study is in use by process %ld", (long)child);
    expect_refused(path, HWNAS_STORE_RESUME, HWNAS_E_IO, expected);
    assert_string_not_equal(hwnas_last_error()->hint, "");
    store = open_ok(HWNAS_STORE_READ);
    assert_int_equal(count_trials(store), 1);
    hwnas_store_close(store);

    kill_worker(child);
    close(fd);
    store = open_ok(HWNAS_STORE_RESUME); /* the lock died with its holder */
    assert_int_equal(count_trials(store), 1);
    hwnas_store_close(store);
    assert_int_equal(scratch_entries(), 1);
}

/* Goes on from what is in the study; reports the number of each trial when it is finished. */
static void finish_trials(int fd)
{
    hwnas_store *store = NULL;
    hwnas_trial *trials = NULL;
    size_t n = 0;
    if (hwnas_store_open(&store, path, HWNAS_STORE_RESUME) != HWNAS_OK ||
        hwnas_store_trials(&trials, &n, store) != HWNAS_OK)
        _exit(1);
    uint64_t number = n && !trials[n - 1].is_finished ? n - 1 : n;
    hwnas_trials_free(trials, n);
    for (;; number++) {
        char code[32];
        snprintf(code, sizeof code, "code-%u", (unsigned)number);
        hwnas_trial trial = finished(number);
        if (hwnas_store_start(store, number, code, "d", 0) != HWNAS_OK ||
            hwnas_store_finish(store, &trial) != HWNAS_OK ||
            write(fd, &number, sizeof number) != sizeof number)
            _exit(2);
    }
}

/* All that was reported is there, whole; at most one trial beyond was running. */
static size_t check_after_kill(uint64_t n_reported)
{
    hwnas_store *store = open_ok(HWNAS_STORE_RESUME);
    hwnas_trial *trials = NULL;
    size_t n = 0, n_finished = 0;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    for (size_t i = 0; i < n; i++) {
        char code[32];
        snprintf(code, sizeof code, "code-%u", (unsigned)i);
        assert_int_equal(trials[i].number, i);
        assert_string_equal(trials[i].code, code);
        if (!trials[i].is_finished) {
            assert_int_equal(i, n - 1);
            assert_int_equal(trials[i].n_values, 0);
            continue;
        }
        hwnas_trial expected = finished(i);
        assert_int_equal(trials[i].order, n_finished++);
        assert_int_equal(trials[i].n_values, 2);
        assert_string_equal(trials[i].detail, expected.detail);
        for (int k = 0; k < 2; k++)
            assert_true(trials[i].values[k].value == expected.values[k].value);
    }
    assert_in_range(n_finished, n_reported, n_reported + 1);
    hwnas_trials_free(trials, n);
    hwnas_store_close(store);
    return n_finished;
}

static void kill_9(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new((uint64_t)getpid(), 9);
    uint64_t n_done = 0;
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    for (int round = 0; round < 20; round++) {
        int fd;
        uint64_t number;
        pid_t child = fork_worker(finish_trials, &fd);
        assert_int_equal(read(fd, &number, sizeof number), sizeof number); /* it runs */
        usleep(hwnas_rng_below(&rng, 30000));
        kill_worker(child);
        do
            n_done = number + 1;
        while (read(fd, &number, sizeof number) == sizeof number);
        close(fd);
        n_done = check_after_kill(n_done);
    }
    assert_int_equal(scratch_entries(), 1);
}

static void create_until_killed(int fd)
{
    for (;;) {
        hwnas_store *store = NULL;
        if (hwnas_store_open(&store, path, HWNAS_STORE_CREATE) != HWNAS_OK ||
            write(fd, "y", 1) != 1)
            _exit(1);
        hwnas_store_discard(store);
    }
}

/* After it, the study is there whole or it is not there. */
static void kill_9_while_creating(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new((uint64_t)getpid(), 10);
    for (int round = 0; round < 20; round++) {
        int fd;
        char byte;
        pid_t child = fork_worker(create_until_killed, &fd);
        assert_int_equal(read(fd, &byte, 1), 1);
        usleep(hwnas_rng_below(&rng, 10000));
        kill_worker(child);
        close(fd);
        hwnas_store *store = NULL;
        hwnas_status status = hwnas_store_open(&store, path, HWNAS_STORE_CREATE);
        if (status != HWNAS_OK) {
            assert_int_equal(status, HWNAS_E_INPUT);
            store = open_ok(HWNAS_STORE_RESUME);
        }
        hwnas_store_close(store);
        assert_int_equal(scratch_entries(), 1);
        unlink(path);
    }
}

static void read_while_another_writes(void **state)
{
    (void)state;
    hwnas_store_close(open_ok(HWNAS_STORE_CREATE));
    int fd;
    uint64_t number = 0;
    size_t last = 0;
    pid_t child = fork_worker(finish_trials, &fd);
    hwnas_store *reader = NULL;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(read(fd, &number, sizeof number), sizeof number);
        if (i % 10 == 0) {
            hwnas_store_close(reader);
            reader = open_ok(HWNAS_STORE_READ);
        }
        hwnas_trial *trials = NULL;
        size_t n = 0;
        assert_int_equal(hwnas_store_trials(&trials, &n, reader), HWNAS_OK);
        assert_true(n > number && n >= last);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(trials[k].n_values, trials[k].is_finished ? 2 : 0);
        hwnas_trials_free(trials, n);
        last = n;
    }
    kill_worker(child);
    close(fd);
    hwnas_store_close(reader);
    hwnas_store_close(open_ok(HWNAS_STORE_RESUME));
    assert_int_equal(scratch_entries(), 1);
}

static void reader_does_not_stop_the_writer(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    add_trial(store, 0);
    hwnas_store_close(store);
    hwnas_store *reader = open_ok(HWNAS_STORE_READ); /* in this process: they share descriptors */
    store = open_ok(HWNAS_STORE_RESUME);
    for (uint64_t i = 1; i < 20; i++) {
        add_trial(store, i);
        assert_int_equal(count_trials(reader), i + 1);
    }
    hwnas_store_close(store);
    assert_int_equal(count_trials(reader), 20);
    hwnas_store_close(reader);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(facts),
        CASE(trials_come_back),
        CASE(every_status_comes_back),
        CASE(full_trial),
        CASE(wrong_order_of_calls),
        CASE(failed_finish_changes_nothing),
        CASE(full_disk),
        CASE(at_rest_one_plain_file),
        CASE(relative_and_odd_names),
        CASE(discard),
        CASE(missing_or_existing),
        CASE(not_a_file),
        CASE(not_a_study),
        CASE(database_of_another_program),
        CASE(other_versions),
        CASE(truncated),
        CASE(damaged),
        CASE(unwritable),
        CASE(failed_create_leaves_nothing),
        CASE(one_process_at_a_time),
        CASE(kill_9),
        CASE(kill_9_while_creating),
        CASE(read_while_another_writes),
        CASE(reader_does_not_stop_the_writer),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
