/* onnx_read_norm.c: normalisations, and softmax in its other forms. */
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

/* Mean 0 and variance 1 of `groups` equal parts of each sample. */
static int normalise(builder *b, int x, int64_t groups, double epsilon)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    const int64_t count = hwnas_tensor_count(&in) / in.dims[0], one = 1;
    const hwnas_attr attrs[] = {hwnas_attr_int(-1), hwnas_attr_number(epsilon), {0}};
    int scale;
    if (groups < 1 || count % groups) {
        hwnas_onnx_refuse(b, "num_groups", "does not divide the channels");
        return x;
    }
    float *value = hwnas_onnx_values_of(&scale, b, 1, &one, HWNAS_FLOAT32);
    if (value)
        *value = 1;
    x = hwnas_onnx_reshape(b, x, 3, (int64_t[]){in.dims[0], groups, count / groups});
    x = hwnas_onnx_make(b, HWNAS_OP_LAYER_NORM, attrs, x, scale);
    return hwnas_onnx_reshape(b, x, in.rank, in.dims);
}

/* A weight for each channel or, since opset 18 and until 21, for each group, as it broadcasts. */
static int per_channel(builder *b, size_t input, const hwnas_tensor *in, int64_t groups)
{
    const int weight = hwnas_onnx_build_input(b, input);
    const hwnas_tensor w = hwnas_onnx_tensor(b, weight);
    int64_t dims[HWNAS_MAX_RANK] = {in->dims[1]};
    for (int i = 1; i + 1 < in->rank; i++)
        dims[i] = 1;
    if (w.rank == 1 && w.dims[0] == groups && groups != in->dims[1]) {
        int each = hwnas_onnx_reshape(b, weight, 2, (int64_t[]){groups, 1});
        const hwnas_attr shape = {.is_set = true, .n = 2, .ints = {groups, in->dims[1] / groups}};
        each = hwnas_onnx_make(b, HWNAS_OP_EXPAND, &shape, each, -1);
        return hwnas_onnx_reshape(b, each, in->rank - 1, dims);
    }
    return hwnas_onnx_reshape(b, weight, in->rank - 1, dims);
}

/* Whether all of a constant input's values are `value`: PyTorch writes GroupNorm as an
 * InstanceNormalization of ones and zeros, and its own scale and shift behind it. */
static bool is_all(const builder *b, int tensor, float value)
{
    const hwnas_tensor t = hwnas_onnx_tensor(b, tensor);
    if (t.kind != HWNAS_TENSOR_WEIGHT || !t.data)
        return false;
    for (int64_t i = 0, n = hwnas_tensor_count(&t); i < n; i++)
        if (t.data[i] != value)
            return false;
    return true;
}

/* InstanceNormalization is GroupNormalization with a group for each channel. */
hwnas_status hwnas_onnx_read_group_norm(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                        const char *name)
{
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    if (in.rank < 3) {
        hwnas_onnx_refuse(&b, "input", "has no spatial dimensions");
        return hwnas_onnx_built(out, &b, x);
    }
    const int64_t groups = hwnas_onnx_int(node, "num_groups", in.dims[1]);
    x = normalise(&b, x, groups, hwnas_onnx_float(node, "epsilon", 1e-5));
    if (!is_all(&b, hwnas_onnx_build_input(&b, 1), 1))
        x = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, per_channel(&b, 1, &in, groups));
    if (!is_all(&b, hwnas_onnx_build_input(&b, 2), 0))
        x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x, per_channel(&b, 2, &in, groups));
    return hwnas_onnx_built(out, &b, x);
}

/* (x - mean) / (deviation + 1e-9), as ONNX defines it. */
hwnas_status hwnas_onnx_read_mvn(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                 const char *name)
{
    const int64_t usual[] = {0, 2, 3};
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "axes");
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    if (given && given->n_ints > HWNAS_MAX_RANK)
        hwnas_onnx_refuse(&b, "axes", "has more than 8 values");
    const int n = !given ? 3 : given->n_ints > HWNAS_MAX_RANK ? 0 : (int)given->n_ints;
    const int64_t *axes = given ? given->ints : usual;
    const int mean = hwnas_onnx_reduce(&b, HWNAS_OP_MEAN, x, n, axes, true);
    const int square = hwnas_onnx_reduce(
        &b, HWNAS_OP_MEAN, hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, x), n, axes, true);
    int deviation = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, mean, mean);
    deviation = hwnas_onnx_make(&b, HWNAS_OP_SUB, NULL, square, deviation);
    deviation = hwnas_onnx_make(&b, HWNAS_OP_SQRT, NULL, deviation, -1);
    deviation = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, deviation,
                                hwnas_onnx_number(&b, 1e-9, HWNAS_FLOAT32));
    x = hwnas_onnx_make(&b, HWNAS_OP_SUB, NULL, x, mean);
    return hwnas_onnx_built(out, &b, hwnas_onnx_make(&b, HWNAS_OP_DIV, NULL, x, deviation));
}

