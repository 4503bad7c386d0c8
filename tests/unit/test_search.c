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
#include "graph/elaborate.h"
#include "search/gain.h"
#include "search/neighbours.h"
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

/* With as many of the objectives as the strategy can do, and a ladder for one that climbs. */
static hwnas_strategy *make(const char *name, const test_space *t, uint64_t seed, int n_objectives)
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

static void several_objectives_are_refused(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 2, 2);
    hwnas_strategy_config config = {.space = &t.space, .n_objectives = 2};
    hwnas_strategy *strategy = NULL;
    assert_int_equal(hwnas_strategy_new(&strategy, "regularized-evolution", &config),
                     HWNAS_E_INPUT);
    assert_null(strategy);
    assert_string_equal(hwnas_last_error()->message,
                        "the strategy 'regularized-evolution' has one objective, not 2");
    assert_non_null(strstr(hwnas_last_error()->hint, "bayesian"));
}

/* Budget, space and ladder, before the first trial. */
static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint64_t max_trials;
        size_t n_genes;
        int n_rungs;
        const char *word; /* of the message; NULL: it is accepted */
    } cases[] = {
        {"bayesian", 11, 4, 0, "needs 12"},
        {"bayesian", 12, 4, 0, NULL},
        {"exhaustive", 255, 4, 0, "needs 256"},
        {"exhaustive", 256, 4, 0, NULL},
        {"exhaustive", 0, 10, 0, "too large"},
        {"regularized-evolution", 20, 4, 0, "needs 21"},
        {"successive-halving", 100, 4, 0, "cheaper way"},
        {"successive-halving", 12, 4, 3, "needs 13"},
        {"successive-halving", 13, 4, 3, NULL},
        {"random", 1, 4, 0, NULL},
        {"nsga2", 1, 4, 0, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_space t;
        make_space(&t, cases[i].n_genes, 4);
        hwnas_strategy_config config = {.space = &t.space,
                                        .n_objectives = 1,
                                        .max_trials = cases[i].max_trials,
                                        .n_rungs = cases[i].n_rungs};
        hwnas_strategy *strategy = NULL;
        hwnas_status status = hwnas_strategy_new(&strategy, cases[i].name, &config);
        assert_int_equal(status, cases[i].word ? HWNAS_E_INPUT : HWNAS_OK);
        if (cases[i].word)
            assert_non_null(strstr(hwnas_last_error()->message, cases[i].word));
        hwnas_strategy_free(strategy);
    }
}

