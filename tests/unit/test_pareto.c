/* test_pareto.c: src/search/pareto.c against brute force and the figures published with the tables
 * in tests/data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/rng.h"
#include "search/pareto.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static hwnas_point point(double x, double y, double z)
{
    return (hwnas_point){.objectives = {x, y, z}};
}

static double hypervolume(const hwnas_front *front, const double *reference)
{
    double error = NAN;
    const double value = hwnas_hypervolume(&error, front, reference);
    assert_true(error == 0);
    return value;
}

static void dominance(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3}, b[] = {1, 2, 4}, c[] = {0, 3, 3};
    assert_true(hwnas_dominates(a, b, 3));
    assert_false(hwnas_dominates(b, a, 3));
    assert_false(hwnas_dominates(a, a, 3));
    assert_false(hwnas_dominates(a, c, 3));
    assert_false(hwnas_dominates(c, a, 3));
    assert_false(hwnas_dominates(a, b, 2)); /* equal in the first two */
}

/* Whether the point belongs on the front of points[0..n): nothing dominates it, and it is the first
 * of its equals. */
static bool belongs(const hwnas_point *points, size_t n, size_t which, int m)
{
    for (size_t i = 0; i < n; i++) {
        const double *a = points[i].objectives, *b = points[which].objectives;
        if (hwnas_dominates(a, b, m) || (i < which && !memcmp(a, b, (size_t)m * sizeof *a)))
            return false;
    }
    return true;
}

static bool holds(const hwnas_front *front, uint64_t id)
{
    for (size_t i = 0; i < front->n; i++)
        if (front->points[i].id == id)
            return true;
    return false;
}

static void assert_sorted(const hwnas_front *front)
{
    for (size_t i = 1; i < front->n; i++) {
        const double *a = front->points[i - 1].objectives, *b = front->points[i].objectives;
        int k = 0;
        while (k + 1 < front->n_objectives && a[k] == b[k])
            k++;
        assert_true(a[k] < b[k]);
    }
}

/* A coarse grid, so that equal coordinates and equal points are common. */
static void archive_is_the_brute_force_front(void **state)
{
    (void)state;
    enum { N = 60 };
    for (int round = 0; round < 200; round++) {
        hwnas_rng rng = hwnas_rng_new(1, (uint64_t)round);
        hwnas_front front = {.n_objectives = 1 + round % 5};
        hwnas_point points[N];
        for (size_t n = 1; n <= N; n++) {
            hwnas_point *p = &points[n - 1];
            *p = (hwnas_point){.id = n - 1};
            for (int k = 0; k < front.n_objectives; k++)
                p->objectives[k] = hwnas_rng_below(&rng, 12) - 6.0;
            assert_int_equal(hwnas_front_insert(&front, p),
                             belongs(points, n, n - 1, front.n_objectives));
            size_t n_belong = 0;
            for (size_t i = 0; i < n; i++)
                if (belongs(points, n, i, front.n_objectives)) {
                    assert_true(holds(&front, i));
                    n_belong++;
                }
            assert_int_equal(front.n, n_belong);
            assert_sorted(&front);
        }
        hwnas_front_done(&front);
    }
}

static void hypervolume_by_hand(void **state)
{
    (void)state;
    const double reference[] = {10, 10, 10};
    hwnas_front line = {.n_objectives = 1}, plane = {.n_objectives = 2}, room = {.n_objectives = 3};
    hwnas_front *fronts[] = {&line, &plane, &room};
    const hwnas_point points[] = {point(4, 8, 9), point(6, 5, 9), point(9, 9, 1),
                                  point(1, 10, 2) /* on the border */, point(12, 1, 1)};
    for (size_t f = 0; f < COUNT(fronts); f++) {
        assert_true(hypervolume(fronts[f], reference) == 0);
        for (size_t i = 0; i < COUNT(points); i++)
            hwnas_front_insert(fronts[f], &points[i]);
    }
    assert_true(hypervolume(&line, reference) == 9);
    assert_true(hypervolume(&plane, reference) == 6 * 2 + 4 * 3);
    assert_true(hypervolume(&room, reference) == (6 * 2 + 4 * 3) * 1 + 1 * 1 * 8);
    for (size_t f = 0; f < COUNT(fronts); f++)
        hwnas_front_done(fronts[f]);
}

