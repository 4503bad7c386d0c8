/* test_kept.c: what is kept of plans and kernels has a limit, and what was used last stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/cudnn/kept.h"

static char place[] = "/tmp/hwnas-kept-XXXXXX";

static char *path_of(const char *name)
{
    return hwnas_printf("%s/%s", place, name);
}

/* 100 bytes that were used so many seconds after 1970. */
static void make(const char *name, int used)
{
    const struct timespec times[] = {{.tv_sec = used}, {.tv_sec = used}};
    char bytes[100] = {0}, *path = path_of(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static bool is_there(const char *name)
{
    char *path = path_of(name);
    const bool there = !access(path, F_OK);
    free(path);
    return there;
}

static void what_was_used_last_stays(void **state)
{
    (void)state;
    char *bytes, *path = path_of("b.plan");
    size_t n;
    make("a.plan", 1000);
    make("b.plan", 500); /* the oldest, but it is read now */
    make("c.cubin", 2000);
    make("d.plan", 3000);
    make("of-the-user.txt", 1);
    assert_true(hwnas_kept_read(&bytes, &n, path));
    assert_int_equal(n, 100);
    free(bytes);
    hwnas_kept_prune(place, 400);
    assert_true(is_there("a.plan"));
    hwnas_kept_prune(place, 250);
    assert_false(is_there("a.plan"));
    assert_false(is_there("c.cubin"));
    assert_true(is_there("b.plan") && is_there("d.plan") && is_there("of-the-user.txt"));
    free(path);
}

static void nothing_is_kept_where_nothing_shall_be(void **state)
{
    (void)state;
    char *path;
    setenv("HWNAS_PLANS", "", 1);
    assert_null(hwnas_kept_path("a.plan"));
    setenv("HWNAS_PLANS", place, 1);
    path = hwnas_kept_path("e.plan");
    hwnas_kept_write(path, "text", 4);
    assert_true(is_there("e.plan"));
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_used_last_stays),
        cmocka_unit_test(nothing_is_kept_where_nothing_shall_be),
    };
    if (!mkdtemp(place))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char *command = hwnas_printf("rm -r '%s'", place);
    const int left = system(command);
    free(command);
    return failed || left;
}
