/* test_study.c: what a trial is judged by: goals and limits as text, fronts with intervals, near
 * ties, when a search stands still, settings as choices, the smallest network of a space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/rng.h"
#include "base/stats.h"
#include "graph/elaborate.h"
#include "trial/judge.h"
#include "study/drift.h"
#include "study/evidence.h"
#include "study/response.h"
#include "study/probe.h"
#include "study/settings.h"
#include "trial/skip.h"
#include "study/standstill.h"
#include "study/ties.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define assert_near(x, y, tolerance) assert_true(fabs((x) - (y)) <= (tolerance))

static hwnas_job_devices one = {.n = 1, .rows = {{.name = "cpu", .spelling = "cpu"}}};
static hwnas_job_devices two = {
    .n = 2,
    .rows = {{.name = "cpu", .spelling = "cpu"}, {.name = "pi", .spelling = "replay:x#y_ms"}}};
static const hwnas_place start = {.file = "job.yaml", .line = 3, .column = 15};

/* ---- Limits as text ---- */

static void limits(void **state)
{
    (void)state;
    hwnas_limit l[HWNAS_MAX_LIMITS];
    int n = 0;
    assert_int_equal(
        hwnas_limits_parse(l, &n, HWNAS_MAX_LIMITS,
                           "latency.p50 <= 8 ms on cpu and params<6M and  accuracy >= 70", &start,
                           true, &one),
        HWNAS_OK);
    assert_int_equal(n, 3);
    assert_string_equal(l[0].goal.name, "latency.p50");
    assert_int_equal(l[0].goal.device, 0);
    assert_true(l[0].is_upper && !l[0].is_strict && l[0].value == 8 * 1e-3);
    assert_string_equal(l[0].text, "latency.p50 <= 8 ms");
    assert_string_equal(l[1].goal.name, "params");
    assert_true(l[1].is_upper && l[1].is_strict && l[1].value == 6e6 && l[1].goal.device == -1);
    assert_true(!l[2].is_upper && l[2].value == 70);
    assert_int_equal(l[2].place.column, 15 + 46);

    static const struct {
        const char *text;
        double value;
    } units[] = {
        {"latency <= 250 us", 250e-6}, {"latency <= 2 s", 2},       {"latency <= 3", 3e-3},
        {"macs <= 400 M", 400e6},      {"macs <= 0.4 G", 0.4e9},    {"params <= 900 k", 900e3},
        {"memory <= 2 KiB", 2048},     {"memory <= 1 GiB", 0x1p30}, {"energy <= 5 mJ", 5e-3},
        {"throughput >= 2 k/s", 2000}, {"cost <= 0.5 /M", 0.5},     {"accuracy >= 1e1 %", 10}};
    for (size_t i = 0; i < COUNT(units); i++) {
        n = 0;
        assert_int_equal(hwnas_limits_parse(l, &n, 1, units[i].text, &start, true, &one), HWNAS_OK);
        assert_near(l[0].value, units[i].value, 1e-12 * units[i].value);
        /* The words of a limit are a limit again: a study is read back from them. */
        hwnas_limit again[1];
        int m = 0;
        assert_int_equal(hwnas_limits_parse(again, &m, 1, l[0].text, &start, true, &one), HWNAS_OK);
        assert_true(again[0].value == l[0].value && again[0].is_upper == l[0].is_upper);
    }
}

static void limits_on_devices(void **state)
{
    (void)state;
    hwnas_limit l[HWNAS_MAX_LIMITS];
    int n = 0;
    assert_int_equal(hwnas_limits_parse(l, &n, HWNAS_MAX_LIMITS,
                                        "latency.p50 on pi <= 9 ms and latency.p50 <= 8 ms", &start,
                                        true, &two),
                     HWNAS_OK);
    assert_int_equal(n, 3); /* without a device: on each */
    assert_string_equal(l[0].goal.name, "latency.p50 on pi");
    assert_string_equal(l[1].goal.name, "latency.p50 on cpu");
    assert_string_equal(l[2].text, "latency.p50 <= 8 ms on pi");
    hwnas_goal goals[4];
    n = 0;
    assert_int_equal(hwnas_goals_parse(goals, &n, 4, "accuracy", &start, true, &two), HWNAS_OK);
    assert_int_equal(hwnas_goals_parse(goals, &n, 4, "latency", &start, true, &two), HWNAS_OK);
    assert_int_equal(n, 3);
    assert_int_equal(goals[2].device, 1);
    assert_int_equal(hwnas_goals_parse(goals, &n, 4, "latency on pi", &start, true, &two),
                     HWNAS_E_INPUT);
    assert_string_equal(hwnas_last_error()->message, "'latency.p50 on pi' is an objective twice");
}

