/* layers.h: the parts of a network as it ran on a device: what each took, what it had to compute
 * and to move, and how near it came to what the device can do. */
#ifndef HWNAS_PROFILE_LAYERS_H
#define HWNAS_PROFILE_LAYERS_H

#include <jansson.h>

#include "base/mem.h"
#include "measure/roofline.h"

/* What a part cannot be faster than. */
typedef enum hwnas_bound {
    HWNAS_BOUND_NONE, /* nothing to compute, nothing to move; or the device's limits are unknown */
    HWNAS_BOUND_COMPUTE,
    HWNAS_BOUND_CACHE,  /* moving values that fit into the last cache */
    HWNAS_BOUND_MEMORY, /* moving values that do not */
} hwnas_bound;

/* One step of the device: one or more nodes of the network. */
typedef struct hwnas_layer {
    const char *name; /* "layer1/0/{conv1 relu1}": its nodes, what they share in front; of many the
                         first and the last; "(conversion)" of none */
    const char *ops;  /* "conv relu"; of many how many of each: "13 conv 12 relu" */
    const char *how;  /* what computes it */
    size_t n_nodes;
    const char *const *nodes; /* names, in the order of the network */
    size_t position;          /* in the run, from 0 */
    hwnas_timing time;
    int64_t macs;
    double bytes;         /* read and written: inputs, outputs and weights, in the precision; none
                             where values only change their shape */
    double weight_bytes;  /* of these */
    double compute_seconds; /* that its products take at best; 0: unknown */
    double least_seconds;   /* that the roofline allows; NaN: unknown */
    hwnas_bound bound;
} hwnas_layer;

typedef struct hwnas_layers {
    size_t n, n_samples;
    hwnas_layer *layers; /* the slowest first */
    hwnas_timing whole;  /* a run as deployed, in turns with runs step by step */
    double sum;          /* of the layers' medians, in seconds */
    hwnas_timing ratio;  /* of a run step by step to the run as deployed beside it */
    double mark;         /* seconds taken off each layer for the event behind it; NaN: not told */
    bool has_roofline;
    hwnas_roofline roofline;
} hwnas_layers;

const char *hwnas_bound_name(hwnas_bound bound); /* "compute"; "-" for none */

/* Layers of a run of `folded` (hwnas_graph_fold); `roofline` NULL: not known. Everything is in the
 * arena. */
hwnas_layers *hwnas_layers_new(hwnas_arena *arena, const hwnas_graph *folded,
                               hwnas_precision precision, const hwnas_step_times *times,
                               const hwnas_roofline *roofline);
json_t *hwnas_layers_json(const hwnas_layers *layers); /* a new reference; docs/json.md */
/* The same back, without the nodes and of the roofline the computing and the memory; what is
 * missing is NaN, 0 or "". Everything is in the arena. */
hwnas_layers *hwnas_layers_of_json(hwnas_arena *arena, const json_t *json);

#endif
