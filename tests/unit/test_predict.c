/* test_predict.c: src/predict: the parts that a fitted model is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"
#include "predict/features.h"
#include "predict/link.h"
#include "predict/predict_priv.h"
#include "predict/ridge.h"
#include "predict/trees.h"
#include "tests/unit/predict_fixture.h"

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
    static float inputs[N * INPUTS], targets[N], ours[N], theirs[N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < INPUTS; k++)
            inputs[i * INPUTS + k] = (float)hwnas_rng_below(&rng, 5);
        targets[i] = inputs[i * INPUTS] * inputs[i * INPUTS + 1] + (float)hwnas_rng_double(&rng) -
                     inputs[i * INPUTS + 3];
    }
    hwnas_trees *trees = NULL, *loaded = NULL;
    assert_int_equal(hwnas_trees_fit(&trees, inputs, targets, N, INPUTS, 7), HWNAS_OK);
    hwnas_trees_predict(theirs, trees, inputs, N); /* XGBoost walks fitted trees, we loaded ones */
    json_t *written = hwnas_trees_write(trees);
    assert_int_equal(hwnas_trees_load(&loaded, written, INPUTS), HWNAS_OK);
    hwnas_trees_predict(ours, loaded, inputs, N);
    for (int i = 0; i < N; i++)
        assert_float_equal(ours[i], theirs[i], 1e-6);
    json_decref(written);
    hwnas_trees_free(loaded);
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

static void columns_that_are_to_be_small(void **state)
{
    static const char *const small[] = {"val_ppl",        "perplexity", "top1_error_pct",
                                        "valid_err_mean", "test_loss",  "RMSE",
                                        "val-mae"};
    static const char *const large[] = {"val_top1_pct",      "negative_perplexity",
                                        "neg_loss",          "val_neg_loss",
                                        "test_negative_ppl", "terror",
                                        "lossless",          "score",
                                        "acc_top1_pct_mean", "c10_test_top1_pct"};
    (void)state;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        assert_true(hwnas_column_is_minimised(small[i]));
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        assert_false(hwnas_column_is_minimised(large[i]));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_of_numbers),
        cmocka_unit_test(encoding_of_symbols_and_conditions),
        cmocka_unit_test(links_go_there_and_back),
        cmocka_unit_test(ridge_solves),
        cmocka_unit_test(trees_give_what_xgboost_gives),
        cmocka_unit_test(units_come_from_names),
        cmocka_unit_test(columns_that_are_to_be_small),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
