/* test_search.c: what holds for every strategy of src/search, and the simple ones, on small made-up
 * spaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "search/neighbours.h"
#include "tests/unit/search_fixture.h"

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
        {{.max_trials = 100, .n_rungs = 2, .n_objectives = 2}, 4, "bayesian", "model"},
        {{0}, 10, "bayesian", "model"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        test_space t;
        char *why = NULL;
        make_space(&t, cases[i].n_genes, 4);
        hwnas_strategy_config config = cases[i].config;
        config.space = &t.space;
        config.n_objectives = config.n_objectives ? config.n_objectives : 1;
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
/* What was estimated and then measured is as if it had been measured at once: of each trial an
 * estimate that is worse than all others, of the first one that is better than all others, and of
 * each of a few trials such a one; a climb does not bring back what such an estimate drove out of
 * it. */
static void a_measurement_replaces_an_estimate(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, n_estimated;
        double by;
    } rows[] = {{40, 40, 100}, {40, 1, -100}, {12, 12, -100}};
    test_space t;
    make_space(&t, 6, 4);
    for (size_t i = 0; hwnas_strategies[i]; i++)
        for (size_t r = 0; r < COUNT(rows); r++) {
            const char *name = hwnas_strategies[i]->name;
            if (!strcmp(name, "local-search") && rows[r].by < 0 && rows[r].n_estimated > 1)
                continue;
            hwnas_strategy *at_once = make(name, &t, 5, 2), *later = make(name, &t, 5, 2);
            hwnas_arch *a = hwnas_arch_new(&t.space), *b = hwnas_arch_new(&t.space);
            for (uint64_t trial = 0; trial < rows[r].n; trial++) {
                ask(at_once, trial, a);
                ask(later, trial, b);
                if (!hwnas_arch_equal(a, b))
                    fail_msg("%s, row %zu: trial %d differs", name, r, (int)trial);
                hwnas_score score = toy_score(a);
                score.rung = at_once->ops->rung ? at_once->ops->rung(at_once, trial) : 0;
                hwnas_score estimate = score;
                estimate.is_estimate = true;
                for (int k = 0; k < 3; k++)
                    estimate.objectives[k] += rows[r].by;
                tell(at_once, trial, a, &score);
                if (trial < rows[r].n_estimated)
                    tell(later, trial, b, &estimate);
                tell(later, trial, b, &score);
            }
            hwnas_arch_free(a);
            hwnas_arch_free(b);
            hwnas_strategy_free(at_once);
            hwnas_strategy_free(later);
        }
}

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

/* Of the toy's second objective over the space. */
static double mean_truth(const test_space *t)
{
    enum { N = 4096 };
    double sum = 0;
    hwnas_arch *arch = hwnas_arch_new(&t->space);
    hwnas_rng rng = hwnas_rng_new(2, 1);
    for (int i = 0; i < N; i++) {
        assert_true(hwnas_arch_sample(arch, &rng));
        sum += toy_score(arch).objectives[1];
    }
    hwnas_arch_free(arch);
    return sum / N;
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
    /* What the cheapest rung tells is learnt from: chance would come to the mean of the space. */
    assert_true(sum_at[2] / n_at[2] < 0.75 * mean_truth(&t));
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
}

/* What misses a limit is cheap, and makes no room for what meets it. */
static void halving_counts_what_meets_the_limits(void **state)
{
    (void)state;
    enum { N_TRIALS = 120 };
    test_space t;
    make_space(&t, 6, 4);
    hwnas_strategy *strategy = make("successive-halving", &t, 3, 1);
    hwnas_arch *arch = hwnas_arch_new(&t.space);
    int n_feasible[3] = {0}, n_at[3] = {0};
    for (uint64_t trial = 0; trial < N_TRIALS; trial++) {
        ask(strategy, trial, arch);
        const int rung = strategy->ops->rung(strategy, trial);
        hwnas_score score = {.rung = rung, .violation = index_of(arch) % 4 ? 0.5 : 0};
        score.objectives[0] = toy_score(arch).objectives[1];
        tell(strategy, trial, arch, &score);
        n_at[rung]++;
        n_feasible[rung] += score.violation == 0;
    }
    assert_true(n_feasible[2] > 9 && n_feasible[2] < n_at[2] - 9);
    /* Some may have been promoted before the first that met the limits. */
    assert_in_range(n_at[1], n_feasible[2] / 3, n_feasible[2] / 3 + 2);
    assert_true(n_at[0] > 0 && n_at[0] <= n_at[1] / 3 + 1);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
}

