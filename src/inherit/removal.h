/* removal.h: which channels matter, by what the others cannot make up for. */
#ifndef HWNAS_INHERIT_REMOVAL_H
#define HWNAS_INHERIT_REMOVAL_H

#include "derive/base_model.h"
#include "device/device.h"

/* By set: channels of a group are taken out one by one, each time the one with which the layers
 * that read it lose least once their other weights have made up for it, and the later one goes the
 * more important it is. What a layer loses is known in closed form, of the products of its inputs
 * (Hassibi and Stork, "Second Order Derivatives for Network Pruning: Optimal Brain Surgeon", NIPS
 * 1992; of a block of weights as Frantar and Alistarh, "Optimal Brain Compression", NeurIPS 2022),
 * and counts relative to how much its outputs vary. Channels that no layer reads are ranked by
 * hwnas_importance_of_activations(). `inputs` as of hwnas_teacher_new(). Yours to free(). Seconds.
 */
HWNAS_CHECKED hwnas_status hwnas_importance_by_removal(double **out, const hwnas_original *original,
                                                       hwnas_device *device,
                                                       const float *const *inputs,
                                                       int64_t n_chunks);

#endif
