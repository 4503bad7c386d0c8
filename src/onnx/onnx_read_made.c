/* onnx_read_made.c: what is made of what has no values: more of nothing, or values that follow from
 * the shapes alone, such as the sum over no terms. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/ops/elementwise.h"
#include "onnx/onnx_build.h"

typedef hwnas_onnx_reader reader;

enum { MOST = 1 << 24 }; /* values that are made */

/* The node's first output: nothing, or all of one value. */
static hwnas_status give(int *out, reader *r, const Onnx__NodeProto *node, const char *name,
                         int rank, const int64_t *dims, double value)
{
    int64_t count = 1;
    float *values;
    if (hwnas_onnx_give_nothing(r, node->output[0], rank, dims))
        return HWNAS_OK;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count) || count > MOST)
            return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                              "%s makes more than 2^24 values of what has none",
                              hwnas_onnx_describe(node).s);
    TRY(hwnas_try_alloc((void **)&values, (size_t)count * sizeof *values, "a constant"));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)value;
    const hwnas_status status = hwnas_graph_add_constant(out, r->graph, name, rank, dims, values);
    free(values);
    return status;
}

static hwnas_status make_tile(int *out, reader *r, const Onnx__NodeProto *node, const char *name)
{
    hwnas_onnx_list repeats;
    int rank;
    int64_t dims[HWNAS_MAX_RANK];
    TRY(hwnas_onnx_dims(&rank, dims, r, node, 0));
    TRY(hwnas_onnx_read_list(&repeats, r, node, "", 1));
    const bool has_none = hwnas_onnx_reads_nothing(r, node, 1);
    bool gives_none = has_none;
    for (int i = 0; i < repeats.n; i++)
        gives_none |= repeats.items[i] == 0;
    if (!gives_none)
        return HWNAS_OK;
    if (repeats.n != rank)
        return hwnas_onnx_unsupported(node, "repeats", "are not one for each axis");
    for (int i = 0; i < rank; i++)
        if (repeats.items[i] < 0 || __builtin_mul_overflow(dims[i], repeats.items[i], &dims[i]))
            return hwnas_onnx_unsupported(node, "repeats", "are out of range");
    return give(out, r, node, name, rank, dims, 0);
}

/* What the attribute or the inputs of a Pad say, by axis. */
static hwnas_status add_pads(int64_t *dims, int rank, reader *r, const Onnx__NodeProto *node)
{
    enum { PADS = 1, AXES = 3 };
    hwnas_onnx_list axes;
    const hwnas_tensor *known = NULL;
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "pads");
    TRY(hwnas_onnx_read_list(&axes, r, node, "axes", AXES));
    if (!given && hwnas_onnx_has_input(node, PADS))
        TRY(hwnas_onnx_constant(&known, r, node->input[PADS], hwnas_onnx_describe(node).s));
    const int64_t n_axes = axes.n < 0 ? rank : axes.n;
    const int64_t n = given   ? (int64_t)given->n_ints
                      : known ? hwnas_tensor_count(known)
                              : 0;
    if (n != 2 * n_axes)
        return hwnas_onnx_unsupported(node, "pads", "are not two for each axis");
    for (int64_t i = 0; i < n; i++) {
        const int64_t pad = given ? given->ints[i] : hwnas_onnx_whole(known->data[i]);
        int64_t axis = axes.n < 0 ? i % n_axes : axes.items[i % n_axes];
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank || pad < -MOST || pad > MOST)
            return hwnas_onnx_unsupported(node, "pads", "are out of range");
        dims[axis] += pad;
    }
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return hwnas_onnx_unsupported(node, "pads", "are out of range");
    return HWNAS_OK;
}

static hwnas_status make_pad(int *out, reader *r, const Onnx__NodeProto *node, const char *name)
{
    enum { VALUE = 2 };
    int rank;
    int64_t in[HWNAS_MAX_RANK], dims[HWNAS_MAX_RANK];
    const hwnas_tensor *known = NULL;
    double value = hwnas_onnx_float(node, "value", 0);
    if (!hwnas_onnx_reads_nothing(r, node, 1))
        return HWNAS_OK;
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    memcpy(dims, in, sizeof dims);
    TRY(add_pads(dims, rank, r, node));
    const bool is_constant = hwnas_onnx_is_word(node, "mode", "constant", true);
    for (int i = 0; i < rank && !is_constant; i++)
        if (in[i] == 0 && dims[i] > 0)
            return hwnas_onnx_unsupported(node, "mode", "repeats values where there are none");
    if (hwnas_onnx_has_input(node, VALUE)) {
        TRY(hwnas_onnx_constant(&known, r, node->input[VALUE], hwnas_onnx_describe(node).s));
        if (!known)
            return hwnas_onnx_unsupported(node, "constant_value", "is computed");
        value = known->data[0];
    }
    return give(out, r, node, name, rank, dims, value);
}

