/* test_space_rules.c: conditions and constraints decide exactly what counts: rare ones, and random
 * small spaces that an evaluator of the test's own goes through combination by combination. Which
 * ones changes from day to day: the seed is the day's number and is printed, HWNAS_SEED gives
 * another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "search/neighbours.h"
#include "search/search.h"
#include "space/backtrack.h"
#include "space/diagram.h"
#include "space/repair.h"
#include "tests/unit/space_fixture.h"

enum { SECONDS_A_DAY = 86400 };

static uint64_t seed(void)
{
    const char *given = getenv("HWNAS_SEED");
    return given && *given ? strtoull(given, NULL, 10) : (uint64_t)(time(NULL) / SECONDS_A_DAY);
}

/* The names of the choices, joined by commas. */
static void add_names(hwnas_str *out, const char *choices)
{
    for (const char *line = choices; *line; line = strchr(line, '\n') + 1)
        if (line[2] != ' ')
            hwnas_str_addf(out, "%s%.*s", line > choices ? ", " : "", (int)strcspn(line + 2, ":"),
                           line + 2);
}

static hwnas_space *space_of(const char *choices, const char *constraints)
{
    hwnas_space *space = NULL;
    hwnas_str text = {0};
    hwnas_str_addf(&text, "hwnas: 1\nname: rules\ninput: {image: [3, 8, 8]}\nchoices:\n%s%s%s",
                   choices, *constraints ? "constraints:\n" : "", constraints);
    hwnas_str_add(&text, "network:\n  - relu\n  - let: {used: [");
    add_names(&text, choices);
    hwnas_str_add(&text, "]}\n");
    if (hwnas_space_parse(&space, "test.yaml", text.s, strlen(text.s), NULL) != HWNAS_OK)
        fail_msg("%s\n%s", describe(), text.s);
    hwnas_str_done(&text);
    return space;
}

static void expect_count(const hwnas_space *space, const char *expected)
{
    bool is_exact = false;
    char *count = hwnas_space_count(space, &is_exact);
    assert_true(is_exact);
    assert_string_equal(count, expected);
    free(count);
}

/* ---- Rare ones ---- */

/* The value of a gene as the file has it. */
static int64_t at(const hwnas_arch *arch, size_t gene)
{
    return arch->space->genes[gene].values[arch->genes[gene]].i;
}

static bool first_four_are_one(const hwnas_arch *arch)
{
    for (size_t g = 0; g < 4; g++)
        if (at(arch, g) != 1)
            return false;
    return true;
}

static bool first_six_are_four(const hwnas_arch *arch)
{
    for (size_t g = 0; g < 6; g++)
        if (at(arch, g) != 4)
            return false;
    return true;
}

static bool are_six_nines(const hwnas_arch *arch)
{
    for (size_t g = 0; g < 6; g++)
        if (at(arch, g) != 9)
            return false;
    return true;
}

static int64_t sum_of(const hwnas_arch *arch, size_t n)
{
    int64_t sum = 0;
    for (size_t g = 0; g < n; g++)
        sum += at(arch, g);
    return sum;
}

static bool has_even_sum(const hwnas_arch *arch)
{
    return sum_of(arch, 20) % 2 == 0;
}

static bool sums_to_thirty(const hwnas_arch *arch)
{
    return sum_of(arch, 24) == 30;
}

static bool rises(const hwnas_arch *arch)
{
    for (size_t g = 0; g + 1 < 8; g++)
        if (at(arch, g) >= at(arch, g + 1))
            return false;
    return true;
}

static bool multiplies_to_1024(const hwnas_arch *arch)
{
    int64_t product = 1;
    for (size_t g = 0; g < 10; g++)
        product *= at(arch, g);
    return product == 1024;
}

static bool pairs_are_equal(const hwnas_arch *arch)
{
    for (size_t g = 0; g < 10; g++)
        if (at(arch, g) != at(arch, g + 10))
            return false;
    return true;
}

#define PAIRS                                                                                      \
    "  - a[0] == b[0]\n  - a[1] == b[1]\n  - a[2] == b[2]\n  - a[3] == b[3]\n"                     \
    "  - a[4] == b[4]\n  - a[5] == b[5]\n  - a[6] == b[6]\n  - a[7] == b[7]\n"                     \
    "  - a[8] == b[8]\n  - a[9] == b[9]\n"

static const struct {
    const char *choices, *constraints;
    bool (*holds)(const hwnas_arch *arch);
    const char *count;
} rare[] = {
    {"  a: {each_of: 4, values: [1, 2, 3, 4, 5, 6, 7]}\n"
     "  c: {each_of: 6, values: [1, 2, 3, 4, 5, 6, 7, 8]}\n",
     "  - a[0] == 1 and a[1] == 1 and a[2] == 1 and a[3] == 1\n", first_four_are_one, "262144"},
    {"  a: {each_of: 6, values: [1, 2, 3, 4]}\n  c: {each_of: 3, values: [1, 2]}\n",
     "  - min(a[0], a[1], a[2], a[3], a[4], a[5]) == 4\n", first_six_are_four, "8"},
    {"  a: {each_of: 6, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\n  c: {values: [1, 2]}\n",
     "  - sum(a) == 54\n", are_six_nines, "2"},
    {"  a: {each_of: 20, values: [0, 1]}\n", "  - sum(a) % 2 == 0\n", has_even_sum, "524288"},
    /* the coefficient of x^30 of (1 + x + ... + x^9)^24, counted by a program of a few lines */
    {"  a: {each_of: 24, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}\n", "  - sum(a) == 30\n",
     sums_to_thirty, NULL},
    {"  a: {each_of: 8, values: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n",
     "  - a[0] < a[1] and a[1] < a[2] and a[2] < a[3] and a[3] < a[4]\n"
     "  - a[4] < a[5] and a[5] < a[6] and a[6] < a[7]\n",
     rises, "9"},
    /* exponents 0, 1, 2, 3 of ten positions that sum to 10 */
    {"  a: {each_of: 10, values: [1, 2, 4, 8]}\n",
     "  - a[0] * a[1] * a[2] * a[3] * a[4] * a[5] * a[6] * a[7] * a[8] * a[9] == 1024\n",
     multiplies_to_1024, NULL},
    {"  a: {each_of: 10, values: [1, 2, 3, 4, 5, 6, 7]}\n"
     "  b: {each_of: 10, values: [1, 2, 3, 4, 5, 6, 7]}\n",
     PAIRS, pairs_are_equal, "282475249"},
};

