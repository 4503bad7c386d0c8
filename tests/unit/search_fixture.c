#include "tests/unit/search_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/csv.h"

void make_space(test_space *t, size_t n_genes, size_t n_values)
{
    *t = (test_space){
        .space = {.name = "test", .n_genes = n_genes, .genes = t->genes, .choices = &t->choice},
        .choice = {.name = "x", .n_positions = n_genes},
    };
    for (size_t v = 0; v < n_values; v++) {
        t->values[v] = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = (int64_t)v};
        t->labels[v] = "value";
    }
    for (size_t g = 0; g < n_genes; g++)
        t->genes[g] = (hwnas_gene){
            .position = g, .n_values = n_values, .values = t->values, .labels = t->labels};
}

hwnas_strategy *make(const char *name, const test_space *t, uint64_t seed, int n_objectives)
{
    hwnas_strategy_config config = {.space = &t->space, .n_objectives = n_objectives, .seed = seed};
    hwnas_strategy *strategy = NULL;
    for (int i = 0; hwnas_strategies[i]; i++)
        if (!strcmp(hwnas_strategies[i]->name, name) && hwnas_strategies[i]->max_objectives)
            config.n_objectives = hwnas_strategies[i]->max_objectives;
    if (!strcmp(name, "successive-halving"))
        config.n_rungs = 3;
    assert_int_equal(hwnas_strategy_new(&strategy, name, &config), HWNAS_OK);
    return strategy;
}

void ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    assert_int_equal(strategy->ops->ask(strategy, trial, out), HWNAS_OK);
}

void tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
          const hwnas_score *score)
{
    assert_int_equal(strategy->ops->tell(strategy, trial, arch, score), HWNAS_OK);
}

size_t index_of(const hwnas_arch *arch)
{
    size_t index = 0;
    for (size_t g = 0; g < arch->space->n_genes; g++)
        index = index * arch->space->genes[g].n_values + arch->genes[g];
    return index;
}

hwnas_score toy_score(const hwnas_arch *arch)
{
    hwnas_score score = {0};
    for (size_t g = 0; g < arch->space->n_genes; g++) {
        score.objectives[0] += arch->genes[g];
        score.objectives[1] += abs(arch->genes[g] - 2) * (1.0 + 0.1 * (double)g);
    }
    score.objectives[2] = -(double)arch->genes[0];
    return score;
}

static double macro_accuracy[6561], macro_mmacs[6561];

int load_macro(void **state)
{
    (void)state;
    hwnas_csv *csv;
    size_t macs, accuracy;
    if (hwnas_csv_load(&csv, HWNAS_TEST_DATA "/nas_bench_macro.csv") != HWNAS_OK ||
        hwnas_csv_require(&macs, csv, "macs_count") != HWNAS_OK ||
        hwnas_csv_require(&accuracy, csv, "acc_top1_pct_mean") != HWNAS_OK || csv->n_rows != 6561)
        return -1;
    for (size_t row = 0; row < csv->n_rows; row++) {
        if (hwnas_csv_number(&macro_mmacs[row], csv, row, macs) != HWNAS_OK ||
            hwnas_csv_number(&macro_accuracy[row], csv, row, accuracy) != HWNAS_OK)
            return -1;
        macro_mmacs[row] *= 1e-6;
    }
    hwnas_csv_free(csv);
    return 0;
}

hwnas_score macro_score(const hwnas_arch *arch)
{
    size_t row = index_of(arch);
    return (hwnas_score){.objectives = {macro_mmacs[row], -macro_accuracy[row]}};
}
