/* test_search.c: the strategies of src/search, on small made-up spaces and on NAS-Bench-Macro. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/stats.h"
#include "search/search.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_GENES = 16, MAX_VALUES = 4 };

/* A space of n_genes genes with the integers 0 to n_values - 1. */
typedef struct test_space {
    hwnas_space space;
    hwnas_gene genes[MAX_GENES];
    hwnas_value values[MAX_VALUES];
} test_space;

static void make_space(test_space *t, size_t n_genes, size_t n_values)
{
    *t = (test_space){.space = {.name = "test", .n_genes = n_genes, .genes = t->genes}};
    for (size_t v = 0; v < n_values; v++)
        t->values[v] = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = (int64_t)v};
    for (size_t g = 0; g < n_genes; g++)
        t->genes[g] = (hwnas_gene){.position = g, .n_values = n_values, .values = t->values};
}

static hwnas_strategy *make(const char *name, const test_space *t, uint64_t seed, int n_objectives)
{
    hwnas_strategy_config config = {.space = &t->space, .n_objectives = n_objectives, .seed = seed};
    hwnas_strategy *strategy = NULL;
    assert_int_equal(hwnas_strategy_new(&strategy, name, &config), HWNAS_OK);
    return strategy;
}

static void ask(hwnas_strategy *strategy, uint64_t trial, hwnas_arch *out)
{
    assert_int_equal(strategy->ops->ask(strategy, trial, out), HWNAS_OK);
}

static void tell(hwnas_strategy *strategy, uint64_t trial, const hwnas_arch *arch,
                 const hwnas_score *score)
{
    assert_int_equal(strategy->ops->tell(strategy, trial, arch, score), HWNAS_OK);
}

/* The architecture as a number, its genes as digits. */
static size_t index_of(const hwnas_arch *arch)
{
    size_t index = 0;
    for (size_t g = 0; g < arch->space->n_genes; g++)
        index = index * arch->space->genes[g].n_values + arch->genes[g];
    return index;
}

/* Objectives in conflict: the sum of the genes, their distance from 2, and the first of them. */
static hwnas_score toy_score(const hwnas_arch *arch)
{
    hwnas_score score = {0};
    for (size_t g = 0; g < arch->space->n_genes; g++) {
        score.objectives[0] += arch->genes[g];
        score.objectives[1] += abs(arch->genes[g] - 2) * (1.0 + 0.1 * (double)g);
    }
    score.objectives[2] = -(double)arch->genes[0];
    return score;
}

/* NAS-Bench-Macro: accuracy and MACs of all 3^8 encodings, sorted by encoding. */

static double macro_accuracy[6561], macro_mmacs[6561];

static int load_macro(void **state)
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

static hwnas_score macro_score(const hwnas_arch *arch)
{
    size_t row = index_of(arch);
    return (hwnas_score){.objectives = {macro_mmacs[row], -macro_accuracy[row]}};
}

/* The table. */

static void unknown_strategy_is_corrected(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 2, 2);
    hwnas_strategy_config config = {.space = &t.space, .n_objectives = 1};
    hwnas_strategy *strategy = NULL;
    assert_int_equal(hwnas_strategy_new(&strategy, "nsga", &config), HWNAS_E_INPUT);
    assert_null(strategy);
    assert_non_null(strstr(hwnas_last_error()->message, "'nsga'"));
    assert_non_null(strstr(hwnas_last_error()->hint, "did you mean 'nsga2'?"));
    assert_non_null(strstr(hwnas_last_error()->hint, "random"));
    assert_int_equal(hwnas_strategy_new(&strategy, "xyzzy-plugh", &config), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->hint, "there are: "));
    hwnas_strategy_free(NULL);
}

static void every_row_is_complete(void **state)
{
    (void)state;
    for (int i = 0; hwnas_strategies[i]; i++) {
        const hwnas_strategy_ops *ops = hwnas_strategies[i];
        assert_true(*ops->name && *ops->help);
        assert_true(ops->create && ops->ask && ops->tell && ops->free);
    }
}

static void small_population_is_refused(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 2, 2);
    hwnas_strategy_config config = {.space = &t.space, .n_objectives = 1, .population = 3};
    hwnas_strategy *strategy = NULL;
    assert_int_equal(hwnas_strategy_new(&strategy, "nsga2", &config), HWNAS_E_INPUT);
    assert_null(strategy);
}

