/* test_serving.c: what a machine can promise, against a simulation of the queue that the formulas
 * stand for, and against published values of them; and what a recorded run can be held to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/stats.h"
#include "profile/baseline.h"
#include "profile/serving.h"
#include "report/thread_notes.h"

/* A machine whose batch takes a second on each stream. */
static hwnas_service make_service(int batch, int streams, double percentile)
{
    return (hwnas_service){.batch = batch,
                           .streams = streams,
                           .items_per_second = batch * streams,
                           .seconds = 1,
                           .percentile = percentile,
                           .fill = hwnas_serving_fill(batch, percentile)};
}

/* Requests at random, batches in the order of becoming full, each to the stream that is free first:
 * as all take the same time, that is each in turn. `out` becomes the sorted times of requests. */
static void simulate(double *out, size_t n, const hwnas_service *s, double rate)
{
    hwnas_rng rng = hwnas_rng_new(1, 2);
    double now = 0, free_at[64] = {0}, came[64];
    const size_t n_batches = n / (size_t)s->batch;
    for (size_t i = 0; i < n_batches; i++) {
        double *stream = &free_at[i % (size_t)s->streams];
        for (int k = 0; k < s->batch; k++)
            came[k] = now += -log(1 - hwnas_rng_double(&rng)) / rate;
        *stream = fmax(now, *stream) + s->seconds;
        for (int k = 0; k < s->batch; k++)
            *out++ = *stream - came[k];
    }
    hwnas_sort(out - n_batches * (size_t)s->batch, n_batches * (size_t)s->batch);
}

/* The promise is kept: at p90 and p99 it is not more than 5 % below what the queue does (the tail
 * is an approximation), and not so far above that it would be of no use. */
static void test_against_simulation(void **state)
{
    (void)state;
    static const int batches[] = {1, 2, 8, 32}, streams[] = {1, 2, 4, 16};
    static const double loads[] = {0.3, 0.5, 0.8, 0.9}, percentiles[] = {0.9, 0.99};
    const size_t n = 128000;
    double *times = hwnas_alloc(n * sizeof *times), lowest = INFINITY, highest = 0;
    for (int i = 0; i < 64; i++) {
        hwnas_service s = make_service(batches[i % 4], streams[i / 4 % 4], 0);
        const double rate = loads[i / 16] * s.items_per_second;
        simulate(times, n, &s, rate);
        for (int p = 0; p < 2; p++) {
            s = make_service(s.batch, s.streams, percentiles[p]);
            const double promised = hwnas_serving_response(&s, rate).total;
            const double ratio = promised / hwnas_quantile(times, n, percentiles[p]);
            lowest = fmin(lowest, ratio);
            highest = fmax(highest, ratio);
            if (ratio < 0.95 || ratio > 1.5)
                fail_msg("batch %d, %d streams, load %g, p%g: promised %g times what happens",
                         s.batch, s.streams, loads[i / 16], 100 * percentiles[p], ratio);
        }
    }
    printf("# promised / simulated: %.3f to %.3f\n", lowest, highest);
    free(times);
}

/* The share that waits is Erlang's C; of tables: C(1, 0.5) = 0.5, C(2, 1) = 1/3, C(5, 4) = 0.5541.
 */
static void test_erlang(void **state)
{
    (void)state;
    static const struct {
        int streams;
        double load, c;
    } rows[] = {{1, 0.5, 0.5}, {2, 0.5, 1. / 3}, {5, 0.8, 0.5541}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* Just below the percentile at which nobody waits, the wait is that of the mean alone. */
        hwnas_service s = make_service(1, rows[i].streams, 1 - rows[i].c + 1e-3);
        const double rho = rows[i].load, m = 1 / (s.streams * (1 - rho)), c = s.streams;
        const double correction = 1 + (1 - rho) * (c - 1) * (sqrt(4 + 5 * c) - 2) / (16 * rho * c);
        const double wait = hwnas_serving_response(&s, rho * s.items_per_second).wait;
        assert_float_equal(wait, rows[i].c * m / 2 * correction, 1e-3 * m);
    }
}

static void test_one_server(void **state)
{
    (void)state;
    /* M/D/1 waits rho / (2 (1 - rho)) on average (Pollaczek and Khinchine). */
    hwnas_service s = make_service(1, 1, 0.5);
    assert_float_equal(hwnas_serving_response(&s, 0.4).wait, 0.4 / (2 * 0.6), 1e-12);
    /* p99 at half load: log(0.5 / 0.01) / (2 * 0.5) = 3.912 service times. */
    s = make_service(1, 1, 0.99);
    assert_float_equal(hwnas_serving_response(&s, 0.5).wait, 3.912, 1e-3);
    assert_true(isinf(hwnas_serving_response(&s, 1).total));
    assert_float_equal(hwnas_serving_response(&s, 0).total, 1, 1e-12);
}

static void test_filling(void **state)
{
    (void)state;
    assert_true(hwnas_serving_fill(1, 0.99) == 0);
    /* Of two, one waits for the next: half of all, exponentially. */
    assert_float_equal(hwnas_serving_fill(2, 0.99), log(0.5 / 0.01), 1e-6);
    /* Of very many the first waits for all others, nearly without chance. */
    const double many = hwnas_serving_fill(10000, 0.99);
    assert_true(many > 9800 && many < 10000);
}

