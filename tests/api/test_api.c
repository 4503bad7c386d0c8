/* The library as another program sees it: only hwnas.h and the exported symbols. */
#define _GNU_SOURCE /* uselocale() */
#include <jansson.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hwnas.h"

/* A folder of its own for each test. */
static int make_folder(void **state)
{
    static char folder[32];
    strcpy(folder, "test_api.XXXXXX");
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
    return system(command);
}

/* FOLDER/NAME; valid until the third call after this one. */
static const char *beside(const char *folder, const char *name)
{
    static char paths[3][96];
    static int n;
    char *path = paths[n++ % 3];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* A job on published numbers that writes its winner to EXPORT.yaml and EXPORT.py. */
static const char *write_job(const char *folder, const char *export)
{
    const char *path = beside(folder, "job.yaml");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "space: nas_bench_macro\n"
            "accuracy: table:" HWNAS_TEST_DATA "/nas_bench_macro.csv#acc_top1_pct_mean\n"
            "device: replay:" HWNAS_TEST_DATA "/nas_bench_macro.csv#macs_count\n"
            "objectives: [accuracy, macs]\n"
            "constraints: [macs <= 80.5 M]\n"
            "budget: {trials: 20}\n"
            "study: %s/job.db\n"
            "export: {yaml: %s.yaml, pytorch: %s.py}\n",
            folder, export, export);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* The parameters of a network that leaves no choice, or of one of a space. */
static json_int_t count_params(const char *space, const char *code)
{
    char *text = NULL;
    assert_int_equal(hwnas_describe(&text, space, code, 1), HWNAS_OK);
    json_t *json = json_loads(text, 0, NULL);
    const json_int_t params = json_integer_value(json_object_get(json, "params"));
    json_decref(json);
    free(text);
    assert_true(params > 0);
    return params;
}

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

static void writes_the_winner_where_the_job_says(void **state)
{
    char best[64], *text = NULL;
    snprintf(best, sizeof best, "%s/best", (const char *)*state);
    assert_int_equal(hwnas_search(&text, write_job(*state, best), NULL), HWNAS_OK);
    json_t *json = json_loads(text, 0, NULL), *winner = json_object_get(json, "winner");
    const char *code = json_string_value(json_object_get(winner, "arch"));
    assert_non_null(code);
    assert_int_equal(count_params(beside(*state, "best.yaml"), NULL),
                     count_params("nas_bench_macro", code));
    assert_int_equal(access(beside(*state, "best.py"), R_OK), 0);
    json_decref(json);
    free(text);
}

/* An export that cannot be written is told before anything is searched. */
static void refuses_an_export_first(void **state)
{
    char *text = NULL;
    assert_int_equal(hwnas_search(&text, write_job(*state, "/nonexistent/best"), NULL), HWNAS_E_IO);
    assert_null(text);
    assert_non_null(strstr(hwnas_last_error()->message, "/nonexistent/best"));
    assert_int_not_equal(access(beside(*state, "job.db"), F_OK), 0);
}

/* A study of that name would have no JSON: it is told before anything is searched. */
static void refuses_a_study_that_is_not_utf8(void **state)
{
    const char *job = write_job(*state, "best"), *study = beside(*state, "n\xff.db");
    const hwnas_search_options options = {.study = study};
    char *text = NULL;
    assert_int_not_equal(hwnas_search(&text, job, &options), HWNAS_OK);
    assert_null(text);
    assert_int_equal(hwnas_status_exit_code(hwnas_last_error()->status), 2);
    assert_non_null(strstr(hwnas_last_error()->message, "UTF-8"));
    assert_int_not_equal(access(study, F_OK), 0);
}

/* Puts the program into a locale with a decimal comma, made in a folder. */
static bool use_decimal_comma(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             folder, folder);
    const bool is_made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    return is_made && setlocale(LC_ALL, "de_DE.UTF-8") && !strcmp(localeconv()->decimal_point, ",");
}

static int leave_locale(void **state)
{
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    return remove_folder(state);
}

/* Numbers of files have points, whatever the program that calls the library is used to. */
static void does_not_follow_the_locale(void **state)
{
    double mean;
    char *plain = NULL, *text = NULL, best[64];
    const char *table = "table:" HWNAS_TEST_DATA "/nas_bench_macro.csv#acc_top1_pct_mean";
    assert_int_equal(hwnas_describe(&plain, "nas_bench_macro", "22212220", 1), HWNAS_OK);
    if (!use_decimal_comma(*state)) {
        print_message("no locale with a decimal comma: needs localedef and /usr/share/i18n\n");
        free(plain);
        skip();
    }
    assert_int_equal(hwnas_predict(&mean, NULL, table, "nas_bench_macro", "22212220"), HWNAS_OK);
    assert_float_equal(mean, 93.1267, 1e-9);
    assert_int_equal(hwnas_describe(&text, "nas_bench_macro", "22212220", 1), HWNAS_OK);
    assert_string_equal(text, plain);
    free(text);
    free(plain);
    snprintf(best, sizeof best, "%s/best", (const char *)*state);
    assert_int_equal(hwnas_search(&text, write_job(*state, best), NULL), HWNAS_OK);
    assert_non_null(strstr(text, "\"macs <= 80.5 M\""));
    free(text);
    assert_string_equal(localeconv()->decimal_point, ",");
}

/* A thread may have a locale of its own, and keeps it, also when a call fails. */
static void leaves_the_locale_of_a_thread(void **state)
{
    (void)state;
    char *text = NULL;
    locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    const locale_t before = uselocale(own);
    assert_int_equal(hwnas_describe(&text, "nas_bench_macro", "22212220", 1), HWNAS_OK);
    assert_ptr_equal(uselocale((locale_t)0), own);
    assert_int_equal(hwnas_write("/nonexistent/x", "onnx", "nas_bench_macro", "22212220", 1),
                     HWNAS_E_IO);
    assert_ptr_equal(uselocale((locale_t)0), own);
    uselocale(before);
    freelocale(own);
    free(text);
}

static void tells_what_is_wrong(void **state)
{
    (void)state;
    char *json = NULL;
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", "2221222x", 1), HWNAS_E_INPUT);
    assert_null(json);
    assert_non_null(strstr(hwnas_last_error()->message, "'x' is not a value of 'op'"));
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", NULL, 1), HWNAS_E_INPUT);
    assert_int_equal(hwnas_describe(&json, "nas_bench_macro", "22212220", 0), HWNAS_E_INPUT);
    assert_int_equal(hwnas_write("/nonexistent/x", "onnx", "nas_bench_macro", "22212220", 1),
                     HWNAS_E_IO);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INPUT), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_a_network),
        cmocka_unit_test(predicts_what_the_table_says),
        cmocka_unit_test(measures_in_a_child),
        cmocka_unit_test(searches_a_job),
        cmocka_unit_test(tells_what_is_wrong),
        cmocka_unit_test_setup_teardown(writes_the_winner_where_the_job_says, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(refuses_an_export_first, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refuses_a_study_that_is_not_utf8, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(does_not_follow_the_locale, make_folder, leave_locale),
        cmocka_unit_test(leaves_the_locale_of_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
