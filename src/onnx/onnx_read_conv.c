/* onnx_read_conv.c: convolutions, of images and of what becomes images (onnx_window.h). */
#include <string.h>

#include "onnx/onnx_window.h"

typedef hwnas_onnx_builder builder;
typedef hwnas_onnx_window window;

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
        hwnas_onnx_pair(is_line ? 1 : w->stride[y], w->stride[x_axis]),
        hwnas_onnx_four(is_line ? 0 : w->before[y], w->before[x_axis], is_line ? 0 : w->after[y],
                        w->after[x_axis]),
        hwnas_onnx_pair(is_line ? 1 : w->dilation[y], w->dilation[x_axis]),
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
    if (w->kernel[0] > HWNAS_ONNX_MAX_TAPS || depth < 1)
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
    conv c = {.x = x, .kernel = kernel, .bias = bias, .group = hwnas_onnx_int(b->node, "group", 1)};
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    c.weight = hwnas_onnx_tensor(b, c.kernel);
    if (c.weight.rank != in.rank || c.group < 1) {
        hwnas_onnx_refuse(b, "W", "does not fit the input");
        return c;
    }
    c.w = hwnas_onnx_read_window(b, &in, c.weight.dims + 2);
    return c;
}

static conv read_plain_conv(builder *b, int x)
{
    const int kernel = hwnas_onnx_build_input(b, 1); /* first: tensors are numbered as they come */
    return read_conv(b, x, kernel,
                     hwnas_onnx_has_input(b->node, 2) ? hwnas_onnx_build_input(b, 2) : -1);
}

int hwnas_onnx_build_conv(builder *b, int x, int kernel, int bias)
{
    const conv c = read_conv(b, x, kernel, bias);
    if (b->status == HWNAS_OK && c.w.n != 2)
        hwnas_onnx_refuse(b, "X", "is not an image");
    return b->status == HWNAS_OK ? conv_2d(b, &c, x, kernel, bias) : b->fallback;
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
        x = hwnas_onnx_from_row(
            &b, conv_2d(&b, &c, hwnas_onnx_as_row(&b, x), kernel_of(&b, &c.weight, 0), c.bias));
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
        hwnas_onnx_pair(is_line ? 1 : w->stride[y], w->stride[x_axis]),
        hwnas_onnx_four(is_line ? 0 : w->before[y], w->before[x_axis], is_line ? 0 : w->after[y],
                        w->after[x_axis]),
        hwnas_onnx_pair(is_line ? 1 : w->dilation[y], w->dilation[x_axis]),
        hwnas_attr_int(c->group),
        hwnas_onnx_pair(is_line ? 0 : more[y], more[x_axis]),
        {0}, /* what the weights say */
        {0},
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
    if (w->kernel[0] > HWNAS_ONNX_MAX_TAPS || end > all || stride > 1 << 10)
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
    sum = hwnas_onnx_reshape(b, sum, 5,
                             (int64_t[]){n, end - w->before[0], f.dims[1], f.dims[2], f.dims[3]});
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
    hwnas_onnx_read_ints(w->before, w->n, b, "pads", 0, 0);
    hwnas_onnx_read_ints(w->after, w->n, b, "pads", 0, (size_t)w->n);
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
    int64_t more[HWNAS_ONNX_MAX_SPATIAL] = {0};
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    conv c = read_plain_conv(&b, x);
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, x);
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    hwnas_onnx_read_ints(more, c.w.n, &b, "output_padding", 0, 0);
    for (int i = 0; i < c.w.n; i++)
        if (more[i] < 0 || more[i] > 1 << 20)
            hwnas_onnx_refuse(&b, "output_padding", "is out of range");
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, x);
    read_transposed_pads(&b, &c.w, &in, more);
    if (c.w.n == 3)
        x = transposed_3d(&b, &c, more);
    else if (c.w.n == 2)
        x = transposed_2d(&b, &c, x, c.kernel, c.bias, more);
    else
        x = hwnas_onnx_from_row(&b, transposed_2d(&b, &c, hwnas_onnx_as_row(&b, x),
                                                  kernel_of(&b, &c.weight, 0), c.bias, more));
    return hwnas_onnx_built(out, &b, x);
}