/* A phase is measured by itself, on each device: it has rows of its own. */
static void goals_of_phases(void **state)
{
    hwnas_goals g = {.devices = two};
    hwnas_limit again[1];
    int m = 0;
    (void)state;
    g.devices.adds_phases = true;
    assert_int_equal(hwnas_goals_parse(g.objectives, &g.n_objectives, 16, "decode.latency", &start,
                                       true, &g.devices),
                     HWNAS_OK);
    assert_int_equal(hwnas_goals_parse(g.objectives, &g.n_objectives, 16, "tokens/s on pi", &start,
                                       true, &g.devices),
                     HWNAS_OK);
    assert_int_equal(hwnas_goals_parse(g.objectives, &g.n_objectives, 16, "prefill.macs", &start,
                                       true, &g.devices),
                     HWNAS_OK);
    assert_int_equal(hwnas_limits_parse(g.limits, &g.n_limits, 4,
                                        "time-to-first-token <= 50 ms on pi", &start, true,
                                        &g.devices),
                     HWNAS_OK);
    hwnas_goals_drop_idle(&g);
    assert_int_equal(g.devices.n, 3); /* none without a phase is left */
    static const struct {
        const char *name, *row;
    } expected[] = {{"decode.latency.p50 on cpu", "decode.cpu"},
                    {"decode.latency.p50 on pi", "decode.pi"},
                    {"tokens/s on pi", "decode.pi"},
                    {"prefill.macs", NULL},
                    {"time-to-first-token on pi", "prefill.pi"}};
    const hwnas_goal *all[HWNAS_MOST_GOALS];
    assert_int_equal(hwnas_goals_list(all, &g), COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_string_equal(all[i]->name, expected[i].name);
        assert_ptr_equal(hwnas_metric_of_value(all[i]->name), all[i]->metric);
        assert_int_equal(all[i]->device >= 0, expected[i].row != NULL);
        if (expected[i].row)
            assert_string_equal(hwnas_job_row_name(&g.devices, all[i]->device).text,
                                expected[i].row);
    }
    /* As a study is read back. */
    assert_int_equal(hwnas_limits_parse(again, &m, 1, g.limits[0].text, &start, true, &g.devices),
                     HWNAS_OK);
    assert_int_equal(again[0].goal.device, g.limits[0].goal.device);
    assert_true(again[0].value == g.limits[0].value);
    static const struct {
        const char *text, *message;
    } wrong[] = {{"decode.accuracy", "no metric 'decode.accuracy'"},
                 {"decode.tokens/s", "no metric 'decode.tokens/s'"},
                 {"far_too_long_a_phase.macs", "no metric"},
                 {"encode.latency", "no phase 'encode' here"}};
    g.devices.adds_phases = false;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(hwnas_goals_parse(g.objectives, &g.n_objectives, 16, wrong[i].text, &start,
                                           true, &g.devices),
                         HWNAS_E_INPUT);
        assert_non_null(strstr(hwnas_last_error()->message, wrong[i].message));
    }
}

/* Text, column, a word of the message, a word of the hint. */
static void wrong_limits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int column;
        const char *message, *hint;
    } rows[] = {
        {"latncy.p50 <= 8 ms", 15, "no metric 'latncy.p50'", "did you mean 'latency.p50'"},
        {"params < 6 M and lat <= 3", 32, "no metric 'lat'", ""},
        {"latency.p50 <= 8 ms on phone", 38, "no device called 'phone'", "cpu, pi"},
        {"latency.p50 <= 8 ms on cpus", 38, "no device called 'cpus'", "did you mean 'cpu'"},
        {"params on cpu < 6 M", 25, "the same on every device", "leave out"},
        {"latency.p50 <= 8 MiB", 32, "'MiB' is not a unit of latency.p50", "s, ms, us"},
        {"latency.p50 <= 8 ms or macs <= 3", 35, "'and', a comma or the end expected",
         "latency.p50 <= 10 ms"},
        {"latency.p50 <=", 29, "a number expected at its end", "latency.p50 <= 10 ms"},
        {"latency.p50 != 3", 27, "<=, <, >= or > expected", "latency.p50 <= 10 ms"},
        {"latency.p50 <= nan", 30, "a number expected", "latency.p50 <= 10 ms"},
        {"", 15, "a metric expected at its end", "latency.p50 <= 10 ms"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_limit l[4];
        int n = 0;
        assert_int_equal(hwnas_limits_parse(l, &n, 4, rows[i].text, &start, true, &two),
                         HWNAS_E_INPUT);
        const hwnas_error *e = hwnas_last_error();
        if (e->column != rows[i].column || !strstr(e->message, rows[i].message) ||
            !strstr(e->hint, rows[i].hint))
            fail_msg("'%s': %s:%d:%d: %s (%s)", rows[i].text, e->file, e->line, e->column,
                     e->message, e->hint);
    }
}

static void contradictions(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_possible;
    } rows[] = {
        {"latency <= 5 ms and latency >= 9 ms on cpu", false},
        {"latency <= 5 ms and latency >= 5 ms", true},
        {"latency < 5 ms and latency >= 5 ms", false},
        {"latency.p90 <= 5 ms and latency.p50 >= 9 ms", false}, /* a p90 is no less than its p50 */
        {"latency.p50 <= 5 ms and latency.p90 >= 9 ms", true},
        {"latency.p99 <= 5 ms and latency.p95 >= 9 ms", false},
        {"latency.p90 <= 5 ms and latency.p95 >= 9 ms", true},
        {"throughput >= 200 /s and latency.p50 >= 9 ms", true}, /* a batch may be larger */
        {"latency <= 5 ms on cpu and latency >= 9 ms on pi", true},
        {"params <= 5 M and macs >= 9 M", true},
        {"params <= 5 M and params >= 5001 k", false},
        {"params <= 0 M", false},
        {"accuracy > 100 %", false},
        {"accuracy >= 100 %", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_limit l[8];
        int n = 0;
        assert_int_equal(hwnas_limits_parse(l, &n, 8, rows[i].text, &start, true, &two), HWNAS_OK);
        if ((hwnas_limits_check(l, n) == HWNAS_OK) != rows[i].is_possible)
            fail_msg("%s", rows[i].text);
        if (!rows[i].is_possible)
            assert_true(hwnas_last_error()->column >= 15);
    }
}

