/* test_limits.c: winners of simulated searches on a machine with a known truth: whether they keep
 * their limits, and their intervals hold the truth. benchmarks/limits_hold does the same with the
 * whole program, for minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/rng.h"
#include "study/drift.h"

enum {
    SEARCHES = 200,
    TRIALS = 400,
    REFERENCES = 8,
    ROUNDS = 12,
    BATCH = 3, /* candidates of a confirmation */
    MOST_BATCHES = 20,
    MOST = TRIALS + MOST_BATCHES * ROUNDS * (REFERENCES + BATCH),
};

/* A search: of each network logarithms of what it takes, of its first measurement, and of what is
 * published; and the machine's level at each measurement. */
typedef struct search {
    hwnas_rng rng;
    double spread, limit; /* of a run, and as much of the level; logarithm */
    double truth[TRIALS], accuracy[TRIALS], first[TRIALS], low[TRIALS], high[TRIALS];
    bool is_confirmed[TRIALS];
    double level[MOST];
    int now;
} search;

static double normal(hwnas_rng *rng) /* Box and Muller */
{
    return sqrt(-2 * log(1 - hwnas_rng_double(rng))) * cos(2 * M_PI * hwnas_rng_double(rng));
}

static double measure(search *s, int network)
{
    return s->truth[network] + s->level[s->now++] + s->spread * normal(&s->rng);
}

/* Two runs lie `spread` apart, half of it (as a variance) by the level of their minutes, which is
 * forgotten after 60 measurements. Accuracy is hardly to be had without latency. */
static void begin(search *s, double spread, uint64_t seed)
{
    const double kept = exp(-1.0 / 60);
    *s = (search){.rng = hwnas_rng_new(seed, 9), .spread = spread / sqrt(2)};
    double level = normal(&s->rng);
    for (int t = 0; t < MOST; t++) {
        s->level[t] = s->spread * level;
        level = kept * level + sqrt(1 - kept * kept) * normal(&s->rng);
    }
    s->limit = log(25 + 20 * hwnas_rng_double(&s->rng));
    for (int i = 0; i < TRIALS; i++) {
        s->truth[i] = log(20) + log(2.5) * hwnas_rng_double(&s->rng);
        s->accuracy[i] = 40 * s->truth[i] + normal(&s->rng);
        s->first[i] = measure(s, i);
        s->low[i] = s->first[i] - 0.005;
        s->high[i] = s->first[i] + 0.005;
    }
}

/* The most accurate that keeps the limit by its interval and is not among the candidates; -1: none.
 */
static int find_best(const search *s, const int *candidates, int n)
{
    int best = -1;
    for (int i = 0; i < TRIALS; i++) {
        bool is_new = s->high[i] <= s->limit;
        for (int k = 0; k < n; k++)
            is_new &= candidates[k] != i;
        if (is_new && (best < 0 || s->accuracy[i] > s->accuracy[best]))
            best = i;
    }
    return best;
}

/* In rounds, each in an order of its own, beside networks that are spread over the search. */
static void confirm(search *s, const int *candidates, int n)
{
    enum { NETWORKS = REFERENCES + BATCH };
    hwnas_drift_timing timings[(ROUNDS + 1) * NETWORKS];
    hwnas_reading is[BATCH];
    int members[NETWORKS], order[NETWORKS], n_members = 0;
    size_t n_timings = 0;
    while (n_members < n) {
        members[n_members] = candidates[n_members];
        n_members++;
    }
    for (int k = 0; k < REFERENCES; k++) {
        int at = (2 * k + 1) * TRIALS / (2 * REFERENCES);
        for (int i = 0; i < n; i++)
            at += at == candidates[i];
        members[n_members] = at;
        timings[n_timings++] = (hwnas_drift_timing){n_members++, at, s->first[at]};
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < n_members; i++) { /* Fisher and Yates */
            const int k = (int)hwnas_rng_below(&s->rng, (uint32_t)i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        for (int i = 0; i < n_members; i++) {
            const double when = s->now;
            timings[n_timings++] =
                (hwnas_drift_timing){order[i], when, measure(s, members[order[i]])};
        }
    }
    hwnas_drift_conclude(is, n, timings, n_timings, n_members);
    for (int k = 0; k < n; k++) {
        s->low[candidates[k]] = log(is[k].low);
        s->high[candidates[k]] = log(is[k].high);
        s->is_confirmed[candidates[k]] = true;
    }
}

/* -1: no network keeps the limit. */
static int find_winner(search *s)
{
    for (int batch = 0; batch < MOST_BATCHES; batch++) {
        int candidates[BATCH], n = 0;
        const int best = find_best(s, candidates, 0);
        if (best < 0 || s->is_confirmed[best])
            return best;
        for (int next = best; next >= 0 && n < BATCH && !s->is_confirmed[next];
             next = find_best(s, candidates, n))
            candidates[n++] = next;
        confirm(s, candidates, n);
    }
    return -1;
}

static void winners_keep_their_limits(void **state)
{
    (void)state;
    static const double spreads[] = {0.014, 0.028};
    for (int row = 0; row < 2; row++) {
        int n = 0, n_inside = 0, n_over = 0;
        double width = 0;
        for (uint64_t seed = 0; seed < SEARCHES; seed++) {
            static search s;
            begin(&s, spreads[row], seed);
            const int winner = find_winner(&s);
            if (winner < 0)
                continue;
            const double truth = s.truth[winner];
            n++;
            n_inside += s.low[winner] <= truth && truth <= s.high[winner];
            n_over += truth > s.limit;
            width += s.high[winner] - s.low[winner];
        }
        print_message(
            "# runs %.1f %% apart: of %d winners %.1f %% in their intervals, which are %.1f "
            "%% wide, and %.1f %% over the limit\n",
            100 * spreads[row], n, 100.0 * n_inside / n, 100 * width / n, 100.0 * n_over / n);
        assert_in_range(n, 0.9 * SEARCHES, SEARCHES);
        assert_in_range(n_inside, 0.92 * n, 0.99 * n);
        assert_in_range(n_over, 0, 0.02 * n);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(winners_keep_their_limits)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
