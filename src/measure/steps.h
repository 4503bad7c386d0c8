/* steps.h: the time of each step of a run, in this process; measure.h has the types. */
#ifndef HWNAS_MEASURE_STEPS_H
#define HWNAS_MEASURE_STEPS_H

#include "measure/machine.h"

/* Times the steps of an executable of `graph` (folded), of which `nodes` are the indices. A device
 * that does not tell its steps: none. `out` is to be done with. */
HWNAS_CHECKED hwnas_status hwnas_measure_steps(hwnas_step_times *out, hwnas_exec *exec,
                                               const hwnas_graph *graph,
                                               const hwnas_measure_options *options);
/* The same on a given machine. */
HWNAS_CHECKED hwnas_status hwnas_measure_steps_on(hwnas_step_times *out, hwnas_exec *exec,
                                                  const hwnas_graph *graph,
                                                  const hwnas_measure_options *options,
                                                  hwnas_machine *machine);

#endif
