/* engine.h: plans of cuDNN's for operations. */
#ifndef HWNAS_DEVICE_CUDNN_ENGINE_H
#define HWNAS_DEVICE_CUDNN_ENGINE_H

#include "device/cudnn/operation.h"
#include "device/cudnn/plans.h"

/* The plan of an operation: remembered, read from disk, or made. When no engine takes it, the plan
 * says so (is_refused), which is not a failure. Ahead, while another network runs, that may be for
 * want of memory: it is HWNAS_E_INTERRUPTED, and nothing is remembered. A GPU's properties must be
 * known (device->properties). */
HWNAS_CHECKED hwnas_status hwnas_cudnn_plan_get(const hwnas_cudnn_plan **out,
                                                hwnas_cuda_device *device,
                                                const hwnas_cudnn_operation *o, bool is_ahead);

/* The same by one of several threads, for an operation that no other of them makes; the caller of
 * them all has begun (hwnas_cudnn_plans_begin()). Takes the signature over. */
void hwnas_cudnn_plan_make(hwnas_cuda_device *device, const hwnas_cudnn_operation *o,
                           char *signature);

/* The pointers of a run: of ports that lie in memory `places` has the addresses, by port; numbers
 * are read from the operation. Yours to destroy. */
cudnnStatus_t hwnas_cudnn_pack(cudnnBackendDescriptor_t *out, const hwnas_cudnn_api *api,
                               const hwnas_cudnn_operation *o, char *const *places,
                               char *workspace);

/* "cuDNN", or what makes the plan a slow one. Static. */
#define HWNAS_CUDNN_NO_TENSOR_CORES "cuDNN, no tensor cores"
#define HWNAS_CUDNN_GENERIC "cuDNN, generic engine"
const char *hwnas_cudnn_engine_words(const hwnas_cudnn_operation *o);

#endif
