/* The library as another program sees it: only hwnas.h and the exported symbols. */
#define _GNU_SOURCE /* uselocale() */
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <cmocka.h>

#include <hwnas.h>

#include "api_fixture.h"

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
    hwnas_network *network;
    assert_int_equal(hwnas_network_open(&network, space, code, NULL), HWNAS_OK);
    const json_int_t params = hwnas_network_costs(network)->params;
    hwnas_network_close(network);
    assert_true(params > 0);
    return params;
}

/* ---- Spaces ---- */

static hwnas_space *open_space(const char *name)
{
    hwnas_space *space = NULL;
    assert_int_equal(hwnas_space_open(&space, name), HWNAS_OK);
    return space;
}

static void lists_all_networks_of_a_space(void **state)
{
    (void)state;
    bool is_exact = false;
    hwnas_space *space = open_space("nas_bench_macro");
    assert_string_equal(hwnas_space_name(space), "nas_bench_macro");
    assert_true(*hwnas_space_about(space));
    char *count = hwnas_space_count(space, &is_exact), *code = NULL, *next = NULL;
    assert_string_equal(count, "6561"); /* 3^8 */
    assert_true(is_exact);
    hwnas_free(count);
    size_t n = 0;
    hwnas_status status;
    while ((status = hwnas_space_next(&next, space, code)) == HWNAS_OK) {
        hwnas_free(code);
        code = next;
        n++;
    }
    assert_int_equal(status, HWNAS_E_EXHAUSTED);
    assert_int_equal(n, 6561);
    hwnas_free(code);
    hwnas_space_close(space);
    hwnas_space_close(NULL);
}

static void samples_by_the_seed(void **state)
{
    (void)state;
    enum { N = 40 };
    hwnas_space *space = open_space("accel_nasbench");
    char *codes[N], *again, *other, *checked;
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(hwnas_space_sample(&codes[i], space, 7, i), HWNAS_OK);
        assert_int_equal(hwnas_space_check(&checked, space, codes[i]), HWNAS_OK);
        assert_string_equal(checked, codes[i]);
        hwnas_free(checked);
        for (uint64_t k = 0; k < i; k++) /* of 10^11 */
            assert_string_not_equal(codes[i], codes[k]);
    }
    assert_int_equal(hwnas_space_sample(&again, space, 7, 3), HWNAS_OK);
    assert_string_equal(again, codes[3]);
    assert_int_equal(hwnas_space_sample(&other, space, 8, 3), HWNAS_OK);
    assert_string_not_equal(other, codes[3]);
    hwnas_free(other);
    assert_int_equal(hwnas_space_mutate(&other, space, codes[3], 0, 7, 0), HWNAS_OK);
    assert_string_not_equal(other, codes[3]);
    hwnas_free(other);
    hwnas_free(again);
    for (int i = 0; i < N; i++)
        hwnas_free(codes[i]);
    hwnas_space_close(space);
}

/* ---- Networks ---- */

static void describes_a_network(void **state)
{
    (void)state;
    char *json;
    hwnas_network *network;
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", NULL), HWNAS_OK);
    /* The published counts of this row. */
    assert_int_equal(hwnas_network_costs(network)->params, 1985514);
    assert_int_equal(hwnas_network_costs(network)->macs, 85164544);
    assert_string_equal(hwnas_network_code(network), "22212220");
    assert_int_equal(strlen(hwnas_network_digest(network)), 32);
    json = network_text(network, HWNAS_JSON);
    assert_non_null(strstr(json, "\"params\": 1985514"));
    assert_non_null(strstr(json, "\"arch\": \"22212220\""));
    hwnas_free(json);
    hwnas_network_close(network);
}

