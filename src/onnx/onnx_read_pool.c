/* onnx_read_pool.c: pools, of images and of what becomes images (onnx_window.h). */
#include <math.h>
#include <string.h>

#include "onnx/onnx_window.h"

typedef hwnas_onnx_builder builder;
typedef hwnas_onnx_window window;

/* Over the dimensions `y` and `x` of the window, of which -1 is none, on images. */
static int pool_2d(builder *b, const window *w, int image, int y, int x, bool is_max)
{
#define OF(LIST, I, NONE) ((I) < 0 ? (NONE) : w->LIST[I])
    const hwnas_attr attrs[] = {
        hwnas_onnx_pair(OF(kernel, y, 1), OF(kernel, x, 1)),
        hwnas_onnx_pair(OF(stride, y, 1), OF(stride, x, 1)),
        hwnas_onnx_four(OF(before, y, 0), OF(before, x, 0), OF(after, y, 0) + OF(beyond, y, 0),
                        OF(after, x, 0) + OF(beyond, x, 0)),
        {0},
    };
#undef OF
    return hwnas_onnx_make(b, is_max ? HWNAS_OP_MAX_POOL : HWNAS_OP_AVG_POOL, attrs, image, -1);
}

static int pad_spatial(builder *b, window *w, int x, double value)
{
    for (int i = 0; i < w->n; i++) {
        x = hwnas_onnx_pad(b, x, 2 + i, w->before[i], w->after[i], value, 0);
        w->before[i] = w->after[i] = 0;
    }
    return x;
}

/* The greatest of slices, one dimension after the other. */
static int max_dilated(builder *b, window *w, int x)
{
    for (int i = 0; i < w->n; i++)
        w->after[i] += w->beyond[i];
    x = pad_spatial(b, w, x, -INFINITY);
    for (int i = 0; i < w->n && b->status == HWNAS_OK; i++) {
        const int64_t size = hwnas_onnx_tensor(b, x).dims[2 + i];
        const int64_t last = size - ((w->kernel[i] - 1) * w->dilation[i] + 1);
        int best = -1;
        if (last < 0 || w->kernel[i] > HWNAS_ONNX_MAX_TAPS) {
            hwnas_onnx_refuse(b, "dilations", "reach over the input");
            return x;
        }
        for (int64_t k = 0; k < w->kernel[i]; k++) {
            const int64_t begin = k * w->dilation[i];
            const int part = hwnas_onnx_cut(b, x, 2 + i, begin, begin + last + 1, w->stride[i]);
            best = k ? hwnas_onnx_make(b, HWNAS_OP_MAX, NULL, best, part) : part;
        }
        x = best;
    }
    return x;
}

/* Any pool; padding counts for a mean only with `counts_pad`. */
static int pool(builder *b, window w, int x, bool is_max, bool counts_pad)
{
    bool is_dilated = false, is_wide = false;
    for (int i = 0; i < w.n; i++) {
        is_dilated |= w.dilation[i] != 1;
        is_wide |= w.before[i] >= w.kernel[i] || w.after[i] + w.beyond[i] >= w.kernel[i];
    }
    if (is_dilated && !is_max)
        hwnas_onnx_refuse(b, "dilations", "has a value that we cannot compute");
    if (is_dilated)
        return max_dilated(b, &w, x);
    if (is_max ? is_wide : counts_pad)
        x = pad_spatial(b, &w, x, is_max ? -INFINITY : 0);
    if (w.n == 2)
        return pool_2d(b, &w, x, 0, 1, is_max);
    if (w.n == 1)
        return hwnas_onnx_from_row(b, pool_2d(b, &w, hwnas_onnx_as_row(b, x), -1, 0, is_max));
    if (w.n != 3)
        return x;
    hwnas_tensor t = hwnas_onnx_tensor(b, x);
    const int64_t n = t.dims[0], channels = t.dims[1], depth = t.dims[2];
    x = hwnas_onnx_reshape(b, x, 4, (int64_t[]){n, channels * depth, t.dims[3], t.dims[4]});
    x = pool_2d(b, &w, x, 1, 2, is_max);
    t = hwnas_onnx_tensor(b, x);
    const int64_t height = t.dims[2], width = t.dims[3];
    x = hwnas_onnx_reshape(b, x, 4, (int64_t[]){n, channels, depth, height * width});
    x = pool_2d(b, &w, x, 0, -1, is_max);
    t = hwnas_onnx_tensor(b, x);
    return hwnas_onnx_reshape_spatial(b, x, 3, (int64_t[]){t.dims[2], height, width});
}

hwnas_status hwnas_onnx_read_pool(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    const bool is_max = !strcmp(node->op_type, "MaxPool");
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const window w = hwnas_onnx_read_window(&b, &in, NULL);
    bool is_plain = w.is_plain && b.status == HWNAS_OK;
    for (int i = 0; i < w.n; i++)
        is_plain &= w.dilation[i] == 1 && w.before[i] < w.kernel[i] && w.after[i] < w.kernel[i];
    if (is_plain)
        return HWNAS_OK;
    if (!hwnas_onnx_attribute(node, "kernel_shape"))
        hwnas_onnx_refuse(&b, "kernel_shape", "is absent");
    x = pool(&b, w, x, is_max, hwnas_onnx_int(node, "count_include_pad", 0));
    return hwnas_onnx_built(out, &b, x);
}

