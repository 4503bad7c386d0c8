/* chosen.h: what is to be expected of a network that was chosen for its prediction.
 *
 * Of many predictions the best are those that err to the good side (the winner's curse). A
 * posterior that is right in all it assumes would not mind (Efron, "Tweedie's Formula and Selection
 * Bias", JASA 106, 2011); predictors are not, and how far they are from it was measured. */
#ifndef HWNAS_TRIAL_CHOSEN_H
#define HWNAS_TRIAL_CHOSEN_H

#include "trial/metric.h"
#include "trial/trial.h"

/* By so many of its own standard deviations a prediction on a front is too good: about the
 * mean over six published tables, from 0.0 to 1.0 (benchmarks/optimism, docs/predictors.md). */
#define HWNAS_CHOSEN_DEVIATIONS 0.5

/* NaN: the value is no prediction, or has no deviation; or it is one for which that mean was not
 * measured: with values that were not learned from, or of a precision that the table does not have.
 * Their deviations are mostly doubt that networks have in common, by which none is chosen. Of
 * networks of a size that was not learned from it was: 0.7 and 0.3 on two tables. */
double hwnas_value_when_chosen(const hwnas_value_row *value, const hwnas_metric *metric);

#endif
