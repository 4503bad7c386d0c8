/* test_predict_fit.c: src/predict: fitting, and files of fitted models, on NAS-Bench-Macro and
 * Accel-NASBench. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/predict_priv.h"
#include "tests/unit/predict_fixture.h"

static hwnas_fit_options accel_options(const char *data, const char *out)
{
    return (hwnas_fit_options){.space = "accel_nasbench",
                               .data = data,
                               .target = "val_top1_pct",
                               .out = out,
                               .command = "hwnas predictor fit ...",
                               .folds = 3,
                               .seed = 1};
}

static void fit_is_deterministic_and_ranks(void **state)
{
    (void)state;
    hwnas_fit_result result, again;
    write_rows("rows.csv", ACCEL_CSV, 13, 300);
    const char *data = in_dir("rows.csv"), *first = in_dir("a.json"), *second = in_dir("b.json");
    hwnas_fit_options options = accel_options(data, first);
    assert_int_equal(hwnas_predictor_fit(&result, &options), HWNAS_OK);
    options.out = second;
    assert_int_equal(hwnas_predictor_fit(&again, &options), HWNAS_OK);
    const hwnas_predictor_scores scores = result.scores;
    char *a = read_text(first), *b = read_text(second);
    assert_string_equal(a, b);
    free(a);
    free(b);
    assert_true(scores.kendall_tau == again.scores.kendall_tau);
    assert_string_equal(result.chosen, again.chosen);
    static const char *const views[] = {"looks at choices and facts:", "looks at choices and size:",
                                        "looks at facts:", "`gbdt`, weight"};
    for (size_t i = 0; i < COUNT(views); i++)
        assert_non_null(strstr(result.chosen, views[i]));
    free(result.chosen);
    free(again.chosen);
    assert_int_equal(scores.n_rows, 300);
    assert_true(scores.kendall_tau > 0.82 && scores.rmse < 1);
    assert_true(scores.coverage_90 > 0.8 && scores.coverage_90 < 0.98);
    char *card = read_text(in_dir("a.md"));
    assert_non_null(strstr(card, "`rows.csv`: 300 rows"));
    assert_non_null(strstr(card, "    hwnas predictor fit ...\n"));
    assert_null(strstr(card, in_dir("")));
    free(card);
}

static void fit_estimates_rows_it_has_not_seen(void **state)
{
    (void)state;
    hwnas_predictor *predictor = NULL;
    hwnas_predictor_scores scores;
    const char *path = in_dir("a.json"); /* of the test before */
    if (!hwnas_file_exists(path))
        skip();
    assert_int_equal(hwnas_predictor_load(&predictor, path, accel), HWNAS_OK);
    assert_string_equal(hwnas_predictor_kind(predictor), "ensemble");
    assert_string_equal(hwnas_predictor_target(predictor), "val_top1_pct");
    assert_string_equal(hwnas_predictor_unit(predictor), "%");
    write_rows("others.csv", ACCEL_CSV, 7, 500);
    assert_int_equal(hwnas_predictor_eval(&scores, predictor, accel, in_dir("others.csv"), NULL),
                     HWNAS_OK);
    assert_true(scores.kendall_tau > 0.82 && scores.coverage_90 > 0.8);

    /* One by one is the same as all at once, for more than one batch. */
    enum { N = 150 };
    hwnas_rng rng = hwnas_rng_new(1, 1);
    hwnas_arch *archs[N];
    hwnas_estimate together[N], alone;
    for (int i = 0; i < N; i++)
        hwnas_arch_sample(archs[i] = hwnas_arch_new(accel), &rng);
    const hwnas_arch *const *list = (const hwnas_arch *const *)archs;
    assert_int_equal(hwnas_predictor_score(together, predictor, list, N), HWNAS_OK);
    for (int i = 0; i < N; i++) {
        assert_int_equal(hwnas_predictor_score(&alone, predictor, list + i, 1), HWNAS_OK);
        assert_true(alone.mean == together[i].mean && alone.sd == together[i].sd && alone.sd > 0);
        hwnas_arch_free(archs[i]);
    }
    hwnas_predictor_free(predictor);
}

