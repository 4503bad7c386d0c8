/* test_files.c: files that are written, read and found; what files are written to and read from
 * that are no plain files, and what is left when a writer dies. */
#define _GNU_SOURCE 1 /* O_TMPFILE */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/unit/base_fixture.h"

static char scratch[64];

static int enter_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/hwnas-test-files.XXXXXX");
    alarm(60); /* a test that hangs is to fail */
    return mkdtemp(scratch) && !chdir(scratch) ? 0 : -1;
}

static int leave_scratch(void **state)
{
    (void)state;
    char *command = hwnas_printf("cd / && rm -rf '%s'", scratch);
    const int failed = system(command);
    free(command);
    alarm(0);
    return failed || chdir("/");
}

static char *in_scratch(const char *name)
{
    return hwnas_printf("%s/%s", scratch, name);
}

static size_t n_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

static void assert_holds(const char *path, const char *expected)
{
    char *text = NULL;
    assert_int_equal(hwnas_file_read(&text, NULL, path, 1000), HWNAS_OK);
    assert_string_equal(text, expected);
    free(text);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode;
}

/* ---- Writing ---- */

static void a_file_keeps_its_mode(void **state)
{
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0755};
    for (size_t i = 0; i < COUNT(modes); i++) {
        assert_int_equal(hwnas_file_write("a", "old", 3), HWNAS_OK);
        assert_int_equal(chmod("a", modes[i]), 0);
        assert_int_equal(hwnas_file_write("a", "new", 3), HWNAS_OK);
        assert_int_equal(mode_of("a"), S_IFREG | modes[i]);
        assert_holds("a", "new");
    }
    const mode_t mask = umask(027);
    assert_int_equal(hwnas_file_write("b", "new", 3), HWNAS_OK);
    umask(mask);
    assert_int_equal(mode_of("b"), S_IFREG | 0640);
    assert_int_equal(n_entries(), 2);
}

static void links_are_followed(void **state)
{
    (void)state;
    assert_int_equal(mkdir("far", 0777), 0);
    assert_int_equal(hwnas_file_write("far/file", "old", 3), HWNAS_OK);
    assert_int_equal(symlink("far/file", "direct"), 0);
    assert_int_equal(symlink("direct", "twice"), 0);
    assert_int_equal(symlink("far/none", "dangling"), 0);
    assert_int_equal(symlink("round", "round"), 0);
    assert_int_equal(hwnas_file_write("twice", "new", 3), HWNAS_OK);
    assert_int_equal(hwnas_file_write("dangling", "made", 4), HWNAS_OK);
    assert_int_equal(hwnas_file_write("round", "new", 3), HWNAS_E_IO);
    assert_true(S_ISLNK(mode_of("direct")) && S_ISLNK(mode_of("twice")));
    assert_true(S_ISLNK(mode_of("dangling")) && S_ISREG(mode_of("far/file")));
    assert_holds("far/file", "new");
    assert_holds("far/none", "made");
    assert_int_equal(n_entries(), 5);
}

static void a_pipe_is_written_to(void **state)
{
    (void)state;
    char text[8] = "";
    assert_int_equal(mkfifo("pipe", 0666), 0);
    assert_int_equal(hwnas_file_write("pipe", "text", 4), HWNAS_E_IO);
    assert_non_null(strstr(hwnas_last_error()->message, "nobody reads"));
    const int fd = open("pipe", O_RDONLY | O_NONBLOCK);
    assert_int_equal(hwnas_file_try("pipe"), HWNAS_OK);
    assert_int_equal(hwnas_file_write("pipe", "text", 4), HWNAS_OK);
    assert_int_equal(read(fd, text, sizeof text), 4);
    assert_string_equal(text, "text");
    close(fd);
    assert_true(S_ISFIFO(mode_of("pipe")));
    assert_int_equal(n_entries(), 1);
}

/* Nodes of our own where the machine lets us make them: a mistake must not cost it its own. */
static void a_device_is_written_to(void **state)
{
    (void)state;
    const char *null = "null", *full = "full";
    if (mknod(null, S_IFCHR | 0666, makedev(1, 3)) || mknod(full, S_IFCHR | 0666, makedev(1, 7))) {
        assert_int_not_equal(geteuid(), 0);
        null = "/dev/null", full = "/dev/full"; /* which we may not replace */
    }
    assert_int_equal(hwnas_file_try(null), HWNAS_OK);
    assert_int_equal(hwnas_file_write(null, "text", 4), HWNAS_OK);
    assert_true(S_ISCHR(mode_of(null)));
    assert_int_equal(hwnas_file_write(full, "text", 4), HWNAS_E_IO);
    assert_non_null(strstr(hwnas_last_error()->message, "No space left"));
    assert_true(*hwnas_last_error()->hint);
    assert_true(S_ISCHR(mode_of(full)));
}

