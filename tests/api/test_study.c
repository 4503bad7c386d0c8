/* Studies by ask and tell, as another program sees them: only hwnas.h and the exported symbols, and
 * SQLite to look at what is on disk. The program measures by looking up published latencies. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include <hwnas.h>

#include "api_fixture.h"

#define TABLE HWNAS_TEST_DATA "/nas_bench_201.csv"

/* ---- The program's own way to measure ---- */

enum { N_NETWORKS = 15625 }; /* 5^6 */

static double published_ms[N_NETWORKS];

/* "421211" as a number of base 5: its operations are called 0 to 4. */
static int index_of(const char *code)
{
    int index = 0;
    for (; *code; code++)
        index = 5 * index + (*code - '0');
    return index;
}

static int read_table(void **state)
{
    (void)state;
    char line[256], code[8];
    double ms;
    size_t n = 0;
    FILE *file = fopen(TABLE, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        assert_int_equal(sscanf(line, "%7[0-9],%*d,%*d,%*d,%*f,%*f,%*f,%lf", code, &ms), 2);
        published_ms[index_of(code)] = ms;
        n++;
    }
    fclose(file);
    assert_int_equal(n, N_NETWORKS);
    return 0;
}

/* A folder of its own for each test, in which it is. */
static int enter_folder(void **state)
{
    char folder[] = "/tmp/test_study.XXXXXX";
    *state = mkdtemp(folder) ? strdup(folder) : NULL;
    return *state ? chdir(*state) : -1;
}

static int leave_folder(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
    free(*state);
    return chdir("/") || system(command);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* NAME.yaml with a study NAME.db. */
static void write_job(const char *name, const char *device, const char *strategy, int trials,
                      const char *more)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "%s.yaml", name);
    snprintf(text, sizeof text,
             "space: nas_bench_201\n"
             "accuracy: table:" TABLE "#c100_test_top1_pct\n"
             "device: %s\n"
             "objectives: [accuracy, latency.p50]\n"
             "strategy: %s\n"
             "budget: {trials: %d}\n"
             "seed: 3\n"
             "study: %s.db\n%s",
             device, strategy, trials, name, more);
    write_file(path, text);
}

