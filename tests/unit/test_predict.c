/* test_predict.c: src/predict and space/table: published tables, the parts of the fitted model, and
 * fitting itself, on NAS-Bench-Macro and Accel-NASBench. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xgboost/c_api.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/stats.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/domain.h"
#include "predict/features.h"
#include "predict/int8_loss.h"
#include "predict/link.h"
#include "predict/predict_priv.h"
#include "predict/ridge.h"
#include "predict/trees.h"
#include "space/table.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MACRO_CSV HWNAS_TEST_DATA "/nas_bench_macro.csv"
#define ACCEL_CSV HWNAS_TEST_DATA "/accel_nasbench.csv"

static char dir[] = "/tmp/test_predict.XXXXXX";
static hwnas_space *macro, *accel;

/* Borrowed until the fourth call after this one. */
static const char *in_dir(const char *name)
{
    static char *paths[4];
    static size_t next;
    char **path = &paths[next++ % COUNT(paths)];
    free(*path);
    return *path = hwnas_printf("%s/%s", dir, name);
}

static void write_text(const char *name, const char *text)
{
    assert_int_equal(hwnas_file_write(in_dir(name), text, strlen(text)), HWNAS_OK);
}

static char *read_text(const char *path)
{
    char *text = NULL;
    assert_int_equal(hwnas_file_read(&text, NULL, path, (size_t)64 << 20), HWNAS_OK);
    return text;
}

/* The first rows of a table, every `step`-th: Accel-NASBench's are sorted by how they were drawn.
 */
static void write_rows(const char *name, const char *from, size_t step, size_t limit)
{
    char *text = read_text(from), *rest = text;
    hwnas_str out = {0};
    hwnas_str_addf(&out, "%s\n", strsep(&rest, "\n"));
    size_t row = 0, n = 0;
    for (char *line; n < limit && (line = strsep(&rest, "\n")) && *line; row++)
        if (row % step == 0 && ++n)
            hwnas_str_addf(&out, "%s\n", line);
    write_text(name, out.s);
    hwnas_str_done(&out);
    free(text);
}

static size_t count_files(void)
{
    size_t n = 0;
    DIR *open = opendir(dir);
    for (struct dirent *entry; (entry = readdir(open));)
        n += entry->d_name[0] != '.';
    closedir(open);
    return n;
}

static void assert_failed(hwnas_status got, hwnas_status expected, const char *message,
                          const char *hint)
{
    const hwnas_error *error = hwnas_last_error();
    if (got != expected || !strstr(error->message, message) || !strstr(error->hint, hint))
        fail_msg("status '%s', message '%s', hint '%s'", hwnas_status_name(got), error->message,
                 error->hint);
}

static int set_up(void **state)
{
    (void)state;
    return !mkdtemp(dir) || hwnas_graph_load_space(&macro, "nas_bench_macro") ||
           hwnas_graph_load_space(&accel, "accel_nasbench");
}

static int tear_down(void **state)
{
    (void)state;
    hwnas_space_free(macro);
    hwnas_space_free(accel);
    DIR *open = opendir(dir);
    for (struct dirent *entry; (entry = readdir(open));)
        if (entry->d_name[0] != '.')
            unlink(in_dir(entry->d_name));
    closedir(open);
    return rmdir(dir);
}

/* -- tables -- */

static void table_finds_every_row(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    assert_int_equal(hwnas_table_load(&table, macro, MACRO_CSV), HWNAS_OK);
    assert_int_equal(table->n, 6561);
    for (size_t row = 0; row < table->n; row++) {
        char *code = hwnas_arch_code(table->archs[row]);
        assert_string_equal(code, hwnas_csv_cell(table->csv, row, 0));
        assert_int_equal(hwnas_table_find(table, table->archs[row]), row);
        free(code);
    }
    hwnas_table_free(table);
}