/* What the shell has opened goes on to be the file of that name. */
static void standard_output_is_written_to(void **state)
{
    (void)state;
    const int saved = dup(STDOUT_FILENO), fd = open("a", O_WRONLY | O_CREAT, 0666);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    const hwnas_status status = hwnas_file_write("/dev/stdout", "text", 4);
    const ssize_t n = write(STDOUT_FILENO, " and more", 9);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(status, HWNAS_OK);
    assert_int_equal(n, 9);
    assert_holds("a", "text and more");
    assert_int_equal(n_entries(), 1);
}

/* A link that somebody laid where a temporary file might be. */
static void a_planted_link_is_not_followed(void **state)
{
    (void)state;
    assert_int_equal(hwnas_file_write("precious", "precious", 8), HWNAS_OK);
    char *name = hwnas_printf("a.tmp.%ld", (long)getpid()); /* which can be guessed */
    assert_int_equal(symlink("precious", name), 0);
    free(name);
    assert_int_equal(hwnas_file_write("a", "text", 4), HWNAS_OK);
    assert_holds("precious", "precious");
    assert_holds("a", "text");
}

static void a_draft_is_not_seen(void **state)
{
    (void)state;
    hwnas_draft *draft;
    assert_int_equal(hwnas_file_write("a", "old", 3), HWNAS_OK);
    assert_int_equal(hwnas_draft_make(&draft, "a", "new", 3), HWNAS_OK);
    assert_false(hwnas_draft_is_stream(draft));
    assert_holds("a", "old");
    hwnas_draft_free(draft);
    assert_int_equal(hwnas_draft_make(&draft, "a", "new", 3), HWNAS_OK);
    assert_int_equal(hwnas_draft_publish(draft), HWNAS_OK);
    hwnas_draft_free(draft);
    assert_holds("a", "new");
    assert_int_equal(n_entries(), 1);
}

/* A writer is killed at any moment: the old file is whole, and nothing lies beside it. */
static void a_dead_writer_leaves_nothing(void **state)
{
    (void)state;
    enum { SIZE = 64 << 20 };
    const int probe = open(".", O_WRONLY | O_TMPFILE, 0666);
    if (probe < 0)
        skip();
    close(probe);
    char *bytes = hwnas_alloc(SIZE);
    assert_int_equal(hwnas_file_write("a", "old", 3), HWNAS_OK);
    for (int i = 0; i < 5; i++) {
        const pid_t pid = fork();
        if (!pid)
            _exit(hwnas_file_write("a", bytes, SIZE) != HWNAS_OK);
        usleep(2000 * (useconds_t)i + 1000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        struct stat st;
        assert_int_equal(stat("a", &st), 0);
        assert_true(st.st_size == 3 || st.st_size == SIZE);
        assert_int_equal(n_entries(), 1);
    }
    free(bytes);
}

/* ---- Reading ---- */

static void only_files_are_read(void **state)
{
    (void)state;
    char *text = NULL;
    assert_int_equal(mkfifo("pipe", 0666), 0);
    const struct {
        const char *path, *message;
    } rows[] = {{"pipe", "this is a pipe"},
                {"/dev/zero", "this is a device"},
                {"/dev/null", "this is a device"},
                {".", "this is a directory"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(hwnas_file_read(&text, NULL, rows[i].path, 1000), HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, rows[i].message));
        assert_string_equal(hwnas_last_error()->file, rows[i].path);
    }
    assert_null(text);
}

static void a_large_file_is_refused_unread(void **state)
{
    (void)state;
    char *text = NULL;
    const int fd = open("sparse", O_WRONLY | O_CREAT, 0666);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    close(fd);
    struct rusage before, after;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    assert_int_equal(hwnas_file_read(&text, NULL, "sparse", (size_t)1 << 30), HWNAS_E_INPUT);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); /* KiB */
    assert_non_null(strstr(hwnas_last_error()->message, "larger than 1024 MiB"));
    assert_null(text);
}

static void text_is_utf_8(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    assert_int_equal(hwnas_file_write("mark",
                                      "\xef\xbb\xbf"
                                      "a: 1",
                                      7),
                     HWNAS_OK);
    assert_int_equal(hwnas_file_read_text(&text, &n, "mark", 7), HWNAS_OK);
    assert_string_equal(text, "a: 1");
    assert_int_equal(n, 4);
    free(text);
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {{"\xff\xfe"
                 "a\0",
                 4},
                {"\xfe\xff"
                 "\0a",
                 4},
                {"a\0:\0", 4},
                {"\0a\0:", 4}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(hwnas_file_write("wide", rows[i].bytes, rows[i].n), HWNAS_OK);
        assert_int_equal(hwnas_file_read_text(&text, &n, "wide", 100), HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, "UTF-16"));
        assert_non_null(strstr(hwnas_last_error()->hint, "UTF-8"));
    }
}

