/* What the library reports, as another program sees it. */
#define _GNU_SOURCE /* mkdtemp() */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <hwnas/profile.h>
#include <hwnas/training.h>

#include "api_fixture.h"

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

/* ---- Profiles ---- */

/* A path in the folder of the test; valid until the third call after this one. */
static const char *beside(const char *folder, const char *name)
{
    static char paths[3][96];
    static int n;
    char *path = paths[n++ % 3];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static hwnas_report *profile(hwnas_profile_options *options)
{
    static const char *const models[] = {"mnist_mlp"}, *const devices[] = {"null"};
    hwnas_report *report = NULL;
    options->models = models;
    options->n_models = 1;
    options->devices = devices;
    options->n_devices = 1;
    options->seconds = 0.05;
    assert_int_equal(hwnas_models_profile(&report, options), HWNAS_OK);
    return report;
}

static void profiles_and_compares(void **state)
{
    static const int batches[] = {1, 4};
    const char *path = beside(*state, "here.json");
    hwnas_profile_options options = HWNAS_PROFILE_OPTIONS_INIT;
    options.batches = batches;
    options.n_batches = 2;
    options.save = path;
    options.name = "here";
    hwnas_report *report = profile(&options);
    assert_int_equal(hwnas_report_conclude(report), HWNAS_OK);
    char *csv = NULL;
    assert_int_equal(hwnas_report_write(&csv, report, HWNAS_CSV), HWNAS_OK);
    assert_non_null(strstr(csv, "mnist_mlp"));
    hwnas_free(csv);
    json_t *json = json_of(report), *rows = json_object_get(json, "rows");
    assert_true(is_format(json, "hwnas.profile"));
    assert_int_equal(json_array_size(rows), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 1), "batch")), 4);
    json_decref(json);

    /* What was kept is compared without another measurement. */
    const hwnas_recorded_profile recorded = {NULL, path};
    hwnas_compare_options compare = HWNAS_COMPARE_OPTIONS_INIT;
    compare.recorded = &recorded;
    compare.n_recorded = 1;
    assert_int_equal(hwnas_compare(&report, &compare), HWNAS_OK);
    assert_int_equal(hwnas_report_conclude(report), HWNAS_OK);
    json = json_of(report);
    assert_true(is_format(json, "hwnas.comparison"));
    json_decref(json);
    compare.target = 1e-12; /* seconds: nothing is so fast */
    assert_int_equal(hwnas_compare(&report, &compare), HWNAS_OK);
    assert_int_equal(hwnas_report_conclude(report), HWNAS_E_INFEASIBLE);
    hwnas_report_free(report);

    hwnas_baseline_options baseline = HWNAS_BASELINE_OPTIONS_INIT;
    baseline.recorded = path;
    baseline.tolerance = 0.99;
    assert_int_equal(hwnas_compare_baseline(&report, &baseline), HWNAS_OK);
    json = json_of(report);
    assert_true(is_format(json, "hwnas.baseline"));
    json_decref(json);
}

static void refuses_settings_that_cannot_be(void **state)
{
    (void)state;
    static const int none[] = {0}, two[] = {2};
    static const char *const models[] = {"mnist_mlp"};
    hwnas_report *report = NULL;
    hwnas_profile_options options = HWNAS_PROFILE_OPTIONS_INIT;
    hwnas_compare_options compare = HWNAS_COMPARE_OPTIONS_INIT;
    assert_int_equal(hwnas_models_profile(&report, &options), HWNAS_E_USAGE);
    options.models = models;
    options.n_models = 1;
    options.batches = none;
    options.n_batches = 1;
    assert_int_equal(hwnas_models_profile(&report, &options), HWNAS_E_USAGE);
    options.n_batches = 0;
    options.streams = two;
    options.n_streams = 1;
    options.verifies = true;
    assert_int_equal(hwnas_models_profile(&report, &options), HWNAS_E_USAGE);
    options.verifies = false;
    options.mode = "cold";
    assert_int_equal(hwnas_models_profile(&report, &options), HWNAS_E_USAGE);
    options.mode = NULL;
    options.save = "/nonexistent/x.json";
    assert_int_equal(hwnas_models_profile(&report, &options), HWNAS_E_IO);
    assert_int_equal(hwnas_compare(&report, &compare), HWNAS_E_USAGE);
    assert_int_equal(hwnas_compare_baseline(&report, NULL), HWNAS_E_USAGE);
    assert_null(report);
}