static void auto_chooses_and_says_why(void **state)
{
    (void)state;
    const struct {
        hwnas_strategy_config config;
        size_t n_genes;
        const char *name, *word;
    } cases[] = {
        {{.max_trials = 300}, 4, "exhaustive", "256"},
        {{.max_trials = 200}, 4, "bayesian", "200"},
        {{.max_trials = 10}, 4, "random", "few"},
        {{.max_trials = 100000, .trial_seconds = 1e-4}, 10, "nsga2", "less time"},
        {{.max_trials = 100000, .trial_seconds = 1}, 10, "bayesian", "model"},
        {{.max_trials = 100, .n_rungs = 2}, 4, "successive-halving", "cheap to dear"},
        {{0}, 10, "bayesian", "model"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_space t;
        char *why = NULL;
        make_space(&t, cases[i].n_genes, 4);
        hwnas_strategy_config config = cases[i].config;
        config.space = &t.space;
        config.n_objectives = 1;
        assert_string_equal(hwnas_strategy_choose(&why, &config), cases[i].name);
        assert_non_null(strstr(why, cases[i].word));
        free(why);
        hwnas_strategy *strategy = NULL;
        assert_int_equal(hwnas_strategy_new(&strategy, "auto", &config), HWNAS_OK);
        assert_string_equal(strategy->ops->name, cases[i].name);
        hwnas_strategy_free(strategy);
    }
}

/* What holds for every strategy. */

/* The same architecture is asked again by successive halving alone, and then nearer to the truth.
 */
static void each_architecture_comes_once(void **state)
{
    (void)state;
    for (int i = 0; hwnas_strategies[i]; i++) {
        if (hwnas_strategies[i]->rung)
            continue;
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
        if (hwnas_strategies[i]->rung)
            continue;
        hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, 3, 1);
        hwnas_arch *arch = hwnas_arch_new(&t.space);
        ask(strategy, 0, arch);
        assert_int_equal(strategy->ops->ask(strategy, 1, arch), HWNAS_E_EXHAUSTED);
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
}

enum { N_LOGGED = 60 };

/* Asks and tells, writing down what was proposed, and above it the rung. */
static void run(hwnas_strategy *strategy, const test_space *t, uint64_t first, size_t *log)
{
    hwnas_arch *arch = hwnas_arch_new(&t->space);
    for (uint64_t trial = first; trial < N_LOGGED; trial++) {
        ask(strategy, trial, arch);
        hwnas_score score = toy_score(arch);
        score.rung = strategy->ops->rung ? strategy->ops->rung(strategy, trial) : 0;
        log[trial] = index_of(arch) | (size_t)score.rung << 32;
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
    make_space(&t, 9, 4);
    for (int i = 0; hwnas_strategies[i]; i++) {
        size_t logs[3][N_LOGGED];
        for (int k = 0; k < 3; k++) {
            hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, k < 2 ? 5 : 6, 3);
            run(strategy, &t, 0, logs[k]);
            hwnas_strategy_free(strategy);
        }
        assert_memory_equal(logs[0], logs[1], sizeof logs[0]);
        if (strcmp(hwnas_strategies[i]->name, "exhaustive"))
            assert_memory_not_equal(logs[0], logs[2], sizeof logs[0]);
    }
}

/* Another process is told what the first one learnt up to a trial, and goes on as it would have. */
static void a_study_is_continued(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 9, 4);
    for (int i = 0; hwnas_strategies[i]; i++) {
        size_t whole[N_LOGGED], resumed[N_LOGGED];
        hwnas_strategy *strategy = make(hwnas_strategies[i]->name, &t, 5, 3);
        run(strategy, &t, 0, whole);
        hwnas_strategy_free(strategy);
        for (uint64_t k = 1; k < N_LOGGED; k += 13) {
            memcpy(resumed, whole, sizeof whole);
            strategy = make(hwnas_strategies[i]->name, &t, 5, 3);
            for (uint64_t trial = 0; trial < k; trial++) {
                hwnas_arch *arch = arch_of(&t, whole[trial] & UINT32_MAX);
                hwnas_score score = toy_score(arch);
                score.rung = (int)(whole[trial] >> 32);
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
        if (hwnas_strategies[i]->rung)
            continue;
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

/* The sum of the distances from 2 has one optimum, and each gene's part can be learnt alone. */
static double trials_to_optimum(const char *name, uint64_t seed, uint64_t most)
{
    test_space t;
    make_space(&t, 6, 4);
    hwnas_strategy *strategy = make(name, &t, seed, 1);
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    uint64_t trial = 0;
    bool is_found = false;
    while (!is_found && trial < most) {
        ask(strategy, trial, arch);
        hwnas_score score = {.objectives = {toy_score(arch).objectives[1]}};
        tell(strategy, trial++, arch, &score);
        is_found = score.objectives[0] == 0;
    }
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
    return (double)trial;
}

/* Of 4096; random search needs 2048 on average. */
static void the_optimum_is_found(void **state)
{
    (void)state;
    enum { N_SEEDS = 9 };
    const struct {
        const char *name;
        double most;
    } cases[] = {
        {"bayesian", 60},
        {"local-search", 120},
        {"regularized-evolution", 250},
        {"nsga2", 350},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double needed[N_SEEDS];
        for (uint64_t seed = 0; seed < N_SEEDS; seed++)
            needed[seed] = trials_to_optimum(cases[i].name, seed, 1000);
        hwnas_sort(needed, N_SEEDS);
        print_message("# %s: the optimum of 4096 after %.0f trials, %.0f at the worst\n",
                      cases[i].name, needed[N_SEEDS / 2], needed[N_SEEDS - 1]);
        assert_true(needed[N_SEEDS / 2] <= cases[i].most);
        assert_true(needed[N_SEEDS - 1] < 1000);
    }
}

/* Exhaustive. */

static void exhaustive_goes_in_order(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 3, 3);
    hwnas_strategy *strategy = make("exhaustive", &t, 1, 1);
    hwnas_arch *arch = hwnas_arch_new(&t.space), *told = arch_of(&t, 2);
    hwnas_score score = {0};
    tell(strategy, 0, told, &score); /* of an earlier process */
    for (size_t i = 0; i < 27; i++) {
        if (i == 2)
            continue;
        ask(strategy, i, arch);
        assert_int_equal(index_of(arch), i);
    }
    hwnas_arch_free(told);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
}

/* Neighbours and local search. */

static void neighbours_differ_in_one_gene(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 4, 3);
    hwnas_neighbours all;
    hwnas_arch *arch = arch_of(&t, 40);
    bool seen[81] = {0};
    hwnas_neighbours_of(&all, arch);
    assert_int_equal(all.n, 8);
    for (size_t i = 0; i < all.n; i++) {
        int n_changed = 0;
        for (size_t g = 0; g < 4; g++)
            n_changed += all.archs[i]->genes[g] != arch->genes[g];
        assert_int_equal(n_changed, 1);
        assert_false(seen[index_of(all.archs[i])]);
        seen[index_of(all.archs[i])] = true;
    }
    hwnas_neighbours_done(&all);
    hwnas_arch_free(arch);
}

/* After the first, random trial each one is a neighbour of the best so far, until that has no more.
 */
static void local_search_tries_neighbours(void **state)
{
    (void)state;
    test_space t;
    make_space(&t, 6, 4);
    hwnas_strategy *strategy = make("local-search", &t, 3, 1);
    hwnas_arch *arch = hwnas_arch_new(&t.space), *best = hwnas_arch_new(&t.space);
    double least = INFINITY;
    for (uint64_t trial = 0; least > 0; trial++) {
        int n_changed = 0;
        ask(strategy, trial, arch);
        for (size_t g = 0; g < 6; g++)
            n_changed += arch->genes[g] != best->genes[g];
        assert_true(trial == 0 || n_changed == 1);
        hwnas_score score = {.objectives = {toy_score(arch).objectives[1]}};
        tell(strategy, trial, arch, &score);
        if (score.objectives[0] < least) {
            least = score.objectives[0];
            hwnas_arch_assign(best, arch);
        }
    }
    hwnas_arch_free(arch);
    hwnas_arch_free(best);
    hwnas_strategy_free(strategy);
}

/* Successive halving: the cheap rungs see the truth blurred. */

static void halving_climbs_the_ladder(void **state)
{
    (void)state;
    enum { N_TRIALS = 260 };
    test_space t;
    make_space(&t, 6, 4);
    hwnas_strategy *strategy = make("successive-halving", &t, 3, 1);
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    hwnas_rng noise = hwnas_rng_new(1, 1);
    int n_at[3] = {0};
    double sum_at[3] = {0};
    unsigned char rungs_of[4096] = {0};
    for (uint64_t trial = 0; trial < N_TRIALS; trial++) {
        ask(strategy, trial, arch);
        int rung = strategy->ops->rung(strategy, trial);
        double truth = toy_score(arch).objectives[1];
        hwnas_score score = {.rung = rung};
        score.objectives[0] = truth + 0.5 * rung * hwnas_rng_double(&noise);
        tell(strategy, trial, arch, &score);
        assert_false(rungs_of[index_of(arch)] &
                     1 << rung); /* once at each rung, from the cheapest */
        assert_true(rung == 2 || rungs_of[index_of(arch)] & 1 << (rung + 1));
        rungs_of[index_of(arch)] |= (unsigned char)(1 << rung);
        n_at[rung]++;
        sum_at[rung] += truth;
    }
    print_message("# halving: %d, %d, %d trials from the cheapest rung on, mean %.2f, %.2f, %.2f\n",
                  n_at[2], n_at[1], n_at[0], sum_at[2] / n_at[2], sum_at[1] / n_at[1],
                  sum_at[0] / n_at[0]);
    assert_int_equal(n_at[1], n_at[2] / 3);
    assert_int_equal(n_at[0], n_at[1] / 3);
    assert_true(sum_at[0] / n_at[0] < sum_at[1] / n_at[1]);
    assert_true(sum_at[1] / n_at[1] < sum_at[2] / n_at[2]);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
}

/* Expected gain, against sums over random draws. */

static double normal(hwnas_rng *rng)
{
    double radius = sqrt(-2 * log(1 - hwnas_rng_double(rng)));
    return radius * cos(2 * M_PI * hwnas_rng_double(rng));
}

/* Mean growth of the hypervolume over draws of the objectives, and its standard error. */
static double draw_gain(const hwnas_front *front, const hwnas_scale *scales,
                        const double *reference, const double *means, const double *sds,
                        double *error, hwnas_rng *rng)
{
    enum { N_DRAWS = 20000 };
    double before, sum = 0, squares = 0;
    assert_int_equal(hwnas_hypervolume(&before, front, reference), HWNAS_OK);
    for (int i = 0; i < N_DRAWS; i++) {
        hwnas_front with = {.n_objectives = front->n_objectives};
        hwnas_point point = {0};
        double after;
        for (size_t k = 0; k < front->n; k++)
            hwnas_front_insert(&with, &front->points[k]);
        for (int k = 0; k < front->n_objectives; k++)
            point.objectives[k] = hwnas_scale_from(&scales[k], means[k] + sds[k] * normal(rng));
        hwnas_front_insert(&with, &point);
        assert_int_equal(hwnas_hypervolume(&after, &with, reference), HWNAS_OK);
        hwnas_front_done(&with);
        sum += after - before;
        squares += (after - before) * (after - before);
    }
    double mean = sum / N_DRAWS;
    *error = sqrt(fmax(0, squares / N_DRAWS - mean * mean) / N_DRAWS);
    return mean;
}

static void gain_of_one_and_two_is_exact(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(3, 3);
    for (int round = 0; round < 24; round++) {
        hwnas_front front = {.n_objectives = 1 + round % 2};
        hwnas_scale scales[2] = {{.floor = 0}, {.floor = -3}};
        double reference[2] = {6, 2}, means[2], sds[2], error;
        for (int i = 0; i < 1 + round % 5; i++) {
            double x = hwnas_rng_double(&rng);
            hwnas_point point = {.objectives = {0.5 + 6 * x, 2.5 - 4 * x + hwnas_rng_double(&rng)}};
            hwnas_front_insert(&front, &point);
        }
        if (front.n_objectives == 1) /* then the best is the bound */
            reference[0] = front.points[0].objectives[0];
        for (int k = 0; k < 2; k++) {
            means[k] = normal(&rng);
            sds[k] = 0.05 + hwnas_rng_double(&rng);
        }
        hwnas_gain gain;
        hwnas_gain_init(&gain, &front, scales, reference, &rng);
        double exact = hwnas_gain_expect(&gain, means, sds);
        double drawn = draw_gain(&front, scales, reference, means, sds, &error, &rng);
        assert_true(fabs(exact - drawn) < 5 * error + 1e-6);
        hwnas_gain_done(&gain);
        hwnas_front_done(&front);
    }
}

/* Up to a factor, which Zhang and Golovin's lemma 5 tells: pi^(m/2) / (2^m gamma(m/2 + 1)), here
 * with the volume that directions are measured in. */
static void gain_of_three_converges(void **state)
{
    (void)state;
    enum { N_INITS = 300 };
    hwnas_rng rng = hwnas_rng_new(5, 5);
    hwnas_scale scales[3] = {{.floor = 0}, {.floor = 0}, {.floor = 0}};
    const double reference[3] = {2, 3, 4}, means[3] = {0, 0.2, 0.5}, sds[3] = {0.3, 0.2, 0.4};
    const double points[3][3] = {{0.5, 2.5, 3}, {1.5, 0.8, 3.5}, {1.8, 2.8, 0.4}};
    hwnas_front front = {.n_objectives = 3};
    double sum = 0, error;
    for (int i = 0; i < 3; i++) {
        hwnas_point point = {0};
        memcpy(point.objectives, points[i], sizeof points[i]);
        hwnas_front_insert(&front, &point);
    }
    for (int i = 0; i < N_INITS; i++) {
        hwnas_gain gain;
        hwnas_gain_init(&gain, &front, scales, reference, &rng);
        sum += hwnas_gain_expect(&gain, means, sds) / N_INITS;
        hwnas_gain_done(&gain);
    }
    double factor = pow(M_PI, 1.5) / (8 * tgamma(2.5)) * 2 * 3 * 4;
    double drawn = draw_gain(&front, scales, reference, means, sds, &error, &rng);
    print_message("# gain of three objectives: %.3f by directions, %.3f +- %.3f by draws\n",
                  factor * sum, drawn, error);
    assert_true(fabs(factor * sum - drawn) < 0.05 * drawn);
    hwnas_front_done(&front);
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

/* Bayesian, on the networks of NAS-Bench-Macro, not on their codes alone. */

static hwnas_space *load_macro_space(void)
{
    hwnas_space *space = NULL;
    assert_int_equal(
        hwnas_graph_load_space(&space, HWNAS_SOURCE_DIR "/search_spaces/nas_bench_macro.yaml"),
        HWNAS_OK);
    return space;
}

static hwnas_strategy *make_bayesian(const hwnas_space *space, uint64_t seed, int n_objectives)
{
    hwnas_strategy_config config = {.space = space, .n_objectives = n_objectives, .seed = seed};
    hwnas_strategy *strategy = NULL;
    assert_int_equal(hwnas_strategy_new(&strategy, "bayesian", &config), HWNAS_OK);
    return strategy;
}

/* NSGA-II of the literature has 0.959 of the hypervolume by 100 trials, an untuned Gaussian process
 * 0.998 (simulated on this table). */
static void bayesian_finds_the_front(void **state)
{
    (void)state;
    const double reference[] = {150, -70};
    hwnas_space *space = load_macro_space();
    double parts[5];
    for (uint64_t seed = 0; seed < 5; seed++) {
        hwnas_front front = {.n_objectives = 2};
        hwnas_strategy *strategy = make_bayesian(space, seed, 2);
        hwnas_arch *arch = hwnas_arch_new(space);
        for (uint64_t trial = 0; trial < 100; trial++) {
            ask(strategy, trial, arch);
            hwnas_score score = macro_score(arch);
            hwnas_point at = {.objectives = {score.objectives[0], score.objectives[1]}};
            hwnas_front_insert(&front, &at);
            tell(strategy, trial, arch, &score);
        }
        assert_int_equal(hwnas_hypervolume(&parts[seed], &front, reference), HWNAS_OK);
        parts[seed] /= 2940.464;
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
        hwnas_front_done(&front);
    }
    hwnas_sort(parts, 5);
    print_message("# bayesian: part of the true hypervolume at 100 trials, 5 seeds: %.4f to %.4f\n",
                  parts[0], parts[4]);
    assert_true(parts[2] >= 0.995);
    hwnas_space_free(space);
}

/* 40 M MACs, which 14 % of the encodings meet; by margin and without. 91.5067 % is the best below.
 */
static void bayesian_keeps_to_a_limit(void **state)
{
    (void)state;
    hwnas_space *space = load_macro_space();
    for (int with_margin = 0; with_margin < 2; with_margin++) {
        double best = 0;
        int n_feasible = 0;
        hwnas_strategy *strategy = make_bayesian(space, 1, 1);
        hwnas_arch *arch = hwnas_arch_new(space);
        for (uint64_t trial = 0; trial < 60; trial++) {
            ask(strategy, trial, arch);
            hwnas_score all = macro_score(arch), score = {.objectives = {all.objectives[1]}};
            double margin = all.objectives[0] / 40 - 1;
            score.violation = fmax(0, margin);
            score.n_margins = with_margin;
            score.margins[0] = margin;
            tell(strategy, trial, arch, &score);
            if (score.violation == 0)
                best = fmax(best, -score.objectives[0]);
            n_feasible += trial >= 20 && score.violation == 0;
        }
        print_message("# bayesian under a limit%s: %.3f %%, %d of 40 trials feasible\n",
                      with_margin ? ", with margins" : "", best, n_feasible);
        assert_true(best >= 91.0);
        assert_true(n_feasible >= 12); /* 14 % of 40 are 6 */
        hwnas_arch_free(arch);
        hwnas_strategy_free(strategy);
    }
    hwnas_space_free(space);
}

/* A third of the networks fails; and infeasible ones say nothing of their objectives. */
static void bayesian_learns_from_failures(void **state)
{
    (void)state;
    hwnas_space *space = load_macro_space();
    hwnas_strategy *strategy = make_bayesian(space, 1, 2);
    hwnas_arch *arch = hwnas_arch_new(space);
    int n_failed = 0;
    for (uint64_t trial = 0; trial < 80; trial++) {
        ask(strategy, trial, arch);
        hwnas_score score = macro_score(arch);
        if (arch->genes[0] == 2)
            score = (hwnas_score){.violation = INFINITY};
        else if (score.objectives[0] > 90)
            score = (hwnas_score){.objectives = {NAN, NAN}, .violation = score.objectives[0] - 90};
        tell(strategy, trial, arch, &score);
        n_failed += trial >= 20 && arch->genes[0] == 2;
    }
    print_message("# bayesian failures: %d of trials 20 to 79\n", n_failed);
    assert_true(n_failed < 10);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
    hwnas_space_free(space);
}

/* The table gives encodings of one network one value. Once that has been seen, no network is tried
 * again in another spelling. */
static void bayesian_knows_twins(void **state)
{
    (void)state;
    enum { N_TRIALS = 80 };
    hwnas_space *space = load_macro_space();
    hwnas_strategy *strategy = make_bayesian(space, 2, 2);
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_digest digests[N_TRIALS];
    int n_twins = 0;
    for (uint64_t trial = 0; trial < N_TRIALS; trial++) {
        hwnas_graph *graph;
        bool is_twin = false;
        ask(strategy, trial, arch);
        assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
        digests[trial] = hwnas_graph_digest(graph);
        hwnas_graph_free(graph);
        for (uint64_t i = 0; i < trial; i++)
            is_twin |= !strcmp(digests[i].hex, digests[trial].hex);
        n_twins += is_twin && trial >= 10;
        hwnas_score score = macro_score(arch);
        tell(strategy, trial, arch, &score);
    }
    assert_true(n_twins <= 1);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
    hwnas_space_free(space);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_strategy_is_corrected),
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(small_population_is_refused),
        cmocka_unit_test(several_objectives_are_refused),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(auto_chooses_and_says_why),
        cmocka_unit_test(each_architecture_comes_once),
        cmocka_unit_test(a_fixed_network_comes_once),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(a_study_is_continued),
        cmocka_unit_test(open_trials_do_not_collide),
        cmocka_unit_test(the_optimum_is_found),
        cmocka_unit_test(exhaustive_goes_in_order),
        cmocka_unit_test(neighbours_differ_in_one_gene),
        cmocka_unit_test(local_search_tries_neighbours),
        cmocka_unit_test(halving_climbs_the_ladder),
        cmocka_unit_test(gain_of_one_and_two_is_exact),
        cmocka_unit_test(gain_of_three_converges),
        cmocka_unit_test(random_is_uniform),
        cmocka_unit_test(nsga2_begins_with_the_ends),
        cmocka_unit_test(nsga2_knows_names_have_no_ends),
        cmocka_unit_test(nsga2_keeps_to_a_limit),
        cmocka_unit_test(nsga2_learns_from_failures),
        cmocka_unit_test(nsga2_optimises_one_objective),
        cmocka_unit_test(nsga2_finds_the_front),
        cmocka_unit_test(bayesian_finds_the_front),
        cmocka_unit_test(bayesian_keeps_to_a_limit),
        cmocka_unit_test(bayesian_learns_from_failures),
        cmocka_unit_test(bayesian_knows_twins),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("search", tests, load_macro, NULL);
}