/* What holds for every strategy. */

static void each_architecture_comes_once(void **state)
{
    (void)state;
    for (int i = 0; hwnas_strategies[i]; i++) {
        test_space t;
        make_space(&t, 5, 3);
        bool seen[243] = {0};
        hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, 3, 2);
        hwnas_arch *arch = hwnas_arch_new(&t.space);
        for (uint64_t trial = 0; trial < 243; trial++) {
            ask(strategy, trial, arch);
            assert_false(seen[index_of(arch)]);
            seen[index_of(arch)] = true;
            hwnas_score score = toy_score(arch);
            tell(strategy, trial, arch, &score);
        }
        assert_int_equal(strategy->ops->ask(strategy, 243, arch), HWNAS_E_EXHAUSTED);
        assert_non_null(strstr(hwnas_last_error()->message, "243"));
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
}

static void a_fixed_network_comes_once(void **state)
{
    (void)state;
    for (int i = 0; hwnas_strategies[i]; i++) {
        test_space t;
        make_space(&t, 0, 0);
        hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, 3, 1);
        hwnas_arch *arch = hwnas_arch_new(&t.space);
        ask(strategy, 0, arch);
        assert_int_equal(strategy->ops->ask(strategy, 1, arch), HWNAS_E_EXHAUSTED);
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
}

enum { N_LOGGED = 60 };

/* Asks and tells, writing down what was proposed. */
static void run(hwnas_strategy *strategy, const test_space *t, uint64_t first, size_t *log)
{
    hwnas_arch *arch = hwnas_arch_new(&t->space);
    for (uint64_t trial = first; trial < N_LOGGED; trial++) {
        ask(strategy, trial, arch);
        log[trial] = index_of(arch);
        hwnas_score score = toy_score(arch);
        tell(strategy, trial, arch, &score);
    }
    hwnas_arch_free(arch);
}

static hwnas_arch *arch_of(const test_space *t, size_t index)
{
    hwnas_arch *arch = hwnas_arch_new(&t->space);
    for (size_t g = t->space.n_genes; g-- > 0; index /= t->genes[g].n_values)
        arch->genes[g] = (uint16_t)(index % t->genes[g].n_values);
    return arch;
}

static void the_seed_decides(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 10, 4);
    for (int i = 0; hwnas_strategies[i]; i++) {
        size_t logs[3][N_LOGGED];
        for (int k = 0; k < 3; k++) {
            hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, k < 2 ? 5 : 6, 3);
            run(strategy, &t, 0, logs[k]);
            hwnas_strategy_free(strategy);
        }
        assert_memory_equal(logs[0], logs[1], sizeof logs[0]);
        assert_memory_not_equal(logs[0], logs[2], sizeof logs[0]);
    }
}

/* Another process is told what the first one learnt up to a trial, and goes on as it would have. */
static void a_study_is_continued(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 10, 4);
    for (int i = 0; hwnas_strategies[i]; i++) {
        size_t whole[N_LOGGED], resumed[N_LOGGED];
        hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, 5, 3);
        run(strategy, &t, 0, whole);
        hwnas_strategy_free(strategy);
        for (uint64_t k = 1; k < N_LOGGED; k += 7) {
            memcpy(resumed, whole, sizeof whole);
            strategy = make(hwnas_strategies[i]->name, &t, 5, 3);
            for (uint64_t trial = 0; trial < k; trial++) {
                hwnas_arch *arch = arch_of(&t, whole[trial]);
                hwnas_score score = toy_score(arch);
                tell(strategy, trial, arch, &score);
                hwnas_arch_free(arch);
            }
            run(strategy, &t, k, resumed);
            assert_memory_equal(whole, resumed, sizeof whole);
            hwnas_strategy_free(strategy);
        }
    }
}

