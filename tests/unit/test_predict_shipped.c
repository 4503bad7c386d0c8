/* test_predict_shipped.c: the predictors that ship, against their tables. */
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

#include "base/csv.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/domain.h"
#include "predict/int8_loss.h"
#include "predict/predict_priv.h"
#include "space/table.h"
#include "tests/unit/predict_fixture.h"

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
