/* broadcast_rows.h: a step of broadcasts.h as it runs. */
#ifndef HWNAS_DEVICE_ONEDNN_BROADCAST_ROWS_H
#define HWNAS_DEVICE_ONEDNN_BROADCAST_ROWS_H

#include <oneapi/dnnl/dnnl.h>

#include "graph/fusion.h"

/* With a number, or with the values of a tensor that belong to a row. */
typedef struct hwnas_onednn_operation {
    dnnl_alg_kind_t alg;
    float number;
    int input;         /* of the step; -1: the number */
    bool is_per_value; /* one for each value of the row; else one for all */
    int rank;
    int64_t dims[HWNAS_MAX_RANK], strides[HWNAS_MAX_RANK]; /* of the rows; of the operand, values */
} hwnas_onednn_operation;

typedef struct hwnas_onednn_broadcast {
    int64_t n_rows, n; /* n: values of a row */
    bool ends_with_softmax, reads_itself;
    int n_operations;
    hwnas_onednn_operation operations[HWNAS_FUSION_LONGEST];
} hwnas_onednn_broadcast;

#endif
