/* skip.h: which measurements a search can do without, as an estimate of the latency says enough.
 */
#ifndef HWNAS_TRIAL_SKIP_H
#define HWNAS_TRIAL_SKIP_H

#include "trial/goal.h"
#include "trial/trial.h"

/* The best that the objectives can be as far as the intervals of estimated values go, or in an
 * aggressive search what they are most likely, minimised; false: one is not known. -INFINITY: an
 * accuracy that a training may still give. */
bool hwnas_trial_best_objectives(double *out, const hwnas_trial *trial, const hwnas_goals *goals);
/* Objectives, limits and targets of the job have values, if only estimated ones; of the metric
 * `but` (NULL: of all) it does not matter. */
bool hwnas_trial_is_known(const hwnas_trial *trial, const hwnas_goals *goals,
                          const hwnas_metric *but);

/* Nothing that a measurement could say, as far as the 95 % intervals of the estimated values go,
 * makes the trial one for the front: a limit is missed by the whole interval, or a member of
 * `front` (NULL: not known), which was measured, is better in every objective than the interval's
 * best end; in an aggressive search, than the estimate itself. */
bool hwnas_trial_cannot_improve(const hwnas_trial *trial, const hwnas_goals *goals,
                                const hwnas_front *front);

/* The accuracy below which a trial misses a limit, or a member of `front` (NULL: not known)
 * dominates it, whatever else is found: what is estimated counts as the best that it can be.
 * -INFINITY: there is none, as its other objectives are not known, or nobody is as good in them. */
double hwnas_trial_accuracy_floor(const hwnas_trial *trial, const hwnas_goals *goals,
                                  const hwnas_front *front);

/* Seconds from which on the median latency on a device, whose value will be called `latency`,
 * decides alone that the trial misses a limit or that a member of `front` (NULL: not known)
 * dominates it; 0: there is no such number, as the job asks for something else that the same run
 * gives. While an accuracy is not known yet it is by a limit alone. */
double hwnas_trial_give_up(const hwnas_trial *trial, const hwnas_goals *goals,
                           const hwnas_front *front, const char *latency);

#endif
