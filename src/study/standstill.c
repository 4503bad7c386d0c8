#include "study/standstill.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/pareto.h"

enum { LEAST = 50, N_WEIGHTS = 128 };

size_t hwnas_standstill_window(size_t n)
{
    return n / 4 > LEAST ? n / 4 : LEAST;
}

static bool counts(const hwnas_scores *scores, size_t at)
{
    return scores->rows[at].violation == 0 && !scores->rows[at].rung;
}

static double least_violation(const hwnas_scores *scores, size_t n)
{
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        least = fmin(least, scores->rows[i].rung ? INFINITY : scores->rows[i].violation);
    return least;
}

/* Best and worst of each objective among the feasible. */
static void find_box(double *ideal, double *worst, const hwnas_scores *scores, size_t n)
{
    const int m = scores->n_objectives;
    for (int k = 0; k < m; k++) {
        ideal[k] = INFINITY;
        worst[k] = -INFINITY;
        for (size_t i = 0; i < n; i++)
            if (counts(scores, i)) {
                ideal[k] = fmin(ideal[k], hwnas_scores_objectives(scores, i)[k]);
                worst[k] = fmax(worst[k], hwnas_scores_objectives(scores, i)[k]);
            }
    }
}

static hwnas_front front_of(const hwnas_scores *scores, size_t n)
{
    const size_t size = (size_t)scores->n_objectives * sizeof(double);
    hwnas_front front = {.n_objectives = scores->n_objectives};
    for (size_t i = 0; i < n; i++) {
        hwnas_point point = {.id = i};
        memcpy(point.objectives, hwnas_scores_objectives(scores, i), size);
        if (counts(scores, i))
            hwnas_front_insert(&front, &point);
    }
    return front;
}

/* 1 - R2: over random directions, how near the front comes to the best of everything. */
static double nearness(const hwnas_front *front, const double *ideal, const double *worst)
{
    hwnas_rng rng = hwnas_rng_new(1, 0x7232); /* the stream "r2": the same weights each time */
    double sum = 0;
    for (int w = 0; w < N_WEIGHTS; w++) {
        double weights[HWNAS_MAX_OBJECTIVES] = {0}, most = 0, best = INFINITY;
        for (int k = 0; k < front->n_objectives; k++) { /* exponential: every direction alike */
            weights[k] = -log(1 - hwnas_rng_double(&rng));
            most = fmax(most, weights[k]);
        }
        for (size_t i = 0; i < front->n; i++) {
            double distance = 0;
            for (int k = 0; k < front->n_objectives; k++) {
                double extent = worst[k] - ideal[k];
                double at = extent > 0 ? (front->points[i].objectives[k] - ideal[k]) / extent : 0;
                distance = fmax(distance, weights[k] / most * at);
            }
            best = fmin(best, distance);
        }
        sum += isinf(best) ? 1 : best;
    }
    return 1 - sum / N_WEIGHTS;
}

static double worth(const hwnas_scores *scores, size_t n, const double *ideal, const double *worst)
{
    double error;
    hwnas_front front = front_of(scores, n);
    const double value = front.n_objectives > 3 ? nearness(&front, ideal, worst)
                                                : hwnas_hypervolume(&error, &front, worst);
    hwnas_front_done(&front);
    return value;
}

double hwnas_improvement(const hwnas_scores *scores, size_t n, size_t window)
{
    double ideal[HWNAS_MAX_OBJECTIVES], worst[HWNAS_MAX_OBJECTIVES];
    if (n < 2 * window)
        return 1;
    double now = least_violation(scores, n), then = least_violation(scores, n - window);
    if (then >
        0) /* nothing was feasible then: becoming so is an improvement, and so is coming near */
        return now == 0 || isinf(now) ? now == 0 : (then - now) / then;
    find_box(ideal, worst, scores, n);
    double after = worth(scores, n, ideal, worst);
    return after > 0 ? 1 - worth(scores, n - window, ideal, worst) / after : 0;
}