static void table_finds_the_first_of_repeated_rows(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    write_text("t.csv", "code,x\n00000000,1\n11111111,2\n00000000,3\n");
    assert_int_equal(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_OK);
    assert_int_equal(hwnas_table_find(table, table->archs[2]), 0);
    hwnas_arch *absent = NULL;
    assert_int_equal(hwnas_arch_parse(&absent, macro, "22222222"), HWNAS_OK);
    assert_int_equal(hwnas_table_find(table, absent), -1);
    hwnas_arch_free(absent);
    hwnas_table_free(table);
}

/* Columns that are called otherwise than choices, one for a choice or one for each position. */
static void table_takes_foreign_names(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    hwnas_space *mix;
    write_text(
        "mix.yaml",
        "hwnas: 1\nname: mix\ninput: {image: [3, 8, 8]}\nchoices:\n"
        "  width: {each_of: 2, values: [8, 16]}\n  act: {values: [relu, sigmoid]}\n"
        "network:\n  - conv: {out: \"width[0]\", kernel: 1}\n"
        "  - conv: {out: \"width[1]\", kernel: 1}\n  - switch: act\n    cases: {relu: [relu], "
        "sigmoid: [sigmoid]}\n");
    write_text("named.csv", "name,w_1,w_2,activation,acc\na,8,16,relu,1\nb,16,8,sigmoid,2\n");
    assert_int_equal(hwnas_space_load(&mix, in_dir("mix.yaml")), HWNAS_OK);
    char *path = hwnas_printf("%s?width=w_1+w_2,act=activation", in_dir("named.csv"));
    assert_int_equal(hwnas_table_load(&table, mix, path), HWNAS_OK);
    char *code = hwnas_arch_code(table->archs[1]);
    assert_string_equal(code, "width=16.8,act=sigmoid");
    free(code);
    hwnas_table_free(table);
    free(path);

    static const char *const wrong[][2] = {
        {"?width=w_1+w_2", "none for the choice 'act'"},
        {"?widht=w_1", "the space 'mix' has no choice 'widht'"},
        {"?width=w_1+w_2+w_1,act=activation", "another number of positions"},
        {"?width=w_3,act=activation", "there is no column 'w_3'"},
        {"?act=activation,act=activation", "'act' is named twice"},
        {"?width", "'width' names no choice and column"},
        {"?", "names no choice and column"},
        {"?code=name", "a"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        path = hwnas_printf("%s%s", in_dir("named.csv"), wrong[i][0]);
        assert_int_equal(hwnas_table_load(&table, mix, path), HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, wrong[i][1]));
        free(path);
    }
    write_text("odd?code=x.csv", "code,acc\n\"width=8.8,act=relu\",1\n"); /* a file's own name */
    assert_int_equal(hwnas_table_load(&table, mix, in_dir("odd?code=x.csv")), HWNAS_OK);
    hwnas_table_free(table);
    hwnas_space_free(mix);
}

static void table_reads_one_column_for_each_choice(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    assert_int_equal(hwnas_table_load(&table, accel, ACCEL_CSV), HWNAS_OK);
    assert_int_equal(table->n, 4110);
    char *code = hwnas_arch_code(table->archs[0]);
    assert_string_equal(code, "e=6466611,k=3535533,l=1233222,se=0000000");
    free(code);
    hwnas_table_free(table);
}

static void table_refuses(void **state)
{
    (void)state;
    hwnas_table *table = NULL;
    write_text("t.csv", "code,x\n00000000,1\n00000003,2\n");
    assert_failed(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_E_INPUT,
                  "'3' is not a value of 'op'", "looks like");
    assert_int_equal(hwnas_last_error()->line, 3);
    assert_string_equal(hwnas_last_error()->file, in_dir("t.csv"));
    write_text("t.csv", "x,y\n1,2\n");
    assert_failed(hwnas_table_load(&table, macro, in_dir("t.csv")), HWNAS_E_INPUT, "no 'code'",
                  "give one column");
    assert_null(table);
}

