/* indicators.h: how good a front is, in a number, and where it bends. */
#ifndef HWNAS_STUDY_INDICATORS_H
#define HWNAS_STUDY_INDICATORS_H

#include "trial/judge.h"

/* In the objectives' own directions and SI units. */
typedef struct hwnas_indicators {
    int n_objectives; /* 0: the front is empty */
    const hwnas_goal *goals[HWNAS_MAX_OBJECTIVES];
    double best[HWNAS_MAX_OBJECTIVES];  /* of the front */
    double worst[HWNAS_MAX_OBJECTIVES]; /* of the feasible trials: the reference */
    double hypervolume;                 /* up to the reference, in the product of the units */
    double share;       /* of the box between `best` and `worst`; NaN: it has no extent */
    double share_error; /* standard error of that; 0: exact */
    /* Index of the trial that is nearest to `best` by the sum of the objectives, each from 0 at the
     * best of the front to 1 at its worst: with two objectives the one that lies farthest from the
     * line through the ends (Das, "On Characterizing the Knee of the Pareto Curve Based on
     * Normal-Boundary Intersection", 1999), with more the least Manhattan distance (Chiu, Yen and
     * Juan, IEEE TEVC 20(6), 2016). -1: fewer than three networks, or one objective. */
    long knee;
} hwnas_indicators;

/* Of front number f: `front` has the indices of its `n_front` trials. The goals are borrowed. */
void hwnas_indicators_find(hwnas_indicators *out, const hwnas_trial *trials, size_t n,
                           const size_t *front, size_t n_front, const hwnas_goals *goals, int f);

#endif