/* ---- Fronts ---- */

enum { TRIALS = 60 };

typedef struct bench {
    hwnas_goals goals;
    hwnas_trial trials[TRIALS];
    hwnas_value_row values[TRIALS][3];
} bench;

static hwnas_value_row row(const char *metric, hwnas_source source, double value, double half)
{
    hwnas_value_row v = {
        .value = value, .low = value - half, .high = value + half, .source = source};
    v.metric = metric;
    return v;
}

/* Random trials of accuracy and latency, on a coarse grid so that equal values are common. */
static void fill(bench *b, uint64_t seed, hwnas_source source, double half)
{
    hwnas_rng rng = hwnas_rng_new(seed, 77);
    *b = (bench){.goals = {.devices = one}};
    assert_int_equal(hwnas_goals_parse(b->goals.objectives, &b->goals.n_objectives, 4, "accuracy",
                                       &start, true, &one),
                     HWNAS_OK);
    assert_int_equal(hwnas_goals_parse(b->goals.objectives, &b->goals.n_objectives, 4, "latency",
                                       &start, true, &one),
                     HWNAS_OK);
    for (int i = 0; i < TRIALS; i++) {
        b->values[i][0] = row("accuracy", HWNAS_PREDICTED, hwnas_rng_below(&rng, 20), 3);
        b->values[i][1] = row("latency.p50", source, 1e-3 * (1 + hwnas_rng_below(&rng, 20)), half);
        b->trials[i] = (hwnas_trial){
            .number = (uint64_t)i, .is_finished = true, .n_values = 2, .values = b->values[i]};
    }
}

static bool is_in(const size_t *front, size_t n, size_t which)
{
    for (size_t i = 0; i < n; i++)
        if (front[i] == which)
            return true;
    return false;
}

/* Without intervals, and with those of replayed values, it is the front of the textbook. */
static void exact_front_is_the_brute_force_front(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        bench b;
        size_t front[TRIALS];
        fill(&b, seed, HWNAS_REPLAYED, NAN);
        size_t n = hwnas_front_find(front, b.trials, TRIALS, &b.goals, 0);
        for (size_t i = 0; i < TRIALS; i++) {
            bool belongs = true;
            for (size_t j = 0; j < TRIALS; j++) {
                double ai = b.values[i][0].value, aj = b.values[j][0].value;
                double li = b.values[i][1].value, lj = b.values[j][1].value;
                belongs &= !(aj >= ai && lj <= li && (aj > ai || lj < li || j < i));
            }
            assert_int_equal(is_in(front, n, i), belongs);
        }
        for (size_t i = 1; i < n; i++)
            assert_true(b.values[front[i]][0].value < b.values[front[i - 1]][0].value);
    }
}

static const bench *sorted_of;

static int by_values(const void *a, const void *b)
{
    const size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const hwnas_value_row *x = sorted_of->values[i], *y = sorted_of->values[j];
    return x[0].value != y[0].value   ? (x[0].value > y[0].value ? -1 : 1)
           : x[1].value != y[1].value ? (x[1].value < y[1].value ? -1 : 1)
           : i < j                    ? -1
                                      : 1;
}

/* As judge.h defines it, with nothing left out before it is sorted. */
static size_t plain_front(size_t *out, const bench *b)
{
    size_t order[TRIALS], n = 0;
    sorted_of = b;
    for (size_t i = 0; i < TRIALS; i++)
        order[i] = i;
    qsort(order, TRIALS, sizeof *order, by_values);
    for (size_t i = 0; i < TRIALS; i++) {
        bool stays = true;
        for (size_t j = 0; j < n && stays; j++) {
            const hwnas_value_row *x = b->values[out[j]], *y = b->values[order[i]];
            const bool says_less =
                x[1].source == HWNAS_MEASURED && b->trials[out[j]].is_unstable &&
                !(y[1].source == HWNAS_MEASURED && b->trials[order[i]].is_unstable);
            stays = says_less ||
                    hwnas_value_compare(&x[0], &y[0], b->goals.objectives[0].metric) > 0 ||
                    hwnas_value_compare(&x[1], &y[1], b->goals.objectives[1].metric) > 0;
        }
        if (stays)
            out[n++] = order[i];
    }
    return n;
}