/* Ways to reach a sum with so many numbers from 0 to `most`. */
static char *ways(size_t n, size_t most, size_t sum)
{
    double table[512] = {1};
    for (size_t k = 0; k < n; k++)
        for (size_t s = sum + 1; s-- > 0;) {
            double total = 0;
            for (size_t v = 0; v <= most && v <= s; v++)
                total += table[s - v];
            table[s] = total;
        }
    return hwnas_printf("%.0f", table[sum]);
}

static void rare_networks_are_sampled(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rare); i++) {
        hwnas_space *space = space_of(rare[i].choices, rare[i].constraints);
        char *count = rare[i].count                     ? hwnas_strdup(rare[i].count)
                      : rare[i].holds == sums_to_thirty ? ways(24, 9, 30)
                                                        : ways(10, 3, 10);
        expect_count(space, count);
        free(count);
        hwnas_arch *arch = hwnas_arch_new(space), *other = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(i, 1);
        assert_int_equal(hwnas_space_check_rules(space), HWNAS_OK);
        for (int n = 0; n < 10000; n++) {
            assert_true(hwnas_arch_sample(arch, &rng));
            assert_true(rare[i].holds(arch));
            if (n % 50)
                continue;
            assert_true(hwnas_arch_sample_evenly(other, &rng));
            assert_true(rare[i].holds(other));
            hwnas_arch *child = hwnas_arch_copy(arch);
            hwnas_arch_cross(child, arch, other, &rng);
            assert_true(rare[i].holds(child));
            hwnas_arch_assign(child, arch);
            hwnas_arch_mutate(child, 0, &rng);
            assert_true(rare[i].holds(child));
            assert_false(hwnas_arch_equal(child, arch)); /* each of these spaces has neighbours */
            hwnas_arch_free(child);
        }
        hwnas_arch_free(arch);
        hwnas_arch_free(other);
        hwnas_space_free(space);
    }
}

/* A step from each network: none is alone. */
static void neighbours_keep_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rare); i++) {
        hwnas_space *space = space_of(rare[i].choices, rare[i].constraints);
        hwnas_arch *arch = hwnas_arch_new(space);
        hwnas_rng rng = hwnas_rng_new(i, 2);
        for (int n = 0; n < 20; n++) {
            hwnas_neighbours all;
            assert_true(hwnas_arch_sample(arch, &rng));
            hwnas_neighbours_of(&all, arch);
            assert_true(all.n > 0);
            for (size_t k = 0; k < all.n; k++) {
                assert_true(rare[i].holds(all.archs[k]));
                assert_false(hwnas_arch_equal(all.archs[k], arch));
            }
            hwnas_neighbours_done(&all);
        }
        hwnas_arch_free(arch);
        hwnas_space_free(space);
    }
}

/* One choice decides on the next, 45 of them: 46 networks. */
static void add_chain(hwnas_str *choices)
{
    hwnas_str_add(choices, "  a: {values: [0, 1]}\n");
    for (int i = 1; i < 45; i++)
        hwnas_str_addf(choices,
                       i == 1 ? "  g%d: {values: [0, 1], when: a == 1}\n"
                              : "  g%d: {values: [0, 1], when: g%d == 1}\n",
                       i, i - 1);
}

static void chained_conditions_are_counted(void **state)
{
    (void)state;
    hwnas_str choices = {0};
    add_chain(&choices);
    hwnas_space *space = space_of(choices.s, "");
    expect_count(space, "46");
    hwnas_arch *arch = hwnas_arch_first(space);
    size_t n = 1;
    while (hwnas_arch_next(arch)) {
        size_t ones = 0;
        while (ones < 45 && arch->genes[ones])
            ones++;
        assert_int_equal(ones, n);
        n++;
    }
    assert_int_equal(n, 46);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    hwnas_str_done(&choices);
}

/* ---- Searches ---- */

enum { MAX_TRIALS = 80 };

/* Tells a new strategy the first `n` trials and goes on, to the end of the space or of the log.
 * Says how many there are then. */
static size_t search_on(hwnas_arch *log[MAX_TRIALS], size_t n, const char *name,
                        const hwnas_space *space)
{
    const hwnas_strategy_config config = {.space = space, .n_objectives = 1, .seed = 4};
    hwnas_strategy *strategy = NULL;
    hwnas_status status = HWNAS_OK;
    if (hwnas_strategy_new(&strategy, name, &config) != HWNAS_OK)
        fail_msg("%s", describe());
    for (size_t k = 0; k < MAX_TRIALS && status == HWNAS_OK; k++) {
        hwnas_score score = {0};
        if (k >= n) {
            log[k] = hwnas_arch_new(space);
            status = strategy->ops->ask(strategy, k, log[k]);
            n += status == HWNAS_OK;
        }
        for (size_t g = 0; g < space->n_genes; g++)
            score.objectives[0] += fabs((double)log[k]->genes[g] - (double)(g % 3));
        if (status == HWNAS_OK)
            assert_int_equal(strategy->ops->tell(strategy, k, log[k], &score), HWNAS_OK);
        else
            hwnas_arch_free(log[k]);
    }
    if (status != HWNAS_OK)
        assert_int_equal(status, HWNAS_E_EXHAUSTED);
    hwnas_strategy_free(strategy);
    return n;
}

/* Each network once, all of them met by the constraints; and what was ended in the middle goes on
 * as if it had not been. */
