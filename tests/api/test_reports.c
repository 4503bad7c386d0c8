/* What the library reports, as another program sees it. */
#define _GNU_SOURCE /* mkdtemp() */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <hwnas/profile.h>

#include "report_fixture.h"

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

static hwnas_space *open_space(const char *name)
{
    hwnas_space *space = NULL;
    assert_int_equal(hwnas_space_open(&space, name), HWNAS_OK);
    return space;
}

/* ---- Reports ---- */

static void gives_a_report_in_its_formats(void **state)
{
    (void)state;
    hwnas_report *report;
    char *text, *untouched = NULL;
    assert_int_equal(hwnas_library_versions(&report), HWNAS_OK);
    assert_int_equal(hwnas_report_write(&text, report, HWNAS_TEXT), HWNAS_OK);
    assert_non_null(strstr(text, HWNAS_VERSION "\n"));
    assert_non_null(strstr(text, "oneDNN"));
    hwnas_free(text);
    assert_int_equal(hwnas_report_write(&untouched, report, HWNAS_CSV), HWNAS_E_UNSUPPORTED);
    assert_int_equal(hwnas_report_write(&untouched, report, HWNAS_N_FORMATS), HWNAS_E_UNSUPPORTED);
    assert_null(untouched);
    assert_int_equal(hwnas_report_conclude(report), HWNAS_OK);
    assert_null(hwnas_report_note(report, 0));
    assert_null(hwnas_report_file(report, 0, NULL));
    json_t *json = json_of(report);
    assert_true(is_format(json, "hwnas.version"));
    assert_string_equal(json_string_value(json_object_get(json, "hwnas")), HWNAS_VERSION);
    json_decref(json);
    hwnas_report_free(NULL);
}

static void cleans_what_goes_to_a_terminal(void **state)
{
    (void)state;
    static const char *const names[] = {"batch", "threads", NULL};
    char text[] = "a\x1b[31mb\tc\xff";
    hwnas_clean(text, "\t");
    assert_string_equal(text, "a [31mb\tc?");
    assert_string_equal(hwnas_nearest("treads", names), "threads");
    assert_null(hwnas_nearest("zebra", names));
}

/* ---- Spaces and networks ---- */

static void reports_on_a_space(void **state)
{
    (void)state;
    hwnas_report *report;
    hwnas_space *space = open_space("nas_bench_macro");
    assert_int_equal(hwnas_space_report(&report, space), HWNAS_OK);
    json_t *json = json_of(report), *row;
    assert_true(is_format(json, "hwnas.space"));
    assert_string_equal(json_string_value(json_object_get(json, "encodings_exact")), "6561");
    json_decref(json);

    /* 3^8 codes; those that end in identities build the same network. */
    assert_int_equal(hwnas_space_count_networks(&report, space), HWNAS_OK);
    json = json_of(report);
    assert_int_equal(json_integer_value(json_object_get(json, "encodings")), 6561);
    assert_true(json_integer_value(json_object_get(json, "distinct")) <= 6561);
    assert_true(json_is_true(json_object_get(json, "distinct_is_exact")));
    json_decref(json);

    assert_int_equal(hwnas_space_sample_networks(&report, space, 3, 5), HWNAS_OK);
    json = json_of(report);
    assert_int_equal(json_array_size(json_object_get(json, "archs")), 3);
    row = json_array_get(json_object_get(json, "archs"), 2);
    hwnas_network *network;
    assert_int_equal(hwnas_network_open_in(&network, space,
                                           json_string_value(json_object_get(row, "arch")), NULL),
                     HWNAS_OK);
    assert_int_equal(json_integer_value(json_object_get(row, "params")),
                     hwnas_network_costs(network)->params);
    hwnas_network_close(network);
    json_decref(json);
    hwnas_space_close(space);

    assert_int_equal(hwnas_space_validate(&report, "bert"), HWNAS_OK);
    char *text = text_of(report, HWNAS_TEXT);
    assert_non_null(strstr(text, ": good; "));
    hwnas_free(text);
    report = NULL;
    assert_int_equal(hwnas_space_validate(&report, "no_such_space"), HWNAS_E_NOT_FOUND);
    assert_null(report);
}

/* A network of the zoo leaves nothing to choose, in an open space as well. */
static void draws_the_only_network_of_a_space(void **state)
{
    (void)state;
    hwnas_network *network;
    hwnas_space *space = open_space("resnet50");
    assert_int_equal(hwnas_network_open_in(&network, space, NULL, NULL), HWNAS_OK);
    char *dot = network_text(network, HWNAS_DOT), *text = network_text(network, HWNAS_TEXT);
    assert_int_equal(strncmp(dot, "digraph", 7), 0);
    assert_non_null(strstr(text, "25557032")); /* torchvision's resnet50 */
    hwnas_free(text);
    hwnas_free(dot);
    hwnas_network_close(network);
    hwnas_space_close(space);
}

/* ---- What devices do ---- */

static void knows_what_this_machine_can_do(void **state)
{
    (void)state;
    hwnas_report *report = NULL;
    hwnas_survey_options options = HWNAS_SURVEY_OPTIONS_INIT;
    const volatile sig_atomic_t cancel = 1;
    options.cancel = &cancel;
    options.refresh = true;
    setenv("HWNAS_RUNNER", getenv("HWNAS"), 1); /* not installed yet */
    assert_int_equal(hwnas_devices_survey(&report, &options), HWNAS_E_INTERRUPTED);
    assert_null(report);
}

static void forecasts_for_devices_that_tell(void **state)
{
    (void)state;
    hwnas_report *report = NULL;
    hwnas_network *network;
    hwnas_forecast_options options = HWNAS_FORECAST_OPTIONS_INIT;
    options.device = "cpu";
    assert_int_equal(hwnas_network_open(&network, "mnist_mlp", NULL, NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_forecast(&report, network, &options), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "does not tell"));
    assert_null(report);
    hwnas_network_close(network);
}

static void note_words(void *context, const char *words)
{
    assert_non_null(strstr(words, "networks"));
    ++*(int *)context;
}

static void calibrates_for_a_time(void **state)
{
    (void)state;
    int n_calls = 0;
    hwnas_report *report = NULL;
    hwnas_space *space = open_space("nas_bench_macro");
    hwnas_calibration_options options = HWNAS_CALIBRATION_OPTIONS_INIT;
    options.device = "null";
    options.threads = 1;
    options.seconds = 1;
    options.progress = note_words;
    options.context = &n_calls;
    setenv("HWNAS_RUNNER", getenv("HWNAS"), 1); /* not installed yet */
    setenv("XDG_CACHE_HOME", *state, 1);
    assert_int_equal(hwnas_space_calibrate(&report, space, &options), HWNAS_OK);
    assert_int_equal(hwnas_report_conclude(report), HWNAS_OK);
    json_t *json = json_of(report);
    assert_true(is_format(json, "hwnas.calibration"));
    assert_true(json_integer_value(json_object_get(json, "measured")) > 0);
    assert_true(n_calls > 0);
    json_decref(json);
    options.batch = -1;
    assert_int_equal(hwnas_space_calibrate(&report, space, &options), HWNAS_E_INPUT);
    hwnas_space_close(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_a_report_in_its_formats),
        cmocka_unit_test(cleans_what_goes_to_a_terminal),
        cmocka_unit_test(reports_on_a_space),
        cmocka_unit_test(draws_the_only_network_of_a_space),
        cmocka_unit_test(knows_what_this_machine_can_do),
        cmocka_unit_test(forecasts_for_devices_that_tell),
        cmocka_unit_test_setup_teardown(calibrates_for_a_time, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
