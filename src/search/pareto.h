/* pareto.h: dominance, the archive of the non-dominated, hypervolume. */
#ifndef HWNAS_SEARCH_PARETO_H
#define HWNAS_SEARCH_PARETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hwnas/strategy.h>

/* All objectives are minimised. */
typedef struct hwnas_point {
    double objectives[HWNAS_MAX_OBJECTIVES];
    uint64_t id; /* the caller's: a trial number */
} hwnas_point;

/* a is nowhere worse than b and somewhere better. */
bool hwnas_dominates(const double *a, const double *b, int n_objectives);

typedef struct hwnas_front {
    int n_objectives;
    size_t n, capacity;
    hwnas_point *points; /* sorted by the first objective, then the others */
} hwnas_front;

/* Inserts a point unless a member dominates or equals it; members that it dominates leave. Returns
 * whether it is in. */
bool hwnas_front_insert(hwnas_front *front, const hwnas_point *point);
void hwnas_front_done(hwnas_front *front);

/* Volume dominated by the points and bounded by `reference`. Points that are not better than the
 * reference in every objective add nothing. `*error` is 0 where it is exact: always with up to
 * three objectives and some thousand points. Else it would take more than a second (it grows with
 * each objective); then it is an estimate, the same each time, and this its standard error. */
double hwnas_hypervolume(double *error, const hwnas_front *front, const double *reference);

#endif
