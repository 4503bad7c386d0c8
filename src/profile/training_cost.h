/* training_cost.h: what a whole training takes, from the time of one of its steps. */
#ifndef HWNAS_PROFILE_TRAINING_COST_H
#define HWNAS_PROFILE_TRAINING_COST_H

#include "profile/prices.h"
#include "profile/profile.h"

/* The training that is asked for: an epoch has a step for each batch, and one for the samples that
 * are left over, which counts as a whole one. `price`: of an hour of the machine, whichever of its
 * cores compute; NULL: not known, money is NaN. A row that was not measured, or is no training
 * step, costs NaN, and so does a plan without samples. */
hwnas_training_cost hwnas_training_cost_of(const hwnas_training_plan *plan,
                                           const hwnas_profile_row *row, const hwnas_price *price);

/* Fills in the costs of all rows, and marks the one of each network and device that is over
 * soonest, which is the cheapest of them. Keeps the plan in the profile; `prices` (NULL: none) has
 * each device that rows have. */
void hwnas_training_costs_fill(hwnas_profile *profile, const hwnas_training_plan *plan,
                               const hwnas_prices *prices);

/* HWNAS_E_USAGE, with a hint, for a plan that cannot be: epochs or prices without samples, figures
 * below 0, a batch of the `n` that has more samples than there are. */
HWNAS_CHECKED hwnas_status hwnas_training_plan_check(const hwnas_training_plan *plan,
                                                     const int *batches, int n);

#endif
