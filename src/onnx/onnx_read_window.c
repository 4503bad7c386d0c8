/* onnx_read_window.c: convolutions and pools of one or three dimensions, or padded in words, as
 * those of two that we have. Three dimensions are seen as two at a time, which is exact:
 *
 * - a convolution is a sum over the kernel's depth of convolutions of all slices;
 * - a greatest value or a mean over a box is one over height and width, then one over depth. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

enum { MAX_SPATIAL = 3, MAX_TAPS = 256 };

typedef struct window {
    int n; /* spatial dimensions */
    int64_t kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
    int64_t before[MAX_SPATIAL], after[MAX_SPATIAL];
    int64_t beyond[MAX_SPATIAL]; /* rounding up: what the last window may reach over the end */
    bool is_plain; /* as our tables say it: two dimensions, numbers for the padding, rounded down */
} window;

static void fill(int64_t *to, int n, const builder *b, const char *name, int64_t absent,
                 size_t from)
{
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(b->node, name);
    for (int i = 0; i < n; i++)
        to[i] = given && from + (size_t)i < given->n_ints ? given->ints[from + (size_t)i] : absent;
}

/* `kernel`: of the weights; NULL: an attribute. */
static window read_window(builder *b, const hwnas_tensor *in, const int64_t *kernel)
{
    window w = {.n = in->rank - 2};
    if (w.n < 1 || w.n > MAX_SPATIAL) {
        hwnas_onnx_refuse(b, "input", "has other than 1 to 3 spatial dimensions");
        return (window){.n = 0};
    }
    fill(w.kernel, w.n, b, "kernel_shape", 1, 0);
    if (kernel)
        memcpy(w.kernel, kernel, (size_t)w.n * sizeof *kernel);
    fill(w.stride, w.n, b, "strides", 1, 0);
    fill(w.dilation, w.n, b, "dilations", 1, 0);
    fill(w.before, w.n, b, "pads", 0, 0);
    fill(w.after, w.n, b, "pads", 0, (size_t)w.n);
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

/* `x` with spatial dimensions of these sizes. */
static int reshape_spatial(builder *b, int x, int n, const int64_t *sizes)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    int64_t dims[HWNAS_MAX_RANK] = {in.dims[0], in.dims[1]};
    memcpy(dims + 2, sizes, (size_t)n * sizeof *sizes);
    return hwnas_onnx_reshape(b, x, 2 + n, dims);
}

static hwnas_attr pair(int64_t y, int64_t x)
{
    return (hwnas_attr){.is_set = true, .n = 2, .ints = {y, x}};
}

static hwnas_attr four(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (hwnas_attr){.is_set = true, .n = 4, .ints = {a, b, c, d}};
}

/* ---- weights in other shapes ---- */

/* Another shape of, or a part of, the values of a weight. `from` and `step`: which of its values;
 * the rest is known by the count. */
static int view(builder *b, const hwnas_tensor *weight, int rank, const int64_t *dims, int64_t from,
                int64_t step)
{
    int made = b->fallback;
    if (b->status != HWNAS_OK)
        return made;
    if (weight->kind != HWNAS_TENSOR_WEIGHT || !weight->data) {
        hwnas_onnx_refuse(b, weight->name, "is computed where we take a constant");
        return made;
    }
    hwnas_graph *graph = b->r->graph;
    b->status = hwnas_graph_add_weight(&made, graph,
                                       hwnas_arena_printf(graph->arena, "%s.%d", b->name, ++b->n),
                                       rank, dims, HWNAS_INIT_ZERO, weight->is_parameter);
    if (b->status != HWNAS_OK)
        return b->fallback;
    hwnas_tensor *to = &graph->tensors[made];
    to->data = weight->data;
    if (step > 1) {
        const int64_t n = hwnas_tensor_count(to), width = dims[rank - 1] * dims[rank - 2];
        float *values = hwnas_arena_alloc(graph->arena, (size_t)n * sizeof *values);
        for (int64_t i = 0; i < n; i++)
            values[i] = weight->data[(i / width * step + from) * width + i % width];
        to->data = values;
    }
    return made;
}

/* The weight as one of two spatial dimensions: of one, of two, or slice `depth` of three. */
static int kernel_of(builder *b, const hwnas_tensor *w, int64_t depth)
{
    const int64_t dims[] = {w->dims[0], w->dims[1], w->rank == 3 ? 1 : w->dims[w->rank - 2],
                            w->dims[w->rank - 1]};
    return view(b, w, 4, dims, w->rank == 5 ? depth : 0, w->rank == 5 ? w->dims[2] : 1);
}

/* ---- convolutions ---- */