static void table_predictor_looks_up(void **state)
{
    (void)state;
    hwnas_predictor *predictor = NULL;
    assert_int_equal(
        hwnas_predictor_load(&predictor, "table:" MACRO_CSV "#acc_top1_pct_mean", macro), HWNAS_OK);
    assert_string_equal(hwnas_predictor_kind(predictor), "table");
    assert_string_equal(hwnas_predictor_target(predictor), "acc_top1_pct_mean");
    assert_string_equal(hwnas_predictor_unit(predictor), "%");
    hwnas_arch *arch = NULL;
    hwnas_estimate estimate;
    assert_int_equal(hwnas_arch_parse(&arch, macro, "22212220"), HWNAS_OK);
    assert_int_equal(
        hwnas_predictor_score(&estimate, predictor, (const hwnas_arch *const *)&arch, 1), HWNAS_OK);
    assert_true(estimate.mean == 93.1267 && estimate.sd == 0);
    hwnas_arch_free(arch);

    hwnas_predictor_scores scores;
    assert_int_equal(hwnas_predictor_eval(&scores, predictor, macro, MACRO_CSV, NULL), HWNAS_OK);
    assert_int_equal(scores.n_rows, 6561);
    assert_true(scores.kendall_tau > 0.9999 && scores.rmse == 0 && isnan(scores.coverage_90));
    hwnas_predictor_free(predictor);
}

static void table_predictor_refuses(void **state)
{
    (void)state;
    hwnas_predictor *predictor = NULL;
    assert_failed(hwnas_predictor_load(&predictor, "table:" MACRO_CSV, macro), HWNAS_E_INPUT,
                  "names no file and column", "FILE#COLUMN");
    assert_failed(hwnas_predictor_load(&predictor, "table:" MACRO_CSV "#acc_top1_pct_men", macro),
                  HWNAS_E_INPUT, "no column", "did you mean 'acc_top1_pct_mean'?");
    assert_failed(hwnas_predictor_load(&predictor, "table:/no/such.csv#x", macro),
                  HWNAS_E_NOT_FOUND, "cannot open", "");
    write_text("t.csv", "code,x_ms\n00000000,1\n11111111,\n22222222,two\n");
    char *name = hwnas_printf("table:%s#x_ms", in_dir("t.csv"));
    assert_failed(hwnas_predictor_load(&predictor, name, macro), HWNAS_E_INPUT, "not a number", "");
    assert_int_equal(hwnas_last_error()->line, 4);
    write_text("t.csv", "code,x_ms\n00000000,1\n11111111,\n");
    assert_int_equal(hwnas_predictor_load(&predictor, name, macro), HWNAS_OK);
    assert_string_equal(hwnas_predictor_unit(predictor), "ms");
    free(name);
    hwnas_arch *archs[2] = {NULL};
    hwnas_estimate estimates[2];
    assert_int_equal(hwnas_arch_parse(&archs[0], macro, "00000000"), HWNAS_OK);
    assert_int_equal(hwnas_arch_parse(&archs[1], macro, "11111111"), HWNAS_OK);
    const hwnas_arch *const *list = (const hwnas_arch *const *)archs;
    assert_failed(hwnas_predictor_score(estimates, predictor, list, 2), HWNAS_E_NOT_FOUND,
                  "'x_ms' is empty for 11111111", "predictor fit");
    hwnas_arch_free(archs[1]);
    assert_int_equal(hwnas_arch_parse(&archs[1], macro, "01010101"), HWNAS_OK);
    assert_failed(hwnas_predictor_score(estimates, predictor, list, 2), HWNAS_E_NOT_FOUND,
                  "no row for 01010101", "predictor fit");
    hwnas_arch_free(archs[0]);
    hwnas_arch_free(archs[1]);
    hwnas_predictor_free(predictor);
}

/* -- the parts of the model -- */

