/* test_space_rules.c: conditions and constraints decide exactly what counts; rare ones. What random
 * ones say is in test_space_random.c. */
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
#include "tests/unit/amount.h"
#include "tests/unit/space_fixture.h"

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

enum { MAX_TRIALS = 50 };

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
        for (size_t i = 0; i < COUNT(rare); i += EVERY(3)) {
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
    for (int n = 0; n < 50; n += EVERY(5)) {
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

/* Sukthanker et al. 2024 for the scales of GPT, Cai et al. 2020 for once-for-all networks at one
 * resolution and width: products of the numbers of values. */
static void narrowed_spaces_are_counted(void **state)
{
    static const struct {
        const char *name, *count, *inside, *outside;
    } spaces[] = {
        {"gpt_s", "1903784282946", /* 3 * 2 * (9^10 + 9^11 + 9^12) */
         "embed=384,layers=10,heads=4.8.12.4.8.12.4.8.12.4,ratio=2222222222,bias=0",
         "embed=256,layers=10,heads=4.8.12.4.8.12.4.8.12.4,ratio=2222222222,bias=0"},
        {"gpt_m", "537684912592251733153026", NULL, /* 3 * 2 * (9^22 + 9^23 + 9^24) */
         "embed=384,layers=10,heads=4.8.12.4.8.12.4.8.12.4,ratio=2222222222,bias=0"},
        {"ofa_mobilenet_v3_224", "21758655492572485851", /* (9^2 + 9^3 + 9^4)^5 */
         "d=22222,ks=33333333335333333333,e=33333333433333333333,r=224,w=1",
         "d=22222,ks=33333333335333333333,e=33333333433333333333,r=192,w=1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(spaces); i++) {
        hwnas_space *space = load(spaces[i].name);
        hwnas_arch *arch = NULL;
        expect_count(space, spaces[i].count);
        if (spaces[i].inside && hwnas_arch_parse(&arch, space, spaces[i].inside) != HWNAS_OK)
            fail_msg("%s", describe());
        hwnas_arch_free(arch);
        assert_int_equal(hwnas_arch_parse(&arch, space, spaces[i].outside), HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, "is left out of the values of"));
        hwnas_space_free(space);
    }
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
        cmocka_unit_test(narrowed_spaces_are_counted),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
