/* select.c: the place of the greatest or least value along an axis, and the k greatest or least. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ops/elementwise.h"

/* A tensor seen as before x along x after an axis. */
typedef struct lines {
    int64_t before, along, after;
} lines;

static lines lines_of(const hwnas_tensor *in, int64_t axis)
{
    lines l = {1, 1, 1};
    for (int i = 0; i < in->rank; i++)
        *(i < axis ? &l.before : i > axis ? &l.after : &l.along) *= in->dims[i];
    return l;
}

static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    hwnas_settle_axis(node->attrs->ints, hwnas_node_input(graph, node, 0)->rank);
}

#define AXIS_ROW                                                                                   \
    {.name = "axis", .kind = HWNAS_ATTR_INT, .fallback = 0, .low = -HWNAS_MAX_RANK,                \
     .high = HWNAS_MAX_RANK - 1, .onnx = "axis", .help = "dimension that is looked through"}

/* ---- arg_max, arg_min ---- */

enum { AXIS, KEEP, LAST };

static const double keeps = 1;

static const hwnas_attr_row arg_attrs[] = {
    [AXIS] = AXIS_ROW,
    [KEEP] = {.name = "keep", .kind = HWNAS_ATTR_BOOL, .high = 1, .onnx = "keepdims",
              .onnx_fallback = &keeps, .help = "leave the dimension, with length 1"},
    [LAST] = {.name = "last", .kind = HWNAS_ATTR_BOOL, .high = 1, .onnx = "select_last_index",
              .help = "of equal values the last, not the first"},
    {0},
};

static hwnas_status infer_arg(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    int axis;
    TRY(hwnas_find_axis(&axis, node, in->rank));
    out->dtype = HWNAS_INT64;
    for (int i = 0; i < in->rank; i++)
        if (i != axis || node->attrs[KEEP].ints[0])
            out->dims[out->rank++] = i == axis ? 1 : in->dims[i];
    return HWNAS_OK;
}

static void compute_arg(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output, float sign)
{
    const lines l = lines_of(hwnas_node_input(graph, node, 0), node->attrs[AXIS].ints[0]);
    for (int64_t b = 0; b < l.before; b++)
        for (int64_t a = 0; a < l.after; a++) {
            const float *line = inputs[0] + b * l.along * l.after + a;
            int64_t best = 0;
            for (int64_t i = 1; i < l.along; i++) {
                const float x = sign * line[i * l.after], y = sign * line[best * l.after];
                best = x > y || (x == y && node->attrs[LAST].ints[0]) ? i : best;
            }
            *output++ = (float)best;
        }
}

static void compute_max(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output)
{
    compute_arg(graph, node, inputs, output, 1);
}

static void compute_min(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output)
{
    compute_arg(graph, node, inputs, output, -1);
}

#define ARG(NAME, ID, ONNX, COMPUTE, HELP)                                                         \
    const hwnas_op hwnas_op_##NAME = {                                                             \
        .id = HWNAS_OP_##ID,                                                                       \
        .name = #NAME,                                                                             \
        .onnx = ONNX,                                                                              \
        .help = HELP,                                                                              \
        .attrs = arg_attrs,                                                                        \
        .is_internal = true,                                                                       \
        .takes_integers = true,                                                                    \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .settle = settle,                                                                          \
        .infer = infer_arg,                                                                        \
        .compute = COMPUTE,                                                                        \
    };

ARG(arg_max, ARG_MAX, "ArgMax", compute_max, "place of the greatest value along an axis")
ARG(arg_min, ARG_MIN, "ArgMin", compute_min, "place of the least value along an axis")

/* ---- top_k: values or, as another node, places ---- */

enum { COUNT = 1, LARGEST, PLACES };

static const double largest = 1;

static const hwnas_attr_row top_attrs[] = {
    AXIS_ROW,
    [COUNT] = {.name = "count", .kind = HWNAS_ATTR_INT, .fallback = 1, .low = 1, .high = 1 << 30,
               .help = "how many"},
    [LARGEST] = {.name = "largest", .kind = HWNAS_ATTR_BOOL, .high = 1, .onnx = "largest",
                 .onnx_fallback = &largest, .help = "the greatest, not the least"},
    [PLACES] = {.name = "places", .kind = HWNAS_ATTR_BOOL, .high = 1,
                .help = "where they are, not what"},
    {0},
};

static hwnas_status infer_top(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    int axis;
    TRY(hwnas_infer_same(graph, node, out));
    TRY(hwnas_find_axis(&axis, node, out->rank));
    if (node->attrs[COUNT].ints[0] > out->dims[axis])
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'top_k' cannot give %lld of %lld",
                          (long long)node->attrs[COUNT].ints[0], (long long)out->dims[axis]);
    out->dims[axis] = node->attrs[COUNT].ints[0];
    if (node->attrs[PLACES].ints[0])
        out->dtype = HWNAS_INT64;
    return HWNAS_OK;
}

typedef struct candidate {
    double value; /* negated for the least */
    int64_t place;
} candidate;

static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

/* NaN is the greatest, above infinity, as in PyTorch. */
static double key_of(float value, float sign)
{
    return sign * (isnan(value) ? INFINITY : fmin(value, DBL_MAX));
}

/* A few are found faster by inserting what is better than the last of them: of equal values the
 * first stays before the others, as compare() has it. */
static void find_best(candidate *best, int64_t count, const float *line, lines l, float sign)
{
    for (int64_t i = 0, n = 0; i < l.along; i++) {
        const double value = key_of(line[i * l.after], sign);
        if (n == count && !(value > best[n - 1].value))
            continue;
        int64_t at = n < count ? n++ : n - 1;
        for (; at > 0 && value > best[at - 1].value; at--)
            best[at] = best[at - 1];
        best[at] = (candidate){value, i};
    }
}

static void compute_top(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output)
{
    enum { FEW = 32 };
    const lines l = lines_of(hwnas_node_input(graph, node, 0), node->attrs[AXIS].ints[0]);
    const int64_t count = node->attrs[COUNT].ints[0];
    const float sign = node->attrs[LARGEST].ints[0] ? 1 : -1;
    candidate *best = hwnas_alloc((size_t)l.along * sizeof *best);
    for (int64_t b = 0; b < l.before; b++)
        for (int64_t a = 0; a < l.after; a++) {
            const float *line = inputs[0] + b * l.along * l.after + a;
            if (count <= FEW) {
                find_best(best, count, line, l, sign);
            } else {
                for (int64_t i = 0; i < l.along; i++)
                    best[i] = (candidate){key_of(line[i * l.after], sign), i};
                qsort(best, (size_t)l.along, sizeof *best, compare);
            }
            for (int64_t i = 0; i < count; i++)
                output[(b * count + i) * l.after + a] = node->attrs[PLACES].ints[0]
                                                            ? (float)best[i].place
                                                            : line[best[i].place * l.after];
        }
    free(best);
}

const hwnas_op hwnas_op_top_k = {
    .id = HWNAS_OP_TOP_K,
    .name = "top_k",
    .onnx = "TopK",
    .help = "the greatest or least values along an axis, or their places",
    .attrs = top_attrs,
    .is_internal = true,
    .takes_integers = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .settle = settle,
    .infer = infer_top,
    .compute = compute_top,
};
