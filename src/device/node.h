/* node.h: one node of a graph by itself, on a device or through the operator's own loops. */
#ifndef HWNAS_DEVICE_NODE_H
#define HWNAS_DEVICE_NODE_H

#include "device/device.h"

/* Runs one node of a graph. `operands` has one buffer for each input of the node, weights included;
 * values and shapes are the graph's. `device` NULL, one that lacks the operator, or a node without
 * multiply-accumulates: plain loops. */
HWNAS_CHECKED hwnas_status hwnas_node_run(const hwnas_graph *graph, const hwnas_node *node,
                                          hwnas_device *device, const float *const *operands,
                                          float *output);

#endif