/* With intervals that overlap, disturbed measurements, and values with intervals beside others. */
static void what_is_left_out_early_is_on_no_front(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        bench b;
        size_t front[TRIALS], plain[TRIALS];
        hwnas_rng rng = hwnas_rng_new(seed, 78);
        fill(&b, seed, HWNAS_MEASURED, 1e-3 * (double)(seed % 4));
        for (int i = 0; i < TRIALS; i++) {
            b.trials[i].is_unstable = hwnas_rng_below(&rng, 3) == 0;
            if (seed % 3 == 0 && hwnas_rng_below(&rng, 4) == 0) {
                b.values[i][1].source = HWNAS_REPLAYED;
                b.values[i][1].low = b.values[i][1].high = NAN;
            }
            if (seed % 5 == 0)
                b.values[i][0].source = HWNAS_TOLD;
        }
        const size_t n = hwnas_front_find(front, b.trials, TRIALS, &b.goals, 0);
        assert_int_equal(n, plain_front(plain, &b));
        assert_memory_equal(front, plain, n * sizeof *front);
    }
}

/* A doubtful number does not take the place of a clean one, but a clean one takes its. */
static void an_unstable_trial_removes_no_stable_one(void **state)
{
    (void)state;
    bench b;
    size_t front[TRIALS];
    fill(&b, 1, HWNAS_MEASURED, 1e-5);
    for (int i = 0; i < 2; i++)
        b.values[i][0] = row("accuracy", HWNAS_PREDICTED, 50, 3);
    b.values[0][1] = row("latency.p50", HWNAS_MEASURED, 1e-3, 1e-5);
    b.values[1][1] = row("latency.p50", HWNAS_MEASURED, 2e-3, 1e-5);
    assert_int_equal(hwnas_front_find(front, b.trials, 2, &b.goals, 0), 1);
    b.trials[0].is_unstable = true;
    assert_int_equal(hwnas_front_find(front, b.trials, 2, &b.goals, 0), 2);
    b.trials[0].is_unstable = false;
    b.trials[1].is_unstable = true;
    assert_int_equal(hwnas_front_find(front, b.trials, 2, &b.goals, 0), 1);
    assert_int_equal(front[0], 0);
    /* What was disturbed has no say here. */
    b.trials[0].is_unstable = true;
    for (int i = 0; i < 2; i++)
        b.values[i][1].source = HWNAS_COMPUTED;
    b.trials[1].is_unstable = false;
    assert_int_equal(hwnas_front_find(front, b.trials, 2, &b.goals, 0), 1);
    assert_int_equal(front[0], 0);
}

/* Infeasibility is said from good evidence alone: the measurements that missed a limit, and no
 * others, and no more than half of these disturbed. */
static void infeasible_is_said_from_good_evidence(void **state)
{
    (void)state;
    enum { MISSES = 10 };
    bench b;
    fill(&b, 1, HWNAS_MEASURED, 1e-5);
    assert_int_equal(hwnas_limits_parse(b.goals.limits, &b.goals.n_limits, HWNAS_MAX_LIMITS,
                                        "latency.p50 <= 10 ms and accuracy >= 40", &start, true,
                                        &one),
                     HWNAS_OK);
    for (int i = 0; i < TRIALS; i++) {
        b.values[i][0] = row("accuracy", HWNAS_PREDICTED, 50, 3);
        b.values[i][1] = row("latency.p50", HWNAS_MEASURED, i < MISSES ? 11e-3 : 9e-3, 1e-5);
        b.trials[i].is_unstable = i >= MISSES; /* those that keep the limits do not matter */
    }
    /* As seen on a busy machine: the value keeps the limit, the interval does not. */
    b.values[0][1] = row("latency.p50", HWNAS_MEASURED, 8.05e-3, 4e-3);
    for (int n_disturbed = 0; n_disturbed <= MISSES; n_disturbed++) {
        hwnas_evidence evidence = {0};
        for (int i = 0; i < MISSES; i++)
            b.trials[i].is_unstable = i < n_disturbed;
        for (int i = 0; i < TRIALS; i++)
            hwnas_evidence_add(&evidence, &b.trials[i], &b.goals);
        assert_int_equal(evidence.n_missed, MISSES);
        assert_int_equal(evidence.n_disturbed, n_disturbed);
        assert_int_equal(hwnas_evidence_is_bad(&evidence), n_disturbed > MISSES / 2);
        assert_int_equal(hwnas_evidence_check(&evidence),
                         n_disturbed > MISSES / 2 ? HWNAS_E_DISTURBED : HWNAS_OK);
    }
    /* What was not measured, and what misses another limit on any machine, is no measurement. */
    hwnas_evidence evidence = {0};
    b.values[0][1].source = HWNAS_ESTIMATED;
    b.values[1][0].value = 30;
    b.trials[2].status = HWNAS_E_TIMEOUT;
    b.trials[3].is_finished = false;
    for (int i = 0; i < 4; i++)
        hwnas_evidence_add(&evidence, &b.trials[i], &b.goals);
    assert_int_equal(evidence.n_missed, 0);
    assert_false(hwnas_evidence_is_bad(&evidence));
    /* At a cheaper rung a latency is one as well; an accuracy is not that of the whole training. */
    b.trials[4].rung = b.trials[5].rung = 1;
    b.values[5][0] = row("accuracy", HWNAS_TRAINED, 30, 0);
    for (int i = 4; i < 6; i++)
        hwnas_evidence_add(&evidence, &b.trials[i], &b.goals);
    assert_int_equal(evidence.n_missed, 1);
    assert_int_equal(evidence.n_disturbed, 1);
}

