/* byte_convs.h: convolutions of bytes, by loops of ours where the processor has no products of
 * bytes that end in 32 bits (VNNI). There they take 0.5 to 0.95 of the time of oneDNN's. */
#ifndef HWNAS_DEVICE_ONEDNN_BYTE_CONVS_H
#define HWNAS_DEVICE_ONEDNN_BYTE_CONVS_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Whether a group is one whose kernels reach over pixels that lie side by side, and whose weights
 * are so small that sums of two products fit 16 bits. */
bool hwnas_onednn_byte_conv_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                 const hwnas_onednn_layout *layouts);
HWNAS_CHECKED hwnas_status hwnas_onednn_byte_conv_compile(hwnas_onednn_step *step,
                                                          const onednn_device *device,
                                                          const hwnas_onednn_source *source,
                                                          const hwnas_onednn_group *group,
                                                          hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_byte_conv;

#endif