/* Points on a grid of unit cubes: the volume is the number of cubes that some point covers. */
static void hypervolume_counts_cubes(void **state)
{
    enum { SIDE = 6, MOST = 5, N_CUBES = SIDE * SIDE * SIDE * SIDE * SIDE };
    const double reference[] = {SIDE, SIDE, SIDE, SIDE, SIDE};
    (void)state;
    for (int round = 0; round < 100; round++) {
        const int m = 1 + round % MOST, n = 1 + round / 2;
        hwnas_rng rng = hwnas_rng_new(2, (uint64_t)round);
        hwnas_front front = {.n_objectives = m};
        hwnas_point points[50] = {0};
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < m; k++)
                points[i].objectives[k] = hwnas_rng_below(&rng, SIDE + 1); /* some lie outside */
            hwnas_front_insert(&front, &points[i]);
        }
        int n_covered = 0, n_cubes = 1;
        for (int k = 0; k < m; k++)
            n_cubes *= SIDE;
        assert_true(n_cubes <= N_CUBES);
        for (int cube = 0; cube < n_cubes; cube++) {
            double corner[MOST];
            bool is_covered = false;
            for (int k = 0, rest = cube; k < m; k++, rest /= SIDE)
                corner[k] = rest % SIDE;
            for (int i = 0; i < n && !is_covered; i++) {
                is_covered = true;
                for (int k = 0; k < m; k++)
                    is_covered &= points[i].objectives[k] <= corner[k];
            }
            n_covered += is_covered;
        }
        if (hypervolume(&front, reference) != n_covered)
            fail_msg("%d objectives, %d points: %g, not %d", m, n, hypervolume(&front, reference),
                     n_covered);
        hwnas_front_done(&front);
    }
}

/* Random points on the part of a sphere (DTLZ2's front): none covers another. */
static void fill_sphere(hwnas_front *front, int n, hwnas_rng *rng)
{
    for (int i = 0; i < n; i++) {
        hwnas_point p = {.id = (uint64_t)i};
        double square = 0;
        for (int k = 0; k < front->n_objectives; k++) {
            p.objectives[k] = -log(1 - hwnas_rng_double(rng));
            square += p.objectives[k] * p.objectives[k];
        }
        for (int k = 0; k < front->n_objectives; k++)
            p.objectives[k] /= sqrt(square);
        assert_true(hwnas_front_insert(front, &p));
    }
}

/* Where an exact value would take too long it is an estimate, whose error is told: points in the
 * unit cube, counted here with other random numbers. */
static void hypervolume_of_many_is_estimated(void **state)
{
    enum { M = 9, N = 200, N_DRAWS = 100000 };
    double reference[M], error = 0;
    hwnas_rng rng = hwnas_rng_new(4, 0);
    hwnas_front front = {.n_objectives = M};
    int n_inside = 0;
    (void)state;
    for (int k = 0; k < M; k++)
        reference[k] = 1;
    fill_sphere(&front, N, &rng);
    const double value = hwnas_hypervolume(&error, &front, reference);
    for (int d = 0; d < N_DRAWS; d++) {
        double at[M];
        bool is_inside = false;
        for (int k = 0; k < M; k++)
            at[k] = hwnas_rng_double(&rng);
        for (size_t i = 0; i < front.n && !is_inside; i++) {
            is_inside = true;
            for (int k = 0; k < M; k++)
                is_inside &= front.points[i].objectives[k] <= at[k];
        }
        n_inside += is_inside;
    }
    const double part = (double)n_inside / N_DRAWS, own = sqrt(part * (1 - part) / N_DRAWS);
    assert_true(error > 0 && error < 0.01);
    assert_true(fabs(value - part) < 5 * hypot(error, own));
    hwnas_front_done(&front);
}

/* The union of boxes by inclusion and exclusion over all subsets of the points. */
static void hypervolume_3d_by_inclusion_and_exclusion(void **state)
{
    (void)state;
    enum { N = 10 };
    const double reference[] = {1, 1, 1};
    for (int round = 0; round < 50; round++) {
        hwnas_rng rng = hwnas_rng_new(3, (uint64_t)round);
        hwnas_front front = {.n_objectives = 3};
        hwnas_point points[N];
        for (int i = 0; i < N; i++) {
            double x = hwnas_rng_double(&rng), y = hwnas_rng_double(&rng);
            points[i] = point(x, y, hwnas_rng_double(&rng));
            hwnas_front_insert(&front, &points[i]);
        }
        double expected = 0;
        for (unsigned set = 1; set < 1u << N; set++) {
            double corner[3] = {0, 0, 0};
            for (int i = 0; i < N; i++)
                for (int k = 0; k < 3 && (set >> i & 1); k++)
                    corner[k] = fmax(corner[k], points[i].objectives[k]);
            double box = (1 - corner[0]) * (1 - corner[1]) * (1 - corner[2]);
            expected += __builtin_popcount(set) % 2 ? box : -box;
        }
        assert_true(fabs(hypervolume(&front, reference) - expected) < 1e-12);
        hwnas_front_done(&front);
    }
}