static void file_round_trip(void **state)
{
    (void)state;
    char *path = in_scratch("a"), *text = NULL;
    size_t n = 0;
    enum { SIZE = 200001 };
    char *bytes = hwnas_alloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7);
    assert_int_equal(hwnas_file_write(path, "short", 5), HWNAS_OK);
    assert_int_equal(hwnas_file_write(path, bytes, SIZE), HWNAS_OK);
    assert_int_equal(hwnas_file_read(&text, &n, path, SIZE), HWNAS_OK);
    assert_int_equal(n, SIZE);
    assert_memory_equal(text, bytes, SIZE);
    assert_int_equal(text[n], 0);
    free(text);
    text = NULL;
    assert_int_equal(hwnas_file_read(&text, &n, path, SIZE - 1), HWNAS_E_INPUT);
    assert_null(text);
    assert_int_equal(hwnas_file_write(path, "", 0), HWNAS_OK);
    assert_int_equal(hwnas_file_read(&text, &n, path, 0), HWNAS_OK);
    assert_string_equal(text, "");
    assert_int_equal(n_entries(), 1);
    free(text);
    free(bytes);
    free(path);
}

static void file_write_leaves_nothing_behind(void **state)
{
    (void)state;
    char *directory = in_scratch("directory"), *nowhere = in_scratch("none/file");
    assert_int_equal(mkdir(directory, 0777), 0);
    assert_int_equal(hwnas_file_write(directory, "text", 4), HWNAS_E_IO);
    assert_string_equal(hwnas_last_error()->file, directory);
    assert_int_equal(hwnas_file_write(nowhere, "text", 4), HWNAS_E_IO);
    assert_int_equal(n_entries(), 1);
    free(directory);
    free(nowhere);
}

static void file_write_keeps_the_old_file(void **state)
{
    (void)state;
    char *path = in_scratch("a"), *text = NULL;
    char *large = hwnas_alloc(100000);
    struct rlimit before, tight;
    assert_int_equal(hwnas_file_write(path, "old", 3), HWNAS_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){.rlim_cur = 50000, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    hwnas_status status = hwnas_file_write(path, large, 100000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, HWNAS_E_IO);
    assert_int_equal(n_entries(), 1);
    assert_int_equal(hwnas_file_read(&text, NULL, path, 100), HWNAS_OK);
    assert_string_equal(text, "old");
    free(text);
    free(large);
    free(path);
}

static void file_read_errors(void **state)
{
    (void)state;
    char *text = NULL, *none = in_scratch("none");
    assert_int_equal(hwnas_file_read(&text, NULL, none, 100), HWNAS_E_NOT_FOUND);
    assert_string_equal(hwnas_last_error()->file, none);
    assert_int_equal(hwnas_file_read(&text, NULL, scratch, 100), HWNAS_E_INPUT);
    assert_contains(hwnas_last_error()->message, "directory");
    assert_null(text);
    free(none);
}

static void file_finds_what_ships(void **state)
{
    (void)state;
    char *found = NULL, *room = in_scratch("zoo"), *path = in_scratch("zoo/small.yaml");
    assert_int_equal(mkdir(room, 0777), 0);
    assert_int_equal(hwnas_file_write(path, "x", 1), HWNAS_OK);
    assert_int_equal(setenv("HWNAS_PATH", scratch, 1), 0);
    assert_int_equal(hwnas_file_find(&found, "small", "zoo", ".yaml"), HWNAS_OK);
    assert_string_equal(found, path);
    free(found);
    found = NULL;
    assert_int_equal(hwnas_file_find(&found, path, "zoo", ".yaml"), HWNAS_OK);
    assert_string_equal(found, path);
    free(found);
    found = NULL;
    assert_int_equal(hwnas_file_find(&found, "large", "zoo", ".yaml"), HWNAS_E_NOT_FOUND);
    assert_contains(hwnas_last_error()->hint, room);
    assert_int_equal(hwnas_file_find(&found, "./large.yaml", "zoo", ".yaml"), HWNAS_E_NOT_FOUND);
    assert_null(found);
    unsetenv("HWNAS_PATH");
    free(room);
    free(path);
}

static void file_beside(void **state)
{
    (void)state;
    static const struct {
        const char *from, *path, *expected;
    } rows[] = {
        {"dir/job.yaml", "t.csv", "dir/t.csv"},
        {"job.yaml", "t.csv", "t.csv"},
        {"/a/b/job.yaml", "../t.csv", "/a/b/../t.csv"},
        {"dir/job.yaml", "/t.csv", "/t.csv"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *got = hwnas_file_beside(rows[i].from, rows[i].path);
        assert_string_equal(got, rows[i].expected);
        free(got);
    }
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, enter_scratch, leave_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(file_round_trip),
        CASE(file_write_leaves_nothing_behind),
        CASE(file_write_keeps_the_old_file),
        CASE(file_read_errors),
        CASE(file_finds_what_ships),
        CASE(file_beside),
        CASE(a_file_keeps_its_mode),
        CASE(links_are_followed),
        CASE(a_pipe_is_written_to),
        CASE(a_device_is_written_to),
        CASE(standard_output_is_written_to),
        CASE(a_planted_link_is_not_followed),
        CASE(a_draft_is_not_seen),
        CASE(a_dead_writer_leaves_nothing),
        CASE(only_files_are_read),
        CASE(a_large_file_is_refused_unread),
        CASE(text_is_utf_8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
