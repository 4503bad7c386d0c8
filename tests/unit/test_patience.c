/* test_patience.c: how long a worker waits is read as it was meant or refused, and each silence is
 * told once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/patience.h"

static const char variable[] = "HWNAS_WORKER_PATIENCE";

static hwnas_patience read_as(const char *text)
{
    hwnas_patience patience;
    if (text)
        setenv(variable, text, 1);
    else
        unsetenv(variable);
    assert_int_equal(hwnas_patience_read(&patience), HWNAS_OK);
    return patience;
}

static void whole_seconds(void **state)
{
    (void)state;
    assert_true(read_as(NULL).seconds == 3600);
    assert_true(read_as("").seconds == 3600);
    assert_true(read_as("1").seconds == 1);
    assert_true(read_as("0086400").seconds == 86400);
    assert_true(read_as("1000000000").seconds == 1e9);
}

static void anything_else(void **state)
{
    (void)state;
    const char *const wrong[] = {"1h",   "1 h",    "90s",        "0",
                                 "-1",   "+1",     "1.5",        "1e3",
                                 "0x10", " 3",     "1000000001", "99999999999999999999999",
                                 "inf",  "an hour"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hwnas_patience patience = {.seconds = 7};
        setenv(variable, wrong[i], 1);
        assert_int_equal(hwnas_patience_read(&patience), HWNAS_E_INPUT);
        char quoted[40];
        snprintf(quoted, sizeof quoted, "'%s'", wrong[i]); /* the bounds have digits as well */
        assert_non_null(strstr(hwnas_last_error()->message, quoted));
        assert_true(patience.seconds == 7);
    }
}

static int n_notes;

static void count_notes(void *context, hwnas_log_level level, const char *line)
{
    (void)context;
    n_notes += level == HWNAS_LOG_NOTE && strstr(line, "no worker that does gpu is here") != NULL;
}

static void each_silence(void **state)
{
    (void)state;
    hwnas_patience patience = read_as("60");
    hwnas_set_log(count_notes, NULL);
    for (int silence = 1; silence <= 2; silence++) {
        hwnas_patience_renew(&patience);
        assert_int_equal(hwnas_patience_spend(&patience, 1, "gpu", "study"), HWNAS_OK);
        assert_int_equal(n_notes, silence - 1);
        for (int i = 0; i < 59; i++)
            assert_int_equal(hwnas_patience_spend(&patience, 1, "gpu", "study"), HWNAS_OK);
        assert_int_equal(n_notes, silence);
    }
    hwnas_set_log(NULL, NULL);
    assert_int_equal(hwnas_patience_spend(&patience, 1, "gpu", "study"), HWNAS_E_TIMEOUT);
    assert_string_equal(hwnas_last_error()->file, "study");
    assert_non_null(strstr(hwnas_last_error()->message, "no worker that does gpu was here for 60"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_seconds),
                                       cmocka_unit_test(anything_else),
                                       cmocka_unit_test(each_silence)};
    return cmocka_run_group_tests_name("patience", tests, NULL, NULL);
}
