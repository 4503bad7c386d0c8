/* cublas.h: products of matrices in exact fp32, by cuBLAS.
 *
 * Engines of cuDNN's for products round factors to tf32, all of them; its convolutions need not,
 * and are slow as products (an H200 multiplied with 11 TFLOP/s of the 67 on its data sheet). */
#ifndef HWNAS_DEVICE_CUDNN_CUBLAS_H
#define HWNAS_DEVICE_CUDNN_CUBLAS_H

#include <cublasLt.h>

#include "device/cudnn/operation.h"

typedef struct hwnas_cublas_api {
    __typeof__(&cublasLtCreate) create;
    __typeof__(&cublasLtDestroy) destroy;
    __typeof__(&cublasLtGetStatusString) error_string;
    __typeof__(&cublasLtMatmulDescCreate) create_product;
    __typeof__(&cublasLtMatmulDescDestroy) destroy_product;
    __typeof__(&cublasLtMatmulDescSetAttribute) set_product;
    __typeof__(&cublasLtMatrixLayoutCreate) create_layout;
    __typeof__(&cublasLtMatrixLayoutDestroy) destroy_layout;
    __typeof__(&cublasLtMatrixLayoutSetAttribute) set_layout;
    __typeof__(&cublasLtMatmulPreferenceCreate) create_preference;
    __typeof__(&cublasLtMatmulPreferenceDestroy) destroy_preference;
    __typeof__(&cublasLtMatmulPreferenceSetAttribute) set_preference;
    __typeof__(&cublasLtMatmulAlgoGetHeuristic) rank_algorithms;
    __typeof__(&cublasLtMatmul) run;
} hwnas_cublas_api;

/* The library that cuDNN uses, which must be open. Not for two threads at once. */
HWNAS_CHECKED hwnas_status hwnas_cublas_open(const hwnas_cublas_api **out);

/* Whether the operation is for a step of the kind hwnas_cublas: it begins with an exact product. */
bool hwnas_cublas_takes(const hwnas_cudnn_operation *o);
/* Whether such an operation is one product of cuBLAS's: a number times it, plus a matrix of the
 * result's shape, plus a bias, and a ReLU, each of them or not. */
bool hwnas_cublas_can(const hwnas_cudnn_operation *o);

#endif