static void knows_the_arrays_of_a_batch(void **state)
{
    (void)state;
    hwnas_network *network;
    hwnas_space *space = open_space("nas_bench_macro");
    hwnas_network_options options = HWNAS_NETWORK_OPTIONS_INIT;
    options.batch = 3;
    assert_int_equal(hwnas_network_open_in(&network, space, "22212220", &options), HWNAS_OK);
    const hwnas_array_info *in = hwnas_network_input(network, 0);
    assert_int_equal(in->rank, 4);
    assert_int_equal(in->dims[0], 3);
    assert_int_equal(in->count, 3 * 3 * 32 * 32);
    assert_string_equal(in->type, "float32");
    assert_int_equal(hwnas_network_output(network, 0)->count, 3 * 10);
    assert_null(hwnas_network_input(network, 1));
    assert_null(hwnas_network_output(network, 1));
    assert_int_equal(hwnas_network_costs(network)->macs, 3 * 85164544);
    hwnas_network_close(network);
    hwnas_space_close(space);
    hwnas_network_close(NULL);
}

/* Runs a network once on an input of ones; `out` has room for its 10 outputs. */
static void run(float *out, const char *device_name, const char *model, const char *code)
{
    hwnas_network *network;
    hwnas_device *device;
    hwnas_exec *exec;
    hwnas_device_options options = HWNAS_DEVICE_OPTIONS_INIT;
    options.threads = 1;
    assert_int_equal(hwnas_network_open(&network, model, code, NULL), HWNAS_OK);
    assert_int_equal(hwnas_device_open(&device, device_name, &options), HWNAS_OK);
    assert_int_equal(hwnas_network_compile(&exec, network, device, NULL), HWNAS_OK);
    const size_t n = (size_t)hwnas_network_input(network, 0)->count;
    assert_int_equal(hwnas_network_output(network, 0)->count, 10);
    hwnas_network_close(network); /* no executable needs it */
    float *in = malloc(n * sizeof *in);
    for (size_t i = 0; i < n; i++)
        in[i] = 1;
    for (int repeat = 0; repeat < 2; repeat++) {
        const float *inputs[] = {in};
        float *outputs[] = {out};
        memset(out, 0, 10 * sizeof *out);
        assert_int_equal(hwnas_exec_run(exec, inputs, outputs), HWNAS_OK);
    }
    free(in);
    hwnas_exec_free(exec);
    hwnas_device_close(device);
}

static void runs_on_arrays(void **state)
{
    char *path = strdup(beside(*state, "n.onnx"));
    hwnas_network *network;
    float cpu[10], ref[10], file[10];
    run(cpu, "cpu", "nas_bench_macro", "00000000");
    run(ref, "ref", "nas_bench_macro", "00000000");
    /* The same weights go through a file. */
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "00000000", NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_export(network, path, "onnx", NULL), HWNAS_OK);
    hwnas_network_close(network);
    run(file, "ref", path, NULL);
    float most = 0;
    for (int i = 0; i < 10; i++)
        most = fmaxf(most, fabsf(ref[i]));
    assert_true(most > 0);
    for (int i = 0; i < 10; i++) {
        assert_float_equal(cpu[i], ref[i], 1e-4 * most);
        assert_float_equal(file[i], ref[i], 1e-6 * most);
    }
    free(path);
}