static hwnas_study *open_job(const char *path, bool resume, bool runs_again)
{
    hwnas_study *study = NULL;
    hwnas_study_options options = HWNAS_STUDY_OPTIONS_INIT;
    options.resume = resume;
    options.runs_again = runs_again;
    if (hwnas_study_open(&study, path, &options) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
    return study;
}

static hwnas_metric_value latency_of(const char *code)
{
    return (hwnas_metric_value){.metric = "latency.p50",
                                .value = 1e-3 * published_ms[index_of(code)],
                                .low = NAN,
                                .high = NAN,
                                .unit = "s"};
}

static void tell_published(hwnas_study *study, const hwnas_study_trial *trial)
{
    const hwnas_metric_value latency = latency_of(trial->code);
    if (hwnas_study_tell(study, trial->number, &latency, 1) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
}

static size_t ask_and_tell_all(hwnas_study *study)
{
    const hwnas_study_trial *trial;
    size_t n = 0;
    while (hwnas_study_ask(&trial, study) == HWNAS_OK) {
        tell_published(study, trial);
        n++;
    }
    assert_int_equal(hwnas_last_error()->status, HWNAS_E_EXHAUSTED);
    return n;
}

static void refused(hwnas_status status, hwnas_status expected, const char *word)
{
    if (status != expected || !strstr(hwnas_last_error()->message, word))
        fail_msg("%s, not '%s': %s", hwnas_status_name(status), word, hwnas_last_error()->message);
}

/* ---- What is on disk ---- */

/* All trials in the order in which they finished: number, code, status, violation, latency. */
static char *trials_of(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *row;
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(
                         db,
                         "SELECT number, code, status, violation, value FROM trial LEFT JOIN value"
                         " ON trial = number AND metric = 'latency.p50'"
                         " ORDER BY finish_order IS NULL, finish_order, number",
                         -1, &row, NULL),
                     SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW)
        fprintf(out, "%d %s %s %.9g %.12g\n", sqlite3_column_int(row, 0),
                (const char *)sqlite3_column_text(row, 1),
                sqlite3_column_text(row, 2) ? (const char *)sqlite3_column_text(row, 2) : "open",
                sqlite3_column_double(row, 3), sqlite3_column_double(row, 4));
    sqlite3_finalize(row);
    sqlite3_close(db);
    fclose(out);
    return all;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static void have_the_same_trials(const char *a, const char *b, size_t n)
{
    char *x = trials_of(a), *y = trials_of(b);
    assert_string_equal(x, y);
    assert_int_equal(count_lines(x), n);
    free(x);
    free(y);
}

/* The codes of a front that a search printed, and of a study. */
static void have_the_same_front(const char *json, hwnas_study *study)
{
    const hwnas_study_trial *front;
    size_t n;
    json_t *root = json_loads(json, 0, NULL);
    const json_t *rows = json_object_get(root, "front");
    assert_int_equal(hwnas_study_front(&front, &n, study, 0), HWNAS_OK);
    assert_int_equal(n, json_array_size(rows));
    assert_true(n > 3);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        assert_string_equal(front[i].code, json_string_value(json_object_get(row, "arch")));
        assert_int_equal(front[i].number, json_integer_value(json_object_get(row, "trial")));
    }
    json_decref(root);
}

/* ---- The same as a search ---- */

static const struct {
    const char *strategy;
    int trials;
} strategies[] = {
    {"random", 150}, {"nsga2", 300}, {"local-search", 200}, {"bayesian", 60}, {"auto", 60},
};
enum { N_STRATEGIES = sizeof strategies / sizeof *strategies };

/* Tables have a value for each encoding, so each is run. */
static void proposes_what_a_search_does(void **state)
{
    (void)state;
    static const char *const limits[] = {"", "constraints: latency.p50 <= 30 ms\n"};
    for (int i = 0; i < 2 * N_STRATEGIES; i++) {
        const int trials = strategies[i / 2].trials;
        hwnas_report *report = NULL;
        write_job("search", "replay:" TABLE "#raspi4_ms", strategies[i / 2].strategy, trials,
                  limits[i % 2]);
        write_job("asked", "external", strategies[i / 2].strategy, trials, limits[i % 2]);
        if (hwnas_search(&report, "search.yaml", NULL) != HWNAS_OK)
            fail_msg("%s", hwnas_last_error()->message);
        char *json = text_of(report, HWNAS_JSON);
        hwnas_study *study = open_job("asked.yaml", false, true);
        assert_int_equal(ask_and_tell_all(study), trials);
        have_the_same_front(json, study);
        hwnas_study_close(study);
        have_the_same_trials("search.db", "asked.db", (size_t)trials);
        hwnas_free(json);
        assert_int_equal(unlink("search.db") + unlink("asked.db"), 0);
    }
}

/* ---- Killed, and gone on with ---- */

enum { BOARDS = 3 };

/* The trials that are out, by number. */
typedef struct boards {
    size_t n;
    const hwnas_study_trial *trials[BOARDS];
} boards;

static bool fill(boards *b, hwnas_study *study)
{
    const hwnas_study_trial *trial;
    while (b->n < BOARDS) {
        const hwnas_status status = hwnas_study_ask(&trial, study);
        if (status == HWNAS_E_EXHAUSTED)
            return b->n > 0;
        if (status != HWNAS_OK)
            fail_msg("%s", hwnas_last_error()->message);
        size_t at = b->n++;
        for (; at > 0 && b->trials[at - 1]->number > trial->number; at--)
            b->trials[at] = b->trials[at - 1];
        b->trials[at] = trial;
    }
    return true;
}

/* Keeps the boards busy, which answer in another order than they were asked; from tell `first` on
 * until tell `last`, if there is one. Every seventh network fails. */
static void work(hwnas_study *study, size_t first, size_t last)
{
    boards b = {0};
    for (size_t i = first; i < last && fill(&b, study); i++) {
        const size_t which = (5 * i + i / 4) % b.n;
        const hwnas_study_trial *trial = b.trials[which];
        for (size_t k = which; k + 1 < b.n; k++)
            b.trials[k] = b.trials[k + 1];
        b.n--;
        if (trial->number % 7 == 6)
            assert_int_equal(hwnas_study_tell_failure(study, trial->number, HWNAS_E_TIMEOUT,
                                                      "the board does not answer"),
                             HWNAS_OK);
        else
            tell_published(study, trial);
    }
    if (last != SIZE_MAX)
        (void)fill(&b, study); /* what will be open when it dies */
}

static void work_and_die(size_t first, size_t last)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        work(open_job("asked.yaml", true, false), first, last);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Killed after some tells, or with HWNAS_LONG after each, it goes on as if nothing had happened. */
static void goes_on_after_a_kill(void **state)
{
    (void)state;
    enum { TRIALS = 42 };
    static const bool dies[TRIALS] = {
        [0] = true, [1] = true, [2] = true, [5] = true, [12] = true, [19] = true, [30] = true};
    const bool is_long = getenv("HWNAS_LONG");
    for (int i = 0; i < N_STRATEGIES; i++) {
        /* Some trials miss the limits, before they are run or after. */
        const char *limit = "constraints: latency.p50 <= 40 ms and params < 1 M\n";
        write_job("whole", "external", strategies[i].strategy, TRIALS, limit);
        hwnas_study *study = open_job("whole.yaml", false, false);
        work(study, 0, SIZE_MAX);
        hwnas_study_close(study);
        write_job("asked", "external", strategies[i].strategy, TRIALS, limit);
        size_t first = 0;
        for (size_t last = 0; last < TRIALS; last++)
            if (is_long || dies[last]) {
                work_and_die(first, last);
                first = last;
            }
        work_and_die(first, first); /* before it did anything */
        study = open_job("asked.yaml", true, false);
        work(study, first, SIZE_MAX);
        hwnas_study_close(study);
        have_the_same_trials("whole.db", "asked.db", TRIALS);
        assert_int_equal(unlink("asked.db") + unlink("whole.db"), 0);
    }
}

static void asks_again_what_was_open(void **state)
{
    (void)state;
    const hwnas_study_trial *trial;
    char code[8], digest[33];
    write_job("asked", "external", "nsga2", 20, "");
    hwnas_study *study = open_job("asked.yaml", false, false);
    assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
    assert_false(trial->is_again);
    strcpy(code, trial->code);
    strcpy(digest, trial->digest);
    hwnas_study_close(study);
    study = open_job("asked.yaml", true, false);
    assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
    assert_true(trial->is_again);
    assert_int_equal(trial->number, 0);
    assert_string_equal(trial->code, code);
    assert_string_equal(trial->digest, digest);
    tell_published(study, trial);
    assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
    assert_false(trial->is_again);
    assert_int_equal(trial->number, 1);
    hwnas_study_close(study);
}

/* ---- What is free to know ---- */

static const hwnas_metric_value *value_of(const hwnas_study_trial *trial, const char *metric)
{
    for (size_t i = 0; i < trial->n_values; i++)
        if (!strcmp(trial->values[i].metric, metric))
            return &trial->values[i];
    return NULL;
}

static void asks_for_nothing_that_misses_a_limit(void **state)
{
    (void)state;
    const hwnas_study_trial *trial;
    size_t n = 0;
    write_job("asked", "external", "random", 200, "constraints: params <= 0.4 M\n");
    hwnas_study *study = open_job("asked.yaml", false, true);
    hwnas_space *space;
    assert_int_equal(hwnas_space_open(&space, "nas_bench_201"), HWNAS_OK);
    for (; hwnas_study_ask(&trial, study) == HWNAS_OK; n++) {
        hwnas_network *network;
        assert_int_equal(hwnas_network_open_in(&network, space, trial->code, NULL), HWNAS_OK);
        const double params = (double)hwnas_network_costs(network)->params;
        assert_true(params <= 0.4e6);
        assert_float_equal(value_of(trial, "params")->value, params, 0);
        assert_string_equal(hwnas_network_digest(network), trial->digest);
        assert_string_equal(value_of(trial, "accuracy")->source, "replayed");
        hwnas_network_close(network);
        tell_published(study, trial);
    }
    hwnas_space_close(space);
    hwnas_study_close(study);
    char *trials = trials_of("asked.db"), *at = trials;
    size_t n_not_run = 0;
    for (; (at = strstr(at, " 0\n")); at++) /* no latency */
        n_not_run++;
    assert_int_equal(count_lines(trials), 200);
    assert_int_equal(n + n_not_run, 200);
    assert_true(n > 20 && n_not_run > 20);
    free(trials);
}

/* Another encoding of a network that was told is not asked for. */
static void asks_once_for_a_network(void **state)
{
    (void)state;
    const hwnas_study_trial *trial;
    enum { TRIALS = 400 };
    char digests[TRIALS][33];
    size_t n = 0;
    write_job("asked", "external", "random", TRIALS, "");
    hwnas_study *study = open_job("asked.yaml", false, false);
    for (; hwnas_study_ask(&trial, study) == HWNAS_OK; n++) {
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(trial->digest, digests[i]);
        strcpy(digests[n], trial->digest);
        tell_published(study, trial);
    }
    hwnas_study_close(study);
    assert_true(n < TRIALS); /* 400 of 15625 encodings of 6466 networks */
    char *trials = trials_of("asked.db");
    assert_int_equal(count_lines(trials), TRIALS);
    assert_null(strstr(trials, " 0\n")); /* each has a latency */
    free(trials);
}

/* ---- Intervals, several devices, accuracies ---- */

static void keeps_a_limit_by_the_whole_interval(void **state)
{
    (void)state;
    const hwnas_study_trial *trial, *front;
    size_t n;
    write_job("asked", "external", "random", 3, "constraints: latency.p50 <= 10 ms\n");
    hwnas_study *study = open_job("asked.yaml", false, false);
    static const double ends[3][2] = {{8e-3, 11e-3}, {8e-3, 9.9e-3}, {0, 0}};
    static const double middles[3] = {9e-3, 9e-3, 9.5e-3};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
        const hwnas_metric_value v = {
            .metric = "latency", .value = middles[i], .low = ends[i][0], .high = ends[i][1]};
        assert_int_equal(hwnas_study_tell(study, trial->number, &v, 1), HWNAS_OK);
    }
    assert_int_equal(hwnas_study_front(&front, &n, study, 0), HWNAS_OK);
    assert_true(n >= 1);
    for (size_t i = 0; i < n; i++) {
        const hwnas_metric_value *v = value_of(&front[i], "latency.p50");
        assert_int_not_equal(front[i].number, 0);
        assert_string_equal(v->source, "told");
        assert_true(front[i].mixing == HWNAS_UNMIXED && !front[i].n_mixes);
        assert_string_equal(v->unit, "s");
        assert_float_equal(value_of(&front[i], "throughput")->value, 1 / v->value, 1e-9);
    }
    hwnas_study_close(study);
}

