/* Searches of trained models: what they begin with, what samples say of a network, and what is
 * learnt of one that was not run on all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "derive/derive.h"
#include "inherit/samples.h"
#include "predict/predict.h"
#include "search/surrogate.h"
#include "study/probe.h"
#include "tests/unit/amount.h"
#include "tests/unit/device_fixture.h"
#include "trial/judge.h"

#define DATA                                                                                       \
    "samples:" HWNAS_TEST_DATA "/fashion_images.gz#labels=" HWNAS_TEST_DATA                        \
    "/fashion_labels.gz,scale=1/255,mean=0.286,std=0.353"

static char folder[] = "/tmp/hwnas-optimize-XXXXXX";
static char space_path[64];
static hwnas_space *space;

static int make_space(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(space_path, sizeof space_path, "%s/net.yaml", folder);
    ok(hwnas_derive_space(space_path, HWNAS_TEST_DATA "/fashion_tiny.onnx", true));
    ok(hwnas_load_space(&space, space_path));
    return 0;
}

static int remove_space(void **state)
{
    (void)state;
    hwnas_space_free(space);
    unlink(space_path);
    return rmdir(folder);
}

/* ---- What a search begins with ---- */

static hwnas_job *load_job(const char *constraints)
{
    hwnas_job *job;
    const hwnas_job_flag flags[] = {{"space", space_path},
                                    {"accuracy", DATA},
                                    {"device", "cpu"},
                                    {"objectives", "accuracy, latency.p50"},
                                    {"constraints", constraints},
                                    {"batch", "{values: [32, 1]}"},
                                    {0}};
    ok(hwnas_job_load(&job, NULL, flags));
    return job;
}

/* The gene of a choice. */
static size_t find_gene(const hwnas_space *walked, const char *choice)
{
    for (size_t g = 0; g < walked->n_genes; g++)
        if (!strcmp(walked->choices[walked->genes[g].choice].name, choice))
            return g;
    fail_msg("there is no choice %s", choice);
    return 0;
}

static bool is_smallest(const hwnas_arch *arch, const hwnas_space *walked, hwnas_quantity quantity)
{
    hwnas_arch *smallest = hwnas_probe_extreme(walked, hwnas_metric_of(quantity), false);
    const bool is = hwnas_arch_equal(arch, smallest);
    hwnas_arch_free(smallest);
    return is;
}

/* The batch and the height of images have their largest value first, too. */
static void scalings_change_widths_alone(void **state)
{
    hwnas_arch *starts[HWNAS_MAX_STARTS];
    const hwnas_space *walked;
    hwnas_job *job = load_job("latency.p50 <= 1 ms");
    int n_scalings = 0;
    (void)state;
    ok(hwnas_settings_space(&walked, space, job));
    const size_t height = find_gene(walked, "resolution"), batch = find_gene(walked, "batch");
    const size_t width = find_gene(walked, "w_4_0");
    const int n = hwnas_probe_starts(starts, job, walked);
    for (int i = 0; i < n; i++) {
        if (!is_smallest(starts[i], walked, HWNAS_MACS) &&
            !is_smallest(starts[i], walked, HWNAS_PARAMS)) {
            n_scalings++;
            assert_int_equal(starts[i]->genes[height], 0);
            assert_int_equal(starts[i]->genes[batch], 0);
            assert_int_not_equal(starts[i]->genes[width], 0);
        }
        hwnas_arch_free(starts[i]);
    }
    assert_true(n_scalings >= 5);
    hwnas_job_free(job);
}

/* ---- Samples ---- */

static hwnas_predictor *open_samples(const char *options)
{
    hwnas_predictor *predictor;
    char text[1024];
    snprintf(text, sizeof text, "%s%s", DATA, options);
    ok(hwnas_predictor_load(&predictor, text, space));
    return predictor;
}

/* The model is right on 87.5 % of all 256; 128 of them judge. */
static void a_network_below_the_floor_is_not_run_on_all(void **state)
{
    hwnas_predictor *predictor = open_samples("");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_estimate all, some;
    int64_t n = 0, n_all = 0;
    (void)state;
    assert_false(hwnas_predictor_was_stopped(&n, &n_all, predictor)); /* nothing was run */
    ok(hwnas_predictor_score(&all, predictor, (const hwnas_arch *const[]){arch}, 1));
    assert_false(hwnas_predictor_was_stopped(&n, &n_all, predictor));
    assert_int_equal(n, 128);
    hwnas_predictor_stop_below(predictor, 99.5);
    ok(hwnas_predictor_score(&some, predictor, (const hwnas_arch *const[]){arch}, 1));
    assert_true(hwnas_predictor_was_stopped(&n, &n_all, predictor));
    assert_true(n < 64 && n_all == 128);
    assert_true(some.sd > all.sd);
    hwnas_arch_free(arch);
    hwnas_predictor_free(predictor);
}