/* Eight trials open at a time, told in the wrong order; every fifth fails. */
static void open_trials_do_not_collide(void **state)
{
    (void)state;
    enum { N_OPEN = 8, N_ROUNDS = 12 };
    test_space t;
    make_space(&t, 6, 3);
    for (int i = 0; hwnas_strategies[i]; i++) {
        bool seen[729] = {0};
        hwnas_arch *open[N_OPEN];
        hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, 5, 2);
        for (uint64_t round = 0; round < N_ROUNDS; round++) {
            for (uint64_t k = 0; k < N_OPEN; k++) {
                open[k] = hwnas_arch_new(&t.space);
                ask(strategy, round * N_OPEN + k, open[k]);
                assert_false(seen[index_of(open[k])]);
                seen[index_of(open[k])] = true;
            }
            for (uint64_t k = N_OPEN; k-- > 0;) {
                uint64_t trial = round * N_OPEN + k;
                hwnas_score score = toy_score(open[k]);
                if (trial % 5 == 0)
                    score = (hwnas_score){.objectives = {NAN, NAN}, .violation = INFINITY};
                tell(strategy, trial, open[k], &score);
                hwnas_arch_free(open[k]);
            }
        }
        hwnas_strategy_free(strategy);
    }
}

/* Random. */

/* Also past the middle of the space, where sampling changes from rejection to counting. Each value
 * of each gene comes a third of the time; 6 standard deviations of the binomial are allowed. */
static void random_is_uniform(void **state)
{
    (void)state;
    enum { N_SEEDS = 300 };
    test_space t;
    make_space(&t, 4, 3);
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    for (uint64_t last = 0; last < 81; last += 20) {
        int counts[4][3] = {{0}};
        for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
            hwnas_strategy *strategy = make("random", &t, seed, 1);
            for (uint64_t trial = 0; trial <= last; trial++)
                ask(strategy, trial, arch);
            for (size_t g = 0; g < 4; g++)
                counts[g][arch->genes[g]]++;
            hwnas_strategy_free(strategy);
        }
        for (size_t g = 0; g < 4; g++)
            for (size_t v = 0; v < 3; v++)
                assert_true(fabs(counts[g][v] - N_SEEDS / 3.0) < 6 * sqrt(N_SEEDS * 2 / 9.0));
    }
    hwnas_arch_free(arch);
}

/* NSGA-II. */

static void nsga2_begins_with_the_ends(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 6, 3);
    hwnas_strategy *strategy = make("nsga2", &t, 5, 2);
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    ask(strategy, 0, arch);
    assert_int_equal(index_of(arch), 0);
    ask(strategy, 1, arch);
    assert_int_equal(index_of(arch), 728);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
}

/* Names have no order, so there is no first and no last of them to begin with. */
static void nsga2_knows_names_have_no_ends(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 6, 3);
    for (size_t v = 0; v < 3; v++)
        t.values[v] = (hwnas_value){.kind = HWNAS_VALUE_SYMBOL, .s = "name"};
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    int n_ends = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        hwnas_strategy *strategy = make("nsga2", &t, seed, 2);
        ask(strategy, 0, arch);
        n_ends += index_of(arch) == 0;
        hwnas_strategy_free(strategy);
    }
    assert_true(n_ends < 2);
    hwnas_arch_free(arch);
}

/* Below 40 M MACs, which 14 % of the encodings are, the most accurate network of the table has
 * 91.5067 %. */
static void nsga2_keeps_to_a_limit(void **state)
{
    (void)state;
    const double limit = 40;
    test_space t;
    make_space(&t, 8, 3);
    double worst = 100;
    int n_feasible = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        hwnas_strategy *strategy = make("nsga2", &t, seed, 2);
        hwnas_arch *arch = hwnas_arch_new(&t.space);
        double best = 0;
        for (uint64_t trial = 0; trial < 200; trial++) {
            ask(strategy, trial, arch);
            hwnas_score score = macro_score(arch);
            score.violation = fmax(0, score.objectives[0] / limit - 1);
            tell(strategy, trial, arch, &score);
            if (score.violation == 0)
                best = fmax(best, -score.objectives[1]);
            n_feasible += trial >= 100 && score.violation == 0;
        }
        worst = fmin(worst, best);
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
    print_message("# limit: worst of 10 seeds %.3f %%, %.0f %% of trials 100 to 199 feasible\n",
                  worst, n_feasible / 10.0);
    assert_true(worst >= 90.9);
    assert_true(n_feasible >= 600);
}

/* Networks whose first gene is 2 fail; random search would walk into a third of them. */
static void nsga2_learns_from_failures(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 8, 3);
    int n_failed = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        hwnas_strategy *strategy = make("nsga2", &t, seed, 2);
        hwnas_arch *arch = hwnas_arch_new(&t.space);
        for (uint64_t trial = 0; trial < 100; trial++) {
            ask(strategy, trial, arch);
            hwnas_score score = macro_score(arch);
            if (arch->genes[0] == 2)
                score = (hwnas_score){.violation = INFINITY};
            tell(strategy, trial, arch, &score);
            n_failed += trial >= 20 && arch->genes[0] == 2;
        }
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
    print_message("# failures: %.1f %% of trials 20 to 99 fail\n", n_failed / 8.0);
    assert_true(n_failed < 120);
}

