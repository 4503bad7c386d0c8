/* layer_times.h: what each layer of a network takes. */
#ifndef HWNAS_PRECISION_LAYER_TIMES_H
#define HWNAS_PRECISION_LAYER_TIMES_H

#include "measure/measure.h"

/* Seconds of each of `n` nodes, found by name, of which `nodes` are the numbers in `named`: those
 * of the step that computes it. A step that computes several of them is shared alike. NaN: no step
 * has it. `graph` need not be folded. */
HWNAS_CHECKED hwnas_status hwnas_layer_times(double *out, hwnas_runner *runner,
                                             const hwnas_graph *graph, const hwnas_graph *named,
                                             const int *nodes, size_t n,
                                             const hwnas_measure_options *options);

#endif
