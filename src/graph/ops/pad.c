/* pad: more values around those that there are. In a node `before` and `after` have one number for
 * each of the first dimensions; what they do not name stays. */
#include <math.h>

#include "graph/ops/elementwise.h"

enum { BEFORE, AFTER, VALUE, MODE };
enum { CONSTANT, EDGE, REFLECT, WRAP };

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

/* Where the value at `i` of `n` comes from; -1: from nowhere. */
static int64_t source(int64_t i, int64_t n, int64_t mode)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case EDGE:
        return i < 0 ? 0 : n - 1;
    case REFLECT:
        return i < 0 ? -i : 2 * (n - 1) - i;
    case WRAP:
        return i < 0 ? i + n : i - n;
    }
    return -1;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0),
                       *out = hwnas_node_output(graph, node);
    hwnas_walk walk = hwnas_walk_new(out, out);
    for (int64_t at = 0, n = hwnas_tensor_count(out); at < n; at++, hwnas_walk_next(&walk)) {
        int64_t from = 0;
        for (int i = 0; i < out->rank && from >= 0; i++) {
            const int64_t place = source(walk.index[i] - node->attrs[BEFORE].ints[i], in->dims[i],
                                         node->attrs[MODE].ints[0]);
            from = place < 0 ? -1 : from * in->dims[i] + place;
        }
        output[at] = from < 0 ? (float)node->attrs[VALUE].number : inputs[0][from];
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