static void encoding_of_numbers(void **state)
{
    (void)state;
    static const char *const facts[] = {"log macs", "log params"};
    hwnas_feature_encoding *e = hwnas_feature_encoding_new(accel, facts, 2);
    assert_int_equal(e->first[HWNAS_COLUMN_SUM], 28);
    assert_int_equal(e->first[HWNAS_COLUMN_FACT], 32);
    assert_int_equal(e->n_columns, 34);
    assert_string_equal(e->columns[0].name, "log e[1]");
    assert_string_equal(e->columns[27].name, "se[7]");
    assert_string_equal(e->columns[28].name, "sum log e");
    assert_string_equal(e->columns[31].name, "sum se");
    hwnas_arch *arch = NULL;
    assert_int_equal(hwnas_arch_parse(&arch, accel, "e=1666666,k=3353553,l=1223341,se=0111111"),
                     HWNAS_OK);
    double row[34];
    assert_int_equal(hwnas_feature_encoding_row(e, row, arch, true), HWNAS_OK);
    assert_float_equal(row[1], log(6), 1e-6);
    assert_float_equal(row[28], 6 * log(6), 1e-5);
    assert_true(row[31] == 6);
    hwnas_graph *graph = NULL;
    hwnas_costs costs;
    assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
    hwnas_graph_costs(&costs, graph);
    assert_float_equal(row[32], log((double)costs.macs), 1e-6);
    assert_float_equal(row[33], log((double)costs.params), 1e-6);
    hwnas_graph_free(graph);

    hwnas_features *features = hwnas_features_new(e, false);
    assert_int_equal(features->n_columns, 32);
    /* All products of two genes' columns but the squares of the 14 genes that have two values. */
    assert_int_equal(features->n_terms, 1 + 32 + 28 * 29 / 2 - 14);
    assert_int_equal(features->n_inputs, 32 + 6 * 7);
    double *terms = hwnas_alloc(features->n_terms * sizeof *terms), rows[3 * 34];
    float *inputs = hwnas_alloc(features->n_inputs * sizeof *inputs);
    hwnas_features_inputs(features, inputs, row);
    assert_float_equal(inputs[32], 3, 1e-4);  /* e*k of the first stage */
    assert_float_equal(inputs[35], 18, 1e-4); /* and of the second */
    for (uint16_t v = 0; v < 3; v++) {
        arch->genes[0] = v;
        assert_int_equal(hwnas_feature_encoding_row(e, rows + 34 * v, arch, true), HWNAS_OK);
    }
    hwnas_features_standardise(features, rows, 3);
    double sum = 0, squares = 0; /* over its rows a column has mean 0 and variance 1 */
    for (int v = 0; v < 3; v++) {
        hwnas_features_terms(features, terms, rows + 34 * v);
        assert_true(terms[0] == 1 && terms[2] == 0); /* the second column is constant in them */
        sum += terms[1];
        squares += terms[1] * terms[1];
    }
    assert_float_equal(sum, 0, 1e-9);
    assert_float_equal(squares, 3, 1e-9);
    assert_float_equal(terms[33], terms[1] * terms[1], 1e-12);
    free(terms);
    free(inputs);
    hwnas_arch_free(arch);
    hwnas_features_free(features);
    hwnas_feature_encoding_free(e);
}

static void encoding_of_symbols_and_conditions(void **state)
{
    (void)state;
    static const char yaml[] =
        "hwnas: 1\nname: symbols\nabout: test\ninput: {image: [3, 8, 8]}\n"
        "choices:\n  n: {values: [1, 2]}\n"
        "  op: {each_of: 2, values: [skip, relu, gelu], when: i < n}\n"
        "network:\n  - relu\n  - let: {used: op}\n";
    hwnas_space *space = NULL;
    assert_int_equal(hwnas_space_parse(&space, "symbols.yaml", yaml, strlen(yaml), NULL), HWNAS_OK);
    hwnas_feature_encoding *e = hwnas_feature_encoding_new(space, NULL, 0);
    hwnas_features *features = hwnas_features_new(e, false);
    assert_string_equal(e->columns[2].name, "op[2]");
    assert_string_equal(e->columns[5].name, "sum op=gelu");
    /* n; three operators and "not there" twice; three sums */
    assert_int_equal(features->n_columns, 1 + 2 * 4 + 3);
    /* n with each indicator, and those of one gene with those of the other */
    assert_int_equal(features->n_pairs, 8 + 16);
    hwnas_arch *arch = NULL;
    double row[6];
    float inputs[12];
    assert_int_equal(hwnas_arch_parse(&arch, space, "n=1,op=relu.skip"), HWNAS_OK);
    assert_int_equal(hwnas_feature_encoding_row(e, row, arch, true), HWNAS_OK);
    assert_memory_equal(row, ((double[]){0, 1, 3, 0, 1, 0}), sizeof row);
    hwnas_features_inputs(features, inputs, row);
    assert_memory_equal(inputs, ((float[]){0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0}), sizeof inputs);
    hwnas_arch_free(arch);
    hwnas_features_free(features);
    hwnas_feature_encoding_free(e);
    hwnas_space_free(space);
}