static void fit_keeps_a_network_in_one_fold(void **state)
{
    (void)state;
    /* Every third encoding; 6561 are 3969 networks: were they dealt one by one, folds would be
     * judged by networks that were trained on. */
    hwnas_fit_result result;
    write_rows("macro.csv", MACRO_CSV, 3, 3000);
    hwnas_fit_options options = {.space = "nas_bench_macro",
                                 .data = in_dir("macro.csv"),
                                 .target = "acc_top1_pct_mean",
                                 .out = in_dir("macro.json"),
                                 .kind = "gbdt",
                                 .folds = 3,
                                 .seed = 1};
    assert_int_equal(hwnas_predictor_fit(&result, &options), HWNAS_OK);
    free(result.chosen);
    assert_true(result.scores.kendall_tau > 0.9);
    char *card = read_text(in_dir("macro.md"));
    assert_non_null(strstr(card, "2187 rows of 1701 different networks"));
    free(card);
    hwnas_predictor *predictor = NULL;
    assert_int_equal(hwnas_predictor_load(&predictor, in_dir("macro.json"), macro), HWNAS_OK);
    assert_string_equal(hwnas_predictor_kind(predictor), "gbdt");
    hwnas_predictor_free(predictor);
}

static void fit_refuses(void **state)
{
    (void)state;
    static const char header[] = "code,pct\n";
    static const char *const codes[] = {"00000000", "11111111", "22222222", "10000000",
                                        "20000000", "01000000", "02000000", "00100000",
                                        "00200000", "00010000", "00020000", "00001000"};
    hwnas_str ten = {0}, constant = {0};
    hwnas_str_add(&ten, header);
    hwnas_str_add(&constant, header);
    for (size_t i = 0; i < COUNT(codes); i++) {
        hwnas_str_addf(&ten, "%s,%zu\n", codes[i], i);
        hwnas_str_addf(&constant, "%s,5\n", codes[i]);
    }
    char *with_empty = hwnas_printf("%s00002000,\n", ten.s);
    char *with_nan = hwnas_printf("%s00002000,nan\n", ten.s);
    char *outside = hwnas_printf("%s00003000,1\n", ten.s);
    const struct {
        const char *data, *target, *out;
        int folds;
        hwnas_status status;
        const char *message, *hint;
        int line;
    } cases[] = {
        {constant.s, "pct", "x.json", 0, HWNAS_E_INPUT, "is 5 in every row", "--target", 0},
        {with_empty, "pct", "x.json", 0, HWNAS_E_INPUT, "is empty", "drop the rows", 14},
        {with_nan, "pct", "x.json", 0, HWNAS_E_INPUT, "'nan' is not a number", "", 14},
        {outside, "pct", "x.json", 0, HWNAS_E_INPUT, "'3' is not a value of 'op'", "", 14},
        {"code,pct\n00000000,1\n11111111,2\n", "pct", "x.json", 0, HWNAS_E_INPUT,
         "2 different networks are too few", "a few hundred", 0},
        {"code,pct\n00000000,1\n11111111,2\n00000000,3\n", "pct", "x.json", 0, HWNAS_E_INPUT,
         "2 different networks are too few", "a few hundred", 0},
        {ten.s, "pctt", "x.json", 0, HWNAS_E_INPUT, "no column 'pctt'", "did you mean 'pct'?", 0},
        {ten.s, "pct", "x.json", 2, HWNAS_E_USAGE, "2 folds", "default", 0},
        {ten.s, "pct", "x.json", 13, HWNAS_E_USAGE, "13 folds", "default", 0},
        {ten.s, "pct", "no/such/dir.json", 0, HWNAS_E_IO, "cannot write", "directory", 0},
    };
    write_text("bad.csv", "");
    size_t n_files = count_files();
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_text("bad.csv", cases[i].data);
        hwnas_fit_result result = {0};
        hwnas_fit_options options = {.space = "nas_bench_macro",
                                     .data = in_dir("bad.csv"),
                                     .target = cases[i].target,
                                     .out = in_dir(cases[i].out),
                                     .folds = cases[i].folds};
        assert_failed(hwnas_predictor_fit(&result, &options), cases[i].status, cases[i].message,
                      cases[i].hint);
        assert_int_equal(hwnas_last_error()->line, cases[i].line);
        assert_int_equal(count_files(), n_files);
        assert_null(result.chosen);
    }
    /* And twelve rows are enough, of which some may be second trainings. */
    hwnas_str_addf(&ten, "%s,%d\n%s,%d\n", codes[0], 3, codes[5], 2);
    write_text("bad.csv", ten.s);
    hwnas_fit_result result;
    hwnas_fit_options options = {.space = "nas_bench_macro",
                                 .data = in_dir("bad.csv"),
                                 .target = "pct",
                                 .out = in_dir("ten.json")};
    assert_int_equal(hwnas_predictor_fit(&result, &options), HWNAS_OK);
    free(result.chosen);
    assert_true(isnan(result.scores.top_tenth_tau));
    options.kind = "magic";
    assert_failed(hwnas_predictor_fit(&result, &options), HWNAS_E_USAGE, "no kind 'magic'",
                  "auto, ensemble, gp, gbdt");
    hwnas_str_done(&ten);
    hwnas_str_done(&constant);
    free(with_empty);
    free(with_nan);
    free(outside);
}

