/* train_exec.h: a network that is trained on this device. */
#ifndef HWNAS_DEVICE_ONEDNN_TRAINING_TRAIN_EXEC_H
#define HWNAS_DEVICE_ONEDNN_TRAINING_TRAIN_EXEC_H

#include "device/onednn/onednn.h"

/* A run of the executable is a training step: forward, loss, backward, update of the weights.
 * Inputs are those of the graph, targets are made up, outputs are left as they are. */
HWNAS_CHECKED hwnas_status hwnas_onednn_compile_training(hwnas_exec **out, hwnas_device *base,
                                                         const hwnas_graph *graph,
                                                         const hwnas_exec_options *options);

/* What a step has left, for tests: the loss, and of a parameter, which is a tensor of the graph,
 * the weight and what the optimizer has added up of its gradients: after the first step of SGD the
 * gradient itself. HWNAS_E_NOT_FOUND: nothing is learnt there. */
HWNAS_CHECKED hwnas_status hwnas_onednn_training_loss(float *out, const hwnas_exec *exec);
HWNAS_CHECKED hwnas_status hwnas_onednn_training_weight(float *out, const hwnas_exec *exec,
                                                        int tensor);
HWNAS_CHECKED hwnas_status hwnas_onednn_training_momentum(float *out, const hwnas_exec *exec,
                                                          int tensor);

#endif
