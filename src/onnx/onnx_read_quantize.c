/* onnx_read_quantize.c: operators on whole numbers of a scale, as those on floats between a
 * DequantizeLinear and a QuantizeLinear. */
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

/* Floats of input `i`, with the scale and zero point that follow it. */
static int dequantize(builder *b, size_t i, int64_t axis)
{
    const hwnas_attr attrs[] = {hwnas_attr_int(axis), {0}};
    const int inputs[] = {hwnas_onnx_build_input(b, i), hwnas_onnx_build_input(b, i + 1),
                          hwnas_onnx_build_input(b, i + 2)};
    return hwnas_onnx_make_n(b, HWNAS_OP_DEQUANTIZE_LINEAR, attrs, 3, inputs);
}

static int quantize(builder *b, int x, size_t i)
{
    const hwnas_attr attrs[] = {hwnas_attr_int(0), {0}};
    const int inputs[] = {x, hwnas_onnx_build_input(b, i), hwnas_onnx_build_input(b, i + 1)};
    return hwnas_onnx_make_n(b, HWNAS_OP_QUANTIZE_LINEAR, attrs, 3, inputs);
}

hwnas_status hwnas_onnx_read_qlinear_matmul(int *out, hwnas_onnx_reader *r,
                                            const Onnx__NodeProto *node, const char *name)
{
    enum { A, B = 3, Y = 6 };
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    x = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, dequantize(&b, A, 0), dequantize(&b, B, 1));
    return hwnas_onnx_built(out, &b, quantize(&b, x, Y));
}

/* The bias is of whole numbers of the product of both scales. */
hwnas_status hwnas_onnx_read_qlinear_conv(int *out, hwnas_onnx_reader *r,
                                          const Onnx__NodeProto *node, const char *name)
{
    enum { X, X_SCALE, KERNEL = 3, KERNEL_SCALE, Y = 6, BIAS = 8 };
    builder b;
    int x, bias = -1;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    if (hwnas_onnx_has_input(node, BIAS)) {
        const int scale =
            hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, hwnas_onnx_build_input(&b, KERNEL_SCALE),
                            hwnas_onnx_build_input(&b, X_SCALE));
        bias = hwnas_onnx_cast(&b, hwnas_onnx_build_input(&b, BIAS), HWNAS_FLOAT32);
        bias = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, bias, scale);
        if (b.status == HWNAS_OK)
            b.status = hwnas_onnx_fold(r, bias);
    }
    x = hwnas_onnx_build_conv(&b, dequantize(&b, X, 0), dequantize(&b, KERNEL, 0), bias);
    return hwnas_onnx_built(out, &b, quantize(&b, x, Y));
}

/* Less its zero point, where it has one. */
static int centred(builder *b, size_t i, size_t zero)
{
    int x = hwnas_onnx_cast(b, hwnas_onnx_build_input(b, i), HWNAS_FLOAT32);
    if (!hwnas_onnx_has_input(b->node, zero))
        return x;
    int z = hwnas_onnx_cast(b, hwnas_onnx_build_input(b, zero), HWNAS_FLOAT32);
    const hwnas_tensor from = hwnas_onnx_tensor(b, z);
    const int rank = hwnas_onnx_tensor(b, x).rank;
    if (from.rank == 1 && from.dims[0] > 1 && i == 0) /* one for each row */
        z = hwnas_onnx_reshape(b, z, 2, (int64_t[]){from.dims[0], 1});
    else if (from.rank == 1 && from.dims[0] > 1 && rank > 2) /* for each output channel */
        z = hwnas_onnx_reshape(b, z, 4, (int64_t[]){from.dims[0], 1, 1, 1});
    return hwnas_onnx_make(b, HWNAS_OP_SUB, NULL, x, z);
}

hwnas_status hwnas_onnx_read_matmul_integer(int *out, hwnas_onnx_reader *r,
                                            const Onnx__NodeProto *node, const char *name)
{
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    x = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, centred(&b, 0, 2), centred(&b, 1, 3));
    return hwnas_onnx_built(out, &b, hwnas_onnx_cast(&b, x, HWNAS_INT32));
}

hwnas_status hwnas_onnx_read_conv_integer(int *out, hwnas_onnx_reader *r,
                                          const Onnx__NodeProto *node, const char *name)
{
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const int kernel = centred(&b, 1, 3);
    if (b.status == HWNAS_OK)
        b.status = hwnas_onnx_fold(r, kernel);
    x = hwnas_onnx_build_conv(&b, centred(&b, 0, 2), kernel, -1);
    return hwnas_onnx_built(out, &b, hwnas_onnx_cast(&b, x, HWNAS_INT32));
}

/* The scale and the zero point are found from the values, which with 0 span 0 to 255. Of zeros
 * alone the scale is 1, as ONNX Runtime has it; ONNX's text divides by 0 there. Three outputs. */
hwnas_status hwnas_onnx_read_dynamic_quantize(int *out, hwnas_onnx_reader *r,
                                              const Onnx__NodeProto *node, const char *name)
{
    const hwnas_attr attrs[] = {hwnas_attr_int(0), {0}};
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const int zero = hwnas_onnx_number(&b, 0, HWNAS_FLOAT32);
    int low = hwnas_onnx_reduce(&b, HWNAS_OP_REDUCE_MIN, x, 0, NULL, false);
    int high = hwnas_onnx_reduce(&b, HWNAS_OP_REDUCE_MAX, x, 0, NULL, false);
    low = hwnas_onnx_make(&b, HWNAS_OP_MIN, NULL, low, zero);
    high = hwnas_onnx_make(&b, HWNAS_OP_MAX, NULL, high, zero);
    const int span = hwnas_onnx_make(&b, HWNAS_OP_SUB, NULL, high, low);
    const int choice[] = {
        hwnas_onnx_make(&b, HWNAS_OP_GREATER, NULL, span, zero),
        hwnas_onnx_make(&b, HWNAS_OP_DIV, NULL, span, hwnas_onnx_number(&b, 255, HWNAS_FLOAT32)),
        hwnas_onnx_number(&b, 1, HWNAS_FLOAT32)};
    const int scale = hwnas_onnx_make_n(&b, HWNAS_OP_WHERE, NULL, 3, choice);
    int point = hwnas_onnx_make(&b, HWNAS_OP_DIV, NULL, low, scale);
    point = hwnas_onnx_make(&b, HWNAS_OP_ROUND, NULL,
                            hwnas_onnx_make(&b, HWNAS_OP_NEG, NULL, point, -1), -1);
    point = hwnas_onnx_make(&b, HWNAS_OP_MAX, NULL, point, zero);
    point =
        hwnas_onnx_make(&b, HWNAS_OP_MIN, NULL, point, hwnas_onnx_number(&b, 255, HWNAS_FLOAT32));
    point = hwnas_onnx_cast(&b, point, HWNAS_UINT8);
    const int given[] = {scale, point};
    for (size_t i = 1; i < 3 && b.status == HWNAS_OK; i++)
        if (i < node->n_output && !is_empty(node->output[i]))
            TRY(hwnas_onnx_give(r, node->output[i], given[i - 1]));
    const int inputs[] = {x, scale, point};
    return hwnas_onnx_built(out, &b,
                            hwnas_onnx_make_n(&b, HWNAS_OP_QUANTIZE_LINEAR, attrs, 3, inputs));
}