static void writes_what_a_file_can_hold(void **state)
{
    const char *onnx = beside(*state, "n.onnx"), *yaml = beside(*state, "n.yaml");
    hwnas_network *network, *read;
    hwnas_export_options options = HWNAS_EXPORT_OPTIONS_INIT;
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_export(network, onnx, "onnx", NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_export(network, yaml, "yaml", NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_export(network, yaml, "yml", NULL), HWNAS_E_USAGE);
    options.is_folded = true;
    assert_int_equal(hwnas_network_export(network, yaml, "yaml", &options), HWNAS_E_USAGE);
    assert_int_equal(count_params(yaml, NULL), 1985514);
    assert_int_equal(hwnas_network_open(&read, onnx, NULL, NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_costs(read)->params, 1985514);
    assert_null(hwnas_network_code(read));
    assert_string_equal(hwnas_network_digest(read), hwnas_network_digest(network));
    assert_int_equal(hwnas_network_export(read, yaml, "yaml", NULL), HWNAS_E_UNSUPPORTED);
    assert_int_equal(hwnas_network_export(read, beside(*state, "m"), "pytorch", NULL),
                     HWNAS_E_USAGE);
    char *note = NULL;
    hwnas_export_options module = HWNAS_EXPORT_OPTIONS_INIT;
    module.note = &note;
    assert_int_equal(hwnas_network_export(read, beside(*state, "m.py"), "pytorch", &module),
                     HWNAS_OK);
    assert_non_null(strstr(note, "m.safetensors"));
    hwnas_free(note);
    hwnas_network_close(read);
    hwnas_network_close(network);
}

static void knows_its_devices(void **state)
{
    (void)state;
    const char *name, *help;
    bool has_cpu = false;
    for (size_t i = 0; (name = hwnas_device_list(i, &help)); i++) {
        has_cpu |= !strcmp(name, "cpu");
        assert_true(*help);
    }
    assert_true(has_cpu);
    hwnas_device *device = NULL;
    hwnas_device_info info;
    assert_int_equal(hwnas_device_open(&device, "cpux", NULL), HWNAS_E_NOT_FOUND);
    assert_null(device);
    assert_int_equal(hwnas_device_open(&device, "ref", NULL), HWNAS_OK);
    hwnas_device_describe(&info, device);
    assert_true(info.native & 1u << HWNAS_F32);
    assert_true(info.computes);
    hwnas_device_close(device);
    hwnas_device_close(NULL);
}

/* ---- Options ---- */

/* A program of an older header has a smaller struct, one of a newer header a larger one. */
static void takes_options_of_other_versions(void **state)
{
    (void)state;
    struct {
        hwnas_network_options known;
        long unknown;
    } newer = {{sizeof newer, 2}, 0};
    const struct {
        size_t size;
    } older = {sizeof older};
    hwnas_network *network = NULL;
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", &newer.known),
                     HWNAS_OK);
    assert_int_equal(hwnas_network_input(network, 0)->dims[0], 2);
    hwnas_network_close(network);
    network = NULL;
    newer.unknown = 1;
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", &newer.known),
                     HWNAS_E_UNSUPPORTED);
    assert_null(network);
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220",
                                        (const hwnas_network_options *)(const void *)&older),
                     HWNAS_OK);
    assert_int_equal(hwnas_network_input(network, 0)->dims[0], 1);
    hwnas_network_close(network);
}

/* ---- Predictors ---- */

static void predicts_what_the_table_says(void **state)
{
    (void)state;
    const char *const codes[] = {"22212220", "00000000"}, *const missing[] = {"22212220", "x"};
    hwnas_estimate estimates[2] = {{0}};
    hwnas_predictor *predictor;
    hwnas_space *space = open_space("nas_bench_macro");
    assert_int_equal(
        hwnas_predictor_open(
            &predictor, "table:" HWNAS_TEST_DATA "/nas_bench_macro.csv#acc_top1_pct_mean", space),
        HWNAS_OK);
    assert_string_equal(hwnas_predictor_unit(predictor), "%");
    assert_string_equal(hwnas_predictor_target(predictor), "acc_top1_pct_mean");
    assert_int_equal(hwnas_predictor_score_codes(estimates, predictor, missing, 2), HWNAS_E_INPUT);
    assert_float_equal(estimates[0].mean, 0, 0); /* untouched */
    assert_int_equal(hwnas_predictor_score_codes(estimates, predictor, codes, 2), HWNAS_OK);
    assert_float_equal(estimates[0].mean, 93.1267, 1e-9);
    assert_float_equal(estimates[0].sd, 0, 0);
    assert_true(estimates[1].mean < estimates[0].mean);
    assert_false(estimates[0].is_trained);
    assert_int_equal(hwnas_predictor_score_codes(estimates, predictor, NULL, 0), HWNAS_OK);
    hwnas_predictor_close(predictor);
    hwnas_space_close(space);
}

