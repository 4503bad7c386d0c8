/* fused.h: a group of nodes as one primitive, as a step. */
#ifndef HWNAS_DEVICE_ONEDNN_FUSED_H
#define HWNAS_DEVICE_ONEDNN_FUSED_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Compiles a group; step->name is set. Weights are brought into oneDNN's layout and kept in the
 * step, which reads the others. HWNAS_E_UNSUPPORTED where oneDNN has only slow code for it. Ports
 * are allocated in `arena`. */
HWNAS_CHECKED hwnas_status hwnas_onednn_fused_compile(
    hwnas_onednn_step *step, const onednn_device *device, const hwnas_onednn_source *source,
    const hwnas_onednn_group *group, const hwnas_onednn_layout *layouts, hwnas_arena *arena);
/* One primitive with what is done to its results. */
extern const hwnas_onednn_kind hwnas_onednn_fused;

#endif