/* Whom the rule of the head of successive_halving.c names, by comparing all with all; -1: none. */
static long to_promote(const hwnas_score *scores, const bool *is_promoted, size_t n, int m)
{
    size_t n_feasible = 0, n_promoted = 0;
    long best = -1;
    for (size_t i = 0; i < n; i++) {
        n_feasible += scores[i].violation == 0;
        n_promoted += is_promoted[i];
    }
    const size_t room = (n_feasible ? n_feasible : n) / 3;
    size_t least = room;
    for (size_t i = 0; i < n && n_promoted < room; i++) {
        size_t rank = 0;
        for (size_t k = 0; k < n; k++)
            rank += hwnas_score_is_better(&scores[k], &scores[i], m);
        if (!is_promoted[i] && !isinf(scores[i].violation) && rank < least) {
            least = rank;
            best = (long)i;
        }
    }
    return best;
}

static hwnas_score score_at_random(hwnas_rng *rng)
{
    const double draw = hwnas_rng_double(rng);
    hwnas_score score = {.rung = 2,
                         .violation = draw < 0.1   ? INFINITY
                                      : draw < 0.3 ? floor(40 * draw)
                                                   : 0};
    for (int k = 0; k < 2; k++) /* with ties */
        score.objectives[k] = floor(20 * hwnas_rng_double(rng));
    return score;
}

/* Also where trials are told again with other values. */
static void halving_promotes_by_the_rule(void **state)
{
    (void)state;
    enum { N_TRIALS = 300 };
    test_space t;
    make_space(&t, 6, 4);
    hwnas_strategy *strategy = make("successive-halving", &t, 3, 2);
    hwnas_arch *archs[N_TRIALS], *arch = hwnas_arch_new(&t.space);
    hwnas_score scores[N_TRIALS];
    uint64_t trials[N_TRIALS];
    bool is_promoted[N_TRIALS] = {false};
    hwnas_rng rng = hwnas_rng_new(5, 1);
    size_t n = 0, n_promoted = 0;
    for (uint64_t trial = 0; n < N_TRIALS; trial++) {
        const long expected = to_promote(scores, is_promoted, n, 2);
        ask(strategy, trial, arch);
        const int rung = strategy->ops->rung(strategy, trial);
        assert_int_equal(rung, expected < 0 ? 2 : 1);
        if (expected >= 0) { /* and never told, so that the rungs above stay empty */
            assert_true(hwnas_arch_equal(arch, archs[expected]));
            is_promoted[expected] = true;
            n_promoted++;
            continue;
        }
        archs[n] = hwnas_arch_copy(arch);
        trials[n] = trial;
        scores[n] = score_at_random(&rng);
        tell(strategy, trial, arch, &scores[n]);
        n++;
        const size_t again = hwnas_rng_below(&rng, (uint32_t)n);
        if (n % 5 == 0) {
            scores[again] = score_at_random(&rng);
            tell(strategy, trials[again], archs[again], &scores[again]);
        }
    }
    assert_true(n_promoted > N_TRIALS / 6);
    while (n)
        hwnas_arch_free(archs[--n]);
    hwnas_arch_free(arch);
    hwnas_strategy_free(strategy);
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
        cmocka_unit_test(a_measurement_replaces_an_estimate),
        cmocka_unit_test(open_trials_do_not_collide),
        cmocka_unit_test(the_optimum_is_found),
        cmocka_unit_test(exhaustive_goes_in_order),
        cmocka_unit_test(neighbours_differ_in_one_gene),
        cmocka_unit_test(local_search_tries_neighbours),
        cmocka_unit_test(halving_climbs_the_ladder),
        cmocka_unit_test(halving_counts_what_meets_the_limits),
        cmocka_unit_test(halving_promotes_by_the_rule),
        cmocka_unit_test(random_is_uniform),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
