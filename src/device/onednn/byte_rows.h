/* byte_rows.h: a matrix of bytes times a few vectors of bytes, as a step; see rows.h. */
#ifndef HWNAS_DEVICE_ONEDNN_BYTE_ROWS_H
#define HWNAS_DEVICE_ONEDNN_BYTE_ROWS_H

#include "device/onednn/groups.h"
#include "device/onednn/steps.h"

/* Whether the group is a product of bytes with few vectors and makes floats, with nothing behind it
 * that these loops do not know. */
bool hwnas_onednn_byte_rows_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group);
/* As hwnas_onednn_fused_compile(). */
HWNAS_CHECKED hwnas_status hwnas_onednn_byte_rows_compile(hwnas_onednn_step *step,
                                                          const hwnas_onednn_source *source,
                                                          const hwnas_onednn_group *group,
                                                          hwnas_arena *arena);
extern const hwnas_onednn_kind hwnas_onednn_byte_rows;

#endif