/* A near tie of two measured trials is one whatever an estimate says, which is not a member of a
 * front. */
static void estimates_hide_no_tie(void **state)
{
    (void)state;
    bench b;
    size_t group[3];
    static const double accuracies[] = {50, 60, 70}, latencies[] = {1e-3, 1.1e-3, 0.9e-3};
    fill(&b, 1, HWNAS_MEASURED, 1e-5);
    for (int i = 0; i < 3; i++) {
        b.values[i][0] = row("accuracy", HWNAS_PREDICTED, accuracies[i], 3);
        b.values[i][1] =
            row("latency.p50", i < 2 ? HWNAS_MEASURED : HWNAS_ESTIMATED, latencies[i], 3e-4);
    }
    hwnas_ties_find(group, b.trials, 2, &b.goals);
    assert_int_equal(group[0], 0);
    assert_int_equal(group[1], 0);
    hwnas_ties_find(group, b.trials, 3, &b.goals);
    assert_int_equal(group[0], 0);
    assert_int_equal(group[1], 0);
    assert_int_equal(group[2], 2);
}

/* With intervals: no member could do for another, and each that is left out has a member
 * that does. */
static void front_with_intervals(void **state)
{
    (void)state;
    size_t n_thinner = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        bench b, exact;
        size_t front[TRIALS], plain[TRIALS];
        fill(&b, seed, HWNAS_MEASURED, 0.8e-3); /* neighbours on the grid overlap, others do not */
        fill(&exact, seed, HWNAS_REPLAYED, NAN);
        size_t n = hwnas_front_find(front, b.trials, TRIALS, &b.goals, 0);
        size_t n_plain = hwnas_front_find(plain, exact.trials, TRIALS, &exact.goals, 0);
        assert_true(n <= n_plain && n > 0);
        n_thinner += n < n_plain;
        for (size_t i = 0; i < TRIALS; i++) {
            bool is_covered = false;
            for (size_t k = 0; k < n; k++)
                is_covered |= front[k] != i &&
                              b.values[front[k]][0].value >= b.values[i][0].value &&
                              b.values[front[k]][1].value - 1.6e-3 <= b.values[i][1].value;
            if (!is_in(front, n, i))
                assert_true(is_covered);
        }
        for (size_t k = 1; k < n; k++) /* less accurate, so surely faster */
            assert_true(b.values[front[k]][1].high < b.values[front[k - 1]][1].low);
    }
    assert_true(n_thinner > 10);
}

static void limits_hold_for_intervals(void **state)
{
    (void)state;
    bench b;
    fill(&b, 1, HWNAS_MEASURED, 0.8e-3);
    assert_int_equal(hwnas_limits_parse(b.goals.limits, &b.goals.n_limits, 4, "latency <= 10 ms",
                                        &start, true, &one),
                     HWNAS_OK);
    for (int i = 0; i < TRIALS; i++) {
        double high = b.values[i][1].high;
        assert_int_equal(hwnas_trial_is_feasible(&b.trials[i], &b.goals, 0), high <= 10e-3);
        hwnas_score score = hwnas_trial_score(&b.trials[i], &b.goals);
        assert_near(score.margins[0], (high - 10e-3) / 10e-3, 1e-9);
    }
    b.values[0][1].low = b.values[0][1].high =
        NAN; /* a measured value without bounds keeps no limit */
    b.values[0][1].value = 1e-3;
    assert_false(hwnas_trial_is_feasible(&b.trials[0], &b.goals, 0));
    b.trials[1].n_values = 1;
    assert_false(hwnas_trial_is_feasible(&b.trials[1], &b.goals, 0));
    assert_true(hwnas_trial_violation(&b.trials[1], &b.goals, false) == 0);
    assert_true(isinf(hwnas_trial_violation(&b.trials[1], &b.goals, true)));
}

/* ---- Near ties ---- */

/* Rounds of different speed: what is left is the networks' own ratio. */
static void ties_are_levelled(void **state)
{
    (void)state;
    static const double speeds[] = {1, 1.3, 0.8, 2}, own[] = {3, 3.3, 2.7}, firsts[] = {2, 4, 8};
    double values[4 * 3], level = cbrt(2 * 4 * 8) / cbrt(3 * 3.3 * 2.7);
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 3; i++)
            values[3 * r + i] = speeds[r] * own[i];
    hwnas_ties_level(values, 4, 3, firsts);
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 3; i++)
            assert_near(values[3 * r + i], own[i] * level, 1e-9);
}

/* ---- Confirming ---- */

static double gauss(hwnas_rng *rng)
{
    return sqrt(-2 * log(1 - hwnas_rng_double(rng))) * cos(2 * M_PI * hwnas_rng_double(rng));
}

/* The same timings by the formulas of drift.h as they stand, with NumPy's inverses and determinants
 * and an integral over the density of Student's t. */