typedef struct conv {
    window w;
    hwnas_tensor weight;
    int x, kernel, bias; /* bias: -1 for none */
    int64_t group;
} conv;

/* Over the last two dimensions, or the only one. */
static int conv_2d(builder *b, const conv *c, int x, int kernel, int bias)
{
    const window *w = &c->w;
    const bool is_line = w->n == 1;
    const int y = is_line ? 0 : w->n - 2, x_axis = w->n - 1;
    const hwnas_attr attrs[] = {
        {0},
        {0},
        pair(is_line ? 1 : w->stride[y], w->stride[x_axis]),
        four(is_line ? 0 : w->before[y], w->before[x_axis], is_line ? 0 : w->after[y],
             w->after[x_axis]),
        pair(is_line ? 1 : w->dilation[y], w->dilation[x_axis]),
        hwnas_attr_int(c->group),
        {0},
    };
    return hwnas_onnx_make_n(b, HWNAS_OP_CONV, attrs, bias < 0 ? 2 : 3,
                             (const int[]){x, kernel, bias});
}

static int conv_3d(builder *b, const conv *c)
{
    const window *w = &c->w;
    const int64_t swap[] = {0, 2, 1, 3, 4};
    const int padded = hwnas_onnx_pad(b, c->x, 2, w->before[0], w->after[0], 0, 0);
    const int frames = hwnas_onnx_transpose(b, padded, 5, swap);
    const hwnas_tensor f = hwnas_onnx_tensor(b, frames);
    const int64_t reach = (w->kernel[0] - 1) * w->dilation[0] + 1;
    const int64_t depth = f.dims[1] < reach ? 0 : (f.dims[1] - reach) / w->stride[0] + 1;
    int sum = -1;
    if (w->kernel[0] > MAX_TAPS || depth < 1)
        hwnas_onnx_refuse(b, "kernel_shape", "is too deep");
    for (int64_t k = 0; k < w->kernel[0] && b->status == HWNAS_OK; k++) {
        const int64_t begin = k * w->dilation[0], end = begin + (depth - 1) * w->stride[0] + 1;
        int part = hwnas_onnx_cut(b, frames, 1, begin, end, w->stride[0]);
        part = hwnas_onnx_reshape(b, part, 4,
                                  (int64_t[]){f.dims[0] * depth, f.dims[2], f.dims[3], f.dims[4]});
        part = conv_2d(b, c, part, kernel_of(b, &c->weight, k), k ? -1 : c->bias);
        sum = k ? hwnas_onnx_make(b, HWNAS_OP_ADD, NULL, sum, part) : part;
    }
    if (sum < 0)
        return b->fallback;
    const hwnas_tensor s = hwnas_onnx_tensor(b, sum);
    sum = hwnas_onnx_reshape(b, sum, 5,
                             (int64_t[]){f.dims[0], depth, s.dims[1], s.dims[2], s.dims[3]});
    return hwnas_onnx_transpose(b, sum, 5, swap);
}

static conv read_conv(builder *b, int x, int kernel, int bias)
{
    conv c = {.x = x, .kernel = kernel, .bias = bias,
              .group = hwnas_onnx_int(b->node, "group", 1)};
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    c.weight = hwnas_onnx_tensor(b, c.kernel);
    if (c.weight.rank != in.rank || c.group < 1) {
        hwnas_onnx_refuse(b, "W", "does not fit the input");
        return c;
    }
    c.w = read_window(b, &in, c.weight.dims + 2);
    return c;
}

static conv read_plain_conv(builder *b, int x)
{
    return read_conv(b, x, hwnas_onnx_build_input(b, 1),
                     hwnas_onnx_has_input(b->node, 2) ? hwnas_onnx_build_input(b, 2) : -1);
}

int hwnas_onnx_build_conv(builder *b, int x, int kernel, int bias)
{
    const conv c = read_conv(b, x, kernel, bias);
    if (b->status == HWNAS_OK && c.w.n != 2)
        hwnas_onnx_refuse(b, "X", "is not an image");
    return b->status == HWNAS_OK ? conv_2d(b, &c, x, kernel, bias) : b->fallback;
}

/* An image of one row. */
static int as_row(builder *b, int x)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    return hwnas_onnx_reshape(b, x, 4, (int64_t[]){in.dims[0], in.dims[1], 1, in.dims[2]});
}

static int from_row(builder *b, int x)
{
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    return hwnas_onnx_reshape(b, x, 3, (int64_t[]){in.dims[0], in.dims[1], in.dims[3]});
}

