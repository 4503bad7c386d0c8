/* grid_sample: values of an image at the places that a grid names, each a pair of x and y from -1
 * to 1. */
#include "graph/ops/grid_sample.h"

#include <math.h>

#include "graph/ops/elementwise.h"

enum { MODE, PADDING, ALIGNED };
enum { IMAGE, GRID };

/* The last two are what opset 20 calls the first and the third. */
static const char *const modes[] = {"bilinear", "nearest", "bicubic", "linear", "cubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};

static const hwnas_attr_row attrs[] = {
    [MODE] = {.name = "mode",
              .kind = HWNAS_ATTR_INT,
              .high = HWNAS_SAMPLE_CUBIC + 2,
              .onnx = "mode",
              .onnx_words = modes,
              .help = "how values between pixels are found"},
    [PADDING] = {.name = "padding",
                 .kind = HWNAS_ATTR_INT,
                 .high = HWNAS_SAMPLE_REFLECTION,
                 .onnx = "padding_mode",
                 .onnx_words = paddings,
                 .help = "what is beyond the image"},
    [ALIGNED] = {.name = "align_corners",
                 .kind = HWNAS_ATTR_BOOL,
                 .high = 1,
                 .onnx = "align_corners",
                 .help = "the ends of the grid are the centres of the outermost pixels"},
    {0},
};

static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    (void)graph;
    int64_t *mode = node->attrs[MODE].ints;
    if (*mode > HWNAS_SAMPLE_CUBIC)
        *mode = *mode == HWNAS_SAMPLE_CUBIC + 1 ? HWNAS_SAMPLE_LINEAR : HWNAS_SAMPLE_CUBIC;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *grid = hwnas_node_input(graph, node, GRID);
    TRY(hwnas_infer_floats(graph, node, out));
    TRY(hwnas_need_image(node, out, "slices of a volume are sampled one by one"));
    if (grid->rank != 4 || grid->dims[0] != out->dims[0] || grid->dims[3] != 2 ||
        hwnas_dtype_is_whole(grid->dtype))
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "'grid_sample': a grid of shape %s does not fit %s: it is batch x height "
                          "x width x 2",
                          hwnas_tensor_shape(grid).s, hwnas_tensor_shape(out).s);
    out->dims[2] = grid->dims[1];
    out->dims[3] = grid->dims[2];
    return HWNAS_OK;
}

hwnas_sampling hwnas_sampling_of(const hwnas_node *node)
{
    return (hwnas_sampling){.mode = node->attrs[MODE].ints[0],
                            .padding = node->attrs[PADDING].ints[0],
                            .is_aligned = node->attrs[ALIGNED].ints[0]};
}

/* The pixel at `i`, which may be beyond the image; -1: none. Reflections are at the centres of the
 * outermost pixels or, where corners are not aligned, at their outer edges. */
static int64_t source(const hwnas_sampling *how, int64_t i, int64_t n)
{
    const int64_t period = how->is_aligned ? 2 * (n - 1) : 2 * n;
    if (i >= 0 && i < n)
        return i;
    if (how->padding == HWNAS_SAMPLE_ZEROS)
        return -1;
    if (how->padding == HWNAS_SAMPLE_BORDER)
        return i < 0 ? 0 : n - 1;
    if (!period)
        return 0;
    i = (i % period + period) % period;
    return i < n ? i : period - i - !how->is_aligned;
}

/* Keys 1981, with -0.75 as ONNX and PyTorch have it. */
static double cubic(double x)
{
    static const double a = -0.75;
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* The place in pixels, in 32 bits as others have it: halfway between two pixels it decides which is
 * the nearest. What is so far away that nothing counts there, or NaN, is beyond the image. */
static float pixel_of(const hwnas_sampling *how, float x, int64_t n)
{
    static const float far = 0x1p30f;
    const float at = how->is_aligned ? (x + 1) / 2 * (float)(n - 1) : ((x + 1) * (float)n - 1) / 2;
    return at > -far ? fminf(at, far) : -far;
}

int hwnas_sample_taps(int64_t *at, float *weights, const hwnas_sampling *how, float x, int64_t n)
{
    static const int counts[] = {
        [HWNAS_SAMPLE_LINEAR] = 2, [HWNAS_SAMPLE_NEAREST] = 1, [HWNAS_SAMPLE_CUBIC] = 4};
    const float place = pixel_of(how, x, n);
    const bool is_nearest = how->mode == HWNAS_SAMPLE_NEAREST;
    const int64_t first = (int64_t)(is_nearest ? nearbyintf(place) : floorf(place)) -
                          (how->mode == HWNAS_SAMPLE_CUBIC);
    for (int k = 0; k < counts[how->mode]; k++) {
        const double away = (double)place - (double)(first + k);
        const int64_t from = source(how, first + k, n);
        const double weight = is_nearest                         ? 1
                              : how->mode == HWNAS_SAMPLE_LINEAR ? 1 - fabs(away)
                                                                 : cubic(away);
        at[k] = from;
        weights[k] = (float)weight;
    }
    return counts[how->mode];
}

/* One value of a plane `width` wide. */
static float sample(const float *plane, int64_t width, int n, const int64_t *y, const float *v,
                    const int64_t *x, const float *u)
{
    double sum = 0;
    for (int i = 0; i < n * n; i++)
        if (y[i / n] >= 0 && x[i % n] >= 0)
            sum += (double)v[i / n] * u[i % n] * plane[y[i / n] * width + x[i % n]];
    return (float)sum;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const int64_t *in = hwnas_node_input(graph, node, IMAGE)->dims;
    const int64_t *out = hwnas_node_output(graph, node)->dims;
    const hwnas_sampling how = hwnas_sampling_of(node);
    const int64_t n_pixels = out[2] * out[3], n_from = in[2] * in[3];
    for (int64_t i = 0; i < out[0] * n_pixels; i++) {
        int64_t x[HWNAS_SAMPLE_MAX_TAPS], y[HWNAS_SAMPLE_MAX_TAPS];
        float u[HWNAS_SAMPLE_MAX_TAPS], v[HWNAS_SAMPLE_MAX_TAPS];
        const float *place = inputs[GRID] + 2 * i;
        const int64_t first = i / n_pixels * in[1];
        int n = hwnas_sample_taps(x, u, &how, place[0], in[3]);
        n = hwnas_sample_taps(y, v, &how, place[1], in[2]);
        for (int64_t c = first; c < first + in[1]; c++)
            output[c * n_pixels + i % n_pixels] =
                sample(inputs[IMAGE] + c * n_from, in[3], n, y, v, x, u);
    }
}

const hwnas_op hwnas_op_grid_sample = {
    .id = HWNAS_OP_GRID_SAMPLE,
    .name = "grid_sample",
    .onnx = "GridSample",
    .onnx_since = 16,
    .help = "values of an image at the places of a grid",
    .attrs = attrs,
    .is_internal = true,
    .min_inputs = 2,
    .max_inputs = 2,
    .settle = settle,
    .infer = infer,
    .compute = compute,
};
