/* buffers.h: what an executable is run on while it is measured: random inputs, room for outputs. */
#ifndef HWNAS_MEASURE_BUFFERS_H
#define HWNAS_MEASURE_BUFFERS_H

#include "graph/graph.h"

typedef struct hwnas_buffers {
    size_t n_inputs, n_outputs;
    float **inputs, **outputs; /* one for each of the graph's */
} hwnas_buffers;

/* Inputs are a function of the graph's seed. `out` is to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_buffers_open(hwnas_buffers *out, const hwnas_graph *graph);
void hwnas_buffers_done(hwnas_buffers *buffers);

#endif
