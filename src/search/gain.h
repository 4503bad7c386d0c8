/* gain.h: the expected gain of a trial that is known through a model only.
 *
 * With one objective the expected improvement on the best (Mockus 1978; Jones, Schonlau and Welch
 * 1998). With several the expected growth of the dominated hypervolume (Emmerich, Giannakoglou and
 * Naujoks 2006): exact for two; for more, through hypervolume scalarisations (Zhang and Golovin,
 * "Random Hypervolume Scalarizations for Provable Multi-Objective Black Box Optimization", ICML
 * 2020) in directions drawn once for all candidates. The objectives are independent. */
#ifndef HWNAS_SEARCH_GAIN_H
#define HWNAS_SEARCH_GAIN_H

#include "base/rng.h"
#include "search/pareto.h"
#include "search/objective_scale.h"

typedef struct hwnas_gain {
    const hwnas_front *front;  /* borrowed; may be empty with two or more objectives */
    const hwnas_scale *scales; /* borrowed */
    double reference[HWNAS_MAX_OBJECTIVES];
    size_t n_steps, n_directions;
    double (*steps)[2]; /* two objectives: the staircase within the reference */
    double *directions; /* more: on the unit sphere, n_directions * n_objectives */
    double *draws;      /* standard normal, the same */
    double *best;       /* of the front, by direction */
} hwnas_gain;

/* `reference` bounds the hypervolume; not used with one objective, whose front has a point. */
void hwnas_gain_init(hwnas_gain *out, const hwnas_front *front, const hwnas_scale *scales,
                     const double *reference, hwnas_rng *rng);
void hwnas_gain_done(hwnas_gain *gain);

/* Of a candidate whose objectives have these means and (positive) deviations on their scales. */
double hwnas_gain_expect(const hwnas_gain *gain, const double *means, const double *sds);

#endif
