/* streams.h: several copies of a network at the same time, for the throughput that a server of many
 * requests would get: each in a process of its own on cores of its own, all in one window of time.
 */
#ifndef HWNAS_MEASURE_STREAMS_H
#define HWNAS_MEASURE_STREAMS_H

#include "measure/measure.h"

typedef struct hwnas_streams hwnas_streams;

/* Copies of `threads` threads (0: as many as each finds cores). More than there are cores for is
 * HWNAS_E_UNSUPPORTED. */
HWNAS_CHECKED hwnas_status hwnas_streams_open(hwnas_streams **out, const char *device, int threads,
                                              int streams);
void hwnas_streams_close(hwnas_streams *streams); /* accepts NULL */

/* What the device of the first copy says of itself. */
HWNAS_CHECKED hwnas_status hwnas_streams_describe(hwnas_device_info *out, hwnas_streams *streams);

/* The runner of the first copy, for what is asked while none of them measures. Borrowed. */
hwnas_runner *hwnas_streams_runner(hwnas_streams *streams);

/* Compiles the graph in each, and when all are ready lets them run for options->max_seconds, longer
 * only when an inference takes so long. `out`: latencies under that load, over the samples of all
 * copies; `interval` ends nothing. `runs_per_second` is of all copies together. A copy that fails
 * fails the measurement; the next call works again. */
HWNAS_CHECKED hwnas_status hwnas_streams_measure(hwnas_measurement *out, double *runs_per_second,
                                                 hwnas_streams *streams, const hwnas_graph *graph,
                                                 const hwnas_measure_options *options);

#endif