/* Ranges are of the samples that recover weights, however large a batch is: those that judge play
 * no part. */
static void ranges_are_of_the_samples_that_recover(void **state)
{
    static const struct {
        const char *options;
        int batch;
        int64_t n;
        size_t n_batches;
    } rows[] = {{",recover=12", 64, 12, 1}, {",recover=12", 5, 10, 2}, {",recover=12", 12, 12, 1},
                {",recover=1", 4, 1, 1},    {",recover=1", 1, 1, 1},   {"", 1, 64, 64}};
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        hwnas_predictor *predictor = open_samples(rows[r].options);
        hwnas_samples *samples = hwnas_predictor_samples_of(predictor);
        hwnas_exec_options one = {0}, how = {0};
        ok(hwnas_samples_calibrate(&one, samples, 1));
        ok(hwnas_samples_calibrate(&how, samples, rows[r].batch));
        assert_int_equal(hwnas_samples_calibrated(samples, rows[r].batch), rows[r].n);
        assert_true(how.precision == HWNAS_S8 && how.n_samples == rows[r].n_batches);
        for (size_t i = 0; i < how.n_samples * (size_t)rows[r].batch; i++)
            assert_memory_equal(how.samples + i * 784, one.samples + i % (size_t)rows[r].n * 784,
                                784 * sizeof(float));
        hwnas_predictor_free(predictor);
    }
}

static void one_sample_gives_ranges(void **state)
{
    hwnas_predictor *predictor = open_samples(",recover=1,weights=inherited");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_estimate estimate;
    (void)state;
    hwnas_predictor_use_precision(predictor, HWNAS_S8);
    ok(hwnas_predictor_score(&estimate, predictor, (const hwnas_arch *const[]){arch}, 1));
    assert_true(estimate.mean > 50); /* ten classes */
    hwnas_arch_free(arch);
    hwnas_predictor_free(predictor);
}

/* The trained networks of the benchmark: plain, with branches, with depthwise layers, with heads.
 */
static void open_trained(hwnas_space **out, hwnas_predictor **judge, char *path, const char *name)
{
    char model[256];
    snprintf(model, sizeof model, HWNAS_TEST_DATA "/../../benchmarks/optimize/networks/%s.onnx",
             name);
    snprintf(path, 64, "%s/%s.yaml", folder, name);
    ok(hwnas_derive_space(path, model, true));
    ok(hwnas_load_space(out, path));
    ok(hwnas_predictor_load(judge, DATA ",recover=64", *out));
}

/* Networks are judged in batches of 64 and written with a batch of 1: a channel that stays in one
 * must stay in the other. */
static void a_network_is_the_same_with_any_batch(void **state)
{
    static const char *const names[] = {"vgg", "resnet20", "mobilenet", "vit"};
    enum { N_NETWORKS = 3, BATCHES = 3, N = 128 };
    static const int batches[BATCHES] = {64, 1, 3};
    static double each[BATCHES][N];
    (void)state;
    for (size_t m = 0; m < COUNT(names); m += EVERY(2)) {
        hwnas_space *trained;
        hwnas_predictor *judge;
        char path[64];
        hwnas_estimate_95 accuracy;
        hwnas_rng rng = hwnas_rng_new(5, 0);
        open_trained(&trained, &judge, path, names[m]);
        hwnas_samples *samples = hwnas_predictor_samples_of(judge);
        hwnas_arch *arch = hwnas_arch_new(trained);
        assert_int_equal(hwnas_samples_count(samples, HWNAS_SAMPLES_SEARCH), N);
        for (int i = 0; i < N_NETWORKS; i++) {
            int n_apart = 0;
            assert_true(hwnas_arch_sample(arch, &rng));
            for (int b = 0; b < BATCHES; b++) {
                hwnas_graph *graph;
                ok(hwnas_samples_build(&graph, samples, arch, batches[b]));
                ok(hwnas_samples_judge(&accuracy, each[b], samples, graph, HWNAS_F32,
                                       HWNAS_SAMPLES_SEARCH));
                hwnas_graph_free(graph);
                for (int k = 0; k < N; k++)
                    n_apart += each[b][k] != each[0][k];
            }
            print_message("# %s: %g %%, %d of %d apart\n", names[m], accuracy.value, n_apart,
                          (BATCHES - 1) * N);
            assert_true(n_apart <= 2); /* by rounding */
        }
        hwnas_arch_free(arch);
        hwnas_predictor_free(judge);
        hwnas_space_free(trained);
        unlink(path);
    }
}