/* A front of a published table: cost times `scale`, or scale / cost where the column is a speed;
 * the mean of the accuracy columns is to be maximised. Sizes and hypervolumes are those found with
 * other tools when the tables were collected, to the last digit written down. */
typedef struct published {
    const char *file;
    const char *const *accuracy;
    const char *cost;
    double scale;
    bool is_speed;
    size_t n_points;
    double reference[2], hypervolume, tolerance;
} published;

static const char macro[] = "nas_bench_macro.csv", accel[] = "accel_nasbench.csv";
static const char *const runs[] = {"acc_top1_pct_run1", "acc_top1_pct_run2", "acc_top1_pct_run3",
                                   NULL};
static const char *const top1[] = {"val_top1_pct", NULL};

static const published fronts[] = {
    {macro, runs, "macs_count", 1e-6, false, 35, {150, 70}, 2940.464, 5e-4},
    {macro, runs, "params_count", 1e-6, false, 39, {4, 70}, 80.8430, 5e-5},
    {accel, top1, "macs_count_conv_fc", 1e-6, false, 30, {800, 45}, 14037.92, 5e-3},
    {accel, top1, "params_count", 1e-6, false, 44, {10, 45}, 165.796, 5e-4},
    {accel, top1, "zcu102_latency_ms", 1, false, 37, {25, 45}, 488.935, 5e-4},
    {accel, top1, "vck190_latency_ms", 1, false, 22, {12, 45}, 221.737, 1e-3}, /* 221.73647 here */
    {accel, top1, "a100_fps", 1000, true, 34, {0.25, 45}, 4.4466, 5e-5},
    {accel, top1, "tpuv3_fps", 1000, true, 14, {1.6, 45}, 22.4246, 5e-5},
};

/* One row for each network: the encodings that are not canonical repeat another's. */
static bool is_wanted(const published *p, const hwnas_csv *csv, size_t row)
{
    long canonical = hwnas_csv_column(csv, "is_canonical");
    if (canonical >= 0 && strcmp(hwnas_csv_cell(csv, row, (size_t)canonical), "1"))
        return false;
    long cost = hwnas_csv_column(csv, p->cost);
    assert_true(cost >= 0);
    return *hwnas_csv_cell(csv, row, (size_t)cost); /* empty: not measured */
}

static double cell(const hwnas_csv *csv, size_t row, const char *column)
{
    size_t index;
    double value = NAN;
    assert_int_equal(hwnas_csv_require(&index, csv, column), HWNAS_OK);
    assert_int_equal(hwnas_csv_number(&value, csv, row, index), HWNAS_OK);
    return value;
}

static hwnas_point point_of(const published *p, const hwnas_csv *csv, size_t row)
{
    double cost = cell(csv, row, p->cost), sum = 0;
    int n = 0;
    for (; p->accuracy[n]; n++)
        sum += cell(csv, row, p->accuracy[n]);
    sum = round(sum * 1000) / 1000; /* equal sums of three decimals, whatever their order */
    return point(p->is_speed ? p->scale / cost : p->scale * cost, -sum / n, 0);
}

static void published_fronts(void **state)
{
    (void)state;
    for (const published *p = fronts; p < fronts + COUNT(fronts); p++) {
        const double reference[] = {p->reference[0], -p->reference[1]};
        hwnas_front front = {.n_objectives = 2};
        hwnas_csv *csv;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", HWNAS_TEST_DATA, p->file);
        assert_int_equal(hwnas_csv_load(&csv, path), HWNAS_OK);
        for (size_t row = 0; row < csv->n_rows; row++) {
            if (!is_wanted(p, csv, row))
                continue;
            hwnas_point at = point_of(p, csv, row);
            hwnas_front_insert(&front, &at);
        }
        double value = hypervolume(&front, reference);
        print_message("# %s %s: %zu points, hypervolume %.5f\n", p->file, p->cost, front.n, value);
        assert_int_equal(front.n, p->n_points);
        assert_true(fabs(value - p->hypervolume) <= p->tolerance);
        hwnas_front_done(&front);
        hwnas_csv_free(csv);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dominance),
        cmocka_unit_test(archive_is_the_brute_force_front),
        cmocka_unit_test(hypervolume_by_hand),
        cmocka_unit_test(hypervolume_counts_cubes),
        cmocka_unit_test(hypervolume_of_many_is_estimated),
        cmocka_unit_test(hypervolume_3d_by_inclusion_and_exclusion),
        cmocka_unit_test(published_fronts),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("pareto", tests, NULL, NULL);
}