/* ---- Trainings ---- */

static void suggests_and_takes_results(void **state)
{
    hwnas_report *report = NULL;
    hwnas_suggestion_options suggestion = HWNAS_SUGGESTION_OPTIONS_INIT;
    hwnas_results_options results = HWNAS_RESULTS_OPTIONS_INIT;
    suggestion.n = 3;
    suggestion.pool = 12;
    assert_int_equal(hwnas_space_suggest(&report, "nas_bench_macro", &suggestion), HWNAS_OK);
    char *table = text_of(report, HWNAS_CSV), *line = table;
    assert_int_equal(strncmp(table, "space,code,macs_count,params_count,accuracy_pct\n", 48), 0);
    /* The results are filled in: a number behind the last comma of each line. */
    char *path = strdup(beside(*state, "results.csv"));
    FILE *file = fopen(path, "w");
    for (int n = 0; (line = strtok(n ? NULL : table, "\n")); n++)
        fprintf(file, n ? "%s9%d.5\n" : "%s\n", line, n);
    assert_int_equal(fclose(file), 0);
    hwnas_free(table);
    results.data = path;
    results.into = beside(*state, "all.csv");
    assert_int_equal(hwnas_results_import(&report, &results), HWNAS_OK);
    json_t *json = json_of(report);
    assert_true(is_format(json, "hwnas.import"));
    assert_int_equal(json_integer_value(json_object_get(json, "taken")), 3);
    json_decref(json);

    report = NULL;
    suggestion.folder = *state; /* it is there */
    assert_int_equal(hwnas_space_suggest(&report, "nas_bench_macro", &suggestion), HWNAS_E_INPUT);
    results.printed = "permille";
    assert_int_equal(hwnas_results_import(&report, &results), HWNAS_E_USAGE);
    assert_null(report);
    free(path);
}

static void judges_a_predictor(void **state)
{
    const char *data = HWNAS_TEST_DATA "/nas_bench_macro.csv";
    hwnas_report *report = NULL;
    hwnas_predictor *predictor;
    hwnas_space *space = open_space("nas_bench_macro");
    assert_int_equal(
        hwnas_predictor_open(
            &predictor, "table:" HWNAS_TEST_DATA "/nas_bench_macro.csv#acc_top1_pct_mean", space),
        HWNAS_OK);
    /* A table knows its own results: the ranks are the same, the errors are 0. */
    assert_int_equal(hwnas_predictor_judge(&report, predictor, data, NULL), HWNAS_OK);
    json_t *json = json_of(report);
    assert_true(is_format(json, "hwnas.scores"));
    assert_int_equal(json_integer_value(json_object_get(json, "rows")), 6561);
    assert_float_equal(json_number_value(json_object_get(json, "kendall_tau")), 1, 1e-3);
    assert_float_equal(json_number_value(json_object_get(json, "rmse")), 0, 1e-9);
    json_decref(json);
    assert_int_equal(hwnas_predictor_score_table(&report, predictor, data), HWNAS_OK);
    char *csv = text_of(report, HWNAS_CSV);
    assert_int_equal(strncmp(csv, "code,mean,sd\n", 13), 0);
    hwnas_free(csv);
    hwnas_predictor_close(predictor);

    assert_int_equal(hwnas_space_encode(&report, space, data, NULL), HWNAS_OK);
    csv = text_of(report, HWNAS_CSV);
    assert_int_equal(strncmp(csv, "code,", 5), 0);
    hwnas_free(csv);
    report = NULL;
    assert_int_equal(hwnas_space_encode(&report, space, data, "two-hot"), HWNAS_E_USAGE);
    hwnas_fitting_options fitting = HWNAS_FITTING_OPTIONS_INIT;
    assert_int_equal(hwnas_results_fit(&report, &fitting), HWNAS_E_USAGE);
    fitting.space = "nas_bench_macro";
    fitting.data = fitting.out = data; /* it would be written over what is read */
    fitting.target = "acc_top1_pct_mean";
    assert_int_equal(hwnas_results_fit(&report, &fitting), HWNAS_E_INPUT);
    assert_null(report);
    hwnas_space_close(space);
    (void)state;
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
        cmocka_unit_test_setup_teardown(profiles_and_compares, make_folder, remove_folder),
        cmocka_unit_test(refuses_settings_that_cannot_be),
        cmocka_unit_test_setup_teardown(suggests_and_takes_results, make_folder, remove_folder),
        cmocka_unit_test(judges_a_predictor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
