/* reduces.h: sums, means, norms, products and extremes over some dimensions, as steps of loops of
 * ours. */
#ifndef HWNAS_DEVICE_ONEDNN_REDUCES_H
#define HWNAS_DEVICE_ONEDNN_REDUCES_H

#include "device/onednn/onednn_steps.h"

/* Sums of whole numbers, which floats may round, are left to the operator's own loops. */
bool hwnas_onednn_is_reduce(const hwnas_graph *graph, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_reduces;

#endif
