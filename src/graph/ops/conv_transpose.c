/* conv_transpose: what a 2-D convolution does to its gradient; also called deconvolution. Each
 * input value adds the kernel, times itself, to the output. Weights are input channels x output
 * channels of a group x height x width. */
#include <stdlib.h>
#include <string.h>

#include "graph/ops/elementwise.h"

enum { KERNEL, STRIDE, PAD, DILATION, GROUPS, MORE, OUT, BIAS };

static const hwnas_attr_row attrs[] = {
    [KERNEL] = {.name = "kernel", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1, .low = 1,
                .high = 1 << 20, .onnx = "kernel_shape", .help = "height and width of the kernel"},
    [STRIDE] = {.name = "stride", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1, .low = 1,
                .high = 1 << 20, .onnx = "strides", .help = "step down and to the right"},
    [PAD] = {.name = "pad", .kind = HWNAS_ATTR_INTS, .count = 4, .fallback = 0, .low = 0,
             .high = 1 << 20, .onnx = "pads", .help = "cut off at top, left, bottom, right"},
    [DILATION] = {.name = "dilation", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1, .low = 1,
                  .high = 1 << 20, .onnx = "dilations", .help = "distance of the kernel's points"},
    [GROUPS] = {.name = "groups", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = 1, .high = 1 << 30,
                .onnx = "group", .help = "groups of channels"},
    [MORE] = {.name = "more", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 0, .low = 0,
              .high = 1 << 20, .onnx = "output_padding", .help = "rows and columns beyond"},
    [OUT] = {.name = "out", .kind = HWNAS_ATTR_INT, .is_required = true, .fallback = 1, .low = 1,
             .high = 1 << 30, .help = "output channels"},
    [BIAS] = {.name = "bias", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .low = 0, .high = 1,
              .help = "add a learned bias"},
    {0},
};

/* A layer is what PyTorch's ConvTranspose2d can be: it cuts off as much behind as before, and adds
 * fewer rows than a stride or the kernel's points are apart. Files may do otherwise. */
static hwnas_status make_weights(hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *a = node->attrs;
    const int64_t groups = a[GROUPS].ints[0], out = a[OUT].ints[0];
    if (in->rank != 4)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'conv_transpose' needs an image (batch x channels x height x width), "
                          "not %s",
                          hwnas_tensor_shape(in).s);
    if (in->dims[1] % groups || out % groups)
        return hwnas_fail(
            HWNAS_E_INPUT, NULL,
            "'conv_transpose': %lld groups do not divide both %lld input and %lld output channels",
            (long long)groups, (long long)in->dims[1], (long long)out);
    for (int i = 0; i < 2; i++) {
        if (a[PAD].ints[i] != a[PAD].ints[2 + i])
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "'conv_transpose': 'pad' is the same before and behind, not %lld "
                              "and %lld",
                              (long long)a[PAD].ints[i], (long long)a[PAD].ints[2 + i]);
        if (a[MORE].ints[i] >= a[STRIDE].ints[i] && a[MORE].ints[i] >= a[DILATION].ints[i])
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "'conv_transpose': 'more' is %lld, and must be smaller than the "
                              "stride or the dilation",
                              (long long)a[MORE].ints[i]);
    }
    const int64_t dims[] = {in->dims[1], out / groups, a[KERNEL].ints[0], a[KERNEL].ints[1]};
    TRY(hwnas_node_add_weight(graph, node, "weight", 4, dims, HWNAS_INIT_FAN_FIRST, true));
    if (a[BIAS].ints[0])
        TRY(hwnas_node_add_weight(graph, node, "bias", 1, &out, HWNAS_INIT_SMALL, true));
    return HWNAS_OK;
}