/* What a reduction over no values gives: as NumPy has it, but for the mean, which ONNX Runtime has as
 * 0. */
static const struct {
    const char *type;
    double value;
} reductions[] = {
    {"ReduceL1", 0},
    {"ReduceL2", 0},
    {"ReduceLogSum", -INFINITY},
    {"ReduceLogSumExp", -INFINITY},
    {"ReduceMax", -INFINITY},
    {"ReduceMean", 0},
    {"ReduceMin", INFINITY},
    {"ReduceProd", 1},
    {"ReduceSum", 0},
    {"ReduceSumSquare", 0},
};

static hwnas_status make_reduced(int *out, reader *r, const Onnx__NodeProto *node, const char *name)
{
    hwnas_onnx_list axes;
    int rank, n = 0;
    int64_t in[HWNAS_MAX_RANK], dims[HWNAS_MAX_RANK];
    unsigned reduced = 0;
    size_t row = 0;
    if (!hwnas_onnx_reads_nothing(r, node, 1))
        return HWNAS_OK;
    while (strcmp(reductions[row].type, node->op_type))
        row++;
    TRY(hwnas_onnx_dims(&rank, in, r, node, 0));
    TRY(hwnas_onnx_read_list(&axes, r, node, "axes", 1));
    const bool keeps = hwnas_onnx_int(node, "keepdims", 1) != 0;
    const bool takes_all =
        axes.n <= 0 && !hwnas_onnx_int(node, "noop_with_empty_axes", 0);
    for (int i = 0; i < axes.n; i++) {
        const int64_t axis = axes.items[i] + (axes.items[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
            return hwnas_onnx_unsupported(node, "axes", "names a dimension that is not there");
        reduced |= 1u << axis;
    }
    for (int i = 0; i < rank; i++)
        if (!takes_all && !(reduced >> i & 1))
            dims[n++] = in[i];
        else if (keeps)
            dims[n++] = 1;
    return give(out, r, node, name, n, dims, reductions[row].value);
}

/* Sums over a common dimension of length 0 are 0; other products have no values. */
static hwnas_status make_product(int *out, reader *r, const Onnx__NodeProto *node, const char *name)
{
    hwnas_tensor a = {0}, b = {0}, batch = {0};
    int n;
    if (!hwnas_onnx_reads_nothing(r, node, 2))
        return HWNAS_OK;
    TRY(hwnas_onnx_dims(&a.rank, a.dims, r, node, 0));
    TRY(hwnas_onnx_dims(&b.rank, b.dims, r, node, 1));
    const bool is_row = a.rank == 1, is_column = b.rank == 1;
    if (!a.rank || !b.rank || a.dims[a.rank - 1] != b.dims[is_column ? 0 : b.rank - 2])
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s cannot multiply the shapes %s and %s",
                          hwnas_onnx_describe(node).s, hwnas_tensor_shape(&a).s,
                          hwnas_tensor_shape(&b).s);
    const int64_t rows = is_row ? 1 : a.dims[a.rank - 2], columns = b.dims[b.rank - 1];
    hwnas_tensor left = a, right = b;
    left.rank = is_row ? 0 : a.rank - 2;
    right.rank = is_column ? 0 : b.rank - 2;
    if (!hwnas_broadcast_shape(&batch, &left, &right))
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s cannot multiply the shapes %s and %s",
                          hwnas_onnx_describe(node).s, hwnas_tensor_shape(&a).s,
                          hwnas_tensor_shape(&b).s);
    n = batch.rank;
    if (!is_row)
        batch.dims[n++] = rows;
    if (!is_column)
        batch.dims[n++] = columns;
    return give(out, r, node, name, n, batch.dims, 0);
}

hwnas_status hwnas_onnx_make_of_nothing(int *out, reader *r, const Onnx__NodeProto *node,
                                        const char *name)
{
    static const struct {
        const char *type;
        hwnas_onnx_form *make;
    } others[] = {{"MatMul", make_product}, {"Pad", make_pad}, {"Tile", make_tile}};
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (!strcmp(node->op_type, reductions[i].type))
            return make_reduced(out, r, node, name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(node->op_type, others[i].type))
            return others[i].make(out, r, node, name);
    return HWNAS_OK;
}