static void links_go_there_and_back(void **state)
{
    (void)state;
    static const double values[] = {42.5, 55, 60, 61, 62.25, 67};
    for (int i = 0; i < HWNAS_N_LINKS; i++) {
        hwnas_link link;
        double slope, nearby, step = 1e-6, sum = 0;
        hwnas_link_make(&link, i, values, COUNT(values));
        for (size_t v = 0; v < COUNT(values); v++) {
            double t = hwnas_link_apply(&link, values[v]);
            sum += t;
            assert_float_equal(hwnas_link_invert(&link, t, &slope), values[v], 1e-9);
            double change = hwnas_link_invert(&link, t + step, &nearby) - values[v];
            assert_float_equal(change / step, slope, 1e-4 * slope); /* and it is increasing */
        }
        assert_float_equal(sum, 0, 1e-9);
        assert_true(isfinite(hwnas_link_invert(&link, 1e6, &slope)));
        assert_true(isfinite(hwnas_link_invert(&link, -1e6, &slope)));
    }
}

static void ridge_solves(void **state)
{
    (void)state;
    /* (gram + penalty * diag(shares)) w = right, put back in. */
    enum { N = 7 };
    hwnas_rng rng = hwnas_rng_new(1, 1);
    double gram[N * N] = {0}, full[N * N], right[N], weights[N], shares[N];
    for (int row = 0; row < 5; row++) { /* fewer rows than terms */
        double terms[N];
        for (int i = 0; i < N; i++)
            terms[i] = hwnas_rng_double(&rng) - 0.5;
        hwnas_gram_add(gram, terms, 1, N, NULL, 0);
    }
    for (int i = 0; i < N; i++) {
        right[i] = weights[i] = hwnas_rng_double(&rng);
        shares[i] = 1 + i;
        for (int j = 0; j < N; j++)
            full[i * N + j] = gram[j <= i ? i * N + j : j * N + i] + (i == j ? 0.5 * (1 + i) : 0);
    }
    hwnas_ridge_factor(gram, N, 0.5, shares);
    hwnas_ridge_solve(gram, weights, N);
    for (int i = 0; i < N; i++)
        assert_float_equal(hwnas_dot(full + i * N, weights, N), right[i], 1e-12);
}

static void trees_give_what_xgboost_gives(void **state)
{
    (void)state;
    enum { N = 500, INPUTS = 6 };
    hwnas_rng rng = hwnas_rng_new(1, 1);
    static float inputs[N * INPUTS], targets[N], ours[N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < INPUTS; k++)
            inputs[i * INPUTS + k] = (float)hwnas_rng_below(&rng, 5);
        targets[i] = inputs[i * INPUTS] * inputs[i * INPUTS + 1] + (float)hwnas_rng_double(&rng) -
                     inputs[i * INPUTS + 3];
    }
    hwnas_trees *trees = NULL;
    assert_int_equal(hwnas_trees_fit(&trees, inputs, targets, N, INPUTS, 7), HWNAS_OK);
    hwnas_trees_predict(ours, trees, inputs, N);

    const char *text = hwnas_trees_text(trees);
    BoosterHandle booster;
    DMatrixHandle data;
    bst_ulong n;
    const float *theirs;
    assert_int_equal(XGBoosterCreate(NULL, 0, &booster), 0);
    assert_int_equal(XGBoosterLoadModelFromBuffer(booster, text, strlen(text)), 0);
    assert_int_equal(XGDMatrixCreateFromMat(inputs, N, INPUTS, NAN, &data), 0);
    assert_int_equal(XGBoosterPredict(booster, data, 0, 0, 0, &n, &theirs), 0);
    assert_int_equal(n, N);
    for (int i = 0; i < N; i++)
        assert_float_equal(ours[i], theirs[i], 1e-5);
    XGDMatrixFree(data);
    XGBoosterFree(booster);
    hwnas_trees_free(trees);
}