/* Facts about graphs in the place of architectures: then networks of every space are scored. */
static void fit_for_any_space(void **state)
{
    (void)state;
    hwnas_str text = {0};
    hwnas_rng rng = hwnas_rng_new(1, 1);
    hwnas_str_add(&text, "network,log macs,log params,extra data,top1_pct\n");
    for (int i = 0; i < 80; i++) {
        double macs = 17 + 4 * hwnas_rng_double(&rng), params = 14 + 3 * hwnas_rng_double(&rng);
        unsigned extra = hwnas_rng_below(&rng, 2);
        hwnas_str_addf(&text, "n%d,%.4f,%.4f,%u,%.4f\n", i / 2, macs, params, extra,
                       60 + 2 * (macs - 17) + params - 14 + extra);
    }
    write_text("any.csv", text.s);
    hwnas_str_done(&text);
    hwnas_fit_result result;
    hwnas_fit_options options = {
        .space = "any", .data = in_dir("any.csv"), .target = "top1_pct", .out = in_dir("any.json")};
    assert_int_equal(hwnas_predictor_fit(&result, &options), HWNAS_OK);
    assert_true(result.scores.kendall_tau > 0.95);
    free(result.chosen);
    char *card = read_text(in_dir("any.md"));
    assert_non_null(strstr(card, "80 rows of 40 different families"));
    assert_non_null(strstr(card, "cannot rank networks of about"));
    free(card);

    hwnas_space *const spaces[] = {macro, accel};
    const char *const codes[] = {"22212220", "e=1666666,k=3353553,l=1223341,se=1111111"};
    for (size_t s = 0; s < COUNT(spaces); s++) {
        hwnas_predictor *predictor = NULL;
        hwnas_arch *arch = NULL;
        hwnas_graph *graph = NULL;
        hwnas_costs costs;
        hwnas_estimate estimate;
        assert_int_equal(hwnas_predictor_load(&predictor, in_dir("any.json"), spaces[s]), HWNAS_OK);
        assert_int_equal(hwnas_arch_parse(&arch, spaces[s], codes[s]), HWNAS_OK);
        assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
        hwnas_graph_costs(&costs, graph);
        assert_int_equal(
            hwnas_predictor_score(&estimate, predictor, (const hwnas_arch *const *)&arch, 1),
            HWNAS_OK);
        double expected = 60 + 2 * (log((double)costs.macs) - 17) + log((double)costs.params) - 14;
        assert_float_equal(estimate.mean, expected, 1);
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
        hwnas_predictor_free(predictor);
    }
}

/* A copy of a text with the first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
    size_t before = 0;
    while (text[before] && !hwnas_starts_with(text + before, from))
        before++;
    assert_true(text[before]);
    return hwnas_printf("%.*s%s%s", (int)before, text, to, text + before + strlen(from));
}

typedef struct damage {
    const char *from, *to, *message, *hint;
} damage;

/* A file in which something is replaced is refused, and says where. */
static void refuse(const char *good, const damage *done)
{
    hwnas_predictor *predictor = NULL;
    char *bad = replaced(good, done->from, done->to);
    write_text("bad.json", bad);
    free(bad);
    assert_failed(hwnas_predictor_load(&predictor, in_dir("bad.json"), accel), HWNAS_E_INPUT,
                  done->message, done->hint);
    assert_string_equal(hwnas_last_error()->file, in_dir("bad.json"));
}