/* ---- Measuring ---- */

static void note_phase(void *context, const char *phase)
{
    if (!strcmp(phase, "sampling"))
        ++*(int *)context;
}

static void measures_in_one_child(void **state)
{
    (void)state;
    const char *const codes[] = {"00000000", "22212220"};
    int n_sampling = 0;
    hwnas_measurer *measurer;
    hwnas_measurer_options options = HWNAS_MEASURER_OPTIONS_INIT;
    options.threads = 1;
    options.seconds = 0.2;
    options.progress = note_phase;
    options.context = &n_sampling;
    assert_int_equal(hwnas_measurer_open(&measurer, &options), HWNAS_OK);
    for (int i = 0; i < 2; i++) {
        hwnas_network *network;
        hwnas_result *result;
        char *text;
        assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", codes[i], NULL), HWNAS_OK);
        assert_int_equal(hwnas_measurer_measure(&result, measurer, network), HWNAS_OK);
        const hwnas_metric_value *p50 = hwnas_result_find(result, "latency.p50");
        assert_true(p50->low > 0 && p50->low <= p50->value && p50->value <= p50->high);
        assert_string_equal(p50->unit, "s");
        assert_string_equal(p50->source, "measured");
        assert_float_equal(hwnas_result_find(result, "throughput")->value, 1 / p50->value, 1e-6);
        assert_null(hwnas_result_find(result, "accuracy"));
        size_t n = 0;
        while (hwnas_result_value(result, n))
            n++;
        assert_true(n >= 2);
        assert_int_equal(hwnas_result_json(&text, result), HWNAS_OK);
        json_t *json = json_loads(text, 0, NULL);
        const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
        assert_string_equal(json_string_value(json_object_get(json, "format")), "hwnas.profile");
        assert_string_equal(json_string_value(json_object_get(row, "arch")), codes[i]);
        assert_float_equal(json_number_value(json_object_get(row, "p50_seconds")), p50->value, 0);
        json_decref(json);
        hwnas_free(text);
        hwnas_result_free(result);
        hwnas_network_close(network);
    }
    assert_true(n_sampling > 0);
    hwnas_measurer_close(measurer);
    hwnas_measurer_close(NULL);
    hwnas_result_free(NULL);
}

static void stops_measuring_when_asked(void **state)
{
    (void)state;
    const volatile sig_atomic_t cancel = 1;
    hwnas_network *network;
    hwnas_measurer *measurer;
    hwnas_result *result = NULL;
    hwnas_measurer_options options = HWNAS_MEASURER_OPTIONS_INIT;
    options.cancel = &cancel;
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "00000000", NULL), HWNAS_OK);
    assert_int_equal(hwnas_measurer_open(&measurer, &options), HWNAS_OK);
    assert_int_equal(hwnas_measurer_measure(&result, measurer, network), HWNAS_E_INTERRUPTED);
    assert_null(result);
    hwnas_measurer_close(measurer);
    options.mode = "lukewarm";
    assert_int_equal(hwnas_measurer_open(&measurer, &options), HWNAS_E_USAGE);
    options.mode = NULL;
    options.seconds = -1;
    assert_int_equal(hwnas_measurer_open(&measurer, &options), HWNAS_E_INPUT);
    hwnas_network_close(network);
}

/* ---- Searching ---- */

/* The report as JSON. */
static hwnas_status search_json(char **out, const char *job, const hwnas_search_options *options)
{
    hwnas_report *report;
    const hwnas_status status = hwnas_search(&report, job, options);
    if (status == HWNAS_OK)
        *out = text_of(report, HWNAS_JSON);
    return status;
}

/* Adds what is told to a text of 4 KiB. */
static void keep_log(void *context, hwnas_log_level level, const char *line)
{
    char *log = context;
    const size_t n = strlen(log);
    snprintf(log + n, 4096 - n, "%d %s\n", (int)level, line);
}