static void units_come_from_names(void **state)
{
    (void)state;
    assert_string_equal(hwnas_column_unit("val_top1_pct"), "%");
    assert_string_equal(hwnas_column_unit("acc_top1_pct_run2"), "%");
    assert_string_equal(hwnas_column_unit("zcu102_latency_ms"), "ms");
    assert_string_equal(hwnas_column_unit("a100_fps"), "1/s");
    assert_string_equal(hwnas_column_unit("score"), "");
}

/* -- fitting -- */

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
    assert_non_null(strstr(result.chosen, "`gp`, weight"));
    free(result.chosen);
    free(again.chosen);
    assert_int_equal(scores.n_rows, 300);
    assert_true(scores.kendall_tau > 0.82 && scores.rmse < 1);
    assert_true(scores.coverage_90 > 0.8 && scores.coverage_90 < 0.98);
    char *card = read_text(in_dir("a.md"));
    assert_non_null(strstr(card, "`rows.csv`: 300 rows"));
    assert_non_null(strstr(card, "    hwnas predictor fit ...\n"));
    assert_null(strstr(card, dir));
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

static void shipped_predictor_keeps_its_word(void **state)
{
    (void)state;
    hwnas_predictor *predictor = NULL;
    hwnas_predictor_scores scores;
    assert_int_equal(hwnas_predictor_load(&predictor, "accel_nasbench_imagenet", accel), HWNAS_OK);
    assert_int_equal(hwnas_predictor_eval(&scores, predictor, accel, ACCEL_CSV, NULL), HWNAS_OK);
    assert_int_equal(scores.n_rows, 4110); /* the rows it was fitted on */
    assert_true(scores.kendall_tau > 0.94 && scores.rmse < 0.3);
    hwnas_predictor_free(predictor);
}

/* Of networks that its fit has not seen, 90 % intervals hold about 90 %. */
static void shipped_intervals_hold(void **state)
{
    static const char *const names[] = {
        "accel_nasbench_imagenet", "nas_bench_macro_cifar10",   "nas_bench_201_cifar10",
        "nas_bench_201_cifar100",  "nas_bench_201_imagenet16",  "gpt_s_perplexity",
        "gpt_m_perplexity",        "ofa_mobilenet_v3_imagenet", "imagenet_any",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        json_t *file = NULL;
        assert_int_equal(hwnas_predictor_read(&file, names[i]), HWNAS_OK);
        const double inside = json_number_value(
            json_object_get(json_object_get(file, "cross_validation"), "coverage_90"));
        if (inside < 0.86 || inside > 0.94)
            fail_msg("%s: %.1f %% inside", names[i], 100 * inside);
        json_decref(file);
    }
}