static void expect_search(const char *name, const hwnas_space *space,
                          bool (*holds)(const hwnas_arch *arch), size_t expected)
{
    hwnas_arch *log[MAX_TRIALS], *again[MAX_TRIALS];
    const size_t n = search_on(log, 0, name, space);
    assert_int_equal(n, expected);
    for (size_t k = 0; k < n; k++) {
        assert_true(!holds || holds(log[k]));
        for (size_t i = 0; i < k; i++)
            assert_false(hwnas_arch_equal(log[i], log[k]));
    }
    for (size_t begin = 7; begin < n; begin += 24) {
        for (size_t k = 0; k < begin; k++)
            again[k] = hwnas_arch_copy(log[k]);
        assert_int_equal(search_on(again, begin, name, space), n);
        for (size_t k = 0; k < n; k++) {
            assert_true(hwnas_arch_equal(again[k], log[k]));
            hwnas_arch_free(again[k]);
        }
    }
    for (size_t k = 0; k < n; k++)
        hwnas_arch_free(log[k]);
}

static void every_strategy_keeps_the_rules(void **state)
{
    (void)state;
    static const char *const names[] = {"random", "nsga2", "regularized-evolution", "local-search",
                                        "bayesian"};
    hwnas_str choices = {0};
    add_chain(&choices);
    hwnas_space *chain = space_of(choices.s, "");
    assert_int_equal(hwnas_graph_check(chain), HWNAS_OK);
    for (size_t s = 0; s < COUNT(names); s++) {
        expect_search(names[s], chain, NULL, 46);
        for (size_t i = 0; i < COUNT(rare); i++) {
            hwnas_space *space = space_of(rare[i].choices, rare[i].constraints);
            assert_int_equal(hwnas_graph_check(space), HWNAS_OK);
            const uint64_t few = hwnas_space_count_up_to(space, MAX_TRIALS);
            expect_search(names[s], space, rare[i].holds, few ? few : MAX_TRIALS);
            hwnas_space_free(space);
        }
    }
    expect_search("exhaustive", chain, NULL, 46);
    hwnas_space_free(chain);
    hwnas_str_done(&choices);
}

/* ---- Chances ---- */

/* Pearson's statistic of `n` draws must lie near its mean; 6 deviations never happen by chance. */
static void expect_chances(const hwnas_space *space, const double *weights, size_t n_networks,
                           bool (*draw)(hwnas_arch *, hwnas_rng *))
{
    enum { N_EACH = 200 };
    const size_t n = N_EACH * n_networks;
    size_t *counts = hwnas_alloc(n_networks * sizeof *counts);
    hwnas_arch **all = hwnas_alloc(n_networks * sizeof *all);
    hwnas_arch *arch = hwnas_arch_first(space);
    for (size_t i = 0; i < n_networks; i++) {
        all[i] = hwnas_arch_copy(arch);
        assert_int_equal(hwnas_arch_next(arch), i + 1 < n_networks);
    }
    hwnas_rng rng = hwnas_rng_new(11, 5);
    for (size_t k = 0; k < n; k++) {
        assert_true(draw(arch, &rng));
        size_t i = 0;
        while (i < n_networks && !hwnas_arch_equal(all[i], arch))
            i++;
        assert_true(i < n_networks);
        counts[i]++;
    }
    double sum = 0, statistic = 0;
    for (size_t i = 0; i < n_networks; i++)
        sum += weights ? weights[i] : 1;
    for (size_t i = 0; i < n_networks; i++) {
        const double expected = (double)n * (weights ? weights[i] : 1) / sum;
        statistic += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        hwnas_arch_free(all[i]);
    }
    const double freedom = (double)n_networks - 1;
    assert_true(statistic < freedom + 6 * sqrt(2 * freedom));
    hwnas_arch_free(arch);
    free(all);
    free(counts);
}

static void samples_have_the_chances_of_trying_again(void **state)
{
    (void)state;
    /* 20 ways of 4^4 to reach 3, too few to be tried: they come from the diagram. */
    hwnas_space *space = space_of("  a: {each_of: 4, values: [0, 1, 2, 3]}\n", "  - sum(a) == 3\n");
    expect_count(space, "20");
    expect_chances(space, NULL, 20, hwnas_arch_sample);
    expect_chances(space, NULL, 20, hwnas_arch_sample_evenly);
    hwnas_space_free(space);
    /* 19 of 27: by trying */
    space = space_of("  a: {each_of: 3, values: [0, 1, 2]}\n", "  - max(a[0], a[1], a[2]) == 2\n");
    expect_count(space, "19");
    expect_chances(space, NULL, 19, hwnas_arch_sample);
    hwnas_space_free(space);
    /* Depth 1 has one network here, depth 2 four, depth 3 nine of 27, each depth with a third of
     * the tries: the constraint meets 1, 3 and 6 ways of each third. */
    space = space_of("  a: {values: [1, 2, 3]}\n"
                     "  b: {each_of: 3, values: [0, 1, 2], when: i < a}\n"
                     "  c: {each_of: 4, values: [1, 2, 3, 4, 5]}\n",
                     "  - sum(b) == 2\n  - sum(c) == 4\n");
    expect_count(space, "10");
    static const double weights[] = {1. / 3,  1. / 9,  1. / 9,  1. / 9,  1. / 27,
                                     1. / 27, 1. / 27, 1. / 27, 1. / 27, 1. / 27};
    expect_chances(space, weights, 10, hwnas_arch_sample);
    expect_chances(space, NULL, 10, hwnas_arch_sample_evenly);
    hwnas_space_free(space);
}