static void drift_as_by_numpy(void **state)
{
    (void)state;
    enum { NETWORKS = 5, ROUNDS = 4 };
    static const double expected[2][3] = {{0.009038121143, 0.008919684471, 0.009169226148},
                                          {0.010040082725, 0.009910974976, 0.010181822982}};
    hwnas_drift_timing timings[NETWORKS * (ROUNDS + 1)];
    hwnas_reading is[2];
    size_t n = 0;
    for (int k = 0; k < 4; k++)
        timings[n++] = (hwnas_drift_timing){1 + k, 10.0 * k + 3,
                                            log(0.010 + 0.001 * k) + 0.02 * sin(3 * k + 1)};
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < NETWORKS; i++) {
            const double when = 50 + 5 * r + (i * 2 + r) % 5;
            timings[n++] = (hwnas_drift_timing){i, when,
                                                log(0.010 + 0.001 * (i - 1)) +
                                                    0.02 * sin(0.3 * when) + 0.004 * cos(7 * when)};
        }
    hwnas_drift_conclude(is, 2, timings, n, NETWORKS);
    for (int i = 0; i < 2; i++) {
        assert_near(is[i].value, expected[i][0], 1e-9);
        assert_near(is[i].low, expected[i][1], 4e-7); /* Student's t is approximated here */
        assert_near(is[i].high, expected[i][2], 4e-7);
    }
}

/* Timings without any noise: nothing is left to doubt, and nothing is divided by. */
static void drift_of_a_still_machine(void **state)
{
    (void)state;
    hwnas_drift_timing timings[8];
    hwnas_reading is;
    for (int j = 0; j < 8; j++)
        timings[j] = (hwnas_drift_timing){j % 2, j, log(j % 2 ? 0.02 : 0.01)};
    hwnas_drift_conclude(&is, 1, timings, 8, 2);
    assert_near(is.value, 0.01, 1e-12);
    assert_true(0.0099999 < is.low && is.high < 0.0100001);
}

/* As many intervals of scripted confirmations hold the truth as they say, whether runs differ more
 * or the minutes, and however soon the machine forgets what it was like. */
static void confirmed_intervals_hold_the_truth(void **state)
{
    (void)state;
    enum { DRAWS = 300, SEARCH = 400, MOST = SEARCH + 12 * 9 };
    static const struct {
        int n_rounds, n_references;
        double run, level; /* standard deviations */
        double memory;     /* in measurements */
    } rows[] = {{4, 4, 0.01, 0.01, 60},    {6, 8, 0.014, 0, 1},     {12, 8, 0.01, 0.01, 60},
                {12, 8, 0.005, 0.013, 30}, {8, 5, 0.03, 0.01, 100}, {12, 8, 0.02, 0.005, 60}};
    hwnas_rng rng = hwnas_rng_new(2026, 5);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const int n_networks = 1 + rows[i].n_references;
        const double kept = exp(-1 / rows[i].memory);
        int n_inside = 0;
        for (int draw = 0; draw < DRAWS; draw++) {
            double values[MOST], level = gauss(&rng);
            hwnas_drift_timing timings[MOST];
            hwnas_reading is;
            size_t n = 0;
            for (int t = 0; t < MOST; t++) {
                values[t] = log(0.010) + rows[i].level * level + rows[i].run * gauss(&rng);
                level = kept * level + sqrt(1 - kept * kept) * gauss(&rng);
            }
            for (int k = 1; k < n_networks; k++) {
                const int t = (2 * k - 1) * SEARCH / (2 * rows[i].n_references);
                timings[n++] = (hwnas_drift_timing){k, t, values[t]};
            }
            for (int t = 0; t < rows[i].n_rounds * n_networks; t++)
                timings[n++] = (hwnas_drift_timing){t % n_networks, SEARCH + t, values[SEARCH + t]};
            hwnas_drift_conclude(&is, 1, timings, n, n_networks);
            n_inside += is.low <= 0.010 && 0.010 <= is.high;
        }
        print_message("# %d rounds, %d others: %.1f %% of %d hold the truth\n", rows[i].n_rounds,
                      rows[i].n_references, 100.0 * n_inside / DRAWS, DRAWS);
        assert_in_range(n_inside, 90 * DRAWS / 100, 99 * DRAWS / 100);
    }
}

/* ---- Standing still ---- */

static hwnas_score scored(double x, double y, double violation)
{
    return (hwnas_score){.objectives = {x, y}, .violation = violation};
}

static double improvement(const hwnas_score *of, size_t n, size_t window, int n_objectives)
{
    hwnas_scores scores = {.n_objectives = n_objectives};
    for (size_t i = 0; i < n; i++)
        hwnas_scores_set(&scores, i, &of[i]);
    const double improved = hwnas_improvement(&scores, n, window);
    hwnas_scores_done(&scores);
    return improved;
}