static void tells_whoever_listens(void **state)
{
    char *log = calloc(1, 4096), *text = NULL, best[64];
    snprintf(best, sizeof best, "%s/best", (const char *)*state);
    hwnas_set_log(keep_log, log);
    assert_int_equal(search_json(&text, write_job(*state, best), NULL), HWNAS_OK);
    hwnas_set_log(NULL, NULL);
    hwnas_free(text);
    assert_non_null(strstr(log, "1 the search is over: all trials were made\n"));
    free(log);
}

static void count_calls(void *context, const hwnas_search_progress *progress)
{
    assert_true(progress->n_done <= progress->max_trials);
    ++*(int *)context;
}

static void searches_a_job(void **state)
{
    (void)state;
    char path[] = "test_api.XXXXXX.db", *json = NULL;
    int fd = mkstemps(path, 3);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    int n_calls = 0;
    hwnas_search_options options = HWNAS_SEARCH_OPTIONS_INIT;
    options.study = path;
    options.max_trials = 40;
    options.progress = count_calls;
    options.context = &n_calls;
    assert_int_equal(search_json(&json, HWNAS_EXAMPLES "/replay-nb-macro.yaml", &options),
                     HWNAS_OK);
    assert_non_null(strstr(json, "\"format\": \"hwnas.study\""));
    assert_non_null(strstr(json, "\"finished\": 40"));
    assert_true(n_calls >= 40);
    free(json);
    unlink(path);
}

static void writes_the_winner_where_the_job_says(void **state)
{
    char best[64], *text = NULL;
    snprintf(best, sizeof best, "%s/best", (const char *)*state);
    assert_int_equal(search_json(&text, write_job(*state, best), NULL), HWNAS_OK);
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
    assert_int_equal(search_json(&text, write_job(*state, "/nonexistent/best"), NULL), HWNAS_E_IO);
    assert_null(text);
    assert_non_null(strstr(hwnas_last_error()->message, "/nonexistent/best"));
    assert_int_not_equal(access(beside(*state, "job.db"), F_OK), 0);
}

/* A study of that name would have no JSON: it is told before anything is searched. */
static void refuses_a_study_that_is_not_utf8(void **state)
{
    const char *job = write_job(*state, "best"), *study = beside(*state, "n\xff.db");
    hwnas_search_options options = HWNAS_SEARCH_OPTIONS_INIT;
    options.study = study;
    char *text = NULL;
    assert_int_not_equal(search_json(&text, job, &options), HWNAS_OK);
    assert_null(text);
    assert_int_equal(hwnas_status_exit_code(hwnas_last_error()->status), 2);
    assert_non_null(strstr(hwnas_last_error()->message, "UTF-8"));
    assert_int_not_equal(access(study, F_OK), 0);
}

static hwnas_report *search(const char *job, const hwnas_search_options *options)
{
    hwnas_report *report = NULL;
    assert_int_equal(hwnas_search(&report, job, options), HWNAS_OK);
    return report;
}

static void tells_what_a_search_came_to(void **state)
{
    const char *remark = "?", *job = write_job(*state, beside(*state, "best"));
    static const hwnas_job_flag narrow[] = {{"constraints", "macs <= 7.8 M and accuracy >= 90 %"},
                                            {0}};
    hwnas_search_options options = HWNAS_SEARCH_OPTIONS_INIT;
    hwnas_report *report = search(job, NULL);
    assert_int_equal(hwnas_report_conclude(report), HWNAS_OK);
    assert_non_null(strstr(hwnas_report_file(report, 0, &remark), "best.py"));
    assert_null(remark);
    assert_non_null(strstr(hwnas_report_file(report, 1, NULL), "best.yaml"));
    assert_null(hwnas_report_file(report, 2, NULL));
    char *text = text_of(report, HWNAS_TEXT);
    assert_non_null(strstr(text, "Pareto front of nas_bench_macro"));
    hwnas_free(text);

    /* The study is there: nothing is lost unasked. */
    report = NULL;
    assert_int_equal(hwnas_search(&report, job, NULL), HWNAS_E_INPUT);
    assert_null(report);
    options.flags = narrow;
    options.overwrite = true;
    report = search(job, &options);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hwnas_report_conclude(report), HWNAS_E_INFEASIBLE);
        assert_non_null(strstr(hwnas_last_error()->message, "the closest is trial"));
        assert_true(*hwnas_last_error()->hint);
        assert_int_not_equal(hwnas_last_error()->status, HWNAS_OK);
    }
    assert_null(hwnas_report_file(report, 0, NULL));
    hwnas_report_free(report);
    options.resume = true;
    report = NULL;
    assert_int_equal(hwnas_search(&report, job, &options), HWNAS_E_USAGE);
    assert_null(report);
}

