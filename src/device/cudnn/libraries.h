/* libraries.h: CUDA's libraries, opened when they are first needed.
 *
 * Nothing of CUDA is linked, so the module loads on any machine and says what is missing. What was
 * opened stays open. Not for two threads at once. */
#ifndef HWNAS_DEVICE_CUDNN_LIBRARIES_H
#define HWNAS_DEVICE_CUDNN_LIBRARIES_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* One function of a library and where its address goes in a table of them. */
typedef struct hwnas_symbol {
    const char *name; /* NULL ends */
    size_t at;
} hwnas_symbol;

/* Opens `file` by the loader's own rules, then in CUDA's directory. HWNAS_E_UNSUPPORTED says what
 * it would have been good for. */
HWNAS_CHECKED hwnas_status hwnas_library_open(void **out, const char *file, const char *purpose);
/* Fills the table of functions; one that is missing: HWNAS_E_LIBRARY. */
HWNAS_CHECKED hwnas_status hwnas_library_symbols(void *table, const hwnas_symbol *symbols,
                                                 void *library, const char *file);

/* cuDNN's functions for graphs, none of which needs a GPU. */
typedef struct hwnas_cudnn_api {
    __typeof__(&cudnnGetVersion) version;
    __typeof__(&cudnnGetCudartVersion) cudart_version;
    __typeof__(&cudnnGetErrorString) error_string;
    __typeof__(&cudnnGetLastErrorString) last_error;
    __typeof__(&cudnnBackendCreateDescriptor) create;
    __typeof__(&cudnnBackendDestroyDescriptor) destroy;
    __typeof__(&cudnnBackendSetAttribute) set;
    __typeof__(&cudnnBackendGetAttribute) get;
    __typeof__(&cudnnBackendFinalize) finalize;
    __typeof__(&cudnnBackendExecute) execute; /* but this one */
} hwnas_cudnn_api;

/* The driver, libcuda.so.1. With `stand_in`, one of ours that has no GPU, unless the real one is
 * open already; without, never ours. */
HWNAS_CHECKED hwnas_status hwnas_driver_open(void **out, bool stand_in);

enum { HWNAS_LIBRARY_NAME = 32 };

/* NVRTC: that which cuDNN uses, else the newest that is here and that the driver runs kernels of.
 * `file` has room for HWNAS_LIBRARY_NAME characters and becomes its name. */
HWNAS_CHECKED hwnas_status hwnas_nvrtc_open(void **out, char *file);

/* cublasLt, which cuDNN uses; hwnas_cudnn_open() comes first. `file` has room for
 * HWNAS_LIBRARY_NAME characters and becomes its name. */
HWNAS_CHECKED hwnas_status hwnas_cublas_library(void **out, char *file);

/* cuDNN and what it cannot do without (cublasLt, NVRTC). The driver must be open: cuDNN's compiled
 * engines refuse everything without one. HWNAS_E_UNSUPPORTED: it was built for a newer CUDA than
 * the driver knows. */
HWNAS_CHECKED hwnas_status hwnas_cudnn_open(const hwnas_cudnn_api **out);

#endif