static void improvement_by_hand(void **state)
{
    (void)state;
    hwnas_score s[8] = {scored(8, 8, 0), scored(4, 4, 0), scored(8, 9, 0), scored(9, 8, 0),
                        scored(9, 9, 0), scored(9, 9, 0), scored(9, 9, 0), scored(2, 6, 0)};
    assert_true(improvement(s, 7, 4, 2) == 1); /* too few to say */
    /* Before: 5 x 5 below (9, 9). After: and 2 x 3 more, left of it. */
    assert_near(improvement(s, 8, 2, 2), 6.0 / 31, 1e-12);
    s[7] = scored(5, 5, 0);
    assert_true(improvement(s, 8, 2, 2) == 0);
    s[7] = scored(1, 1, 3); /* infeasible: no improvement */
    assert_true(improvement(s, 8, 2, 2) == 0);
    for (int i = 0; i < 8; i++)
        s[i].violation = 8 - i;
    assert_near(improvement(s, 8, 4, 2), (5.0 - 1) / 5, 1e-12);
    s[7].violation = 0;
    assert_true(improvement(s, 8, 4, 2) == 1);
}

/* With many objectives: a point that is best in everything improves, one that is worse does not. */
static void improvement_of_many_objectives(void **state)
{
    (void)state;
    hwnas_score s[101];
    hwnas_rng rng = hwnas_rng_new(5, 5);
    for (int i = 0; i < 101; i++) {
        s[i] = (hwnas_score){.violation = 0};
        for (int k = 0; k < 6; k++)
            s[i].objectives[k] = 1 + hwnas_rng_double(&rng) + (i > 50);
    }
    assert_true(improvement(s, 101, 50, 6) == 0);
    for (int k = 0; k < 6; k++)
        s[100].objectives[k] = 0.5;
    assert_true(improvement(s, 101, 50, 6) > 0.1);
}

/* ---- Settings, probes, estimates ---- */

static void settings_are_choices(void **state)
{
    (void)state;
    hwnas_space *space = NULL;
    const hwnas_space *walked = NULL;
    hwnas_job job = {.batch = {.n = 3, .values = {1, 8, 16}},
                     .threads = {.n = 1, .values = {2}},
                     .dtype = {.n = 2, .values = {1 + HWNAS_S8, 1 + HWNAS_F32}}};
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_macro"), HWNAS_OK);
    assert_int_equal(hwnas_settings_space(&walked, space, &job), HWNAS_OK);
    assert_int_equal(walked->n_genes, space->n_genes + 2);
    char *count = hwnas_space_count(walked, NULL);
    assert_string_equal(count, "39366"); /* 2 * 3 * 3^8 */
    free(count);
    hwnas_rng rng = hwnas_rng_new(1, 2);
    int seen[17] = {0}, seen_dtype[HWNAS_N_PRECISIONS + 1] = {0};
    for (int i = 0; i < 60; i++) {
        hwnas_arch *arch = hwnas_arch_new(walked), *again = NULL;
        hwnas_arch_sample(arch, &rng);
        char *code = hwnas_arch_code(arch);
        assert_int_equal(hwnas_arch_parse(&again, walked, code), HWNAS_OK);
        assert_true(hwnas_arch_equal(arch, again));
        hwnas_settings s = hwnas_settings_of(arch, &job), cut = hwnas_settings_cut(code, &job);
        assert_int_equal(s.threads, 2);
        assert_int_equal(s.batch, cut.batch);
        assert_int_equal(s.dtype, cut.dtype);
        seen[s.batch]++;
        seen_dtype[s.dtype]++;
        hwnas_arch *bare = hwnas_settings_strip(arch, space), *parsed = NULL;
        assert_int_equal(hwnas_arch_parse(&parsed, space, code), HWNAS_OK);
        assert_true(hwnas_arch_equal(bare, parsed));
        hwnas_arch_free(bare);
        hwnas_arch_free(parsed);
        hwnas_arch_free(arch);
        hwnas_arch_free(again);
        free(code);
    }
    assert_true(seen[1] && seen[8] && seen[16]);
    assert_int_equal(seen_dtype[1 + HWNAS_S8] + seen_dtype[1 + HWNAS_F32], 60);
    assert_true(seen_dtype[1 + HWNAS_S8] && seen_dtype[1 + HWNAS_F32]);
    /* Every combination once: 3 batches, 2 precisions. */
    hwnas_settings all = hwnas_settings_first(&job);
    int n_all = 1;
    while (hwnas_settings_next(&all, &job))
        n_all++;
    assert_int_equal(n_all, 6);
    job.dtype.n = 1;
    job.batch.n = 1;
    assert_int_equal(hwnas_settings_space(&walked, space, &job), HWNAS_OK);
    assert_ptr_equal(walked, space);
    hwnas_space_free(space);
}

