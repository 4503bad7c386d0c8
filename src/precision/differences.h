/* differences.h: where two computations of one network begin to differ, node by node. */
#ifndef HWNAS_PRECISION_DIFFERENCES_H
#define HWNAS_PRECISION_DIFFERENCES_H

#include "device/device.h"
#include "graph/graph.h"
#include "precision/output_error.h"

/* A network, and by what it is computed. All is borrowed. */
typedef struct hwnas_side {
    const char *name; /* for messages */
    const hwnas_graph *graph;
    hwnas_device *device;
    hwnas_precision precision;
} hwnas_side;

/* A tensor that both have. */
typedef struct hwnas_difference {
    const char *name;   /* of the output, or of the node, in the first network; lives there */
    const hwnas_op *op; /* that gives it; NULL: an input that is handed on */
    hwnas_shape_text shape;
    double value, difference; /* the largest magnitude in the first, and of the differences */
    hwnas_output_error error;
} hwnas_difference;

typedef struct hwnas_differences {
    size_t n_outputs, n_nodes;
    hwnas_difference *outputs, *nodes; /* in the order of the first network */
    size_t n_others[2]; /* nodes of each that have none of the same name and shape in the other */
} hwnas_differences;

/* Runs both on `n_samples` times the first network's inputs, one behind the other. Inputs and
 * outputs belong together by their names, and those whose names the other has not by their order;
 * other shapes are HWNAS_E_INPUT. Outputs are of the networks as they are deployed, nodes of a
 * second run, in which each is an output too, so that less is fused. All nodes' tensors are held at
 * a time. `stop` as hwnas_stop(), NULL: none. `out` is to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_differences_find(hwnas_differences *out, const hwnas_side sides[2],
                                                  size_t n_samples, const float *samples,
                                                  const volatile sig_atomic_t *stop);
void hwnas_differences_done(hwnas_differences *differences);

#endif
