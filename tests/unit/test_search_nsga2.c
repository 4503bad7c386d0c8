/* test_search_nsga2.c: NSGA-II, on small made-up spaces and on NAS-Bench-Macro. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/stats.h"
#include "tests/unit/search_fixture.h"

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
    double error;
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
            parts[trial / 100] = hwnas_hypervolume(&error, &front, reference);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nsga2_begins_with_the_ends),
        cmocka_unit_test(nsga2_knows_names_have_no_ends),
        cmocka_unit_test(nsga2_keeps_to_a_limit),
        cmocka_unit_test(nsga2_learns_from_failures),
        cmocka_unit_test(nsga2_optimises_one_objective),
        cmocka_unit_test(nsga2_finds_the_front),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, load_macro, NULL);
}