/* Of published tables the least and the most, by all of their rows. */
static void extremes_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *space, *metric, *column;
    } rows[] = {{"nas_bench_macro", "macs", "macs_count"},
                {"nas_bench_macro", "params", "params_count"},
                {"nas_bench_201", "macs", "macs_count"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char path[512];
        hwnas_csv *csv = NULL;
        hwnas_space *space = NULL;
        size_t column, code;
        double least = INFINITY, most = 0;
        snprintf(path, sizeof path, "%s/%s.csv", HWNAS_TEST_DATA, rows[i].space);
        assert_int_equal(hwnas_csv_load(&csv, path), HWNAS_OK);
        assert_int_equal(hwnas_csv_require(&column, csv, rows[i].column), HWNAS_OK);
        assert_int_equal(hwnas_csv_require(&code, csv, "arch"), HWNAS_OK);
        assert_int_equal(hwnas_graph_load_space(&space, rows[i].space), HWNAS_OK);
        for (size_t r = 0; r < csv->n_rows; r++) {
            double value;
            assert_int_equal(hwnas_csv_number(&value, csv, r, column), HWNAS_OK);
            least = fmin(least, value);
            most = fmax(most, value);
        }
        for (int largest = 0; largest < 2; largest++) {
            hwnas_arch *arch =
                hwnas_probe_extreme(space, hwnas_metric_of_value(rows[i].metric), largest);
            char *text = hwnas_arch_code(arch);
            double found = NAN;
            for (size_t r = 0; r < csv->n_rows; r++)
                if (!strcmp(hwnas_csv_cell(csv, r, code), text))
                    assert_int_equal(hwnas_csv_number(&found, csv, r, column), HWNAS_OK);
            assert_true(found == (largest ? most : least));
            free(text);
            hwnas_arch_free(arch);
        }
        hwnas_space_free(space);
        hwnas_csv_free(csv);
    }
}

/* Published latencies of a Raspberry Pi, from 200 of 15,625 networks; and nothing from too few. */
static void response_of_a_table(void **state)
{
    (void)state;
    enum { N = 200 };
    hwnas_csv *csv = NULL;
    hwnas_space *space = NULL;
    size_t code, ms, macs, params;
    hwnas_arch *archs[N];
    double m[N], p[N], t[N];
    assert_int_equal(hwnas_csv_load(&csv, HWNAS_TEST_DATA "/nas_bench_201.csv"), HWNAS_OK);
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_201"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&code, csv, "arch"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&ms, csv, "raspi4_ms"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&macs, csv, "macs_count"), HWNAS_OK);
    assert_int_equal(hwnas_csv_require(&params, csv, "params_count"), HWNAS_OK);
    for (size_t i = 0; i < N; i++) {
        size_t r = 37 + 71 * i;
        assert_int_equal(hwnas_arch_parse(&archs[i], space, hwnas_csv_cell(csv, r, code)),
                         HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&t[i], csv, r, ms), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&m[i], csv, r, macs), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&p[i], csv, r, params), HWNAS_OK);
    }
    const hwnas_arch *const *const_archs = (const hwnas_arch *const *)archs;
    hwnas_response *response = NULL;
    assert_int_equal(hwnas_response_fit(&response, const_archs, m, p, t, HWNAS_RESPONSE_LEAST - 1),
                     HWNAS_OK);
    assert_null(response);
    assert_int_equal(hwnas_response_fit(&response, const_archs, m, p, t, N), HWNAS_OK);
    assert_non_null(response);
    /* What it claims of rows that it was not shown holds for others that it was not shown. */
    double errors[N];
    for (size_t i = 0; i < N; i++) {
        size_t r = 5 + 73 * i;
        double macs_r, params_r, true_r, low, high;
        hwnas_arch *arch = NULL;
        assert_int_equal(hwnas_arch_parse(&arch, space, hwnas_csv_cell(csv, r, code)), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&true_r, csv, r, ms), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&macs_r, csv, r, macs), HWNAS_OK);
        assert_int_equal(hwnas_csv_number(&params_r, csv, r, params), HWNAS_OK);
        hwnas_response_predict(&errors[i], &low, &high, response, arch, macs_r, params_r);
        assert_true(low < errors[i] && errors[i] < high);
        errors[i] = fabs(errors[i] / true_r - 1);
        hwnas_arch_free(arch);
    }
    hwnas_sort(errors, N);
    double claimed = hwnas_response_error(response), median = hwnas_quantile(errors, N, 0.5);
    print_message("# off by %.1f %% in the middle, %.1f %% claimed\n", 100 * median, 100 * claimed);
    assert_true(median < 0.2 && median < 1.5 * claimed && claimed < 1.5 * median);
    hwnas_response_free(response);
    hwnas_response_free(NULL);
    for (size_t i = 0; i < N; i++)
        hwnas_arch_free(archs[i]);
    hwnas_space_free(space);
    hwnas_csv_free(csv);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(limits_on_devices),
        cmocka_unit_test(goals_of_phases),
        cmocka_unit_test(wrong_limits),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(exact_front_is_the_brute_force_front),
        cmocka_unit_test(what_is_left_out_early_is_on_no_front),
        cmocka_unit_test(front_with_intervals),
        cmocka_unit_test(an_unstable_trial_removes_no_stable_one),
        cmocka_unit_test(infeasible_is_said_from_good_evidence),
        cmocka_unit_test(estimates_hide_no_tie),
        cmocka_unit_test(limits_hold_for_intervals),
        cmocka_unit_test(ties_are_levelled),
        cmocka_unit_test(drift_as_by_numpy),
        cmocka_unit_test(drift_of_a_still_machine),
        cmocka_unit_test(confirmed_intervals_hold_the_truth),
        cmocka_unit_test(improvement_by_hand),
        cmocka_unit_test(improvement_of_many_objectives),
        cmocka_unit_test(settings_are_choices),
        cmocka_unit_test(extremes_are_those_of_the_table),
        cmocka_unit_test(response_of_a_table),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("study", tests, NULL, NULL);
}
