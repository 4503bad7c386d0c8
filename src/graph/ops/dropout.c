/* dropout: zeroes values while training; the identity in inference, which is all we run. */
#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "rate", .kind = HWNAS_ATTR_NUMBER, .fallback = 0.5, .low = 0, .high = 1,
     .onnx = "ratio", .onnx_input = 1, .help = "share of the values that training zeroes"},
    {0},
};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "seed", .is_ignored = true},
    {0},
};

const hwnas_op hwnas_op_dropout = {
    .id = HWNAS_OP_DROPOUT,
    .name = "dropout",
    .onnx = "Dropout",
    .help = "zeroes values while training, nothing in inference",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .keeps_zeros = true,
    .infer = hwnas_infer_same,
    .compute = hwnas_compute_copy,
};