/* Crossing draws evenly from the networks between two parents. */
static void rare_children_are_crossed(void **state)
{
    (void)state;
    hwnas_space *space = space_of("  a: {each_of: 12, values: [0, 1]}\n",
                                  "  - a[0] + a[1] == 1\n  - a[2] + a[3] == 1\n"
                                  "  - a[4] + a[5] == 1\n  - a[6] + a[7] == 1\n"
                                  "  - a[8] + a[9] == 1\n  - a[10] + a[11] == 1\n");
    expect_count(space, "64");
    hwnas_arch *a = hwnas_arch_new(space), *b = hwnas_arch_new(space), *c = hwnas_arch_new(space);
    size_t counts[64] = {0};
    for (size_t g = 0; g < 12; g++) {
        a->genes[g] = g % 2;
        b->genes[g] = 1 - g % 2;
    }
    hwnas_rng rng = hwnas_rng_new(7, 7);
    enum { N = 6400 };
    for (int n = 0; n < N; n++) {
        hwnas_diagram_cross(c->genes, space->rules->diagram, a->genes, b->genes, &rng);
        size_t index = 0;
        for (size_t g = 0; g < 12; g += 2) {
            assert_int_equal(c->genes[g] + c->genes[g + 1], 1);
            index = 2 * index + c->genes[g];
        }
        counts[index]++;
    }
    double statistic = 0;
    for (size_t i = 0; i < 64; i++)
        statistic += ((double)counts[i] - N / 64.) * ((double)counts[i] - N / 64.) / (N / 64.);
    assert_true(statistic < 63 + 6 * sqrt(2 * 63.));
    hwnas_arch_free(a);
    hwnas_arch_free(b);
    hwnas_arch_free(c);
    hwnas_space_free(space);
}

/* ---- Spaces without a network, and too large ones ---- */