/* With one objective this is a plain evolution; 93.127 % is the best of the table. */
static void nsga2_optimises_one_objective(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 8, 3);
    double worst = 100;
    for (uint64_t seed = 0; seed < 10; seed++) {
        hwnas_strategy *strategy = make("nsga2", &t, seed, 1);
        hwnas_arch *arch = hwnas_arch_new(&t.space);
        double best = 0;
        for (uint64_t trial = 0; trial < 200; trial++) {
            ask(strategy, trial, arch);
            hwnas_score score = {.objectives = {macro_score(arch).objectives[1]}};
            tell(strategy, trial, arch, &score);
            best = fmax(best, -score.objectives[0]);
        }
        worst = fmin(worst, best);
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
    print_message("# one objective: worst of 10 seeds after 200 trials %.3f %%\n", worst);
    assert_true(worst >= 93.0);
}

/* Part of the true front's hypervolume after 100, 200 and 300 trials. The true value is 2940.464,
 * see test_pareto. */
static void measure_run(const char *name, uint64_t seed, double parts[3])
{
    const double reference[] = {150, -70};
    test_space t;
    make_space(&t, 8, 3);
    hwnas_front front = {.n_objectives = 2};
    hwnas_strategy *strategy = make(name, &t, seed, 2);
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    for (uint64_t trial = 0; trial < 300; trial++) {
        ask(strategy, trial, arch);
        hwnas_score score = macro_score(arch);
        hwnas_point at = {.objectives = {score.objectives[0], score.objectives[1]}, .id = trial};
        hwnas_front_insert(&front, &at);
        tell(strategy, trial, arch, &score);
        if (trial % 100 == 99)
            assert_int_equal(hwnas_hypervolume(&parts[trial / 100], &front, reference), HWNAS_OK);
    }
    for (int k = 0; k < 3; k++)
        parts[k] /= 2940.464;
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
    hwnas_front_done(&front);
}

static void medians(const char *name, double out[3])
{
    enum { N_SEEDS = 15 };
    double parts[N_SEEDS][3], column[N_SEEDS];
    for (uint64_t seed = 0; seed < N_SEEDS; seed++)
        measure_run(name, seed, parts[seed]);
    for (int k = 0; k < 3; k++) {
        for (int s = 0; s < N_SEEDS; s++)
            column[s] = parts[s][k];
        hwnas_sort(column, N_SEEDS);
        out[k] = hwnas_quantile(column, N_SEEDS, 0.5);
    }
    print_message("# %s: median part of the true hypervolume %.4f %.4f %.4f at 100, 200, 300\n",
                  name, out[0], out[1], out[2]);
}

/* NSGA-II of the literature, population 20, was simulated on this table at .959, .984, .993; random
 * search at .941, .958, .966. */
static void nsga2_finds_the_front(void **state)
{
    (void)state;
    double nsga2[3], random[3];
    medians("nsga2", nsga2);
    medians("random", random);
    const double floors[] = {0.96, 0.985, 0.99};
    for (int k = 0; k < 3; k++) {
        assert_true(nsga2[k] >= floors[k]);
        assert_true(nsga2[k] > random[k]);
    }
    assert_true(fabs(random[2] - 0.966) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_strategy_is_corrected),
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(small_population_is_refused),
        cmocka_unit_test(each_architecture_comes_once),
        cmocka_unit_test(a_fixed_network_comes_once),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(a_study_is_continued),
        cmocka_unit_test(open_trials_do_not_collide),
        cmocka_unit_test(random_is_uniform),
        cmocka_unit_test(nsga2_begins_with_the_ends),
        cmocka_unit_test(nsga2_knows_names_have_no_ends),
        cmocka_unit_test(nsga2_keeps_to_a_limit),
        cmocka_unit_test(nsga2_learns_from_failures),
        cmocka_unit_test(nsga2_optimises_one_objective),
        cmocka_unit_test(nsga2_finds_the_front),
    };
    return cmocka_run_group_tests_name("search", tests, load_macro, NULL);
}
