/* test_base.c: statuses, memory, strings and the clock of src/base. */
#include <gmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/unit/base_fixture.h"

/* Status */

static void status_names(void **state)
{
    (void)state;
    for (int i = 0; i < HWNAS_N_STATUS; i++) {
        const char *name = hwnas_status_name((hwnas_status)i);
        assert_non_null(name);
        assert_int_equal(hwnas_status_from_name(name), i);
    }
    assert_int_equal(hwnas_status_from_name("nonsense"), HWNAS_N_STATUS);
    assert_string_equal(hwnas_status_name(HWNAS_N_STATUS), "unknown");
    assert_int_equal(hwnas_status_exit_code(HWNAS_OK), 0);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_CRASHED), 1);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INPUT), 2);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INFEASIBLE), 3);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_DISTURBED), 4);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INTERRUPTED), 130);
}

static void status_record(void **state)
{
    (void)state;
    hwnas_place place = {.file = "a.yaml", .line = 3, .column = 7};
    assert_int_equal(hwnas_fail(HWNAS_E_INPUT, &place, "kernel %d is even", 6), HWNAS_E_INPUT);
    assert_int_equal(hwnas_hint(HWNAS_E_INPUT, "use 3, 5 or %d", 7), HWNAS_E_INPUT);
    assert_int_equal(hwnas_context(HWNAS_E_INPUT, "stage '%s'", "b2"), HWNAS_E_INPUT);
    const hwnas_error *e = hwnas_last_error();
    assert_int_equal(e->status, HWNAS_E_INPUT);
    assert_string_equal(e->message, "stage 'b2': kernel 6 is even");
    assert_string_equal(e->hint, "use 3, 5 or 7");
    assert_string_equal(e->file, "a.yaml");
    assert_int_equal(e->line, 3);
    assert_int_equal(e->column, 7);

    /* A new failure may quote the old one and keeps nothing else of it. */
    assert_int_equal(hwnas_fail(HWNAS_E_IO, NULL, "again: %s", e->message), HWNAS_E_IO);
    assert_string_equal(e->message, "again: stage 'b2': kernel 6 is even");
    assert_string_equal(e->hint, "");
    assert_string_equal(e->file, "");
    assert_int_equal(e->line, 0);
}

static void status_long_messages_are_cut(void **state)
{
    (void)state;
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    hwnas_place place = {.file = text};
    assert_int_equal(hwnas_fail(HWNAS_E_IO, &place, "%s", text), HWNAS_E_IO);
    assert_int_equal(hwnas_hint(HWNAS_E_IO, "%s", text), HWNAS_E_IO);
    assert_int_equal(hwnas_context(HWNAS_E_IO, "%s", text), HWNAS_E_IO);
    const hwnas_error *e = hwnas_last_error();
    assert_true(strlen(e->message) < sizeof e->message);
    assert_true(strlen(e->hint) < sizeof e->hint);
    assert_true(strlen(e->file) < sizeof e->file);
}

/* Memory and strings */

static void arena_blocks(void **state)
{
    (void)state;
    hwnas_arena *arena = hwnas_arena_new();
    enum { N = 300 };
    unsigned char *blocks[N];
    for (size_t i = 0; i < N; i++) {
        size_t size = (i * i) % 9001;
        blocks[i] = hwnas_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < (i * i) % 9001; k++)
            assert_int_equal(blocks[i][k], i % 251);
    assert_string_equal(hwnas_arena_string(arena, "abcdef", 3), "abc");
    assert_string_equal(hwnas_arena_printf(arena, "%s-%d", "x", 12), "x-12");
    assert_memory_equal(hwnas_arena_copy(arena, "\0a\0b", 4), "\0a\0b", 4);
    hwnas_arena_free(arena);
    hwnas_arena_free(NULL);
}

static void memory_refused(void **state)
{
    (void)state;
    void *p = NULL;
    assert_int_equal(hwnas_try_alloc(&p, SIZE_MAX - 5, "the weights"), HWNAS_E_MEMORY);
    assert_contains(hwnas_last_error()->message, "no memory for the weights");
    assert_null(p);
    assert_int_equal(hwnas_try_alloc(&p, 100, "the weights"), HWNAS_OK);
    assert_int_equal((uintptr_t)p % 64, 0);
    assert_int_equal(((char *)p)[99], 0);
    free(p);
}

static void strings_grow(void **state)
{
    (void)state;
    hwnas_str str = {0};
    char expected[4000] = "";
    for (int i = 0; i < 500; i++) {
        hwnas_str_addf(&str, "%d,", i);
        sprintf(expected + strlen(expected), "%d,", i);
    }
    assert_string_equal(str.s, expected);
    assert_int_equal(str.n, strlen(expected));
    hwnas_str_addn(&str, "xyz", 2);
    hwnas_str_add(&str, "!");
    assert_true(hwnas_ends_with(str.s, ",xy!"));
    assert_true(hwnas_starts_with(str.s, "0,1,2"));
    assert_false(hwnas_ends_with("b", "ab"));
    assert_false(hwnas_starts_with("a", "ab"));
    hwnas_str_done(&str);
    assert_null(str.s);
}

static void nearest_names(void **state)
{
    (void)state;
    static const char *const names[] = {"latency", "params", "macs", "accuracy", NULL};
    static const struct {
        const char *wrong, *expected;
    } rows[] = {
        {"latnecy", "latency"},
        {"latency_", "latency"},
        {"acuracy", "accuracy"},
        {"mac", "macs"},
        {"param", "params"},
        {"flops", "macs"}, /* as others call it */
        {"int8", NULL},    /* what that means is not among the names */
        {"energy", NULL},
        {"flopss", "macs"}, /* nearly as others call it */
        {"", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *got = hwnas_nearest(rows[i].wrong, names);
        if (rows[i].expected)
            assert_string_equal(got, rows[i].expected);
        else
            assert_null(got);
    }
    char long_word[200];
    memset(long_word, 'm', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_null(hwnas_nearest(long_word, names));
}

static void clock_goes_forward(void **state)
{
    (void)state;
    double then = hwnas_now();
    usleep(2000);
    double seconds = hwnas_now() - then;
    assert_true(seconds >= 0.002 && seconds < 5);
}

/* Memory of libraries */

static size_t n_released;

static void count_released(void *p, size_t size)
{
    n_released += size;
    free(p);
}

/* As GnuTLS does: numbers are cleared when they are freed, and come from GMP's own allocator, which
 * aborts without memory. Runs first: a process guards its libraries once. */
static void gmp_is_guarded_beside_gnutls(void **state)
{
    (void)state;
    void *(*usual)(size_t), *(*allocate)(size_t);
    void (*release)(void *, size_t);
    mp_set_memory_functions(NULL, NULL, count_released);
    mp_get_memory_functions(&usual, NULL, NULL);
    hwnas_guard_libraries();
    mp_get_memory_functions(&allocate, NULL, &release);
    assert_ptr_not_equal(allocate, usual);
    assert_ptr_equal(release, count_released);
    mpz_t number;
    mpz_init_set_ui(number, 3);
    mpz_pow_ui(number, number, 1000);
    mpz_root(number, number, 500); /* 9, if growing lost no digit */
    assert_int_equal(mpz_get_ui(number), 9);
    assert_true(n_released > 0);
    mpz_clear(number);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names),
        cmocka_unit_test(status_record),
        cmocka_unit_test(status_long_messages_are_cut),
        cmocka_unit_test(arena_blocks),
        cmocka_unit_test(memory_refused),
        cmocka_unit_test(strings_grow),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(clock_goes_forward),
        cmocka_unit_test(gmp_is_guarded_beside_gnutls),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
