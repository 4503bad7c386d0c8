/* walk.h: a network on many samples, node by node, with all that lies between. */
#ifndef HWNAS_INHERIT_WALK_H
#define HWNAS_INHERIT_WALK_H

#include "device/device.h"
#include "graph/op.h"

typedef struct hwnas_walker {
    const hwnas_graph *graph;
    hwnas_device *device;
    int64_t n_chunks;           /* the samples are so many of the graph's batches */
    const float *const *inputs; /* by input of the graph: of all samples, one behind the other */
    void *context;
    /* Before a node runs. `values` by tensor: what is there already, of all samples; weights have
     * theirs. */
    hwnas_status (*before)(void *context, int node, float *const *values);
    /* (optional) After it. */
    hwnas_status (*after)(void *context, int node, float *const *values);
} hwnas_walker;

/* Runs all nodes that an output needs; values go when their last reader has run. Weights are read
 * anew for each node, so `before` may change them. */
HWNAS_CHECKED hwnas_status hwnas_inherit_walk(const hwnas_walker *walker);

#endif
