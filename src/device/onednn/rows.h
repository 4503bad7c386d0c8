/* rows.h: a matrix times a few vectors, as a step; times many, where its weights are packed.
 *
 * With so few, each weight is read from memory for a handful of products, and how fast that goes is
 * all that counts: weights are kept in the order in which they are read. */
#ifndef HWNAS_DEVICE_ONEDNN_ROWS_H
#define HWNAS_DEVICE_ONEDNN_ROWS_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* Whether the group, of the source's graph, is such a product (`linear`, `matmul`, a convolution of
 * single pixels) with nothing behind it that these loops do not know. */
bool hwnas_onednn_rows_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group);
/* As hwnas_onednn_fused_compile(). */
HWNAS_CHECKED hwnas_status hwnas_onednn_rows_compile(hwnas_onednn_step *step,
                                                     const onednn_device *device,
                                                     const hwnas_onednn_source *source,
                                                     const hwnas_onednn_group *group,
                                                     hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_rows;

#endif
