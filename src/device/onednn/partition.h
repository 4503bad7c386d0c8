/* partition.h: what oneDNN runs as one fused piece, as a step. */
#ifndef HWNAS_DEVICE_ONEDNN_PARTITION_H
#define HWNAS_DEVICE_ONEDNN_PARTITION_H

#include "device/onednn/groups.h"
#include "device/onednn/source.h"
#include "device/onednn/onednn_steps.h"

/* Compiles a partition that is supported; step->name is set. Its inputs are laid out as
 * `described` says, by tensor. Outputs are laid out as `layouts` says, and described then. Ports
 * are allocated in `arena`. */
HWNAS_CHECKED hwnas_status hwnas_onednn_partition_compile(
    hwnas_onednn_step *step, const onednn_device *device, dnnl_graph_partition_t partition,
    dnnl_graph_logical_tensor_t *described, const hwnas_onednn_layout *layouts,
    const hwnas_onednn_source *source, hwnas_arena *arena);

#endif