hwnas_status hwnas_onnx_read_conv(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const bool is_image = hwnas_onnx_tensor(&b, x).rank == 4;
    if (is_image && hwnas_onnx_is_word(node, "auto_pad", "NOTSET", true))
        return HWNAS_OK;
    const conv c = read_plain_conv(&b, x);
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, x);
    if (c.w.n == 3)
        x = conv_3d(&b, &c);
    else if (c.w.n == 2)
        x = conv_2d(&b, &c, x, c.kernel, c.bias);
    else
        x = from_row(&b, conv_2d(&b, &c, as_row(&b, x), kernel_of(&b, &c.weight, 0), c.bias));
    return hwnas_onnx_built(out, &b, x);
}

/* ---- transposed convolutions ---- */

static int transposed_2d(builder *b, const conv *c, int x, int kernel, int bias,
                         const int64_t *more)
{
    const window *w = &c->w;
    const bool is_line = w->n == 1;
    const int y = is_line ? 0 : w->n - 2, x_axis = w->n - 1;
    const hwnas_attr attrs[] = {
        {0},
        pair(is_line ? 1 : w->stride[y], w->stride[x_axis]),
        four(is_line ? 0 : w->before[y], w->before[x_axis], is_line ? 0 : w->after[y],
             w->after[x_axis]),
        pair(is_line ? 1 : w->dilation[y], w->dilation[x_axis]),
        hwnas_attr_int(c->group),
        pair(is_line ? 0 : more[y], more[x_axis]),
    };
    return hwnas_onnx_make_n(b, HWNAS_OP_CONV_TRANSPOSE, attrs, bias < 0 ? 2 : 3,
                             (const int[]){x, kernel, bias});
}

/* Each slice of the kernel's depth gives slices of the output that are a stride apart. */
static int transposed_3d(builder *b, const conv *c, const int64_t *more)
{
    const window *w = &c->w;
    const hwnas_tensor in = hwnas_onnx_tensor(b, c->x);
    const int64_t n = in.dims[0], depth = in.dims[2], stride = w->stride[0];
    const int64_t extent = (w->kernel[0] - 1) * w->dilation[0], all = depth * stride + extent;
    const int64_t end = (depth - 1) * stride + extent + 1 + more[0] - w->after[0];
    int frames = hwnas_onnx_transpose(b, c->x, 5, (int64_t[]){0, 2, 1, 3, 4}), sum = -1;
    frames = hwnas_onnx_reshape(b, frames, 4,
                                (int64_t[]){n * depth, in.dims[1], in.dims[3], in.dims[4]});
    if (w->kernel[0] > MAX_TAPS || end > all || stride > 1 << 10)
        hwnas_onnx_refuse(b, "kernel_shape", "is too deep");
    hwnas_tensor f = {0};
    for (int64_t k = 0; k < w->kernel[0] && b->status == HWNAS_OK; k++) {
        int part = transposed_2d(b, c, frames, kernel_of(b, &c->weight, k), -1, more);
        f = hwnas_onnx_tensor(b, part);
        const int64_t size = f.dims[1] * f.dims[2] * f.dims[3];
        part = hwnas_onnx_reshape(b, part, 4, (int64_t[]){n, depth, 1, size});
        part = hwnas_onnx_pad(b, part, 2, 0, stride - 1, 0, 0);
        part = hwnas_onnx_reshape(b, part, 3, (int64_t[]){n, depth * stride, size});
        part = hwnas_onnx_pad(b, part, 1, k * w->dilation[0], extent - k * w->dilation[0], 0, 0);
        sum = k ? hwnas_onnx_make(b, HWNAS_OP_ADD, NULL, sum, part) : part;
    }
    if (sum < 0)
        return b->fallback;
    sum = hwnas_onnx_cut(b, sum, 1, w->before[0], end, 1);
    sum = hwnas_onnx_reshape(
        b, sum, 5, (int64_t[]){n, end - w->before[0], f.dims[1], f.dims[2], f.dims[3]});
    sum = hwnas_onnx_transpose(b, sum, 5, (int64_t[]){0, 2, 1, 3, 4});
    if (c->bias < 0)
        return sum;
    const int bias = hwnas_onnx_reshape(b, c->bias, 4, (int64_t[]){f.dims[1], 1, 1, 1});
    return hwnas_onnx_make(b, HWNAS_OP_ADD, NULL, sum, bias);
}

/* Padding that gives the output a size: that of the attribute or, for SAME, stride times the
 * input's. */
