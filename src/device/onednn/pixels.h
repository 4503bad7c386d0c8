/* pixels.h: squeeze and excite: means of images whose channels lie last, and products of each pixel
 * with a factor for each channel. */
#ifndef HWNAS_DEVICE_ONEDNN_PIXELS_H
#define HWNAS_DEVICE_ONEDNN_PIXELS_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Whether a group is one of both, and has floats and nothing behind it, or bytes: a product of
 * bytes and factors of floats that becomes bytes, a mean of bytes that stays floats. */
bool hwnas_onednn_pixels_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                             const hwnas_onednn_layout *layouts);
HWNAS_CHECKED hwnas_status hwnas_onednn_pixels_compile(hwnas_onednn_step *step,
                                                       const onednn_device *device,
                                                       const hwnas_onednn_source *source,
                                                       const hwnas_onednn_group *group,
                                                       hwnas_arena *arena);
/* Whether a node is a mean that these loops take of the bytes behind its input. */
bool hwnas_onednn_is_mean_of_bytes(const hwnas_onednn_source *source,
                                   const hwnas_onednn_layout *layouts, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_pixels;

#endif