static void takes_several_devices_and_an_accuracy(void **state)
{
    (void)state;
    const hwnas_study_trial *trial, *front;
    size_t n;
    write_file("two.yaml",
               "space: nas_bench_201\n"
               "devices: [{name: pi, device: external}, {name: phone, device: external}]\n"
               "objectives: [accuracy, latency.p50 on pi, energy on phone]\n"
               "batch: {values: [1, 8]}\n"
               "strategy: nsga2\nbudget: {trials: 6}\nstudy: two.db\n");
    hwnas_study *study = open_job("two.yaml", false, false);
    bool is_batched = false;
    while (hwnas_study_ask(&trial, study) == HWNAS_OK) {
        is_batched |= trial->batch == 8;
        hwnas_network *network; /* its code is without the batch */
        assert_int_equal(hwnas_network_open(&network, "nas_bench_201", trial->code, NULL),
                         HWNAS_OK);
        hwnas_network_close(network);
        assert_null(value_of(trial, "accuracy"));
        hwnas_metric_value values[] = {{.metric = "accuracy", .value = 60 + (double)trial->number},
                                       {.metric = "energy on phone", .value = 0.2},
                                       {.metric = "latency.p50 on pi", .value = 0.1}};
        refused(hwnas_study_tell(study, trial->number, values, 2), HWNAS_E_INPUT,
                "without latency.p50 on pi");
        values[2].metric = "latency.p50";
        refused(hwnas_study_tell(study, trial->number, values, 3), HWNAS_E_INPUT, "which device");
        values[2].metric = "latency.p50 on tv";
        refused(hwnas_study_tell(study, trial->number, values, 3), HWNAS_E_INPUT, "'tv'");
        values[2].metric = "latency.p50 on pi";
        assert_int_equal(hwnas_study_tell(study, trial->number, values, 3), HWNAS_OK);
    }
    assert_true(is_batched);
    assert_int_equal(hwnas_study_front(&front, &n, study, 0), HWNAS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(front->number, 5); /* the most accurate, and nowhere worse */
    hwnas_study_close(study);
}

/* ---- A precision for each layer ---- */

static void tells_which_layers_are_mixed(void **state)
{
    (void)state;
    const hwnas_study_trial *front;
    hwnas_report *report;
    hwnas_study *study;
    size_t n;
    write_file("mixed.yaml", "space: nas_bench_macro\n"
                             "device: cpu\n"
                             "dtype: mixed-bf16\nmax-error: 2\n"
                             "objectives: [params, latency.p50]\n"
                             "measure: {seconds: 0.05, confirm: 0, ties: 0, verify: none}\n"
                             "budget: {trials: 1}\nstudy: mixed.db\n");
    if (hwnas_search(&report, "mixed.yaml", NULL) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
    char *text = text_of(report, HWNAS_JSON);
    json_t *root = json_loads(text, 0, NULL);
    const json_t *trial = json_array_get(json_object_get(root, "front"), 0);
    const json_t *mix =
        json_object_get(json_object_get(json_object_get(trial, "measurement"), "mix"), "cpu");
    assert_int_equal(hwnas_study_read(&study, "mixed.db"), HWNAS_OK);
    assert_int_equal(hwnas_study_front(&front, &n, study, 0), HWNAS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(front->mixing, HWNAS_MIXED_BF16);
    assert_int_equal(front->n_mixes, 1);
    assert_string_equal(front->mixes->device, "cpu");
    assert_string_equal(front->mixes->layers, json_string_value(json_object_get(mix, "layers")));
    assert_string_equal(hwnas_precision_name(front->mixes->floats),
                        json_string_value(json_object_get(mix, "floats")));
    assert_true(front->mixes->n_layers > 0);
    assert_int_equal(front->mixes->n_layers, strlen(front->mixes->layers));
    size_t n_s8 = 0;
    for (const char *letter = front->mixes->layers; *letter; letter++)
        n_s8 += *letter == 's';
    assert_int_equal(front->mixes->n_s8, n_s8);
    assert_true(front->mixes->max_error == 0.02 && front->mixes->error <= 0.02);
    assert_true(front->mixes->error == json_number_value(json_object_get(mix, "mixed_error")));
    hwnas_study_close(study);
    json_decref(root);
    hwnas_free(text);
}

/* ---- Reports ---- */

static const char *string_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void reports_and_explains(void **state)
{
    (void)state;
    const hwnas_study_trial *front;
    hwnas_report *report;
    char *text;
    size_t n;
    write_job("asked", "external:pi", "nsga2", 60, "constraints: latency.p50 <= 40 ms\n");
    hwnas_study *study = open_job("asked.yaml", false, false);
    refused(hwnas_study_explain(&report, study, -1), HWNAS_E_INFEASIBLE, "no trial");
    ask_and_tell_all(study);
    assert_int_equal(hwnas_study_front(&front, &n, study, 0), HWNAS_OK);

    assert_int_equal(hwnas_study_report(&report, study), HWNAS_OK);
    assert_int_equal(hwnas_report_write(&text, report, HWNAS_TEXT), HWNAS_OK);
    assert_non_null(strstr(text, "ms (told)"));
    assert_non_null(strstr(text, "another program runs it"));
    hwnas_free(text);
    json_t *json = json_of(report);
    assert_string_equal(string_at(json, "format"), "hwnas.study");
    assert_string_equal(string_at(json, "ended"), "all trials were made");
    assert_int_equal(json_array_size(json_object_get(json, "front")), n);
    assert_string_equal(string_at(json_object_get(json, "winner"), "arch"), front[0].code);
    json_decref(json);

    assert_int_equal(hwnas_study_explain(&report, study, -1), HWNAS_OK);
    hwnas_study_close(study); /* it needs the study no more */
    json = json_of(report);
    assert_string_equal(string_at(json, "format"), "hwnas.explanation");
    const json_t *neighbours = json_object_get(json, "neighbours");
    assert_int_equal(json_array_size(neighbours), 24); /* 6 choices of 5 operations */
    json_decref(json);
    assert_int_equal(hwnas_study_read(&study, "asked.db"), HWNAS_OK);
    refused(hwnas_study_explain(&report, study, 60), HWNAS_E_NOT_FOUND, "none is 60");
    hwnas_study_close(study);
}

/* ---- Mistakes ---- */

static void refuses_wrong_tells(void **state)
{
    (void)state;
    const hwnas_study_trial *trial;
    write_job("asked", "external", "random", 5, "");
    hwnas_study *study = open_job("asked.yaml", false, false);
    assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
    const uint64_t number = trial->number;
    const struct {
        hwnas_metric_value value;
        const char *word;
    } rows[] = {
        {{.metric = "latency.p50", .value = NAN}, "not a number"},
        {{.metric = "latency.p50", .value = INFINITY}, "not a number"},
        {{.metric = "latency.p50", .value = 0}, "above 0"},
        {{.metric = "latency.p50", .value = -1}, "above 0"},
        {{.metric = "latency.p50", .value = 5, .unit = "ms"}, "told in s"},
        {{.metric = "latency.p50", .value = 5, .low = 6, .high = 7}, "interval"},
        {{.metric = "latency.p50", .value = 5, .low = 4, .high = NAN}, "interval"},
        {{.metric = "latency.p50", .value = 5, .low = -4, .high = 6}, "interval"},
        {{.metric = "latencyp50", .value = 5}, "no metric"},
        {{.metric = "", .value = 5}, "without the name"},
        {{.value = 5}, "without the name"},
        {{.metric = "params", .value = 5}, "it is counted"},
        {{.metric = "accuracy", .value = 5}, "predictor"},
        {{.metric = "energy", .value = 5}, "without latency.p50"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused(hwnas_study_tell(study, number, &rows[i].value, 1), HWNAS_E_INPUT, rows[i].word);
        assert_true(*hwnas_last_error()->hint);
    }
    const hwnas_metric_value twice[2] = {latency_of(trial->code), latency_of(trial->code)};
    refused(hwnas_study_tell(study, number, twice, 2), HWNAS_E_INPUT, "told twice");
    refused(hwnas_study_tell(study, number, NULL, 0), HWNAS_E_INPUT, "without latency.p50");
    refused(hwnas_study_tell(study, number, NULL, 3), HWNAS_E_USAGE, "none is there");
    refused(hwnas_study_tell(study, 77, twice, 1), HWNAS_E_INPUT, "never asked");
    refused(hwnas_study_tell(study, UINT64_MAX, twice, 1), HWNAS_E_INPUT, "never asked");
    refused(hwnas_study_tell_failure(study, number, HWNAS_OK, "fine"), HWNAS_E_USAGE, "reason");
    refused(hwnas_study_tell_failure(study, number, HWNAS_E_CRASHED, NULL), HWNAS_E_USAGE,
            "reason");
    refused(hwnas_study_tell_failure(study, number, HWNAS_E_CRASHED, "\xff"), HWNAS_E_USAGE,
            "UTF-8");
    assert_int_equal(hwnas_study_tell(study, number, twice, 1),
                     HWNAS_OK); /* untouched by all that */
    refused(hwnas_study_tell(study, number, twice, 1), HWNAS_E_INPUT, "finished already");
    refused(hwnas_study_tell_failure(study, number, HWNAS_E_CRASHED, "no"), HWNAS_E_INPUT,
            "finished already");
    hwnas_study_close(study);
}

static char own_path[512];

/* Another process, which opens the study that process `holder` works on. */
static int be_second(const char *job, const char *holder)
{
    const hwnas_study_options resume = {.size = sizeof resume, .resume = true};
    hwnas_study *study;
    char expected[64];
    snprintf(expected, sizeof expected, "in use by process %s", holder);
    const hwnas_status status = hwnas_study_open(&study, job, &resume);
    return status != HWNAS_E_IO || !strstr(hwnas_last_error()->message, expected);
}

static void refuses_wrong_jobs(void **state)
{
    (void)state;
    hwnas_report *report;
    hwnas_study *study, *other;
    write_job("asked", "external", "random", 5, "");
    refused(hwnas_search(&report, "asked.yaml", NULL), HWNAS_E_INPUT, "on the device 'external'");
    assert_int_not_equal(access("asked.db", F_OK), 0);
    write_job("own", "null", "random", 5, "");
    refused(hwnas_study_open(&other, "own.yaml", NULL), HWNAS_E_INPUT, "run by hwnas");
    write_job("own", "replay:" TABLE "#raspi4_ms", "random", 5, "");
    refused(hwnas_study_open(&other, "own.yaml", NULL), HWNAS_E_INPUT,
            "nothing of this job is told");
    assert_int_not_equal(access("own.db", F_OK), 0);

    study = open_job("asked.yaml", false, false);
    refused(hwnas_study_open(&other, "asked.yaml", NULL), HWNAS_E_INPUT, "exists already");
    const hwnas_study_options resume = {.size = sizeof resume, .resume = true};
    refused(hwnas_study_open(&other, "asked.yaml", &resume), HWNAS_E_IO, "in use by process");
    char command[600];
    snprintf(command, sizeof command, "%s second asked.yaml %d", own_path, (int)getpid());
    assert_int_equal(system(command), 0);

    const hwnas_study_trial *trial, *front;
    size_t n = 9;
    hwnas_study *reader;
    assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
    tell_published(study, trial);
    assert_int_equal(hwnas_study_read(&reader, "asked.db"), HWNAS_OK); /* while the other works */
    assert_int_equal(hwnas_study_front(&front, &n, reader, 0), HWNAS_OK);
    assert_int_equal(n, 1);
    refused(hwnas_study_front(&front, &n, reader, 1), HWNAS_E_USAGE, "none number 1");
    refused(hwnas_study_ask(&trial, reader), HWNAS_E_USAGE, "read alone");
    hwnas_study_close(reader);
    hwnas_study_close(study);
    refused(hwnas_study_read(&reader, "none.db"), HWNAS_E_NOT_FOUND, "no such study");
    hwnas_study_close(NULL);

    /* Nothing was asked: no file. */
    write_job("empty", "external", "random", 5, "");
    hwnas_study_close(open_job("empty.yaml", false, false));
    assert_int_not_equal(access("empty.db", F_OK), 0);
}

static void ends_as_it_is_told_to(void **state)
{
    (void)state;
    const hwnas_study_trial *trial, *last;
    volatile sig_atomic_t cancel = 0;
    write_job("asked", "external", "random", 2, "");
    hwnas_study_options options = HWNAS_STUDY_OPTIONS_INIT;
    options.cancel = &cancel;
    hwnas_study *study;
    assert_int_equal(hwnas_study_open(&study, "asked.yaml", &options), HWNAS_OK);
    assert_int_equal(hwnas_study_ask(&trial, study), HWNAS_OK);
    cancel = 1;
    refused(hwnas_study_ask(&last, study), HWNAS_E_INTERRUPTED, "interrupted");
    cancel = 0;
    assert_int_equal(hwnas_study_ask(&last, study), HWNAS_OK);
    tell_published(study, trial);
    trial = NULL;
    refused(hwnas_study_ask(&trial, study), HWNAS_E_EXHAUSTED, "all trials were made");
    assert_non_null(strstr(hwnas_last_error()->hint, "still to be told"));
    tell_published(study, last);
    refused(hwnas_study_ask(&trial, study), HWNAS_E_EXHAUSTED, "all trials were made");
    assert_string_equal(hwnas_last_error()->hint, "");
    hwnas_study_close(study);

    options.resume = true;
    options.max_trials = 4;
    assert_int_equal(hwnas_study_open(&study, "asked.yaml", &options), HWNAS_OK);
    assert_int_equal(ask_and_tell_all(study), 2);
    hwnas_study_close(study);
}

/* A disk is full when files may not grow. */
static void set_largest_file(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Each ask fails once; some proposals are settled without a run, some are run. */
static void goes_on_after_an_ask_that_failed(void **state)
{
    (void)state;
    enum { TRIALS = 120 };
    const char *const limit = "constraints: params <= 0.4 M\n";
    const hwnas_study_trial *trial;
    hwnas_status status = HWNAS_OK;
    write_job("smooth", "external", "nsga2", TRIALS, limit);
    write_job("rough", "external", "nsga2", TRIALS, limit);
    hwnas_study *study = open_job("smooth.yaml", false, false);
    const size_t n_asked = ask_and_tell_all(study);
    hwnas_study_close(study);

    signal(SIGXFSZ, SIG_IGN);
    study = open_job("rough.yaml", false, false);
    size_t n_told = 0;
    while (status == HWNAS_OK && n_told < n_asked) {
        set_largest_file(0);
        status = hwnas_study_ask(&trial, study);
        set_largest_file(RLIM_INFINITY);
        refused(status, HWNAS_E_IO, "cannot use the study");
        status = hwnas_study_ask(&trial, study);
        if (status != HWNAS_OK)
            fail_msg("%s", hwnas_last_error()->message);
        tell_published(study, trial);
        n_told++;
    }
    refused(hwnas_study_ask(&trial, study), HWNAS_E_EXHAUSTED, "all trials were made");
    hwnas_study_close(study);
    have_the_same_trials("smooth.db", "rough.db", TRIALS);
}

static void needs_no_file_for_a_job(void **state)
{
    (void)state;
    const hwnas_job_flag flags[] = {{"space", "nas_bench_201"},
                                    {"accuracy", "table:" TABLE "#c100_test_top1_pct"},
                                    {"device", "external"},
                                    {"objectives", "accuracy,latency.p50"},
                                    {"strategy", "random"},
                                    {"trials", "20"},
                                    {"seed", "3"},
                                    {"study", "flags.db"},
                                    {0}};
    hwnas_study_options options = HWNAS_STUDY_OPTIONS_INIT;
    options.flags = flags;
    write_job("file", "external", "random", 20, "");
    hwnas_study *study = open_job("file.yaml", false, false);
    ask_and_tell_all(study);
    hwnas_study_close(study);
    if (hwnas_study_open(&study, NULL, &options) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
    ask_and_tell_all(study);
    hwnas_study_close(study);
    have_the_same_trials("file.db", "flags.db", 20);
    refused(hwnas_study_open(&study, NULL, NULL), HWNAS_E_INPUT, "space");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "second"))
        return be_second(argv[2], argv[3]);
    const ssize_t length = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
    own_path[length > 0 ? length : 0] = '\0';
    const struct CMUnitTest tests[] = {
        TEST(proposes_what_a_search_does),
        TEST(goes_on_after_a_kill),
        TEST(asks_again_what_was_open),
        TEST(asks_for_nothing_that_misses_a_limit),
        TEST(asks_once_for_a_network),
        TEST(keeps_a_limit_by_the_whole_interval),
        TEST(takes_several_devices_and_an_accuracy),
        TEST(tells_which_layers_are_mixed),
        TEST(reports_and_explains),
        TEST(refuses_wrong_tells),
        TEST(refuses_wrong_jobs),
        TEST(ends_as_it_is_told_to),
        TEST(goes_on_after_an_ask_that_failed),
        TEST(needs_no_file_for_a_job),
    };
    return cmocka_run_group_tests(tests, read_table, NULL);
}
