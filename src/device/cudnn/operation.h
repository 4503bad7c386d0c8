/* operation.h: what one plan of cuDNN's computes, as data.
 *
 * A few operators on ports. A port is a tensor of the net seen with the rank that cuDNN wants there
 * (convolutions 4, products 3), a value between two operators that never reaches memory, or a
 * number. Made by lower_*.c without cuDNN; engine.c has it compiled. */
#ifndef HWNAS_DEVICE_CUDNN_OPERATION_H
#define HWNAS_DEVICE_CUDNN_OPERATION_H

#include "device/cudnn/cudnn_steps.h"

enum {
    HWNAS_CUDNN_MAX_PORTS = 64,
    HWNAS_CUDNN_MAX_OPS = 32,
    HWNAS_CUDNN_PORT_RANK = 4,
    HWNAS_CUDNN_OP_INPUTS = 5
};

typedef enum hwnas_cudnn_port_kind {
    HWNAS_CUDNN_PORT_MEMORY,
    HWNAS_CUDNN_PORT_VIRTUAL,
    HWNAS_CUDNN_PORT_SCALAR,
} hwnas_cudnn_port_kind;

typedef struct hwnas_cudnn_port {
    hwnas_cudnn_port_kind kind;
    hwnas_cudnn_type type;
    int rank;
    int64_t dims[HWNAS_CUDNN_PORT_RANK], strides[HWNAS_CUDNN_PORT_RANK];
    int tensor;    /* MEMORY: of the net */
    int alignment; /* MEMORY: bytes, 16 at most; where a slice begins may be odd */
    float value; /* SCALAR */
} hwnas_cudnn_port;

typedef enum hwnas_cudnn_op_kind {
    HWNAS_CUDNN_CONV,      /* image, weights */
    HWNAS_CUDNN_CONV_BACK, /* the same against the grain: transposed convolution */
    HWNAS_CUDNN_MATMUL,    /* (b, m, k), (b, k, n) */
    HWNAS_CUDNN_POINTWISE, /* `mode` of one or two */
    HWNAS_CUDNN_POOL,      /* `mode` of resampling over `window` */
    HWNAS_CUDNN_NORM,      /* layer norm: values, scale, shift, epsilon */
    HWNAS_CUDNN_REDUCE,    /* `mode` of the channels, or of all but the channels */
    HWNAS_CUDNN_ATTENTION, /* queries, keys, values, scale */
    HWNAS_CUDNN_N_OP_KINDS
} hwnas_cudnn_op_kind;

typedef struct hwnas_cudnn_op {
    hwnas_cudnn_op_kind kind;
    int mode;     /* cudnnPointwiseMode_t, cudnnResampleMode_t, cudnnReduceTensorOp_t */
    bool is_whole; /* a product of bytes, summed in 32 bits */
    double slope; /* of RELU_FWD below zero, of ELU_FWD */
    int n_inputs, inputs[HWNAS_CUDNN_OP_INPUTS], output; /* ports */
    int64_t window[2], stride[2], dilation[2];
    int64_t pad[4]; /* top, left, bottom, right */
} hwnas_cudnn_op;

typedef struct hwnas_cudnn_plan hwnas_cudnn_plan; /* plans.h */

typedef struct hwnas_cudnn_operation {
    int n_ports, n_ops;
    hwnas_cudnn_port ports[HWNAS_CUDNN_MAX_PORTS];
    hwnas_cudnn_op ops[HWNAS_CUDNN_MAX_OPS];
    bool is_exact; /* fp32 as it is: no engine that rounds products to tf32 */
    bool is_full;  /* more was wanted than there is room for; then nothing else counts */
    const hwnas_cudnn_plan *plan; /* once compiled; the device's */
    struct hwnas_cublas_product *product; /* of a step by cuBLAS, once compiled; its own */
} hwnas_cudnn_operation;

/* Bytes that the address of its first value is a multiple of, 16 at most; roots' are of 64. */
int hwnas_cudnn_alignment(const hwnas_cudnn_tensor *tensor);
/* Each returns the port's number. */
int hwnas_cudnn_add_memory(hwnas_cudnn_operation *o, const hwnas_cudnn_net *net, int tensor,
                           int rank, const int64_t *dims, const int64_t *strides);
/* Shape and strides of another port. */
int hwnas_cudnn_add_virtual(hwnas_cudnn_operation *o, hwnas_cudnn_type type, int like);
int hwnas_cudnn_add_scalar(hwnas_cudnn_operation *o, int rank, float value);
/* Appends an operator, whose inputs and output are still to be said. */
hwnas_cudnn_op *hwnas_cudnn_add_op(hwnas_cudnn_operation *o, hwnas_cudnn_op_kind kind);

/* All that a plan depends on, but for tensors' numbers and scalars' values, as text: equal
 * signatures, equal plans. Yours to free(). */
char *hwnas_cudnn_signature(const hwnas_cudnn_operation *o);
/* The same but for sizes: operators, types, ranks, in which order dimensions lie. Yours to free().
 */
char *hwnas_cudnn_form_text(const hwnas_cudnn_operation *o);

#endif