static void test_rates(void **state)
{
    (void)state;
    hwnas_service s = make_service(1, 1, 0.99);
    assert_float_equal(hwnas_serving_rate(&s, INFINITY, 0.8), 0.8, 1e-12);
    const double rate = hwnas_serving_rate(&s, 3, 0.8);
    assert_float_equal(hwnas_serving_response(&s, rate).total, 3, 1e-6);
    assert_true(hwnas_serving_rate(&s, 0.9, 0.8) == 0); /* less than the service itself */
    /* Batches take time to fill when requests are few: there is a lowest rate as well. */
    s = make_service(8, 1, 0.99);
    const double high = hwnas_serving_rate(&s, 5, 0.8);
    assert_true(high > 0 && hwnas_serving_response(&s, high / 10).total > 5);
    assert_int_equal(hwnas_serving_machines(&s, high * 3, 5, 0.8), 3);
    assert_int_equal(hwnas_serving_machines(&s, high * 3.01, 5, 0.8), 4);
    assert_int_equal(hwnas_serving_machines(&s, high / 10, 5, 0.8), 0);
    assert_int_equal(hwnas_serving_machines(&s, high / 10, INFINITY, 0.8), 1);
}

static hwnas_profile_row row_of(double p50, bool is_unstable)
{
    return (hwnas_profile_row){
        .digest = {"d1"},
        .m = {
            .p50 = p50, .p50_low = 0.99 * p50, .p50_high = 1.01 * p50, .is_unstable = is_unstable}};
}

static void test_baseline(void **state)
{
    (void)state;
    static const struct {
        double now;
        bool was_unstable, is_unstable;
        hwnas_verdict verdict;
    } rows[] = {
        {1.00, false, false, HWNAS_SAME},     {1.20, false, false, HWNAS_SLOWER},
        {0.80, false, false, HWNAS_FASTER},   {1.05, false, false, HWNAS_AMBIGUOUS},
        {1.20, true, false, HWNAS_AMBIGUOUS}, {1.20, false, true, HWNAS_AMBIGUOUS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_profile_row before = row_of(1, rows[i].was_unstable);
        hwnas_baseline_row row = {.before = &before,
                                  .now = row_of(rows[i].now, rows[i].is_unstable)};
        hwnas_baseline_judge(&row, 0.05);
        assert_null(row.trouble);
        assert_int_equal(row.judgement.verdict, rows[i].verdict);
        assert_float_equal(row.judgement.ratio, rows[i].now, 1e-12);
    }
    /* Figures without an interval count as exact; another network is no comparison. */
    hwnas_profile_row before = row_of(1, false);
    before.m.p50_low = before.m.p50_high = NAN;
    hwnas_baseline_row row = {.before = &before, .now = row_of(1.1, false)};
    hwnas_baseline_judge(&row, 0.05);
    assert_int_equal(row.judgement.verdict, HWNAS_SLOWER);
    row.now.digest.hex[1] = '2';
    hwnas_baseline_judge(&row, 0.05);
    assert_non_null(row.trouble);
}

/* ---- How many threads pay ---- */

/* What is said of a network that takes these seconds with these threads, in any order. */
static void check_notes(const char *wanted, size_t n, const int *threads, const double *seconds)
{
    hwnas_str out = {0};
    hwnas_profile *profile = hwnas_profile_new();
    for (size_t i = 0; i < n; i++) {
        hwnas_profile_row *row = hwnas_profile_add_row(profile);
        row->model = "net";
        row->device = "cpu";
        row->batch = row->streams = 1;
        row->threads = threads[i];
        row->m.p50 = seconds[i];
        row->m.is_unstable = seconds[i] < 0;
        row->status = seconds[i] ? HWNAS_OK : HWNAS_E_TIMEOUT;
    }
    hwnas_thread_notes(&out, profile);
    assert_string_equal(out.s ? out.s : "", wanted);
    hwnas_str_done(&out);
    hwnas_profile_free(profile);
}

/* Amdahl's law, 1 / (s + (1 - s) / n), with a tenth that is not shared: 1, 1.82, 3.08 and 4.71
 * times. */
static void test_threads_that_pay(void **state)
{
    (void)state;
    static const int threads[] = {8, 1, 4, 2};
    static const double amdahl[] = {0.2125, 1, 0.325, 0.55};
    static const double slower[] = {2, 1, 1.5, 1.2}, failed[] = {0, 1, -1, 0.5};
    check_notes(
        "net, cpu, batch 1, f32: 4 threads pay, 3.08 times as fast as 1; of 8 each more adds "
        "41 % of a core, below 50\n",
        4, threads, amdahl);
    check_notes("net, cpu, batch 1, f32: 1 thread pays; 2 are no faster\n", 4, threads, slower);
    check_notes("net, cpu, batch 1, f32: 2 threads pay, 2.00 times as fast as 1; more were not "
                "measured\n",
                4, threads, failed);
    check_notes("", 1, threads, amdahl);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_simulation),
        cmocka_unit_test(test_erlang),
        cmocka_unit_test(test_one_server),
        cmocka_unit_test(test_filling),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_baseline),
        cmocka_unit_test(test_threads_that_pay),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
