/* choose_plan.h: which plan cuDNN makes of an operation, and what it says of it. */
#ifndef HWNAS_DEVICE_CUDNN_CHOOSE_PLAN_H
#define HWNAS_DEVICE_CUDNN_CHOOSE_PLAN_H

#include "device/cudnn/operation.h"
#include "device/cudnn/plans.h"

/* Makes the plan, or refuses it with the reason (is_refused, why). Of a quick device it takes what
 * is ready, so that these plans are what they are without it, then what it can share. A GPU's
 * properties must be known (device->properties). One thread at a time. */
void hwnas_cudnn_choose(hwnas_cudnn_plan *plan, hwnas_cuda_device *device,
                        const hwnas_cudnn_operation *o);

/* By an engine that uses cublasLt. These use tensor cores, round to tf32 too, and do not say so
 * (seen on an H100, cuDNN 9.19). A GPU that is described and not here is never offered one. */
bool hwnas_cudnn_is_by_cublaslt(const hwnas_cudnn_plan *plan);
/* Whether factors in fp32 are rounded before they are multiplied. */
bool hwnas_cudnn_rounds_factors(const hwnas_cudnn_plan *plan);

/* The reasons that cuDNN gave since it was last asked; each of them once, without its chain of
 * calls. Yours to free(). */
char *hwnas_cudnn_reasons(const hwnas_cudnn_api *api);

/* Makes device->properties, for which plans are made, of device->gpu's description. */
HWNAS_CHECKED hwnas_status hwnas_cudnn_describe_gpu(hwnas_cuda_device *device);

#endif