/* An ensemble need not have trees, so they have a file of their own. */
static void load_refuses_trees(void **state)
{
    (void)state;
    hwnas_fit_result result;
    static const damage cases[] = {
        {"\"num_feature\":\"", "\"num_feature\":\"1", "inputs", ""},
        {"\"left_children\":[1", "\"left_children\":[999", "child is not among", ""},
        {"\"left_children\":[1", "\"left_children\":[0", "child is not among", ""},
        {"\"split_indices\":[", "\"split_indices\":[-1,", "differ in length", ""},
        {"\"split_conditions\":[", "\"split_conditions\":[{},", "differ in length", ""},
        {"\"trees\":[", "\"trees\":7,\"x\":[", "trees are damaged", ""},
    };
    write_rows("rows.csv", ACCEL_CSV, 13, 300);
    const char *data = in_dir("rows.csv"), *path = in_dir("trees.json");
    hwnas_fit_options options = accel_options(data, path);
    options.kind = "gbdt";
    assert_int_equal(hwnas_predictor_fit(&result, &options), HWNAS_OK);
    free(result.chosen);
    char *good = read_text(in_dir("trees.json"));
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse(good, &cases[i]);
    free(good);
}

static void load_refuses(void **state)
{
    (void)state;
    if (!hwnas_file_exists(in_dir("a.json")))
        skip();
    char *good = read_text(in_dir("a.json"));
    static const damage cases[] = {
        {"\"hwnas predictor\"", "\"something\"", "not a predictor of hwnas", "predictor fit"},
        {"\"version\": 2", "\"version\": 3", "has format version 3", "use a newer hwnas"},
        {"\"version\": 2", "\"version\": 1", "has format version 1", "fit the predictor again"},
        {"\"kind\": \"ensemble\"", "\"kind\": \"magic\"", "kind of predictor called 'magic'",
         "gbdt"},
        {"\"kind\": ", "\"kin\": ", "header is damaged", ""},
        {"\"log e[1]\"", "\"e[1]\"", "number 1 is 'e[1]'", "fit the predictor again"},
        {"\"facts\": [", "\"facts\": [\"x\", ", "facts is out of order", ""},
        {"\"facts\": [", "\"facts\": [7, ", "facts is not a name", ""},
        {"\"facts\": [", "\"facts\": [\"A\", ", "predictor has", ""},
        {"\"model\": ", "\"modal\": ", "no kind of model", ""},
        {"\"spread\":", "\"spread\":-", "'spread' must be positive", ""},
        {"\"fact_ranges\": [[", "\"fact_ranges\": [[1],[", "ranges of them", ""},
        {"\"table_sd\":", "\"table_sd\":-", "'extrapolation' is damaged", ""},
        {"\"beyond\":", "\"beyond\":{},\"x\":", "'extrapolation' of '", ""},
        {"\"weight\":", "\"weight\":1", "members are damaged", ""},
        {"\"weight\":", "\"waight\":", "members are damaged", ""},
        {"\"kind\":\"gp\"", "\"kind\":\"ensemble\"", "members are damaged", ""},
        {"\"name\":\"ceiling\"", "\"name\":\"sky\"", "no scale called 'sky'", ""},
        {"\"weights\":[", "\"weights\":[1,", "weights", ""},
        {"\"parameters\":[", "\"parameters\":[1,", "parameters", ""},
        {"\"parameters\":[", "\"parameters\":[1e9,", "parameters", ""},
        {"\"view\":\"", "\"view\":\"all ", "cannot look at", ""},
        {"\"rows\":[[", "\"rows\":[[0,", "columns of a row", ""},
    };
    hwnas_predictor *predictor = NULL;
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse(good, &cases[i]);
    /* Wherever it was cut off. */
    for (size_t n = 0; n < strlen(good) - 2; n += strlen(good) / 23) {
        char *cut = hwnas_printf("%.*s", (int)n, good);
        write_text("bad.json", cut);
        free(cut);
        assert_failed(hwnas_predictor_load(&predictor, in_dir("bad.json"), accel), HWNAS_E_INPUT,
                      "this is not JSON", "complete");
    }
    assert_failed(hwnas_predictor_load(&predictor, in_dir("a.json"), macro), HWNAS_E_INPUT,
                  "fitted on the space 'accel_nasbench', not on the space 'nas_bench_macro'",
                  "for this space");
    assert_failed(hwnas_predictor_load(&predictor, "no_such_predictor", accel), HWNAS_E_NOT_FOUND,
                  "no 'no_such_predictor'", "looked for");
    assert_null(predictor);
    free(good);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_is_deterministic_and_ranks),
        cmocka_unit_test(fit_estimates_rows_it_has_not_seen),
        cmocka_unit_test(fit_keeps_a_network_in_one_fold),
        cmocka_unit_test(fit_refuses),
        cmocka_unit_test(fit_for_any_space),
        cmocka_unit_test(load_refuses),
        cmocka_unit_test(load_refuses_trees),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
