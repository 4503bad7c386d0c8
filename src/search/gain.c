#include "search/gain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Enough that the choice among candidates is steady; the cost of an estimate is in proportion. */
enum { N_DIRECTIONS = 128 };

/* Box and Muller 1958. */
static double draw_normal(hwnas_rng *rng)
{
    double radius = sqrt(-2 * log(1 - hwnas_rng_double(rng)));
    return radius * cos(2 * M_PI * hwnas_rng_double(rng));
}

/* The front's points within the reference: from the left, so that each next one is lower. */
static void find_steps(hwnas_gain *gain)
{
    gain->steps = hwnas_alloc((gain->front->n + 1) * sizeof *gain->steps);
    for (size_t i = 0; i < gain->front->n; i++) {
        const double *f = gain->front->points[i].objectives;
        if (f[0] < gain->reference[0] && f[1] < gain->reference[1])
            memcpy(gain->steps[gain->n_steps++], f, 2 * sizeof *f);
    }
}

/* How far a point dominates along a direction: the hypervolume is the mean over directions of the
 * m-th power of the best, up to a factor (Zhang and Golovin, lemma 5). */
static double reach(const hwnas_gain *gain, const double *direction, const double *y)
{
    int m = gain->front->n_objectives;
    double least = INFINITY;
    for (int k = 0; k < m; k++)
        least = fmin(least, fmax(0, gain->reference[k] - y[k]) / direction[k]);
    return pow(least, m);
}

static void draw_directions(hwnas_gain *gain, hwnas_rng *rng)
{
    int m = gain->front->n_objectives;
    gain->n_directions = N_DIRECTIONS;
    gain->directions = hwnas_alloc(N_DIRECTIONS * (size_t)m * sizeof *gain->directions);
    gain->draws = hwnas_alloc(N_DIRECTIONS * (size_t)m * sizeof *gain->draws);
    gain->best = hwnas_alloc(N_DIRECTIONS * sizeof *gain->best);
    for (size_t d = 0; d < N_DIRECTIONS; d++) {
        double *direction = &gain->directions[d * (size_t)m], norm = 0;
        for (int k = 0; k < m; k++) {
            direction[k] = fmax(1e-6, fabs(draw_normal(rng)));
            norm += direction[k] * direction[k];
            gain->draws[d * (size_t)m + (size_t)k] = draw_normal(rng);
        }
        /* In units of what can be gained, so that no objective's unit counts. */
        for (int k = 0; k < m; k++)
            direction[k] *= (gain->reference[k] - gain->scales[k].floor) / sqrt(norm);
        for (size_t i = 0; i < gain->front->n; i++)
            gain->best[d] = fmax(gain->best[d],
                                 reach(gain, direction, gain->front->points[i].objectives));
    }
}

void hwnas_gain_init(hwnas_gain *out, const hwnas_front *front, const hwnas_scale *scales,
                     const double *reference, hwnas_rng *rng)
{
    *out = (hwnas_gain){.front = front, .scales = scales};
    memcpy(out->reference, reference, (size_t)front->n_objectives * sizeof *reference);
    if (front->n_objectives == 2)
        find_steps(out);
    else if (front->n_objectives > 2)
        draw_directions(out, rng);
}

void hwnas_gain_done(hwnas_gain *gain)
{
    free(gain->steps);
    free(gain->directions);
    free(gain->draws);
    free(gain->best);
    memset(gain, 0, sizeof *gain);
}

/* The new area is a sum over the strips between neighbouring steps: in each, the part of its width
 * right of the point times the height of the front above the point; both are shortfalls, and
 * independent (Emmerich, Deutz and Klinkenberg, "Hypervolume-based Expected Improvement:
 * Monotonicity Properties and Exact Computation", CEC 2011). */
static double expect_area(const hwnas_gain *gain, const double *means, const double *sds)
{
    double sum = 0, left = 0, height = gain->reference[1];
    for (size_t i = 0; i <= gain->n_steps; i++) {
        double end = i < gain->n_steps ? gain->steps[i][0] : gain->reference[0];
        double right = hwnas_scale_shortfall(&gain->scales[0], means[0], sds[0], end);
        if (right > left)
            sum += (right - left) *
                   hwnas_scale_shortfall(&gain->scales[1], means[1], sds[1], height);
        left = right;
        height = i < gain->n_steps ? gain->steps[i][1] : height;
    }
    return sum;
}

static double expect_volume(const hwnas_gain *gain, const double *means, const double *sds)
{
    int m = gain->front->n_objectives;
    double sum = 0, y[HWNAS_MAX_OBJECTIVES];
    for (size_t d = 0; d < gain->n_directions; d++) {
        for (int k = 0; k < m; k++)
            y[k] = hwnas_scale_from(&gain->scales[k],
                                    means[k] + sds[k] * gain->draws[d * (size_t)m + (size_t)k]);
        sum += fmax(0, reach(gain, &gain->directions[d * (size_t)m], y) - gain->best[d]);
    }
    return sum / (double)gain->n_directions;
}

double hwnas_gain_expect(const hwnas_gain *gain, const double *means, const double *sds)
{
    if (gain->front->n_objectives == 1)
        return hwnas_scale_shortfall(&gain->scales[0], means[0], sds[0],
                                     gain->front->points[0].objectives[0]);
    return gain->front->n_objectives == 2 ? expect_area(gain, means, sds)
                                          : expect_volume(gain, means, sds);
}
