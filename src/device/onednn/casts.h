/* casts.h: a graph that is computed in bf16 or f16. */
#ifndef HWNAS_DEVICE_ONEDNN_CASTS_H
#define HWNAS_DEVICE_ONEDNN_CASTS_H

#include "device/onednn/source.h"

/* A copy of `from` in which casts surround what is computed in `precision`: bf16 or f16. In `from`,
 * bytes that oneDNN cannot multiply with floats become floats. `is_emulated`: the processor has no
 * instructions for the precision. */
HWNAS_CHECKED hwnas_status hwnas_onednn_cast(hwnas_onednn_source *out, hwnas_onednn_source *from,
                                             hwnas_precision precision, bool is_emulated);

#endif
