/* pixels.h: squeeze and excite: means of images whose channels lie last, and products of each pixel
 * with a factor for each channel. */
#ifndef HWNAS_DEVICE_ONEDNN_PIXELS_H
#define HWNAS_DEVICE_ONEDNN_PIXELS_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Whether a group is one of both, of floats and without operations behind it. */
bool hwnas_onednn_pixels_fit(const hwnas_graph *graph, const hwnas_onednn_group *group,
                             const hwnas_onednn_layout *layouts);
HWNAS_CHECKED hwnas_status hwnas_onednn_pixels_compile(hwnas_onednn_step *step,
                                                       const onednn_device *device,
                                                       const hwnas_graph *graph,
                                                       const hwnas_onednn_group *group,
                                                       hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_pixels;

#endif
