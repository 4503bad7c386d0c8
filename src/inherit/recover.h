/* recover.h: weights of a smaller network by what the original computes.
 *
 * A network that lost channels computes something else, layer by layer. Its layers are linear in
 * their weights, so the best weights for what each now reads are known in closed form: least
 * squares against the original's values on samples (He, Zhang and Sun, "Channel Pruning for
 * Accelerating Very Deep Neural Networks", ICCV 2017, equation 4). Layers are recovered one after
 * the other, each on what those before it make with their new weights, so errors do not add up. No
 * gradient is needed, and no label. */
#ifndef HWNAS_INHERIT_RECOVER_H
#define HWNAS_INHERIT_RECOVER_H

#include "derive/base_model.h"
#include "device/device.h"

/* What an original makes of some samples, at some of its positions. */
typedef struct hwnas_teacher hwnas_teacher;

/* `inputs`: by input, `n_chunks` batches of the original, one behind the other. The original, the
 * inputs and the device are borrowed. Seconds. */
HWNAS_CHECKED hwnas_status hwnas_teacher_new(hwnas_teacher **out, const hwnas_original *original,
                                             hwnas_device *device, const float *const *inputs,
                                             int64_t n_chunks);
void hwnas_teacher_free(hwnas_teacher *teacher); /* accepts NULL */

/* Changes, in place, the weights of a network that hwnas_derivation_build() made with weights. Of
 * convolutions, fully connected layers and their biases; what a layer without a rule has stays.
 * Seconds. */
HWNAS_CHECKED hwnas_status hwnas_recover(hwnas_graph *graph, const hwnas_derivation *derivation,
                                         const hwnas_teacher *teacher);

#endif
