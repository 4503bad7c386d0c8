/* test_handover.c: what a trial has from its first tasks comes to the next worker as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/handover.h"

static hwnas_trial half_done(void)
{
    hwnas_trial trial = {.number = 3,
                         .seconds = 0.1 + 0.2,
                         .is_unstable = true,
                         .is_stopped_early = true,
                         .detail = hwnas_strdup("{\"run_seconds\":1e-3,\"words\":\"\\\"\xc3\xa4\"}")};
    const hwnas_value_row rows[] = {
        {"params", 5e6, NAN, NAN, "params", HWNAS_COMPUTED, 0},
        {"latency.p50 on a", 1.0 / 3, 0.1, 1e300, "s", HWNAS_MEASURED, 0},
        {"accuracy", -0.0, NAN, 5e-324, "%", HWNAS_EXTRAPOLATED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        hwnas_trial_add(&trial, &rows[i]);
    return trial;
}

static void assert_same_double(double a, double b)
{
    assert_true(isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof a));
}

static void all_comes_back(void **state)
{
    (void)state;
    hwnas_trial given = half_done(), got = {.number = 3};
    char *text = hwnas_handover_write(&given);
    assert_true(hwnas_handover_read(&got, text));
    assert_string_equal(got.detail, given.detail);
    assert_same_double(got.seconds, given.seconds);
    assert_true(got.is_unstable && got.is_stopped_early);
    assert_int_equal(got.n_values, given.n_values);
    for (size_t i = 0; i < got.n_values; i++) {
        const hwnas_value_row *a = &given.values[i], *b = &got.values[i];
        assert_string_equal(a->metric, b->metric);
        assert_string_equal(a->unit, b->unit);
        assert_int_equal(a->source, b->source);
        assert_same_double(a->value, b->value);
        assert_same_double(a->low, b->low);
        assert_same_double(a->high, b->high);
    }
    free(text);
    hwnas_trial_done(&given);
    hwnas_trial_done(&got);
}

static void nothing_is_there_at_first(void **state)
{
    (void)state;
    hwnas_trial got = {.number = 3};
    assert_true(hwnas_handover_read(&got, NULL));
    assert_int_equal(got.n_values, 0);
    assert_null(got.detail);
}

/* Each text that is cut short, or has a byte changed, is read or refused as a whole. */
static void damaged_text(void **state)
{
    (void)state;
    hwnas_trial given = half_done();
    char *text = hwnas_handover_write(&given);
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        static const char others[] = "x\"]}0";
        for (size_t k = 0; k < sizeof others; k++) {
            char *copy = hwnas_strdup(text);
            hwnas_trial got = {.number = 3};
            copy[i] = others[k]; /* the last one cuts it */
            if (!hwnas_handover_read(&got, copy)) {
                assert_int_equal(got.n_values, 0);
                assert_null(got.detail);
            } else {
                assert_int_equal(got.n_values, given.n_values);
            }
            hwnas_trial_done(&got);
            free(copy);
        }
    }
    free(text);
    hwnas_trial_done(&given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_comes_back),
        cmocka_unit_test(nothing_is_there_at_first),
        cmocka_unit_test(damaged_text),
    };
    return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
