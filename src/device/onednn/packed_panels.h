/* packed_panels.h: products of many vectors with weights of 4 or 8 bits (packed_rows.h): a panel of
 * the matrix at a time becomes floats, which the second cache holds, and oneDNN multiplies with
 * it. The weights stay packed. */
#ifndef HWNAS_DEVICE_ONEDNN_PACKED_PANELS_H
#define HWNAS_DEVICE_ONEDNN_PACKED_PANELS_H

#include "device/onednn/packed_rows.h"
#include "device/onednn/onednn.h"

enum { HWNAS_PANEL = 64 }; /* results of a panel, at most */

typedef struct hwnas_packed_panels hwnas_packed_panels;

/* For `n_vectors` vectors of `n_in` values and `n_out` results each; asks for its share of the
 * executable's scratch memory. HWNAS_E_UNSUPPORTED: oneDNN has reference code alone for it. */
HWNAS_CHECKED hwnas_status hwnas_packed_panels_new(hwnas_packed_panels **out,
                                                   const onednn_device *device,
                                                   const hwnas_packed_rows *rows, int64_t n_vectors,
                                                   int64_t n_in, int64_t n_out, const char *name);
void hwnas_packed_panels_free(hwnas_packed_panels *panels);
/* Results `first` to the end of their panel, of all vectors, which lie one behind the other.
 * `first` is a multiple of HWNAS_PANEL. Threads with different numbers, from 0 to below the
 * device's, may do so at the same time. */
dnnl_status_t hwnas_packed_panels_multiply(float *out, const hwnas_packed_panels *panels,
                                           const hwnas_packed_rows *rows, const float *in,
                                           int64_t first, int thread);

#endif