static void read_transposed_pads(builder *b, window *w, const hwnas_tensor *in, int64_t *more)
{
    const Onnx__AttributeProto *shape = hwnas_onnx_attribute(b->node, "output_shape");
    const bool is_upper = hwnas_onnx_is_word(b->node, "auto_pad", "SAME_UPPER", false);
    const bool is_same = is_upper || hwnas_onnx_is_word(b->node, "auto_pad", "SAME_LOWER", false);
    fill(w->before, w->n, b, "pads", 0, 0);
    fill(w->after, w->n, b, "pads", 0, (size_t)w->n);
    for (int i = 0; i < w->n && (is_same || shape); i++) {
        const int64_t size = in->dims[2 + i];
        const int64_t full =
            (size - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 + more[i];
        int64_t wanted = size * w->stride[i];
        if (shape && shape->n_ints >= (size_t)w->n)
            wanted = shape->ints[shape->n_ints - (size_t)w->n + (size_t)i];
        if (wanted < 1 || wanted > INT64_C(1) << 60) {
            hwnas_onnx_refuse(b, "output_shape", "is out of range");
            return;
        }
        const int64_t all = full > wanted ? full - wanted : 0, half = all / 2;
        w->before[i] = is_upper ? half : all - half;
        w->after[i] = all - w->before[i];
        if (wanted > full)
            more[i] += wanted - full;
        if (more[i] > 1 << 20)
            hwnas_onnx_refuse(b, "output_shape", "is out of range");
    }
}

hwnas_status hwnas_onnx_read_conv_transpose(int *out, hwnas_onnx_reader *r,
                                            const Onnx__NodeProto *node, const char *name)
{
    builder b;
    int x;
    int64_t more[MAX_SPATIAL] = {0};
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    conv c = read_plain_conv(&b, x);
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, x);
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    fill(more, c.w.n, &b, "output_padding", 0, 0);
    for (int i = 0; i < c.w.n; i++)
        if (more[i] < 0 || more[i] > 1 << 20)
            hwnas_onnx_refuse(&b, "output_padding", "is out of range");
    read_transposed_pads(&b, &c.w, &in, more);
    if (c.w.n == 3)
        x = transposed_3d(&b, &c, more);
    else if (c.w.n == 2)
        x = transposed_2d(&b, &c, x, c.kernel, c.bias, more);
    else
        x = from_row(&b, transposed_2d(&b, &c, as_row(&b, x), kernel_of(&b, &c.weight, 0), c.bias,
                                       more));
    return hwnas_onnx_built(out, &b, x);
}

/* ---- pools ---- */

/* Over the dimensions `y` and `x` of the window, of which -1 is none, on images. */
static int pool_2d(builder *b, const window *w, int image, int y, int x, bool is_max)
{
#define OF(LIST, I, NONE) ((I) < 0 ? (NONE) : w->LIST[I])
    const hwnas_attr attrs[] = {
        pair(OF(kernel, y, 1), OF(kernel, x, 1)),
        pair(OF(stride, y, 1), OF(stride, x, 1)),
        four(OF(before, y, 0), OF(before, x, 0), OF(after, y, 0) + OF(beyond, y, 0),
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
        if (last < 0 || w->kernel[i] > MAX_TAPS) {
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
        return from_row(b, pool_2d(b, &w, as_row(b, x), -1, 0, is_max));
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
    return reshape_spatial(b, x, 3, (int64_t[]){t.dims[2], height, width});
}

hwnas_status hwnas_onnx_read_pool(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                  const char *name)
{
    const bool is_max = !strcmp(node->op_type, "MaxPool");
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const window w = read_window(&b, &in, NULL);
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
    const window w = read_window(&b, &in, NULL);
    for (int i = 0; i < w.n; i++)
        n *= (double)w.kernel[i];
    x = hwnas_onnx_make(&b, HWNAS_OP_ABS, NULL, x, -1);
    x = hwnas_onnx_make(&b, HWNAS_OP_POW, NULL, x, hwnas_onnx_number(&b, p, HWNAS_FLOAT32));
    x = pool(&b, w, x, false, true);
    x = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, x, hwnas_onnx_number(&b, n, HWNAS_FLOAT32));
    x = hwnas_onnx_make(&b, HWNAS_OP_POW, NULL, x, hwnas_onnx_number(&b, 1 / p, HWNAS_FLOAT32));
    return hwnas_onnx_built(out, &b, x);
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
    if (in.rank < 2 || size < 1 || size > 1 << 20)
        hwnas_onnx_refuse(&b, "size", "is out of range");
    int64_t rest = 1;
    for (int i = 2; i < in.rank; i++)
        rest *= in.dims[i];
    const hwnas_attr attrs[] = {pair(size, 1), pair(1, 1),
                                four((size - 1) / 2, 0, size - 1 - (size - 1) / 2, 0),
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