/* ---- What is learnt ---- */

static void add_value(hwnas_trial *trial, const char *metric, hwnas_source source, double value)
{
    hwnas_value_row row = {
        .value = value, .low = 0.99 * value, .high = 1.01 * value, .source = source};
    row.metric = metric;
    hwnas_trial_add(trial, &row);
}

/* Whatever limits it is judged by. */
static void a_part_of_the_samples_is_no_accuracy(void **state)
{
    static const char *const limits[] = {"accuracy >= 90 %", "latency.p50 <= 1 ms"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        hwnas_job *job = load_job(limits[k]);
        const hwnas_source sources[] = {HWNAS_TRAINED, HWNAS_PARTIAL};
        for (int i = 0; i < 2; i++) {
            hwnas_trial trial = {.is_finished = true};
            add_value(&trial, "accuracy", sources[i], 92);
            add_value(&trial, "latency.p50", HWNAS_MEASURED, 0.5e-3);
            trial.violation = hwnas_trial_violation(&trial, &job->goals, true);
            const hwnas_score score = hwnas_trial_score(&trial, &job->goals);
            assert_int_equal(hwnas_trial_is_feasible(&trial, &job->goals, 0), i == 0);
            assert_int_equal(isnan(score.objectives[0]), i == 1);
            assert_false(isnan(score.objectives[1]));
            assert_true(i == 0 ? score.violation == 0 : score.violation > 0);
            free(trial.values);
        }
        hwnas_job_free(job);
    }
}

/* Networks that miss one limit were not asked about the other, which all others miss: nobody meets
 * it. */
static void what_was_not_asked_is_not_learnt(void **state)
{
    (void)state;
    enum { N = 60 };
    const hwnas_strategy_config config = {.space = space, .seed = 1, .n_objectives = 2};
    hwnas_surrogate *surrogate = hwnas_surrogate_new(&config);
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(3, 0);
    hwnas_encoding encodings[N + 1];
    hwnas_told told[N];
    for (size_t i = 0; i <= N; i++) {
        assert_true(hwnas_arch_sample(arch, &rng));
        ok(hwnas_encode(&encodings[i], arch));
        if (i == N)
            break;
        const bool is_asked = i % 2;
        told[i] = (hwnas_told){.trial = i, .encoding = &encodings[i]};
        told[i].score = (hwnas_score){.violation = 0.2,
                                      .objectives = {is_asked ? -80 : NAN, 1},
                                      .n_margins = 2,
                                      .margins = {-0.1, is_asked ? 0.2 : NAN}};
    }
    hwnas_outlook outlook;
    const hwnas_encoding *next = &encodings[N];
    ok(hwnas_surrogate_update(surrogate, told, N, NULL, 0));
    hwnas_surrogate_predict(surrogate, &outlook, &next, 1);
    print_message("# meets the limit with probability %g\n", outlook.feasible[0]);
    assert_true(outlook.feasible[0] < 0.05);
    hwnas_outlook_done(&outlook);
    hwnas_surrogate_free(surrogate);
    for (size_t i = 0; i <= N; i++)
        hwnas_encoding_done(&encodings[i]);
    hwnas_arch_free(arch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalings_change_widths_alone),
        cmocka_unit_test(a_network_below_the_floor_is_not_run_on_all),
        cmocka_unit_test(ranges_are_of_the_samples_that_recover),
        cmocka_unit_test(one_sample_gives_ranges),
        cmocka_unit_test(a_network_is_the_same_with_any_batch),
        cmocka_unit_test(a_part_of_the_samples_is_no_accuracy),
        cmocka_unit_test(what_was_not_asked_is_not_learnt),
    };
    return cmocka_run_group_tests(tests, make_space, remove_space);
}
