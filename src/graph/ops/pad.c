/* pad: more values around those that there are. In a node `before` and `after` have one number for
 * each of the first dimensions; what they do not name stays. */
#include <math.h>
#include <string.h>

#include "graph/ops/elementwise.h"
#include "graph/ops/pad.h"

enum { BEFORE, AFTER, VALUE, MODE };
enum { CONSTANT = HWNAS_PAD_CONSTANT, REFLECT = HWNAS_PAD_REFLECT, WRAP = HWNAS_PAD_WRAP };

static const char *const modes[] = {"constant", "edge", "reflect", "wrap", NULL};

static const hwnas_attr_row attrs[] = {
    [BEFORE] = {.name = "before", .kind = HWNAS_ATTR_INTS, .high = 1 << 30,
                .help = "how many at the beginning"},
    [AFTER] = {.name = "after", .kind = HWNAS_ATTR_INTS, .high = 1 << 30,
               .help = "how many at the end"},
    [VALUE] = {.name = "value", .kind = HWNAS_ATTR_NUMBER, .low = -INFINITY, .high = INFINITY,
               .help = "of what is new, where it is constant"},
    [MODE] = {.name = "mode", .kind = HWNAS_ATTR_INT, .low = CONSTANT, .high = WRAP,
              .onnx = "mode", .onnx_words = modes, .help = "where new values come from"},
    {0},
};

/* One number for each dimension, so that equal nodes are equal. */
static void settle(const hwnas_graph *graph, hwnas_node *node)
{
    const int rank = hwnas_node_input(graph, node, 0)->rank;
    for (int i = BEFORE; i <= AFTER; i++)
        while (node->attrs[i].n < rank)
            node->attrs[i].ints[node->attrs[i].n++] = 0;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    TRY(hwnas_infer_same(graph, node, out));
    for (int i = 0; i < out->rank; i++) {
        const int64_t n = out->dims[i], before = node->attrs[BEFORE].ints[i],
                      after = node->attrs[AFTER].ints[i];
        const int64_t most = node->attrs[MODE].ints[0] == REFLECT ? n - 1
                             : node->attrs[MODE].ints[0] == WRAP  ? n
                                                                  : INT64_C(1) << 40;
        if (node->attrs[BEFORE].n != out->rank || node->attrs[AFTER].n != out->rank || before < 0 ||
            after < 0 || before > most || after > most)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'pad' cannot pad %s by %lld and %lld",
                              hwnas_tensor_shape(out).s, (long long)before, (long long)after);
        out->dims[i] += before + after;
    }
    return HWNAS_OK;
}

/* The last dimension that is padded; those behind it are moved as one. */
static int last_padded(const hwnas_node *node, int rank)
{
    int last = rank - 1;
    while (last > 0 && !node->attrs[BEFORE].ints[last] && !node->attrs[AFTER].ints[last])
        last--;
    return last;
}

/* One run along dimension `axis`, whose places have `count` values each; `in` NULL: nothing but
 * new ones. */
static void pad_run(float *out, const float *in, const hwnas_node *node, int axis, int64_t n_in,
                    int64_t n_out, int64_t count)
{
    const int64_t before = node->attrs[BEFORE].ints[axis];
    const float value = (float)node->attrs[VALUE].number;
    for (int64_t i = 0; i < n_out;) {
        const int64_t from =
            in ? hwnas_pad_source(i - before, n_in, node->attrs[MODE].ints[0]) : -1;
        const int64_t n = in && i == before ? n_in : 1; /* what there was, at once */
        if (from >= 0)
            memcpy(out + i * count, in + from * count, (size_t)(n * count) * sizeof *out);
        else
            for (int64_t k = 0; k < count; k++)
                out[i * count + k] = value;
        i += n;
    }
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0),
                       *out = hwnas_node_output(graph, node);
    if (!out->rank) {
        *output = inputs[0][0];
        return;
    }
    const int axis = last_padded(node, out->rank);
    int64_t count = 1, n_outer = 1;
    for (int i = 0; i < out->rank; i++)
        *(i < axis ? &n_outer : &count) *= i == axis ? 1 : out->dims[i];
    for (int64_t outer = 0; outer < n_outer; outer++) {
        int64_t from = 0, step = 1, rest = outer;
        for (int i = axis - 1; i >= 0 && from >= 0; i--) {
            const int64_t place =
                hwnas_pad_source(rest % out->dims[i] - node->attrs[BEFORE].ints[i], in->dims[i],
                                 node->attrs[MODE].ints[0]);
            from = place < 0 ? -1 : from + place * step;
            rest /= out->dims[i];
            step *= in->dims[i];
        }
        pad_run(output + outer * out->dims[axis] * count,
                from < 0 ? NULL : inputs[0] + from * in->dims[axis] * count, node, axis,
                in->dims[axis], out->dims[axis], count);
    }
}

const hwnas_op hwnas_op_pad = {
    .id = HWNAS_OP_PAD,
    .name = "pad",
    .onnx = "Pad",
    .help = "more values around those that there are",
    .attrs = attrs,
    .is_internal = true,
    .takes_integers = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .settle = settle,
    .infer = infer,
    .compute = compute,
};
