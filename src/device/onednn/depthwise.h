/* depthwise.h: depthwise convolutions of bytes, by loops of ours where the processor has no
 * products of bytes that end in 32 bits (VNNI). There oneDNN's take as long as those of floats. */
#ifndef HWNAS_DEVICE_ONEDNN_DEPTHWISE_H
#define HWNAS_DEVICE_ONEDNN_DEPTHWISE_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Whether a group is one: of images of at least 32 channels that lie last, with nothing behind it
 * but functions of each value and the quantisation at its end. */
bool hwnas_onednn_depthwise_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                 const hwnas_onednn_layout *layouts);
HWNAS_CHECKED hwnas_status hwnas_onednn_depthwise_compile(hwnas_onednn_step *step,
                                                          const hwnas_onednn_source *source,
                                                          const hwnas_onednn_group *group,
                                                          hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_depthwise;

#endif
