/* The library as another program sees it: only hwnas.h and the exported symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hwnas.h"

static void describes_a_network(void **state)
{
    (void)state;
    char *json = NULL;
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", "22212220", 1), HWNAS_OK);
    /* The published counts of this row. */
    assert_non_null(strstr(json, "\"params\": 1985514"));
    assert_non_null(strstr(json, "\"macs\": 85164544"));
    free(json);
}

static void predicts_what_the_table_says(void **state)
{
    (void)state;
    double mean, sd;
    assert_int_equal(
        hwnas_predict(&mean, &sd, "table:" HWNAS_TEST_DATA "/nas_bench_macro.csv#acc_top1_pct_mean",
                      "nas_bench_macro", "22212220"),
        HWNAS_OK);
    assert_float_equal(mean, 93.1267, 1e-9);
    assert_float_equal(sd, 0, 0);
}

static void measures_in_a_child(void **state)
{
    (void)state;
    double p50, low, high;
    setenv("HWNAS_RUNNER", getenv("HWNAS"), 1); /* not installed yet */
    assert_int_equal(hwnas_latency(&p50, &low, &high, "cpu", 1, "nas_bench_macro", "00000000", 1),
                     HWNAS_OK);
    assert_true(low > 0 && low <= p50 && p50 <= high);
}

static void searches_a_job(void **state)
{
    (void)state;
    char path[] = "test_api.XXXXXX.db", *json = NULL;
    int fd = mkstemps(path, 3);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    const hwnas_search_options options = {.study = path, .max_trials = 40};
    assert_int_equal(hwnas_search(&json, HWNAS_EXAMPLES "/replay-nb-macro.yaml", &options),
                     HWNAS_OK);
    assert_non_null(strstr(json, "\"format\": \"hwnas.study\""));
    assert_non_null(strstr(json, "\"finished\": 40"));
    free(json);
    unlink(path);
}

static void tells_what_is_wrong(void **state)
{
    (void)state;
    char *json = NULL;
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", "2221222x", 1), HWNAS_E_INPUT);
    assert_null(json);
    assert_non_null(strstr(hwnas_last_error()->message, "'x' is no value of 'op'"));
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", NULL, 1), HWNAS_E_INPUT);
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", "22212220", 0), HWNAS_E_INPUT);
    assert_int_equal(hwnas_write("/nonexistent/x", "onnx", "nas_bench_macro", "22212220", 1),
                     HWNAS_E_IO);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INPUT), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_a_network), cmocka_unit_test(predicts_what_the_table_says),
        cmocka_unit_test(measures_in_a_child), cmocka_unit_test(searches_a_job),
        cmocka_unit_test(tells_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
