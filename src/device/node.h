/* node.h: one node of a graph by itself, on a device or through the operator's own loops. */
#ifndef HWNAS_DEVICE_NODE_H
#define HWNAS_DEVICE_NODE_H

#include "device/device.h"

/* One node of a graph, to be run as often as one likes. */
typedef struct hwnas_node_exec {
    const hwnas_graph *graph;
    const hwnas_node *node;
    hwnas_graph *alone; /* NULL: plain loops */
    hwnas_exec *exec;
} hwnas_node_exec;

/* With plain loops where `device` is NULL or lacks the operator. Weights among the operands are
 * borrowed, and the same in each run. */
HWNAS_CHECKED hwnas_status hwnas_node_compile(hwnas_node_exec *out, const hwnas_graph *graph,
                                              const hwnas_node *node, hwnas_device *device,
                                              const float *const *operands);
HWNAS_CHECKED hwnas_status hwnas_node_exec_run(const hwnas_node_exec *exec,
                                               const float *const *operands, float *output);
void hwnas_node_exec_done(hwnas_node_exec *exec);

/* Runs one node of a graph. `operands` has one buffer for each input of the node, weights included;
 * values and shapes are the graph's. `device` NULL, one that lacks the operator, or a node without
 * multiply-accumulates: plain loops. */
HWNAS_CHECKED hwnas_status hwnas_node_run(const hwnas_graph *graph, const hwnas_node *node,
                                          hwnas_device *device, const float *const *operands,
                                          float *output);

#endif
