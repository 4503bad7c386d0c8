/* test_tasks.c: which tasks of a trial --only names, and what one worker tells the others of the
 * end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/tasks.h"
#include "study/told_end.h"
#include "tests/unit/store_fixture.h"

/* "pi" has two rows, one for each of its phases; "table" remembers. */
static hwnas_job four_rows(void)
{
    hwnas_job job = {0};
    static const hwnas_job_device rows[] = {
        {.name = "pi", .spelling = "null", .phase = "prefill"},
        {.name = "pi", .spelling = "null", .phase = "decode"},
        {.name = "table", .spelling = "replay:x.csv#ms"},
        {.name = "gpu", .spelling = "ort"},
    };
    job.goals.devices.n = COUNT(rows);
    memcpy(job.goals.devices.rows, rows, sizeof rows);
    return job;
}

enum { TRAINING = 1 << HWNAS_TASK_TRAINING };

static void words_are_tasks(void **state)
{
    (void)state;
    const hwnas_job job = four_rows();
    static const struct {
        const char *words;
        hwnas_tasks tasks;
        const char *back;
    } rows[] = {
        {"pi", 3, "prefill.pi, decode.pi"},
        {"gpu", 8, "gpu"},
        {"train", TRAINING, "train"},
        {"measure", 11, "prefill.pi, decode.pi, gpu"},
        {"gpu,train", 8 | TRAINING, "gpu, train"},
        {" train , gpu ", 8 | TRAINING, "gpu, train"},
        {"gpu,gpu", 8, "gpu"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_tasks tasks = 0;
        assert_int_equal(hwnas_tasks_parse(&tasks, rows[i].words, &job), HWNAS_OK);
        assert_int_equal(tasks, rows[i].tasks);
        char *back = hwnas_tasks_words(tasks, &job);
        assert_string_equal(back, rows[i].back);
        free(back);
    }
    assert_int_equal(hwnas_tasks_first(8 | TRAINING), 3);
    assert_int_equal(hwnas_tasks_first(0), HWNAS_N_TRIAL_TASKS);
}

static void refuse(const char *words, const hwnas_job *job, const char *message, const char *hint)
{
    hwnas_tasks tasks = 77;
    assert_int_equal(hwnas_tasks_parse(&tasks, words, job), HWNAS_E_USAGE);
    assert_int_equal(tasks, 77);
    assert_non_null(strstr(hwnas_last_error()->message, message));
    assert_non_null(strstr(hwnas_last_error()->hint, hint));
}

static void other_words_are_refused(void **state)
{
    (void)state;
    hwnas_job job = four_rows();
    static const char *const none[] = {"",    ",",        "gpu,",   "p",
                                       "pip", "measured", "trains", "gpu train"};
    for (size_t i = 0; i < COUNT(none); i++)
        refuse(none[i], &job, "is no task of this job's trials", "it has measure, train, pi, gpu;");
    refuse("gpu,table", &job, "the device 'table' runs no networks",
           "it has measure, train, pi, gpu;");
    job.goals.devices.rows[0] = job.goals.devices.rows[2];
    job.goals.devices.n = 1;
    refuse("measure", &job, "'measure' is no task of this job's trials", "it has train;");
}

static void an_end_is_told(void **state)
{
    (void)state;
    hwnas_store *store = open_ok(HWNAS_STORE_CREATE);
    char *why;
    assert_int_equal(hwnas_told_end_read(&why, store, 5, 60), HWNAS_OK);
    assert_null(why);
    /* The strategy has no more: whatever time there is. */
    assert_int_equal(hwnas_told_end_write(store, "all were tried", 5, NAN), HWNAS_OK);
    for (int minutes = 0; minutes < 2; minutes++) {
        assert_int_equal(hwnas_told_end_read(&why, store, 5, 60 * minutes), HWNAS_OK);
        assert_string_equal(why, "all were tried");
        free(why);
    }
    /* Another trial was asked for after it. */
    assert_int_equal(hwnas_told_end_read(&why, store, 6, 60), HWNAS_OK);
    assert_null(why);
    /* The time is over, unless there is more of it now. */
    const double third = 100.0 / 3;
    assert_int_equal(hwnas_told_end_write(store, "the time is over", 6, third), HWNAS_OK);
    assert_int_equal(hwnas_told_end_read(&why, store, 6, 2 * third), HWNAS_OK);
    assert_null(why);
    assert_int_equal(hwnas_told_end_read(&why, store, 6, third + 0.01), HWNAS_OK);
    assert_null(why);
    assert_int_equal(hwnas_told_end_read(&why, store, 6, INFINITY), HWNAS_OK);
    assert_null(why);
    const double no_more[] = {third, nextafter(third, INFINITY), nextafter(third, 0), third / 2};
    for (size_t i = 0; i < sizeof no_more / sizeof *no_more; i++) {
        assert_int_equal(hwnas_told_end_read(&why, store, 6, no_more[i]), HWNAS_OK);
        assert_non_null(why);
        assert_string_equal(why, "the time is over");
        free(why);
    }
    /* Damaged. */
    assert_int_equal(hwnas_store_set(store, "exhausted", "{\"trials\": \"6\", \"why\": 3}"),
                     HWNAS_OK);
    assert_int_equal(hwnas_told_end_read(&why, store, 6, third), HWNAS_OK);
    assert_null(why);
    hwnas_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_tasks),
        cmocka_unit_test(other_words_are_refused),
        CASE(an_end_is_told),
    };
    return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
