/* conv: 2-D convolution (cross-correlation), grouped, strided, dilated, padded with zeros. */
#include <stdlib.h>
#include <string.h>

#include "graph/ops/elementwise.h"

enum { OUT, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS };

static const hwnas_attr_row attrs[] = {
    [OUT] = {.name = "out", .kind = HWNAS_ATTR_INT, .is_required = true, .fallback = 1, .low = 1,
             .high = 1 << 30, .help = "output channels"},
    [KERNEL] = {.name = "kernel", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1, .low = 1,
                .high = 1 << 20, .onnx = "kernel_shape", .help = "height and width of the kernel"},
    [STRIDE] = {.name = "stride", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1, .low = 1,
                .high = 1 << 20, .onnx = "strides", .help = "step down and to the right"},
    [PAD] = {.name = "pad", .kind = HWNAS_ATTR_INTS, .count = 4, .fallback = 0, .low = 0,
             .high = 1 << 20, .onnx = "pads", .help = "zeros at top, left, bottom, right"},
    [DILATION] = {.name = "dilation", .kind = HWNAS_ATTR_INTS, .count = 2, .fallback = 1, .low = 1,
                  .high = 1 << 20, .onnx = "dilations", .help = "distance of the kernel's points"},
    [GROUPS] = {.name = "groups", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = 1, .high = 1 << 30,
                .onnx = "group", .help = "groups of channels; all of them: depthwise"},
    [BIAS] = {.name = "bias", .kind = HWNAS_ATTR_BOOL, .fallback = 1, .low = 0, .high = 1,
              .help = "add a learned bias"},
    {0},
};

static const hwnas_onnx_row onnx_rows[] = {
    {.name = "auto_pad", .text = "NOTSET"},
    {0},
};

static hwnas_status need_image(const hwnas_node *node, const hwnas_tensor *in)
{
    return hwnas_need_image(node, in, "for volumes use 'conv3d'");
}

static hwnas_status make_weights(hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *a = node->attrs;
    TRY(need_image(node, in));
    int64_t groups = a[GROUPS].ints[0], out = a[OUT].ints[0];
    if (in->dims[1] % groups || out % groups)
        return hwnas_fail(
            HWNAS_E_INPUT, NULL,
            "'conv': %lld groups do not divide both %lld input and %lld output channels",
            (long long)groups, (long long)in->dims[1], (long long)out);
    int64_t dims[] = {out, in->dims[1] / groups, a[KERNEL].ints[0], a[KERNEL].ints[1]};
    TRY(hwnas_node_add_weight(graph, node, "weight", 4, dims, HWNAS_INIT_FAN_IN, true));
    if (a[BIAS].ints[0])
        TRY(hwnas_node_add_weight(graph, node, "bias", 1, dims, HWNAS_INIT_SMALL, true));
    return HWNAS_OK;
}

static void read_weights(const hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    node->attrs[OUT].ints[0] = weight->dims[0];
    memcpy(node->attrs[KERNEL].ints, weight->dims + 2, 2 * sizeof *weight->dims);
    node->attrs[BIAS].ints[0] = node->n_inputs > 2;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    const hwnas_attr *a = node->attrs;
    TRY(need_image(node, in));
    int64_t groups = a[GROUPS].ints[0];
    if (weight->rank != 4 || in->dims[1] % groups ||
        weight->dims[1] != in->dims[1] / groups || weight->dims[0] % groups)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'conv': weights of shape %s in %lld groups do not fit an input of %s",
                          hwnas_tensor_shape(weight).s, (long long)groups,
                          hwnas_tensor_shape(in).s);
    TRY(hwnas_check_bias(graph, node));
    out->rank = 4;
    out->dims[0] = in->dims[0];
    out->dims[1] = weight->dims[0];
    for (int i = 0; i < 2; i++) {
        int64_t padded = in->dims[2 + i] + a[PAD].ints[i] + a[PAD].ints[2 + i];
        int64_t reach = a[DILATION].ints[i] * (weight->dims[2 + i] - 1) + 1;
        if (reach > padded)
            return hwnas_fail(
                HWNAS_E_INPUT, NULL,
                "'conv': a kernel that reaches over %lld is larger than its padded input of %lld",
                (long long)reach, (long long)padded);
        out->dims[2 + i] = (padded - reach) / a[STRIDE].ints[i] + 1;
    }
    return hwnas_check_macs(node, out, weight->dims[1] * weight->dims[2] * weight->dims[3]);
}

static int64_t macs(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    return hwnas_tensor_count(hwnas_node_output(graph, node)) * weight->dims[1] * weight->dims[2] *
           weight->dims[3];
}

/* Adds one input plane, seen through one point of the kernel, to an output plane of sums. */
static void add_plane(double *sums, const int64_t *out_size, const float *plane,
                      const int64_t *in_size, float weight, const int64_t *offset,
                      const int64_t *stride)
{
    for (int64_t y = 0; y < out_size[0]; y++) {
        int64_t from_y = y * stride[0] + offset[0];
        if (from_y < 0 || from_y >= in_size[0])
            continue;
        const float *row = plane + from_y * in_size[1];
        for (int64_t x = 0; x < out_size[1]; x++) {
            int64_t from_x = x * stride[1] + offset[1];
            if (from_x >= 0 && from_x < in_size[1])
                sums[y * out_size[1] + x] += (double)weight * row[from_x];
        }
    }
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *weight = hwnas_node_input(graph, node, 1);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const hwnas_attr *a = node->attrs;
    int64_t in_size = in->dims[2] * in->dims[3], out_size = out->dims[2] * out->dims[3];
    int64_t per_group = out->dims[1] / a[GROUPS].ints[0];
    double *sums = hwnas_alloc((size_t)out_size * sizeof *sums);
    for (int64_t plane = 0; plane < out->dims[0] * out->dims[1]; plane++) {
        int64_t b = plane / out->dims[1], o = plane % out->dims[1];
        const float *w = inputs[1] + o * weight->dims[1] * weight->dims[2] * weight->dims[3];
        for (int64_t i = 0; i < out_size; i++)
            sums[i] = node->n_inputs > 2 ? inputs[2][o] : 0;
        for (int64_t c = 0; c < weight->dims[1]; c++) {
            int64_t channel = o / per_group * weight->dims[1] + c;
            const float *from = inputs[0] + (b * in->dims[1] + channel) * in_size;
            for (int64_t ky = 0; ky < weight->dims[2]; ky++)
                for (int64_t kx = 0; kx < weight->dims[3]; kx++) {
                    int64_t offset[] = {ky * a[DILATION].ints[0] - a[PAD].ints[0],
                                        kx * a[DILATION].ints[1] - a[PAD].ints[1]};
                    add_plane(sums, out->dims + 2, from, in->dims + 2, *w++, offset,
                              a[STRIDE].ints);
                }
        }
        for (int64_t i = 0; i < out_size; i++)
            output[plane * out_size + i] = (float)sums[i];
    }
    free(sums);
}

const hwnas_op hwnas_op_conv = {
    .id = HWNAS_OP_CONV,
    .class = HWNAS_CLASS_PRODUCT,
    .name = "conv",
    .onnx = "Conv",
    .help = "2-D convolution",
    .attrs = attrs,
    .onnx_rows = onnx_rows,
    .is_spatial = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .min_weights = 1,
    .max_weights = 2,
    .may_compute_kernel = true,
    .make_weights = make_weights,
    .read_weights = read_weights,
    .infer = infer,
    .macs = macs,
    .compute = compute,
};
