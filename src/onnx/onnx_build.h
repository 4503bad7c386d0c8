/* onnx_build.h: several nodes of ours for one of ONNX, written as an expression.
 *
 * A builder keeps the first failure, after which nothing more happens and every function gives a
 * tensor that exists; so `hwnas_onnx_built` alone is checked. Nodes are named after the one that is
 * read, "NAME.1", and the last one has its name. */
#ifndef HWNAS_ONNX_ONNX_BUILD_H
#define HWNAS_ONNX_ONNX_BUILD_H

#include "onnx/onnx_reader.h"

typedef struct hwnas_onnx_builder {
    hwnas_onnx_reader *r;
    const Onnx__NodeProto *node;
    const char *name;
    int n;        /* nodes and constants so far */
    int fallback; /* what is given after a failure */
    hwnas_status status;
} hwnas_onnx_builder;

/* Begins with the node's first input, which is given. */
HWNAS_CHECKED hwnas_status hwnas_onnx_build(hwnas_onnx_builder *b, int *input, hwnas_onnx_reader *r,
                                            const Onnx__NodeProto *node, const char *name);
/* Ends with the tensor that the node gives. */
HWNAS_CHECKED hwnas_status hwnas_onnx_built(int *out, hwnas_onnx_builder *b, int tensor);
/* Fails for the node: its attribute or input `what`, and why. */
void hwnas_onnx_refuse(hwnas_onnx_builder *b, const char *what, const char *why);

/* A copy of what is known of a tensor; tensors move when nodes are added. */
hwnas_tensor hwnas_onnx_tensor(const hwnas_onnx_builder *b, int tensor);
int hwnas_onnx_build_input(hwnas_onnx_builder *b, size_t i);
/* Input `i` when its values are known, else NULL and a failure that says so. */
const hwnas_tensor *hwnas_onnx_build_known(hwnas_onnx_builder *b, size_t i, const char *what);

/* Operators. `y` is -1 for one input. */
int hwnas_onnx_make(hwnas_onnx_builder *b, hwnas_op_id op, const hwnas_attr *attrs, int x, int y);
int hwnas_onnx_make_n(hwnas_onnx_builder *b, hwnas_op_id op, const hwnas_attr *attrs, int n,
                      const int *inputs);
int hwnas_onnx_reshape(hwnas_onnx_builder *b, int x, int n, const int64_t *dims);
int hwnas_onnx_transpose(hwnas_onnx_builder *b, int x, int n, const int64_t *order);
int hwnas_onnx_cut(hwnas_onnx_builder *b, int x, int64_t axis, int64_t begin, int64_t end,
                   int64_t step);
int hwnas_onnx_cast(hwnas_onnx_builder *b, int x, hwnas_dtype to);
int hwnas_onnx_reduce(hwnas_onnx_builder *b, hwnas_op_id op, int x, int n, const int64_t *axes,
                      bool keep);
int hwnas_onnx_concat(hwnas_onnx_builder *b, int n, const int *parts, int64_t axis);
/* The positions of an axis, by constant numbers. */
int hwnas_onnx_pick(hwnas_onnx_builder *b, int x, int64_t axis, int64_t n, const float *positions);
/* Pads one axis at both ends; `mode` as of the operator `pad`. */
int hwnas_onnx_pad(hwnas_onnx_builder *b, int x, int axis, int64_t before, int64_t after,
                   double value, int mode);

/* A convolution of images with the node's attributes; `bias` is -1 for none. */
int hwnas_onnx_build_conv(hwnas_onnx_builder *b, int x, int kernel, int bias);

/* Constants. */
int hwnas_onnx_number(hwnas_onnx_builder *b, double value, hwnas_dtype dtype);
/* The values are zeros and yours to fill before the next call; NULL after a failure, and where they
 * are more than 2^24. */
float *hwnas_onnx_values_of(int *out, hwnas_onnx_builder *b, int rank, const int64_t *dims,
                            hwnas_dtype dtype);

#endif
