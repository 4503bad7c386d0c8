/* describe.h: an operation as cuDNN's descriptors. */
#ifndef HWNAS_DEVICE_CUDNN_DESCRIBE_H
#define HWNAS_DEVICE_CUDNN_DESCRIBE_H

#include "device/cudnn/operation.h"

/* Descriptors and what went wrong while they were made; nothing more is done after that. */
typedef struct hwnas_cudnn_described {
    const hwnas_cudnn_api *api;
    cudnnStatus_t status;
    const char *where; /* what could not be made */
    int n_made;
    cudnnBackendDescriptor_t made[HWNAS_CUDNN_MAX_PORTS + 2 * HWNAS_CUDNN_MAX_OPS + 1];
    cudnnBackendDescriptor_t graph; /* one of them */
} hwnas_cudnn_described;

/* Makes all of them, or says in `status` why not. To be done away with in either case.
 * `is_dynamic`: plans of the graph may use kernels that were compiled for other sizes (quick.h). */
void hwnas_cudnn_describe(hwnas_cudnn_described *out, const hwnas_cudnn_api *api,
                          const hwnas_cudnn_operation *o, bool is_dynamic);
void hwnas_cudnn_described_done(hwnas_cudnn_described *d);

#endif
