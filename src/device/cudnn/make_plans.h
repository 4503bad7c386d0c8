/* make_plans.h: the plans of a whole network at once. */
#ifndef HWNAS_DEVICE_CUDNN_MAKE_PLANS_H
#define HWNAS_DEVICE_CUDNN_MAKE_PLANS_H

#include "device/cudnn/cudnn_steps.h"

/* Loads or makes, by several threads (device/helpers.h), what the steps' operations want and is not
 * known yet: a plan whose kernel cuDNN compiles takes a core up to a second. What is refused is
 * told when the step is compiled. Does nothing where plans are quick, which share kernels, or are
 * timed on the GPU. */
void hwnas_cudnn_make_plans(const hwnas_cudnn_net *net);

#endif
