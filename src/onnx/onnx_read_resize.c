/* onnx_read_resize.c: images, or anything, made larger or smaller. ONNX has many ways to place and
 * weigh pixels, but in each an axis is resized by itself, and each new value is a sum of a few old
 * ones whose places and weights are known beforehand: of tables that are gathered, weighed and
 * added.
 *
 * What `upsample` computes is left to it: whole factors, the nearest or linear. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

enum { MAX_TAPS = 64, MAX_SIZE = 1 << 18 };

typedef hwnas_onnx_builder builder;

typedef struct resize {
    const Onnx__NodeProto *node;
    bool is_old;   /* opset 10 and before: places are asymmetric, the nearest is below */
    double scale;  /* of the axis */
    double begin, end; /* the region of interest, of the axis */
    int64_t n, m;  /* size before and after */
} resize;

static bool has_mode(const resize *z, const char *attribute, const char *word, bool is_default)
{
    return hwnas_onnx_is_word(z->node, attribute, word, is_default);
}

/* What is understood of the attributes that are words. */
static void check_words(builder *b)
{
    static const struct {
        const char *attribute, *words[8];
    } rows[] = {
        {"mode", {"nearest", "linear", "bilinear", "cubic"}},
        {"coordinate_transformation_mode",
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
          "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}},
        {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bool is_known = !hwnas_onnx_attribute(b->node, rows[r].attribute);
        for (int i = 0; rows[r].words[i] && !is_known; i++)
            is_known = hwnas_onnx_is_word(b->node, rows[r].attribute, rows[r].words[i], false);
        if (!is_known)
            hwnas_onnx_refuse(b, rows[r].attribute, "has a value that we cannot compute");
    }
}

/* Where the new value `i` lies among the old ones. */
static double place(const resize *z, int64_t i)
{
    const char *mode = "coordinate_transformation_mode";
    const double at = (double)i, n = (double)z->n, m = z->scale * n;
    if (z->is_old || has_mode(z, mode, "asymmetric", false))
        return at / z->scale;
    if (has_mode(z, mode, "align_corners", false))
        return m == 1 || z->m == 1 ? 0 : at * (n - 1) / (m - 1);
    if (has_mode(z, mode, "tf_half_pixel_for_nn", false))
        return (at + 0.5) / z->scale;
    if (has_mode(z, mode, "pytorch_half_pixel", false))
        return z->m > 1 ? (at + 0.5) / z->scale - 0.5 : 0;
    if (has_mode(z, mode, "tf_crop_and_resize", false))
        return z->m > 1
                   ? z->begin * (n - 1) + at * (z->end - z->begin) * (n - 1) / ((double)z->m - 1)
                   : 0.5 * (z->begin + z->end) * (n - 1);
    const double symmetric = has_mode(z, mode, "half_pixel_symmetric", false)
                                 ? n / 2 * (1 - (double)z->m / m)
                                 : 0;
    return symmetric + (at + 0.5) / z->scale - 0.5;
}

/* Keys 1981 */
static double cubic(double x, double a)
{
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

static double nearest(const resize *z, double x)
{
    if (z->is_old || has_mode(z, "nearest_mode", "floor", false))
        return floor(x);
    if (has_mode(z, "nearest_mode", "ceil", false))
        return ceil(x);
    return has_mode(z, "nearest_mode", "round_prefer_ceil", false) ? floor(x + 0.5) : ceil(x - 0.5);
}

/* How many old values a new one is made of. `widened`: by how much the filter is, so that of a
 * smaller image no old value is left out. */
static double count_taps(double *widened, const resize *z)
{
    const bool is_wide = hwnas_onnx_int(z->node, "antialias", 0) && z->scale < 1;
    *widened = is_wide ? 1 / z->scale : 1;
    if (has_mode(z, "mode", "nearest", true))
        return 1;
    return 2 * ceil((has_mode(z, "mode", "cubic", false) ? 2 : 1) * *widened);
}

/* Which they are, and their weights. */
static int find_taps(float *places, float *weights, const resize *z, double x)
{
    double widened, sum = 0;
    const int n = (int)count_taps(&widened, z);
    const bool is_cubic = has_mode(z, "mode", "cubic", false);
    const double base = n > 1 ? floor(x) - n / 2 + 1 : nearest(z, x);
    const double a = hwnas_onnx_float(z->node, "cubic_coeff_a", -0.75);
    const bool excludes = hwnas_onnx_int(z->node, "exclude_outside", 0);
    for (int i = 0; i < n; i++) {
        const double at = base + i, last = (double)z->n - 1, away = (x - at) / widened;
        const bool is_outside = at < 0 || at > last;
        double weight = is_cubic ? cubic(away, a) : n > 1 ? fmax(0, 1 - fabs(away)) : 1;
        if (is_outside && excludes)
            weight = 0;
        places[i] = (float)fmin(last, fmax(0, at));
        weights[i] = (float)weight;
        sum += weight;
    }
    for (int i = 0; i < n && (excludes || widened > 1); i++)
        weights[i] = (float)(weights[i] / sum);
    return n;
}

/* Resizes one axis. */
static int resize_axis(builder *b, int x, int axis, const resize *z)
{
    const bool crops = has_mode(z, "coordinate_transformation_mode", "tf_crop_and_resize", false);
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    int64_t line[HWNAS_MAX_RANK] = {0};
    int weights[MAX_TAPS], beyond = -1, sum = -1;
    float *w[MAX_TAPS], *outside = NULL, places[MAX_TAPS] = {0}, weight[MAX_TAPS] = {0};
    const int rank = in.rank - axis;
    for (int i = 0; i < rank; i++)
        line[i] = i ? 1 : z->m;
    double widened;
    const double n_taps = count_taps(&widened, z);
    if (n_taps > MAX_TAPS) {
        hwnas_onnx_refuse(b, "antialias", "makes each value of more than 64: resize in two steps");
        return x;
    }
    int tables[MAX_TAPS];
    float *t[MAX_TAPS];
    for (int k = 0; k < n_taps; k++) {
        t[k] = hwnas_onnx_values_of(&tables[k], b, 1, &z->m, HWNAS_INT64);
        w[k] = hwnas_onnx_values_of(&weights[k], b, rank, line, HWNAS_FLOAT32);
    }
    if (crops)
        outside = hwnas_onnx_values_of(&beyond, b, rank, line, HWNAS_FLOAT32);
    if (b->status != HWNAS_OK)
        return x;
    const double value = hwnas_onnx_float(z->node, "extrapolation_value", 0);
    bool has_outside = false;
    for (int64_t i = 0; i < z->m; i++) {
        const double at = place(z, i);
        const bool is_outside = crops && (at < 0 || at > (double)z->n - 1);
        find_taps(places, weight, z, at);
        has_outside |= is_outside;
        for (int k = 0; k < n_taps; k++) {
            t[k][i] = places[k];
            w[k][i] = is_outside ? 0 : weight[k];
        }
        if (outside)
            outside[i] = is_outside ? (float)value : 0;
    }
    const hwnas_attr attr = hwnas_attr_int(axis);
    for (int k = 0; k < n_taps; k++) {
        int part = hwnas_onnx_make(b, HWNAS_OP_GATHER, &attr, x, tables[k]);
        if (n_taps > 1 || has_outside)
            part = hwnas_onnx_make(b, HWNAS_OP_MUL, NULL, part, weights[k]);
        sum = k ? hwnas_onnx_make(b, HWNAS_OP_ADD, NULL, sum, part) : part;
    }
    return has_outside ? hwnas_onnx_make(b, HWNAS_OP_ADD, NULL, sum, beyond) : sum;
}

/* Numbers that are given for each of the axes, in a constant input or, before opset 9, an
 * attribute. */
static int read_numbers(double *out, builder *b, size_t input, const char *attribute)
{
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(b->node, attribute);
    if (given) {
        for (size_t i = 0; i < given->n_floats && i < 2 * HWNAS_MAX_RANK; i++)
            out[i] = given->floats[i];
        return given->n_floats > 2 * HWNAS_MAX_RANK ? 0 : (int)given->n_floats;
    }
    if (!hwnas_onnx_has_input(b->node, input))
        return 0;
    if (hwnas_onnx_is_nothing(b->r, b->node->input[input]))
        return 0; /* an empty list stands for none */
    const hwnas_tensor *from = hwnas_onnx_build_known(b, input, attribute);
    const int64_t n = from ? hwnas_tensor_count(from) : 0;
    if (n > 2 * HWNAS_MAX_RANK)
        return 0;
    for (int64_t i = 0; i < n; i++)
        out[i] = from->data[i];
    return (int)n;
}

hwnas_status hwnas_onnx_read_resize(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    const bool is_old = r->opset < 11 || !strcmp(node->op_type, "Upsample");
    double scales[2 * HWNAS_MAX_RANK], sizes[2 * HWNAS_MAX_RANK], region[2 * HWNAS_MAX_RANK];
    const Onnx__AttributeProto *axes = hwnas_onnx_attribute(node, "axes");
    builder b;
    int x, n_scales, n_sizes = 0, n_region = 0;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    if (!is_old)
        TRY(hwnas_onnx_read_upsample(out, r, node, name));
    if (*out != HWNAS_ONNX_NOT_MADE)
        return HWNAS_OK;
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    const int n = axes ? (int)axes->n_ints : in.rank;
    n_scales = read_numbers(scales, &b, is_old ? 1 : 2, "scales");
    if (!is_old) {
        n_sizes = read_numbers(sizes, &b, 3, "sizes");
        if (hwnas_onnx_is_word(node, "coordinate_transformation_mode", "tf_crop_and_resize", false))
            n_region = read_numbers(region, &b, 1, "roi");
    }
    if ((n_scales != n && n_sizes != n) || n > in.rank)
        hwnas_onnx_refuse(&b, "scales", "or sizes are absent, or not one for each axis");
    check_words(&b);
    const bool is_larger =
        hwnas_onnx_is_word(node, "keep_aspect_ratio_policy", "not_smaller", false);
    const bool keeps =
        is_larger || hwnas_onnx_is_word(node, "keep_aspect_ratio_policy", "not_larger", false);
    double common = is_larger ? 0 : INFINITY;
    for (int pass = 0; pass < 2 && b.status == HWNAS_OK; pass++)
        for (int i = 0; i < n && b.status == HWNAS_OK; i++) {
            const int64_t axis = axes ? axes->ints[i] + (axes->ints[i] < 0 ? in.rank : 0) : i;
            if (axis < 0 || axis >= in.rank) {
                hwnas_onnx_refuse(&b, "axes", "name a dimension that is not there");
                break;
            }
            const double old = (double)in.dims[axis];
            double scale = n_sizes == n ? sizes[i] / old : scales[i];
            if (pass == 0) {
                common = is_larger ? fmax(common, scale) : fmin(common, scale);
                continue;
            }
            double size = n_sizes == n ? sizes[i] : floor(old * scale);
            if (keeps && n_sizes == n) {
                size = rint(common * old);
                scale = common;
            }
            if (!(scale > 0 && size >= 1 && size <= MAX_SIZE)) {
                hwnas_onnx_refuse(&b, "scales", "are out of range");
                break;
            }
            const resize z = {.node = node, .is_old = is_old, .scale = scale,
                              .begin = n_region == 2 * n ? region[i] : 0,
                              .end = n_region == 2 * n ? region[n + i] : 1,
                              .n = in.dims[axis], .m = (int64_t)size};
            if (scale != 1 || z.begin != 0 || z.end != 1)
                x = resize_axis(&b, x, (int)axis, &z);
        }
    return hwnas_onnx_built(out, &b, x);
}
