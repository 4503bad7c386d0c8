#include "onnx/onnx_window.h"

#include <string.h>

typedef hwnas_onnx_builder builder;
typedef hwnas_onnx_window window;

void hwnas_onnx_read_ints(int64_t *to, int n, const builder *b, const char *name, int64_t absent,
                          size_t from)
{
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(b->node, name);
    for (int i = 0; i < n; i++)
        to[i] = given && from + (size_t)i < given->n_ints ? given->ints[from + (size_t)i] : absent;
}

window hwnas_onnx_read_window(builder *b, const hwnas_tensor *in, const int64_t *kernel)
{
    window w = {.n = in->rank - 2};
    if (w.n < 1 || w.n > HWNAS_ONNX_MAX_SPATIAL) {
        hwnas_onnx_refuse(b, "input", "has other than 1 to 3 spatial dimensions");
        return (window){.n = 0};
    }
    hwnas_onnx_read_ints(w.kernel, w.n, b, "kernel_shape", 1, 0);
    if (kernel)
        memcpy(w.kernel, kernel, (size_t)w.n * sizeof *kernel);
    hwnas_onnx_read_ints(w.stride, w.n, b, "strides", 1, 0);
    hwnas_onnx_read_ints(w.dilation, w.n, b, "dilations", 1, 0);
    hwnas_onnx_read_ints(w.before, w.n, b, "pads", 0, 0);
    hwnas_onnx_read_ints(w.after, w.n, b, "pads", 0, (size_t)w.n);
    const bool is_upper = hwnas_onnx_is_word(b->node, "auto_pad", "SAME_UPPER", false);
    const bool is_same = is_upper || hwnas_onnx_is_word(b->node, "auto_pad", "SAME_LOWER", false);
    const bool is_valid = hwnas_onnx_is_word(b->node, "auto_pad", "VALID", false);
    const bool is_ceil = hwnas_onnx_int(b->node, "ceil_mode", 0) && !is_same;
    w.is_plain = w.n == 2 && !is_same && !is_valid && !is_ceil;
    for (int i = 0; i < w.n; i++) {
        const int64_t most = 1 << 20, size = in->dims[2 + i], k = w.kernel[i], s = w.stride[i];
        if (k < 1 || s < 1 || w.dilation[i] < 1 || k > most || s > most || w.dilation[i] > most ||
            w.before[i] < 0 || w.after[i] < 0 || w.before[i] > most || w.after[i] > most) {
            hwnas_onnx_refuse(b, "kernel_shape",
                              "or the strides, dilations or pads beside it are out of range");
            return (window){.n = 0};
        }
        const int64_t reach = (k - 1) * w.dilation[i] + 1;
        if (is_same || is_valid)
            w.before[i] = w.after[i] = 0;
        if (is_same) {
            const int64_t all = ((size + s - 1) / s - 1) * s + reach - size, half = all / 2;
            w.before[i] = all <= 0 ? 0 : is_upper ? half : all - half;
            w.after[i] = all <= 0 ? 0 : all - w.before[i];
        }
        const int64_t left = size + w.before[i] + w.after[i] - reach, over = left % s;
        /* The last window must begin on the input or on the padding before it. */
        if (is_ceil && left >= 0 && over && left - over + s < size + w.before[i])
            w.beyond[i] = s - over;
    }
    return w;
}

int hwnas_onnx_reshape_spatial(builder *b, int x, int n, const int64_t *sizes)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    int64_t dims[HWNAS_MAX_RANK] = {in.dims[0], in.dims[1]};
    memcpy(dims + 2, sizes, (size_t)n * sizeof *sizes);
    return hwnas_onnx_reshape(b, x, 2 + n, dims);
}

hwnas_attr hwnas_onnx_pair(int64_t y, int64_t x)
{
    return (hwnas_attr){.is_set = true, .n = 2, .ints = {y, x}};
}

hwnas_attr hwnas_onnx_four(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (hwnas_attr){.is_set = true, .n = 4, .ints = {a, b, c, d}};
}

int hwnas_onnx_as_row(builder *b, int x)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    return hwnas_onnx_reshape(b, x, 4, (int64_t[]){in.dims[0], in.dims[1], 1, in.dims[2]});
}

int hwnas_onnx_from_row(builder *b, int x)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    return hwnas_onnx_reshape(b, x, 3, (int64_t[]){in.dims[0], in.dims[1], in.dims[3]});
}