static void expect_none(const char *choices, const char *constraints, int line, const char *message)
{
    hwnas_space *space = space_of(choices, constraints);
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(1, 1);
    memset(arch->genes, 0, space->n_genes * sizeof *arch->genes);
    assert_false(hwnas_arch_sample(arch, &rng));
    for (size_t g = 0; g < space->n_genes; g++)
        assert_int_equal(arch->genes[g], 0); /* as it was */
    assert_null(hwnas_arch_first(space));
    expect_count(space, "0");
    assert_int_equal(hwnas_space_count_up_to(space, 10), 0);
    assert_int_equal(hwnas_space_check_rules(space), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->message, message);
    assert_int_equal(hwnas_last_error()->line, line);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static void contradictions_are_proven(void **state)
{
    (void)state;
    static const char alone[] = "no architecture meets this constraint";
    static const char together[] = "no architecture meets this constraint and those above it";
    expect_none("  a: {each_of: 20, values: [0, 2, 4]}\n", "  - sum(a) % 2 == 1\n", 7, alone);
    expect_none("  a: {each_of: 20, values: [0, 1, 2]}\n",
                "  - a[0] > 0\n  - sum(a) <= 3\n  - a[3] + a[4] == 3\n  - a[5] != 9\n", 9,
                together);
    expect_none("  a: {each_of: 30, values: [1, 2, 3]}\n", "  - sum(a) > 90\n", 7, alone);
    expect_none("  a: {values: [1, 2]}\n", "  - a > 1\n  - false\n  - a < 2\n", 8, alone);
}

/* Sums of 40 large numbers, of which no two are alike: no diagram can hold them. */
static hwnas_space *large_space(unsigned times, const char *constraints)
{
    hwnas_str choices = {0};
    hwnas_rng rng = hwnas_rng_new(99, 1);
    hwnas_str_add(&choices, "  a:\n    values:\n");
    for (int i = 0; i < 40; i++) {
        hwnas_str_add(&choices, "      - [");
        for (int v = 0; v < 8; v++)
            hwnas_str_addf(&choices, "%s%u", v ? ", " : "",
                           times * (v * 1000000 + hwnas_rng_below(&rng, 1000000)));
        hwnas_str_add(&choices, "]\n");
    }
    hwnas_space *space = space_of(choices.s, constraints);
    hwnas_str_done(&choices);
    return space;
}

static void spaces_too_large_to_count_are_sampled(void **state)
{
    (void)state;
    /* About one in 10^12 has so small a sum. */
    hwnas_space *space = large_space(1, "  - sum(a) < 60000000\n  - sum(a) > 50000000\n"
                                        "  - a[0] + a[39] > a[1] + a[2]\n");
    bool is_exact = true;
    free(hwnas_space_count(space, &is_exact));
    assert_false(is_exact);
    assert_int_equal(hwnas_space_check_rules(space), HWNAS_OK);
    hwnas_arch *first = hwnas_arch_first(space), *other = hwnas_arch_new(space);
    assert_non_null(first);
    hwnas_rng rng = hwnas_rng_new(3, 3);
    for (int n = 0; n < 50; n++) {
        hwnas_arch_assign(other, first);
        assert_true(hwnas_arch_sample(first, &rng));
        const int64_t sum = sum_of(first, 40);
        assert_true(sum < 60000000 && sum > 50000000 &&
                    at(first, 0) + at(first, 39) > at(first, 1) + at(first, 2));
        assert_false(hwnas_arch_equal(first, other));
        hwnas_arch_mutate(other, 0, &rng);
        assert_true(hwnas_arch_settle(other));
        hwnas_arch_cross(other, first, other, &rng);
        assert_true(hwnas_arch_settle(other));
    }
    hwnas_arch_free(first);
    hwnas_arch_free(other);
    hwnas_space_free(space);
}

/* The sum of even numbers is never odd, but that is not seen. */
static void what_is_not_found_may_exist(void **state)
{
    (void)state;
    hwnas_space *space = large_space(2, "  - a[0] > 0\n  - sum(a) == 280000001\n");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_rng rng = hwnas_rng_new(3, 3);
    assert_false(hwnas_arch_sample(arch, &rng));
    assert_null(hwnas_arch_first(space));
    assert_int_equal(hwnas_space_check_rules(space), HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->message,
                        "no architecture was found that meets the constraints; 100 % of random "
                        "networks break this one");
    assert_non_null(strstr(hwnas_last_error()->hint, "there may be some"));
    assert_int_equal(hwnas_last_error()->line, 49);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

/* ---- Random spaces ---- */

typedef struct number {
    enum { WHOLE, REAL, WORD, BROKEN } kind;
    int64_t i; /* WORD: which */
    double r;
} number;

typedef struct term {
    char kind; /* see write_term() */
    int64_t i;
    size_t choice;
    struct term *args[3];
} term;

typedef struct made_choice {
    size_t n_positions, n_values, first;
    bool is_list;
    number values[4];
    term *when;
} made_choice;

enum { MAX_CHOICES = 4, MAX_CONSTRAINTS = 2, MADE_GENES = 12 };

typedef struct made {
    hwnas_rng rng;
    hwnas_arena *arena;
    bool has_words;
    size_t n_choices, n_genes, n_constraints;
    made_choice choices[MAX_CHOICES];
    term *constraints[MAX_CONSTRAINTS];
} made;

static const char *const words[] = {"red", "green", "blue"};

static size_t below(made *m, size_t n)
{
    return hwnas_rng_below(&m->rng, (uint32_t)n);
}

static term *new_term(made *m, char kind, term *a, term *b, term *c)
{
    term *t = hwnas_arena_alloc(m->arena, sizeof *t);
    *t = (term){.kind = kind, .args = {a, b, c}};
    return t;
}

static term *make_number(made *m, size_t n_choices, bool has_position, int depth);

static term *make_truth(made *m, size_t n_choices, bool has_position, int depth)
{
    static const char comparisons[] = "=!<>lg";
    if (depth > 0 && below(m, 3) == 0) {
        const char kind = "&|~"[below(m, 3)];
        return new_term(m, kind, make_truth(m, n_choices, has_position, depth - 1),
                        kind == '~' ? NULL : make_truth(m, n_choices, has_position, depth - 1),
                        NULL);
    }
    return new_term(m, comparisons[below(m, 6)], make_number(m, n_choices, has_position, depth - 1),
                    make_number(m, n_choices, has_position, depth - 1), NULL);
}

static term *make_leaf(made *m, size_t n_choices, bool has_position)
{
    term *t = new_term(m, 'n', NULL, NULL, NULL);
    t->i = (int64_t)below(m, 6);
    if (has_position && below(m, 3) == 0)
        t->kind = 'i';
    else if (n_choices && below(m, 5)) {
        t->choice = below(m, n_choices);
        const made_choice *choice = &m->choices[t->choice];
        t->kind = !choice->is_list ? 'c' : below(m, 3) ? 'e' : below(m, 6) ? 's' : 'L';
        if (t->kind == 'e') {
            t->args[0] = new_term(m, 'n', NULL, NULL, NULL);
            t->args[0]->i = (int64_t)below(m, choice->n_positions + (below(m, 20) == 0));
            if (below(m, 5) == 0)
                t->args[0] = make_leaf(m, n_choices, has_position);
        }
    } else if (m->has_words && below(m, 3) == 0) {
        t->kind = 'w';
        t->i = (int64_t)below(m, COUNT(words));
    } else if (below(m, 8) == 0) {
        t->kind = 'h'; /* a half more */
    }
    return t;
}

static term *make_number(made *m, size_t n_choices, bool has_position, int depth)
{
    if (depth <= 0 || below(m, 4) == 0)
        return make_leaf(m, n_choices, has_position);
    const char kind = "+++---**/DM_xXN?t"[below(m, 17)];
    term *a = kind == '?' || kind == 't' ? make_truth(m, n_choices, has_position, depth - 1)
                                         : make_number(m, n_choices, has_position, depth - 1);
    if (kind == 't')
        return a;
    term *b = kind == '_' ? NULL : make_number(m, n_choices, has_position, depth - 1);
    term *c =
        kind == '?' || kind == 'N' ? make_number(m, n_choices, has_position, depth - 1) : NULL;
    return new_term(m, kind, a, b, c);
}

static void write_term(hwnas_str *out, const term *t)
{
    static const struct {
        char kind;
        const char *text;
    } binary[] = {{'=', "=="}, {'!', "!="},  {'<', "<"},  {'>', ">"}, {'l', "<="},
                  {'g', ">="}, {'&', "and"}, {'|', "or"}, {'+', "+"}, {'-', "-"},
                  {'*', "*"},  {'/', "/"},   {'D', "//"}, {'M', "%"}};
    for (size_t i = 0; i < COUNT(binary); i++)
        if (binary[i].kind == t->kind) {
            hwnas_str_add(out, "(");
            write_term(out, t->args[0]);
            hwnas_str_addf(out, " %s ", binary[i].text);
            write_term(out, t->args[1]);
            hwnas_str_add(out, ")");
            return;
        }
    const char *names = "abcd";
    switch (t->kind) {
    case 'n':
        hwnas_str_addf(out, "%lld", (long long)t->i);
        break;
    case 'h':
        hwnas_str_addf(out, "%lld.5", (long long)t->i);
        break;
    case 'w':
        hwnas_str_add(out, words[t->i]);
        break;
    case 'i':
        hwnas_str_add(out, "i");
        break;
    case 'c':
        hwnas_str_addf(out, "%c", names[t->choice]);
        break;
    case 'e':
        hwnas_str_addf(out, "%c[", names[t->choice]);
        write_term(out, t->args[0]);
        hwnas_str_add(out, "]");
        break;
    case 's':
    case 'L':
        hwnas_str_addf(out, "%s(%c)", t->kind == 's' ? "sum" : "len", names[t->choice]);
        break;
    case '_':
    case '~':
        hwnas_str_add(out, t->kind == '_' ? "(-" : "(not ");
        write_term(out, t->args[0]);
        hwnas_str_add(out, ")");
        break;
    case '?':
        hwnas_str_add(out, "(");
        write_term(out, t->args[0]);
        hwnas_str_add(out, " ? ");
        write_term(out, t->args[1]);
        hwnas_str_add(out, " : ");
        write_term(out, t->args[2]);
        hwnas_str_add(out, ")");
        break;
    default: /* x, X, N: functions of two or three */
        hwnas_str_addf(out, "%s(", t->kind == 'X' ? "max" : "min");
        for (int i = 0; i < 3 && t->args[i]; i++) {
            hwnas_str_add(out, i ? ", " : "");
            write_term(out, t->args[i]);
        }
        hwnas_str_add(out, ")");
        break;
    }
}

/* ---- The test's own evaluator ---- */

static number whole(int64_t i)
{
    return (number){.kind = WHOLE, .i = i, .r = (double)i};
}

static number real(double r)
{
    return isfinite(r) ? (number){.kind = REAL, .r = r} : (number){.kind = BROKEN};
}

static int64_t floored(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static number calculate(char kind, number a, number b)
{
    const bool whole_ones = a.kind == WHOLE && b.kind == WHOLE;
    if (a.kind == BROKEN || b.kind == BROKEN)
        return (number){.kind = BROKEN};
    if (kind == '=' || kind == '!') {
        const bool is_equal =
            a.kind == WORD || b.kind == WORD ? a.kind == b.kind && a.i == b.i : a.r == b.r;
        return whole(is_equal == (kind == '='));
    }
    if (a.kind == WORD || b.kind == WORD)
        return (number){.kind = BROKEN};
    switch (kind) {
    case '<':
        return whole(a.r < b.r);
    case '>':
        return whole(a.r > b.r);
    case 'l':
        return whole(a.r <= b.r);
    case 'g':
        return whole(a.r >= b.r);
    case '+':
        return whole_ones ? whole(a.i + b.i) : real(a.r + b.r);
    case '-':
        return whole_ones ? whole(a.i - b.i) : real(a.r - b.r);
    case '*':
        return whole_ones ? whole(a.i * b.i) : real(a.r * b.r);
    default:
        break;
    }
    if (b.r == 0)
        return (number){.kind = BROKEN};
    if (kind == '/')
        return whole_ones && a.i % b.i == 0 ? whole(a.i / b.i) : real(a.r / b.r);
    if (kind == 'D')
        return whole_ones ? whole(floored(a.i, b.i)) : real(floor(a.r / b.r));
    return whole_ones ? whole(a.i - floored(a.i, b.i) * b.i) : real(a.r - floor(a.r / b.r) * b.r);
}

static number value_at(const made *m, const uint16_t *genes, size_t choice, size_t position)
{
    return m->choices[choice].values[genes[m->choices[choice].first + position]];
}

/* -1: it cannot be computed. */
static int truth_of(const made *m, const term *t, const uint16_t *genes, size_t position);

static number worth(const made *m, const term *t, const uint16_t *genes, size_t position)
{
    static const number broken = {.kind = BROKEN};
    number a, sum = whole(0);
    int truth;
    switch (t->kind) {
    case 'n':
        return whole(t->i);
    case 'h':
        return real((double)t->i + 0.5);
    case 'w':
        return (number){.kind = WORD, .i = t->i};
    case 'i':
        return whole((int64_t)position);
    case 'c':
        return value_at(m, genes, t->choice, 0);
    case 'e':
        a = worth(m, t->args[0], genes, position);
        if (a.kind != WHOLE || a.i < 0 || a.i >= (int64_t)m->choices[t->choice].n_positions)
            return broken;
        return value_at(m, genes, t->choice, (size_t)a.i);
    case 's':
        for (size_t p = 0; p < m->choices[t->choice].n_positions; p++)
            sum = calculate('+', sum, value_at(m, genes, t->choice, p));
        return sum;
    case 'L':
        return whole((int64_t)m->choices[t->choice].n_positions);
    case '_':
        return calculate('-', whole(0), worth(m, t->args[0], genes, position));
    case '~':
        truth = truth_of(m, t->args[0], genes, position);
        return truth < 0 ? broken : whole(!truth);
    case '&':
    case '|':
        truth = truth_of(m, t->args[0], genes, position);
        if (truth >= 0 && truth == (t->kind == '&'))
            truth = truth_of(m, t->args[1], genes, position);
        return truth < 0 ? broken : whole(truth);
    case '?':
        truth = truth_of(m, t->args[0], genes, position);
        return truth < 0 ? broken : worth(m, t->args[truth ? 1 : 2], genes, position);
    case 'x':
    case 'X':
    case 'N':
        a = worth(m, t->args[0], genes, position);
        for (int k = 1; k < 3 && t->args[k]; k++) {
            const number b = worth(m, t->args[k], genes, position);
            const number is_less = calculate('<', t->kind == 'X' ? a : b, t->kind == 'X' ? b : a);
            if (is_less.kind == BROKEN)
                return broken;
            a = is_less.i ? b : a;
        }
        return a.kind == WORD ? broken : a;
    default:
        a = worth(m, t->args[0], genes, position);
        return calculate(t->kind, a, worth(m, t->args[1], genes, position));
    }
}

static int truth_of(const made *m, const term *t, const uint16_t *genes, size_t position)
{
    const number v = worth(m, t, genes, position);
    return v.kind == BROKEN || v.kind == WORD ? -1 : v.r != 0;
}

/* Does the encoding count? Which genes do, and its chance among random values. */
static bool is_valid(const made *m, const uint16_t *genes, bool *is_active, double *chance)
{
    *chance = 1;
    for (size_t c = 0; c < m->n_choices; c++)
        for (size_t p = 0; p < m->choices[c].n_positions; p++) {
            const size_t g = m->choices[c].first + p;
            is_active[g] = !m->choices[c].when || truth_of(m, m->choices[c].when, genes, p) == 1;
            if (!is_active[g] && genes[g])
                return false;
            if (is_active[g])
                *chance /= (double)m->choices[c].n_values;
        }
    for (size_t i = 0; i < m->n_constraints; i++)
        if (truth_of(m, m->constraints[i], genes, 0) != 1)
            return false;
    return true;
}

/* ---- Making them ---- */

static void make_values(made *m, made_choice *choice)
{
    const size_t flavour = below(m, 8), first = below(m, 5);
    for (size_t v = 0; v < choice->n_values; v++) {
        choice->values[v] = whole((int64_t)(first + v * (1 + flavour % 3)) - 2);
        if (flavour == 7)
            choice->values[v] = real((double)v - 0.5);
        if (m->has_words && (choice->first == 0 || flavour > 4) && v < COUNT(words))
            choice->values[v] = (number){.kind = WORD, .i = (int64_t)v};
    }
}

static char *write_space(made *m)
{
    hwnas_str out = {0};
    hwnas_str_add(&out, "hwnas: 1\nname: made\ninput: {image: [3, 8, 8]}\nchoices:\n");
    for (size_t c = 0; c < m->n_choices; c++) {
        const made_choice *choice = &m->choices[c];
        hwnas_str_addf(&out, "  %c: {values: [", "abcd"[c]);
        for (size_t v = 0; v < choice->n_values; v++) {
            hwnas_str_add(&out, v ? ", " : "");
            if (choice->values[v].kind == WORD)
                hwnas_str_add(&out, words[choice->values[v].i]);
            else
                hwnas_str_addf(&out, choice->values[v].kind == WHOLE ? "%.0f" : "%.1f",
                               choice->values[v].r);
        }
        hwnas_str_add(&out, "]");
        if (choice->is_list)
            hwnas_str_addf(&out, ", each_of: %zu", choice->n_positions);
        if (choice->when) {
            hwnas_str_add(&out, ", when: \"");
            write_term(&out, choice->when);
            hwnas_str_add(&out, "\"");
        }
        hwnas_str_add(&out, "}\n");
    }
    hwnas_str_add(&out, m->n_constraints ? "constraints:\n" : "");
    for (size_t i = 0; i < m->n_constraints; i++) {
        hwnas_str_add(&out, "  - \"");
        write_term(&out, m->constraints[i]);
        hwnas_str_add(&out, "\"\n");
    }
    hwnas_str_add(&out, "network:\n  - relu\n  - let: {used: [");
    for (size_t c = 0; c < m->n_choices; c++)
        hwnas_str_addf(&out, "%s%c", c ? ", " : "", "abcd"[c]);
    hwnas_str_add(&out, "]}\n");
    return out.s;
}

static char *make_space(made *m, uint64_t stream)
{
    size_t combinations = 1;
    *m = (made){.rng = hwnas_rng_new(seed(), stream), .arena = hwnas_arena_new()};
    m->has_words = below(m, 5) == 0;
    const size_t n_choices = 2 + below(m, MAX_CHOICES - 1);
    for (size_t c = 0; c < n_choices; c++) {
        made_choice *choice = &m->choices[c];
        choice->is_list = below(m, 2);
        choice->n_positions = choice->is_list ? 1 + below(m, 4) : 1;
        choice->n_values = c || !m->has_words ? 1 + below(m, 4) : COUNT(words);
        choice->first = m->n_genes;
        make_values(m, choice);
        if (below(m, 5) < 2)
            choice->when = make_truth(m, m->n_choices, true, 2);
        for (size_t p = 0; p < choice->n_positions; p++)
            combinations *= choice->n_values;
        if (combinations > 4096 || m->n_genes + choice->n_positions > MADE_GENES)
            break;
        m->n_genes += choice->n_positions;
        m->n_choices++;
    }
    m->n_constraints = m->n_choices ? below(m, MAX_CONSTRAINTS + 1) : 0;
    for (size_t i = 0; i < m->n_constraints; i++)
        m->constraints[i] = make_truth(m, m->n_choices, false, 3);
    return write_space(m);
}

/* ---- Comparing ---- */

typedef struct world {
    const made *m;
    const hwnas_space *space;
    size_t n, n_valid;
    bool *is_valid; /* by number of the combination */
} world;

static size_t index_of(const hwnas_arch *arch)
{
    size_t index = 0;
    for (size_t g = 0; g < arch->space->n_genes; g++)
        index = index * arch->space->genes[g].n_values + arch->genes[g];
    return index;
}

static void set_index(hwnas_arch *arch, size_t index)
{
    for (size_t g = arch->space->n_genes; g-- > 0;) {
        arch->genes[g] = (uint16_t)(index % arch->space->genes[g].n_values);
        index /= arch->space->genes[g].n_values;
    }
}

static void go_through(world *w)
{
    hwnas_arch *arch = hwnas_arch_new(w->space);
    bool is_active[MADE_GENES];
    double chance, accepted = 0;
    w->n = 1;
    for (size_t g = 0; g < w->space->n_genes; g++)
        w->n *= w->space->genes[g].n_values;
    w->is_valid = hwnas_alloc(w->n);
    for (size_t i = 0; i < w->n; i++) {
        set_index(arch, i);
        w->is_valid[i] = is_valid(w->m, arch->genes, is_active, &chance);
        w->n_valid += w->is_valid[i];
        accepted += w->is_valid[i] ? chance : 0;
        for (size_t g = 0; w->is_valid[i] && g < w->space->n_genes; g++)
            assert_int_equal(hwnas_arch_is_active(arch, g), is_active[g]);
    }
    if (w->space->rules)
        assert_float_equal(w->space->rules->diagram->acceptance, accepted, 1e-9);
    hwnas_arch_free(arch);
}

static void check_count_and_order(const world *w)
{
    hwnas_arch *arch = hwnas_arch_first(w->space);
    char *count = hwnas_printf("%zu", w->n_valid);
    expect_count(w->space, count);
    assert_int_equal(hwnas_space_count_up_to(w->space, w->n), w->n_valid);
    free(count);
    assert_int_equal(arch != NULL, w->n_valid > 0);
    for (size_t i = 0; arch && i < w->n; i++) {
        if (!w->is_valid[i])
            continue;
        assert_int_equal(index_of(arch), i); /* in lexical order */
        if (!hwnas_arch_next(arch)) {
            for (size_t k = i + 1; k < w->n; k++)
                assert_false(w->is_valid[k]);
            break;
        }
    }
    hwnas_arch_free(arch);
}

/* Genes that count in `to` and are others than in `from`. */
static size_t changes(const world *w, const hwnas_arch *from, const hwnas_arch *to)
{
    bool is_active[MADE_GENES];
    double chance;
    size_t n = 0;
    is_valid(w->m, to->genes, is_active, &chance);
    for (size_t g = 0; g < w->space->n_genes; g++)
        n += is_active[g] && from->genes[g] != to->genes[g];
    return n;
}

static void check_repair(const world *w, const hwnas_arch *near, size_t gene, size_t value)
{
    hwnas_repair *repair = hwnas_repair_new(near);
    hwnas_arch *found = hwnas_arch_copy(near), *other = hwnas_arch_new(w->space);
    const bool is_found = hwnas_repair_find(found, repair, gene, value);
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < w->n; i++) {
        set_index(other, i);
        if (!w->is_valid[i] || other->genes[gene] != value || !hwnas_arch_is_active(other, gene))
            continue;
        const size_t n = changes(w, near, other);
        fewest = n < fewest ? n : fewest;
    }
    assert_int_equal(is_found, fewest != SIZE_MAX);
    if (is_found) {
        assert_true(w->is_valid[index_of(found)]);
        assert_int_equal(found->genes[gene], value);
        assert_int_equal(changes(w, near, found), fewest);
    }
    hwnas_repair_free(repair);
    hwnas_arch_free(found);
    hwnas_arch_free(other);
}

static void check_backtracking(const world *w, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(w->space);
    if (!w->space->rules)
        goto out;
    for (int i = 0; i < 5; i++) {
        const hwnas_finding finding = hwnas_backtrack(arch->genes, w->space->rules, NULL, rng);
        assert_int_equal(finding, w->n_valid ? HWNAS_FOUND : HWNAS_NONE);
        if (finding == HWNAS_FOUND)
            assert_true(w->is_valid[index_of(arch)]);
    }
out:
    hwnas_arch_free(arch);
}

static void check_variation(const world *w, hwnas_rng *rng)
{
    hwnas_arch *a = hwnas_arch_new(w->space), *b = hwnas_arch_new(w->space),
               *c = hwnas_arch_new(w->space);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hwnas_arch_sample(a, rng), w->n_valid > 0);
        assert_int_equal(hwnas_arch_sample_evenly(b, rng), w->n_valid > 0);
        if (!w->n_valid)
            break;
        assert_true(w->is_valid[index_of(a)]);
        assert_true(w->is_valid[index_of(b)]);
        hwnas_arch_cross(c, a, b, rng);
        assert_true(w->is_valid[index_of(c)]);
        hwnas_arch_assign(c, a);
        hwnas_arch_mutate(c, i % 4 * 0.25, rng);
        assert_true(w->is_valid[index_of(c)]);
        if (w->space->rules)
            hwnas_diagram_cross(c->genes, w->space->rules->diagram, a->genes, b->genes, rng);
        assert_true(w->is_valid[index_of(c)]);
        hwnas_neighbours all;
        hwnas_neighbours_of(&all, a);
        for (size_t k = 0; k < all.n; k++)
            assert_true(w->is_valid[index_of(all.archs[k])]);
        hwnas_neighbours_done(&all);
        const size_t gene = hwnas_rng_below(rng, (uint32_t)w->space->n_genes);
        if (i < 4 && w->space->rules)
            check_repair(w, a, gene,
                         hwnas_rng_below(rng, (uint32_t)w->space->genes[gene].n_values));
    }
    hwnas_arch_free(a);
    hwnas_arch_free(b);
    hwnas_arch_free(c);
}

