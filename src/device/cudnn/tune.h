/* tune.h: how long a plan takes. */
#ifndef HWNAS_DEVICE_CUDNN_TUNE_H
#define HWNAS_DEVICE_CUDNN_TUNE_H

#include "device/cudnn/operation.h"

/* Seconds that a run of the plan takes on the GPU, the mean of some, on memory that is taken for it
 * and given back; infinite where it cannot be told. */
double hwnas_cuda_time_plan(hwnas_cuda_device *device, const hwnas_cudnn_operation *o,
                            cudnnBackendDescriptor_t plan, size_t workspace);

#endif