/* Another program looks at the study, and asks why. */
static void looks_at_a_study(void **state)
{
    const char *job = write_job(*state, beside(*state, "best")), *study = beside(*state, "job.db");
    hwnas_report *report = search(job, NULL);
    char *found = text_of(report, HWNAS_TEXT), *again;
    hwnas_study *opened = NULL;
    assert_int_equal(hwnas_study_read(&opened, study), HWNAS_OK);
    assert_int_equal(hwnas_study_report(&report, opened), HWNAS_OK);
    again = text_of(report, HWNAS_TEXT);
    assert_string_equal(again, found);
    hwnas_free(again);
    hwnas_free(found);
    assert_int_equal(hwnas_study_explain(&report, opened, -1), HWNAS_OK);
    json_t *json = json_of(report);
    assert_true(is_format(json, "hwnas.explanation"));
    json_decref(json);
    report = NULL;
    assert_int_equal(hwnas_study_explain(&report, opened, 999), HWNAS_E_NOT_FOUND);
    assert_null(report);
    hwnas_study_close(opened);
}

static void plans_a_search(void **state)
{
    const char *job = write_job(*state, beside(*state, "best"));
    hwnas_job_key_info key = {0};
    bool knows_trials = false;
    hwnas_report *report = NULL;
    assert_int_equal(hwnas_search_plan(&report, job, NULL), HWNAS_OK);
    json_t *json = json_of(report);
    assert_true(is_format(json, "hwnas.dry_run"));
    json_decref(json);
    assert_int_not_equal(access(beside(*state, "job.db"), F_OK), 0);
    size_t n = 0;
    for (; hwnas_job_key_list(&key, n); n++)
        knows_trials |= !strcmp(key.name, "trials") && *key.help && *key.argument;
    assert_true(n > 20 && knows_trials);
    static const hwnas_job_flag wrong[] = {{"trials", "many"}, {0}};
    hwnas_search_options options = HWNAS_SEARCH_OPTIONS_INIT;
    options.flags = wrong;
    report = NULL;
    assert_int_equal(hwnas_search_plan(&report, job, &options), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->file, "--trials");
    assert_null(report);
}

