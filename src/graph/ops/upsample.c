/* upsample: an image made larger by a whole factor, each pixel repeated or by linear interpolation
 * between the pixels' centres. */
#include <math.h>
#include <string.h>

#include "graph/ops/elementwise.h"

enum { BY, LINEAR };

static const char *const modes[] = {"nearest", "linear", NULL};

static const hwnas_attr_row attrs[] = {
    /* src/onnx/: Resize's scales */
    [BY] = {.name = "by", .kind = HWNAS_ATTR_INTS, .count = 2, .is_required = true, .low = 1,
            .high = 1 << 20, .help = "factors of height and width"},
    [LINEAR] = {.name = "linear", .kind = HWNAS_ATTR_BOOL, .fallback = 0, .low = 0, .high = 1,
                .onnx = "mode", .onnx_words = modes, .help = "interpolate; else repeat"},
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    TRY(hwnas_infer_same(graph, node, out));
    if (out->rank != 4)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'upsample' needs an image (batch x channels x height x width), not %s",
                          hwnas_tensor_shape(out).s);
    for (int i = 0; i < 2; i++)
        out->dims[2 + i] *= node->attrs[BY].ints[i];
    return HWNAS_OK;
}

/* The two pixels between which the centre of output pixel `at` lies, and how near it is to the
 * second. */
static double between(int64_t *first, int64_t *second, int64_t at, int64_t by, int64_t n,
                      bool is_linear)
{
    const double centre = ((double)at + 0.5) / (double)by - 0.5;
    if (!is_linear) {
        *first = *second = at / by;
        return 0;
    }
    *first = centre < 0 ? 0 : (int64_t)centre;
    *second = *first + 1 < n ? *first + 1 : n - 1;
    return centre < 0 ? 0 : centre - (double)*first;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const int64_t *in = hwnas_node_input(graph, node, 0)->dims, *by = node->attrs[BY].ints;
    const int64_t *out = hwnas_node_output(graph, node)->dims;
    const bool is_linear = node->attrs[LINEAR].ints[0];
    for (int64_t plane = 0; plane < out[0] * out[1]; plane++) {
        const float *from = inputs[0] + plane * in[2] * in[3];
        for (int64_t y = 0; y < out[2]; y++)
            for (int64_t x = 0; x < out[3]; x++) {
                int64_t top, bottom, left, right;
                const double v = between(&top, &bottom, y, by[0], in[2], is_linear);
                const double u = between(&left, &right, x, by[1], in[3], is_linear);
                const float *a = from + top * in[3], *b = from + bottom * in[3];
                *output++ = (float)((1 - v) * ((1 - u) * a[left] + u * a[right]) +
                                    v * ((1 - u) * b[left] + u * b[right]));
            }
    }
}

const hwnas_op hwnas_op_upsample = {
    .id = HWNAS_OP_UPSAMPLE,
    .name = "upsample",
    .onnx = "Resize",
    .onnx_since = 11,
    .help = "an image made larger by a whole factor",
    .attrs = attrs,
    .is_spatial = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .infer = infer,
    .compute = compute,
};
