/* importance.h: which channels matter, by what they carry on samples. */
#ifndef HWNAS_INHERIT_IMPORTANCE_H
#define HWNAS_INHERIT_IMPORTANCE_H

#include "derive/base_model.h"
#include "device/device.h"

/* By set: in each layer that reads a channel, the squares of the channel's values times the squares
 * of the weights that it meets, over the mean of the layer's channels; summed over layers. That is
 * how much a layer's outputs lose with it, were channels independent (Sun et al., "A Simple and
 * Effective Pruning Approach for Large Language Models", ICLR 2024, take the root of it by weight).
 * `inputs` as of hwnas_teacher_new(). Yours to free(). Seconds. */
HWNAS_CHECKED hwnas_status hwnas_importance_of_activations(double **out,
                                                           const hwnas_original *original,
                                                           hwnas_device *device,
                                                           const float *const *inputs,
                                                           int64_t n_chunks);

#endif
