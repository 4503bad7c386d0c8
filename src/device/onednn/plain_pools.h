/* plain_pools.h: pools of plain images as steps of loops of ours. oneDNN has fast code for channels
 * last alone, and the slices of a volume, which are its channels, would go there and back. */
#ifndef HWNAS_DEVICE_ONEDNN_PLAIN_POOLS_H
#define HWNAS_DEVICE_ONEDNN_PLAIN_POOLS_H

#include "device/onednn/onednn_steps.h"

/* Whether what a pool of images reads is a reshape of something else. */
bool hwnas_onednn_is_plain_pool(const hwnas_graph *graph, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_plain_pools;

#endif