/* Zeros stay zeros, as ONNX defines it: a norm of 0 divides as 1. */
hwnas_status hwnas_onnx_read_lp_norm(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    const int64_t axis = hwnas_onnx_int(node, "axis", -1), p = hwnas_onnx_int(node, "p", 2);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    if (p != 1 && p != 2)
        hwnas_onnx_refuse(&b, "p", "is neither 1 nor 2");
    int norm =
        hwnas_onnx_reduce(&b, p == 1 ? HWNAS_OP_REDUCE_L1 : HWNAS_OP_REDUCE_L2, x, 1, &axis, true);
    const int zero = hwnas_onnx_number(&b, 0, HWNAS_FLOAT32);
    const int one = hwnas_onnx_number(&b, 1, HWNAS_FLOAT32);
    const int is_zero = hwnas_onnx_make(&b, HWNAS_OP_EQUAL, NULL, norm, zero);
    norm = hwnas_onnx_make_n(&b, HWNAS_OP_WHERE, NULL, 3, (const int[]){is_zero, one, norm});
    return hwnas_onnx_built(out, &b, hwnas_onnx_make(&b, HWNAS_OP_DIV, NULL, x, norm));
}

/* ---- softmax ---- */

/* log of softmax: x less its greatest, less the logarithm of the sum of exponentials. */
static int log_softmax(builder *b, int x, int64_t axis)
{
    x = hwnas_onnx_make(b, HWNAS_OP_SUB, NULL, x,
                        hwnas_onnx_reduce(b, HWNAS_OP_REDUCE_MAX, x, 1, &axis, true));
    return hwnas_onnx_make(b, HWNAS_OP_SUB, NULL, x,
                           hwnas_onnx_reduce(b, HWNAS_OP_REDUCE_LOG_SUM_EXP, x, 1, &axis, true));
}

/* 1 at the first of the greatest values, else 0. */
static int hardmax(builder *b, int x, int64_t axis)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    const hwnas_attr attrs[] = {hwnas_attr_int(axis), hwnas_attr_int(1), {0}};
    const int best = hwnas_onnx_make(b, HWNAS_OP_ARG_MAX, attrs, x, -1);
    int64_t dims[HWNAS_MAX_RANK];
    int places;
    axis += axis < 0 ? in.rank : 0;
    if (axis < 0 || axis >= in.rank) {
        hwnas_onnx_refuse(b, "axis", "names a dimension that is not there");
        return x;
    }
    for (int i = 0; i < in.rank; i++)
        dims[i] = i == axis ? in.dims[i] : 1;
    float *values = hwnas_onnx_values_of(&places, b, in.rank, dims, HWNAS_INT64);
    for (int64_t i = 0; values && i < in.dims[axis]; i++)
        values[i] = (float)i;
    return hwnas_onnx_cast(b, hwnas_onnx_make(b, HWNAS_OP_EQUAL, NULL, best, places),
                           HWNAS_FLOAT32);
}

/* Before opset 13 all dimensions from `axis` on were one, and the default was 1. */
hwnas_status hwnas_onnx_read_softmax(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    const bool is_old = r->opset < 13;
    if (!is_old && !strcmp(node->op_type, "Softmax"))
        return HWNAS_OK;
    int64_t axis = hwnas_onnx_int(node, "axis", is_old ? 1 : -1);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    axis += axis < 0 ? in.rank : 0;
    if (axis < 0 || axis >= (in.rank ? in.rank : 1)) {
        hwnas_onnx_refuse(&b, "axis", "names a dimension that is not there");
        return hwnas_onnx_built(out, &b, x);
    }
    const bool flattens = is_old && axis + 1 < in.rank;
    if (flattens) {
        int64_t dims[2] = {1, 1};
        for (int i = 0; i < in.rank; i++)
            dims[i >= axis] *= in.dims[i];
        x = hwnas_onnx_reshape(&b, x, 2, dims);
        axis = 1;
    }
    const hwnas_attr attr = hwnas_attr_int(axis);
    x = !strcmp(node->op_type, "LogSoftmax") ? log_softmax(&b, x, axis)
        : !strcmp(node->op_type, "Hardmax")  ? hardmax(&b, x, axis)
                                             : hwnas_onnx_make(&b, HWNAS_OP_SOFTMAX, &attr, x, -1);
    if (flattens)
        x = hwnas_onnx_reshape(&b, x, in.rank, in.dims);
    return hwnas_onnx_built(out, &b, x);
}
