/* test_store_processes.c: several processes at one study, and what survives a kill -9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/unit/store_fixture.h"

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(one_process_at_a_time),
        CASE(kill_9),
        CASE(kill_9_while_creating),
        CASE(read_while_another_writes),
        CASE(reader_does_not_stop_the_writer),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
