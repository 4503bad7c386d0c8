/* hypervolume.c: what a front dominates, exact where that takes a moment, else by samples.
 *
 * While, Bradstreet and Barone, "A Fast Way of Calculating Exact Hypervolumes", IEEE TEVC 16(1),
 * 2012 (WFG): taken in turn from the worst in the last objective on, a point adds its own box
 * without what later ones have of it. All of those are as good in that objective, so what they have
 * of it is a hypervolume of one objective less, of points cut to the box. */
#define _GNU_SOURCE 1 /* qsort_r() */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/pareto.h"

enum {
    MOST_STEPS = 20000000, /* comparisons of two points: below a second */
    N_SAMPLES = 100000,
};

/* Rows of `width` numbers, of which the first m count. */
typedef struct rows {
    size_t n;
    int width;
    double *at;
} rows;

static int by_objective(const void *a, const void *b, void *objective)
{
    const int k = *(int *)objective;
    const double x = ((const double *)a)[k], y = ((const double *)b)[k];
    return (x < y) - (x > y);
}

/* The greatest first. */
static void sort_by(const rows *r, int objective)
{
    qsort_r(r->at, r->n, (size_t)r->width * sizeof *r->at, by_objective, &objective);
}

static double *row(const rows *r, size_t i)
{
    return r->at + i * (size_t)r->width;
}

static bool covers(const double *a, const double *b, int m)
{
    for (int k = 0; k < m; k++)
        if (a[k] > b[k])
            return false;
    return true;
}

/* Adds a row unless one covers it; those that it covers leave. */
static void add_row(rows *to, const double *point, int m, long *steps)
{
    size_t kept = 0;
    *steps -= (long)to->n;
    for (size_t i = 0; i < to->n; i++)
        if (covers(row(to, i), point, m))
            return;
    for (size_t i = 0; i < to->n; i++)
        if (!covers(point, row(to, i), m))
            memmove(row(to, kept++), row(to, i), (size_t)to->width * sizeof *to->at);
    memcpy(row(to, kept), point, (size_t)to->width * sizeof *to->at);
    to->n = kept + 1;
}

/* A staircase: each row adds the slab between its height and that of the rows to its left. */
static double area(const rows *r, const double *reference)
{
    double sum = 0, height = reference[1];
    sort_by(r, 0);
    for (size_t i = r->n; i-- > 0;) {
        const double *f = row(r, i);
        if (!(f[1] < height))
            continue;
        sum += (reference[0] - f[0]) * (height - f[1]);
        height = f[1];
    }
    return sum;
}

static double box(const double *point, const double *reference, int m)
{
    double volume = 1;
    for (int k = 0; k < m; k++)
        volume *= reference[k] - point[k];
    return volume;
}

/* Of rows that are better than the reference in all m objectives; it changes their order. What it
 * returns is of no use once `steps` are below 0. */
static double measure(const rows *r, int m, const double *reference, long *steps)
{
    if (m == 1) {
        double least = reference[0];
        for (size_t i = 0; i < r->n; i++)
            least = fmin(least, row(r, i)[0]);
        return reference[0] - least;
    }
    if (m == 2)
        return area(r, reference);
    double sum = 0, *cut = hwnas_alloc((size_t)r->width * sizeof *cut);
    rows left = {.width = r->width, .at = hwnas_alloc(r->n * (size_t)r->width * sizeof *left.at)};
    sort_by(r, m - 1);
    for (size_t i = 0; i < r->n && *steps >= 0; i++) {
        const double *own = row(r, i);
        left.n = 0;
        for (size_t k = i + 1; k < r->n; k++) {
            memcpy(cut, row(r, k), (size_t)r->width * sizeof *cut);
            for (int j = 0; j < m - 1; j++)
                cut[j] = fmax(cut[j], own[j]);
            if (m - 1 > 2) {
                add_row(&left, cut, m - 1, steps);
                continue;
            }
            memcpy(row(&left, left.n++), cut, (size_t)r->width * sizeof *cut);
            --*steps;
        }
        sum += (reference[m - 1] - own[m - 1]) *
               (box(own, reference, m - 1) - measure(&left, m - 1, reference, steps));
    }
    free(left.at);
    free(cut);
    return sum;
}

/* By points drawn in the box between the best of everything and the reference. */
static double sample(double *error, const rows *r, const double *reference)
{
    const int m = r->width;
    hwnas_rng rng = hwnas_rng_new(1, 0x6876); /* the stream "hv": the same points each time */
    double ideal[HWNAS_MAX_OBJECTIVES], at[HWNAS_MAX_OBJECTIVES];
    size_t n_inside = 0;
    for (int k = 0; k < m; k++) {
        ideal[k] = INFINITY;
        for (size_t i = 0; i < r->n; i++)
            ideal[k] = fmin(ideal[k], row(r, i)[k]);
    }
    for (int n = 0; n < N_SAMPLES; n++) {
        bool is_inside = false;
        for (int k = 0; k < m; k++)
            at[k] = ideal[k] + (reference[k] - ideal[k]) * hwnas_rng_double(&rng);
        for (size_t i = 0; i < r->n && !is_inside; i++)
            is_inside = covers(row(r, i), at, m);
        n_inside += is_inside;
    }
    const double whole = box(ideal, reference, m), part = (double)n_inside / N_SAMPLES;
    *error = whole * sqrt(part * (1 - part) / N_SAMPLES);
    return whole * part;
}

static bool is_inside(const hwnas_point *point, const double *reference, int m)
{
    for (int k = 0; k < m; k++)
        if (!(point->objectives[k] < reference[k]))
            return false;
    return true;
}

double hwnas_hypervolume(double *error, const hwnas_front *front, const double *reference)
{
    const int m = front->n_objectives;
    long steps = MOST_STEPS;
    rows r = {.width = m, .at = hwnas_alloc((front->n + 1) * (size_t)m * sizeof *r.at)};
    *error = 0;
    for (size_t i = 0; i < front->n; i++)
        if (is_inside(&front->points[i], reference, m))
            memcpy(row(&r, r.n++), front->points[i].objectives, (size_t)m * sizeof *r.at);
    double value = measure(&r, m, reference, &steps);
    if (steps < 0)
        value = sample(error, &r, reference);
    free(r.at);
    return value;
}
