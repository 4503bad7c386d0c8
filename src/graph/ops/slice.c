/* slice: part of a tensor along one axis. */
#include <string.h>

#include "graph/ops/elementwise.h"

enum { BEGIN, END, AXIS, STEP };

#define TO_THE_END (INT64_C(1) << 40)

static const hwnas_attr_row attrs[] = {
    [BEGIN] = {.name = "begin", .kind = HWNAS_ATTR_INTS, .count = 1, .fallback = 0,
               .low = -TO_THE_END, .high = TO_THE_END, .onnx = "starts", .onnx_input = 1,
               .help = "the first that is taken; -1 is the last"},
    [END] = {.name = "end", .kind = HWNAS_ATTR_INTS, .count = 1, .fallback = TO_THE_END,
             .low = -TO_THE_END, .high = 9.3e18, .onnx = "ends", .onnx_input = 2,
             .help = "the first that is not taken any more; as written, to the end"},
    [AXIS] = {.name = "axis", .kind = HWNAS_ATTR_INTS, .count = 1, .fallback = 1,
              .low = -HWNAS_MAX_RANK, .high = HWNAS_MAX_RANK - 1, .onnx = "axes", .onnx_input = 3,
              .help = "dimension that is cut; 0 is the batch, 1 the channels"},
    [STEP] = {.name = "step", .kind = HWNAS_ATTR_INTS, .count = 1, .fallback = 1, .low = 1,
              .high = 1 << 30, .onnx = "steps", .onnx_input = 4, .help = "every step-th is taken"},
    {0},
};

static int64_t clamp(int64_t at, int64_t n)
{
    at += at < 0 ? n : 0;
    return at < 0 ? 0 : at > n ? n : at;
}

/* The bounds as they are, so that equal slices are equal. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    int64_t *axis = node->attrs[AXIS].ints;
    hwnas_settle_axis(axis, in->rank);
    if (*axis < 0 || *axis >= in->rank)
        return;
    for (int i = BEGIN; i <= END; i++)
        node->attrs[i].ints[0] = clamp(node->attrs[i].ints[0], in->dims[*axis]);
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    int axis;
    TRY(hwnas_infer_same(graph, node, out));
    TRY(hwnas_find_axis(&axis, node, out->rank));
    const int64_t n = out->dims[axis];
    const int64_t begin = clamp(node->attrs[BEGIN].ints[0], n);
    const int64_t end = clamp(node->attrs[END].ints[0], n), step = node->attrs[STEP].ints[0];
    if (end <= begin)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'slice' from %lld to %lld takes nothing of %s",
                          (long long)begin, (long long)end, hwnas_tensor_shape(out).s);
    out->dims[axis] = (end - begin - 1) / step + 1;
    return HWNAS_OK;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const int64_t axis = node->attrs[AXIS].ints[0], step = node->attrs[STEP].ints[0];
    int64_t n_before = 1, n_after = 1;
    for (int i = 0; i < in->rank; i++)
        *(i < axis ? &n_before : i > axis ? &n_after : &(int64_t){0}) *= in->dims[i];
    /* What lies side by side is copied as one. */
    const int64_t n_parts = step == 1 ? 1 : out->dims[axis];
    const int64_t n_part = step == 1 ? n_after * out->dims[axis] : n_after;
    for (int64_t b = 0; b < n_before; b++)
        for (int64_t i = 0; i < n_parts; i++, output += n_part) {
            const int64_t from = node->attrs[BEGIN].ints[0] + i * step;
            const float *part = inputs[0] + (b * in->dims[axis] + from) * n_after;
            if (n_part == 1)
                *output = *part;
            else
                memcpy(output, part, (size_t)n_part * sizeof *output);
        }
}

const hwnas_op hwnas_op_slice = {
    .id = HWNAS_OP_SLICE,
    .name = "slice",
    .onnx = "Slice",
    .onnx_since = 10, /* before, the bounds were attributes */
    .help = "part of a tensor along one axis",
    .attrs = attrs,
    .is_common = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .keeps_zeros = true,
    .takes_integers = true,
    .settle = settle,
    .infer = infer,
    .compute = compute,
};