static void opens_the_network_of_a_trial(void **state)
{
    const char *job = write_job(*state, beside(*state, "best")), *study = beside(*state, "job.db");
    char *best = strdup(beside(*state, "best.yaml")), *note = "?";
    hwnas_network *network = NULL;
    hwnas_export_options options = HWNAS_EXPORT_OPTIONS_INIT;
    hwnas_report_free(search(job, NULL));
    assert_int_equal(hwnas_network_open_trial(&network, study, -1, NULL), HWNAS_OK);
    assert_int_equal(hwnas_network_costs(network)->params, count_params(best, NULL));
    options.as_measured = true;
    options.note = &note;
    assert_int_equal(hwnas_network_export(network, best, "yaml", &options), HWNAS_OK);
    assert_null(note);
    /* Not over what it was opened from. */
    assert_int_equal(hwnas_network_export(network, study, "yaml", &options), HWNAS_E_INPUT);
    hwnas_network_close(network);
    network = NULL;
    assert_int_equal(hwnas_network_open_trial(&network, study, 999, NULL), HWNAS_E_NOT_FOUND);
    assert_int_equal(hwnas_network_open_trial(&network, job, 0, NULL), HWNAS_E_INPUT);
    assert_null(network);
    free(best);
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

/* "hwnas.network" of one network; to be freed. */
static char *describe(void)
{
    hwnas_network *network;
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", NULL), HWNAS_OK);
    char *text = network_text(network, HWNAS_JSON);
    hwnas_network_close(network);
    return text;
}

/* Numbers of files have points, whatever the program that calls the library is used to. */
static void does_not_follow_the_locale(void **state)
{
    char *plain = describe(), *text = NULL, best[64];
    if (!use_decimal_comma(*state)) {
        print_message("no locale with a decimal comma: needs localedef and /usr/share/i18n\n");
        free(plain);
        skip();
    }
    predicts_what_the_table_says(state);
    text = describe();
    assert_string_equal(text, plain);
    free(text);
    free(plain);
    snprintf(best, sizeof best, "%s/best", (const char *)*state);
    assert_int_equal(search_json(&text, write_job(*state, best), NULL), HWNAS_OK);
    assert_non_null(strstr(text, "\"macs <= 80.5 M\""));
    free(text);
    assert_string_equal(localeconv()->decimal_point, ",");
}

/* A thread may have a locale of its own, and keeps it, also when a call fails. */
static void leaves_the_locale_of_a_thread(void **state)
{
    (void)state;
    hwnas_network *network;
    locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    const locale_t before = uselocale(own);
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", NULL), HWNAS_OK);
    assert_ptr_equal(uselocale((locale_t)0), own);
    assert_int_equal(hwnas_network_export(network, "/nonexistent/x", "onnx", NULL), HWNAS_E_IO);
    assert_ptr_equal(uselocale((locale_t)0), own);
    hwnas_network_close(network);
    uselocale(before);
    freelocale(own);
}

/* ---- Out of memory ---- */

/* What a program does that has no memory left: its exit status, and what it says. */
static int starve(char *said, size_t size, hwnas_oom_handler *handler)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL); /* or the child prints it as well */
    const pid_t child = fork();
    if (child == 0) {
        hwnas_network *network;
        struct rlimit limit;
        dup2(ends[1], STDERR_FILENO);
        hwnas_set_oom_handler(handler, &limit);
        getrlimit(RLIMIT_AS, &limit);
        setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, limit.rlim_max});
        while (malloc(1 << 10))
            ;
        const hwnas_status end = hwnas_network_open(&network, "nas_bench_macro", "22212221", NULL);
        _exit(end == HWNAS_OK ? 0 : 99);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], said, size - 1);
    said[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int make_room(void *limit)
{
    return !setrlimit(RLIMIT_AS, limit);
}

static int make_none(void *limit)
{
    (void)limit;
    return 0;
}

static int leave(void *limit)
{
    (void)limit;
    _exit(42);
}

static void asks_the_handler_for_memory(void **state)
{
    (void)state;
    char said[256];
    assert_int_equal(starve(said, sizeof said, NULL), 1);
    assert_string_equal(said, "hwnas: out of memory\n");
    assert_int_equal(starve(said, sizeof said, make_none), 1);
    assert_string_equal(said, "hwnas: out of memory\n");
    assert_int_equal(starve(said, sizeof said, leave), 42);
    assert_string_equal(said, "");
    assert_int_equal(starve(said, sizeof said, make_room), 0);
    assert_string_equal(said, "");
}

static void tells_what_is_wrong(void **state)
{
    (void)state;
    hwnas_network *network = NULL;
    hwnas_space *space = NULL;
    const hwnas_network_options none = {.size = sizeof none, .batch = -1};
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "2221222x", NULL),
                     HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "'x' is not a value of 'op'"));
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", NULL, NULL), HWNAS_E_INPUT);
    assert_int_equal(hwnas_network_open(&network, "nas_bench_macro", "22212220", &none),
                     HWNAS_E_INPUT);
    assert_int_equal(hwnas_network_open(&network, "resnet50", "x", NULL), HWNAS_E_INPUT);
    assert_int_equal(hwnas_space_open(&space, "no_such_space"), HWNAS_E_NOT_FOUND);
    assert_null(network);
    assert_null(space);
    assert_int_equal(hwnas_status_exit_code(HWNAS_E_INPUT), 2);
}

