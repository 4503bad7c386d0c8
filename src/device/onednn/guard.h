/* guard.h: what oneDNN's graphs fuse and compute wrongly, or cannot compute. */
#ifndef HWNAS_DEVICE_ONEDNN_GUARD_H
#define HWNAS_DEVICE_ONEDNN_GUARD_H

#include "device/onednn/source.h"
#include "graph/fusion.h"

/* By tensor: whether what makes it must not be fused with what reads it. Nodes that are in no group
 * of `plan` are left to oneDNN. Yours to free(). */
bool *hwnas_onednn_guard(const hwnas_onednn_source *source, const hwnas_fusion *plan);

#endif
