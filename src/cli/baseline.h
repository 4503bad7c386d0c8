/* baseline.h: `hwnas compare --baseline FILE`: measures again what a recorded profile holds. */
#ifndef HWNAS_CLI_BASELINE_H
#define HWNAS_CLI_BASELINE_H

#include "cli/sweep.h"

/* Measures each row of `recorded` again, of all models or of those of `asked`, which has the time
 * for each and what stops it too, and prints the judgements. A network that got slower, twice in a
 * row, is HWNAS_E_SLOWER; else one that could not be measured is its status. */
HWNAS_CHECKED hwnas_status hwnas_baseline_run(const hwnas_profile *recorded,
                                              const hwnas_sweep *asked, double tolerance,
                                              bool as_json);

#endif