static void random_spaces_are_what_their_rules_say(void **state)
{
    (void)state;
    enum { N_SPACES = 600 };
    size_t n_without = 0, n_partly = 0;
    print_message("# HWNAS_SEED=%llu\n", (unsigned long long)seed());
    for (uint64_t i = 0; i < N_SPACES; i++) {
        made m;
        char *text = make_space(&m, i);
        hwnas_space *space = NULL;
        if (!m.n_choices)
            goto next;
        if (hwnas_space_parse(&space, "made.yaml", text, strlen(text), NULL) != HWNAS_OK)
            fail_msg("%s\n%s", describe(), text);
        world w = {.m = &m, .space = space};
        hwnas_rng rng = hwnas_rng_new(seed(), i + N_SPACES);
        if (getenv("HWNAS_SHOW"))
            print_message("# space %llu:\n%s", (unsigned long long)i, text);
        go_through(&w);
        check_count_and_order(&w);
        check_backtracking(&w, &rng);
        check_variation(&w, &rng);
        n_without += w.n_valid == 0;
        n_partly += w.n_valid > 0 && w.n_valid < w.n;
        free(w.is_valid);
        hwnas_space_free(space);
    next:
        hwnas_arena_free(m.arena);
        free(text);
    }
    print_message("# %d spaces: %zu have no network, rules leave a part of %zu\n", N_SPACES,
                  n_without, n_partly);
    assert_true(n_without > 0 && n_partly > N_SPACES / 10); /* it tests something */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_networks_are_sampled),
        cmocka_unit_test(neighbours_keep_the_rules),
        cmocka_unit_test(chained_conditions_are_counted),
        cmocka_unit_test(every_strategy_keeps_the_rules),
        cmocka_unit_test(samples_have_the_chances_of_trying_again),
        cmocka_unit_test(rare_children_are_crossed),
        cmocka_unit_test(contradictions_are_proven),
        cmocka_unit_test(spaces_too_large_to_count_are_sampled),
        cmocka_unit_test(what_is_not_found_may_exist),
        cmocka_unit_test(random_spaces_are_what_their_rules_say),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
