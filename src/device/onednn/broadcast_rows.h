/* broadcast_rows.h: a step of broadcasts.h as it runs. */
#ifndef HWNAS_DEVICE_ONEDNN_BROADCAST_ROWS_H
#define HWNAS_DEVICE_ONEDNN_BROADCAST_ROWS_H

#include <oneapi/dnnl/dnnl.h>

#include "graph/fusion.h"

/* A number, or a tensor: where its values for each row are. */
typedef struct hwnas_onednn_operand {
    float number;
    int input;    /* of the step; -1: the number */
    int64_t step; /* from one value of a row to the next; 0: one for all of them */
    int rank;
    int64_t dims[HWNAS_MAX_RANK], strides[HWNAS_MAX_RANK]; /* of the rows; of the operand, values */
} hwnas_onednn_operand;

typedef struct hwnas_onednn_operation {
    dnnl_alg_kind_t alg;
    hwnas_onednn_operand other; /* the second operand; the first is what has been made so far */
} hwnas_onednn_operation;

typedef struct hwnas_onednn_broadcast {
    int64_t n_rows, n; /* n: values of a row */
    bool ends_with_softmax;
    bool may_overwrite; /* the result may lie where the first operand is */
    hwnas_onednn_operand first;
    int n_operations;
    hwnas_onednn_operation operations[HWNAS_FUSION_LONGEST];
} hwnas_onednn_broadcast;

#endif