/* The prior's figures are those of the table that ships with it. */
static void int8_losses_are_those_of_the_table(void **state)
{
    static const char *const names[] = {"convolutions", "depthwise", "attention"};
    hwnas_csv *csv = NULL;
    size_t family, loss;
    (void)state;
    assert_int_equal(hwnas_csv_load(&csv, HWNAS_TEST_DATA "/int8_losses.csv"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&family, csv, "family"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&loss, csv, "int8_loss_points"), HWNAS_OK);
    for (size_t f = 0; f < COUNT(names); f++) {
        const hwnas_int8_family *row = &hwnas_int8_families[f];
        double sum = 0, squares = 0;
        int n = 0;
        for (size_t i = 0; i < csv->n_rows; i++) {
            if (strcmp(hwnas_csv_cell(csv, i, family), names[f]))
                continue;
            const double x = atof(hwnas_csv_cell(csv, i, loss));
            sum += x;
            squares += x * x;
            n++;
        }
        assert_int_equal(row->n, n);
        assert_float_equal(row->mean, sum / n, 6e-4);
        assert_float_equal(row->sd, sqrt((squares - sum * sum / n) / (n - 1)), 6e-4);
        assert_true(hwnas_int8_loss_sd(row) > row->sd);
    }
    assert_null(hwnas_int8_families[COUNT(names)].name);
    hwnas_csv_free(csv);
}