static void read_weights(const hwnas_graph *graph, hwnas_node *node)
{
    const int64_t *weight = hwnas_node_input(graph, node, 1)->dims;
    memcpy(node->attrs[KERNEL].ints, weight + 2, 2 * sizeof *weight);
    if (__builtin_mul_overflow(weight[1], node->attrs[GROUPS].ints[0], node->attrs[OUT].ints))
        node->attrs[OUT].ints[0] = 0;
    node->attrs[BIAS].ints[0] = node->n_inputs > 2;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    const hwnas_attr *a = node->attrs;
    const int64_t groups = a[GROUPS].ints[0];
    if (in->rank != 4 || weight->rank != 4 || in->dims[1] != weight->dims[0] ||
        in->dims[1] % groups)
        return hwnas_fail(
            HWNAS_E_INPUT, NULL,
            "'conv_transpose': weights of shape %s in %lld groups do not fit an input of %s",
            hwnas_tensor_shape(weight).s, (long long)groups, hwnas_tensor_shape(in).s);
    *out = (hwnas_tensor){.name = out->name, .kind = out->kind, .dtype = out->dtype, .rank = 4,
                          .dims = {in->dims[0], weight->dims[1]}};
    if (__builtin_mul_overflow(out->dims[1], groups, &out->dims[1]))
        out->dims[1] = 0;
    if (node->n_inputs > 2 && (hwnas_node_input(graph, node, 2)->rank != 1 ||
                               hwnas_node_input(graph, node, 2)->dims[0] != out->dims[1]))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'conv_transpose': a bias of shape %s does not fit",
                          hwnas_tensor_shape(hwnas_node_input(graph, node, 2)).s);
    for (int i = 0; i < 2; i++)
        out->dims[2 + i] = (in->dims[2 + i] - 1) * a[STRIDE].ints[i] +
                           a[DILATION].ints[i] * (weight->dims[2 + i] - 1) + 1 + a[MORE].ints[i] -
                           a[PAD].ints[i] - a[PAD].ints[2 + i];
    return hwnas_check_macs(node, in, weight->dims[1] * weight->dims[2] * weight->dims[3]);
}

static int64_t macs(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    return hwnas_tensor_count(hwnas_node_input(graph, node, 0)) * weight->dims[1] *
           weight->dims[2] * weight->dims[3];
}

/* Adds one input plane, through one point of the kernel, to an output plane of sums. */
static void add_plane(double *sums, const int64_t *out_size, const float *plane,
                      const int64_t *in_size, float weight, const int64_t *offset,
                      const int64_t *stride)
{
    for (int64_t y = 0; y < in_size[0]; y++)
        for (int64_t x = 0; x < in_size[1]; x++) {
            const int64_t to_y = y * stride[0] + offset[0], to_x = x * stride[1] + offset[1];
            if (to_y >= 0 && to_y < out_size[0] && to_x >= 0 && to_x < out_size[1])
                sums[to_y * out_size[1] + to_x] += (double)weight * plane[y * in_size[1] + x];
        }
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t *w = hwnas_node_input(graph, node, 1)->dims;
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const hwnas_attr *a = node->attrs;
    const int64_t in_size = in->dims[2] * in->dims[3], out_size = out->dims[2] * out->dims[3];
    const int64_t per_group = in->dims[1] / a[GROUPS].ints[0];
    double *sums = hwnas_alloc((size_t)out_size * sizeof *sums);
    for (int64_t plane = 0; plane < out->dims[0] * out->dims[1]; plane++) {
        const int64_t sample = plane / out->dims[1], o = plane % out->dims[1], group = o / w[1];
        for (int64_t i = 0; i < out_size; i++)
            sums[i] = node->n_inputs > 2 ? inputs[2][o] : 0;
        for (int64_t c = group * per_group; c < (group + 1) * per_group; c++) {
            const float *kernel = inputs[1] + (c * w[1] + o % w[1]) * w[2] * w[3];
            const float *from = inputs[0] + (sample * in->dims[1] + c) * in_size;
            for (int64_t k = 0; k < w[2] * w[3]; k++) {
                const int64_t offset[] = {k / w[3] * a[DILATION].ints[0] - a[PAD].ints[0],
                                          k % w[3] * a[DILATION].ints[1] - a[PAD].ints[1]};
                add_plane(sums, out->dims + 2, from, in->dims + 2, kernel[k], offset,
                          a[STRIDE].ints);
            }
        }
        for (int64_t i = 0; i < out_size; i++)
            output[plane * out_size + i] = (float)sums[i];
    }
    free(sums);
}

const hwnas_op hwnas_op_conv_transpose = {
    .id = HWNAS_OP_CONV_TRANSPOSE,
    .name = "conv_transpose",
    .onnx = "ConvTranspose",
    .help = "transposed 2-D convolution",
    .attrs = attrs,
    .is_spatial = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .min_weights = 1,
    .max_weights = 2,
    .make_weights = make_weights,
    .read_weights = read_weights,
    .infer = infer,
    .macs = macs,
    .compute = compute,
};