/* The p-th root of the sum of p-th powers: of a mean, times how many there are. */
hwnas_status hwnas_onnx_read_lp_pool(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                     const char *name)
{
    const double p = (double)hwnas_onnx_int(node, "p", 2);
    builder b;
    int x;
    double n = 1;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const window w = hwnas_onnx_read_window(&b, &in, NULL);
    for (int i = 0; i < w.n; i++)
        n *= (double)w.kernel[i];
    x = hwnas_onnx_make(&b, HWNAS_OP_ABS, NULL, x, -1);
    x = hwnas_onnx_make(&b, HWNAS_OP_POW, NULL, x, hwnas_onnx_number(&b, p, HWNAS_FLOAT32));
    x = pool(&b, w, x, false, true);
    x = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, hwnas_onnx_number(&b, n, HWNAS_FLOAT32));
    x = hwnas_onnx_make(&b, HWNAS_OP_POW, NULL, x, hwnas_onnx_number(&b, 1 / p, HWNAS_FLOAT32));
    return hwnas_onnx_built(out, &b, x);
}

/* The p-th root of the sum of p-th powers. */
static int lp_norm(builder *b, int x, int n, const int64_t *axes, int64_t p)
{
    if (p == 1 || p == 2)
        return hwnas_onnx_reduce(b, p == 1 ? HWNAS_OP_REDUCE_L1 : HWNAS_OP_REDUCE_L2, x, n, axes,
                                 true);
    x = hwnas_onnx_make(b, HWNAS_OP_ABS, NULL, x, -1);
    x = hwnas_onnx_make(b, HWNAS_OP_POW, NULL, x, hwnas_onnx_number(b, (double)p, HWNAS_FLOAT32));
    x = hwnas_onnx_reduce(b, HWNAS_OP_REDUCE_SUM, x, n, axes, true);
    return hwnas_onnx_make(b, HWNAS_OP_POW, NULL, x,
                           hwnas_onnx_number(b, 1 / (double)p, HWNAS_FLOAT32));
}

/* Of each channel as a whole. */
hwnas_status hwnas_onnx_read_global_pool(int *out, hwnas_onnx_reader *r,
                                         const Onnx__NodeProto *node, const char *name)
{
    const bool is_mean = !strcmp(node->op_type, "GlobalAveragePool");
    builder b;
    int x, n = 0;
    int64_t axes[HWNAS_MAX_RANK];
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    if (is_mean && in.rank == 4)
        return HWNAS_OK;
    for (int i = 2; i < in.rank; i++)
        axes[n++] = i;
    if (!n)
        hwnas_onnx_refuse(&b, "input", "has no spatial dimensions");
    if (!strcmp(node->op_type, "GlobalLpPool"))
        return hwnas_onnx_built(out, &b, lp_norm(&b, x, n, axes, hwnas_onnx_int(node, "p", 2)));
    x = hwnas_onnx_reduce(&b, is_mean ? HWNAS_OP_MEAN : HWNAS_OP_REDUCE_MAX, x, n, axes, true);
    return hwnas_onnx_built(out, &b, x);
}

/* Across channels: x / (bias + alpha * the mean of the squares of `size` channels)^beta; the
 * channels are the rows of an image. */
hwnas_status hwnas_onnx_read_lrn(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                 const char *name)
{
    const int64_t size = hwnas_onnx_int(node, "size", 0);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    if (in.rank < 2 || size < 1 || size > 1 << 20) {
        hwnas_onnx_refuse(&b, "size", "is out of range");
        return hwnas_onnx_built(out, &b, x);
    }
    int64_t rest = 1;
    for (int i = 2; i < in.rank; i++)
        rest *= in.dims[i];
    const hwnas_attr attrs[] = {hwnas_onnx_pair(size, 1), hwnas_onnx_pair(1, 1),
                                hwnas_onnx_four((size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0),
                                hwnas_attr_int(1)};
    int y = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, x);
    y = hwnas_onnx_reshape(&b, y, 4, (int64_t[]){in.dims[0], 1, in.dims[1], rest});
    y = hwnas_onnx_make(&b, HWNAS_OP_AVG_POOL, attrs, y, -1);
    y = hwnas_onnx_reshape(&b, y, in.rank, in.dims);
    y = hwnas_onnx_make(
        &b, HWNAS_OP_MUL, NULL, y,
        hwnas_onnx_number(&b, hwnas_onnx_float(node, "alpha", 1e-4), HWNAS_FLOAT32));
    y = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, y,
                        hwnas_onnx_number(&b, hwnas_onnx_float(node, "bias", 1), HWNAS_FLOAT32));
    y = hwnas_onnx_make(&b, HWNAS_OP_POW, NULL, y,
                        hwnas_onnx_number(&b, hwnas_onnx_float(node, "beta", 0.75), HWNAS_FLOAT32));
    return hwnas_onnx_built(out, &b, hwnas_onnx_make(&b, HWNAS_OP_DIV, NULL, x, y));
}