static void families_are_told_by_the_graph(void **state)
{
    static const struct {
        const char *space, *family;
    } rows[] = {{"resnet50", "convolutions"},
                {"nas_bench_201", "convolutions"},
                {"mobilenet_v2", "depthwise convolutions"},
                {"ofa_mobilenet_v3", "depthwise convolutions"},
                {"bert_base", "attention"}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_space *space = NULL;
        hwnas_graph *graph = NULL;
        assert_int_equal(hwnas_graph_load_space(&space, rows[i].space), HWNAS_OK);
        hwnas_arch *arch = hwnas_arch_new(space);
        assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
        assert_string_equal(hwnas_int8_family_of(graph)->name, rows[i].family);
        hwnas_graph_free(graph);
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

/* How long a text is, and in which phase, does not change what a network is worth. */
static void settings_do_not_change_an_estimate(void **state)
{
    static const char *const names[] = {"gpt", "gpt:phase=decode,length=16"};
    hwnas_estimate estimates[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        hwnas_space *space = NULL;
        hwnas_predictor *predictor = NULL;
        hwnas_arch *arch = NULL;
        assert_int_equal(hwnas_graph_load_space(&space, names[i]), HWNAS_OK);
        assert_int_equal(hwnas_predictor_load(&predictor, "gpt_s_perplexity", space), HWNAS_OK);
        arch = hwnas_arch_new(space);
        assert_int_equal(
            hwnas_predictor_score(&estimates[i], predictor, (const hwnas_arch *const *)&arch, 1),
            HWNAS_OK);
        hwnas_arch_free(arch);
        hwnas_predictor_free(predictor);
        hwnas_space_free(space);
    }
    assert_true(estimates[0].mean == estimates[1].mean && estimates[0].sd == estimates[1].sd);
    /* The smallest networks of the table are between 41 and 44. */
    assert_true(estimates[0].mean < -40 && estimates[0].mean > -46);
}

/* ---- What ships ---- */

/* A predictor that ships, the space with no more values than its table has, and the table. */
static const struct {
    const char *predictor, *space, *table;
} shipped[] = {
    {"accel_nasbench_imagenet", "accel_nasbench", "accel_nasbench.csv"},
    {"gpt_m_perplexity", "gpt_m", "gpt_m.csv"},
    {"gpt_s_perplexity", "gpt_s", "gpt_s.csv"},
    {"nas_bench_201_cifar10", "nas_bench_201", "nas_bench_201.csv"},
    {"nas_bench_201_cifar100", "nas_bench_201", "nas_bench_201.csv"},
    {"nas_bench_201_imagenet16", "nas_bench_201", "nas_bench_201.csv"},
    {"nas_bench_macro_cifar10", "nas_bench_macro", "nas_bench_macro.csv"},
    {"ofa_mobilenet_v3_imagenet", "ofa_mobilenet_v3_224", "ofa_mobilenet_v3_accuracy.csv"},
};

/* Whether a position counts in any network of a space, as far as 1000 tell. */
static bool may_count(const hwnas_space *space, size_t gene)
{
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(1, 0);
    bool counts = false;
    for (int i = 0; i < 1000 && !counts; i++)
        counts = hwnas_arch_sample(arch, &rng) && hwnas_arch_is_active(arch, gene);
    hwnas_arch_free(arch);
    return counts;
}

static bool stands_in(const hwnas_table *table, size_t gene, size_t value)
{
    for (size_t r = 0; r < table->n; r++)
        if (table->archs[r]->genes[gene] == value && hwnas_arch_is_active(table->archs[r], gene))
            return true;
    return false;
}

/* Each value that a position may have stands in the table and in the predictor's domain, and no
 * other. */
static void spaces_have_what_shipped_predictors_have_seen(void **state)
{
    glob_t files;
    size_t n_any = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(shipped); i++) {
        hwnas_space *space = NULL;
        hwnas_predictor *predictor = NULL;
        hwnas_table *table = NULL;
        char *path = hwnas_printf("%s/%s", HWNAS_TEST_DATA, shipped[i].table);
        if (hwnas_graph_load_space(&space, shipped[i].space) ||
            hwnas_predictor_load(&predictor, shipped[i].predictor, space) ||
            hwnas_table_load(&table, space, path))
            fail_msg("%s: %s", shipped[i].space, hwnas_last_error()->message);
        const json_t *domain = hwnas_predictor_domain(predictor);
        assert_non_null(domain);
        for (size_t g = 0; g < space->n_genes; g++) {
            const hwnas_gene *gene = &space->genes[g];
            for (size_t v = 0; may_count(space, g) && v < gene->n_values; v++)
                if (stands_in(table, g, v) != hwnas_gene_keeps(gene, v) ||
                    hwnas_domain_has(domain, space, g, v) != hwnas_gene_keeps(gene, v))
                    fail_msg("%s and %s: '%s' of '%s' at position %zu", shipped[i].predictor,
                             shipped[i].space, gene->labels[v], space->choices[gene->choice].name,
                             gene->position + 1);
        }
        hwnas_table_free(table);
        hwnas_predictor_free(predictor);
        hwnas_space_free(space);
        free(path);
    }
    assert_int_equal(glob(HWNAS_SOURCE_DIR "/predictors/*.json", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        n_any += strstr(files.gl_pathv[i], "_any.json") != NULL; /* of no space */
    assert_int_equal(files.gl_pathc, COUNT(shipped) + n_any);    /* a new one has a row */
    globfree(&files);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_finds_every_row),
        cmocka_unit_test(table_finds_the_first_of_repeated_rows),
        cmocka_unit_test(table_takes_foreign_names),
        cmocka_unit_test(table_reads_one_column_for_each_choice),
        cmocka_unit_test(table_refuses),
        cmocka_unit_test(table_predictor_looks_up),
        cmocka_unit_test(table_predictor_refuses),
        cmocka_unit_test(encoding_of_numbers),
        cmocka_unit_test(encoding_of_symbols_and_conditions),
        cmocka_unit_test(links_go_there_and_back),
        cmocka_unit_test(ridge_solves),
        cmocka_unit_test(trees_give_what_xgboost_gives),
        cmocka_unit_test(units_come_from_names),
        cmocka_unit_test(fit_is_deterministic_and_ranks),
        cmocka_unit_test(fit_estimates_rows_it_has_not_seen),
        cmocka_unit_test(fit_keeps_a_network_in_one_fold),
        cmocka_unit_test(fit_refuses),
        cmocka_unit_test(fit_for_any_space),
        cmocka_unit_test(load_refuses),
        cmocka_unit_test(load_refuses_trees),
        cmocka_unit_test(shipped_predictor_keeps_its_word),
        cmocka_unit_test(shipped_intervals_hold),
        cmocka_unit_test(int8_losses_are_those_of_the_table),
        cmocka_unit_test(families_are_told_by_the_graph),
        cmocka_unit_test(settings_do_not_change_an_estimate),
        cmocka_unit_test(spaces_have_what_shipped_predictors_have_seen),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