/* Handles of different threads are independent. */
static int use_handles(void *data)
{
    const uint64_t seed = *(const uint64_t *)data;
    char *text = NULL, *code;
    for (uint64_t i = 0; i < 10; i++) {
        hwnas_space *space;
        hwnas_network *network;
        hwnas_report *report;
        if (hwnas_space_open(&space, "nas_bench_macro") != HWNAS_OK ||
            hwnas_space_sample(&code, space, seed, i) != HWNAS_OK ||
            hwnas_network_open_in(&network, space, code, NULL) != HWNAS_OK ||
            hwnas_network_report(&report, network) != HWNAS_OK ||
            hwnas_report_write(&text, report, HWNAS_JSON) != HWNAS_OK)
            return -1;
        hwnas_free(text);
        hwnas_free(code);
        hwnas_report_free(report);
        hwnas_network_close(network);
        /* A failure is told to who made it. */
        code = NULL;
        char wrong[8];
        snprintf(wrong, sizeof wrong, "x%d", (int)seed);
        if (hwnas_space_check(&code, space, wrong) == HWNAS_OK || code ||
            !strstr(hwnas_last_error()->message, wrong))
            return -1;
        hwnas_space_close(space);
    }
    return 0;
}

static void threads_have_handles_of_their_own(void **state)
{
    (void)state;
    enum { N = 4 };
    thrd_t threads[N];
    uint64_t seeds[N];
    for (int i = 0; i < N; i++) {
        seeds[i] = (uint64_t)i;
        assert_int_equal(thrd_create(&threads[i], use_handles, &seeds[i]), thrd_success);
    }
    for (int i = 0; i < N; i++) {
        int result;
        thrd_join(threads[i], &result);
        assert_int_equal(result, 0);
    }
}

static void says_its_version(void **state)
{
    (void)state;
    int major, minor, patch;
    assert_int_equal(hwnas_version_number(), HWNAS_VERSION_NUMBER);
    assert_string_equal(hwnas_version(), HWNAS_VERSION);
    assert_int_equal(sscanf(hwnas_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(major * 10000 + minor * 100 + patch, HWNAS_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_its_version),
        cmocka_unit_test(threads_have_handles_of_their_own),
        cmocka_unit_test(lists_all_networks_of_a_space),
        cmocka_unit_test(samples_by_the_seed),
        cmocka_unit_test(describes_a_network),
        cmocka_unit_test(knows_the_arrays_of_a_batch),
        cmocka_unit_test_setup_teardown(runs_on_arrays, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(writes_what_a_file_can_hold, make_folder, remove_folder),
        cmocka_unit_test(knows_its_devices),
        cmocka_unit_test(takes_options_of_other_versions),
        cmocka_unit_test(predicts_what_the_table_says),
        cmocka_unit_test(measures_in_one_child),
        cmocka_unit_test(stops_measuring_when_asked),
        cmocka_unit_test(searches_a_job),
        cmocka_unit_test(asks_the_handler_for_memory),
        cmocka_unit_test(tells_what_is_wrong),
        cmocka_unit_test_setup_teardown(writes_the_winner_where_the_job_says, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(tells_what_a_search_came_to, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(looks_at_a_study, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(plans_a_search, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(opens_the_network_of_a_trial, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refuses_an_export_first, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(refuses_a_study_that_is_not_utf8, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(does_not_follow_the_locale, make_folder, leave_locale),
        cmocka_unit_test(leaves_the_locale_of_a_thread),
        cmocka_unit_test_setup_teardown(tells_whoever_listens, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
