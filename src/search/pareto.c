/* pareto.c: an archive kept sorted.
 *
 * In lexical order whatever dominates a point comes before it and whatever it dominates after it.
 * With two objectives the front is a staircase: the second objective falls as the first rises, so
 * one neighbour decides, a rejected point costs O(log n), and what it dominates is one run. */
#include "search/pareto.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool weakly_dominates(const double *a, const double *b, int n_objectives)
{
    for (int i = 0; i < n_objectives; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

bool hwnas_dominates(const double *a, const double *b, int n_objectives)
{
    return weakly_dominates(a, b, n_objectives) && !weakly_dominates(b, a, n_objectives);
}

static bool comes_before(const double *a, const double *b, int n_objectives)
{
    for (int i = 0; i < n_objectives; i++)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

/* The first member that does not come before `objectives`. */
static size_t place_of(const hwnas_front *front, const double *objectives)
{
    size_t low = 0, high = front->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (comes_before(front->points[middle].objectives, objectives, front->n_objectives))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether a member dominates or equals the point that belongs at `place`. */
static bool is_covered(const hwnas_front *front, size_t place, const double *objectives)
{
    int m = front->n_objectives;
    size_t end = place < front->n ? place + 1 : place; /* an equal member stands at `place` */
    size_t first = m > 2 || place == 0 ? 0 : place - 1;
    for (size_t i = first; i < end; i++)
        if (weakly_dominates(front->points[i].objectives, objectives, m))
            return true;
    return false;
}

/* Removes the members from `place` on that `objectives` dominates. */
static void remove_dominated(hwnas_front *front, size_t place, const double *objectives)
{
    int m = front->n_objectives;
    size_t kept = place, i = place;
    for (; i < front->n; i++) {
        if (!hwnas_dominates(objectives, front->points[i].objectives, m)) {
            if (m <= 2)
                break;
            front->points[kept++] = front->points[i];
        }
    }
    memmove(&front->points[kept], &front->points[i], (front->n - i) * sizeof *front->points);
    front->n -= i - kept;
}

bool hwnas_front_insert(hwnas_front *front, const hwnas_point *point)
{
    assert(front->n_objectives >= 1 && front->n_objectives <= HWNAS_MAX_OBJECTIVES);
    for (int i = 0; i < front->n_objectives; i++)
        assert(!isnan(point->objectives[i]));
    size_t place = place_of(front, point->objectives);
    if (is_covered(front, place, point->objectives))
        return false;
    HWNAS_GROW(front->points, front->n, front->capacity);
    remove_dominated(front, place, point->objectives);
    memmove(&front->points[place + 1], &front->points[place],
            (front->n - place) * sizeof *front->points);
    front->points[place] = *point;
    front->n++;
    return true;
}

void hwnas_front_done(hwnas_front *front)
{
    free(front->points);
    front->points = NULL;
    front->n = front->capacity = 0;
}
