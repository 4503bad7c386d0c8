/* baseline_measure.h: measures again what a recorded profile holds. */
#ifndef HWNAS_PROFILE_BASELINE_MEASURE_H
#define HWNAS_PROFILE_BASELINE_MEASURE_H

#include "profile/baseline.h"
#include "profile/sweep.h"

/* Measures each row of `baseline->before` again, of all models or of those of `asked`, which has
 * the time for each and what stops it too. `baseline` comes with `before` and `tolerance` and gets
 * the judged rows, `now` the measurements; both are to be released by the caller. After an
 * interruption the rows before it stay. */
HWNAS_CHECKED hwnas_status hwnas_baseline_measure(hwnas_baseline *baseline, hwnas_profile *now,
                                                  const hwnas_sweep *asked);
void hwnas_baseline_done(hwnas_baseline *baseline);

/* A network that got slower, twice in a row, is HWNAS_E_SLOWER; else one that could not be measured
 * is its status. */
HWNAS_CHECKED hwnas_status hwnas_baseline_conclude(const hwnas_baseline *baseline);

#endif
