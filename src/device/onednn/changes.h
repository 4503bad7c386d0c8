/* changes.h: bytes made of floats, as a step: the image that comes in, above all, whose few
 * channels become the last dimension on the way. */
#ifndef HWNAS_DEVICE_ONEDNN_CHANGES_H
#define HWNAS_DEVICE_ONEDNN_CHANGES_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Whether the group is a quantisation whose values keep their order, or go from a plain image of
 * few channels into one with its channels last. */
bool hwnas_onednn_change_fits(const hwnas_graph *graph, const hwnas_onednn_group *group,
                              const hwnas_onednn_layout *layouts);
/* As hwnas_onednn_fused_compile(). */
HWNAS_CHECKED hwnas_status hwnas_onednn_change_compile(hwnas_onednn_step *step,
                                                       const hwnas_onednn_source *source,
                                                       const hwnas_onednn_group *group,
                                                       const hwnas_onednn_layout *layouts,
                                                       hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_changes;

#endif
