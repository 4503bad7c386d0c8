/* resolution.h: the change `resolution`: images that are made smaller before a model sees them. */
#ifndef HWNAS_DERIVE_RESOLUTION_H
#define HWNAS_DERIVE_RESOLUTION_H

#include "derive/change.h"
#include "graph/rewrite.h"

void hwnas_resolution_list(hwnas_change_options *to, const hwnas_original *original);
hwnas_status hwnas_resolution_apply(hwnas_derivation *d, const hwnas_model_change *change,
                                    const hwnas_value *value);

/* What came of building a network: HWNAS_E_INPUT at the place of its resolution where the model
 * does not compute its outputs of so small images. */
HWNAS_CHECKED hwnas_status hwnas_resolution_check(hwnas_status status,
                                                  const hwnas_derivation *derivation,
                                                  const hwnas_graph *graph);

/* Adds what brings the first input to another height and width, and takes its place: bilinear
 * interpolation, over as many pixels as become one, as PyTorch's interpolate() with antialias. It
 * is linear along each side, so it is two products with constants: whoever runs the network gives
 * it images of the size that the model has. */
HWNAS_CHECKED hwnas_status hwnas_resolution_add(hwnas_rewrite *r, const int64_t image[2]);

#endif
