/* reference.h: what a network should give, computed layer by layer without any fusion.
 *
 * Without a device every node goes through its operator's own loops, as the device `ref` does it.
 * With one, the nodes with multiply-accumulates go through that device, each by itself in fp32:
 * faster, and still another way to the result than the network compiled as a whole. */
#ifndef HWNAS_MEASURE_REFERENCE_H
#define HWNAS_MEASURE_REFERENCE_H

#include "measure/buffers.h"
#include "measure/measure.h"

/* What the loops would take for a graph, in seconds: an estimate from its multiply-accumulates and
 * the values that its nodes write. */
double hwnas_reference_seconds(const hwnas_graph *graph);

typedef struct hwnas_reference {
    hwnas_device *device; /* NULL: plain loops */
    double max_seconds;   /* HWNAS_E_TIMEOUT when it takes longer; 0: no limit */
    /* Every value that a node gives is changed at random by up to its rounding error in this
     * precision, and infinite where that has no room for it, so that a second run shows what the
     * precision alone does to the outputs. */
    bool is_rounded;
    hwnas_precision precision;
} hwnas_reference;

/* Runs a graph that is not folded on the buffers' inputs, into their outputs. `options`: progress.
 */
HWNAS_CHECKED hwnas_status hwnas_reference_run(hwnas_buffers *buffers, const hwnas_graph *graph,
                                               const hwnas_reference *how,
                                               const hwnas_measure_options *options);

#endif
